"""How a model is trained, in plain values, and the strings in which sweeps name a model and its training."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ..errors import InputError
from ..prompt import number, whole
from ._architecture import Architecture

CHOICES = {
    "schedule": ("cosine", "constant"),
    "loss": ("query", "every position"),
    "data": ("fixed", "fresh"),
    "dtype": ("float32", "float64"),
}
FIND = "find"
SHORT = {"layers": "repeats", "model": "layers", "decay": "weight_decay"}
"""Names on the command line and in strings, where they differ: `layers=4` is how often the list is stacked."""


@dataclass(frozen=True)
class Training:
    """One training run, but for its seed.

    Args:
        steps: updates of the parameters, >= 1.
        batch: sequences in a step; None takes all of a fixed pretraining set.
        rate: learning rate of AdamW after the warm-up, or "find" for a range test before the run (`find_rate`).
        schedule: of the rate after the warm-up: cosine (down to 0) or constant.
        warmup: fraction of the steps over which the rate grows from 0, in [0, 1].
        weight_decay: AdamW's, on matrices; biases, gains and position weights do not decay.
        clip: largest norm of a gradient; None does not clip.
        ema: decay in [0, 1) of a moving average of the parameters, which is then what is validated and kept;
            None for none.
        loss: squared error at the query, or the mean over every position as query of the tokens before it
            (needs a causal mask).
        data: the `sequences` of a pretraining set, or fresh sequences in every step (on its k tasks where it has k).
        interval: steps between validations; None makes 50 of them.
        patience: stop after so many validations without a new best; None never stops early.
        validation: fresh prompts on which the parameters are selected.
        test: other fresh prompts on which the selected parameters are scored.
        dtype: float32 or float64, of the model and its data.

    Raises:
        InputError: values out of range.
    """

    steps: int = 4000
    batch: int | None = 256
    rate: float | str = 3e-3
    schedule: str = "cosine"
    warmup: float = 0.05
    weight_decay: float = 0.0
    clip: float | None = 1.0
    ema: float | None = None
    loss: str = "query"
    data: str = "fixed"
    interval: int | None = None
    patience: int | None = None
    validation: int = 4096
    test: int = 16384
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "interval", "patience", "validation", "test"):
            if (value := getattr(self, name)) is not None or name in ("steps", "validation", "test"):
                object.__setattr__(self, name, whole(value, name))
        if self.rate != FIND:
            object.__setattr__(self, "rate", number(self.rate, "rate", positive=True))
        object.__setattr__(self, "weight_decay", number(self.weight_decay, "weight_decay"))
        if self.clip is not None:
            object.__setattr__(self, "clip", number(self.clip, "clip", positive=True))
        for name, top in (("warmup", 1.0), ("ema", 1.0)):
            if (value := getattr(self, name)) is not None and not (0 <= number(value, name) <= top):
                raise InputError(f"{name} must lie in [0, {top:g}]; got {value}")
        if self.ema == 1:
            raise InputError("ema must be below 1, or the average never moves")
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise InputError(f"{name} must be one of {', '.join(known)}; got '{getattr(self, name)}'")
        if self.batch is None and self.data == "fresh":
            raise InputError("fresh data needs a batch size; the full batch is for fixed data")

    @property
    def every(self) -> int:
        """Steps between validations."""
        return self.interval or max(1, self.steps // 50)


def configure(text: str, options: Mapping[str, Any] | None = None) -> tuple[Architecture, Training]:
    """A model and its training from a string such as `softmax+mlp;layers=4;width=64;steps=4000;data=fresh`.

    First comes the list of layers, then fields of `Architecture` and `Training`; `layers=4` stacks the list
    four times, `batch=full` takes all of a fixed set, and `none` is None.

    Args:
        text: the string.
        options: further fields, which override the string's; text is converted.

    Raises:
        InputError: an unknown key, with the nearest one that is known, or a value of the wrong kind.

    >>> architecture, training = configure("softmax+mlp;layers=2;steps=100", {"rate": "1e-3"})
    >>> architecture.repeats, training.steps, training.rate
    (2, 100, 0.001)
    """
    name, *rest = (word.strip() for word in text.split(";"))
    values: dict[str, Any] = {"layers": name}
    for word in rest:
        key, equals, value = word.partition("=")
        if not equals:
            raise InputError(f"'{word}' in '{text}' is not KEY=VALUE")
        values |= _field(key.strip(), value.strip())
    for key, value in (options or {}).items():
        values |= _field(key, value)
    shape = {f.name for f in fields(Architecture)}
    return (
        Architecture(**{key: value for key, value in values.items() if key in shape}),
        Training(**{key: value for key, value in values.items() if key not in shape}),
    )


def _field(key: str, value: Any) -> dict[str, Any]:
    name = SHORT.get(key, key.replace("-", "_"))
    kinds = {f.name: str(f.type) for f in (*fields(Architecture), *fields(Training))}
    if name not in kinds:
        known = sorted({*kinds, *SHORT})
        near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
        hint = f"did you mean '{near[0]}'?" if near else f"allowed: {', '.join(known)}"
        raise InputError(f"unknown option '{key}' of a model and its training; {hint}")
    return {name: _value(name, value, kinds[name]) if isinstance(value, str) else value}


def _value(name: str, text: str, kind: str) -> Any:
    """Text as the type of its field; what is no number is left to the field's own check."""
    if (text == "none" and "None" in kind) or (text == "full" and name == "batch"):
        return None
    if kind == "bool":
        if text not in ("true", "false"):
            raise InputError(f"{name} must be true or false; got '{text}'")
        return text == "true"
    if "int" in kind or "float" in kind:
        try:
            return float(text) if "float" in kind else int(text)
        except ValueError:
            if "str" not in kind:
                raise InputError(f"{name} must be a number; got '{text}'") from None
    return text
