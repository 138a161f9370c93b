"""Where tools of this kind have failed: each small case, with the right numbers."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from helpers import published

from corricl import simulate, theory
from corricl.errors import ConvergenceError, InputError
from corricl.kernels import Kernel, Stationary
from corricl.prompt import Pretraining, Prompt
from corricl.theory import linear


def test_01_small_ridges_find_the_right_root():
    ridges = np.geomspace(1e-2, 1e-12, 201)
    effective = linear.effective_ridge(ridges, (1 + 0.01) / 10, 2, 1 / 0.5)
    assert np.all(effective > 0)
    assert np.all(np.diff(effective) < 0)
    icl = linear.icl(10, 2, 0.5, 0.01, ridges)
    assert float(linear.icl(10, 2, 0.5, 0.01, 0.0)) == pytest.approx(0.8912, abs=5e-5)
    assert icl[-1] == pytest.approx(0.8912, abs=5e-5)
    steps = np.diff(icl)
    assert np.all(steps > -1e-13) or np.all(steps < 1e-13)
    assert np.abs(steps).max() < 0.01


def test_02_the_peak_is_at_d_times_d_plus_1_and_theory_says_inf_at_tau_1():
    prompt = Prompt(12, 12, "iid", "independent", 0.01)
    at_peak = simulate.risk(Pretraining(prompt, 156), 1e-6, seed=0, replicates=8)
    at_tau_1 = simulate.risk(Pretraining(prompt, 144), 1e-6, seed=0, replicates=8)
    assert np.median([r.icl for r in at_peak.replicates]) > 3 * np.median([r.icl for r in at_tau_1.replicates])
    assert [c.code for c in at_peak.warnings] == ["ill_conditioned"]
    assert "ill-conditioned" in at_peak.warnings[0].message
    assert at_peak.warnings[0].values["condition"] > 1e6
    found = theory.weak(Pretraining(prompt, 144), 0.0)
    assert found.icl == found.idg == math.inf
    assert "threshold" in [c.code for c in found.warnings]
    assert math.isfinite(theory.weak(Pretraining(prompt, 156), 0.0).icl)


def test_03_what_did_not_converge_is_an_error_with_its_residual():
    d = 12
    pretraining = Pretraining(Prompt(d, 12, "iid", "independent", 0.01), d * (d + 1))
    with pytest.raises(ConvergenceError, match=r"residual [\d.e-]+ after 5 steps") as caught:
        simulate.risk(pretraining, 1e-8, replicates=1, method="cg", max_steps=5)
    assert caught.value.exit_code == 3


def sampled_covariance(prompt, n=512):
    """Largest deviation of the sampled token covariance from the joint kernel, in standard errors; all finite."""
    drawn = next(simulate.batches(prompt, seed=0, batch=n))
    tokens = np.concatenate([drawn.x, drawn.query[:, None]], axis=1)
    assert np.isfinite(tokens).all()
    found = np.einsum("nai,nbi->ab", tokens, tokens) / n
    return np.abs(found - prompt.joint).max() * math.sqrt(n * prompt.d / 2)


def test_04_rounding_makes_no_nan_and_no_jitter():
    prompt = Prompt(6, 100, "sqexp:10", "continues", 0.0)
    assert np.linalg.eigvalsh(prompt.kernel.matrix(100))[0] < 0  # by rounding
    assert prompt.statistics.k2 == pytest.approx(16.726, abs=5e-4)
    assert (prompt.basis.eigenvalues**2).sum() / 100 == pytest.approx(prompt.statistics.k2, rel=1e-6)
    assert sampled_covariance(prompt) < 6
    assert math.isfinite(simulate.risk(Pretraining(prompt, 60), 0.1, replicates=1).icl.mean)


def test_05_an_embedding_that_is_not_positive_is_not_clipped():
    prompt = Prompt(6, 100, "cosine:0.3,inf", "continues", 0.0)
    row = np.cos(0.3 * np.arange(100))
    assert np.fft.fft(np.concatenate([row, row[-2:0:-1]])).real.min() == pytest.approx(-23, abs=1)
    assert np.count_nonzero(prompt.basis.eigenvalues) == 2
    np.testing.assert_allclose(prompt.statistics.k2, 1 + 2 * ((1 - np.arange(1, 100) / 100) @ row[1:] ** 2), rtol=1e-12)
    assert sampled_covariance(prompt) < 6


def test_06_the_effective_length_is_that_of_second_moments():
    for phi in (0.5, -0.5):
        prompt = Prompt(10, 100, f"ar1:{phi}")
        assert prompt.statistics.k2 == pytest.approx(1.657778, abs=5e-7)
        assert float(linear.effective_length(100, 0.0, prompt.statistics.k2)) == pytest.approx(60.322, abs=5e-4)
        assert theory.weak(Pretraining(prompt, 400)).effective_length == pytest.approx(60.322, abs=5e-4)


def test_07_sizes_are_rounded_and_not_truncated():
    pretraining = Pretraining.from_ratios(100, alpha=2.3, tau=1, kappa=0.29)
    assert (pretraining.tasks, pretraining.prompt.length) == (29, 230)
    assert int(0.29 * 100) == 28
    assert int(2.3 * 100) == 229


def test_08_unbounded_tasks_are_the_limit_of_many():
    pretraining = Pretraining.from_ratios(100, alpha=10, tau=2, kappa=math.inf, noise=0.01)
    assert pretraining.tasks is None
    found = theory.weak(pretraining).icl
    assert found == pytest.approx(0.203, abs=5e-4)
    assert float(linear.icl(10, 2, 1e9, 0.01, 0.0)) == pytest.approx(found, rel=1e-8)
    with pytest.raises(InputError, match="tasks must be an integer >= 1; got -1"):
        Pretraining(pretraining.prompt, 10, -1)


def test_09_replicates_do_not_depend_on_their_number():
    pretraining = Pretraining(Prompt(6, 12, "exp:2", "continues", 0.1), 200, 9)
    five = simulate.risk(pretraining, 0.1, seed=7, replicates=5).replicates
    ten = simulate.risk(pretraining, 0.1, seed=7, replicates=10).replicates
    assert ten[:5] == five


@dataclass(frozen=True)
class SingleAtLag(Stationary):
    name = "pitfallsinglelag"

    def at_lag(self, lag):
        return np.exp(-lag.astype(np.float32))


@dataclass(frozen=True)
class SingleAtPositions(Kernel):
    name = "pitfallsinglepositions"
    proven = True

    def correlation(self, a, b):
        return np.exp(-np.abs(np.asarray(a) - np.asarray(b)).astype(np.float32))


@pytest.mark.parametrize("spec", ["pitfallsinglelag", "pitfallsinglepositions", "0.5*pitfallsinglepositions+0.5*iid"])
def test_11_float32_is_refused_at_the_border(spec):
    with pytest.raises(InputError, match="must return float64 correlations, not float32"):
        _ = Prompt(4, 6, spec, "continues").statistics
    with pytest.raises(InputError, match="must return float64 correlations, not float32"):
        simulate.risk(Pretraining(Prompt(4, 6, spec, "independent"), 30), 0.1, replicates=1)


def test_14_few_sequences_and_a_tiny_ridge_give_the_minimum_norm_solution():
    row = next(r for r in published("iid_reduced_d100.csv") if (r["alpha"], r["tau"]) == ("1", ".2"))
    mean, stderr = float(row["icl_sim_mean"]), float(row["icl_sim_std"]) / math.sqrt(float(row["runs"]))
    assert mean == 1.04657
    pretraining = Pretraining.from_ratios(100, alpha=1, tau=0.2, kappa=0.5, noise=0.01)
    found = simulate.risk(pretraining, 1e-8, seed=0, replicates=4)
    assert {r.method for r in found.replicates} == {"dual"}
    assert abs(found.icl.mean - mean) < 4 * math.hypot(found.icl.stderr, stderr)
    assert found.icl.stderr < 0.01
    assert abs(found.icl.mean - 1.2003) > 10 * found.icl.stderr
