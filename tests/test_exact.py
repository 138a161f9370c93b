"""The exact risk of a given Gamma: against quadrature that is exact, and against brute-force Monte Carlo."""

import itertools

import numpy as np
import pytest
from helpers import KERNELS, draw_contexts, name, random_joint, summary, symmetric_root, z_limit, zoo

from corricl.errors import InputError
from corricl.kernels import Tabulated
from corricl.prompt import Prompt
from corricl.theory import exact


def random_gamma(d, seed=0):
    """Asymmetric, with a trace and a last column that matter."""
    rng = np.random.default_rng(seed)
    gamma = rng.standard_normal((d, d + 1)) * 0.6
    gamma[:, :-1] += 0.5 * np.eye(d)
    return gamma


def tensor_rule(nodes):
    """Points and weights of a product Gauss-Hermite rule for independent standard normals, nodes[i] for variable i."""
    rules = [np.polynomial.hermite_e.hermegauss(n) for n in nodes]
    points = np.array(list(itertools.product(*(r[0] for r in rules))))
    weights = np.prod(np.array(list(itertools.product(*(r[1] / r[1].sum() for r in rules)))), axis=1)
    return points, weights


def enumerated_risk(gamma, joint, noise, task=None):
    """E (y_t - x_t' Gamma u)^2 by quadrature that integrates this polynomial exactly.

    In each white token the prediction is of degree 3, in each task component and label noise of degree 2;
    squared, 6 and 4: 4 and 3 nodes are enough.
    """
    d, length = gamma.shape[0], len(joint) - 1
    white = (length + 1) * d
    unknown = 0 if task is not None else d
    points, weights = tensor_rule([4] * white + [3] * unknown + [3] * length)
    tokens = np.einsum("ab,nbi->nai", symmetric_root(joint), points[:, :white].reshape(-1, length + 1, d)) / np.sqrt(d)
    w = points[:, white : white + unknown] if task is None else np.broadcast_to(task, (len(points), d))
    y = np.einsum("nai,ni->na", tokens[:, :-1], w) + np.sqrt(noise) * points[:, white + unknown :]
    prediction = np.einsum("ni,ij,nj->n", tokens[:, -1], gamma, summary(tokens[:, :-1], y))
    clean = (tokens[:, -1] * w).sum(1)
    return noise + weights @ (clean - prediction) ** 2


TINY = [(1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (3, 1)]


@pytest.mark.parametrize(("d", "length"), TINY)
@pytest.mark.parametrize("noise", [0.0, 0.7])
def test_risk_equals_the_enumerated_gaussian_moments(d, length, noise):
    if d == 3 and noise == 0:
        pytest.skip("half a million points, once is enough")
    joints = [
        random_joint(length + 1, seed=4),
        random_joint(length + 1, rank=2, seed=5),
        np.ones((length + 1, length + 1)),
    ]
    for seed, joint in enumerate(joints if d * length < 4 else joints[:1]):
        gamma = random_gamma(d, seed)
        prompt = Prompt(d, length, Tabulated(joint), noise=noise)
        expected = enumerated_risk(gamma, joint, noise)
        assert exact.risk_of(gamma, prompt) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize(("d", "length"), TINY)
@pytest.mark.parametrize("noise", [0.0, 0.7])
def test_risk_of_a_given_task_equals_the_enumerated_gaussian_moments(d, length, noise):
    joint = random_joint(length + 1, seed=6)
    gamma = random_gamma(d, 7)
    tasks = np.random.default_rng(8).standard_normal((3 if d * length < 4 else 1, d)) * 1.3
    prompt = Prompt(d, length, Tabulated(joint), noise=noise)
    found = exact.given_task_risk(gamma, tasks, prompt)
    assert found.shape == (len(tasks),)
    for task, value in zip(tasks, found, strict=True):
        assert value == pytest.approx(enumerated_risk(gamma, joint, noise, task), rel=1e-11)
    assert exact.risk_of(gamma, prompt, tasks) == pytest.approx(found.mean(), rel=1e-14)


@pytest.mark.parametrize("d", [3, 5, 8])
def test_risk_against_monte_carlo_over_the_zoo(d):
    n, length = 16_000, 6
    prompts = [p for noise in (0.0, 0.3) for p in zoo(d, length, noise)]
    task = np.random.default_rng(1).standard_normal(d)
    zs = []
    for seed, prompt in enumerate(prompts):
        gamma = random_gamma(d, seed)
        given = task if seed % 2 else None
        x, y, query, target, _ = draw_contexts(prompt, n, 100 + seed, given)
        errors = (target - np.einsum("ni,ij,nj->n", query, gamma, summary(x, y), optimize=True)) ** 2
        expected = (
            exact.risk_of(gamma, prompt) if given is None else exact.given_task_risk(gamma, task[None], prompt)[0]
        )
        stderr = errors.std(ddof=1) / np.sqrt(n)
        assert stderr < 0.12 * expected, name(prompt)
        zs.append((errors.mean() - expected) / stderr)
    limit = z_limit(3 * len(prompts))
    worst = int(np.argmax(np.abs(zs)))
    assert abs(zs[worst]) < limit + 1, (name(prompts[worst]), zs[worst])  # + 1: squared errors are skewed
    assert abs(np.mean(zs)) * np.sqrt(len(zs)) < 5


@pytest.mark.parametrize("prompt", zoo(4, 7, 0.2, kernels=KERNELS[::3]), ids=name)
def test_given_tasks_average_to_fresh_ones(prompt):
    gamma = random_gamma(4, 3)
    # |w|^2 and w' enter as a polynomial of degree 4: a product rule of 4 nodes averages exactly
    points, weights = tensor_rule([4] * 4)
    average = weights @ exact.given_task_risk(gamma, points, prompt)
    assert average == pytest.approx(exact.risk_of(gamma, prompt), rel=1e-12)


@pytest.mark.parametrize("d", [3, 40])
def test_special_cases(d):
    prompt = Prompt(d, 9, "exp:2", "continues", 0.3)
    assert exact.risk_of(np.zeros((d, d + 1)), prompt) == pytest.approx(1.3, rel=1e-14)
    tasks = np.random.default_rng(0).standard_normal((5, d))
    power = (tasks**2).sum(1) / d
    np.testing.assert_allclose(exact.given_task_risk(np.zeros((d, d + 1)), tasks, prompt), power + 0.3, rtol=1e-13)


def test_the_two_published_approximations_are_its_leading_terms():
    """Weak at alpha fixed: the gap falls like 1/d. Strong with k's of order length: the same."""
    gaps = {"weak": [], "strong": []}
    for d in (50, 100, 200):
        rng = np.random.default_rng(d)
        gamma = np.concatenate(
            [0.6 * np.eye(d) + 0.3 * rng.standard_normal((d, d)) / np.sqrt(d), rng.standard_normal((d, 1)) * 0.2], 1
        )
        bulk = gamma[:, :-1]
        g, f, t, n = np.trace(bulk), (bulk**2).sum(), np.trace(bulk @ bulk), (gamma[:, -1] ** 2).sum()
        weak = Prompt(d, 2 * d, "exp:2", "continues", 0.2)
        (k0, k1, k2), alpha, rho = weak.statistics, 2.0, 0.2
        limit = 1 + rho - 2 * (1 + k0 / alpha) * g / d + (1 + (k2 + rho) / alpha) * f / d
        limit += ((k1 + rho * k0) / alpha**2 + 2 * k0 / alpha) * (g / d) ** 2 + (1 + rho) ** 2 * n / d
        gaps["weak"].append(abs(exact.risk_of(gamma, weak) - limit))
        strong = Prompt(d, 2 * d, "equi:0.5", "continues", 0.2)
        (k0, k1, k2), length = strong.statistics, 2 * d
        scaled = 1 + rho - 2 * (k0 / length) * g + (k2 / length) * f + (k1 / length**2) * (t + g * g)
        gaps["strong"].append(abs(exact.risk_of(gamma, strong) / scaled - 1))
    for regime, (first, second, third) in gaps.items():
        assert 0.35 < second / first < 0.7, (regime, gaps)
        assert 0.35 < third / second < 0.7, (regime, gaps)


def test_moments_are_the_traces():
    gamma = random_gamma(5)
    bulk = gamma[:, :5]
    expected = (np.trace(bulk), np.linalg.norm(bulk) ** 2, np.trace(bulk @ bulk), np.linalg.norm(gamma[:, 5]) ** 2)
    np.testing.assert_allclose(exact.moments(gamma), expected, rtol=1e-13)


@pytest.mark.parametrize("gamma", [np.eye(4), np.full((4, 5), np.nan)])
def test_a_gamma_of_another_shape_or_not_finite_is_refused(gamma):
    with pytest.raises(InputError, match=r"finite, of shape \(4, 5\)"):
        exact.risk_of(gamma, Prompt(4, 3))
