"""Training a model: one run, several together, and the search for a rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..errors import ConvergenceError, InputError
from ..prompt import Pretraining, Prompt
from ..setting import Setting
from ._architecture import Architecture
from ._checkpoint import load
from ._config import FIND, Training, configure
from ._loop import CHECKPOINT, Member, diverged, train_members
from ._metrics import Row, Watch
from ._trained import Trained

RATES = tuple(float(f"{rate:.1e}") for rate in np.geomspace(1e-4, 1e-1, 10))
"""Learning rates of the range test."""


def train(
    architecture: Architecture | str,
    subject: Pretraining | Prompt,
    config: Training | None = None,
    *,
    seed: int = 0,
    index: int = 0,
    folder: Path | str | None = None,
    on_evaluation: Watch | None = None,
) -> Trained:
    """Train a model on prompts and keep the parameters that are best on validation prompts.

    Args:
        architecture: the model, or a string, which may bring training options too (`configure`).
        subject: what to train on; a `Prompt` alone is enough for fresh data.
        config: how, where the string does not say it.
        seed, index: data, first parameters and validation prompts depend on this pair alone.
        folder: for the checkpoint, which is written at each validation. A run that stopped goes on from there and
            ends with the same bits as one that never did.
        on_evaluation: called with each `Row` of the loss curve.

    Returns:
        `Trained`; its `risk()` is the error on fresh test prompts.

    Raises:
        InputError: settings that do not fit together, or a checkpoint of another run.
        ConvergenceError: the loss became NaN, infinite or a million times that of the start. The checkpoint stays
            that of the last good validation.

    See docs/train.md, which has an example.
    """
    architecture, config = _described(architecture, config)
    rate = config.rate
    if rate == FIND and folder is not None and (Path(folder) / CHECKPOINT).exists():
        rate = load(Path(folder) / CHECKPOINT).header["run"]["members"][0][2]  # what the run that stopped had found
    if rate == FIND:
        rate = find_rate(architecture, subject, config, seed=seed, index=index)
    watch = None if on_evaluation is None else lambda rows: on_evaluation(rows[0])
    given = _checked(architecture, subject, config)
    return train_members(architecture, given, config, [Member(seed, index, float(rate))], folder, watch)[0]


def train_many(
    architecture: Architecture | str,
    subject: Pretraining | Prompt,
    config: Training | None = None,
    *,
    seeds: Sequence[int] = (0,),
    rates: Sequence[float] | None = None,
    folder: Path | str | None = None,
    on_evaluation: Callable[[list[Row]], None] | None = None,
) -> list[Trained]:
    """Train every seed at every rate together as one program; each is what `train` makes of it alone, to rounding.

    Args:
        architecture, subject, config, folder: as in `train`.
        seeds: of the runs.
        rates: learning rates; default that of `config`.
        on_evaluation: called with the newest row of every run.

    Returns:
        A run for each (seed, rate), rates fastest.

    Raises:
        InputError, ConvergenceError: as in `train`, the latter if any run diverges.
    """
    architecture, config = _described(architecture, config)
    if rates is None and config.rate == FIND:
        raise InputError("runs that are trained together need rates that are numbers; `find_rate` finds one")
    members = [Member(seed, 0, float(rate)) for seed in seeds for rate in rates or [config.rate]]
    if not members:
        raise InputError("give at least one seed")
    given = _checked(architecture, subject, config)
    return train_members(architecture, given, config, members, folder, on_evaluation)


def find_rate(
    architecture: Architecture | str,
    subject: Pretraining | Prompt,
    config: Training | None = None,
    *,
    seed: int = 0,
    index: int = 0,
    rates: Sequence[float] = RATES,
) -> float:
    """Learning-rate range test: a tenth of the steps at every rate, together; the rate with the least validation error.

    Args:
        architecture, subject, config, seed, index: as in `train`.
        rates: to choose from.

    Raises:
        ConvergenceError: training diverges at every rate.
    """
    architecture, config = _described(architecture, config)
    short = replace(config, steps=max(config.steps // 10, 1), interval=None, patience=None)
    members = [Member(seed, index, float(rate)) for rate in rates]
    given = _checked(architecture, subject, config)
    made = train_members(architecture, given, short, members, None, None, tolerant=True)
    good = [t for t in made if not diverged(t.curve)]
    if not good:
        raise ConvergenceError(f"training diverges at every rate from {min(rates):g} to {max(rates):g}")
    return min(good, key=lambda t: t.curve[-1].validation).rate


def subject_of(setting: Setting, config: Training) -> Pretraining:
    """What a setting trains on. Fresh data needs no number of sequences."""
    fresh = config.data == "fresh" and setting.sequences is None and setting.tau is None
    return replace(setting, sequences=1).pretraining if fresh else setting.pretraining


def _described(architecture: Architecture | str, config: Training | None) -> tuple[Architecture, Training]:
    if isinstance(architecture, Architecture):
        return architecture, config or Training()
    made, own = configure(architecture)
    if config is not None and own != Training():
        raise InputError("give training options in the model's string or as a config, not both")
    return made, config or own


def _checked(architecture: Architecture, subject: Pretraining | Prompt, config: Training) -> Pretraining:
    """What is trained on as a `Pretraining`; with fresh data its sequences do not count."""
    if config.loss == "every position" and architecture.mask != "causal":
        raise InputError("the loss on every position needs mask causal, under which no token sees those behind it")
    if config.data == "fresh":
        return Pretraining(subject, 1) if isinstance(subject, Prompt) else replace(subject, sequences=1)
    if isinstance(subject, Prompt):
        raise InputError("fixed data needs a Pretraining: how many sequences, of how many tasks")
    if config.batch is not None and config.batch > subject.sequences:
        raise InputError(f"batch must be at most the number of sequences, {subject.sequences}; got {config.batch}")
    return subject
