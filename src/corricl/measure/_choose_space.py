"""Embeddings as they come, made into tokens that the theory knows: mean zero, one variance in every direction."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..errors import InputError
from ._whiten import whitening

PREPARATIONS = ("whiten", "centre", "none")
STEEPEST = 1e6
"""Ratio of standard deviations beyond which a covariance counts as singular."""


@dataclass(frozen=True)
class Space:
    """An affine map from raw embeddings to tokens with E|x|^2 = 1 over the pool, fitted on the pool alone.

    Attributes:
        preparation: whiten, centre or none.
        mean: taken off each embedding, shape (channels,).
        matrix: applied after that, shape (channels, d).
        dropped: channels that are constant in the pool.
        shrinkage: weight of the multiple of the identity in the covariance, Ledoit-Wolf; None if not whitened.
        effective_dimension: (tr S)^2 / tr S^2 of the pool's covariance S, before whitening.
    """

    preparation: str
    mean: np.ndarray = field(repr=False)
    matrix: np.ndarray = field(repr=False)
    dropped: int
    shrinkage: float | None
    effective_dimension: float

    @property
    def d(self) -> int:
        """Dimension of the tokens."""
        return self.matrix.shape[1]

    def tokens(self, embeddings: np.ndarray) -> np.ndarray:
        """Embeddings of shape (..., channels) as tokens of shape (..., d)."""
        return (embeddings - self.mean) @ self.matrix


def prepare(pool: np.ndarray, preparation: str = "whiten") -> Space:
    """Fit the map from embeddings to tokens.

    `whiten` takes off the mean, brings channels to unit variance and multiplies with S^{-1/2}, S their covariance
    shrunk towards a multiple of the identity (Ledoit and Wolf 2004), then scales. `centre` takes off the mean and
    scales: directions keep their variances. `none` takes the embeddings as they are; they should have mean zero
    and E|x|^2 = 1.

    Args:
        pool: embeddings, shape (n, channels), n >= 2.
        preparation: one of `PREPARATIONS`.
    """
    if preparation not in PREPARATIONS:
        raise InputError(f"unknown preparation '{preparation}'; allowed: {', '.join(PREPARATIONS)}")
    channels = pool.shape[1]
    varies = np.ptp(pool, axis=0) > 0
    if not varies.any():
        raise InputError("every channel of the pool is constant: there is nothing to choose by")
    centred = pool[:, varies] - pool[:, varies].mean(0)
    covariance = centred.T @ centred / len(pool)
    spread = float(np.trace(covariance) ** 2 / (covariance**2).sum())
    if preparation == "none":
        return Space("none", np.zeros(channels), np.eye(channels), 0, None, spread)
    shrinkage, root = None, np.eye(int(varies.sum()))
    if preparation == "whiten":
        shrinkage, root = _whitener(centred)
    root = root / np.sqrt(np.square(centred @ root).sum(1).mean())
    matrix = np.zeros((channels, root.shape[1]))
    matrix[varies] = root
    mean = np.where(varies, pool.mean(0), 0.0)
    return Space(preparation, mean, matrix, int(channels - varies.sum()), shrinkage, spread)


def _whitener(centred: np.ndarray) -> tuple[float | None, np.ndarray]:
    """The shrinkage, and a root of the inverse covariance of channels that were brought to unit variance."""
    variance = centred.var(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        root, shrinkage = whitening(centred[None], np.zeros(len(variance)), variance, "whiten")
    if root is None:
        return None, np.eye(1)
    if not np.isfinite(root).all() or np.linalg.cond(root * np.sqrt(variance)[:, None]) > STEEPEST:
        raise InputError("the pool's covariance is singular: take more examples, or preparation 'centre'")
    return shrinkage, root


def table(array: np.ndarray, what: str) -> np.ndarray:
    """Finite real numbers as float64, or one sentence."""
    array = np.asarray(array)
    if array.dtype.kind not in "fiu":
        raise InputError(f"{what} must hold real numbers; its entries are {array.dtype}")
    array = array.astype(np.float64)
    if array.size == 0 or not np.isfinite(array).all():
        raise InputError(f"{what} is empty or holds NaN or infinite entries")
    return array
