"""Pretraining data without contexts: the exact law of (x_t, h, y.y, y_t) in O(length + d) per sequence.

Derivation, and the moments that were compared with full contexts: docs/theory/sampler.md.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import Mesh, PartitionSpec

from ..theory._scalars import scalars

AXIS = "sequences"


class Law(NamedTuple):
    """What the sampler needs of a prompt: its `Basis`, shape (length,) each, and the label-noise variance."""

    eigenvalues: Array
    query: Array
    noise: Array


class Sequences(NamedTuple):
    """Features of n sequences in blocks of B; rows that pad the last blocks are zero.

    The prediction of Gamma on sequence m is query[m] @ Gamma @ summary[m].
    """

    query: Array  # x_t, shape (blocks, B, d)
    summary: Array  # u = [h, y.y/length] with h = (d/length) sum y_a x_a, shape (blocks, B, d+1)
    target: Array  # y_t, shape (blocks, B)


def block_size(sequences: int, length: int) -> int:
    """Sequences drawn together: a function of the sizes alone, so that results never depend on the machine."""
    return max(1, min(sequences, 1024, 2**22 // length))


@partial(jax.jit, static_argnames=("sequences", "d", "mesh"))
def sample_sequences(key: Array, tasks: Array | None, law: Law, *, sequences: int, d: int, mesh: Mesh) -> Sequences:
    """Draw the features of `sequences` prompts, blocks spread over the mesh's devices.

    Block i depends on (key, i) alone. A device draws its blocks one after another, so that memory
    beyond the result stays at one block's normals.

    Args:
        key: random key.
        tasks: shape (k, d), of which each sequence draws one uniformly; None for a fresh task each.
        law: the prompt.
        sequences: n.
        d: token dimension.
        mesh: devices, one axis named "sequences".
    """
    size = block_size(sequences, law.eigenvalues.shape[0])
    blocks = -(-sequences // size)
    blocks = -(-blocks // mesh.size) * mesh.size

    def draw(indices: Array, key: Array, tasks: Array | None, law: Law) -> Sequences:
        def block(index: Array) -> Sequences:
            rows = _sample_block(jax.random.fold_in(key, index), tasks, law, size, d)
            real = (index * size + jnp.arange(size) < sequences).astype(jnp.float64)
            return Sequences(rows.query * real[:, None], rows.summary * real[:, None], rows.target * real)

        return jax.lax.map(block, indices)

    own, shared = PartitionSpec(AXIS), PartitionSpec()
    spread = jax.shard_map(draw, mesh=mesh, in_specs=(own, shared, shared, shared), out_specs=own, check_vma=False)
    return spread(jnp.arange(blocks), key, tasks, law)


def _sample_block(key: Array, tasks: Array | None, law: Law, size: int, d: int) -> Sequences:
    length = law.eigenvalues.shape[0]
    k_task, k_rest = jax.random.split(key)
    w = draw_tasks(k_task, tasks, size, d)  # (size, d)
    norm = jnp.linalg.norm(w, axis=1)
    direction = w / norm[:, None]
    # one draw, cut into parts: every separate call of the generator adds a second to compilation
    labels, pair, x, across, noise = jnp.split(
        normal(k_rest, (size, length + 2 + 2 * d + 1)), [length, length + 2, length + 2 + d, length + 2 + 2 * d], axis=1
    )
    s = scalars(labels, pair, norm, *law, d)

    # Across the task, (X'y, x_t) has covariance [[y.Ky, y.k], [y.k, 1]]/d in each direction.
    x = x / d**0.5
    xy = s.coupling[:, None] * x + jnp.sqrt(s.residual / d)[:, None] * across
    x, xy = _set_along(x, direction, s.query), _set_along(xy, direction, s.aligned)

    target = norm * s.query + jnp.sqrt(law.noise) * noise[:, 0]
    summary = jnp.concatenate([xy * (d / length), s.label_power[:, None] / length], axis=1)
    return Sequences(x, summary, target)


def draw_tasks(key: Array, tasks: Array | None, size: int, d: int) -> Array:
    """Tasks of `size` sequences, shape (size, d): from the rows of `tasks`, or fresh ones."""
    if tasks is None:
        return normal(key, (size, d))
    return tasks[jax.random.randint(key, (size,), 0, tasks.shape[0])]


def normal(key: Array, shape: tuple[int, ...]) -> Array:
    """Standard normals in float64."""
    return jax.random.normal(key, shape, jnp.float64)


def _set_along(rows: Array, direction: Array, value: Array) -> Array:
    """Replace each row's component along its unit direction."""
    change = value - (rows * direction).sum(1)
    return rows + change[:, None] * direction
