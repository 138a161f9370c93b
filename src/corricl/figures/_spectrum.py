"""Equal k2, different spectra: one error for linear attention, many for ridge regression in context."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..kernels import Query, parse, statistics
from ._base import Figure, Row
from ._select import select
from ._style import BLUE, GREY, ORANGE, VERMILION

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from ..sweeps import Spec

K2 = 4.0
BRACKETS = {"exp": (0.5, 60.0), "power": (0.05, 3.0), "equi": (0.001, 0.9), "sqexp": (0.3, 60.0), "ar1": (-0.999, -0.1)}
"""Families with one parameter, and where the one that gives k2 = 4 lies. Blocks of 4 have it exactly."""


class Spectrum(Figure):
    """ICL error of the reduced model and of ridge regression on the context, over kernels of equal k2."""

    name = "spectrum"
    title = "kernels of equal k2 and different spectra: linear attention against ridge regression in context"

    def sweeps(self, quick: bool) -> list[Spec]:
        from ..sweeps import Spec

        d, replicates = (16, 20) if quick else (32, 40)
        length = 4 * d
        base = {"d": d, "length": length, "tau": 4, "noise": 0.1, "ridge": 1e-2, "query": "independent"}
        kernels = [f"{name}:{matching(name, length)!r}" for name in BRACKETS] + ["blocks:4"]
        cases = [{"name": kernel.partition(":")[0], "kernel": kernel} for kernel in kernels]
        estimators = ["theory:weak", "theory:mixture", "theory:bayes", "simulate", "score:bayes"]
        return [Spec(name="kernels", base=base, cases=cases, estimators=estimators, replicates=replicates)]

    def plot(self, rows: list[Row], canvas: Canvas) -> None:
        axes = canvas.subplots()
        names = list(dict.fromkeys(row["case"] for row in rows))
        rows = [{**row, "place": names.index(row["case"])} for row in rows]
        looks = {
            "simulate": ("linear attention, simulation", BLUE, "o"),
            "theory:weak": ("linear attention, weak theory", GREY, "_"),
            "theory:mixture": ("linear attention, mixture theory", BLUE, "_"),
            "score:bayes": ("ridge regression in context, simulation", ORANGE, "s"),
            "theory:bayes": ("ridge regression in context, theory", VERMILION, "_"),
        }
        for estimator, (label, color, marker) in looks.items():
            found = select(rows, "place", estimator=estimator)
            if marker == "_":
                axes.plot(found.x, found.y, marker, color=color, ms=18, mew=2, label=label)
            else:
                axes.errorbar(found.x, found.y, found.stderr, fmt=marker, color=color, ms=6, label=label)
        axes.set_xticks(range(len(names)), names)
        axes.set(xlabel=f"kernel, all with $k_2$ = {K2:g}", ylabel="ICL error", ylim=(0, None))
        axes.legend()


def matching(name: str, length: int) -> float:
    """Parameter of the family at which k2 = 4 at that length, by bisection (k2 is monotone in it)."""
    low, high = BRACKETS[name]

    def excess(x: float) -> float:
        return statistics(parse(f"{name}:{x!r}"), length, Query(0.0)).k2 - K2

    sign = np.sign(excess(high))
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if excess(middle) * sign > 0 else (middle, high)
    return float(f"{0.5 * (low + high):.12g}")
