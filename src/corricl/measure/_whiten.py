"""Channels to white ones, by a shrunk covariance."""

from __future__ import annotations

import numpy as np

from ..errors import InputError

SAMPLE = 20_000
"""Tokens, evenly spaced over the data, that the covariance is estimated from."""


def whitening(
    values: np.ndarray, mean: np.ndarray, variance: np.ndarray, scale: str
) -> tuple[np.ndarray | None, float | None]:
    """Matrix that whitens tokens from the right, shape (d, d), and the shrinkage; None for scale channel.

    The covariance is Ledoit and Wolf's, of channels scaled to unit variance.

    Raises:
        InputError: an unknown scale.
    """
    if scale not in ("channel", "whiten"):
        raise InputError(f"scale must be channel or whiten; got '{scale}'")
    if scale == "channel" or values.shape[2] == 1:
        return None, None
    from sklearn.covariance import ledoit_wolf

    sequences, size, _ = values.shape
    index = np.unique(np.linspace(0, sequences * size - 1, min(SAMPLE, sequences * size)).round().astype(int))
    deviation = np.sqrt(variance)
    tokens = (np.asarray(values[index // size, index % size], dtype=np.float64) - mean) / deviation
    covariance, shrinkage = ledoit_wolf(tokens, assume_centered=True)
    eigenvalues, vectors = np.linalg.eigh(covariance)
    return (vectors / np.sqrt(eigenvalues)) @ vectors.T / deviation[:, None], float(shrinkage)
