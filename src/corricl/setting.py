"""One setting under the names of the command line, made into the nouns that the library takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from .errors import InputError
from .prompt import Pretraining, Prompt, number, size_of_ratio, whole

RATIOS = {"length": "alpha", "sequences": "tau", "tasks": "kappa"}
"""Each size and the ratio that may be given in its place."""


@dataclass(frozen=True)
class Setting:
    """What is pretrained, with which ridge, and tested on what.

    A size and its ratio exclude each other. None means not given: a task for each sequence, an
    independent query (or the one that a joint matrix brings), a test prompt equal to the pretraining one.

    >>> Setting(d=10, alpha=2, tau=0.5, kernel="exp:5").pretraining.sequences
    50
    """

    d: int | None = None
    length: int | None = None
    alpha: float | None = None
    sequences: int | None = None
    tau: float | None = None
    tasks: float | None = None
    kappa: float | None = None
    noise: float = 0.0
    ridge: float = 0.0
    kernel: str = "iid"
    query: str | None = None
    test_length: int | None = None
    test_kernel: str | None = None
    test_query: str | None = None
    test_noise: float | None = None

    def __post_init__(self) -> None:
        for size, ratio in RATIOS.items():
            if getattr(self, size) is not None and getattr(self, ratio) is not None:
                raise InputError(f"give {size} or {ratio}, not both")
        number(self.ridge, "ridge")

    @property
    def is_limit(self) -> bool:
        """True where only ratios are given, which the theory of the limit takes without d."""
        given = (self.d, self.length, self.sequences, self.tasks)
        return all(size is None for size in given) and self.alpha is not None and self.tau is not None

    @cached_property
    def prompt(self) -> Prompt:
        """The prompt that is pretrained on."""
        d = self._required("d")
        length = self._required("length") if self.alpha is None else size_of_ratio(self.alpha, d, "alpha")
        return Prompt(d, length, self.kernel, self.query, self.noise)

    @cached_property
    def pretraining(self) -> Pretraining:
        """The law that is pretrained on, ratios rounded half up to sizes."""
        prompt = self.prompt
        sequences = self._required("sequences") if self.tau is None else size_of_ratio(self.tau, prompt.d**2, "tau")
        unbounded = self.kappa is None or self.kappa == math.inf
        tasks = self.tasks if unbounded else size_of_ratio(self.kappa, prompt.d, "kappa")  # type: ignore[arg-type]
        return Pretraining(prompt, sequences, tasks)  # type: ignore[arg-type]

    @cached_property
    def test(self) -> Prompt | None:
        """The test prompt where it differs from the pretraining prompt."""
        names = ("length", "kernel", "query", "noise")
        changes = {name: value for name in names if (value := getattr(self, f"test_{name}")) is not None}
        if not changes:
            return None
        here = self.prompt
        fields = {"length": here.length, "kernel": here.kernel, "query": here.query, "noise": here.noise, **changes}
        return Prompt(here.d, **fields)

    def _required(self, name: str) -> int:
        value = getattr(self, name)
        if value is None:
            ratio = RATIOS.get(name)
            raise InputError(f"give {name}" + (f" or {ratio}" if ratio else ""))
        return whole(value, name)
