"""Training steps a second of one-layer models: evaluated for the query alone, and at all positions, in one process.

    python benchmarks/bench_attention.py

The alternative is the textbook evaluation of the same parameters (`_all_positions`). Both take AdamW steps from
the same start on the same sequences, so that their losses agree. Fixed data is a batch that stays on the device, fresh
data is drawn within the step. Of four layers the compiled programs' floating-point operations are compared.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from _all_positions import predict as at_all_positions
from jax import Array

from corricl import Prompt
from corricl.attention import Architecture, Model, build
from corricl.attention._data import Law, Sequences, draw, law_of, precision

PROMPT = Prompt(d=32, length=128, kernel="exp:5", query="continues", noise=0.01)
WIDTH, BATCH, REPEATS, STEPS = 64, 512, 5, 5
NEEDED = {"fixed": 20, "fresh": 10}

Predict = Callable[[Model, Array, Array], Array]
Step = Callable[[Any, Any, Array], tuple[Any, Any, Array]]


def for_the_query(model: Model, x: Array, y: Array) -> Array:
    """What a model does by itself."""
    return model(x, y)


def step_of(predict: Predict, static: Model, law: Law, fixed: Sequences | None) -> Step:
    """One AdamW step on a batch, compiled; fresh sequences of step `number` where none are fixed."""

    def loss(params: Any, drawn: Sequences) -> Array:
        model = eqx.combine(params, static)
        found = jax.vmap(lambda x, y: predict(model, x, y))(drawn.x, drawn.y[:, :-1])
        return jnp.mean(jnp.square(found - drawn.y[:, -1]))

    @jax.jit
    def step(params: Any, state: Any, number: Array, fixed: Sequences | None) -> tuple[Any, Any, Array]:
        key = jax.random.fold_in(jax.random.key(1), number)
        drawn = draw(key, law, None, BATCH, PROMPT.length, PROMPT.d) if fixed is None else fixed
        value, slope = jax.value_and_grad(loss)(params, drawn)
        change, state = optax.adamw(1e-3).update(slope, state, params)
        return optax.apply_updates(params, change), state, value

    return lambda params, state, number: step(params, state, number, fixed)


class Run:
    """A model under training, and the seconds of each step."""

    def __init__(self, layers: str, predict: Predict, law: Law, fixed: Sequences | None) -> None:
        architecture = Architecture(layers, width=WIDTH)
        model = build(architecture, PROMPT.d, PROMPT.length, key=jax.random.key(0))
        self.params, static = eqx.partition(model, eqx.is_inexact_array)
        self.state = optax.adamw(1e-3).init(self.params)
        self.step = step_of(predict, static, law, fixed)
        self.losses: list[float] = []

    def take(self, steps: int) -> float:
        """Seconds a step."""
        start = time.perf_counter()
        values = []
        for number in range(len(self.losses), len(self.losses) + steps):
            self.params, self.state, value = self.step(self.params, self.state, jnp.asarray(number))
            values.append(value)
        self.losses += [float(value) for value in values]
        return (time.perf_counter() - start) / steps


def race(layers: str, data: str) -> float:
    """Print one line; the median ratio of steps a second."""
    law = law_of(PROMPT, "float32")
    fixed = draw(jax.random.key(2), law, None, BATCH, PROMPT.length, PROMPT.d) if data == "fixed" else None
    ours, theirs = (Run(layers, predict, law, fixed) for predict in (for_the_query, at_all_positions))
    for run in (ours, theirs):
        run.take(1)  # compiles
    pairs = [(ours.take(STEPS), theirs.take(1)) for _ in range(REPEATS)]
    common = list(zip(ours.losses, theirs.losses, strict=False))
    apart = max(abs(a - b) / b for a, b in common)
    fast, slow = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
    ratio = statistics.median(slow / fast for fast, slow in pairs)
    print(
        f"{layers:<12} {data:<6} query alone {1 / fast:7.1f} steps/s   all positions {1 / slow:6.2f} steps/s   "
        f"ratio {ratio:5.0f} (needed {NEEDED[data]})   losses of {len(common)} steps agree to {apart:.0e}, "
        f"{common[0][0]:.3f} to {common[-1][0]:.3f}",
        flush=True,
    )
    return ratio / NEEDED[data] if apart < 1e-3 else 0.0


def operations(repeats: int) -> float:
    """How many times the compiled gradient at all positions has the operations of that of the query."""
    architecture = Architecture("softmax+mlp", repeats, width=WIDTH)
    model = build(architecture, PROMPT.d, PROMPT.length, key=jax.random.key(0))
    params, static = eqx.partition(model, eqx.is_inexact_array)
    x, y = jnp.zeros((BATCH, PROMPT.length + 1, PROMPT.d)), jnp.zeros((BATCH, PROMPT.length))

    def count(predict: Predict) -> float:
        def total(params: Any, x: Array, y: Array) -> Array:
            model = eqx.combine(params, static)
            return jax.vmap(lambda x, y: predict(model, x, y))(x, y).sum()

        costs = jax.jit(jax.grad(total)).lower(params, x, y).compile().cost_analysis()
        assert costs is not None
        return costs["flops"]

    ours, theirs = count(for_the_query), count(at_all_positions)
    amounts = f"{ours / 1e9:.2f} against {theirs / 1e9:.2f} Gflop a gradient"
    print(f"softmax+mlp, {repeats} layers: {amounts}, {theirs / ours:.2f}x")
    return theirs / ours


def main() -> None:
    print(f"d {PROMPT.d}, length {PROMPT.length}, width {WIDTH}, batch {BATCH}: medians of {REPEATS} pairs")
    with precision("float32"):
        enough = [race(layers, data) for layers in ("softmax", "softmax+mlp") for data in NEEDED]
        deep = [operations(repeats) / least for repeats, least in ((1, 20), (4, 1.2))]
    print(f"load {os.getloadavg()[0]:.1f}")
    sys.exit(min(enough + deep) < 1)


if __name__ == "__main__":
    main()
