"""The weak-correlation limit asked of a noun: a `Pretraining`, or ratios without sizes."""

from __future__ import annotations

import math

import numpy as np

from ..errors import InputError
from ..kernels import Kernel, Query, Statistics, limit_statistics, parse
from ..prompt import Caution, Pretraining, Prompt, Risk, number
from . import linear

TOLERATED = 0.1
"""Expected relative error beyond which a result is not valid."""

DIAGONALISED = 2048
"""Longest context whose kernel is diagonalised for the finite-size warning."""


def weak(pretraining: Pretraining, ridge: float = 0.0, test: Prompt | None = None) -> Risk:
    """ICL and IDG error of reduced linear attention as d -> infinity with k0, k1, k2 of order one.

    Args:
        pretraining: prompt law, sequences and tasks; only its ratios and (k0, k1, k2) enter.
        ridge: strength >= 0; 0 is the minimum-norm solution.
        test: another prompt at test time, of the same d; icl and the k's are then that prompt's.

    Returns:
        A `Risk`. Validity: the warnings carry a rough size of the finite-size error, `expected_error`,
        of order (4/d + v)/max(tau, 1) + 1/tasks, with v the relative variance of y.Ky; `valid` is False where
        it passes 10 %. The factors are a rule of thumb: `auto` compares with the mixture theory instead.
        At tau = 1 without ridge both errors are inf.

    Source: docs/theory/weak-limit.md.
    """
    prompt = pretraining.prompt
    if test is not None and test.d != prompt.d:
        raise InputError(f"the test prompt has d = {test.d}; pretraining has d = {prompt.d}")
    tested = prompt if test is None else test
    here = _Side(prompt.alpha, prompt.noise, prompt.statistics)
    there = here if test is None else _Side(tested.alpha, tested.noise, tested.statistics)
    cautions = _finite_size(pretraining, tested)
    return _risk(here, there, pretraining.tau, pretraining.kappa, ridge, tested.d, cautions)


def limit(
    alpha: float,
    tau: float,
    kappa: float = math.inf,
    *,
    kernel: Kernel | str = "iid",
    query: Query | str = "independent",
    noise: float = 0.0,
    ridge: float = 0.0,
) -> Risk:
    """The same limit from ratios alone, with the kernel's statistics at infinite length.

    Raises:
        InputError: ratios out of range, or a kernel whose k0, k1 or k2 grows with the length.
    """
    for name, value in (("alpha", alpha), ("tau", tau)):
        number(value, name, positive=True)
    if not kappa > 0:
        raise InputError(f"kappa must be > 0 (inf is allowed); got {kappa}")
    found = limit_statistics(parse(kernel) if isinstance(kernel, str) else kernel, Query.parse(query))
    side = _Side(alpha, number(noise, "noise"), found)
    return _risk(side, side, tau, kappa, ridge, None, ())


class _Side(tuple[float, float, Statistics]):
    """alpha, noise and statistics of one side, pretraining or test."""

    def __new__(cls, alpha: float, noise: float, statistics: Statistics) -> _Side:
        return super().__new__(cls, (alpha, noise, statistics))

    @property
    def couplings(self) -> linear.Couplings:
        return linear.couplings(self[0], self[1], *self[2])

    @property
    def with_independent_query(self) -> linear.Couplings:
        return linear.couplings(self[0], self[1], 0.0, 0.0, self[2].k2)


def _risk(
    here: _Side, there: _Side, tau: float, kappa: float, ridge: float, d: int | None, cautions: tuple[Caution, ...]
) -> Risk:
    number(ridge, "ridge")
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
        trained = linear.state(here.couplings, tau, kappa, ridge)
        icl = float(linear.fresh_task_error(trained, there.couplings))
    at_threshold = tau == 1 and ridge == 0
    if not (math.isfinite(icl) or at_threshold):
        raise InputError("these sizes, ratios, noise or ridge are so extreme that the weak limit overflows")
    alpha, noise, (k0, k1, k2) = there
    plain = linear.state(here.with_independent_query, tau, kappa, ridge)
    gain = float(linear.fresh_task_error(plain, there.with_independent_query)) - icl
    size = alpha if d is None else alpha * d  # lengths in units of d where there is no d
    effective = float(linear.effective_length(size, noise, k2))
    equivalent = None
    if here == there and math.isfinite(icl):
        unit = 1.0 if d is None else d
        equivalent = unit * float(linear.equivalent_alpha(icl, effective / unit, noise, tau, kappa, ridge))
    if at_threshold:
        message = "the ridgeless error diverges at tau = 1 (n = d^2 sequences); at finite d the peak is at n = d(d+1)"
        cautions = (*cautions, Caution("threshold", message, {"tau": tau, "ridge": ridge}))
    return Risk(
        icl=icl,
        idg=float(trained.idg),
        method="weak",
        valid=all(c.code != "finite_size" or c.values["expected_error"] <= TOLERATED for c in cautions),
        warnings=cautions,
        k0=k0,
        k1=k1,
        k2=k2,
        effective_length=effective,
        equivalent_length=equivalent,
        query_gain=gain if math.isfinite(gain) else None,
        effective_ridge=float(trained.effective_ridge),
    )


def _finite_size(pretraining: Pretraining, tested: Prompt) -> tuple[Caution, ...]:
    """Warn where the scales of single sequences fluctuate too much for the limit to hold."""
    prompt = pretraining.prompt
    own = max(_label_fluctuation(prompt), _label_fluctuation(tested))
    expected = (4 / prompt.d + own) / max(pretraining.tau, 1.0)
    expected += 0.0 if pretraining.tasks is None else 1 / pretraining.tasks
    k2, length = max((p.statistics.k2, p.length) for p in (prompt, tested))
    cautions = []
    if expected > TOLERATED / 4:
        message = f"finite-size error of order {100 * expected:.0f} % expected at d = {prompt.d}, length = {length}"
        values = {"expected_error": expected, "d": prompt.d, "length": length, "k2": k2}
        cautions.append(Caution("finite_size", message, values))
    if own > TOLERATED:
        message = (
            f"correlations are strong: the second moment of a context's features varies by {100 * own**0.5:.0f} % from "
            f"sequence to sequence (k2 = {k2:.3g}, length = {length}); the limit takes it as fixed"
        )
        cautions.append(Caution("strong_correlation", message, {"variance": own, "k2": k2, "length": length}))
    return tuple(cautions)


def _label_fluctuation(prompt: Prompt) -> float:
    """Relative variance of y.Ky given the task's norm, 2 tr(K(K+noise))^2/(tr K(K+noise))^2.

    It vanishes in a long context unless an eigenvalue of K grows as sqrt(length), which k2 alone does not show.
    Where the eigenvalues cost too much, that of an exponential kernel of the same k2 stands in.
    """
    if prompt.length > DIAGONALISED:
        return (2 + 5 * (prompt.statistics.k2 - 1)) / prompt.length
    values = prompt.basis.eigenvalues
    power = values * (values + prompt.noise)
    return float(2 * (power @ power) / power.sum() ** 2)


def sequences_for(target: float, pretraining: Pretraining, ridge: float = 0.0) -> int:
    """Fewest pretraining sequences whose weak-limit ICL error is at most `target`, all else as given.

    Scans a dense geometric grid first, because the error peaks at n = d^2, and then bisects.

    Raises:
        InputError: when no number up to 10^6 d^2 is enough; the message gives the least error found.
    """
    prompt, d = pretraining.prompt, pretraining.prompt.d
    side = _Side(prompt.alpha, prompt.noise, prompt.statistics).couplings

    def error(n: np.ndarray) -> np.ndarray:
        return linear.fresh_task_error(linear.state(side, n / d**2, pretraining.kappa, ridge), side)

    return _first(error, np.unique(np.geomspace(1, 1e6 * d**2, 4000).round()), target, "number of sequences")


def length_for(target: float, pretraining: Pretraining, ridge: float = 0.0) -> int:
    """Shortest context whose weak-limit ICL error is at most `target`, all else as given.

    Raises:
        InputError: when no length up to 65536 is enough, or the kernel or query has a fixed length.
    """
    prompt = pretraining.prompt
    if prompt.kernel.size is not None or prompt.query.vector is not None:
        raise InputError("a kernel or query read from a file has one length only")

    def error(lengths: np.ndarray) -> np.ndarray:
        sides = [prompt.replace(length=int(n)) for n in np.atleast_1d(lengths)]
        k0, k1, k2 = np.array([p.statistics for p in sides]).T
        alpha = np.atleast_1d(lengths) / prompt.d
        return linear.icl(alpha, pretraining.tau, pretraining.kappa, prompt.noise, ridge, k0, k1, k2)

    return _first(error, np.unique(np.geomspace(1, 65536, 120).round()), target, "length")


def _first(error: object, sizes: np.ndarray, target: float, what: str) -> int:
    number(target, "target", positive=True)
    values = error(sizes)  # type: ignore[operator]
    reached = values <= target
    if not reached.any():
        best = int(np.argmin(values))
        raise InputError(
            f"no {what} up to {sizes[-1]:.0f} brings the error to {target:g}; "
            f"the least is {values[best]:.6g}, at {sizes[best]:.0f}"
        )
    first = int(np.argmax(reached))
    low, high = (int(sizes[first - 1]) if first else 0), int(sizes[first])
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if error(np.array([float(middle)]))[0] <= target else (middle, high)  # type: ignore[operator]
    return high
