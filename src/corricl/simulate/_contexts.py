"""Whole prompts, for any predictor that wants to see the tokens."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..errors import InputError
from ..numerics import eigen
from ..prompt import Estimate, Pretraining, Prompt, whole
from ._precision import check_seed, in_float64, key_of
from ._sampler import draw_tasks, normal


class Contexts(NamedTuple):
    """Whole prompts, float64."""

    x: np.ndarray  # context tokens, shape (n, length, d)
    y: np.ndarray  # their labels, shape (n, length)
    query: np.ndarray  # x_t, shape (n, d)
    target: np.ndarray  # y_t, shape (n,)
    task: np.ndarray  # w, shape (n, d)


def batches(
    prompt: Prompt, *, seed: int, index: int = 0, tasks: np.ndarray | None = None, batch: int = 1024
) -> Iterator[Contexts]:
    """Endless batches of prompts; batch i depends on (seed, index, i, batch) alone.

    Tokens are the joint kernel's symmetric factor times white noise, exact for singular kernels too.

    Args:
        prompt: the law.
        seed, index: of an independent stream.
        tasks: shape (k, d), of which each prompt draws one uniformly; default a fresh task each.
        batch: prompts in a batch; memory is about batch * (length+1) * d * 24 bytes.
    """
    factor = token_factor(prompt)
    if tasks is not None and (tasks.ndim != 2 or tasks.shape[1] != prompt.d):
        raise InputError(f"tasks must have shape (k, {prompt.d}); got {tasks.shape}")
    for number in itertools.count():
        yield _draw(factor, prompt, (seed, index, number), tasks, whole(batch, "batch"))


def token_factor(prompt: Prompt) -> np.ndarray:
    """The symmetric root F of the joint kernel, F F = J, shape (length+1, length+1); exact for singular kernels too."""
    values, vectors = eigen(prompt.joint)
    return vectors * np.sqrt(values) @ vectors.T


@in_float64
def _draw(
    factor: np.ndarray, prompt: Prompt, stream: tuple[int, int, int], tasks: np.ndarray | None, batch: int
) -> Contexts:
    seed, index, number = stream
    key = jax.random.fold_in(key_of(seed, index), number)
    pool = None if tasks is None else jnp.asarray(tasks, jnp.float64)
    noise = jnp.asarray(prompt.noise, jnp.float64)
    tokens, labels, task = _contexts(key, jnp.asarray(factor), noise, pool, batch=batch, d=prompt.d)
    tokens, labels = np.asarray(tokens), np.asarray(labels)
    return Contexts(tokens[:, :-1], labels[:, :-1], tokens[:, -1], labels[:, -1], np.asarray(task))


@partial(jax.jit, static_argnames=("batch", "d"))
def _contexts(key: Array, factor: Array, noise: Array, pool: Array | None, *, batch: int, d: int) -> tuple[Array, ...]:
    k_task, k_rest = jax.random.split(key)
    size = factor.shape[0]
    task = draw_tasks(k_task, pool, batch, d)
    drawn = normal(k_rest, (batch, size, d + 1))  # one call of the generator: each costs a second of compilation
    tokens = jnp.einsum("ab,nbi->nai", factor, drawn[:, :, :d]) / d**0.5
    labels = jnp.einsum("nai,ni->na", tokens, task) + jnp.sqrt(noise) * drawn[:, :, d]
    return tokens, labels, task


def sample(pretraining: Pretraining, *, seed: int) -> Contexts:
    """All `sequences` prompts of a pretraining set as NumPy arrays, its k tasks drawn once.

    Raises:
        InputError: when the arrays would pass 8 GiB; use `batches` there.
    """
    check_seed(seed)
    prompt, n = pretraining.prompt, pretraining.sequences
    if (need := n * (prompt.length + 1) * prompt.d * 8) > 8 * 2**30:
        raise InputError(
            f"{n} prompts need {need / 2**30:.0f} GiB: take fewer sequences, or stream them with `batches`"
        )
    tasks = (
        None
        if pretraining.tasks is None
        else np.random.default_rng(seed).standard_normal((pretraining.tasks, prompt.d))
    )
    size = max(1, min(n, 2**24 // ((prompt.length + 1) * prompt.d)))
    stream = batches(prompt, seed=seed, tasks=tasks, batch=size)
    drawn = [next(stream) for _ in range(-(-n // size))]
    return Contexts(*(np.concatenate(parts)[:n] for parts in zip(*drawn, strict=True)))


def score(
    predictor: Callable[[Any, Any, Any], Any],
    prompt: Prompt,
    *,
    seed: int,
    index: int = 0,
    prompts: int = 16384,
    tasks: np.ndarray | None = None,
    batch: int = 1024,
) -> Estimate:
    """Mean squared error of any predictor on fresh prompts, with its standard error.

    Args:
        predictor: called with NumPy arrays (x, y, query) of shapes (m, length, d), (m, length) and (m, d);
            returns m predictions of y_t, anything that `numpy.asarray` takes.
        prompt: the law of the test prompts.
        seed, index: the prompts depend on this pair alone.
        prompts: how many test prompts, rounded up to whole batches.
        tasks: as in `batches`.
        batch: prompts in a call.

    >>> from corricl import Prompt
    >>> nothing = score(lambda x, y, query: 0 * y[:, 0], Prompt(8, 16, noise=0.1), seed=1)
    >>> abs(nothing.mean - 1.1) < 4 * nothing.stderr
    True
    """
    errors = []
    stream = batches(prompt, seed=seed, index=index, tasks=tasks, batch=batch)
    for _ in range(-(-whole(prompts, "prompts") // batch)):
        drawn = next(stream)
        guess = np.asarray(predictor(drawn.x, drawn.y, drawn.query))
        if guess.shape != drawn.target.shape:
            raise InputError(f"a predictor must return shape {drawn.target.shape}; got {guess.shape}")
        if not np.isfinite(guess).all():
            raise InputError("the predictor returned NaN or infinite predictions")
        errors.append(np.square(drawn.target - guess))
    flat = np.concatenate(errors)
    return Estimate(float(flat.mean()), float(flat.std(ddof=1)) / len(flat) ** 0.5)
