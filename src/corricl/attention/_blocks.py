"""A layer: attention and MLP, each with its residual and perhaps a LayerNorm before it."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ._architecture import Plan
from ._attentions import Attention
from ._positions import Sizes, View


class LayerNorm(eqx.Module):
    """(z - mean)/sqrt(variance + 1e-5) over channels, times a gain, plus a shift."""

    gain: Array
    shift: Array

    def __init__(self, sizes: Sizes) -> None:
        self.gain = sizes.array(np.ones(sizes.width))
        self.shift = sizes.array(np.zeros(sizes.width))

    def __call__(self, rows: Array) -> Array:
        centred = rows - rows.mean(-1, keepdims=True)
        scaled = centred * jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5)
        return scaled * self.gain[None] + self.shift[None]


class MLP(eqx.Module):
    """W2 gelu(W1 z + b1) + b2."""

    first: Array  # (hidden, width)
    first_bias: Array
    second: Array  # (width, hidden)
    second_bias: Array

    def __init__(self, sizes: Sizes, ratio: int, rng: np.random.Generator) -> None:
        width, hidden = sizes.width, ratio * sizes.width
        self.first = sizes.gaussian(rng, hidden, width, fan_in=width)
        self.first_bias = sizes.array(np.zeros(hidden))
        self.second = sizes.gaussian(rng, width, hidden, fan_in=hidden * sizes.blocks)
        self.second_bias = sizes.array(np.zeros(width))

    def __call__(self, rows: Array) -> Array:
        hidden = jax.nn.gelu(rows @ self.first.T + self.first_bias[None])
        return hidden @ self.second.T + self.second_bias[None]


class Layer(eqx.Module):
    """rows + attention(norm(rows), norm(tokens)), then rows + MLP(norm(rows)), whichever of them there are."""

    before_attention: LayerNorm | None
    attention: Attention | None
    before_mlp: LayerNorm | None
    mlp: MLP | None

    def __init__(self, plan: Plan, sizes: Sizes, ratio: int, rng: np.random.Generator) -> None:
        kind = None if plan.attention is None else Attention.registry[plan.attention]
        self.before_attention = LayerNorm(sizes) if plan.norm and kind else None
        self.attention = kind(sizes, rng) if kind else None
        self.before_mlp = LayerNorm(sizes) if plan.norm and plan.mlp else None
        self.mlp = MLP(sizes, ratio, rng) if plan.mlp else None

    def __call__(self, rows: Array, tokens: Array, view: View) -> Array:
        """New rows, shape (m, width)."""
        if self.attention is not None:
            norm = self.before_attention
            read = (rows, tokens) if norm is None else (norm(rows), norm(tokens))
            rows = rows + self.attention(*read, view)
        if self.mlp is not None:
            rows = rows + self.mlp(rows if self.before_mlp is None else self.before_mlp(rows))
        return rows

    def through(self, embedding: Array) -> Layer:
        """The same layer on tokens that are not embedded yet; see `Attention.through`."""
        assert self.attention is not None
        return eqx.tree_at(lambda layer: layer.attention, self, self.attention.through(embedding))

    @property
    def folds(self) -> bool:
        """Whether `through` is exact."""
        return self.attention is not None and self.attention.folds and self.before_attention is None
