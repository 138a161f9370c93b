"""What the page shows, as one value that the address holds."""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, urlencode

from ..errors import InputError
from ..kernels import Query, parse
from ..prompt import number, size_of_ratio, whole
from ..setting import Setting
from ._quantities import SIZES, Quantity, parameters, spec_of, values_of

LARGEST = {"d": 512, "length": 1024, "sequences": 10**7, "tasks": 10**6}
"""Sizes beyond which a page would be slow; the command line has no such bound."""

AXES = {
    "kernel": "first parameter of the kernel",
    "length": "context length ℓ",
    "tau": "τ = sequences / d²",
    "kappa": "κ = tasks / d",
    "noise": "label noise ρ",
    "ridge": "ridge λ",
}
_RATIOS = {
    "tau": Quantity("τ = sequences / d²", 0.1, 10, 1, log=True),
    "kappa": Quantity("κ = tasks / d", 0.1, 50, 1, log=True),
}
VIEW = ("axis", "scale")
"""What the address holds beside the setting."""
_PATH = re.compile(r"(^|[*+\s])file:")


@dataclass(frozen=True)
class State:
    """One setting under the names of the command line, and the axis over which the curves run.

    Args:
        d, length, sequences: sizes >= 1.
        tasks: number of pretraining tasks >= 1, or inf for a task of its own for each sequence.
        noise, ridge: label-noise variance and ridge strength >= 0.
        kernel: SPEC string; no `file:`, since an address may not name files of this machine.
        query: QUERY string; no `vector:`.
        axis: one of `AXES`; `kernel` needs a kernel of a single family with a parameter.
        scale: of the error axis, linear or log.

    Raises:
        InputError: anything out of range, in one sentence.

    >>> State.from_address("?kernel=exp:5&tasks=inf").address
    'd=32&length=128&sequences=4096&tasks=inf&noise=0.01&ridge=1e-08&kernel=exp:5&query=independent&axis=kernel&scale=linear'
    """

    d: int = 32
    length: int = 128
    sequences: int = 4096
    tasks: float = 320
    noise: float = 0.01
    ridge: float = 1e-8
    kernel: str = "exp:2"
    query: str = "independent"
    axis: str = "kernel"
    scale: str = "linear"

    def __post_init__(self) -> None:
        for name, most in LARGEST.items():
            value = getattr(self, name)
            if name == "tasks" and value == math.inf:
                continue
            if whole(value, name) > most:
                raise InputError(f"{name} may be at most {most} on this page; got {value:g}")
            object.__setattr__(self, name, int(value))
        for name in ("noise", "ridge"):
            object.__setattr__(self, name, number(getattr(self, name), name))
        if _PATH.search(self.kernel) or self.query.startswith("vector"):
            raise InputError("this page reads no file by its path: bring it under 'Your data'")
        object.__setattr__(self, "kernel", parse(self.kernel).spec)
        object.__setattr__(self, "query", Query.parse(self.query).spec)
        if self.axis not in AXES:
            raise InputError(f"unknown axis '{self.axis}'; allowed: {', '.join(AXES)}")
        if self.scale not in ("linear", "log"):
            raise InputError(f"scale must be linear or log; got '{self.scale}'")
        if self.axis == "kernel" and not self.parameters:
            raise InputError(f"the kernel '{self.kernel}' has no single parameter for an axis; choose another axis")
        _ = self.setting.prompt  # refuses a kernel that is not positive semidefinite

    @property
    def parameters(self) -> tuple[float, ...]:
        """Parameters of a kernel of a single family, the one that an axis runs over first; else empty."""
        return values_of(parse(self.kernel)) or ()

    @cached_property
    def setting(self) -> Setting:
        """The setting, as the command line would make it."""
        return Setting(**self._fields)

    @property
    def _fields(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in VIEW}

    @property
    def address(self) -> str:
        """The query part of the address that restores this state."""
        words = {f.name: _word(getattr(self, f.name)) for f in dataclasses.fields(self)}
        return urlencode(words, safe=":,*")

    @classmethod
    def from_address(cls, text: str) -> State:
        """The state that an address holds; what it lacks has its default.

        Raises:
            InputError: an unknown name, a word that is no number, or a value out of range.
        """
        kinds = {field.name: field.type for field in dataclasses.fields(cls)}
        values: dict[str, Any] = {}
        for name, word in parse_qsl(text.removeprefix("?"), keep_blank_values=True):
            if name not in kinds:
                raise InputError(f"the address has an unknown name '{name}'; allowed: {', '.join(kinds)}")
            values[name] = word if kinds[name] == "str" else _number(word, name)
        if "axis" in values:
            return cls(**values)
        state = cls(**values, axis="length")
        return replace(state, axis="kernel") if state.parameters else state

    def words(self) -> list[str]:
        """The options of the command line."""
        return [word for name, value in self._fields.items() for word in (f"--{name}", _word(value))]

    @property
    def quantity(self) -> Quantity:
        """What the axis runs over."""
        if self.axis == "kernel":
            return parameters(parse(self.kernel).name)[0]
        return _RATIOS.get(self.axis) or SIZES[self.axis]

    @property
    def position(self) -> float:
        """Where this state stands on its axis; a ratio is that of the sizes."""
        if self.axis == "kernel":
            return self.parameters[0]
        if self.axis == "tau":
            return self.sequences / self.d**2
        return self.tasks / self.d if self.axis == "kappa" else float(getattr(self, self.axis))

    def at(self, value: float) -> State:
        """The same state elsewhere on its axis; a ratio is rounded half up to a size."""
        if self.axis == "kernel":
            kernel = spec_of(parse(self.kernel).name, (value, *self.parameters[1:]))
            return replace(self, kernel=kernel)
        if self.axis == "tau":
            return replace(self, sequences=size_of_ratio(value, self.d**2, "tau"))
        if self.axis == "kappa":
            return replace(self, tasks=size_of_ratio(value, self.d, "kappa"))
        return replace(self, **{self.axis: value})

    @property
    def line(self) -> State:
        """One state for the whole curve: equal for states that differ in their place on the axis alone."""
        return self.at(self.quantity.default)


def _word(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _number(word: str, name: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise InputError(f"{name} must be a number; the address has '{word}'") from None
