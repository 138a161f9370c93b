"""k2 of many sequences without the assumption that correlations depend on the lag alone."""

from __future__ import annotations

import numpy as np

from ._products import CHUNK, GROUPS, blocks_of

LARGEST = 256
"""Longest context for which all pairs of positions are estimated."""


def possible(values: np.ndarray, length: int) -> bool:
    """True where there are sequences enough, and pairs of positions few enough."""
    return values.shape[0] >= GROUPS and length <= LARGEST


def unrestricted(
    values: np.ndarray, length: int, scale: np.ndarray, dimension: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """k2 of positions 1..length from products of different groups of sequences, each position with a mean of its own.

    Args:
        values: shape (sequences, tokens, d), at least `GROUPS` sequences.
        length: context length.
        scale: factor of each channel, shape (d,), or a matrix that whitens them, shape (d, d).
        dimension: effective dimension of the channels.

    Returns:
        k2; k2 without each group, shape (groups,); what two groups add to its error, shape (groups, groups).
    """
    sums, counts = _covariances(values, length, scale)
    total, squares, sequences = sums.sum(0), np.square(sums).sum(0), counts.sum()
    centring = (length - 1) / sequences**2 / dimension  # the mean of each position was estimated

    def k2(total: np.ndarray, squares: np.ndarray, counts: np.ndarray) -> float:
        variance = np.diagonal(total) / counts.sum()
        products = (total**2 - squares) / (counts.sum() ** 2 - counts @ counts) / np.outer(variance, variance)
        return 1 + float(products.sum() - np.trace(products)) / length - centring

    groups = range(len(counts))
    without = [k2(total - sums[g], squares - sums[g] ** 2, np.delete(counts, g)) for g in groups]
    deviation = sums - counts[:, None, None] * (total / sequences)
    deviation /= np.sqrt(np.outer(np.diagonal(total), np.diagonal(total)))
    flat = deviation.reshape(len(counts), -1)
    return k2(total, squares, counts), np.array(without), flat @ flat.T / length


def _covariances(values: np.ndarray, length: int, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sum over the sequences of each group of X X'/d, the mean of each position taken off; and their numbers."""
    d = values.shape[2]
    blocks = blocks_of(values.shape[0], values.shape[1])
    sums, levels = np.zeros((len(blocks), length, length)), np.zeros((len(blocks), length, d))
    rows = max(1, CHUNK // (length * d))
    for group, block in enumerate(blocks):
        for first in range(block.first, block.last, rows):
            tokens = np.asarray(values[first : min(first + rows, block.last), :length], dtype=np.float64)
            tokens = tokens * scale if scale.ndim == 1 else tokens @ scale
            levels[group] += tokens.sum(0)
            tokens = tokens.transpose(1, 0, 2).reshape(length, -1)
            sums[group] += tokens @ tokens.T
    counts = np.array([block.last - block.first for block in blocks], dtype=np.float64)
    mean = levels.sum(0) / counts.sum()
    cross = levels @ mean.T
    sums += counts[:, None, None] * (mean @ mean.T) - cross - cross.transpose(0, 2, 1)
    return sums / d, counts
