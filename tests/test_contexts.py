"""Whole prompts: their covariance and labels, and predictors scored on them."""

import numpy as np
import pytest
from helpers import name, summary, z_limit, zoo

from corricl import simulate
from corricl.errors import InputError
from corricl.kernels import Tabulated
from corricl.prompt import Pretraining, Prompt
from corricl.theory import exact

D, LENGTH, N = 2, 5, 4096


@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_token_covariance_is_the_joint_kernel_and_labels_are_linear(noise):
    prompts = zoo(D, LENGTH, noise)
    scores = []
    for seed, prompt in enumerate(prompts):
        drawn = next(simulate.batches(prompt, seed=seed, batch=N))
        tokens = np.concatenate([drawn.x, drawn.query[:, None]], axis=1)  # (N, LENGTH+1, D)
        assert drawn.x.shape == (N, LENGTH, D)
        assert all(a.dtype == np.float64 and np.isfinite(a).all() for a in drawn)
        for i in range(D):
            for j in range(D):
                expected = prompt.joint / D if i == j else np.zeros_like(prompt.joint)
                products = tokens[:, :, None, i] * tokens[:, None, :, j]
                gap, spread = products.mean(0) - expected, products.std(0) / np.sqrt(N)
                scores.append(
                    np.where(spread > 1e-12, gap / np.maximum(spread, 1e-12), np.where(np.abs(gap) < 1e-12, 0, 99))
                )
        labels = np.concatenate([drawn.y, drawn.target[:, None]], axis=1)
        rest = labels - np.einsum("nai,ni->na", tokens, drawn.task)
        if noise == 0:
            np.testing.assert_allclose(rest, 0, atol=1e-13)
        else:
            covariance = rest.T @ rest / N
            assert np.abs(covariance - noise * np.eye(LENGTH + 1)).max() < 6 * noise * np.sqrt(2 / N), name(prompt)
        assert np.abs(drawn.task.T @ drawn.task / N - np.eye(D)).max() < 6 * np.sqrt(2 / N)
        assert np.abs(np.einsum("ni,nai->ai", drawn.task, tokens) / N).max() < 6 / np.sqrt(N)
    scores = np.array(scores)
    assert np.abs(scores).max() < z_limit(scores.size) + 0.5
    assert 0.8 < np.mean(scores[np.isfinite(scores)] ** 2) < 1.25


def test_copies_are_copies():
    drawn = next(simulate.batches(Prompt(D, LENGTH, "exp:inf", "continues", 0.0), seed=0, batch=8))
    np.testing.assert_allclose(drawn.x, np.broadcast_to(drawn.query[:, None], drawn.x.shape), atol=1e-12)
    drawn = next(simulate.batches(Prompt(D, 4, "blocks:2", "independent", 0.0), seed=0, batch=8))
    np.testing.assert_allclose(drawn.x[:, 0::2], drawn.x[:, 1::2], atol=1e-12)


def test_batches_depend_on_the_seed_and_their_number_alone():
    prompt = Prompt(D, LENGTH, "exp:2", "continues", 0.1)
    first, second = simulate.batches(prompt, seed=4, batch=8), simulate.batches(prompt, seed=4, batch=8)
    a, b = next(first), next(first)
    np.testing.assert_array_equal(a.x, next(second).x)
    np.testing.assert_array_equal(b.x, next(second).x)
    assert not np.any(a.x == b.x)
    assert not np.any(a.x == next(simulate.batches(prompt, seed=5, batch=8)).x)


def test_tasks_come_from_the_given_ones():
    tasks = np.random.default_rng(0).standard_normal((3, D))
    drawn = next(simulate.batches(Prompt(D, LENGTH), seed=0, tasks=tasks, batch=N))
    matches = (drawn.task[:, None] == tasks).all(2)
    assert np.all(matches.sum(1) == 1)
    assert np.abs(matches.mean(0) - 1 / 3).max() < 5 * np.sqrt(2 / 9 / N)


def test_a_pretraining_set_has_its_sizes_and_its_tasks():
    setting = Pretraining(Prompt(D, LENGTH, "exp:2", "continues", 0.1), 100, 4)
    drawn = simulate.sample(setting, seed=3)
    assert [a.shape for a in drawn] == [(100, LENGTH, D), (100, LENGTH), (100, D), (100,), (100, D)]
    assert len(np.unique(drawn.task, axis=0)) == 4
    np.testing.assert_array_equal(drawn.x, simulate.sample(setting, seed=3).x)
    assert not np.any(drawn.x == simulate.sample(setting, seed=4).x)
    assert len(np.unique(simulate.sample(Pretraining(setting.prompt, 100), seed=3).task, axis=0)) == 100
    with pytest.raises(InputError, match=r"need .* GiB: take fewer sequences, or stream"):
        simulate.sample(Pretraining(Prompt(512, 2048), 10**6), seed=0)


def test_a_known_predictor_scores_its_exact_risk():
    scores = []
    for seed, prompt in enumerate(zoo(D, LENGTH, 0.3, kernels=("iid", "exp:2", "power:0.4", "blocks:3", "exp:inf"))):
        rng = np.random.default_rng(seed)
        gamma = 0.4 * rng.standard_normal((D, D + 1)) / LENGTH**0.5
        task = rng.standard_normal((1, D))

        def predict(x, y, query, gamma=gamma):
            return np.einsum("ni,ij,nj->n", query, gamma, summary(x, y))

        for tasks in (None, task):
            found = simulate.score(predict, prompt, seed=seed, prompts=4 * N, batch=N, tasks=tasks)
            expected = exact.risk_of(gamma, prompt, tasks)
            assert found.stderr < 0.08 * expected
            scores.append((found.mean - expected) / found.stderr)
    assert np.abs(scores).max() < 4.5


def test_predictors_may_return_anything_that_numpy_takes():
    import jax.numpy as jnp

    prompt = Prompt(D, LENGTH, noise=0.5)
    plain = simulate.score(lambda x, y, query: 0 * y[:, 0], prompt, seed=1, prompts=N, batch=N)
    listed = simulate.score(lambda x, y, query: [0.0] * len(y), prompt, seed=1, prompts=N, batch=N)
    traced = simulate.score(lambda x, y, query: jnp.zeros(len(y)), prompt, seed=1, prompts=N, batch=N)
    assert plain == listed == traced
    assert abs(plain.mean - 1.5) < 5 * plain.stderr


@pytest.mark.parametrize(
    ("predictor", "sentence"),
    [
        (lambda x, y, query: y, r"must return shape \(64,\); got \(64, 5\)"),
        (lambda x, y, query: 0.0, r"must return shape \(64,\); got \(\)"),
        (lambda x, y, query: y[:, 0] * np.nan, "NaN or infinite"),
        (lambda x, y, query: np.full(64, np.inf), "NaN or infinite"),
    ],
)
def test_unusable_predictions_are_refused(predictor, sentence):
    with pytest.raises(InputError, match=sentence):
        simulate.score(predictor, Prompt(D, LENGTH), seed=0, prompts=64, batch=64)


def test_bad_requests_are_refused():
    prompt = Prompt(D, LENGTH)
    for tasks in (np.zeros(D), np.zeros((3, D + 1))):
        with pytest.raises(InputError, match=r"tasks must have shape \(k, 2\)"):
            next(simulate.batches(prompt, seed=0, tasks=tasks))
    with pytest.raises(InputError, match="batch must be an integer >= 1"):
        next(simulate.batches(prompt, seed=0, batch=0))
    with pytest.raises(InputError, match="prompts must be an integer >= 1"):
        simulate.score(lambda x, y, query: y[:, 0], prompt, seed=0, prompts=0)
    with pytest.raises(InputError, match="seed must lie"):
        next(simulate.batches(prompt, seed=-1))
    with pytest.raises(InputError, match="unit diagonal"):
        Prompt(D, LENGTH, Tabulated(2 * np.eye(LENGTH)))
