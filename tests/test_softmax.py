"""Softmax attention: the reduction against full contexts, its optimum, its limits."""

import math
import subprocess
import sys

import numpy as np
import pytest
from helpers import symmetric_root

from corricl.errors import InputError
from corricl.prompt import Prompt
from corricl.theory._grid import golden_section, parabola
from corricl.theory._lattice import POINTS, radius_and_normals, uniforms
from corricl.theory._softmax import softmax
from corricl.theory._softmax_limit import softmax_equivalent_length, softmax_limit, softmax_spread

ZOO = [
    ("iid", "independent"),
    ("exp:4", "continues"),
    ("ar1:-0.7", "continues"),
    ("power:0.5", "independent"),
    ("blocks:3", "continues"),
    ("exp:20*cosine:0.3,inf", "strength:0.6"),
    ("equi:0.3", "gap:2"),
]


def contexts(prompt, n, seed):
    """Full contexts (n, length, d) and queries (n, d), by the joint kernel's root."""
    z = np.random.default_rng(seed).standard_normal((n, prompt.length + 1, prompt.d))
    tokens = np.einsum("ab,nbd->nad", symmetric_root(prompt.joint), z, optimize=True) / math.sqrt(prompt.d)
    return tokens[:, :-1], tokens[:, -1]


def attention(scores, beta):
    p = np.exp(beta * scores - (beta * scores).max(1, keepdims=True))
    return p / p.sum(1, keepdims=True)


def direct_risk(prompt, beta, value, n=12000, seed=0):
    """Mean and standard error over full contexts, tasks and label noise averaged by hand."""
    x, query = contexts(prompt, n, seed)
    p = attention(np.einsum("nad,nd->na", x, query), beta)
    mixed = np.einsum("na,nad->nd", p, x)
    power = (mixed**2).sum(1) + prompt.noise * (p**2).sum(1)
    loss = 1 + prompt.noise - 2 * value * (mixed * query).sum(1) + value**2 * power
    return loss.mean(), loss.std(ddof=1) / math.sqrt(n)


@pytest.mark.parametrize(("kernel", "query"), ZOO)
@pytest.mark.parametrize("b", [0.7, -1.5, 6.0])
def test_reduction_equals_full_contexts(kernel, query, b):
    prompt = Prompt(9, 20, kernel, query, 0.2)
    risk = softmax(prompt, beta=b * 3, value=0.8)
    mean, stderr = direct_risk(prompt, b * 3, 0.8)
    assert stderr < 0.02 * mean
    assert risk.details["numerical_error"] < 0.01 * mean
    assert abs(risk.icl - mean) < 4 * stderr + 3 * risk.details["numerical_error"]


TABLE = [
    (0, "independent", 0.425),
    (2, "independent", 0.628),
    (4, "independent", 0.740),
    (10, "independent", 0.850),
    (0, "continues", 0.425),
    (2, "continues", 0.526),
    (4, "continues", 0.394),
    (10, "continues", 0.213),
    (20, "continues", 0.139),
]


@pytest.mark.parametrize(("xi", "query", "expected"), TABLE)
def test_published_table(xi, query, expected):
    risk = softmax(Prompt(32, 128, f"exp:{xi}", query, 0.01), shifts=16)
    assert risk.icl == pytest.approx(expected, rel=0.01)
    assert risk.method == "softmax"
    assert risk.valid
    assert risk.warnings == ()
    assert risk.idg is None


@pytest.mark.parametrize(("kernel", "query"), [("exp:4", "continues"), ("ar1:-0.8", "continues"), ("iid", None)])
def test_optimum_is_what_direct_minimisation_on_simulated_labels_finds(kernel, query):
    """Least squares for V and a grid for beta on labelled prompts; scored on fresh ones."""
    prompt, n = Prompt(12, 36, kernel, query, 0.05), 40000
    losses = {}
    for half in (0, 1):  # 0 fits, 1 scores
        x, q = contexts(prompt, n, 10 + half)
        rng = np.random.default_rng(20 + half)
        w = rng.standard_normal((n, prompt.d))
        noise = math.sqrt(prompt.noise)
        y = np.einsum("nad,nd->na", x, w) + noise * rng.standard_normal((n, prompt.length))
        target = (q * w).sum(1) + noise * rng.standard_normal(n)
        scores = np.einsum("nad,nd->na", x, q)
        losses[half] = {}
        for b in (*-np.geomspace(8, 0.25, 16), *np.geomspace(0.25, 8, 16)):
            feature = (attention(scores, b * math.sqrt(prompt.d)) * y).sum(1)
            fitted = (feature @ target) / (feature @ feature)
            losses[half][b] = (fitted, feature, target)
        if half == 0:
            best = min(losses[0], key=lambda b: np.mean((losses[0][b][2] - losses[0][b][0] * losses[0][b][1]) ** 2))
            value = losses[0][best][0]
    squared = (losses[1][best][2] - value * losses[1][best][1]) ** 2
    mean, stderr = squared.mean(), squared.std() / math.sqrt(n)
    risk = softmax(prompt)
    assert abs(mean - risk.icl) < 0.015 * risk.icl + 2 * stderr
    if prompt.query.is_independent:  # both signs do equally well
        assert abs(best) == pytest.approx(risk.details["b"], rel=0.4)
    else:
        assert best == pytest.approx(risk.details["b"], rel=0.4)


def test_no_pair_beats_the_optimum():
    prompt = Prompt(16, 40, "exp:3", "continues", 0.1)
    best = softmax(prompt)
    for db, dv in ((1.15, 1), (0.87, 1), (1, 1.1), (1, 0.9)):
        other = softmax(prompt, beta=best.details["beta"] * db, value=best.details["value"] * dv)
        assert other.icl > best.icl
    at_beta = softmax(prompt, beta=best.details["beta"])
    assert at_beta.details["value"] == pytest.approx(best.details["value"], rel=1e-12)
    at_value = softmax(prompt, value=best.details["value"])
    assert at_value.icl == pytest.approx(best.icl, rel=5e-4)


def test_a_query_that_opposes_a_token_wants_negative_beta():
    prompt = Prompt(32, 64, "ar1:-0.8", "continues", 0.01)
    best = softmax(prompt)
    assert best.details["beta"] < 0
    assert best.details["value"] < 0
    positive = min(softmax(prompt, beta=b * math.sqrt(32)).icl for b in np.geomspace(0.1, 30, 25))
    assert best.icl < positive - 0.01


def test_error_statement_is_honest():
    for kernel, query in ZOO:
        prompt = Prompt(16, 48, kernel, query, 0.05)
        few = softmax(prompt)
        many = softmax(prompt, beta=few.details["beta"], value=few.details["value"], shifts=24)
        bound = 4 * math.hypot(few.details["numerical_error"], many.details["numerical_error"])
        assert abs(few.icl - many.icl) < bound, kernel


def test_two_copies_do_not_claim_a_lucky_small_error():
    for kernel, query in ZOO:
        prompt = Prompt(16, 48, kernel, query, 0.05)
        two = softmax(prompt, beta=4.0, value=1.0, shifts=2).details["numerical_error"]
        true = softmax(prompt, beta=4.0, value=1.0, shifts=24).details["numerical_error"] * math.sqrt(12)
        assert 0.6 * true < two < 4 * true, kernel


def test_large_beta_is_not_led_astray_by_lognormal_tails():
    """A control variate whose mean lies on draws that never happen once gave .16 for this .90."""
    prompt = Prompt(32, 96, "exp:16", "independent", 0.01)
    best = softmax(prompt)
    mean, stderr = direct_risk(prompt, best.details["beta"], best.details["value"], n=3000)
    assert abs(best.icl - mean) < 4 * stderr


def test_same_token_everywhere_is_an_average_of_labels():
    prompt = Prompt(8, 25, "exp:inf", "continues", 0.5)
    assert softmax(prompt).icl == pytest.approx(1.5 - 1 / (1 + 0.5 / 25), rel=1e-3)


def test_long_memory_tends_to_the_average_of_labels():
    limit = 1.1 - 1 / (1 + 0.1 / 20)
    gaps = [softmax(Prompt(8, 20, f"exp:{xi}", "continues", 0.1)).icl - limit for xi in (1e2, 1e3, 1e4)]
    assert gaps[0] > gaps[1] > gaps[2] > -1e-3
    assert gaps[2] < 0.02


def test_copied_query_without_noise_is_answered_exactly():
    """Another token resembles the query more than its copies do with probability 31 P(t_128 > sqrt(128)) = 8e-20."""
    risk = softmax(Prompt(128, 127, "blocks:4", "continues", 0.0))
    assert 0 <= risk.icl < 1e-6


def test_one_token():
    assert softmax(Prompt(8, 1, noise=0.3)).icl == pytest.approx(1.3, abs=1e-3)
    k = math.exp(-0.5)
    risk = softmax(Prompt(8, 1, "exp:2", "continues", 0.3))
    assert risk.icl == pytest.approx(1.3 - k * k / 1.3, rel=1e-3)


def test_overwhelming_noise():
    ratios = [softmax(Prompt(8, 32, "exp:2", "continues", rho)).icl / (1 + rho) for rho in (1.0, 1e2, 1e4)]
    assert ratios[0] < ratios[1] < ratios[2] <= 1
    assert ratios[2] > 1 - 1e-3


def test_mismatch_keeps_the_trained_pair():
    prompt, test = Prompt(16, 40, "exp:3", "continues", 0.1), Prompt(16, 24, "power:1", "independent", 0.4)
    trained, moved = softmax(prompt), softmax(prompt, test)
    assert moved.details["beta"] == trained.details["beta"]
    assert moved.details["value"] == trained.details["value"]
    assert moved.k2 == test.statistics.k2
    mean, stderr = direct_risk(test, trained.details["beta"], trained.details["value"])
    assert abs(moved.icl - mean) < 4 * stderr + 3 * moved.details["numerical_error"]
    assert moved.icl > softmax(test).icl


def test_limit_for_iid_tokens():
    risk = softmax_limit(Prompt(64, 256, noise=0.25))
    assert risk.details["b"] == pytest.approx(1, abs=1e-4)
    assert risk.details["spread"] == pytest.approx(math.e * 1.25, rel=1e-9)
    assert risk.icl == pytest.approx(1.25 - 1 / (1 + math.e * 1.25 / 4), rel=1e-9)


@pytest.mark.parametrize(("xi", "expected"), [(0, 0.417), (2, 0.638), (4, 0.767), (10, 0.891)])
def test_limit_table(xi, expected):
    assert softmax_limit(Prompt(32, 128, f"exp:{xi}", noise=0.01)).icl == pytest.approx(expected, abs=6e-4)


def test_spread_is_its_double_sum_and_its_minimum_is_found():
    prompt = Prompt(10, 30, "ar1:-0.6", noise=0.3)
    kernel = prompt.kernel.matrix(30)
    b = np.array([[0.5, 1.0], [1.7, -1.0]])
    literal = [[((kernel + 0.3 * np.eye(30)) * np.exp(x * x * kernel)).sum() / (30 * x * x) for x in row] for row in b]
    np.testing.assert_allclose(softmax_spread(kernel, b, 0.3), literal, rtol=1e-12)
    best = softmax_limit(prompt)
    assert best.details["spread"] <= softmax_spread(kernel, np.linspace(0.2, 4, 2000), 0.3).min() + 1e-9
    assert softmax_limit(prompt, b=1.7).icl > best.icl


def test_finite_size_closes_on_the_limit():
    gaps = []
    for d in (16, 64):
        prompt = Prompt(d, 4 * d, "exp:2", noise=0.1)
        gaps.append(abs(softmax(prompt).icl - softmax_limit(prompt).icl))
    assert gaps[1] < 0.5 * gaps[0]


def test_equivalent_length():
    assert softmax_equivalent_length(Prompt(16, 64, noise=0.1)).equivalent_length == pytest.approx(64, rel=0.02)
    risk = softmax_equivalent_length(Prompt(32, 128, "exp:4", "continues", 0.01))
    there = softmax(Prompt(32, round(risk.equivalent_length), noise=0.01))
    assert there.icl == pytest.approx(risk.icl, rel=0.01)
    assert softmax_equivalent_length(Prompt(8, 1, noise=0.3)).equivalent_length == 1
    copied = softmax_equivalent_length(Prompt(32, 15, "blocks:4", "continues", 0.0), shifts=2)
    assert copied.equivalent_length == math.inf
    assert [w.code for w in copied.warnings] == ["equivalent_length"]


def test_refusals():
    prompt = Prompt(8, 16)
    with pytest.raises(InputError, match="token dimension"):
        softmax(prompt, Prompt(9, 16))
    with pytest.raises(InputError, match="beta"):
        softmax(prompt, beta=math.nan)
    with pytest.raises(InputError, match="shifts"):
        softmax(prompt, shifts=1)
    with pytest.raises(InputError, match="independent query"):
        softmax_limit(Prompt(8, 16, "exp:2", "continues"))
    with pytest.raises(InputError, match="b must"):
        softmax_limit(prompt, b=0.0)


def test_searches_of_one_variable():
    assert golden_section(lambda x: abs(x - 0.7), -1, 3, 30) == pytest.approx(0.7, abs=1e-5)
    assert parabola(lambda x: 3 * (x - 1.9) ** 2 - 4, 0.0, 0.5) == pytest.approx(1.9, abs=1e-12)
    assert parabola(lambda x: 3 * (x + 1.9) ** 2 - 4, 0.0, 0.5) == pytest.approx(-1.9, abs=1e-12)
    assert parabola(lambda x: 1.0, 0.3, 0.1) == 0.3


def test_lattice_is_deterministic_uniform_and_extends():
    wide, narrow = uniforms(300, 2), uniforms(7, 3)
    np.testing.assert_array_equal(wide[:, :7], narrow[: 2 * POINTS])
    assert abs(wide.mean(0) - 0.5).max() < 1e-3
    assert np.unique(np.round(wide[:POINTS], 9), axis=1).shape[1] == 300  # no coordinate repeats
    radius, z = radius_and_normals(12, 270, 4)
    covariance = z.T @ z / len(z)
    assert abs(covariance - np.eye(270)).max() < 6 / math.sqrt(len(z))
    assert radius.mean() == pytest.approx(1, abs=1e-4)
    assert radius.var() == pytest.approx(2 / 12, rel=2e-3)


def test_import_is_light():
    code = (
        "import sys, corricl.theory._softmax_limit, corricl.theory._positional, corricl.theory._bayes;"
        "print([m for m in ('jax', 'scipy.stats', 'scipy.optimize', 'scipy.special') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
