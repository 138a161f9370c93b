"""The estimated correlations as a matrix that a prompt can have."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._measure import Measurement

STEPS = 200


class EstimatedKernel(NamedTuple):
    """Correlations of the context and, last, of the query that continues it.

    Attributes:
        matrix: shape (length+1, length+1), positive semidefinite, unit diagonal.
        lags: lags from which on r(t) was taken as 0, for it is not told from noise there.
        projected: largest change of an entry that made the matrix positive semidefinite.
    """

    matrix: np.ndarray
    lags: int
    projected: float


def estimated_kernel(measurement: Measurement) -> EstimatedKernel:
    """The measured autocorrelation as a matrix, noise at long lags taken off, projected to the nearest allowed one.

    Beyond m, the last lag whose interval does not hold 0, r(t) falls off linearly to 0 at 2m (the flat-top taper of
    McMurry and Politis, 2010). The projection alternates between positive semidefinite matrices and unit diagonals
    (Higham, 2002).
    """
    band = measurement.autocorrelation
    lag = np.arange(len(band.estimate))
    sure = (band.low > 0) | (band.high < 0)
    m = int(_last_run(sure))
    tapered = band.estimate * np.clip(2 - lag / m, 0, 1) if m else np.where(lag == 0, 1.0, 0.0)
    plain = tapered[np.abs(lag[:, None] - lag[None, :])]
    matrix = nearest_correlation(plain)
    return EstimatedKernel(matrix, min(2 * m, len(lag)) if m else 1, float(np.abs(matrix - plain).max()))


def _last_run(sure: np.ndarray) -> int:
    """Last lag before a run of lags that hold 0, 2.5 log10(length) or more of them; 0 where the run starts at once."""
    run = max(5, int(5 * np.log10(len(sure)))) // 2
    lag = 1
    while lag < len(sure) and sure[lag : lag + run].any():
        lag += 1
    return lag - 1


def nearest_correlation(matrix: np.ndarray) -> np.ndarray:
    """Nearest positive semidefinite matrix of unit diagonal (Higham, 2002), to rounding.

    Args:
        matrix: symmetric, unit diagonal.
    """
    current, correction = matrix.copy(), np.zeros_like(matrix)
    for _ in range(STEPS):
        values, vectors = np.linalg.eigh(current - correction)
        if values[0] > -1e-9:
            break
        projected = (vectors * np.maximum(values, 0.0)) @ vectors.T
        correction = projected - (current - correction)
        current = projected.copy()
        np.fill_diagonal(current, 1.0)
    values, vectors = np.linalg.eigh(current)
    projected = (vectors * np.maximum(values, 0.0)) @ vectors.T
    scale = 1 / np.sqrt(np.diagonal(projected))
    out = projected * scale[:, None] * scale
    np.fill_diagonal(out, 1.0)
    return (out + out.T) / 2
