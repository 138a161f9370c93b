"""Linear attention with and without position weights: exact moments, optima, families."""

import itertools
import math

import numpy as np
import pytest
from helpers import symmetric_root

from corricl.prompt import Prompt
from corricl.theory._grid import minimise_on_grid
from corricl.theory._positional import linear_optimum, linear_population, position_moments, positional

ZOO = [
    ("iid", "independent"),
    ("exp:3", "continues"),
    ("ar1:-0.7", "continues"),
    ("power:0.5", "independent"),
    ("blocks:3", "continues"),
    ("0.6*exp:5+0.4*iid", "gap:2"),
]


def random_prompt(d, noise, seed):
    """Two tokens and a query with an arbitrary joint correlation matrix."""
    root = np.random.default_rng(seed).standard_normal((3, 3))
    joint = root @ root.T
    joint /= np.sqrt(np.outer(np.diag(joint), np.diag(joint)))
    np.fill_diagonal(joint, 1.0)
    from corricl.kernels import Tabulated

    return joint, Prompt(d, 2, Tabulated(joint), noise=noise)


def quadrature(joint, d, nodes=5):
    """Tokens (points, 3, d), tasks (points, d) and weights: exact to degree 9 in every normal."""
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    y, v = np.polynomial.hermite_e.hermegauss(2)
    factor = np.linalg.cholesky(joint)
    axes = [x] * (3 * d) + [y] * d
    weights = [w / w.sum()] * (3 * d) + [v / v.sum()] * d
    z = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)
    mass = np.prod(np.stack([g.ravel() for g in np.meshgrid(*weights, indexing="ij")]), axis=0)
    tokens = np.einsum("ab,nbd->nad", factor, z[:, : 3 * d].reshape(-1, 3, d)) / math.sqrt(d)
    return tokens, z[:, 3 * d :], mass


@pytest.mark.parametrize("d", [1, 2])
def test_moments_by_exact_quadrature(d):
    joint, prompt = random_prompt(d, 0.3, seed=d)
    tokens, task, mass = quadrature(joint, d)
    clean = np.einsum("nad,nd->na", tokens, task)
    scores = np.einsum("nad,nd->na", tokens[:, :2], tokens[:, 2])
    feature = clean[:, :2] * scores
    power, signal = position_moments(prompt)
    expected = np.einsum("n,na,nb->ab", mass, feature, feature) + 0.3 * np.diag(mass @ scores**2)
    np.testing.assert_allclose(power, expected, rtol=1e-11)
    np.testing.assert_allclose(signal, (mass * clean[:, 2]) @ feature, rtol=1e-11)


@pytest.mark.parametrize("d", [1, 2])
def test_score_bias_by_exact_quadrature(d):
    """Three regressors: A x_a.x_t + B - m t_a. Label noise adds its variance to the label moments."""
    joint, prompt = random_prompt(d, 0.3, seed=10 + d)
    tokens, task, mass = quadrature(joint, d)
    clean = np.einsum("nad,nd->na", tokens, task)
    scores = np.einsum("nad,nd->na", tokens[:, :2], tokens[:, 2])
    gates = np.stack([scores, np.ones_like(scores), np.array([2.0, 1.0]) + 0 * scores])  # (3, n, token)
    regressors = np.einsum("fna,na->fn", gates, clean[:, :2])
    moments = np.einsum("n,fn,gn->fg", mass, regressors, regressors)
    moments += 0.3 * np.einsum("n,fna,gna->fg", mass, gates, gates)
    target = regressors @ (mass * clean[:, 2])
    solution = np.linalg.solve(moments, target)
    found = positional(prompt).details["families"]["bias"]
    assert found["risk"] == pytest.approx(1.3 - target @ solution, rel=1e-10)
    np.testing.assert_allclose([found["scale"], found["offset"], -found["slope"]], solution, rtol=1e-7)


@pytest.mark.parametrize(("kernel", "query"), ZOO)
def test_risk_against_simulated_labels(kernel, query):
    prompt, n = Prompt(10, 18, kernel, query, 0.2), 30000
    rng = np.random.default_rng(5)
    z = rng.standard_normal((n, 19, 10))
    x = np.einsum("ab,nbd->nad", symmetric_root(prompt.joint), z, optimize=True) / math.sqrt(10)
    labels = np.einsum("nad,nd->na", x, rng.standard_normal((n, 10))) + math.sqrt(0.2) * rng.standard_normal((n, 19))
    scores = np.einsum("nad,nd->na", x[:, :-1], x[:, -1])
    plain, best = linear_population(prompt), positional(prompt)
    for risk, weights in (
        (plain, np.full(18, plain.details["scale"] * 10 / 18)),  # h carries d/length
        (best, best.details["weights"]),
    ):
        loss = (labels[:, -1] - (labels[:, :-1] * scores) @ weights) ** 2
        stderr = loss.std(ddof=1) / math.sqrt(n)
        assert stderr < 0.02 * risk.icl
        assert abs(loss.mean() - risk.icl) < 4 * stderr


XI = (2, 4, 7, 10, 20)
PLAIN = (0.3295, 0.4123, 0.4634, 0.4854, 0.5079)
WEIGHTED = {
    "continues": (0.3117, 0.3146, 0.2621, 0.2214, 0.1563),
    "independent": (0.3671, 0.5175, 0.6447, 0.7175, 0.8281),
}


def test_published_table():
    for query, row in WEIGHTED.items():
        for xi, expected in zip(XI, row, strict=True):
            assert positional(Prompt(32, 128, f"exp:{xi}", query, 0.01)).icl == pytest.approx(expected, abs=6e-5)
    for xi, expected in zip(XI, PLAIN, strict=True):
        assert linear_population(Prompt(32, 128, f"exp:{xi}", "continues", 0.01)).icl == pytest.approx(
            expected, abs=6e-5
        )
    for xi, expected in ((0, 0.2165), (2, 0.3676), (4, 0.5197), (10, 0.7234), (20, 0.8364)):
        assert linear_population(Prompt(32, 128, f"exp:{xi}", noise=0.01)).icl == pytest.approx(expected, abs=6e-5)


@pytest.mark.parametrize(("kernel", "query"), ZOO)
def test_plain_attention_is_the_constant_weight(kernel, query):
    """Two routes: the closed form in (k0, k1, k2) and the sum over all pairs of positions."""
    prompt = Prompt(7, 21, kernel, query, 0.3)
    constant = positional(prompt).details["families"]["constant"]["risk"]
    assert linear_population(prompt).icl == pytest.approx(constant, rel=1e-10)


def test_no_other_matrix_does_better():
    """The exact test risk of Gamma = c I + small random matrix, a literal transcription, is never below the optimum."""
    d, length, noise = 6, 15, 0.2
    prompt = Prompt(d, length, "exp:2", "continues", noise)
    k0, k1, k2 = prompt.statistics
    best = linear_population(prompt)

    def risk(gamma):
        f, g, t = (gamma**2).sum(), np.trace(gamma), np.trace(gamma @ gamma)
        cross = g / d * (1 + (d + 1) * k0 / length)
        square = f * (length**2 + length * (d + 1) * k2 + 2 * k1) + (g * g + t) * ((d + 2) * k1 + 2 * length * k0)
        square = square / (d * length**2) + noise / length**2 * (length * f + k0 * (g * g + t))
        return 1 + noise - 2 * cross + square

    scale = best.details["scale"]
    assert risk(scale * np.eye(d)) == pytest.approx(best.icl, rel=1e-12)
    rng = np.random.default_rng(0)
    for size in (1e-3, 0.1, 1.0):
        assert risk(scale * np.eye(d) + size * rng.standard_normal((d, d))) > best.icl
    assert risk(1.001 * scale * np.eye(d)) > best.icl


def test_linear_optimum_broadcasts():
    grid, scale = linear_optimum(np.array([[8.0], [16.0]]), np.array([4.0, 8.0, 16.0]), 0.1, 0.2, 0.3, 1.5)
    assert grid.shape == scale.shape == (2, 3)
    assert grid[1, 2] == linear_optimum(16, 16, 0.1, 0.2, 0.3, 1.5)[0]


@pytest.mark.parametrize(("kernel", "query"), ZOO)
def test_families_are_the_best_of_their_kind(kernel, query):
    """Brute force over the scale, with plain least squares inside."""
    prompt = Prompt(12, 30, kernel, query, 0.05)
    power, signal = position_moments(prompt)
    risk = positional(prompt)
    families = risk.details["families"]
    lag = np.arange(30, 0, -1.0)

    def fit(*shapes):
        basis = np.stack(shapes)
        return 1.05 - (basis @ signal) @ np.linalg.lstsq(basis @ power @ basis.T, basis @ signal, rcond=1e-12)[0]

    scales = np.geomspace(0.06, 2e4, 1500)
    brute = {
        "decay": min(fit(np.exp(-(lag - 1) / s)) for s in scales),
        "decay_constant": min(fit(np.exp(-(lag - 1) / s), np.ones(30)) for s in scales[scales < 1e3]),
        "ramp": min(fit(np.maximum(0, 1 - (lag - 1) / s)) for s in scales),
        "last": fit((lag == 1).astype(float)),
        "constant": fit(np.ones(30)),
    }
    for name, expected in brute.items():
        assert families[name]["risk"] == pytest.approx(expected, rel=2e-4), name
        assert families[name]["risk"] <= expected + 1e-6, name
        assert families[name]["risk"] >= risk.icl - 1e-9, name
    for name, shape in (
        ("decay", lambda s: np.exp(-(lag - 1) / s)),
        ("ramp", lambda s: np.maximum(0, 1 - (lag - 1) / s)),
    ):
        assert fit(shape(families[name]["scale"])) == pytest.approx(families[name]["risk"], rel=1e-9), name
    rate = families["decay_constant"]["scale"]
    if math.isfinite(rate):
        both = fit(np.exp(-(lag - 1) / rate), np.ones(30))
        assert both == pytest.approx(families["decay_constant"]["risk"], rel=1e-7)
    assert families["decay"]["risk"] <= min(families["constant"]["risk"], families["last"]["risk"]) + 1e-9
    assert families["decay_constant"]["risk"] <= families["decay"]["risk"] + 1e-9


def test_shares():
    families = positional(Prompt(32, 128, "exp:10", "continues", 0.01)).details["families"]
    assert families["constant"]["share"] == 0
    assert 0.97 < families["decay_constant"]["share"] < 1
    assert families["decay_constant"]["share"] > families["decay"]["share"] > families["last"]["share"] > 0.9
    assert families["bias"]["share"] < 0.05
    assert positional(Prompt(32, 64)).details["families"]["decay"]["share"] is None  # iid: nothing to gain


def test_weights_are_symmetric_in_time_for_an_independent_query():
    weights = positional(Prompt(16, 40, "exp:5", noise=0.1)).details["weights"]
    np.testing.assert_allclose(weights, weights[::-1], rtol=1e-9)
    assert weights[0] > 1.5 * weights[20]  # the ends know what no neighbour repeats


def test_limits():
    k = math.exp(-0.5)
    signal = 1 / 8 + k * k * 9 / 8
    power = (72 + k * k * (512 + 192 + 32) + 8 + 2 * k * k * 72) / 512 + 0.3 * signal
    one = positional(Prompt(8, 1, "exp:2", "continues", 0.3))
    assert one.icl == pytest.approx(1.3 - signal**2 / power, rel=1e-12)
    assert one.icl == pytest.approx(linear_population(Prompt(8, 1, "exp:2", "continues", 0.3)).icl, rel=1e-12)
    for method in (positional, linear_population):
        ratios = [method(Prompt(8, 32, "exp:2", "continues", rho)).icl / (1 + rho) for rho in (1.0, 1e2, 1e4)]
        assert ratios[0] < ratios[1] < ratios[2] <= 1
        assert ratios[2] > 0.999
        # every token a copy of the query: h = s (sum of labels)/length, with E s^2 = (d+2)/d and E s^3 = (d+2)(d+4)/d^2
        copies = method(Prompt(8, 32, "exp:inf", "continues", 0.0)).icl
        assert copies == pytest.approx(1 - (10 / 8) ** 2 / (10 * 12 / 64), rel=1e-9)


def test_singular_moments_are_solved():
    risk = positional(Prompt(16, 12, "exp:inf", "continues", 0.0))  # every weight vector of equal sum does the same
    assert np.isfinite(risk.details["weights"]).all()
    np.testing.assert_allclose(risk.details["weights"], risk.details["weights"][0], rtol=1e-6)


def test_minimise_on_grid():
    centres = [0.3, 2.2, -4.9]
    for centre, low in itertools.product(centres, (-5.0, -7.0)):
        at, value = minimise_on_grid(lambda x, c=centre: (x - c) ** 2 + 1, np.linspace(low, 5, 23))
        assert at == pytest.approx(centre, abs=1e-4)
        assert value == pytest.approx(1, abs=1e-8)
    assert minimise_on_grid(lambda x: x, np.linspace(-1, 1, 5))[0] == -1
