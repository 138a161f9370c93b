"""The numbers of one setting: closed forms at once, the rest as it is ready."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .. import theory
from ..errors import CorriclError
from ..prompt import Caution, Risk
from ._state import State


@dataclass(frozen=True)
class Readouts:
    """What is said of a state. A part that is not ready, or that its method refuses, is None.

    Attributes:
        weak: the closed form of the weak-correlation limit.
        linear: the best plain linear attention, with the iid length that the prompt is worth to it.
        auto: `theory.risk` by its default method, which compares the weak limit with the mixture theory.
        softmax: one-layer softmax attention, with the iid length that the prompt is worth to it.
        failures: sentences of methods that refused.
    """

    weak: Risk
    linear: Risk
    auto: Risk | None = None
    softmax: Risk | None = None
    failures: tuple[str, ...] = ()

    @property
    def warnings(self) -> list[str]:
        """What makes the numbers doubtful, in words, most important first."""
        best = self.auto or self.weak
        found = [*_sentences(best, "ICL and IDG error"), *self.failures]
        if self.softmax is not None:
            found += _sentences(self.softmax, "softmax attention")
        return found

    def values(self) -> dict[str, float | None]:
        """Every number that the page shows, by name."""
        numbers: dict[str, float | None] = {name: getattr(self.weak, name) for name in ("k0", "k1", "k2")}
        for part in ("weak", "auto"):
            risk = getattr(self, part)
            for name in ("icl", "idg", "query_gain", "equivalent_length"):
                numbers[f"{part}.{name}"] = None if risk is None else getattr(risk, name)
        numbers["effective_length"] = self.weak.effective_length
        numbers["linear.equivalent_length"] = self.linear.equivalent_length
        numbers["softmax.equivalent_length"] = None if self.softmax is None else self.softmax.equivalent_length
        return numbers


def closed(state: State) -> Readouts:
    """The closed forms, in milliseconds."""
    subject = state.setting.pretraining
    return Readouts(theory.weak(subject, state.ridge), theory.equivalent_length(subject.prompt, "linear"))


def gathered(known: Readouts, state: State) -> Iterator[Readouts]:
    """The same with one more part at a time."""
    for part, method in (("auto", None), ("softmax", "softmax")):
        try:
            if method is None:
                found = theory.of_setting(state.setting)
            else:
                found = theory.equivalent_length(state.setting.prompt, method)
            known = replace(known, **{part: found})
        except CorriclError as error:
            known = replace(known, failures=(*known.failures, f"{part}: {error}"))
        yield known


def _sentences(risk: Risk, what: str) -> list[str]:
    """Warnings of a risk; one that is not valid says so first."""
    head = [] if risk.valid else [f"Do not trust the {what} by method {risk.method} here."]
    return [*head, *map(_sentence, risk.warnings)]


def _sentence(caution: Caution) -> str:
    text = caution.message
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def shown(value: float | None) -> str:
    """Four digits as on the page; what is missing or undefined is a dash."""
    if value is None:
        return "–"
    return "∞" if math.isinf(value) else f"{value:.4g}"
