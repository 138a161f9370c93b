"""From sums of lag products to k0, k1 and k2, corrected for estimation noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ._products import Products

TRIPLES = 16
"""Parts of the data, at most, of which three at a time make a product of three correlations."""


@dataclass(frozen=True)
class Estimates:
    """What one or several weightings of the groups say; leading axes are those of the weights.

    Attributes:
        correlation: r(t), shape (..., length+1).
        squares: r(t)^2 without the bias of squaring, shape (..., length+1).
        k0, k1, k2: shape (...,).
    """

    correlation: np.ndarray
    squares: np.ndarray
    k0: np.ndarray
    k1: np.ndarray
    k2: np.ndarray


@dataclass(frozen=True)
class Estimator:
    """The estimates as functions of weights of the groups. See docs/theory/measure.md.

    Args:
        products: sums of lag products.
        dimension: effective dimension of the channels.
    """

    products: Products
    dimension: float

    @property
    def length(self) -> int:
        """Context length."""
        return self.products.pairs.shape[1] - 1

    @cached_property
    def weights(self) -> np.ndarray:
        """k2 = 1 + sum of these times r(t)^2: 2(1 - t/length), and 0 at lag 0, shape (length+1,)."""
        out = 2 * (1 - np.arange(self.length + 1) / self.length)
        out[0] = 0.0
        return out

    @cached_property
    def far(self) -> np.ndarray:
        """1 where two groups share no token and lie a gap apart, shape (groups, groups)."""
        low, _ = self._distances
        return (low >= self.products.gap).astype(float)

    @cached_property
    def allowed(self) -> np.ndarray | None:
        """1 where all products of two groups at a lag have four far tokens, shape (length+1, groups, groups).

        None where groups are whole sequences: then two groups always have.
        """
        if self.products.whole:
            return None
        low, high = self._distances
        gap = self.products.gap
        lag = np.arange(self.length + 1)[:, None, None]
        return ((low >= gap) & ((low - lag >= gap) | (lag - high >= gap))).astype(float)

    @cached_property
    def _distances(self) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest distance of tokens of two groups; inf between sequences, shape (groups, groups)."""
        first, _, start, stop = np.array(self.products.blocks).T
        ahead = start[None, :] >= start[:, None]
        low = np.where(ahead, start[None, :] - stop[:, None], start[:, None] - stop[None, :]) + 1.0
        high = np.where(ahead, stop[None, :] - start[:, None], stop[:, None] - start[None, :]) - 1.0
        other = first[None, :] != first[:, None]
        return np.where(other, np.inf, low), np.where(other, np.inf, high)

    @cached_property
    def sets(self) -> np.ndarray:
        """Sets of neighbouring groups, two windows long where the data allow, for errors; shape (sets, groups)."""
        blocks = self.products.blocks
        if self.products.whole:
            return np.eye(len(blocks))
        pieces = sum(block.first == 0 for block in blocks)  # the same number in every sequence
        width = blocks[0].stop - blocks[0].start
        merged = int(np.clip(-(-2 * self.length // width), 1, max(1, len(blocks) // 10)))
        index = np.arange(len(blocks))
        labels = (index // pieces) * -(-pieces // merged) + index % pieces // merged
        return (labels == np.arange(labels[-1] + 1)[:, None]).astype(float)

    def scaled(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Products pooled over channels of unit variance, mean taken off; and the pooled square of the mean.

        Args:
            weights: of the groups, shape (m, groups).

        Returns:
            shape (m, groups, length+1), and shape (m,).
        """
        p, far = self.products, self.far
        sums, tokens = weights[:, :, None] * p.sums, weights * p.pairs[:, 0]
        square = ((far @ sums) * sums).sum(1) / ((tokens @ far) * tokens).sum(1)[:, None]
        variance = weights @ p.lagged[:, 0] / tokens.sum(1)[:, None] - square
        inverse = 1 / variance / variance.shape[1]
        pooled = (square * inverse).sum(1)
        groups, lags, d = p.lagged.shape
        out = (p.lagged.reshape(-1, d) @ inverse.T).T.reshape(-1, groups, lags)
        return out - pooled[:, None, None] * p.pairs, pooled

    def __call__(self, weights: np.ndarray) -> Estimates:
        """Estimates for weights of the groups, shape (m, groups)."""
        scaled, mean = self.scaled(weights)
        scaled = scaled * weights[:, :, None]
        pairs = weights[:, :, None] * self.products.pairs
        total, count = scaled.sum(1), pairs.sum(1)
        if self.allowed is None:
            numerator = total**2 - np.einsum("mgt,mgt->mt", scaled, scaled)
            denominator = count**2 - np.einsum("mgt,mgt->mt", pairs, pairs)
        else:
            numerator, denominator = self._allowed_sum(scaled), self._allowed_sum(pairs)
        squares = _divide(numerator, denominator) - (denominator > 0) * 2 * mean[:, None] ** 2 / self.dimension
        correlation = _divide(total, count)
        squares[:, 0] = correlation[:, 0] = 1.0
        if not count[:, -1].any():  # no sequence reaches the query's last lag: it goes on as at the one before
            squares[:, -1], correlation[:, -1] = squares[:, -2], correlation[:, -2]
        k0 = squares[:, 1:].sum(1)
        k1 = k0 + 2 * self._cubic(scaled, pairs)
        return Estimates(correlation, squares, k0, k1, 1 + squares @ self.weights)

    def quadratic(self, full: Estimates, weights: np.ndarray) -> np.ndarray:
        """What two sets together add to the error of sum_t weights(t) r(t)^2, shape (sets, sets).

        Args:
            full: the estimates with all groups.
            weights: shape (length+1,).
        """
        scaled, _ = self.scaled(np.ones((1, len(self.products.blocks))))
        pairs = self.products.pairs
        deviation = self.sets @ _divide(scaled[0] - pairs * full.correlation, pairs.sum(0) + 0 * pairs)
        return (deviation * weights) @ deviation.T

    def _allowed_sum(self, terms: np.ndarray) -> np.ndarray:
        """Sum over allowed pairs of groups of the product of their terms, shape (m, groups, lags) -> (m, lags)."""
        terms = np.ascontiguousarray(terms.transpose(2, 1, 0))  # (lags, groups, m)
        return ((self.allowed @ terms) * terms).sum(1).T

    def full(self) -> Estimates:
        """Estimates with all groups, without a leading axis."""
        one = self(np.ones((1, len(self.products.blocks))))
        return Estimates(one.correlation[0], one.squares[0], one.k0[0], one.k1[0], one.k2[0])

    def _cubic(self, scaled: np.ndarray, pairs: np.ndarray) -> np.ndarray:
        """Sum over s, u >= 1 of r(s) r(u) r(s+u), from products of three different parts of the data."""
        members = np.add.reduceat(self.sets, np.arange(0, len(self.sets), -(-len(self.sets) // TRIPLES)))
        share = np.einsum("jg,mgt->mjt", members, scaled)
        count = pairs.sum(1)
        share = _divide(share, np.broadcast_to(count[:, None, :], share.shape))
        share[:, :, 0] = 0.0
        if not count[:, -1].any():
            share[:, :, -1] = share[:, :, -2]
        all_ = share.sum(1)
        part = np.einsum("jg,mg->mj", members, pairs[:, :, 0]) / count[:, :1]
        kept = 1 - 3 * (part**2).sum(1) + 2 * (part**3).sum(1)
        plain = (all_ * _convolve(all_, all_)).sum(-1)
        twice = (2 * share * _convolve(share, all_[:, None]) + all_[:, None] * _convolve(share, share)).sum((1, 2))
        thrice = (share * _convolve(share, share)).sum((1, 2))
        return (plain - twice + 2 * thrice) / kept


def _convolve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Sum over s of a(s) b(t-s) for each lag t, along the last axis."""
    lags = a.shape[-1]
    return np.fft.irfft(np.fft.rfft(a, 2 * lags) * np.fft.rfft(b, 2 * lags), 2 * lags)[..., :lags]


def _divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b, and 0 where there is nothing to divide by."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


def effective_dimension(products: Products) -> float:
    """(tr S)^2 / tr S^2 of the channels' covariance S, channels of unit variance, without bias; at most d.

    tr S^2 is the mean of (x.x')^2 over independent tokens x, x', here tokens of different groups.
    """
    tokens = products.tokens / np.sqrt((products.tokens**2).mean(0))
    d = tokens.shape[1]
    gram = (tokens @ tokens.T) ** 2
    other = products.owners[:, None] != products.owners[None, :]
    return float(np.clip(d**2 / gram[other].mean(), 1.0, d)) if other.any() else float(d)
