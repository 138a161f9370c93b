"""The loop over validations: step, validate, keep the best, write the checkpoint; or go on from one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..errors import ConvergenceError
from ..prompt import Pretraining
from ..simulate._replicates import _require_memory
from ._architecture import Architecture
from ._checkpoint import load, restore, save
from ._config import Training
from ._data import Sequences, Streams, law_of, precision
from ._metrics import Row
from ._model import build
from ._steps import Program, Source, State, advance, optimizer, validate
from ._trained import Trained, drawn, identity_of, pretraining_set, tasks_of

CHECKPOINT = "checkpoint.corricl"
HOPELESS = 1e6
"""A loss this many times that of the start has diverged, finite or not."""


class Member(NamedTuple):
    """Which run: its seed, the number of its stream, and its learning rate."""

    seed: int
    stream: int
    rate: float


class Run(NamedTuple):
    """All members after `step` steps: their state, the best parameters so far, and their curves."""

    step: int
    state: State
    best: Any
    curves: list[list[Row]]
    selected: list[int]  # row of each curve whose parameters are in `best`


class Setup(NamedTuple):
    """What does not change during a run."""

    config: Training
    members: list[Member]
    program: Program
    sources: Source
    prompts: Sequences  # of the validation
    shared: bool  # members have one stream, and sources and prompts no axis of members
    identity: dict[str, Any]
    file: Path | None  # of the checkpoint


def train_members(
    architecture: Architecture,
    subject: Pretraining,
    config: Training,
    members: list[Member],
    folder: Path | str | None,
    watch: Callable[[list[Row]], None] | None,
    tolerant: bool = False,
) -> list[Trained]:
    """Train the members; `tolerant` lets them diverge. Other arguments as in `train_many`."""
    with precision(config.dtype):
        setup, state = _set_up(architecture, subject, config, members, folder)
        run = _resumed(setup, state) or _evaluated(_begun(state), setup, None)
        rates = jnp.asarray([member.rate for member in members], config.dtype)
        while run.step < config.steps and not all(_stale(run, config)):
            span = np.array([run.step, min(run.step + config.every, config.steps)], np.int32)
            state, losses = advance(run.state, setup.sources, setup.shared, rates, span, setup.program)
            after = _evaluated(run._replace(step=int(span[1]), state=state), setup, np.asarray(losses))
            if not tolerant:
                _require_sane(run.step, after, setup)
            run = after
            _keep(run, setup)
            if watch is not None:
                watch([curve[-1] for curve in run.curves])
        return [_trained(i, run, setup, architecture, subject) for i in range(len(members))]


def _trained(i: int, run: Run, setup: Setup, architecture: Architecture, subject: Pretraining) -> Trained:
    model = eqx.combine(jax.tree.map(lambda a: a[i], run.best), setup.program.static)
    curve = tuple(run.curves[i])
    return Trained(architecture, subject, setup.config, *setup.members[i], model, curve, run.selected[i])


def _set_up(
    architecture: Architecture,
    subject: Pretraining,
    config: Training,
    members: list[Member],
    folder: Path | str | None,
) -> tuple[Setup, State]:
    """Data and validation prompts of the members, and their state before the first step."""
    prompt = subject.prompt
    keys = [Streams.of(member.seed, member.stream) for member in members]
    models = [build(architecture, prompt.d, prompt.length, key=key.model, dtype=config.dtype) for key in keys]
    params, statics = zip(*(eqx.partition(model, eqx.is_inexact_array) for model in models), strict=True)
    params = _stack(params)
    state = State(params, jax.vmap(optimizer(config).init)(params), None if config.ema is None else params)

    shared = len({member[:2] for member in members}) == 1
    streams = keys[:1] if shared else keys
    size = (prompt.length + 1) * prompt.d * np.dtype(config.dtype).itemsize
    _require_memory(len(streams) * size * (config.validation + (subject.sequences if config.data == "fixed" else 0)))
    law = law_of(prompt, config.dtype)
    sources, prompts = [], []
    for key in streams:
        fixed = pretraining_set(key, subject, config) if config.data == "fixed" else None
        pool = tasks_of(key, subject, config) if fixed is None else None
        sources.append(Source(key.steps, law, pool, fixed))
        prompts.append(drawn(key.validation, law, None, config.validation, prompt.length, prompt.d))
    sources, prompts = (trees[0] if shared else _stack(trees) for trees in (sources, prompts))
    # runs that differ in what is not compiled in share their compiled code
    compiled = replace(config, rate=1.0, interval=None, patience=None, validation=1, test=1)
    program = Program(statics[0], compiled, prompt.length, prompt.d)
    identity = {**identity_of(architecture, subject, config), "members": [list(member) for member in members]}
    file = None if folder is None else Path(folder) / CHECKPOINT
    return Setup(config, members, program, sources, prompts, shared, identity, file), state


def _stack(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def _begun(state: State) -> Run:
    members = len(jax.tree.leaves(state.params)[0])
    return Run(0, state, state.params, [[] for _ in range(members)], [0] * members)


def _resumed(setup: Setup, like: State) -> Run | None:
    if setup.file is None or not setup.file.exists():
        return None
    found = load(setup.file)
    state, best = restore(setup.file, found, (like, like.params), setup.identity)
    curves = [[Row(*row) for row in curve] for curve in found.header["curves"]]
    return Run(found.header["step"], state, best, curves, found.header["selected"])


def _keep(run: Run, setup: Setup) -> None:
    if setup.file is None:
        return
    header = {"run": setup.identity, "step": run.step, "curves": run.curves, "selected": run.selected}
    save(setup.file, header, (run.state, run.best))


def _stale(run: Run, config: Training) -> list[bool]:
    """Which members have waited too long for a new best; they are left as they were."""
    if config.patience is None or not run.curves[0]:
        return [False] * len(run.curves)
    return [len(curve) - 1 - at >= config.patience for curve, at in zip(run.curves, run.selected, strict=True)]


def _evaluated(run: Run, setup: Setup, losses: np.ndarray | None) -> Run:
    """Add a row to the curves, and take over the parameters of members that are better than ever."""
    config = setup.config
    now = run.state.params if config.ema is None else run.state.average
    found = np.asarray(validate(now, setup.prompts, setup.shared, setup.program))
    curves, selected, better = [list(curve) for curve in run.curves], list(run.selected), np.zeros(len(found), bool)
    for i, stale in enumerate(_stale(run, config)):
        if stale:
            continue
        curves[i].append(Row(run.step, None if losses is None else float(losses[i]), float(found[i])))
        better[i] = found[i] < curves[i][selected[i]].validation
        selected[i] = len(curves[i]) - 1 if better[i] else selected[i]

    def take(new: jax.Array, old: jax.Array) -> jax.Array:
        return jnp.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    return run._replace(best=jax.tree.map(take, now, run.best), curves=curves, selected=selected)


def diverged(curve: Sequence[Row]) -> bool:
    """Whether the last row is beyond repair. Overflowing second moments can freeze AdamW at a huge but finite loss."""
    losses = [curve[-1].validation, 0.0 if curve[-1].train is None else curve[-1].train]
    return not max(losses, key=lambda v: np.inf if np.isnan(v) else v) <= HOPELESS * curve[0].validation


def _require_sane(before: int, run: Run, setup: Setup) -> None:
    for member, curve in zip(setup.members, run.curves, strict=True):
        if diverged(curve):
            kept = f"; the checkpoint of step {before} is kept" if setup.file is not None and before else ""
            raise ConvergenceError(
                f"training diverged between steps {before} and {run.step} at rate {member.rate:g}, seed {member.seed}: "
                f"its loss is NaN, infinite or over a million times that of the start; take a lower rate{kept}"
            )
