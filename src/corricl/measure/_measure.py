"""How many independent examples a user's own sequences are worth."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..prompt import Caution, number, whole
from ..theory.linear import effective_length
from ._cautions import FATAL, cautions
from ._estimate import Estimates, Estimator, effective_dimension
from ._fit import Fit, best, fit_all
from ._input import arrange, read, windows
from ._intervals import DRAWS, Interval, errors, influence, interval, unbiased
from ._products import moments, products
from ._unrestricted import possible, unrestricted
from ._whiten import whitening

SCALES = ("channel", "whiten")
JACKKNIFED = 4
"""Windows from which on the jackknife takes off more bias than it adds noise."""


class Band(NamedTuple):
    """Autocorrelation at lags 0..length with its pointwise interval, shape (length+1,) each."""

    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Preprocessing:
    """What was done to the data before anything was estimated.

    Attributes:
        mean: what was taken off.
        scale: channel (each to unit variance) or whiten (by the root of the shrunk covariance).
        shrinkage: of Ledoit and Wolf's covariance, None where it was not used.
        dimension: (tr S)^2/tr S^2 of the channels' covariance S after scaling, at most d.
    """

    mean: str
    scale: str
    shrinkage: float | None
    dimension: float


@dataclass(frozen=True)
class Measurement:
    """What real sequences say about a prompt of `length` tokens cut from them.

    Attributes:
        k2: tr(K^2)/length, 1 for independent tokens.
        effective_length: independent tokens that the context is worth, l(1+noise)/(k2+noise).
        mean_length: independent tokens for a *mean* over the context, l/(1 + 2 sum (1-t/l) r(t)); another number.
            None where its estimate is not positive.
        unrestricted: k2 of tokens 1..length with a correlation, mean and variance of its own for every position; None
            with fewer than 64 sequences or more than 256 tokens. Where it differs from k2, tokens are not stationary.
        k0, k1: k'k and k'Kk of a query that continues the sequence.
        autocorrelation: r(t) at lags 0..length with a pointwise band.
        fits: a kernel of every family; `kernel` is the SPEC of the one to use.
        length, sequences, tokens, d: sizes; tokens counts all of all sequences.
        noise: label noise that effective_length assumes.
        preprocessing: what was done to the data first.
        valid: False where no effective length is worth quoting.
        warnings: why, and what else makes the numbers doubtful.
    """

    k2: Interval
    effective_length: Interval
    k0: Interval
    k1: Interval
    mean_length: Interval | None
    unrestricted: Interval | None
    length: int
    sequences: int
    tokens: int
    d: int
    noise: float
    level: float
    kernel: str
    fits: tuple[Fit, ...]
    preprocessing: Preprocessing
    valid: bool
    warnings: tuple[Caution, ...]
    autocorrelation: Band = field(repr=False)


def measure(
    source: Any,
    *,
    length: int | None = None,
    stride: int | None = None,
    axes: str | None = None,
    scale: str = "channel",
    noise: float = 0.01,
    level: float = 0.95,
    seed: int = 0,
) -> Measurement:
    """k0, k1, k2 and the effective context length of real sequences, corrected for estimation noise, with intervals.

    k2 = 1 + 2 sum_t (1 - t/length) r(t)^2, r(t) the correlation of tokens t apart pooled over channels, sequences and
    positions. Squares of r(t) come from products of tokens that share nothing, so that noise adds no bias.

    Args:
        source: a path (.npy, .npz, .csv, .parquet) or an array of shape (sequences, length, channels),
            (length, channels) or (length,).
        length: context tokens of the prompt; default the length of the sequences, needed for one series.
        stride: cuts one series into windows that start this far apart, taken as independent; default none: every
            pair of tokens at each lag is used.
        axes: what the axes of an array of two are, where it is ambiguous.
        scale: channel (unit variance each) or whiten (by a shrunk covariance).
        noise: label-noise variance >= 0 for the effective length.
        level: of the intervals, between 0 and 1.
        seed: of the bootstrap.

    Returns:
        A `Measurement`. Estimates are not cut: about half of all estimates of independent tokens lie below 1.

    Raises:
        InputError: data that cannot be measured; the message says which and why.

    Validity: stationary tokens whose channels share one correlation function; sequences independent of each
    other. Bias and coverage: docs/theory/measure.md.

    >>> import numpy as np
    >>> noise = np.random.default_rng(0).standard_normal((50, 64, 4))
    >>> found = measure(noise)
    >>> found.k2.low <= 1.0 <= found.k2.high
    True
    """
    noise, level = number(noise, "noise"), number(level, "level", positive=True)
    if level >= 1:
        raise InputError(f"level must lie between 0 and 1; got {level}")
    values, length = _sequences(source, length, stride, axes)
    mean, variance = moments(values)
    transform, shrinkage = whitening(values, mean, variance, scale)
    gathered = products(values, length, transform, mean)
    estimator = Estimator(gathered, effective_dimension(gathered))
    full, without = estimator.full(), estimator(1 - estimator.sets)
    found = intervals(estimator, full, without, noise, level, seed)
    free = None
    if possible(values, length):
        scaling = 1 / np.sqrt(variance) if transform is None else transform
        free = _free(unrestricted(values, length, scaling, estimator.dimension), level, seed, length)
    fits = fit_all(full.correlation)
    warnings = cautions(estimator, full, without, found["k2"], free)
    size, tokens = values.shape[0], values.shape[0] * values.shape[1]
    return Measurement(
        **found,
        unrestricted=free,
        length=length,
        sequences=size,
        tokens=tokens,
        d=values.shape[2],
        noise=noise,
        level=level,
        kernel=best(fits).kernel,
        fits=fits,
        preprocessing=Preprocessing("of each channel over all data", scale, shrinkage, estimator.dimension),
        valid=not any(caution.code in FATAL for caution in warnings),
        warnings=warnings,
        autocorrelation=_band(full, without, level),
    )


def _sequences(source: Any, length: int | None, stride: int | None, axes: str | None) -> tuple[np.ndarray, int]:
    """The data, shape (sequences, tokens, channels), and the context length."""
    values = arrange(read(source) if isinstance(source, str | Path) else source, axes)
    sequences, size, _ = values.shape
    if length is None and sequences == 1:
        raise InputError("one sequence is a series to be cut into windows: give the length of a window")
    context = size if length is None else whole(length, "length")
    if context < 2 or size < 2:
        raise InputError("the length must be at least 2: a single token has no neighbour to correlate with")
    if context > size:
        raise InputError(f"length {context} is more than the {size} tokens of a sequence")
    values = windows(values, context, None if stride is None else whole(stride, "stride"))
    if len(values) == 1 and size < 8:
        raise InputError(f"a series of {size} tokens is too short: at least 8 are needed")
    return values, context


def intervals(
    estimator: Estimator, full: Estimates, without: Estimates, noise: float, level: float, seed: int
) -> dict[str, Any]:
    """k2, k0, k1, the effective length and that of a mean, each with its interval."""
    length, sets = estimator.length, len(without.k2)
    drawn = np.random.default_rng(seed).standard_normal((DRAWS, sets))
    jackknifed = estimator.products.pairs[:, 0].sum() >= JACKKNIFED * length
    query = np.r_[0.0, np.ones(length)]
    forms = (
        ("k2", 0.0, estimator.weights, (1.0, length)),
        ("k0", 1.0, query, (0.0, length)),
        ("k1", 1.0, None, (0.0, length**2)),
    )
    out: dict[str, Any] = {}
    for name, base, weights, bounds in forms:
        value, parts = float(getattr(full, name)), getattr(without, name)
        quadratic = None if weights is None else estimator.quadratic(full, weights)
        error = errors(drawn, influence(parts), quadratic)
        out[name] = interval(unbiased(value, parts) if jackknifed else value, error, base, bounds, level)
    worth = [float(effective_length(length, noise, x)) for x in (out["k2"].estimate, out["k2"].high, out["k2"].low)]
    out["effective_length"] = Interval(*worth)
    spread, parts = float(1 + full.correlation @ estimator.weights), 1 + without.correlation @ estimator.weights
    found = interval(spread, errors(drawn, influence(parts)), 0.0, (0.0, length), level)
    positive = found.estimate > 0 and found.low > 0
    out["mean_length"] = Interval(*(length / x for x in (found.estimate, found.high, found.low))) if positive else None
    return out


def _free(found: tuple[float, np.ndarray, np.ndarray], level: float, seed: int, length: int) -> Interval:
    value, parts, quadratic = found
    drawn = np.random.default_rng(seed).standard_normal((DRAWS, len(parts)))
    error = errors(drawn, influence(parts), quadratic)
    return interval(unbiased(value, parts), error, 0.0, (1.0, length), level)


def _band(full: Estimates, without: Estimates, level: float) -> Band:
    """Pointwise normal intervals from the jackknife."""
    from scipy.special import ndtri, stdtrit

    error = np.sqrt((influence(without.correlation) ** 2).sum(0))
    half = (
        stdtrit(len(without.k2) - 1, (1 + level) / 2) * error if len(without.k2) > 1 else ndtri((1 + level) / 2) * error
    )
    return Band(full.correlation, np.maximum(full.correlation - half, -1.0), np.minimum(full.correlation + half, 1.0))
