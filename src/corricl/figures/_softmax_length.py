"""What a correlated prompt is worth to linear and to softmax attention, in iid tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._base import Figure, Row, lines
from ._effective_length import QUERIES
from ._select import select
from ._style import BLUE, ORANGE

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from ..sweeps import Spec

LOOKS = {"linear": ("linear attention", BLUE), "softmax": ("softmax attention", ORANGE)}


class SoftmaxLength(Figure):
    """Equivalent iid length of one prompt for the two architectures, each at its own optimum."""

    name = "softmax-length"
    title = "equivalent iid length of linear and softmax attention against the correlation length"

    def sweeps(self, quick: bool) -> list[Spec]:
        from ..sweeps import Range, Spec

        xi = Range(start=0, stop=20, num=6 if quick else 41).values()
        base = {"d": 32, "length": 128, "noise": 0.01, "kernel": "exp:{xi}"}
        estimators = [f"equivalent-length:{method}" for method in LOOKS]
        return [Spec(name="theory", base=base, cases=QUERIES, axes={"xi": xi}, estimators=estimators)]

    def plot(self, rows: list[Row], canvas: Canvas) -> None:
        axes = canvas.subplots()
        for query, style in zip(QUERIES, ("-", "--"), strict=True):
            for method, (label, color) in LOOKS.items():
                line = select(
                    rows, "xi", "equivalent_length", case=query["name"], estimator=f"equivalent-length:{method}"
                )
                axes.plot(line.x, line.y, style, color=color, label=f"{label}, {query['name']}")
        axes.axhline(128, color="k", lw=0.8, ls=":")
        axes.set(xlabel="correlation length ξ (tokens)", ylabel="equivalent iid length (tokens)", yscale="log")
        axes.legend()

    def table(self, rows: list[Row]) -> str:
        return lines([row for row in rows if row["quantity"] == "equivalent_length"])
