"""Every regime: a deterministic equivalent in which each sequence keeps its own scale.

The derivation, with what is proved and what is not, is docs/theory/mixture.md, whose section
numbers are used below.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from ..prompt import Caution, Pretraining, Prompt, Risk, number
from . import _mixture_bulk as equivalent
from ._mixture_points import SHIFTS, Sequences, Spectrum, sequences, spectrum
from .exact import Moments, fresh_task_risk

SMALLEST = 3
"""Least d: the decomposition needs a direction orthogonal to the task and to the query."""

TOLERATED = 0.1
"""Expected relative error beyond which a method is not valid."""


class Solution(NamedTuple):
    """The law of a pretrained Gamma at one setting; a leading axis runs over copies of the points."""

    mean: equivalent.Mean
    fluctuation: np.ndarray  # (shifts, 5): V_R, V_1, V_eta, V_theta, V_chi (section 5)
    traces: Moments  # of Gamma, mean and fluctuation together, shape (shifts,) each
    excess: np.ndarray  # (shifts,): error on the pretraining tasks minus that on fresh ones, same prompt
    effective_ridge: np.ndarray  # (shifts,)


def solve(seq: Sequences, law: Spectrum, tau: float, ridge: float, noise: float, d: int) -> Solution:
    """Solve the mixture theory for given sequences and tasks.

    Several values of tau and ridge can share one `sequences(prompt)`, where most of the time goes.

    Args:
        seq: the scalars of pretraining sequences, shape (shifts, points) each.
        law: eigenvalues of the task covariance.
        tau: sequences/d^2 > 0, not (d+1)/d at ridge 0 (there the risk is inf).
        ridge: lambda >= 0.
        noise: label-noise variance of the pretraining prompt.
        d: token dimension >= 3.

    Raises:
        ConvergenceError: the fixed point was not reached.

    Source: docs/theory/mixture.md sections 2 to 5.
    """
    phi = equivalent.features(seq, d)
    bulk = equivalent.bulk(phi, law, tau, ridge, d)
    mean = equivalent.mean_gamma(seq, phi, bulk, law, d)
    on_tasks = equivalent.residual(seq, mean, d)
    source = np.mean(bulk.g**2 * (on_tasks + noise) * phi, axis=2).T / tau
    transposed = np.eye(equivalent.CHANNELS) - np.swapaxes(bulk.J, 1, 2)
    V = np.linalg.solve(transposed, bulk.C @ source[..., None])[..., 0]
    zero = np.zeros_like(mean.t)
    isotropic = mean._replace(t_R=mean.t, t_u=zero, square_R=mean.square, square_Ru=zero)
    difference = on_tasks - equivalent.residual(seq, isotropic, d)
    scale = phi.mean(axis=2)  # (5, shifts)
    excess = difference.mean(axis=1) + scale[0] * (V[:, 0] - V[:, 1]) + scale[4] * V[:, 4]
    traces = Moments(
        trace=d * mean.t,
        square=d * (mean.square + V[:, 1]),
        cross=d * (mean.cross + V[:, 2] - V[:, 1]),
        column=d * (mean.square_u + V[:, 3]),
    )
    return Solution(mean, V, traces, excess, bulk.ridge / bulk.x[:, 0])


OWN_ERROR = 0.02
"""Relative error of the mixture theory itself at moderate d (docs/theory/mixture.md, section 7)."""


def mixture(pretraining: Pretraining, ridge: float = 0.0, test: Prompt | None = None) -> Risk:
    """ICL and IDG error at finite d for weak and strong correlations, few and many tasks.

    Each sequence's features keep their random scale; only directions are averaged. The test side
    is exact given Gamma's traces. Deterministic: the averages over pretraining sequences use fixed
    quasi-random points, and `details["numerical_error"]` (and `"numerical_error_idg"`) is their
    absolute standard error from eight shifted copies.

    Args:
        pretraining: prompt law, sequences and tasks; d >= 3.
        ridge: strength lambda >= 0; 0 is the minimum-norm solution.
        test: another prompt at test time, of the same d; icl and the k's are then that prompt's.

    Returns:
        A `Risk`; its `effective_ridge` is the ridge in units of the mean weighted signal, lambda/a.
        At n = d(d+1) without ridge both errors are inf, with a warning.

    Raises:
        InputError: d < 3, a negative ridge, or a test prompt of another d.
        ConvergenceError: the fixed point was not reached.

    Validity: relative error 1 to 2 % for d >= 16 and tasks >= d/2, also with correlations over the
    whole context; 3 % at d = 10, 7 % at d = 6. With fewer tasks up to 1.2/d in icl, and idg is too
    high by about as much. Source: docs/theory/mixture.md, section 7 for the errors.

    >>> prompt = Prompt(d=32, length=128, kernel="exp:2", query="continues", noise=0.01)
    >>> round(mixture(Pretraining(prompt, sequences=4096, tasks=320), ridge=1e-8).icl, 2)
    0.47
    """
    prompt, d = pretraining.prompt, pretraining.prompt.d
    tested = prompt if test is None else test
    number(ridge, "ridge")
    if tested.d != d:
        raise InputError(f"the test prompt has d = {tested.d}; pretraining has d = {d}")
    if d < SMALLEST:
        raise InputError(f"the mixture theory needs d >= {SMALLEST}; got {d}")
    if ridge == 0 and pretraining.sequences == d * (d + 1):
        return _threshold(tested)
    found = solve(sequences(prompt), spectrum(d, pretraining.tasks), pretraining.tau, ridge, prompt.noise, d)
    icl, error = _estimate(fresh_task_risk(found.traces, tested))
    idg, error_idg = _estimate(fresh_task_risk(found.traces, prompt) + found.excess)
    cautions = _cautions(pretraining, max(error / icl, error_idg / idg))
    k0, k1, k2 = tested.statistics
    return Risk(
        icl=icl,
        idg=idg,
        method="mixture",
        valid=not any(c.values["expected_error"] > TOLERATED for c in cautions),
        warnings=cautions,
        k0=k0,
        k1=k1,
        k2=k2,
        effective_ridge=float(found.effective_ridge.mean()),
        details={"numerical_error": error, "numerical_error_idg": error_idg},
    )


def _estimate(copies: np.ndarray) -> tuple[float, float]:
    """Mean over the copies of the points and its standard error."""
    return float(copies.mean()), float(copies.std(ddof=1)) / math.sqrt(SHIFTS)


def _threshold(tested: Prompt) -> Risk:
    k0, k1, k2 = tested.statistics
    message = "the ridgeless error diverges at n = d(d+1) sequences, where they just determine Gamma"
    caution = Caution("threshold", message, {"sequences": tested.d * (tested.d + 1)})
    return Risk(math.inf, math.inf, "mixture", warnings=(caution,), k0=k0, k1=k1, k2=k2)


def _cautions(pretraining: Pretraining, numerical: float) -> tuple[Caution, ...]:
    """What is known of the theory's own error, from simulations (docs/theory/mixture.md section 7)."""
    d, tasks = pretraining.prompt.d, pretraining.tasks
    cautions = []
    few = tasks is not None and tasks < d / 2
    expected = 0.02 + (1.2 if few else 0.3) / d
    if expected > TOLERATED / 2:
        count = "" if tasks is None else f" and tasks = {tasks}"
        message = f"the mixture theory's own error is of order {100 * expected:.0f} % at d = {d}{count}"
        cautions.append(Caution("finite_size", message, {"expected_error": expected, "d": d}))
    if numerical > TOLERATED / 10:
        message = f"the average over sequences has a numerical error of {100 * numerical:.2g} %"
        cautions.append(Caution("numerical_error", message, {"expected_error": numerical}))
    return tuple(cautions)


def expected_error(weak: Risk, mixture: Risk) -> float:
    """Relative error of the weak limit, judged by the mixture theory, whose own error is a few per cent.

    The larger of the differences in icl and idg. Where both are infinite it is 0, where one is it is inf.
    """
    pairs = [(weak.icl, mixture.icl)]
    if weak.idg is not None and mixture.idg is not None:
        pairs.append((weak.idg, mixture.idg))
    return max(_relative_difference(a, b) for a, b in pairs)


def _relative_difference(a: float, b: float) -> float:
    if a == b:
        return 0.0
    return abs(a - b) / abs(b) if math.isfinite(b) else math.inf


def choose(weak: Risk, mixture: Risk) -> tuple[str, str]:
    """Which of two predictions of one setting to report, "weak" or "mixture", and a sentence why.

    The weak limit is kept where it agrees with the mixture theory to the latter's own accuracy, since it
    is the published, asymptotically exact one; otherwise fluctuations of single sequences matter.
    """
    error = expected_error(weak, mixture)
    size = "infinitely far" if math.isinf(error) else f"{100 * error:.2g} %"
    if error <= OWN_ERROR:
        return "weak", f"the weak limit agrees with the mixture theory to {size}"
    return "mixture", f"the weak limit is {size} off the mixture theory: single sequences fluctuate too much for it"
