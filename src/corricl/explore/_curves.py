"""The curves: each method over an axis, point by point, coarse before fine."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from .. import theory
from ..errors import CorriclError
from ..prompt import Risk
from ._state import State

METHODS = {
    "weak": "weak limit",
    "mixture": "mixture theory",
    "linear": "linear attention",
    "positional": "position-weighted",
    "softmax": "softmax attention",
    "bayes": "Bayes floor",
}
"""One line each. The first two predict the pretrained reduced model, the others are optima of their class."""

POINTS = 25


class Point(NamedTuple):
    """One number of one line: `icl` is None where the method refuses, and inf where the error diverges."""

    x: float
    method: str
    icl: float | None
    valid: bool
    note: str


@lru_cache(maxsize=50_000)
def point(state: State, method: str) -> Point:
    """ICL error of a state by a method. Pages share what is known."""
    try:
        risk = _risk(_needed(state, method), method)
    except CorriclError as error:
        return Point(state.position, method, None, False, str(error))
    note = "" if math.isfinite(risk.icl) else "the error diverges here"
    return Point(state.position, method, risk.icl, risk.valid, note)


@lru_cache(maxsize=10_000)
def _risk(state: State, method: str) -> Risk:
    return theory.of_setting(state.setting, method)


def _needed(state: State, method: str) -> State:
    """One state for all that a method does not tell apart: an optimum of its class knows no pretraining."""
    known = {"axis": "length", "scale": "linear"}
    if method in theory.PROMPT_METHODS:
        known |= {"sequences": 1, "tasks": math.inf, "ridge": 0.0}
    return replace(state, **known)


def grid(state: State) -> list[State]:
    """The states of a curve, this one among them, coarse before fine.

    Values that the library refuses (a length that a kernel does not allow) are left out.
    """
    states: dict[float, State] = {}
    values = state.quantity.grid(POINTS)
    for value in _coarse_first(values):
        try:
            there = state.at(value)
        except CorriclError:
            continue
        states.setdefault(there.position, there)
    if math.isfinite(state.position):
        states = {state.position: state, **{x: there for x, there in states.items() if x != state.position}}
    return list(states.values())


def points(state: State) -> Iterator[Point]:
    """Every point of every line: closed forms first, then the slow methods."""
    states = grid(state)
    for methods in (("weak", "linear", "bayes"), ("mixture",), ("positional",), ("softmax",)):
        for there in states:
            for method in methods:
                yield point(there, method)


def _coarse_first(values: list[float]) -> list[float]:
    """Ends first, then middles of what is left, so that a line has its shape early."""
    order, step = [0, len(values) - 1], len(values) - 1
    while step > 1:
        step = (step + 1) // 2
        order += range(0, len(values), step)
    return [values[i] for i in dict.fromkeys(order)]
