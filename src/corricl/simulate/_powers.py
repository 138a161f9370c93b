"""Powers of d: weighted least squares of logarithms, with what is known of a sample variance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, polygamma

from ..errors import InputError

FIT = 4.0
"""How much worse in chi-square one of two laws of the mean must fit to be dismissed (two standard errors)."""

REACHED = 0.1
"""Relative distance to a fitted limit that counts as a finite-size correction."""


class Power(NamedTuple):
    """A fitted power of d with its standard error; chi2 over dof says how well a power fits."""

    power: float
    stderr: float
    chi2: float
    dof: int

    def __str__(self) -> str:
        return f"({self.power:.2f} ± {self.stderr:.2f})"


class Sample(NamedTuple):
    """What the fits need of R replicates at each of m sizes; shape (m,) each.

    `kurtosis` is the excess kurtosis, pooled over sizes and not below 0.
    """

    mean: np.ndarray
    variance: np.ndarray
    replicates: np.ndarray
    kurtosis: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> Sample:
        """From replicates, shape (m, R), R >= 4."""
        r = values.shape[1]
        centred = values - values.mean(1, keepdims=True)
        variance = values.var(1, ddof=1)
        fourth = (centred**4).sum(1) / variance**2
        unbiased = fourth * r * (r + 1) / ((r - 1) * (r - 2) * (r - 3)) - 3 * (r - 1) ** 2 / ((r - 2) * (r - 3))
        excess = np.full(len(values), max(0.0, float(unbiased.mean())))
        return cls(values.mean(1), variance, np.full(len(values), float(r)), excess)


def log_mean(sample: Sample) -> tuple[np.ndarray, np.ndarray]:
    """Logarithm of the mean and its standard error, shape (m,) each; means must be positive."""
    return np.log(sample.mean), np.sqrt(sample.variance / sample.replicates) / sample.mean


def log_variance(sample: Sample) -> tuple[np.ndarray, np.ndarray]:
    """Logarithm of the variance, its bias removed, and its standard error, shape (m,) each.

    For normal values (R-1) s^2/sigma^2 is chi-square: log s^2 has mean log sigma^2 + digamma(h) - log h and
    variance trigamma(h), h = (R-1)/2. Other values add their excess kurtosis over R to the variance.
    """
    half, extra = (sample.replicates - 1) / 2, sample.kurtosis / sample.replicates
    value = np.log(sample.variance) - (digamma(half) - np.log(half)) + extra / 2
    return value, np.sqrt(polygamma(1, half) + extra)


def log_relative(sample: Sample) -> tuple[np.ndarray, np.ndarray]:
    """Logarithm of variance/mean^2 and its standard error, shape (m,) each."""
    (variance, one), (mean, two) = log_variance(sample), log_mean(sample)
    return variance - 2 * mean, np.hypot(one, 2 * two)


def measure_power(sizes: Sequence[int] | np.ndarray, logs: np.ndarray, stderr: np.ndarray) -> Power:
    """Slope of logarithms against log d, weighted by their standard errors.

    Args:
        sizes: d, shape (m,), at least two different ones.
        logs: logarithms of what is a power of d, shape (m,).
        stderr: their standard errors > 0, shape (m,).

    Raises:
        InputError: fewer than two sizes.

    >>> round(measure_power([8, 16, 32], np.log([4.0, 1.0, 0.25]), np.full(3, 0.1)).power, 9)
    -2.0
    """
    x = np.log(np.asarray(sizes, dtype=np.float64))
    if len(set(x)) < 2:
        raise InputError("a power of d needs at least two sizes")
    slope, error, chi2 = _line(x, logs, stderr)[1:]
    return Power(slope, error, chi2, len(x) - 2)


def settles(sizes: Sequence[int] | np.ndarray, sample: Sample) -> bool | None:
    """Whether means approach a limit as m + c/d (True) or follow a power of d (False); None if it cannot be told.

    Both laws have two parameters, so that their chi-squares compare; where neither fits well the difference
    is taken in units of the better one's chi2/dof. Where they fit alike, a limit within 10 % of the last mean
    is taken as reached. A limit below half or above twice the last mean is none.
    """
    d = np.asarray(sizes, dtype=np.float64)
    logs, relative = log_mean(sample)
    power = measure_power(d, logs, relative)
    if abs(power.power) < 2 * power.stderr:
        return True
    limit, _, _, chi2 = _line(1 / d, sample.mean, relative * sample.mean)
    share = limit / sample.mean[-1]
    if not 0.5 < share < 2:
        return False
    margin = FIT * max(1.0, min(chi2, power.chi2) / max(power.dof, 1))
    if abs(chi2 - power.chi2) >= margin:
        return chi2 < power.chi2
    return True if abs(share - 1) < REACHED else None


def _line(x: np.ndarray, y: np.ndarray, stderr: np.ndarray) -> tuple[float, float, float, float]:
    """Weighted straight line: value at 0, slope, standard error of the slope, chi-square."""
    weight = stderr**-2.0
    centre, level = np.average(x, weights=weight), np.average(y, weights=weight)
    spread = float((weight * (x - centre) ** 2).sum())
    slope = float((weight * (x - centre) * (y - level)).sum()) / spread
    start = float(level - slope * centre)
    chi2 = float((weight * (y - start - slope * x) ** 2).sum())
    return start, slope, spread**-0.5, chi2
