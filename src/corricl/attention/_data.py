"""Prompts drawn on the device, in the precision of the model.

The law is that of `simulate.batches`: a factor of the joint kernel times white noise, and labels by a task. Here
tokens run along the last axis of the draw, which makes that product one large matrix product.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..prompt import Prompt
from ..simulate._contexts import token_factor
from ..simulate._precision import key_of

CHUNK = 512
"""Prompts that are drawn or evaluated together, where there are many."""


@contextlib.contextmanager
def precision(dtype: str) -> Iterator[None]:
    """The model's precision and one stream of random numbers, whatever the caller has configured.

    The stream is the older of JAX's two: on a CPU it draws normals three times as fast, and on one device
    it lacks nothing.
    """
    with (
        jax.enable_x64(dtype == "float64"),
        jax.threefry_partitionable(False),
        jax.transfer_guard("allow"),
    ):
        yield


class Streams(NamedTuple):
    """Keys of one run, none of which is used for two things."""

    model: Array
    tasks: Array
    data: Array
    steps: Array
    validation: Array
    test: Array

    @classmethod
    def of(cls, seed: int, index: int) -> Streams:
        """The keys of run `index`: a function of (seed, index) alone."""
        return cls(*jax.random.split(key_of(seed, index), len(cls._fields)))


class Law(NamedTuple):
    """What a draw needs of a prompt: a factor of its joint kernel, None if that is the identity, and the noise."""

    factor: Array | None  # (length+1, length+1)
    noise: Array


class Sequences(NamedTuple):
    """Prompts, the query last."""

    x: Array  # (n, length+1, d)
    y: Array  # (n, length+1)
    task: Array  # (n, d)


def law_of(prompt: Prompt, dtype: str) -> Law:
    """The law of a prompt, factored in float64 and then rounded."""
    identity = np.array_equal(prompt.joint, np.eye(prompt.length + 1))
    factor = None if identity else jnp.asarray(token_factor(prompt), dtype)
    return Law(factor, jnp.asarray(prompt.noise, dtype))


def draw(key: Array, law: Law, pool: Array | None, count: int, length: int, d: int) -> Sequences:
    """`count` prompts.

    Args:
        key: random key.
        law: of the prompts.
        pool: tasks (k, d), of which each prompt draws one uniformly; None for a fresh task each.
        count: how many prompts.
        length, d: their sizes.
    """
    dtype, size = law.noise.dtype, length + 1
    # Two calls of the generator, each of which costs a second of compilation: tokens go straight into their product,
    # which halves the time of a draw; label noise and fresh tasks share the other.
    k_white, k_rest, k_task = jax.random.split(key, 3)
    x = jax.random.normal(k_white, (count * d, size), dtype)
    x = x * d**-0.5 if law.factor is None else x @ (law.factor.T * d**-0.5)
    x = x.reshape(count, d, size)
    rest = jax.random.normal(k_rest, (count, size + (d if pool is None else 0)), dtype)
    task = rest[:, size:] if pool is None else pool[jax.random.randint(k_task, (count,), 0, pool.shape[0])]
    y = jnp.einsum("nia,ni->na", x, task) + jnp.sqrt(law.noise) * rest[:, :size]
    return Sequences(x.swapaxes(1, 2), y, task)


def draw_many(key: Array, law: Law, pool: Array | None, count: int, length: int, d: int) -> Sequences:
    """`draw` in chunks, so that memory beyond the result stays small; chunk i depends on (key, i) alone."""
    chunks = -(-count // CHUNK)
    size = min(count, CHUNK)

    def chunk(index: Array) -> Sequences:
        return draw(jax.random.fold_in(key, index), law, pool, size, length, d)

    drawn = jax.lax.map(chunk, jnp.arange(chunks))
    return jax.tree.map(lambda a: a.reshape(chunks * size, *a.shape[2:])[:count], drawn)
