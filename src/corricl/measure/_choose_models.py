"""Models that read a given prompt, and the error of each on it. Derivation: docs/theory/choose.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ..numerics import ZERO, difference
from ..prompt import Prompt, Risk


@dataclass(frozen=True)
class Candidates:
    """A pool of examples and one query, in the units of the theory: a typical squared norm is 1.

    Args:
        points: the pool, shape (n, d).
        query: shape (d,).
    """

    points: np.ndarray
    query: np.ndarray
    scores: np.ndarray  # x_j.x_t, (n,)
    norms: np.ndarray  # |x_j|^2, (n,)
    columns: dict[int, np.ndarray] = field(default_factory=dict)  # of the Gram matrix, as far as they were needed

    @classmethod
    def of(cls, points: np.ndarray, query: np.ndarray) -> Candidates:
        return cls(points, query, points @ query, np.einsum("ij,ij->i", points, points))

    def products(self, rows: np.ndarray) -> np.ndarray:
        """x_j.x_a of every candidate with some, shape (n, rows)."""
        for row in map(int, rows):
            if row not in self.columns:
                self.columns[row] = self.points @ self.points[row]
        return np.array([self.columns[int(row)] for row in rows]).reshape(len(rows), len(self.points)).T


def prompt_risk(coefficients: np.ndarray, x: np.ndarray, query: np.ndarray, noise: float) -> float:
    """Error of yhat = sum_a g_a y_a on one prompt with known tokens, averaged over tasks and label noise.

        risk = noise + |x_t - sum_a g_a x_a|^2 + noise sum_a g_a^2,

    exact for w ~ N(0, I) and any g that depends on the tokens alone.

    Args:
        coefficients: g, shape (m,).
        x: context tokens, shape (m, d).
        query: x_t, shape (d,).
        noise: label-noise variance >= 0.

    See docs/theory/choose.md.

    >>> prompt_risk(np.array([1.0]), np.array([[0.6, 0.8]]), np.array([0.6, 0.8]), noise=0.1)
    0.2
    """
    missed = query - coefficients @ x
    return float(noise + missed @ missed + noise * (coefficients @ coefficients))


class Model(Protocol):
    """What the search asks of a model. A prompt is an array of pool indices, one a slot, -1 where it is empty."""

    @property
    def weights(self) -> np.ndarray:
        """Weight of each slot, shape (m,); slots of one weight are alike."""
        ...

    @property
    def noise(self) -> float:
        """Label-noise variance."""
        ...

    def coefficients(self, x: np.ndarray, query: np.ndarray) -> np.ndarray:
        """g, shape (m,), of a full prompt."""
        ...

    def trial(self, pool: Candidates, prompt: np.ndarray, slot: int) -> np.ndarray:
        """Error with each candidate in the slot, the rest of the prompt held, shape (n,)."""
        ...


def _others(prompt: np.ndarray, slot: int) -> np.ndarray:
    """The filled slots apart from this one."""
    filled = prompt >= 0
    filled[slot] = False
    return np.flatnonzero(filled)


@dataclass(frozen=True)
class Weighted:
    """Linear attention, g_a = c_a x_a.x_t, with a weight for each slot."""

    weights: np.ndarray
    noise: float

    def coefficients(self, x: np.ndarray, query: np.ndarray) -> np.ndarray:
        return self.weights * (x @ query)

    def trial(self, pool: Candidates, prompt: np.ndarray, slot: int) -> np.ndarray:
        slots = _others(prompt, slot)
        held = prompt[slots]
        g = self.weights[slots] * pool.scores[held]
        missed = pool.query - g @ pool.points[held]
        own = self.weights[slot] * pool.scores
        added = own * own * (pool.norms + self.noise) - 2 * own * (pool.points @ missed)
        return self.noise + missed @ missed + self.noise * (g @ g) + added

    def exchange(self, pool: Candidates, prompt: np.ndarray) -> np.ndarray:
        """Change of the error when the examples of two slots change places, shape (m, m)."""
        x, s, c = pool.points[prompt], pool.scores[prompt], self.weights
        gram = x @ x.T + self.noise * np.eye(len(x))
        slope = s * (gram @ (c * s) - s)
        size = np.square(s) * np.diagonal(gram)
        step = c - c[:, None]  # what the example in slot i gains in weight by going to slot j
        square = size[:, None] + size - 2 * np.outer(s, s) * gram
        return 2 * step * (slope[:, None] - slope) + step * step * square


@dataclass(frozen=True)
class Softmax:
    """Softmax attention, g = V softmax(beta x_a.x_t)."""

    beta: float
    value: float
    weights: np.ndarray
    noise: float

    def coefficients(self, x: np.ndarray, query: np.ndarray) -> np.ndarray:
        logits = self.beta * (x @ query)
        e = np.exp(logits - logits.max())
        return self.value * e / e.sum()

    def trial(self, pool: Candidates, prompt: np.ndarray, slot: int) -> np.ndarray:
        held = prompt[_others(prompt, slot)]
        logits = self.beta * pool.scores
        # With each candidate the largest logit is another one, so that no exponential leaves the range of floats.
        highest = logits[held].max(initial=-np.inf)
        top = np.maximum(highest, logits)
        shrink = np.exp(highest - top)
        e = np.exp(logits[held] - highest)
        sums = e @ pool.points[held]
        own = np.exp(logits - top)
        total = shrink * e.sum() + own
        reach = shrink * (sums @ pool.query) + own * pool.scores
        cross = 2 * shrink * own * (pool.points @ sums)
        power = shrink**2 * (sums @ sums + self.noise * (e @ e)) + cross + own**2 * (pool.norms + self.noise)
        value = self.value
        return self.noise + pool.query @ pool.query - 2 * value * reach / total + (value / total) ** 2 * power


@dataclass(frozen=True)
class Ridge:
    """Ridge regression on the prompt with the noise as penalty: the least error that any model can have on it."""

    weights: np.ndarray
    noise: float

    def coefficients(self, x: np.ndarray, query: np.ndarray) -> np.ndarray:
        root = _inverse_root(x, self.noise)
        return root @ (root.T @ (x @ query))

    def trial(self, pool: Candidates, prompt: np.ndarray, slot: int) -> np.ndarray:
        held = prompt[_others(prompt, slot)]
        root = _inverse_root(pool.points[held], self.noise)
        seen, query = pool.products(held) @ root, pool.scores[held] @ root
        cross = pool.scores - seen @ query  # x_j'Q x_t
        size = difference(
            self.noise + pool.norms, np.square(seen).sum(1)
        )  # noise and what is not known of x_j, x_j'Q x_j
        new = size > 0  # else a copy, free of noise, of what the prompt holds
        gain = np.where(new, cross * cross / np.where(new, size, 1.0), 0.0)
        return self.noise + pool.query @ pool.query - query @ query - gain


def _inverse_root(x: np.ndarray, noise: float) -> np.ndarray:
    """B with B B' = (x x' + noise)^{-1}, the pseudo-inverse where that is singular, shape (m, rank)."""
    values, vectors = np.linalg.eigh(x @ x.T + noise * np.eye(len(x)))
    kept = values > ZERO * values[-1:].sum()
    return vectors[:, kept] / np.sqrt(values[kept])


def model_of(optimum: Risk, law: Prompt) -> Weighted | Softmax | Ridge:
    """The model that is optimal on a law of prompts, ready to read a given one.

    Args:
        optimum: what theory says of it, by one of the methods linear, positional, softmax and bayes.
        law: what the model was pretrained on.
    """
    alike, details = np.ones(law.length), optimum.details
    if optimum.method == "linear":
        return Weighted(alike * (details["scale"] * law.d / law.length), law.noise)
    if optimum.method == "positional":
        return Weighted(details["weights"], law.noise)
    if optimum.method == "softmax":
        return Softmax(details["beta"], details["value"], alike, law.noise)
    return Ridge(alike, law.noise)
