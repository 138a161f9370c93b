"""The sampler of sufficient statistics: joint moments and laws against whole contexts drawn by NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import draw_contexts, name, random_joint, summary, z_limit, z_scores
from jax.sharding import Mesh
from scipy.stats import chisquare, ks_2samp

from corricl.kernels import Tabulated
from corricl.prompt import Prompt
from corricl.simulate._precision import in_float64, key_of
from corricl.simulate._replicates import law_of
from corricl.simulate._sampler import AXIS, block_size, sample_sequences

D, LENGTH, N = 3, 4, 40_960
TASK = np.array([1.1, -0.4, 0.7])

PROMPTS = [
    Prompt(D, LENGTH, "iid", "independent", 0.5),
    Prompt(D, LENGTH, "exp:3", "continues", 0.1),
    Prompt(D, LENGTH, "ar1:-0.7", "gap:2", 0.0),
    Prompt(D, LENGTH, "power:0.5", "strength:0.8", 1.0),
    Prompt(D, LENGTH, "blocks:2", "continues", 0.2),
    Prompt(D, LENGTH, "blocks:3", "continues", 0.0),  # the query copies the last token
    Prompt(D, LENGTH, "exp:inf", "continues", 0.0),  # all tokens are one
    Prompt(D, LENGTH, "exp:inf", "continues", 0.3),
    Prompt(D, LENGTH, "cosine:0.9,inf", "independent", 0.1),
    Prompt(D, LENGTH, Tabulated(random_joint(LENGTH + 1, seed=9)), noise=0.3),
    Prompt(D, LENGTH, Tabulated(random_joint(LENGTH + 1, rank=2, seed=9)), noise=0.0),
]


@in_float64
def draw(prompt, n, seed=0, tasks=None, devices=1):
    """(x_t, h, y.y/length, y_t) of n sequences as NumPy arrays, padding kept."""
    pool = None if tasks is None else jnp.asarray(tasks)
    mesh = Mesh(np.array(jax.devices()[:devices]), (AXIS,))
    data = sample_sequences(key_of(seed, 0), pool, law_of(prompt), sequences=n, d=prompt.d, mesh=mesh)
    x, u, y = (np.asarray(a) for a in data)
    assert x.dtype == u.dtype == y.dtype == np.float64
    return x.reshape(-1, prompt.d), u.reshape(-1, prompt.d + 1), y.ravel()


def moments(x, u, y, w=None):
    """Products of the statistics up to fourth order, one column each; those with the task only where it is known."""
    h, s = u[:, :-1], u[:, -1]
    xh, xx, hh = (x * h).sum(1), (x * x).sum(1), (h * h).sum(1)
    columns = [y, s, xx, hh, xh, y * y, y * s, s * s, y * xh, s * xx, s * xh, s * hh, s * y * y]
    columns += [xh * xh, xx * xx, xx * hh, y * y * xx, y * xh * s, y**4, x[:, 0] * h[:, 1], x[:, 0] * h[:, 2] * s]
    columns += [h[:, 0], x[:, 1], x[:, 0] * x[:, 1], x[:, 0] * x[:, 1] * h[:, 0] * h[:, 2]]
    if w is not None:
        along, across = w / np.linalg.norm(w), np.array([w[1], -w[0], 0.0]) / np.hypot(w[0], w[1])
        ha, xa, hb, xb = h @ along, x @ along, h @ across, x @ across
        columns += [ha, xa, ha * xa, hb * xb, ha * s, ha * y, hb * xb * ha, hb * xb * s, hb * hb * xa, ha * hb, xa * hb]
        columns += [ha * ha, hb * hb, ha**4, hb**4, ha * xa * hb * xb, ha * ha * hb * hb, xa * xa * hb * hb, y * hb]
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("known", [False, True], ids=["fresh tasks", "one known task"])
def test_joint_moments_to_fourth_order_equal_those_of_contexts(known):
    scores = []
    for seed, prompt in enumerate(PROMPTS):
        task = TASK if known else None
        sampled = moments(*draw(prompt, N, seed, None if task is None else task[None]), task)
        x, y, query, target, _ = draw_contexts(prompt, N, 50 + seed, task)
        whole = moments(query, summary(x, y), target, task)
        assert sampled.shape == whole.shape
        assert sampled.shape[1] >= 19
        scores.append(z_scores(sampled, whole))
    scores = np.array(scores)
    worst = np.unravel_index(np.argmax(np.abs(scores)), scores.shape)
    assert abs(scores[worst]) < z_limit(2 * scores.size) + 1, (name(PROMPTS[worst[0]]), worst, scores[worst])
    # fourth moments are skewed (hence + 1 above), but the scores as a whole are standard
    assert np.mean(scores**2) < 2


def test_laws_equal_those_of_contexts():
    p_values = []
    n = 8192
    for seed, prompt in enumerate(PROMPTS):
        x, u, y = (a[:n] for a in draw(prompt, N, 20 + seed, TASK[None]))
        contexts = draw_contexts(prompt, n, 80 + seed, TASK)
        v = summary(*contexts[:2])
        for direction in (TASK, np.array([0.4, 1.1, 0.0]), np.array([0.0, 0.7, 0.4])):
            p_values.append(ks_2samp(u[:, :-1] @ direction, v[:, :-1] @ direction).pvalue)
            p_values.append(ks_2samp(x @ direction, contexts[2] @ direction).pvalue)
        p_values.append(ks_2samp(u[:, -1], v[:, -1]).pvalue)
        p_values.append(ks_2samp(y, contexts[3]).pvalue)
        p_values.append(ks_2samp((x * u[:, :-1]).sum(1), (contexts[2] * v[:, :-1]).sum(1)).pvalue)
    assert min(p_values) > 1e-4 / len(p_values)
    assert np.mean(np.array(p_values) < 0.1) < 0.25


@pytest.mark.parametrize("d", [2, 3, 5, 10])
@pytest.mark.parametrize("length", [1, 3, 4, 5])
def test_a_copied_query_without_noise_is_a_copy(d, length):
    """All tokens are one: h = d x_t (x_t.w) and the label power is y_t^2, for every single sequence.

    Of several sizes rounding goes either way in some, whatever the machine; its root must not become noise.
    """
    prompt = Prompt(d, length, "exp:inf", "continues", 0.0)
    task = np.random.default_rng(d).standard_normal(d)
    x, u, y = draw(prompt, 2048, 3, task[None])
    np.testing.assert_allclose(u[:, :-1], d * x * y[:, None], rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(u[:, -1], y * y, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(y, x @ task, rtol=1e-12, atol=3e-15 * d)


def test_tasks_are_drawn_uniformly_and_labels_come_from_them():
    tasks = np.random.default_rng(0).standard_normal((7, D))
    x, _, y = draw(Prompt(D, LENGTH, "exp:3", "continues", 0.0), N, 5, tasks)
    matches = np.abs(x @ tasks.T - y[:, None]) < 1e-12
    assert np.all(matches.sum(1) == 1)
    assert chisquare(matches.sum(0)).pvalue > 1e-4
    # neighbours and neighbouring blocks choose independently
    choice = matches.argmax(1)
    for step in (1, 1024):
        table = np.zeros((7, 7))
        np.add.at(table, (choice[:-step], choice[step:]), 1)
        assert chisquare(table.ravel()).pvalue > 1e-4


def test_rows_that_pad_the_last_block_are_zero():
    prompt = Prompt(D, LENGTH, "exp:3", "continues", 0.5)
    assert block_size(1500, LENGTH) == 1024
    x, u, y = draw(prompt, 1500, 1)
    assert len(x) == len(u) == len(y) == 2048
    assert not (x[1500:].any())
    assert not (u[1500:].any())
    assert not (y[1500:].any())
    assert np.all(np.abs(x[:1500]).sum(1) > 0)
    assert np.all(u[:1500, -1] > 0)


def test_a_block_depends_on_its_own_number_alone():
    prompt = Prompt(D, LENGTH, "exp:3", "continues", 0.5)
    long, short = draw(prompt, N, 1), draw(prompt, 1500, 1)
    for a, b in zip(long, short, strict=True):
        np.testing.assert_array_equal(a[:1024], b[:1024])
        np.testing.assert_array_equal(a[1024:1500], b[1024:1500])
        assert not np.any(a[:1024] == a[1024:2048])
        centred = (a - a.mean(0)).reshape(N, -1)
        for step in (1, 1024):
            assert np.abs((centred[:-step] * centred[step:]).mean(0) / (centred**2).mean(0)).max() < 5 / np.sqrt(N)


def test_block_sizes_follow_from_the_sizes_alone_and_bound_memory():
    for sequences in (1, 7, 1024, 10**7):
        for length in (1, 100, 5000, 2**22, 2**24):
            size = block_size(sequences, length)
            assert 1 <= size <= min(1024, sequences)
            assert size == 1 or size * length <= 2**22


def test_another_seed_is_another_draw():
    prompt = Prompt(D, LENGTH, "exp:3", "continues", 0.5)
    for a, b in zip(draw(prompt, 1500, 1), draw(prompt, 1500, 2), strict=True):
        assert not np.any(a[:1500] == b[:1500])
