"""The Bayes floor and in-context ridge regression: equivalents, corrections, exact special cases."""

import math

import numpy as np
import pytest
from helpers import symmetric_root

from corricl.errors import InputError
from corricl.prompt import Prompt
from corricl.theory._bayes import bayes, context_ridge

ZOO = [
    ("iid", "independent"),
    ("exp:4", "continues"),
    ("ar1:-0.7", "continues"),
    ("power:0.7", "independent"),
    ("blocks:3", "continues"),
    ("equi:0.4", "strength:0.5"),
]


def direct(prompt, penalty, n=500, seed=0):
    """Mean and standard error of the error of ridge regression over contexts; the rest averaged by hand."""
    d, noise = prompt.d, prompt.noise
    seen = np.linalg.pinv(prompt.kernel.matrix(prompt.length), rcond=1e-12) @ prompt.query_vector
    unexplained = max(0.0, 1 - seen @ prompt.query_vector)
    z = np.random.default_rng(seed).standard_normal((n, prompt.length, d))
    x = np.einsum("ab,nbd->nad", symmetric_root(prompt.kernel.matrix(prompt.length)), z, optimize=True) / math.sqrt(d)
    out = []
    for context in x:
        inverse = np.linalg.inv(context.T @ context + penalty * np.eye(d))
        form = noise * inverse + penalty * (penalty - noise) * inverse @ inverse
        part = seen @ context  # x_t = part + (rest of variance unexplained/d)
        out.append(noise + unexplained * np.trace(form) / d + part @ form @ part)
    return np.mean(out), np.std(out, ddof=1) / math.sqrt(n)


def literal_limit(prompt):
    """The published equivalent, by bisection in m and dense matrices."""
    kernel, k, noise, d = prompt.kernel.matrix(prompt.length), prompt.query_vector, prompt.noise, prompt.d
    eye = np.eye(prompt.length)
    low, high = 0.0, 1.0
    for _ in range(80):
        m = (low + high) / 2
        left = m * (1 + np.trace(kernel @ np.linalg.inv(noise * eye + m * kernel)) / d)
        low, high = (m, high) if left < 1 else (low, m)
    pinv = np.linalg.pinv(kernel, rcond=1e-11)
    return noise + (1 - k @ pinv @ k) * m + noise * m * k @ pinv @ np.linalg.inv(noise * eye + m * kernel) @ k


@pytest.mark.parametrize(("kernel", "query"), ZOO)
@pytest.mark.parametrize("noise", [0.01, 0.5])
def test_limit_is_the_published_equivalent(kernel, query, noise):
    prompt = Prompt(16, 31, kernel, query, noise)
    assert bayes(prompt).details["limit"] == pytest.approx(literal_limit(prompt), rel=1e-8)


@pytest.mark.parametrize(("kernel", "query"), ZOO)
@pytest.mark.parametrize(("alpha", "noise"), [(1.5, 0.01), (3, 0.01), (0.5, 0.1), (1, 0.1), (2, 1.0)])
def test_floor_against_contexts(kernel, query, alpha, noise):
    prompt = Prompt(24, round(24 * alpha), kernel, query, noise)
    risk = bayes(prompt)
    mean, stderr = direct(prompt, noise)
    assert stderr < 0.02 * mean
    assert abs(risk.icl - mean) < 4 * stderr + 0.01 * mean
    assert risk.method == "bayes"
    assert risk.idg is None


@pytest.mark.parametrize(("kernel", "query"), ZOO)
@pytest.mark.parametrize(("noise", "penalty"), [(0.1, 0.01), (0.1, 1.0), (0.0, 0.3), (1.0, 0.1)])
def test_ridge_against_contexts(kernel, query, noise, penalty):
    prompt = Prompt(24, 54, kernel, query, noise)
    risk = context_ridge(prompt, penalty)
    mean, stderr = direct(prompt, penalty)
    assert stderr < 0.02 * mean
    assert abs(risk.icl - mean) < 4 * stderr + 0.012 * mean


def test_the_correction_is_what_the_limit_lacks():
    """Its error falls as 1/d without the correction and faster with it."""
    errors = {"limit": [], "icl": []}
    for d in (8, 32):
        prompt = Prompt(d, round(1.5 * d), "exp:1", "continues", 0.05)
        mean, stderr = direct(prompt, 0.05, n=6000 if d == 8 else 3000)
        risk = bayes(prompt)
        assert stderr < 0.005 * mean
        errors["limit"].append(risk.details["limit"] / mean - 1)
        errors["icl"].append(risk.icl / mean - 1)
    assert errors["limit"][0] < -0.04
    assert errors["limit"][0] / errors["limit"][1] == pytest.approx(4, rel=0.35)
    assert abs(errors["icl"][0]) < 0.02
    assert abs(errors["icl"][1]) < 0.01


@pytest.mark.parametrize(("kernel", "query"), ZOO)
def test_penalty_equal_to_the_noise_is_best_and_is_the_floor(kernel, query):
    prompt = Prompt(24, 60, kernel, query, 0.2)
    floor = bayes(prompt).icl
    assert context_ridge(prompt, 0.2).icl == floor
    assert context_ridge(prompt, 0.2 * (1 + 1e-9)).icl == pytest.approx(floor, rel=1e-9)
    errors = [context_ridge(prompt, p).icl for p in (0.02, 0.1, 0.18, 0.22, 0.4, 2.0)]
    assert errors[0] > errors[1] > errors[2] > floor < errors[3] < errors[4] < errors[5]


def test_repeated_tokens_are_one_token_with_less_noise():
    """Exact: B copies with label noise rho carry what one token with noise rho/B does."""
    blocks = bayes(Prompt(20, 45, "blocks:3", noise=0.3)).icl - 0.3
    single = bayes(Prompt(20, 15, noise=0.1)).icl - 0.1
    assert blocks == pytest.approx(single, rel=1e-10)


def test_a_copied_query_obeys_the_sum_rule():
    """Exact: averaged over the tokens it may copy, penalty x_a.G x_a is fixed by tr G."""
    d, length, noise = 10, 16, 0.05
    fresh = bayes(Prompt(d, length, noise=noise))
    copied = bayes(Prompt(d, length, query=np.eye(length)[4], noise=noise))
    for key in ("limit", "correction"):
        floor, other = ((r.details[key] - (noise if key == "limit" else 0)) for r in (copied, fresh))
        assert floor == pytest.approx(noise * d / length * ((key == "limit") - other), rel=1e-9), key


def test_noiseless_floor_is_a_projection():
    assert bayes(Prompt(20, 30, noise=0.0)).icl == 0
    assert bayes(Prompt(20, 12, noise=0.0)).icl == pytest.approx(1 - 12 / 20, rel=1e-12)
    assert bayes(Prompt(20, 24, "blocks:2", noise=0.0)).icl == pytest.approx(1 - 12 / 20, rel=1e-12)
    prompt = Prompt(20, 12, "exp:2", "continues", 0.0)
    unexplained = 1 - math.exp(-1)  # first-order autoregression: the last token says all
    assert bayes(prompt).icl == pytest.approx(unexplained * (1 - 12 / 20), rel=1e-9)
    assert bayes(Prompt(20, 12, "exp:2", "continues", 1e-9)).icl == pytest.approx(bayes(prompt).icl, rel=1e-6)


@pytest.mark.parametrize(("d", "length"), [(40, 100), (40, 16), (40, 24)])
def test_minimum_norm_equals_the_inverse_wishart_mean(d, length):
    """Fresh independent query: noise tr E(X'X)^+ / d is known exactly at finite size."""
    risk = context_ridge(Prompt(d, length, noise=0.5), 0.0)
    low, high = sorted((d, length))
    exact = 0.5 + max(0.0, 1 - length / d) + 0.5 * low / (high - low - 1)
    assert risk.icl == pytest.approx(exact, rel=2e-3)
    assert abs(risk.details["limit"] / exact - 1) > abs(risk.icl / exact - 1)


def test_interpolation_peak_is_labelled():
    risk = context_ridge(Prompt(20, 40, "blocks:2", noise=0.1), 0.0)
    assert risk.icl == math.inf
    assert not risk.valid
    assert [w.code for w in risk.warnings] == ["interpolation_peak"]


def test_soft_spot_is_labelled():
    risk = bayes(Prompt(24, 24, noise=0.001))
    assert [w.code for w in risk.warnings] == ["rank_near_d"]
    mild = bayes(Prompt(24, 24, noise=0.01))
    mean, stderr = direct(Prompt(24, 24, noise=0.01), 0.01, n=2000)
    assert abs(mild.icl - mean) < 4 * stderr + 0.03 * mean
    assert mild.details["limit"] < 0.95 * mean  # the bare equivalent is far too low here
    assert not bayes(Prompt(8, 8, noise=0.001)).valid
    assert bayes(Prompt(24, 48, noise=0.01)).warnings == ()


def test_published_table():
    rows = {0: (0.0134, 0.0134), 2: (0.0144, 0.0138), 4: (0.0164, 0.0143), 10: (0.0234, 0.0152)}
    for xi, (independent, continues) in rows.items():
        assert bayes(Prompt(32, 128, f"exp:{xi}", "independent", 0.01)).icl == pytest.approx(independent, rel=0.01)
        assert bayes(Prompt(32, 128, f"exp:{xi}", "continues", 0.01)).icl == pytest.approx(continues, rel=0.01)


def test_equal_k2_and_different_spectra_differ():
    """Linear attention cannot tell these kernels apart; ridge regression can."""
    low = Prompt(24, 48, "equi:0.3", noise=0.1)
    k2 = low.statistics.k2
    # a block of size s has k2 = s
    high = Prompt(24, 48, f"{math.sqrt((k2 - 1) / 7):.16g}*blocks:8+{1 - math.sqrt((k2 - 1) / 7):.16g}*iid", noise=0.1)
    assert high.statistics.k2 == pytest.approx(k2, rel=1e-12)
    assert abs(bayes(high).icl / bayes(low).icl - 1) > 0.1


def test_limits():
    for rho in (1e2, 1e4, 1e6):
        assert bayes(Prompt(16, 32, "exp:2", "continues", rho)).icl / (1 + rho) == pytest.approx(1, abs=2 / rho)
    k = math.exp(-0.5)
    one = Prompt(24, 1, "exp:2", "continues", 0.3)
    mean, stderr = direct(one, 0.3, n=4000)
    assert abs(bayes(one).icl - mean) < 4 * stderr + 0.005
    assert bayes(one).icl < 1.3 - 0.5 * k * k
    same = bayes(Prompt(16, 32, "exp:inf", "continues", 0.2)).icl  # 32 noisy labels of the target itself
    assert same == pytest.approx(1.2 - 1 / (1 + 0.2 / 32), abs=2e-3)


def test_refusals():
    with pytest.raises(InputError, match="penalty"):
        context_ridge(Prompt(8, 16), -0.1)
    assert context_ridge(Prompt(8, 16), 0.1).details["penalty"] == 0.1
