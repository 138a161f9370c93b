"""Does Gamma* concentrate? Its scale and its risk across pretrainings of growing size, with fitted powers of d."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..prompt import Estimate, Pretraining, whole
from ._powers import Power, Sample, log_mean, log_relative, log_variance, measure_power, settles
from ._replicates import Replicate, estimate, replicate

CONCENTRATES, DOES_NOT, UNDECIDED = "concentrates", "does not concentrate", "undecided"
SETTLES, RUNS_AWAY = "settles", "runs away"

QUANTITIES = {"trace": "tr Gamma/d", "square": "|Gamma|^2/d", "icl": "the exact risk"}
"""Fields of a `Replicate` that are followed, and what they are."""

SLOWEST = -1.0
"""The relative variance is said not to fall only where a power of d this slow is excluded; -2 is usual."""


class Trend(NamedTuple):
    """One quantity against d.

    Attributes:
        means: mean and standard error at each size.
        variances: sample variance across replicates at each size.
        mean_power, variance_power: fitted powers of d of the mean and of the variance.
        relative_power: that of variance/mean^2, on which the verdict rests: a scale that shrinks takes
            its variance with it.
        verdict: "concentrates", "does not concentrate" or "undecided".
        scale: "settles", "runs away" or "undecided", for the mean.
    """

    means: tuple[Estimate, ...]
    variances: tuple[float, ...]
    mean_power: Power
    variance_power: Power
    relative_power: Power
    verdict: str
    scale: str


@dataclass(frozen=True)
class Concentration:
    """How the minimiser of a family of pretrainings behaves as d grows.

    Attributes:
        sizes: the d of each pretraining.
        trace, square, icl: tr Gamma1*/d, |Gamma*|_F^2/d and the exact risk.
        verdict: "concentrates" where every quantity does and its mean settles, "does not concentrate" where
            one does not or its mean runs away, else "undecided".
        summary: the same as one sentence.
        replicates: pretrainings at each size.
        residual: largest relative residual of the solves.
    """

    sizes: tuple[int, ...]
    trace: Trend
    square: Trend
    icl: Trend
    verdict: str
    summary: str
    replicates: int
    residual: float


def concentration(
    family: Callable[[int], Pretraining],
    sizes: Sequence[int],
    *,
    ridge: float = 0.0,
    replicates: int = 40,
    seed: int = 0,
    on_replicate: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Concentration:
    """Means and variances of the scale of Gamma* and of its exact risk across pretrainings, as powers of d.

    With weak correlations the three variances fall about as d^-2 and the means settle. Where correlations
    grow with the context, the mean of Gamma* itself runs away as a power of d, which no limit at fixed
    scale describes.

    Args:
        family: d to what is pretrained, such as `lambda d: Pretraining.from_ratios(d, 1, 2, kernel="exp:2")`.
        sizes: three or more different d.
        ridge: strength >= 0; 0 is the minimum-norm solution.
        replicates: R >= 4 independent pretrainings at each size.
        seed: replicate i at each size depends on (seed, i) and the size alone.
        on_replicate: called after each with (d, replicates made at this d).
        **options: devices, tolerance, max_steps, method: see `pretrain`.

    Returns:
        A `Concentration`; its verdicts hold over the sizes that were given, not beyond.

    Raises:
        InputError: fewer than three sizes, fewer than 4 replicates, a family of other sizes, or a quantity
            without spread or with a mean that is not positive.
        ConvergenceError: when a solve does not reach its tolerance.

    Validity:
        Fits are weighted least squares of logarithms. A sample variance of R values has relative variance
        2/(R-1) plus the excess kurtosis over R. Finite-size corrections bend the lines, so that the powers are
        those between the sizes given; `chi2` and `dof` say how well a power fits.

    Source: docs/which-theory.md.
    """
    chosen = tuple(sorted({whole(d, "sizes") for d in sizes}))
    if len(chosen) < 3 or len(chosen) < len(sizes):
        raise InputError(f"sizes must be three or more different d, to tell a power from a limit; got {list(sizes)}")
    if whole(replicates, "replicates") < 4:
        raise InputError(f"replicates must be at least 4, to tell how well a variance is known; got {replicates}")
    made: list[list[Replicate]] = []
    for d in chosen:
        pretraining = family(d)
        if pretraining.prompt.d != d:
            raise InputError(f"the family gives d = {pretraining.prompt.d} for d = {d}")
        made.append([])
        for index in range(replicates):
            made[-1].append(replicate(pretraining, ridge, seed=seed, index=index, **options))
            if on_replicate is not None:
                on_replicate(d, index + 1)
    values = {name: np.array([[getattr(r, name) for r in at] for at in made]) for name in QUANTITIES}
    trends = {name: trend(chosen, table, QUANTITIES[name]) for name, table in values.items()}
    verdict = _overall(list(trends.values()))
    residual = max(r.residual for at in made for r in at)
    return Concentration(
        chosen, **trends, verdict=verdict, summary=_summary(trends, verdict), replicates=replicates, residual=residual
    )


def trend(sizes: Sequence[int], values: np.ndarray, what: str = "the quantity") -> Trend:
    """Means, variances, powers of d and verdicts of one quantity.

    Args:
        sizes: d of each row, three or more.
        values: independent replicates, shape (sizes, R), R >= 4.
        what: the quantity's name, for messages.

    Raises:
        InputError: no spread, or a mean that is not positive.
    """
    for d, row in zip(sizes, values, strict=True):
        if not row.var() > 1e-24 * row.mean() ** 2:
            raise InputError(
                f"{what} does not vary between replicates at d = {d}, so that its variance has no power of d"
            )
        if not row.mean() > 0:
            raise InputError(
                f"the mean of {what} is not positive at d = {d}; more replicates or larger sizes are needed"
            )
    sample = Sample.of(values)
    mean, variance, relative = (measure_power(sizes, *f(sample)) for f in (log_mean, log_variance, log_relative))
    return Trend(
        means=tuple(estimate(list(row)) for row in values),
        variances=tuple(float(v) for v in sample.variance),
        mean_power=mean,
        variance_power=variance,
        relative_power=relative,
        verdict=_verdict(relative),
        scale={True: SETTLES, False: RUNS_AWAY, None: UNDECIDED}[settles(sizes, sample)],
    )


def _verdict(relative: Power) -> str:
    if relative.power + 2 * relative.stderr < 0:
        return CONCENTRATES
    return DOES_NOT if relative.power - 2 * relative.stderr > SLOWEST else UNDECIDED


def _overall(trends: list[Trend]) -> str:
    if any(t.verdict == DOES_NOT or t.scale == RUNS_AWAY for t in trends):
        return DOES_NOT
    return CONCENTRATES if all((t.verdict, t.scale) == (CONCENTRATES, SETTLES) for t in trends) else UNDECIDED


def _summary(trends: dict[str, Trend], verdict: str) -> str:
    """One sentence: the verdict, and every quantity that speaks against concentration with its power."""
    reasons = []
    for name, t in trends.items():
        if t.scale == RUNS_AWAY:
            reasons.append(f"the mean of {QUANTITIES[name]} runs away as d^{t.mean_power}")
        elif t.scale == UNDECIDED:
            reasons.append(f"whether the mean of {QUANTITIES[name]} settles is undecided (d^{t.mean_power})")
        if t.verdict != CONCENTRATES:
            reasons.append(f"the relative variance of {QUANTITIES[name]} goes as d^{t.relative_power}")
    if not reasons:
        reasons = [f"{QUANTITIES[n]}: relative variance d^{t.relative_power}" for n, t in trends.items()]
    return f"{verdict}: {'; '.join(reasons)}"
