"""Lag products of a recording, summed over groups of it: all that the estimates need."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..errors import InputError

GROUPS = 64
"""Groups that the data are summed over; whole sequences where there are at least half as many."""

CHUNK = 2**20
"""Numbers that are held in float64 at a time."""

SAMPLE = 600
"""Tokens kept for the covariance of the channels."""


class Block(NamedTuple):
    """Tokens start..stop of the sequences first..last (the ends not counted)."""

    first: int
    last: int
    start: int
    stop: int


@dataclass(frozen=True)
class Products:
    """Sums over groups of a recording whose mean has been taken off.

    Attributes:
        lagged: sum over positions u of a group of x_u x_{u+t}, shape (groups, length+1, d); u+t may lie outside it.
        pairs: how many products that is for each channel, shape (groups, length+1).
        sums: sum of x_u, shape (groups, d).
        blocks: the tokens of each group.
        gap: tokens that two products of one sequence must lie apart to count as independent.
        tokens: a sample of tokens, shape (m, d), for the covariance of the channels.
        owners: group of each of them, shape (m,).
    """

    lagged: np.ndarray
    pairs: np.ndarray
    sums: np.ndarray
    blocks: tuple[Block, ...]
    gap: int
    tokens: np.ndarray
    owners: np.ndarray

    @property
    def whole(self) -> bool:
        """True where the groups are made of whole sequences."""
        return len({block.start for block in self.blocks}) == 1


def blocks_of(sequences: int, size: int) -> tuple[Block, ...]:
    """`GROUPS` groups of whole sequences, or of stretches of time where there are few sequences."""
    if sequences >= GROUPS // 2:
        edges = np.linspace(0, sequences, min(GROUPS, sequences) + 1).round().astype(int).tolist()
        return tuple(Block(a, b, 0, size) for a, b in pairwise(edges))
    pieces = min(-(-GROUPS // sequences), size)
    edges = np.linspace(0, size, pieces + 1).round().astype(int).tolist()
    return tuple(Block(s, s + 1, a, b) for s in range(sequences) for a, b in pairwise(edges))


def moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each channel over all tokens, shape (d,) each, float64.

    Raises:
        InputError: missing or infinite values, or a constant channel.
    """
    shift = np.nan_to_num(np.asarray(values[0, 0], dtype=np.float64), posinf=0.0, neginf=0.0)
    total, square = np.zeros(values.shape[2]), np.zeros(values.shape[2])
    missing, infinite = np.zeros(values.shape[2], int), np.zeros(values.shape[2], int)
    for piece in _pieces(values):
        tokens = piece.reshape(-1, values.shape[2])
        if not np.isfinite(tokens.sum()):
            missing += np.isnan(tokens).sum(0)
            infinite += np.isinf(tokens).sum(0)
        tokens = tokens - shift
        total += tokens.sum(0)
        square += np.einsum("nd,nd->d", tokens, tokens)
    count = values.shape[0] * values.shape[1]
    _refuse_missing(missing, infinite, count)
    mean = total / count
    variance = square / count - mean**2
    flat = variance <= 1e-14 * (square / count + np.abs(shift) * np.finfo(np.float32).eps)
    if flat.any():
        raise InputError(
            f"channel {int(np.flatnonzero(flat)[0]) + 1} is constant: leave it out, it holds no correlation"
        )
    return mean + shift, variance


def _refuse_missing(missing: np.ndarray, infinite: np.ndarray, count: int) -> None:
    if infinite.any():
        raise InputError(
            f"channel {int(np.argmax(infinite > 0)) + 1} holds infinite values; all must be finite numbers"
        )
    if missing.any():
        channel = int(np.argmax(missing > 0))
        some = "nothing but missing values" if missing[channel] == count else f"{missing[channel]} missing values (NaN)"
        raise InputError(f"channel {channel + 1} holds {some}: fill them in or leave the channel or the tokens out")


def _pieces(values: np.ndarray) -> Iterator[np.ndarray]:
    """The data in float64, a chunk of whole sequences or of one sequence at a time."""
    sequences, size, d = values.shape
    rows = max(1, CHUNK // (size * d))
    step = max(1, CHUNK // d) if rows == 1 else size
    for first in range(0, sequences, rows):
        for start in range(0, size, step):
            yield np.asarray(values[first : first + rows, start : start + step], dtype=np.float64)


def products(values: np.ndarray, length: int, transform: np.ndarray | None, mean: np.ndarray) -> Products:
    """Sums of lag products of (x - mean) @ transform up to lag `length`.

    Args:
        values: shape (sequences, tokens, d).
        length: largest lag; the sums are 0 at lags that no sequence reaches.
        transform: shape (d, d), or None for none.
        mean: shape (d,).
    """
    sequences, size, d = values.shape
    blocks = blocks_of(sequences, size)
    lagged, sums = np.zeros((len(blocks), length + 1, d)), np.zeros((len(blocks), d))
    kept: list[np.ndarray] = []
    owners: list[int] = []
    every = max(1, sequences * size // SAMPLE)
    for group, block in enumerate(blocks):
        for first, last, start, stop in _parts(block, length, d):
            tokens = np.asarray(values[first:last, start : stop + length], dtype=np.float64) - mean
            if transform is not None:
                tokens = tokens @ transform
            body = stop - start
            lagged[group] += _lag_sums(tokens, body, length)
            sums[group] += tokens[:, :body].sum((0, 1))
            sample = tokens[:, :body].reshape(-1, d)[every // 2 :: every].copy()  # a view would keep all tokens alive
            kept.append(sample)
            owners += [group] * len(sample)
    lag = np.arange(length + 1)
    pairs = [(b.last - b.first) * np.clip(np.minimum(size - lag, b.stop) - b.start, 0, None) for b in blocks]
    gap = max(1, min(length, size // 16))
    return Products(lagged, np.array(pairs, float), sums, blocks, gap, np.concatenate(kept), np.array(owners))


def _parts(block: Block, length: int, d: int) -> Iterator[Block]:
    """A block in parts that fit a chunk, as many sequences at a time as do."""
    body = min(block.stop - block.start, max(4 * length, CHUNK // d - length, 1))
    rows = max(1, CHUNK // ((body + length) * d))
    for first in range(block.first, block.last, rows):
        for start in range(block.start, block.stop, body):
            yield Block(first, min(first + rows, block.last), start, min(start + body, block.stop))


def _lag_sums(tokens: np.ndarray, body: int, length: int) -> np.ndarray:
    """Sum over sequences and over u < body of x_u x_{u+t}, t = 0..length, by FFT; shape (length+1, d)."""
    from scipy.fft import irfft, next_fast_len, rfft

    size = tokens.shape[1]
    reach = min(length, size - 1)
    padded = next_fast_len(size + reach, real=True)
    workers = os.cpu_count() if tokens.size > 2**16 else 1
    channels_last = np.ascontiguousarray(np.moveaxis(tokens, 1, 2))
    far = np.asarray(rfft(channels_last, padded, workers=workers), dtype=np.complex128)
    if body == size:
        spectrum = (np.square(np.real(far)) + np.square(np.imag(far))).sum(0)
    else:
        near = np.asarray(rfft(channels_last[:, :, :body], padded, workers=workers), dtype=np.complex128)
        spectrum = np.einsum("sdf,sdf->df", near.conj(), far)
    out = np.zeros((length + 1, tokens.shape[2]))
    out[: reach + 1] = np.asarray(irfft(spectrum, padded))[:, : reach + 1].T
    return out
