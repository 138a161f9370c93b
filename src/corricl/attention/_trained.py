"""A trained model: what it was trained on, how that went, and how well it does."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import ConvergenceError, InputError
from ..prompt import Estimate, Pretraining, Prompt, whole
from ._architecture import Architecture
from ._config import Training
from ._data import Streams, draw_many, law_of, precision
from ._metrics import Row
from ._model import Model
from ._steps import errors, predictions


@dataclass(frozen=True)
class Trained:
    """The parameters that were best on the validation prompts, and where they come from.

    Attributes:
        architecture, pretraining, config: what was trained, on what and how. With fresh data the `sequences`
            of the pretraining do not count.
        seed, index: of the run.
        rate: learning rate.
        model: one example in, one prediction out (`Model`).
        curve: a `Row` for each validation, the first before any step.
        selected: which row's parameters were kept.
    """

    architecture: Architecture
    pretraining: Pretraining
    config: Training
    seed: int
    index: int
    rate: float
    model: Model = field(repr=False)
    curve: tuple[Row, ...] = field(repr=False)
    selected: int

    @property
    def steps(self) -> int:
        """Steps that were made."""
        return self.curve[-1].step

    @property
    def selected_step(self) -> int:
        """Steps after which the parameters were best on validation prompts."""
        return self.curve[self.selected].step

    @property
    def validation(self) -> float:
        """Error on the validation prompts, the least of the curve and so a little optimistic; see `risk`."""
        return self.curve[self.selected].validation

    @property
    def train(self) -> float | None:
        """Mean training loss over the steps before the selected one; None where that is the start."""
        return self.curve[self.selected].train

    def risk(self, test: Prompt | None = None, *, prompts: int | None = None) -> Estimate:
        """Mean squared error on fresh tasks, with its standard error over the test prompts.

        Args:
            test: another law of the prompts, same d: other length, kernel, query or noise. Default that of training.
            prompts: how many, a task each; default that of `config.test`. They are no validation prompts.

        Raises:
            InputError: a prompt that the model cannot take.
            ConvergenceError: predictions are infinite or NaN there.
        """
        law = self.pretraining.prompt if test is None else test
        if law.d != self.pretraining.prompt.d:
            raise InputError(
                f"the test prompt has d = {law.d}; the model was trained with d = {self.pretraining.prompt.d}"
            )
        return self._scored(law, None, self.config.test if prompts is None else whole(prompts, "prompts"))

    def idg(self, *, prompts: int | None = None) -> Estimate:
        """Mean squared error on the pretraining tasks with fresh tokens, with its standard error over prompts.

        Args:
            prompts: how many; default that of `config.test`.

        Raises:
            InputError: fresh data with a task for each sequence: there are no pretraining tasks.
        """
        subject = self.pretraining
        if self.config.data == "fresh" and subject.tasks is None:
            raise InputError("a model trained on fresh tasks has no pretraining tasks: idg is its icl")
        with precision(self.config.dtype):
            pool = tasks_of(Streams.of(self.seed, self.index), subject, self.config)
        return self._scored(subject.prompt, pool, self.config.test if prompts is None else whole(prompts, "prompts"))

    def predict(self, x: np.ndarray, y: np.ndarray, query: np.ndarray) -> np.ndarray:
        """Predictions of n labels; what `simulate.score` takes as predictor.

        Args:
            x: context tokens, shape (n, length, d).
            y: their labels, shape (n, length).
            query: shape (n, d).
        """
        tokens = np.concatenate([x, query[:, None]], axis=1)
        with precision(self.config.dtype):
            arrays = (jnp.asarray(np.asarray(a, self.config.dtype)) for a in (tokens, y))
            return np.asarray(predictions(self.model, *arrays))

    def _scored(self, law: Prompt, pool: jax.Array | None, prompts: int) -> Estimate:
        with precision(self.config.dtype):
            key, of = Streams.of(self.seed, self.index).test, law_of(law, self.config.dtype)
            made = np.asarray(errors(self.model, key, of, pool, prompts, law.length, law.d), np.float64)
        if not np.isfinite(made).all():
            raise ConvergenceError("the model's predictions are infinite or NaN on these test prompts")
        spread = None if prompts == 1 else float(made.std(ddof=1)) / prompts**0.5
        return Estimate(float(made.mean()), spread)


def tasks_of(keys: Streams, subject: Pretraining, config: Training) -> jax.Array | None:
    """The pretraining tasks of a run, shape (k, d); None for fresh data with a task for each sequence."""
    d = subject.prompt.d
    if subject.tasks is not None:
        return jax.random.normal(keys.tasks, (subject.tasks, d), config.dtype)
    return pretraining_set(keys, subject, config).task if config.data == "fixed" else None


def pretraining_set(keys: Streams, subject: Pretraining, config: Training) -> Any:
    """The fixed sequences of a run."""
    prompt = subject.prompt
    pool = None if subject.tasks is None else tasks_of(keys, subject, config)
    return drawn(keys.data, law_of(prompt, config.dtype), pool, subject.sequences, prompt.length, prompt.d)


drawn = jax.jit(draw_many, static_argnums=(3, 4, 5))


def identity_of(architecture: Architecture, subject: Pretraining, config: Training) -> dict[str, Any]:
    """Everything but the seed and a rate that was found which determines a run, in plain values."""
    prompt = subject.prompt
    law = {"d": prompt.d, "length": prompt.length, "kernel": prompt.kernel.spec, "query": prompt.query.spec}
    sizes = {"noise": prompt.noise, "sequences": subject.sequences, "tasks": subject.tasks}
    entries = np.round(prompt.joint, 9) + 0.0  # a file may have changed; another processor rounds exp differently
    joint = hashlib.sha256(np.ascontiguousarray(entries).tobytes()).hexdigest()[:16]
    return {**asdict(architecture), **law, **sizes, "joint": joint, **asdict(config)}
