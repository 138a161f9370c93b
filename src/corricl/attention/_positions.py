"""Who sees whom, and what a position adds: each choice of `positions` is one small class."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..errors import InputError


class View(NamedTuple):
    """Where m attending rows and n tokens stand, and which tokens each row sees."""

    at: np.ndarray  # positions of the rows, integers, shape (m,)
    of: np.ndarray  # positions of the tokens, shape (n,)
    seen: np.ndarray  # shape (m, n)

    @property
    def distance(self) -> np.ndarray:
        """|position of the row - position of the token|, integers, shape (m, n)."""
        return np.abs(self.at[:, None] - self.of[None, :])

    @property
    def visible(self) -> np.ndarray:
        """Tokens that each row sees, at least 1 so that one may divide by it, shape (m, 1)."""
        return np.maximum(self.seen.sum(1, keepdims=True), 1)


class Sizes(NamedTuple):
    """What a block needs to know of the model around it."""

    width: int
    heads: int
    length: int
    tied: bool
    positions: str
    dtype: np.dtype
    blocks: int = 1  # attentions and MLPs that add to the residual stream

    def array(self, values: np.ndarray | float) -> Array:
        """Values as an array of parameters."""
        return jnp.asarray(values, self.dtype)

    def gaussian(self, rng: np.random.Generator, *shape: int, fan_in: int) -> Array:
        """Random parameters N(0, 1/fan_in)."""
        return self.array(rng.standard_normal(shape) * fan_in**-0.5)


class Positions(eqx.Module):
    """No positions. A subclass turns queries and keys, changes scores, or changes weights."""

    turns: ClassVar[bool] = False

    def __init__(self, sizes: Sizes) -> None:
        pass

    def turn(self, vectors: Array, at: np.ndarray) -> Array:
        """Queries or keys at their positions, shape (heads, m, inner); called where `turns` is set."""
        return vectors

    def on_scores(self, scores: Array, view: View) -> Array:
        """Scores before they become weights, shape (heads, m, n)."""
        return scores

    def on_weights(self, weights: Array, view: View) -> Array:
        """Weights, shape (heads, m, n)."""
        return weights


class Rotary(Positions):
    """Pairs of channels turn by position times 10000^(-i/pairs); an odd last channel stays."""

    turns = True

    def turn(self, vectors: Array, at: np.ndarray) -> Array:
        pairs = vectors.shape[-1] // 2
        angle = at[:, None] * 10000.0 ** (-np.arange(pairs) / max(pairs, 1))
        cos, sin = (jnp.asarray(f(angle), vectors.dtype)[None] for f in (np.cos, np.sin))
        first, second, rest = jnp.split(vectors, [pairs, 2 * pairs], axis=-1)
        return jnp.concatenate([first * cos - second * sin, first * sin + second * cos, rest], axis=-1)


class ALiBi(Positions):
    """Scores minus slope times distance; slopes of heads 1..h start at 2^(-8 i/h) and are trained."""

    slope: Array  # (heads,)

    def __init__(self, sizes: Sizes) -> None:
        self.slope = sizes.array(2.0 ** (-8 * np.arange(1, sizes.heads + 1) / sizes.heads))

    def on_scores(self, scores: Array, view: View) -> Array:
        return scores - self.slope[:, None, None] * jnp.asarray(view.distance, scores.dtype)[None]


class Weighted(Positions):
    """Weights times a learned c at the distance, one for each head and distance 0..length, first 1.

    In linear attention these are the position weights of docs/theory/positional.md.
    """

    weight: Array  # (heads, length + 1)

    def __init__(self, sizes: Sizes) -> None:
        self.weight = sizes.array(np.ones((sizes.heads, sizes.length + 1)))

    def on_weights(self, weights: Array, view: View) -> Array:
        require_length(view, self.weight.shape[1] - 1)
        return weights * self.weight[:, view.distance]


CHOICES: dict[str, type[Positions]] = {
    "none": Positions,
    "learned": Positions,  # vectors added to the embedding, by the model
    "rotary": Rotary,
    "alibi": ALiBi,
    "weighted": Weighted,
}


def require_length(view: View, length: int) -> None:
    """Refuse prompts longer than those that the learned positions were made for."""
    if (longest := int(view.at.max())) > length:
        raise InputError(f"this model's positions are learned up to length {length}; got a prompt of length {longest}")
