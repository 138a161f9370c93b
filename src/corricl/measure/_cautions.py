"""What makes a measurement doubtful, in plain words."""

from __future__ import annotations

import numpy as np

from ..prompt import Caution
from ._estimate import Estimates, Estimator
from ._intervals import Interval, influence

FEW = 8
"""Windows below which an interval means little."""
KPSS = 0.739
"""1 % point of the statistic of Kwiatkowski, Phillips, Schmidt and Shin for a constant level, one channel."""
SLOW, ENDLESS = 0.1, 0.3
"""Mean correlation at the far half of the lags from which on data forget slowly, and one series never."""


def cautions(
    estimator: Estimator, full: Estimates, without: Estimates, k2: Interval, free: Interval | None
) -> tuple[Caution, ...]:
    """Everything that a reader of the measurement must know; see `FATAL` for what forbids an effective length."""
    found = [
        _few_windows(estimator),
        _forgets_slowly(estimator, full, without),
        _drifts(estimator),
        _unsteady(estimator),
        _not_stationary(k2, free),
        _below_one(k2),
        _last_lag(estimator),
    ]
    return tuple(caution for caution in found if caution is not None)


FATAL = ("never_forgets", "drifts")
"""Cautions with which no effective length is worth quoting."""


def _few_windows(estimator: Estimator) -> Caution | None:
    windows = float(estimator.products.pairs[:, 0].sum()) / estimator.length
    if windows >= FEW:
        return None
    message = (
        f"the data hold {windows:.3g} windows of {estimator.length} tokens: lags near the window's length are hardly "
        f"observed and the intervals too short; measure more data or a shorter --length"
    )
    return Caution("few_windows", message, {"windows": windows})


def _forgets_slowly(estimator: Estimator, full: Estimates, without: Estimates) -> Caution | None:
    """Mean correlation at lags from length/2 on, in standard errors."""
    half = slice((estimator.length + 1) // 2, estimator.length)
    weight = estimator.weights[half]
    if not weight.sum():
        return None
    tail = float(weight @ full.correlation[half] / weight.sum())
    parts = without.correlation[:, half] @ weight / weight.sum()
    error = float(np.sqrt((influence(parts) ** 2).sum()))
    if tail < max(SLOW, 3 * error):
        return None
    values = {"tail": tail, "stderr": error}
    start = f"tokens more than half a window apart still correlate by {tail:.2g}"
    if estimator.products.whole or tail < ENDLESS:
        message = (
            f"{start}: k2 grows with the length, so that the effective length holds for {estimator.length} tokens only "
            f"and a longer prompt of this kind gains little (each sequence may have a level of its own)"
        )
        return Caution("slow", message, values)
    message = (
        f"{start}: this series does not forget within a window, its k2 is a matter of where the data were cut, and no "
        f"effective length is worth quoting; take off a trend, take differences, or measure at a larger length"
    )
    return Caution("never_forgets", message, values)


def _drifts(estimator: Estimator) -> Caution | None:
    """Partial sums of one series against what short memory allows, pooled over channels."""
    p = estimator.products
    if len({block.first for block in p.blocks}) > 1 or p.whole:
        return None
    _, mean = estimator.scaled(np.ones((1, len(p.blocks))))
    tokens = p.pairs[:, 0].sum()
    variance = p.lagged[:, 0].sum(0) / tokens
    wandering = float(((p.sums.cumsum(0) ** 2).mean(0) / variance).mean())
    expected = -float(mean[0]) * tokens**2  # (tokens times) the long-run variance, from lags below the gap
    if expected <= 0 or wandering / expected < 1 / 6 + (KPSS - 1 / 6) / np.sqrt(estimator.dimension):
        return None
    statistic = wandering / expected
    message = (
        f"the level of the series drifts: the squares of its partial sums are {6 * statistic:.2g} times those of a "
        f"series that forgets within {p.gap} tokens. A trend, or memory without end: k2 is then a matter of where the "
        f"data were cut, and no effective length is worth quoting; take off the trend or take differences"
    )
    return Caution("drifts", message, {"statistic": statistic, "memory": float(p.gap)})


def _unsteady(estimator: Estimator) -> Caution | None:
    """Variance of the first against the second half of one series."""
    p = estimator.products
    if p.whole or len({block.first for block in p.blocks}) > 1:
        return None
    power = (estimator.sets @ p.lagged[:, 0]) / (estimator.sets @ p.pairs[:, :1])
    power = (power / power.mean(0)).mean(1)
    half = len(power) // 2
    first, second = power[:half], power[-half:]
    error = float(np.sqrt(first.var(ddof=1) / half + second.var(ddof=1) / half)) if half > 1 else np.inf
    change = float(second.mean() - first.mean())
    if abs(change) < max(4 * error, 0.2):
        return None
    message = (
        f"the variance changes by {change:+.0%} from the first half of the series to the second: one K for all of it "
        f"is an average over what changes"
    )
    return Caution("unsteady", message, {"change": change, "stderr": error})


def _not_stationary(k2: Interval, free: Interval | None) -> Caution | None:
    if free is None or (free.low <= k2.high and k2.low <= free.high) or abs(free.estimate / k2.estimate - 1) < 0.05:
        return None
    message = (
        f"k2 is {k2.estimate:.4g} if correlations depend on the lag alone and {free.estimate:.4g} with every pair of "
        f"positions for itself: the sequences are not stationary, and the second number (unrestricted) is theirs"
    )
    return Caution("not_stationary", message, {"k2": k2.estimate, "unrestricted": free.estimate})


def _below_one(k2: Interval) -> Caution | None:
    if k2.estimate >= 1:
        return None
    message = (
        f"the estimate of k2 is {k2.estimate:.4g}, below the least possible value 1: an unbiased estimate for "
        f"independent tokens falls below 1 half of the time, so it is reported as it is; only the interval is cut to "
        f"[1, length]"
    )
    return Caution("below_one", message, {"k2": k2.estimate})


def _last_lag(estimator: Estimator) -> Caution | None:
    if estimator.products.pairs[:, -1].any():
        return None
    message = (
        f"no sequence is longer than {estimator.length} tokens, so that the query's correlation with the first token "
        f"was not observed; it is taken to be that of the lag before"
    )
    return Caution("last_lag", message, {})
