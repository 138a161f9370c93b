"""The three numbers through which correlations enter the weak-correlation theory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import InputError

if TYPE_CHECKING:
    from ._base import Kernel
    from ._query import Query

_DENSE = 2048  # up to this length the matrix itself is cheap


class Statistics(NamedTuple):
    """k0 = k'k, k1 = k'Kk and k2 = tr(K^2)/length for the query correlations k and context matrix K."""

    k0: float
    k1: float
    k2: float


def ar1_statistics(phi: np.ndarray | float, length: np.ndarray | float) -> Statistics:
    """(k0, k1, k2) of the kernel phi^t with a continuing query, in closed form; broadcasts.

    With x = phi^2: k2 = (1+x)/(1-x) - 2x(1-x^l)/(l(1-x)^2), k0 = x(1-x^l)/(1-x),
    k1 = x(1+x-(2l+1)x^l+(2l-1)x^(l+1))/(1-x)^2. An exponential kernel has phi = exp(-1/xi).

    Args:
        phi: coefficient, -1 < phi < 1 (at |phi| = 1 the forms are 0/0; near it they lose digits, see
            `closed_form_is_accurate`).
        length: context length >= 1; inf gives the limit of a long context.

    >>> [round(float(k), 6) for k in ar1_statistics(0.5, 100)]
    [0.333333, 0.555556, 1.657778]
    """
    x = np.square(np.asarray(phi, dtype=np.float64))
    length = np.asarray(length, dtype=np.float64)
    long = np.isinf(length)
    size = np.where(long, 1.0, length)
    power = np.where(long, 0.0, x**size)
    rest = np.where(long, 0.0, 2 * x * (1 - power) / (size * (1 - x) ** 2))
    k2 = (1 + x) / (1 - x) - rest
    k0 = x * (1 - power) / (1 - x)
    k1 = x * (1 + x - (2 * size + 1) * power + (2 * size - 1) * power * x) / (1 - x) ** 2
    return Statistics(k0, k1, k2)  # type: ignore[arg-type] # arrays where the input is


def closed_form_is_accurate(phi: float) -> bool:
    """True where `ar1_statistics` keeps twelve digits (it divides by (1-phi^2)^2)."""
    return 1 - phi * phi > 1e-2


def statistics(kernel: Kernel, length: int, query: Query) -> Statistics:
    """(k0, k1, k2) of a kernel at a context length, by closed form, matrix or FFT as fits.

    Args:
        kernel: the token kernel.
        length: context length >= 1.
        query: the query's relation to the context.
    """
    closed = kernel.closed_statistics(length, query.gap) if query.vector is None else None
    if closed is not None:
        factor = query.strength**2
        return Statistics(factor * closed.k0, factor * closed.k1, closed.k2)
    vector = query.correlations(kernel, length)
    k0 = float(vector @ vector)
    if length > _DENSE and kernel.stationary:
        lags = kernel.correlation(np.array(1), np.arange(1, length + 1))
        weights = 2 * (1 - np.arange(length) / length)
        k2 = float(weights[1:] @ lags[1:] ** 2) + 1.0
        return Statistics(k0, _toeplitz_form(lags, vector), k2)
    matrix = kernel.matrix(length)
    return Statistics(k0, float(vector @ matrix @ vector), float(np.vdot(matrix, matrix)) / length)


def limit_statistics(kernel: Kernel, query: Query) -> Statistics:
    """(k0, k1, k2) as the context grows without bound.

    Closed form for exponential and AR(1) kernels; otherwise evaluated at growing lengths and
    extrapolated in 1/length.

    Raises:
        InputError: when the statistics do not settle (to 1e-6), as for kernels whose k2 grows with length.
    """
    if query.vector is not None or kernel.size is not None:
        raise InputError("a kernel or query read from a file has no infinite-length limit: give --d or --length")
    closed = kernel.closed_statistics(math.inf, query.gap)
    if closed is not None and all(map(math.isfinite, closed)):
        factor = query.strength**2
        return Statistics(factor * closed.k0, factor * closed.k1, closed.k2)
    previous = None
    for length in (1 << p for p in range(8, 18)):
        if length > _DENSE and not kernel.stationary:
            break
        one, two = (np.array(statistics(kernel, size, query)) for size in (length, 2 * length))
        estimate = 2 * two - one
        if previous is not None and np.allclose(estimate, previous, rtol=1e-6, atol=1e-9):
            return Statistics(*estimate.tolist())
        previous = estimate
    raise InputError(
        f"kernel '{kernel.spec}' with query '{query.spec}' has no weak-correlation limit: "
        "k0, k1 or k2 does not settle as the length grows; give --d and --length"
    )


def _toeplitz_form(lags: np.ndarray, vector: np.ndarray) -> float:
    """v'Tv for the symmetric Toeplitz matrix T with first row `lags`, through the autocorrelation of v."""
    size = len(vector)
    spectrum = np.abs(np.fft.rfft(vector, 2 * size)) ** 2
    autocorrelation = np.fft.irfft(spectrum, 2 * size)[:size]
    return float(2 * lags @ autocorrelation - lags[0] * autocorrelation[0])
