"""The ridge solve: against dense least squares in every regime, certified or refused."""

import re
from dataclasses import replace

import numpy as np
import pytest

from corricl import simulate
from corricl.errors import ConvergenceError, InputError
from corricl.prompt import Pretraining, Prompt
from corricl.simulate._solver import Solution

D = 4
FEATURES = D * (D + 1)
DETERMINED = Prompt(D, 6, "exp:2", "continues", 0.1)
SETTINGS = {
    "ordinary": Pretraining(DETERMINED, 1, 5),
    "all tokens and the query are one": Pretraining(Prompt(D, 6, "exp:inf", "continues", 0.0), 1, 5),
    "one task without noise": Pretraining(Prompt(D, 6, "exp:2", "continues", 0.0), 1, 1),
}
"""The features of the last two are dependent, at any number of sequences."""
SIZES = [7, FEATURES - 1, FEATURES, 1100]  # the last fills one block of 1024 and pads the second


def rows(data, n):
    """H and y as a literal least-squares problem, one row a sequence."""
    x, u, y = (np.asarray(a).reshape(-1, *a.shape[2:])[:n] for a in data)
    return (x[:, :, None] * u[:, None, :]).reshape(n, -1), y


def literal(h, y, penalty):
    """Minimiser of |y - h g|^2 + penalty |g|^2 by dense least squares; of minimum norm at penalty 0."""
    if penalty:
        h = np.concatenate([h, np.sqrt(penalty) * np.eye(h.shape[1])])
        y = np.concatenate([y, np.zeros(h.shape[1])])
    return np.linalg.lstsq(h, y, rcond=1e-7)[0]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("setting", SETTINGS)
def test_gamma_is_the_least_squares_solution(n, setting):
    if n in (7, FEATURES) and setting == "one task without noise":
        pytest.skip("as with copies")
    pretraining = replace(SETTINGS[setting], sequences=n)
    _, tasks, data = simulate.pretrain(pretraining, 1.0, seed=3)
    assert tasks.shape == (pretraining.tasks, D)
    h, y = rows(data, n)
    singular = np.linalg.svd(h, compute_uv=False)
    rank = np.count_nonzero(singular > 1e-7 * singular[0])
    assert rank == min(n, {"ordinary": FEATURES, "all": D * (D + 1) // 2 + D, "one": D * D}[setting.split()[0]])
    for ridge in (0.0, 1e-5, 1.0):
        penalty = n / D * ridge
        expected = literal(h, y, penalty)
        condition = (singular[0] ** 2 + penalty) / (singular[rank - 1 if ridge == 0 else -1] ** 2 + penalty)
        for method in ("dense", "cg"):
            if method == "cg" and condition > 1e5:
                continue
            found = simulate.pretrain(pretraining, ridge, seed=3, method=method, tolerance=1e-9)[0]
            assert found.residual <= 1e-9
            assert found.gamma.dtype == np.float64
            assert found.gamma.shape == (D, D + 1)
            gap = np.linalg.norm(np.asarray(found.gamma).ravel() - expected) / np.linalg.norm(expected)
            assert gap < 1e-9 + 3e-9 * min(condition, 1e5), (method, ridge, gap, condition)
            assert found.method == {"cg": "cg", "dense": "dual" if n < FEATURES else "normal"}[method]


@pytest.mark.parametrize("n", [7, 1100])
@pytest.mark.parametrize("method", ["dense", "cg"])
def test_gamma_is_stationary_and_the_residual_is_honest(n, method):
    solution, _, data = simulate.pretrain(Pretraining(DETERMINED, n, 5), 0.3, seed=1, method=method, tolerance=1e-8)
    h, y = rows(data, n)
    penalty = n / D * 0.3
    gamma = np.asarray(solution.gamma).ravel()
    residual = np.linalg.norm(h.T @ (y - h @ gamma) - penalty * gamma) / np.linalg.norm(h.T @ y)
    assert residual < 1e-7
    if method == "cg":
        assert solution.residual == pytest.approx(residual, rel=1e-3, abs=5e-16)
        assert solution.steps >= 1


def test_minimum_norm_interpolates_and_is_the_smallest():
    solution, _, data = simulate.pretrain(Pretraining(DETERMINED, 7, 5), 0.0, seed=1)
    h, y = rows(data, 7)
    gamma = np.asarray(solution.gamma).ravel()
    np.testing.assert_allclose(h @ gamma, y, atol=1e-9)
    np.testing.assert_allclose(h.T @ np.linalg.lstsq(h.T, gamma, rcond=None)[0], gamma, atol=1e-9)  # in the rows' span


@pytest.mark.parametrize(("n", "expected"), [(7, "dual"), (FEATURES - 1, "dual"), (FEATURES, "normal"), (1100, "cg")])
def test_the_method_follows_from_the_sizes(n, expected):
    assert simulate.pretrain(Pretraining(DETERMINED, n, 5), 0.1, seed=0)[0].method == expected


def test_what_did_not_converge_is_refused_with_its_residual():
    with pytest.raises(
        ConvergenceError, match=r"did not converge: residual \S+ after 5 steps, tolerance 1e-08"
    ) as caught:
        simulate.pretrain(Pretraining(DETERMINED, 1100, 5), 1e-8, seed=0, method="cg", max_steps=5)
    assert float(re.search(r"residual (\S+) after", str(caught.value))[1]) > 1e-8
    assert caught.value.exit_code == 3
    with pytest.raises(ConvergenceError, match=r"residual \S+ after 0 steps, tolerance 1e-30"):
        simulate.pretrain(Pretraining(DETERMINED, 7, 5), 0.1, seed=0, tolerance=1e-30)


def test_nan_counts_as_not_converged(monkeypatch):
    from corricl.simulate import _solver

    nan = Solution(np.full((D, D + 1), np.nan), float("nan"), 0, float("nan"), "dual")
    monkeypatch.setattr(_solver, "_solve_dense", lambda *_: nan)
    with pytest.raises(ConvergenceError, match="residual nan"):
        simulate.pretrain(Pretraining(DETERMINED, 7, 5), 0.1, seed=0)


def test_bad_requests_are_refused():
    with pytest.raises(InputError, match="unknown solver 'lu'; allowed: auto, cg, dense"):
        simulate.pretrain(Pretraining(DETERMINED, 7, 5), 0.1, seed=0, method="lu")
    for ridge in (-1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="ridge must be finite and >= 0"):
            simulate.pretrain(Pretraining(DETERMINED, 7, 5), ridge, seed=0)
