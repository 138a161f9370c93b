"""The arithmetic of training, compiled: many steps of AdamW, and errors on prompts.

Every array of a run's state has a leading axis of members, runs that differ in seed or rate alone; `vmap` maps one
run's arithmetic over it. Sequences are drawn within the compiled steps.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from ._config import Training
from ._data import CHUNK, Law, Sequences, draw
from ._positions import Positions


class Program(NamedTuple):
    """What is compiled in: the model without its parameters, how it is trained, and the sizes of a prompt."""

    static: Any
    config: Training
    length: int
    d: int


class State(NamedTuple):
    """What a step changes."""

    params: Any
    optimizer: Any
    average: Any  # moving average of the parameters, None without


class Source(NamedTuple):
    """Where a run's sequences come from: its key, its law and tasks, its pretraining set (None for fresh data)."""

    steps: Array
    law: Law
    pool: Array | None
    fixed: Sequences | None


def optimizer(config: Training) -> optax.GradientTransformation:
    """AdamW without its rate, which differs between members and steps; only matrices decay, no weights of positions."""
    clip = optax.identity() if config.clip is None else optax.clip_by_global_norm(config.clip)
    return optax.chain(clip, optax.scale_by_adam(), optax.add_decayed_weights(config.weight_decay, _decays))


def _decays(params: Any) -> Any:
    """True for each parameter that decays."""

    def decide(node: Any) -> Any:
        return jax.tree.map(lambda _: False, node) if isinstance(node, Positions) else node.ndim > 1

    return jax.tree.map(decide, params, is_leaf=lambda node: isinstance(node, Positions))


def scheduled(step: Array, config: Training) -> Array:
    """The rate of step 0, 1, ... as a fraction of the full rate."""
    warm = max(round(config.warmup * config.steps), 1)
    done = step.astype(config.dtype)
    rest = jnp.clip((done - warm) / max(config.steps - warm, 1), 0, 1)
    fall = (1 + jnp.cos(math.pi * rest)) / 2 if config.schedule == "cosine" else jnp.ones_like(rest)
    return jnp.minimum((done + 1) / warm, fall)


@eqx.filter_jit
def advance(
    state: State, sources: Source, shared: bool, rates: Array, span: np.ndarray, program: Program
) -> tuple[State, Array]:
    """Steps span[0], ..., span[1]-1 of every member.

    Args:
        state: of the members.
        sources: of the members, or the one source that they share.
        shared: which of the two.
        rates: learning rates, shape (members,).
        span: integers, shape (2,).
        program: what is compiled in.

    Returns:
        The new state, and each member's mean loss over these steps, shape (members,).
    """

    def one(state: State, source: Source, rate: Array) -> tuple[State, Array]:
        def step(number: Array, carry: tuple[State, Array]) -> tuple[State, Array]:
            loss, state = _step(carry[0], source, rate, number, program)
            return state, carry[1] + loss

        state, total = jax.lax.fori_loop(span[0], span[1], step, (state, jnp.zeros_like(rate)))
        return state, total / (span[1] - span[0]).astype(total.dtype)

    return jax.vmap(one, in_axes=(0, None if shared else 0, 0))(state, sources, rates)


def _step(state: State, source: Source, rate: Array, number: Array, program: Program) -> tuple[Array, State]:
    config = program.config
    sequences = _batch(source, jax.random.fold_in(source.steps, number), program)
    loss, slope = jax.value_and_grad(_loss)(state.params, sequences, program)
    with jax.numpy_dtype_promotion("standard"):  # optax raises a float to the power of its integer counter
        change, inner = optimizer(config).update(slope, state.optimizer, state.params)
    size = rate * scheduled(number, config)
    params = jax.tree.map(lambda p, c: p - size * c, state.params, change)
    average = state.average
    if config.ema is not None:
        early = (number.astype(rate.dtype) + 1) / (number.astype(rate.dtype) + 10)  # forgets the start soon
        keep = jnp.minimum(early, config.ema)
        average = jax.tree.map(lambda a, p: keep * a + (1 - keep) * p, average, params)
    return loss, State(params, inner, average)


def _batch(source: Source, key: Array, program: Program) -> Sequences:
    """The sequences of a step: fresh ones, all of the fixed ones, or some of them with replacement."""
    size = program.config.batch
    if source.fixed is None:
        assert size is not None  # `Training` sees to it
        return draw(key, source.law, source.pool, size, program.length, program.d)
    if size is None:
        return source.fixed
    rows = jax.random.randint(key, (size,), 0, len(source.fixed.y))
    return jax.tree.map(lambda a: a[rows], source.fixed)


def _loss(params: Any, sequences: Sequences, program: Program) -> Array:
    model = eqx.combine(params, program.static)
    if program.config.loss == "every position":
        return jnp.square(sequences.y - jax.vmap(model.at_every_position)(sequences.x, sequences.y)).mean()
    return jax.vmap(lambda x, y: _error(model, x, y))(sequences.x, sequences.y).mean()


def _error(model: Any, x: Array, y: Array) -> Array:
    """Squared error at the query, whose label the model does not get."""
    return jnp.square(y[-1] - model(x, y[:-1]))


@eqx.filter_jit
def validate(params: Any, prompts: Sequences, shared: bool, program: Program) -> Array:
    """Mean error of every member on prompts, shape (members,); `shared` ones have no axis of members."""

    def one(params: Any, prompts: Sequences) -> Array:
        model = eqx.combine(params, program.static)
        return jax.lax.map(lambda p: _error(model, *p), (prompts.x, prompts.y), batch_size=CHUNK).mean()

    return jax.vmap(one, in_axes=(0, None if shared else 0))(params, prompts)


@eqx.filter_jit
def errors(model: Any, key: Array, law: Law, pool: Array | None, count: int, length: int, d: int) -> Array:
    """Squared errors of one model on `count` drawn prompts (see `draw`), shape (count,)."""

    def chunk(index: Array) -> Array:
        drawn = draw(jax.random.fold_in(key, index), law, pool, min(count, CHUNK), length, d)
        return jax.vmap(lambda x, y: _error(model, x, y))(drawn.x, drawn.y)

    return jax.lax.map(chunk, jnp.arange(-(-count // CHUNK))).reshape(-1)[:count]


@eqx.filter_jit
def predictions(model: Any, x: Array, y: Array) -> Array:
    """Predictions on prompts x (n, length+1, d) with context labels y (n, length), shape (n,)."""
    return jax.vmap(model)(x, y)
