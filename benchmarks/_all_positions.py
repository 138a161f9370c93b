"""The textbook evaluation of a model: one stream of length+1 tokens, every layer computed at each of them.

It takes the arrays of a `corricl.attention.Model` and nothing else of it: tokens are embedded, each is projected to a
query, a key and a value, scores form a (length+1) x (length+1) matrix, a mask says who sees whom, and the prediction
is read at the last token. Benchmarks race it and tests compare with it.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from corricl.attention import Attention, Model


def predict(model: Model, x: Array, y: Array) -> Array:
    """What `model(x, y)` gives, for x of shape (length+1, d) and y of shape (length,)."""
    size = len(x)
    labels = jnp.concatenate([y, jnp.zeros(1, y.dtype)])
    z = jnp.concatenate([x * x.shape[1] ** 0.5, labels[:, None]], axis=1)
    if model.embedding is not None:
        z = z @ model.embedding.T
    if model.places is not None:
        z = z + model.places[:size]
    mask = _mask(size, model.architecture.mask == "causal")
    for layer in model.layers:
        if layer.attention is not None:
            z = z + _attend(layer.attention, _norm(layer.before_attention, z), mask)
        if layer.mlp is not None:
            mlp, inside = layer.mlp, _norm(layer.before_mlp, z)
            hidden = jax.nn.gelu(inside @ mlp.first.T + mlp.first_bias[None])
            z = z + hidden @ mlp.second.T + mlp.second_bias[None]
    return z[-1, -1] if model.readout is None else z[-1] @ model.readout


def _mask(size: int, causal: bool) -> Array:
    """True where a row's token sees a column's: never the query, which alone does not see itself."""
    row, column = jnp.arange(size)[:, None], jnp.arange(size)[None]
    context = column < size - 1
    return (column <= row) & context if causal else jnp.broadcast_to(context, (size, size))


def _norm(norm: Any, z: Array) -> Array:
    if norm is None:
        return z
    mean, variance = jnp.mean(z, -1, keepdims=True), jnp.var(z, -1, keepdims=True)
    return (z - mean) / jnp.sqrt(variance + 1e-5) * norm.gain[None] + norm.shift[None]


def _attend(attention: Attention, z: Array, mask: Array) -> Array:
    positions: Any = attention.positions
    kind = type(positions).__name__
    keys = attention.query if attention.key is None else attention.key
    total = jnp.zeros_like(z)
    for head in range(len(attention.query)):
        q, k, v = (z @ matrix[head].T for matrix in (attention.query, keys, attention.value))
        if kind == "Rotary":
            q, k = _rotated(q), _rotated(k)
        scores = q @ k.T
        distance = jnp.abs(jnp.arange(len(z))[:, None] - jnp.arange(len(z))[None])
        if kind == "ALiBi":
            scores = scores - positions.slope[head] * distance.astype(z.dtype)
        if attention.name == "softmax":
            weights = jax.nn.softmax(jnp.where(mask, scores / q.shape[1] ** 0.5, -jnp.inf), axis=1)
        else:
            weights = jnp.where(mask, scores, 0) / mask.sum(1, keepdims=True).astype(z.dtype)
        if kind == "Weighted":
            weights = weights * positions.weight[head][distance]
        read = weights @ v
        total = total + (read if attention.output is None else read @ attention.output[:, head].T)
    return total


def _rotated(vectors: Array) -> Array:
    """Channels i and i+pairs as a complex number, times exp(i angle)."""
    pairs = vectors.shape[1] // 2
    rate = 10000.0 ** (-jnp.arange(pairs, dtype=vectors.dtype) / pairs)
    angle = jnp.outer(jnp.arange(len(vectors), dtype=vectors.dtype), rate)
    turned = jax.lax.complex(vectors[:, :pairs], vectors[:, pairs : 2 * pairs])
    turned = turned * jax.lax.complex(jnp.cos(angle), jnp.sin(angle))
    return jnp.concatenate([turned.real, turned.imag, vectors[:, 2 * pairs :]], axis=1)
