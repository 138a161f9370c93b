"""The mixture theory: its identities, its limits, and finite-size models."""

import math

import numpy as np
import pytest
from helpers import symmetric_root

from corricl.errors import ConvergenceError, InputError
from corricl.prompt import Pretraining, Prompt, Risk
from corricl.theory import _mixture_bulk as equivalent
from corricl.theory import _mixture_points as points
from corricl.theory._mixture import choose, expected_error, mixture, solve
from corricl.theory._weak import weak
from corricl.theory.exact import Moments, fresh_task_risk, risk_of
from corricl.theory.linear import task_resolvent

INF = math.inf

# d, kappa, alpha, tau, noise, ridge, xi, query, ICL of simulated models and its standard error
SIMULATED = [
    (20, INF, 1, 2, 0.1, 1e-3, 0, "independent", 1.520, 0.004),
    (40, INF, 2, 1.5, 0.1, 1e-2, 5, "independent", 2.947, 0.023),
    (40, INF, 2, 1.5, 0.1, 1e-2, 5, "continues", 2.229, 0.012),
    (80, INF, 2, 1.5, 0.1, 1e-2, 48, "continues", 3.110, 0.057),
    (80, INF, 2, 1.5, 0.1, 1e-2, 160, "independent", 8.655, 0.045),
    (80, INF, 2, 1.5, 0.1, 1e-2, 160, "continues", 3.894, 0.023),
    (24, 2, 2, 1.5, 0.1, 0.02, 3, "continues", 2.106, 0.006),
    (24, 2, 2, 1.5, 0.1, 0.02, 48, "continues", 4.378, 0.020),
    (40, 2, 2, 1.5, 0.1, 0.02, 80, "continues", 3.960, 0.030),
    (24, 2, 2, 1.5, 0.1, 0.2, 48, "continues", 2.225, 0.007),
    (24, 0.5, 2, 1.5, 0.1, 0.02, 48, "continues", 4.324, 0.025),
    (24, 1, 2, 2.5, 0.05, 0.005, 6, "continues", 1.1955, 0.0026),
    (32, 10, 4, 4, 0.01, 1e-8, 2, "continues", 0.4691, 0.0008),
    (32, 10, 4, 4, 0.01, 1e-8, 10, "independent", 1.0451, 0.0021),
]


def setting(d, alpha, tau, kappa=INF, **prompt):
    return Pretraining.from_ratios(d, alpha, tau, kappa, **prompt)


@pytest.mark.parametrize("row", SIMULATED)
def test_table_of_simulations(row):
    d, kappa, alpha, tau, noise, ridge, xi, query, simulated, stderr = row
    pretraining = setting(d, alpha, tau, kappa, kernel=f"exp:{xi}", query=query, noise=noise)
    risk = mixture(pretraining, ridge)
    error = math.hypot(stderr, risk.details["numerical_error"])
    assert error < 0.02 * simulated  # or the comparison has no power
    assert abs(risk.icl - simulated) < 3 * error + 0.02 * simulated


def test_in_distribution_error_with_as_many_tasks_as_dimensions():
    pretraining = setting(24, 2, 2.5, 1, kernel="exp:6", query="continues", noise=0.05)
    risk = mixture(pretraining, 0.005)
    assert risk.idg is not None
    assert abs(risk.idg - 1.009) < 3 * math.hypot(0.004, risk.details["numerical_error_idg"]) + 0.01
    assert risk.idg < risk.icl


def simulate(pretraining, ridge, replicates, test, seed=1):
    """ICL and IDG of models fitted by dense normal equations on full contexts, shape (replicates, 2)."""
    rng = np.random.default_rng(seed)
    prompt, n, k = pretraining.prompt, pretraining.sequences, pretraining.tasks
    d, length = prompt.d, prompt.length
    root = symmetric_root(prompt.joint)
    found = []
    for _ in range(replicates):
        tasks = rng.standard_normal((k or n, d))
        w = tasks[rng.integers(k, size=n) if k else np.arange(n)]
        x = root @ rng.standard_normal((n, length + 1, d)) / math.sqrt(d)
        labels = np.einsum("nad,nd->na", x, w) + math.sqrt(prompt.noise) * rng.standard_normal((n, length + 1))
        y = labels[:, :-1]
        h = np.column_stack([d / length * np.einsum("na,nad->nd", y, x[:, :-1]), np.mean(y * y, axis=1)])
        H = (x[:, -1][:, :, None] * h[:, None, :]).reshape(n, -1)
        A = H.T @ H + n / d * ridge * np.eye(d * (d + 1))
        gamma = np.linalg.solve(A, H.T @ labels[:, -1]).reshape(d, d + 1)
        found.append((risk_of(gamma, test), risk_of(gamma, prompt, tasks if k else None)))
    return np.array(found)


LIVE = [
    (Pretraining(Prompt(12, 18, "exp:9", "continues", 0.2), 240, 12), 0.05, Prompt(12, 30, "power:1", "gap:2", 0.1)),
    (Pretraining(Prompt(12, 20, "cosine:0.5,12", np.r_[np.zeros(10), np.full(10, 0.2)], 0.1), 100), 0.1, None),
    (Pretraining(Prompt(12, 16, "blocks:4", "continues", 0.0), 300, 24), 0.02, None),
]


@pytest.mark.parametrize("case", range(len(LIVE)))
def test_models_fitted_here(case):
    pretraining, ridge, test = LIVE[case]
    runs = simulate(pretraining, ridge, 60, test or pretraining.prompt)
    mean, stderr = runs.mean(axis=0), runs.std(axis=0, ddof=1) / math.sqrt(len(runs))
    risk = mixture(pretraining, ridge, test)
    assert np.all(stderr < 0.03 * mean)
    assert abs(risk.icl - mean[0]) < 4 * stderr[0] + 0.5 / 12 * mean[0]
    assert risk.idg is not None
    assert abs(risk.idg - mean[1]) < 4 * stderr[1] + 0.5 / 12 * mean[1]


def test_single_task():
    pretraining = Pretraining(Prompt(12, 24, "iid", "independent", 0.1), 300, 1)
    runs = simulate(pretraining, 0.02, 80, pretraining.prompt)[:, 0]
    stderr = runs.std(ddof=1) / math.sqrt(len(runs))
    assert stderr < 0.02 * runs.mean()
    risk = mixture(pretraining, 0.02)
    assert not risk.valid
    assert abs(risk.icl - runs.mean()) < 3 * stderr + 0.06 * runs.mean()


@pytest.mark.parametrize(("kappa", "kernel", "query"), [(INF, "exp:1", "continues"), (1, "iid", "independent")])
def test_weak_limit_is_reached_as_one_over_d(kappa, kernel, query):
    differences = []
    for d in (256, 512):
        pretraining = setting(d, 1, 2, kappa, kernel=kernel, query=query, noise=0.1)
        fine, limit = mixture(pretraining, 0.1), weak(pretraining, 0.1)
        differences.append(np.array([fine.icl / limit.icl - 1, fine.idg / limit.idg - 1]))
    assert np.all(np.abs(differences[1]) > 1e-3)  # there is a finite-size effect to extrapolate
    assert np.all(np.abs(2 * differences[1] - differences[0]) < 1e-3)


@pytest.mark.parametrize(
    ("kernel", "query", "noise"),
    [
        ("iid", "independent", 0.1),
        ("exp:30", "continues", 0.3),
        ("power:0.4", "gap:2", 0.0),
        ("blocks:5", "continues", 1),
    ],
)
def test_points_reproduce_the_exact_risk_of_an_isotropic_gamma(kernel, query, noise):
    prompt = Prompt(14, 33, kernel, query, noise)
    seq = points.sequences(prompt)
    t, square, u2 = 0.4, 0.4**2, 0.05
    V1, V_eta, V_theta = 0.3, 0.45, 0.02
    column = [np.full(points.SHIFTS, q) for q in (t, t, 0.0, square, square, square, 0.0, u2)]
    S = equivalent.residual(seq, equivalent.Mean(*column), 14)
    phi = equivalent.features(seq, 14)
    predicted = noise + S + (phi[0] + phi[1]) * V1 + phi[2] * V_eta + phi[3] * V_theta
    traces = Moments(14 * t, 14 * (square + V1), 14 * (square + V_eta - V1), 14 * (u2 + V_theta))
    copies = predicted.mean(axis=1)
    exact = float(fresh_task_risk(traces, prompt))
    error = copies.std(ddof=1) / math.sqrt(points.SHIFTS)
    assert error < 0.01 * exact
    assert abs(copies.mean() - exact) < 5 * error + 2e-3 * exact


def test_in_distribution_is_in_context_when_every_sequence_has_its_task():
    pretraining = setting(20, 2, 1.7, kernel="exp:4", query="continues", noise=0.1)
    risk = mixture(pretraining, 1e-3)
    assert risk.idg == pytest.approx(risk.icl, rel=1e-12)
    many = mixture(Pretraining(pretraining.prompt, pretraining.sequences, 10**7), 1e-3)
    assert many.icl == pytest.approx(risk.icl, rel=2e-3)


@pytest.mark.parametrize("tasks", [5, 12, None])
def test_resolvent_is_the_gradient_of_a_log_determinant(tasks):
    d, ridge = 12, 0.3
    law = points.spectrum(d, tasks)
    x = np.array([[0.8, 0.5, 0.2, 1.1, 0.3]])
    P, C = equivalent.resolvent(x, ridge, law, d)
    assert np.allclose(C, np.swapaxes(C, 1, 2), atol=0.02 * np.abs(C).max())
    # at ridge 0 the traces of resolvent times operator count the features
    P0, _ = equivalent.resolvent(x, 0.0, law, d)
    assert float((P0 @ x[0])[0]) == pytest.approx(1 + 1 / d, rel=1e-12)
    at_zero = x * [1, 1, 0, 1, 1]
    _, C = equivalent.resolvent(at_zero, ridge, law, d)
    for j in (0, 1, 3, 4):
        step = 1e-5 * np.eye(5)[j]
        up, down = (equivalent.resolvent(at_zero + sign * step, ridge, law, d)[0] for sign in (1, -1))
        assert np.allclose(-(up - down)[0, [0, 1, 3, 4]] / 2e-5, C[0, j, [0, 1, 3, 4]], rtol=1e-5, atol=1e-8)
    assert P.shape == (1, 5)


def test_resolvent_against_the_matrix_that_it_stands_for():
    d, k, ridge = 8, 4, 0.4
    rng = np.random.default_rng(0)
    a, c, e = 0.9, 0.6, 0.25
    tasks = rng.standard_normal((k, d))
    R = tasks.T @ tasks / k
    R *= d / np.trace(R)
    swap = np.eye(d * d).reshape(d, d, d, d).transpose(0, 1, 3, 2).reshape(d * d, d * d)
    operator = np.kron(np.eye(d), a * R + (c + e + ridge) * np.eye(d)) + e * swap
    inverse = np.linalg.inv(operator)
    values = np.linalg.eigvalsh(R)
    law = points.Spectrum(values, np.full(d, 1 / d), np.zeros(d))
    P, C = equivalent.resolvent(np.array([[a, c, e, 1.0, 0.0]]), ridge, law, d)
    operators = (np.kron(np.eye(d), R), np.eye(d * d), np.eye(d * d) + swap)
    expected = [np.trace(X @ inverse) / d**2 for X in operators]
    slopes = [[np.trace(X @ inverse @ Y @ inverse) / d**2 for Y in operators] for X in operators]
    assert np.allclose(P[0, :3], expected, rtol=1e-10)
    assert np.allclose(C[0, :3, :3], slopes, rtol=1e-10)


@pytest.mark.parametrize(("d", "tasks"), [(300, 450), (2000, 1000), (24, 36), (9, 3), (7, 1)])
def test_spectrum_has_the_moments_of_sample_covariances(d, tasks):
    law = points.spectrum(d, tasks)
    assert law.weights.sum() == pytest.approx(1, rel=1e-12)
    assert law.weights @ law.nodes == pytest.approx(1, rel=1e-12)
    if min(d, tasks) >= 8:
        assert law.weights @ law.nodes**2 == pytest.approx(1 + (d + 1) / tasks, rel=1e-3)
    resolvent = float(task_resolvent(0.5, d / tasks)[0])
    assert law.weights @ (1 / (law.nodes + 0.5)) == pytest.approx(resolvent, rel=1 / d)


def test_zero_correlation_is_iid():
    iid = mixture(setting(16, 2, 2, 1, kernel="iid", query="independent", noise=0.1), 0.01)
    zero = mixture(setting(16, 2, 2, 1, kernel="exp:0", query="continues", noise=0.1), 0.01)
    assert (zero.icl, zero.idg) == pytest.approx((iid.icl, iid.idg), rel=1e-12)


@pytest.mark.parametrize("sequences", [100, 400])
def test_ridge_zero_is_the_limit(sequences):
    pretraining = Pretraining(Prompt(16, 24, "exp:3", "continues", 0.1), sequences, 20)
    exact = mixture(pretraining, 0.0)
    assert mixture(pretraining, 1e-8).icl == pytest.approx(exact.icl, rel=1e-5)
    assert mixture(pretraining, 1e-2).icl != pytest.approx(exact.icl, rel=1e-4)


def test_ridgeless_peak_is_at_as_many_sequences_as_weights():
    prompt = Prompt(12, 12, "iid", "independent", 0.01)
    peak = mixture(Pretraining(prompt, 156), 0.0)
    assert peak.icl == peak.idg == INF
    assert [w.code for w in peak.warnings] == ["threshold"]
    near = [mixture(Pretraining(prompt, n), 0.0).icl for n in (100, 144, 170, 250)]
    assert near[0] < near[1] > 3 * near[3]
    assert near[2] > 3 * near[3]
    assert mixture(Pretraining(prompt, 156), 1e-6).icl > max(near)


def test_division_by_the_ridge_changes_nothing():
    prompt = Prompt(10, 15, "exp:2", "continues", 0.1)
    phi = equivalent.features(points.sequences(prompt), 10)
    law, tau, ridge = points.spectrum(10, 7), 0.7, 0.4
    found = equivalent.bulk(phi, law, tau, ridge, 10)
    assert found.ridge == 1.0
    image, _ = equivalent._map(ridge * found.x, phi, law, tau, ridge, 1.0, 10)
    assert np.allclose(image, ridge * found.x, rtol=1e-8)


def test_stated_numerical_error_holds_for_other_points(monkeypatch):
    pretraining = setting(20, 2, 1.5, 2, kernel="exp:20", query="continues", noise=0.1)
    first = mixture(pretraining, 0.02)
    assert first == mixture(pretraining, 0.02)
    assert 0 < first.details["numerical_error"] < 5e-3 * first.icl
    monkeypatch.setattr(points, "_SEED", 12345)
    points.base_normals.cache_clear()
    law = points.spectrum(20, 40)
    other = solve(points._sequences(pretraining.prompt), law, 1.5, 0.02, 0.1, 20)
    points.base_normals.cache_clear()
    icl = fresh_task_risk(other.traces, pretraining.prompt)
    spread = math.hypot(first.details["numerical_error"], icl.std(ddof=1) / math.sqrt(points.SHIFTS))
    assert icl.mean() != first.icl
    assert abs(icl.mean() - first.icl) < 5 * spread


def test_mismatch_changes_the_test_side_only():
    pretraining = setting(20, 2, 1.5, 2, kernel="exp:5", query="continues", noise=0.1)
    same, other = mixture(pretraining, 0.02), mixture(pretraining, 0.02, Prompt(20, 80, "iid", noise=0.5))
    assert other.idg == same.idg
    assert other.icl != same.icl
    assert (other.k0, other.k1, other.k2) == (0, 0, 1)


def test_refusals(monkeypatch):
    prompt = Prompt(12, 24, "exp:2", "continues", 0.1)
    with pytest.raises(InputError, match="d >= 3"):
        mixture(Pretraining(Prompt(2, 4), 12))
    with pytest.raises(InputError, match="d = 10"):
        mixture(Pretraining(prompt, 200), 0.1, Prompt(10, 24))
    assert not mixture(Pretraining(prompt, 200, 1), 0.1).valid
    assert mixture(Pretraining(prompt, 200, 12), 0.1).valid
    with pytest.raises(InputError, match="ridge"):
        mixture(Pretraining(prompt, 200), -0.1)
    monkeypatch.setattr(equivalent, "_STEPS", 2)
    with pytest.raises(ConvergenceError, match="larger ridge"):
        mixture(Pretraining(prompt, 200), 0.1)


def test_choice_between_weak_and_mixture():
    def risk(icl, idg=1.0):
        return Risk(icl=icl, idg=idg, method="")

    assert expected_error(risk(0.9), risk(1.0)) == pytest.approx(0.1)
    assert expected_error(risk(1.0, 0.5), risk(1.0, 1.0)) == pytest.approx(0.5)
    assert expected_error(risk(1.0), risk(INF)) == INF
    assert expected_error(risk(INF), risk(INF)) == 0
    assert choose(risk(0.985), risk(1.0))[0] == "weak"
    assert choose(risk(0.975), risk(1.0))[0] == "mixture"
    assert choose(risk(0.8), risk(1.0)) == ("mixture", choose(risk(0.8), risk(1.0))[1])
    strong = setting(40, 2, 1.5, kernel="exp:80", query="continues", noise=0.1)
    assert choose(weak(strong, 0.01), mixture(strong, 0.01))[0] == "mixture"
    large = setting(300, 2, 4, kernel="exp:1", query="continues", noise=0.1)
    assert choose(weak(large, 0.01), mixture(large, 0.01))[0] == "weak"


def test_scales_of_an_isotropic_sequence():
    d = 9
    rng = np.random.default_rng(3)
    w, x, r = (rng.standard_normal((50, d)) * scale for scale in (1, d**-0.5, 0.7))
    m, p = rng.standard_normal((2, 50))
    r -= (r * w).sum(1, keepdims=True) / (w * w).sum(1, keepdims=True) * w
    h = m[:, None] * w + p[:, None] * x + r
    f, overlap = (x * w).sum(1), (r * x).sum(1)
    across = (x * x).sum(1) - f**2 / (w * w).sum(1)
    v = ((r * r).sum(1) - overlap**2 / across) / d
    seq = points.Sequences(f, (w * w).sum(1) / d, p, m, overlap, v, (x * x).sum(1), np.ones(50))
    phi = equivalent.features(points.Sequences(*(q[None] for q in seq)), d)[:, 0]
    free = phi[1] > 1.0001 * seq.s * v * d / (d - 2) / 2  # the lower bound is not active
    assert free.mean() > 0.5
    bulk, eta = phi[:3].sum(axis=0)[free], phi[2][free]
    assert np.allclose(bulk * d + 2 * eta, ((x * x).sum(1) * (h * h).sum(1))[free], rtol=1e-10)
    assert np.allclose(bulk + eta * (d + 1), (x * h).sum(1)[free] ** 2, rtol=1e-9)


def test_residual_against_directions_drawn_at_random():
    d, n = 7, 200_000
    rng = np.random.default_rng(5)
    gamma = rng.standard_normal((d, d)) / 3
    gamma = 0.4 * np.eye(d) + (gamma + gamma.T) / 4
    column = rng.standard_normal(d) / 3
    w_hat = np.eye(d)[0]
    f, w2, p, m, o, v, s, u = 0.7, 1.3, 0.6, 0.8, 0.15, 0.5, 1.2, 1.1
    norm = math.sqrt(w2 * d)
    across = s - f * f / norm**2
    g1, g2 = rng.standard_normal((2, n, d - 1))
    g1 /= np.linalg.norm(g1, axis=1, keepdims=True)
    g2 -= (g1 * g2).sum(1, keepdims=True) * g1
    g2 /= np.linalg.norm(g2, axis=1, keepdims=True)
    x = np.column_stack([np.full(n, f / norm), math.sqrt(across) * g1])
    rest = np.column_stack([np.zeros(n), o / math.sqrt(across) * g1 + math.sqrt(v * d) * g2])
    h = m * norm * w_hat + p * x + rest
    squares = (f - np.einsum("ni,ij,nj->n", x, gamma, h) - u * x @ column) ** 2
    right = gamma[:, 0]
    # in units of the average task, which is that of one task scaled to |w|^2 = d
    seq = points.Sequences(*(np.array([[q]]) for q in (f, w2, p, m, o, v, s, u)))
    t_u, square_Ru, square_u = column[0] * d**-0.5, right @ column * d**-0.5, column @ column / d
    of_bulk = (np.trace(gamma) / d, gamma[0, 0], t_u, (gamma**2).sum() / d, 0.0, right @ right)
    law = equivalent.Mean(*(np.array([q]) for q in (*of_bulk, square_Ru, square_u)))
    predicted = float(equivalent.residual(seq, law, d)[0, 0])
    stderr = squares.std() / math.sqrt(n)
    assert stderr < 0.005 * squares.mean()
    assert abs(predicted - squares.mean()) < 4 * stderr


def test_mean_of_an_isotropic_gamma_is_a_regression_on_one_variable():
    d, ridge = 12, 0.2
    seq = points.sequences(Prompt(d, 20, "exp:6", "continues", 0.1))
    law = points.spectrum(d, None)
    phi = equivalent.features(seq, d)
    bulk = equivalent.bulk(phi, law, 2.0, ridge, d)
    mean = equivalent.mean_gamma(seq, phi, bulk, law, d)
    signal = seq.m * seq.f + seq.p * seq.s + seq.o  # x_t.h
    expected = (bulk.g * signal * seq.f).mean(axis=1) / (ridge + (bulk.g * signal**2).mean(axis=1))
    assert np.allclose(mean.t, expected, rtol=1e-9)
    assert np.allclose(mean.square, mean.t**2, rtol=1e-9)


@pytest.mark.parametrize(("length", "kernel", "query"), [(200, "exp:9", "continues"), (17, "iid", "independent")])
def test_grouping_keeps_the_statistics(length, kernel, query):
    prompt = Prompt(10, length, kernel, query, 0.1)
    values, k, freedom = points.grouped(prompt.basis)
    count = np.where(freedom > 0, freedom, 1.0)
    assert len(values) <= len(points._STEPS) - 6
    k0, k1, k2 = prompt.statistics
    sums = [count.sum(), count @ values, count @ values**2, k @ k, values @ (k * k)]
    assert sums == pytest.approx([length, length, length * k2, k0, k1], rel=1e-9)
