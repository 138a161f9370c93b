"""The weak-correlation limit: known numbers, a second route with the tasks' spectrum by quadrature, corollaries."""

import math

import numpy as np
import pytest
from helpers import name, published, zoo
from hypothesis import given
from hypothesis import strategies as st

from corricl import theory
from corricl.errors import InputError
from corricl.kernels import parse
from corricl.prompt import Pretraining, Prompt
from corricl.theory import linear

SETTINGS = [
    # alpha, tau, kappa, noise, ridge, k0, k1, k2
    (4, 4, 10, 0.01, 0.0, 0, 0, 1),
    (4, 4, 10, 0.01, 1e-8, 0.6, 1.1, 2.1),
    (1, 0.2, 0.5, 0.01, 0.0, 0, 0, 1),
    (1, 0.85, 0.5, 0.3, 1e-3, 0.4, 0.5, 1.4),
    (2, 1.5, 1.0, 0.1, 0.5, 1.5, 4.0, 3.0),
    (10, 0.6, 0.2, 0.0, 0.0, 0.2, 0.25, 1.2),
    (0.5, 3, math.inf, 0.2, 0.05, 0.3, 0.5, 1.6),
    (2, 1.0, 3.0, 0.1, 1e-2, 2.0, 9.0, 5.0),
]


def spectrum(kappa, nodes=4000):
    """Points and weights of the tasks' covariance spectrum (Marchenko-Pastur), by Chebyshev quadrature."""
    if math.isinf(kappa):
        return np.ones(1), np.ones(1)
    c = 1 / kappa
    low, high = (1 - math.sqrt(c)) ** 2, (1 + math.sqrt(c)) ** 2
    angle = (np.arange(nodes) + 0.5) * np.pi / nodes
    r = (low + high) / 2 + (high - low) / 2 * np.cos(angle)
    weights = ((high - low) / 2 * np.sin(angle)) ** 2 / (2 * np.pi * c * r) * np.pi / nodes
    return np.append(r, 0.0), np.append(weights, max(0.0, 1 - kappa))


def literal(setting, test=None):
    """(effective ridge, idg, icl) of one setting, every trace a sum over the spectrum and the mean Gamma explicit."""
    alpha, tau, kappa, noise, ridge, k0, k1, k2 = setting
    q, phi1, phi2 = (k2 + noise) / alpha, (k1 + noise * k0) / alpha**2, k0 / alpha
    r, weight = spectrum(kappa)

    def mean(values):
        return float(weight @ np.broadcast_to(values, r.shape))

    def excess(e):
        return e * (1 - (1 - e * mean(1 / (r + q + e))) / tau) - ridge

    low, high = 1e-300, 1e6
    if ridge == 0 and tau >= 1:
        e = 0.0
    else:
        for _ in range(2000):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if excess(middle) > 0 else (middle, high)
        e = high
    sigma = q + e
    inverse = 1 / (r + sigma)
    # Gamma = ((1 - phi2 tI) R + (phi2 - phi1 tI - phi2 tR)) (R + sigma)^-1, affine in (tI, tR): find the fixed point
    base, by_identity, by_tasks = (r + phi2) * inverse, -(phi2 * r + phi1) * inverse, -phi2 * inverse
    matrix = np.eye(2) - np.array([[mean(by_identity), mean(by_tasks)], [mean(r * by_identity), mean(r * by_tasks)]])
    t_identity, t_tasks = np.linalg.solve(matrix, [mean(base), mean(r * base)])
    gamma = base + t_identity * by_identity + t_tasks * by_tasks
    square, square_tasks = mean(gamma**2), mean(gamma**2 * r)
    fixed = 1 + noise - 2 * (t_tasks + phi2 * t_identity) + square_tasks + q * square
    fixed += phi1 * t_identity**2 + 2 * phi2 * t_identity * t_tasks
    idg = fixed / (1 - mean((1 - e * inverse) ** 2) / tau)
    if test is not None:
        alpha, noise, k0, k1, k2 = test
        q, phi1, phi2 = (k2 + noise) / alpha, (k1 + noise * k0) / alpha**2, k0 / alpha
    icl = 1 + noise - 2 * (1 + phi2) * t_identity + (1 + q) * square + (phi1 + 2 * phi2) * t_identity**2
    return e, idg, icl + idg * (1 + q) * mean(inverse - e * inverse**2) / tau


@pytest.mark.parametrize("setting", SETTINGS)
def test_errors_equal_the_literal_formula_over_the_spectrum(setting):
    e, idg, icl = literal(setting)
    alpha, tau, kappa, noise, ridge, *k = setting
    found = linear.state(linear.couplings(alpha, noise, *k), tau, kappa, ridge)
    assert float(found.effective_ridge) == pytest.approx(e, rel=1e-6, abs=1e-12)
    assert float(linear.idg(*setting)) == pytest.approx(idg, rel=1e-6)
    assert float(linear.icl(*setting)) == pytest.approx(icl, rel=1e-6)


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_different_test_prompt_enters_the_fresh_task_error_alone(setting):
    test = (3.0, 0.25, 0.7, 1.3, 2.2)
    _e, idg, icl = literal(setting, test)
    alpha, tau, kappa, noise, ridge, *k = setting
    found = linear.state(linear.couplings(alpha, noise, *k), tau, kappa, ridge)
    assert float(found.idg) == pytest.approx(idg, rel=1e-6)
    assert float(linear.fresh_task_error(found, linear.couplings(*test))) == pytest.approx(icl, rel=1e-6)


@pytest.mark.parametrize("xi_query_icl", [
    (2, "independent", 0.492124), (2, "continues", 0.440231),
    (6, "independent", 0.822380), (6, "continues", 0.599400),
    (10, "independent", 0.967756), (10, "continues", 0.641824),
])  # fmt: skip
def test_known_values(xi_query_icl):
    xi, query, icl = xi_query_icl
    prompt = Prompt(32, 128, f"exp:{xi}", query, 0.01)
    assert theory.risk(Pretraining(prompt, 4096, 320), method="weak").icl == pytest.approx(icl, abs=2e-6)


def decimals(text):
    return len(text.partition(".")[2])


def agrees(value, text):
    """Equal to the digits shown, one unit of the last digit allowed."""
    return abs(float(value) - float(text)) <= 1.01 * 10.0 ** -decimals(text)


def test_published_theory_of_iid_prompts():
    rows = published("iid_reduced_d100.csv")
    assert len(rows) == 9
    for row in rows:
        setting = (float(row["alpha"]), float(row["tau"]), float(row["kappa"]), float(row["noise"]), 0.0)
        assert agrees(linear.icl(*setting), row["icl_ridgeless_theory"]), row
        assert agrees(linear.idg(*setting), row["idg_ridgeless_theory"]), row


def test_published_theory_of_task_diversity():
    rows = published("iid_task_diversity_d64.csv")
    assert len(rows) == 6
    for row in rows:
        setting = (
            float(row["alpha"]),
            float(row["tau"]),
            float(row["kappa"]),
            float(row["noise"]),
            float(row["ridge"]),
        )
        found = linear.icl(*setting) - linear.idg(*setting)
        assert agrees(found, row["icl_minus_idg_theory"]), (row, found)


# ---- the tasks' resolvent and the effective ridge


@pytest.mark.parametrize("kappa", [0.05, 0.5, 1.0, 2.0, 40.0, math.inf])
@pytest.mark.parametrize("sigma", [1e-3, 0.2, 1.0, 30.0])
def test_resolvent_is_the_spectrums(sigma, kappa):
    r, weight = spectrum(kappa, 20000)
    m, derivative = linear.task_resolvent(sigma, 1 / kappa)
    assert weight.sum() == pytest.approx(1, abs=1e-3 if kappa == 1 else 1e-9)
    tolerance = 1e-4 if kappa == 1 else 1e-8  # at kappa = 1 the density has a pole at 0
    assert float(m) == pytest.approx(weight @ (1 / (r + sigma)), rel=tolerance)
    assert float(derivative) == pytest.approx(-weight @ (1 / (r + sigma) ** 2), rel=20 * tolerance)


@pytest.mark.parametrize("kappa", [0.4, 1.0, 3.0])
def test_resolvent_is_that_of_a_large_random_matrix(kappa):
    d = 600
    tasks = np.random.default_rng(0).standard_normal((int(kappa * d), d))
    values = np.linalg.eigvalsh(tasks.T @ tasks / len(tasks))
    for sigma in (0.05, 0.5, 2.0):
        m, derivative = linear.task_resolvent(sigma, 1 / kappa)
        assert float(m) == pytest.approx(np.mean(1 / (values + sigma)), rel=8 / d)
        assert float(derivative) == pytest.approx(-np.mean(1 / (values + sigma) ** 2), rel=16 / d)


def test_resolvent_keeps_its_digits_with_few_tasks_and_small_sigma():
    from fractions import Fraction

    for sigma, kappa in ((1e-9, 0.2), (1e-14, 0.5), (1e-12, 0.01)):
        m = float(linear.task_resolvent(sigma, 1 / kappa)[0])
        # sigma/kappa M^2 + (sigma + 1 - 1/kappa) M - 1 = 0 in exact arithmetic
        s, c, exact = Fraction(sigma), 1 / Fraction(kappa), Fraction(m)
        value, slope = s * c * exact**2 + (s + 1 - c) * exact - 1, 2 * s * c * exact + s + 1 - c
        assert abs(value / slope / exact) < 1e-13


RATIOS = st.floats(-2, 2).map(lambda x: 10.0**x)


@given(RATIOS, RATIOS, st.one_of(RATIOS, st.just(math.inf)), st.floats(-14, 3).map(lambda x: 10.0**x))
def test_effective_ridge_is_a_root_and_its_function_increases(q, tau, kappa, ridge):
    e = linear.effective_ridge(ridge, q, tau, 1 / kappa)
    r, weight = spectrum(kappa, 3000)

    def back(e):
        return e * (1 - weight @ ((r + q) / (r + q + e)) / tau)

    assert e >= 0
    assert back(e * (1 - 1e-4)) < ridge * (1 + 1e-9) + 1e-15
    assert back(e * (1 + 1e-4)) > ridge * (1 - 1e-9) - 1e-15
    assert float(linear.ridge_of_effective(e, q, tau, 1 / kappa)) == pytest.approx(ridge, rel=1e-6, abs=1e-13 * (1 + e))
    more = linear.effective_ridge(1.1 * ridge, q, tau, 1 / kappa)
    assert more >= e
    assert more > e or ridge < 1e-10 * e


@pytest.mark.parametrize(("tau", "kappa"), [(0.3, 0.5), (0.99, 2), (1.0, 2), (1.01, 0.5), (2, 0.5), (4, math.inf)])
def test_small_ridges_are_monotone_and_continuous_to_none(tau, kappa):
    ridges = np.geomspace(1e-2, 1e-12, 101)
    e = linear.effective_ridge(ridges, 0.4, tau, 1 / kappa)
    end = float(linear.effective_ridge(0.0, 0.4, tau, 1 / kappa))
    assert np.all(np.diff(e) < 0)
    assert np.all(e > end)
    assert e[-1] - end < (3e-6 if tau == 1 else 1e-9)
    if tau != 1:
        icl = linear.icl(3, tau, kappa, 0.2, ridges)
        assert icl[-1] == pytest.approx(float(linear.icl(3, tau, kappa, 0.2, 0.0)), rel=1e-6)
        assert np.abs(np.diff(icl)).max() < 0.05 * icl.max() * (60 if abs(tau - 1) < 0.02 else 1)
    assert end == 0 if tau >= 1 else end > 0


def test_the_threshold_is_a_labelled_infinity_and_nothing_else():
    for kappa in (0.5, 1.0, 4.0, math.inf):
        assert linear.icl(2, 1.0, kappa, 0.1, 0.0) == np.inf
        assert linear.idg(2, 1.0, kappa, 0.1, 0.0) == np.inf
        near = [float(linear.icl(2, tau, kappa, 0.1, 0.0)) for tau in (1 - 1e-6, 1 + 1e-6)]
        assert np.isfinite(near).all()
        assert min(near) > 1e3
    found = theory.weak(Pretraining(Prompt(10, 20, noise=0.1), 100, 30))
    assert (found.icl, found.idg) == (math.inf, math.inf)
    assert [c.code for c in found.warnings if c.code == "threshold"] == ["threshold"]
    assert found.query_gain is None or math.isfinite(found.query_gain)
    assert math.isfinite(theory.weak(Pretraining(Prompt(10, 20, noise=0.1), 100, 30), 1e-6).icl)


@given(
    RATIOS, RATIOS, st.one_of(RATIOS, st.just(math.inf)), st.floats(0, 2), st.one_of(st.just(0.0), RATIOS),
    st.sampled_from(["iid", "exp:2", "ar1:-0.8", "power:1", "equi:0.1", "blocks:3"]),
    st.sampled_from(["independent", "continues"]),
)  # fmt: skip
def test_errors_are_numbers_above_the_noise_everywhere(alpha, tau, kappa, noise, ridge, kernel, query):
    k = Prompt(8, 24, kernel, query).statistics
    icl, idg = (float(f(alpha, tau, kappa, noise, ridge, *k)) for f in (linear.icl, linear.idg))
    assert icl >= noise
    assert idg >= 0
    assert not math.isnan(icl + idg)
    # no pretraining beats the best Gamma = c I
    assert icl >= float(linear.population(linear.couplings(alpha, noise, *k))[1]) * (1 - 1e-9)


# ---- corollaries


@given(st.floats(0.2, 20), st.floats(0.05, 20), st.floats(0, 1), st.floats(-8, 2), st.integers(0, 4))
def test_unbounded_tasks_have_explicit_errors(alpha, tau, noise, log_ridge, which):
    k0, k1, k2 = [(0, 0, 1), (0.3, 0.4, 1.3), (2, 7, 4), (1, 1, 1), (0.5, 2, 6)][which]
    ridge = 10.0**log_ridge
    q, phi1, phi2 = (k2 + noise) / alpha, (k1 + noise * k0) / alpha**2, k0 / alpha
    a, b, s = 1 + phi2, 1 + q, 2 * phi2 + phi1
    # ridge = e (1 - b/(tau (b+e)))  <=>  e^2 + e (b - b/tau - ridge) - ridge b = 0
    e = max(np.roots([1, b - b / tau - ridge, -ridge * b]).real)
    gamma = b * b / (tau * (b + e) ** 2)
    best, least = a / (b + s), 1 + noise - a * a / (b + s)
    expected = (least + e * e * (b + s) * best**2 / (b + s + e) ** 2) / (1 - gamma)
    assert float(linear.icl(alpha, tau, math.inf, noise, ridge, k0, k1, k2)) == pytest.approx(expected, rel=1e-6)
    assert float(linear.idg(alpha, tau, math.inf, noise, ridge, k0, k1, k2)) == pytest.approx(expected, rel=1e-6)
    found = linear.population(linear.couplings(alpha, noise, k0, k1, k2))
    assert [float(x) for x in found] == pytest.approx([best, least], rel=1e-12)
    if tau > 1.01:
        ridgeless = least * tau / (tau - 1)
        assert float(linear.icl(alpha, tau, math.inf, noise, 0.0, k0, k1, k2)) == pytest.approx(ridgeless, rel=1e-9)


@pytest.mark.parametrize("prompt", zoo(200, 400, 0.2, kernels=("exp:3", "power:1", "ar1:-0.5", "ma:4")), ids=name)
def test_population_optimum_is_the_minimum_of_the_exact_risk_in_the_limit(prompt):
    """Minimise the exact finite-d risk over Gamma = c I, at two d with the same kernel."""
    from corricl.theory import exact

    if prompt.kernel.size is not None:
        pytest.skip("a random matrix is no weak correlation")
    gaps = []
    for d in (100, 200):
        here = prompt.replace(d=d, length=2 * d)
        c = np.linspace(-0.5, 1.5, 9)
        values = [float(exact.fresh_task_risk(exact.Moments(g * d, g * g * d, g * g * d, 0.0), here)) for g in c]
        quadratic = np.polyfit(c, values, 2)
        minimum = quadratic[2] - quadratic[1] ** 2 / (4 * quadratic[0])
        found = linear.population(linear.couplings(here.alpha, here.noise, *here.statistics))
        gaps.append(minimum - float(found[1]))
        assert abs(gaps[-1]) < 3 / d
        assert -quadratic[1] / (2 * quadratic[0]) == pytest.approx(float(found[0]), abs=6 / d)
    assert abs(gaps[1]) == pytest.approx(abs(gaps[0]) / 2, rel=0.2)


def test_large_kappa_and_large_tau_approach_their_limits():
    k = (0.6, 1.1, 2.1)
    unbounded = float(linear.icl(2, 3, math.inf, 0.1, 0.01, *k))
    gaps = [abs(float(linear.icl(2, 3, kappa, 0.1, 0.01, *k)) - unbounded) for kappa in (1e2, 1e3, 1e4)]
    assert gaps[0] / gaps[1] == pytest.approx(10, rel=0.1)
    assert gaps[1] / gaps[2] == pytest.approx(10, rel=0.02)
    assert float(linear.icl(2, 3, 1e12, 0.1, 0.01, *k)) == pytest.approx(unbounded, rel=1e-9)
    best = float(linear.population(linear.couplings(2, 0.1, *k))[1])
    assert float(linear.icl(2, 1e9, math.inf, 0.1, 0.0, *k)) == pytest.approx(best, rel=1e-6)


def test_an_independent_query_feels_the_kernel_through_k2_alone():
    length, d, noise = 128, 32, 0.05
    flat = parse("ar1:0.5")  # a flat spectrum, and one with a peak
    k2 = Prompt(d, length, flat).statistics.k2
    c = math.sqrt((k2 - 1) / (length - 1))
    peak = parse(f"equi:{c!r}")
    for tasks, sequences, ridge in ((320, 4096, 0.0), (16, 500, 1e-3), (None, 3000, 0.1)):
        one, two = (
            theory.weak(Pretraining(Prompt(d, length, k, noise=noise), sequences, tasks), ridge) for k in (flat, peak)
        )
        assert one.icl == pytest.approx(two.icl, rel=1e-9)
        assert one.idg == pytest.approx(two.idg, rel=1e-9)
        assert one.effective_length == pytest.approx(length * (1 + noise) / (k2 + noise), rel=1e-12)
        alpha = one.effective_length / d
        kappa = math.inf if tasks is None else tasks / d
        iid = linear.icl(alpha, sequences / d**2, kappa, noise, ridge)
        assert one.icl == pytest.approx(float(iid), rel=1e-9)
        assert one.equivalent_length == pytest.approx(one.effective_length, rel=1e-6)
        assert one.query_gain == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("spec", ["exp:2", "exp:10", "ar1:-0.6", "power:0.8", "blocks:3", "cosine:0.4,6"])
@pytest.mark.parametrize("ridge", [0.0, 0.05])
def test_equivalent_length_is_the_iid_length_of_equal_error(spec, ridge):
    prompt = Prompt(32, 128, spec, "continues", 0.01)
    found = theory.weak(Pretraining(prompt, 4096, 320), ridge)
    assert math.isfinite(found.equivalent_length)
    again = linear.icl(found.equivalent_length / 32, 4, 10, 0.01, ridge)
    assert float(again) == pytest.approx(found.icl, rel=1e-8)
    plain = theory.weak(Pretraining(prompt.replace(query="independent"), 4096, 320), ridge)
    assert found.query_gain == pytest.approx(plain.icl - found.icl, abs=1e-12)
    assert (found.equivalent_length > found.effective_length) == (found.icl < plain.icl)


def test_equivalent_length_says_where_there_is_none():
    found = linear.equivalent_alpha(1e-9, 1.0, 0.1, 2.0, np.inf, 0.0)
    assert found == np.inf
    assert linear.equivalent_alpha(1e9, 1.0, 0.1, 2.0, np.inf, 0.0) == 0
    many = linear.equivalent_alpha(np.array([0.5, 0.7, 1e-9]), 4.0, 0.1, 2.0, np.array([[10.0], [np.inf]]), 0.0)
    assert many.shape == (2, 3)
    assert np.all(np.isinf(many[:, 2]))


@given(st.floats(0.1, 30), st.floats(0, 2), st.floats(0, 5), st.floats(0, 30), st.floats(1, 10))
def test_the_sign_of_the_query_gain(alpha, noise, k0, k1, k2):
    """The condition against the population risks themselves, by their definition as minima of a quadratic."""

    def least(k0, k1):
        # risk of Gamma = c I: 1 + noise - 2 c (1 + k0/alpha) + c^2 second
        second = 1 + (k2 + noise) / alpha + 2 * k0 / alpha + (k1 + noise * k0) / alpha**2
        return 1 + noise - (1 + k0 / alpha) ** 2 / second

    gain = least(0, 0) - least(k0, k1)
    if abs(gain) > 1e-9:
        assert bool(linear.query_gain_is_positive(alpha, noise, k0, k1, k2)) == (gain > 0)
    at_much_data = linear.icl(alpha, 1e12, np.inf, noise, 0.0, 0, 0, k2) - linear.icl(
        alpha, 1e12, np.inf, noise, 0.0, k0, k1, k2
    )
    assert float(at_much_data) == pytest.approx(gain, abs=1e-8)


def test_the_optimal_ridge_against_a_brute_grid():
    ridges = np.concatenate([[0.0], np.geomspace(1e-10, 1e4, 6001)])
    for alpha, tau, kappa, noise, _, k0, k1, k2 in SETTINGS:
        here = linear.couplings(alpha, noise, k0, k1, k2)
        for test in (None, linear.couplings(0.5 * alpha, 2 * noise, 0, 0, 1.5 * k2)):
            risks = linear.fresh_task_error(linear.state(here, tau, kappa, ridges), here if test is None else test)
            ridge, value = linear.optimal_ridge(here, tau, kappa, test)
            assert float(value) <= risks.min() * (1 + 1e-9)
            assert float(value) >= risks.min() * (1 - 1e-5)
            at = linear.fresh_task_error(linear.state(here, tau, kappa, ridge), here if test is None else test)
            assert float(at) == pytest.approx(float(value), rel=1e-7)


def test_the_optimal_ridge_broadcasts():
    tau = np.array([0.5, 1.0, 3.0])
    alpha = np.array([[1.0], [5.0]])
    here = linear.couplings(alpha, 0.1, 0.4, 0.5, 1.4)
    ridge, value = linear.optimal_ridge(here, tau, 2.0)
    assert ridge.shape == value.shape == (2, 3)
    for i in range(2):
        for j in range(3):
            one = linear.optimal_ridge(linear.couplings(alpha[i, 0], 0.1, 0.4, 0.5, 1.4), tau[j], 2.0)
            assert float(value[i, j]) == pytest.approx(float(one[1]), rel=1e-10)
            assert float(ridge[i, j]) == pytest.approx(float(one[0]), rel=1e-4)


def test_arrays_broadcast_as_loops_do():
    rng = np.random.default_rng(0)
    alpha, noise, k2 = rng.uniform(0.5, 9, (3, 1, 1)), rng.uniform(0, 1, (3, 1, 1)), rng.uniform(1, 4, (3, 1, 1))
    tau = np.array([0.4, 1.0, 2.5, 8.0])[:, None]
    kappa, ridge = np.array([0.3, 1.0, np.inf]), np.array([0.0, 1e-3, 1.0])
    k0, k1 = 0.5, 0.8
    whole = (
        linear.icl(alpha, tau, kappa, noise, ridge, k0, k1, k2),
        linear.idg(alpha, tau, kappa, noise, ridge, k0, k1, k2),
    )
    assert whole[0].shape == (3, 4, 3)
    for i, j, k in np.ndindex(3, 4, 3):
        one = (alpha[i, 0, 0], tau[j, 0], kappa[k], noise[i, 0, 0], ridge[k], k0, k1, k2[i, 0, 0])
        assert whole[0][i, j, k] == pytest.approx(float(linear.icl(*one)), rel=1e-12)
        assert whole[1][i, j, k] == pytest.approx(float(linear.idg(*one)), rel=1e-12)


# ---- the nouns


def test_the_door_gives_what_the_array_function_gives():
    prompt = Prompt(20, 50, "power:1", "continues", 0.1)
    other = Prompt(20, 90, "exp:2", "gap:2", 0.3)
    pretraining = Pretraining(prompt, 1000, 30)
    found = theory.risk(pretraining, 0.02, method="weak")
    k = prompt.statistics
    assert found.icl == float(linear.icl(2.5, 2.5, 1.5, 0.1, 0.02, *k))
    assert found.idg == float(linear.idg(2.5, 2.5, 1.5, 0.1, 0.02, *k))
    assert (found.k0, found.k1, found.k2) == tuple(k)
    assert found.method == "weak"
    mismatched = theory.risk(pretraining, 0.02, test=other, method="weak")
    expected = literal((2.5, 2.5, 1.5, 0.1, 0.02, *k), (4.5, 0.3, *other.statistics))
    assert mismatched.icl == pytest.approx(expected[2], rel=1e-6)
    assert mismatched.idg == found.idg
    assert mismatched.k2 == other.statistics.k2
    plain = literal((2.5, 2.5, 1.5, 0.1, 0.02, 0, 0, k.k2), (4.5, 0.3, 0, 0, other.statistics.k2))
    assert mismatched.query_gain == pytest.approx(plain[2] - expected[2], rel=1e-5)


def test_the_limit_needs_no_sizes():
    x = math.exp(-1)
    k = (x / (1 - x), x * (1 + x) / (1 - x) ** 2, (1 + x) / (1 - x))
    found = theory.limit(4, 4, 10, kernel="exp:2", query="continues", noise=0.01)
    assert found.icl == pytest.approx(float(linear.icl(4, 4, 10, 0.01, 0.0, *k)), rel=1e-10)
    assert found.effective_length == pytest.approx(4 * 1.01 / (k[2] + 0.01))
    large = theory.weak(Pretraining(Prompt(3200, 12800, "exp:2", "continues", 0.01), 4 * 3200**2, 32000))
    assert large.icl == pytest.approx(found.icl, rel=1e-4)
    assert theory.limit(10, 2, noise=0.01).icl == pytest.approx(0.203, abs=5e-4)


@pytest.mark.parametrize(
    "bad",
    [{"alpha": 0}, {"tau": -1}, {"kappa": 0}, {"kappa": math.nan}, {"noise": -1}, {"ridge": -1}, {"ridge": math.nan}],
)
def test_bad_ratios_are_refused(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        theory.limit(**({"alpha": 2, "tau": 2, "kappa": 2} | bad))


def test_bad_questions_are_refused():
    pretraining = Pretraining(Prompt(10, 20), 100, 10)
    with pytest.raises(InputError, match="ridge must be finite and >= 0; got -1"):
        theory.risk(pretraining, -1)
    with pytest.raises(InputError, match="the test prompt has d = 9; pretraining has d = 10"):
        theory.risk(pretraining, test=Prompt(9, 20), method="weak")
    with pytest.raises(InputError, match=r"unknown method 'guess'; allowed: .*weak"):
        theory.risk(pretraining, method="guess")


def test_where_the_limit_is_doubtful_it_says_so():
    good = theory.weak(Pretraining(Prompt(400, 1600, "exp:2", "continues", 0.01), 640_000, 4000))
    assert good.valid
    assert not good.warnings
    strong = theory.weak(Pretraining(Prompt(40, 80, "exp:80", "continues", 0.1), 2400))
    assert not strong.valid
    assert {"finite_size", "strong_correlation"} <= {c.code for c in strong.warnings}
    for caution in strong.warnings:
        if caution.code in ("finite_size", "strong_correlation"):
            assert caution.values["k2"] == strong.k2
    few = theory.weak(Pretraining(Prompt(40, 80, noise=0.1), 6400, 3))
    assert not few.valid


def test_sequences_for_an_error_against_a_scan():
    pretraining = Pretraining(Prompt(8, 32, "exp:1", "continues", 0.1), 1, 40)
    k = pretraining.prompt.statistics
    for ridge in (0.0, 0.1):
        errors = linear.icl(4, np.arange(1, 4001) / 64, 5, 0.1, ridge, *k)
        for target in (1.0, 0.7, 0.6):
            expected = int(np.argmax(errors <= target)) + 1
            assert theory.sequences_for(target, pretraining, ridge) == expected
    with pytest.raises(InputError, match=r"no number of sequences.*the least is 0"):
        theory.sequences_for(0.1, pretraining)


def test_length_for_an_error_against_a_scan():
    for query in ("independent", "continues", "strength:0.5"):
        pretraining = Pretraining(Prompt(8, 1, "exp:2", query, 0.1), 400, 40)
        lengths = np.arange(1, 201)
        k0, k1, k2 = np.array([Prompt(8, int(n), "exp:2", query).statistics for n in lengths]).T
        errors = linear.icl(lengths / 8, 400 / 64, 5, 0.1, 0.01, k0, k1, k2)
        for target in (1.0, 0.6, 0.4):
            assert theory.length_for(target, pretraining, 0.01) == 1 + int(np.argmax(errors <= target))
    with pytest.raises(InputError, match="no length up to 65536"):
        theory.length_for(0.01, pretraining)
    with pytest.raises(InputError, match="one length only"):
        theory.length_for(0.5, Pretraining(Prompt(2, 3, "iid", np.zeros(3)), 10))
