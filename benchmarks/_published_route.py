"""The route that published simulations of the reduced model take, written from its description.

JAX float64: contexts are built token by token with a scan, H is summed from whole contexts, the normal
equations are solved by plain conjugate gradients, and the error is a mean over 5n fresh sequences.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

BATCH = 1024


@partial(jax.jit, static_argnames=("d", "length"))
def features(key: Array, tasks: Array, phi: float, noise: float, d: int, length: int) -> tuple[Array, Array]:
    """H of BATCH sequences of an AR(1) context with a continuing query, shape (BATCH, d, d+1), and targets."""
    k_task, k_first, k_tokens, k_noise = jax.random.split(key, 4)
    w = tasks[jax.random.randint(k_task, (BATCH,), 0, len(tasks))]
    steps = jax.random.normal(k_tokens, (length, BATCH, d)) / d**0.5

    def token(previous: Array, step: Array) -> tuple[Array, Array]:
        new = phi * previous + (1 - phi**2) ** 0.5 * step
        return new, new

    first = jax.random.normal(k_first, (BATCH, d)) / d**0.5
    _, later = jax.lax.scan(token, first, steps)
    x = jnp.concatenate([first[None], later])  # (length+1, BATCH, d)
    y = jnp.einsum("abi,bi->ab", x, w) + noise**0.5 * jax.random.normal(k_noise, (length + 1, BATCH))
    h = d / length * jnp.einsum("ab,abi->bi", y[:-1], x[:-1])
    power = jnp.mean(jnp.square(y[:-1]), axis=0)
    return x[-1][:, :, None] * jnp.concatenate([h, power[:, None]], axis=1)[:, None, :], y[-1]


@jax.jit
def plain_cg(h: Array, y: Array, penalty: float, tolerance: float) -> Array:
    """Gamma flattened, from h of shape (n, d(d+1)), until the residual is below tolerance."""
    right = h.T @ y

    def body(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        gamma, r, p, rr = state
        image = h.T @ (h @ p) + penalty * p
        stride = rr / (p @ image)
        r = r - stride * image
        new = r @ r
        return gamma + stride * p, r, r + new / rr * p, new

    start = (jnp.zeros_like(right), right, right, right @ right)
    return jax.lax.while_loop(lambda s: jnp.sqrt(s[3]) > tolerance * jnp.linalg.norm(right), body, start)[0]


@jax.jit
def squared_errors(gamma: Array, h: Array, y: Array) -> Array:
    """Squared test errors of a batch."""
    return jnp.square(y - h.reshape(len(h), -1) @ gamma)


def replicate(key: Array, *, d: int, length: int, n: int, k: int, phi: float, noise: float, ridge: float) -> float:
    """ICL error of one pretraining on n sequences from k tasks, by Monte Carlo over 5n test sequences."""
    k_tasks, k_train, k_test = jax.random.split(key, 3)
    tasks = jax.random.normal(k_tasks, (k, d))
    parts = [features(jax.random.fold_in(k_train, i), tasks, phi, noise, d, length) for i in range(n // BATCH)]
    h = jnp.concatenate([part[0].reshape(BATCH, -1) for part in parts])
    y = jnp.concatenate([part[1] for part in parts])
    gamma = plain_cg(h, y, n / d * ridge, 1e-6)
    total = jnp.zeros(())
    for i in range(5 * n // BATCH):
        key = jax.random.fold_in(k_test, i)
        fresh = jax.random.normal(jax.random.fold_in(key, 1), (BATCH, d))
        total = total + squared_errors(gamma, *features(key, fresh, phi, noise, d, length)).sum()
    return float(total) / (5 * n // BATCH * BATCH)
