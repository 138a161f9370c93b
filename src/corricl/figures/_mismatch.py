"""The architecture mismatch, solved: linear, position-weighted linear and softmax attention and the Bayes floor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._base import Figure, Row, lines
from ._effective_length import QUERIES
from ._select import select
from ._style import BLACK, BLUE, GREEN, ORANGE

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from ..sweeps import Spec

LOOKS = {
    "linear": ("linear attention", BLUE),
    "positional": ("position-weighted linear attention", GREEN),
    "softmax": ("softmax attention", ORANGE),
    "bayes": ("Bayes floor", BLACK),
}


class Mismatch(Figure):
    """Least risk of each class of predictors against the correlation length, with simulation at the optimum."""

    name = "mismatch"
    title = "linear, position-weighted and softmax attention and the Bayes floor against the correlation length"

    def sweeps(self, quick: bool) -> list[Spec]:
        from ..sweeps import Range, Spec

        base = {"d": 32, "length": 128, "noise": 0.01, "kernel": "exp:{xi}"}
        fine = Range(start=0, stop=20, num=11 if quick else 81).values()
        xi = [0, 4, 10] if quick else [0, 1, 2, 4, 7, 10, 15, 20]
        return [
            Spec(
                name="theory",
                base=base,
                cases=QUERIES,
                axes={"xi": fine},
                estimators=[f"theory:{method}" for method in LOOKS],
            ),
            Spec(
                name="simulation",
                base=base,
                cases=QUERIES,
                axes={"xi": xi},
                estimators=[f"score:{method}" for method in LOOKS],
                replicates=3 if quick else 6,
            ),
        ]

    def plot(self, rows: list[Row], canvas: Canvas) -> None:
        canvas.set_size_inches(10, 4.2)
        panels = canvas.subplots(1, 2, sharey=True)
        for axes, query in zip(panels, QUERIES, strict=True):
            for method, (label, color) in LOOKS.items():
                line = select(rows, "xi", case=query["name"], estimator=f"theory:{method}")
                axes.plot(line.x, line.y, color=color, label=label)
                found = select(rows, "xi", case=query["name"], estimator=f"score:{method}")
                axes.errorbar(found.x, found.y, found.stderr, fmt="o", color=color, ms=4)
            axes.set(xlabel="correlation length ξ (tokens)", ylabel="ICL error", title=query["name"], ylim=(0, None))
        panels[1].legend()

    def table(self, rows: list[Row]) -> str:
        return lines([row for row in rows if row["sweep"] == "simulation" and row["quantity"] == "icl"])
