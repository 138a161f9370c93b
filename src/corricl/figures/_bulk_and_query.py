"""The two effects apart: correlations inside the context and of the query with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._base import Figure, Row
from ._effective_length import PAPER
from ._select import grid, select
from ._style import CYCLE, THEORY_LINES

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from ..sweeps import Spec


class BulkAndQuery(Figure):
    """Correlation length on one axis, strength of the query's correlations on the other."""

    name = "bulk-and-query"
    title = "bulk correlations and query correlations varied apart"

    def sweeps(self, quick: bool) -> list[Spec]:
        from ..sweeps import Range, Spec

        base = {**PAPER, "kernel": "exp:{xi}", "query": "strength:{strength}"}
        fine = {
            "xi": Range(start=0, stop=10, num=11 if quick else 41).values(),
            "strength": Range(start=0, stop=1, num=11 if quick else 41).values(),
        }
        coarse = {
            "xi": [2, 6] if quick else [1, 2, 4, 6, 10],
            "strength": [0, 0.5, 1] if quick else [0, 0.25, 0.5, 0.75, 1],
        }
        some = {"estimators": ["simulate"], "replicates": 5 if quick else 20}
        lines = {**fine, "xi": coarse["xi"]}
        return [
            Spec(name="map", base=base, axes=fine, estimators=["theory:weak"]),
            Spec(name="lines", base=base, axes=lines, estimators=list(THEORY_LINES)),
            Spec(name="simulation", base=base, axes=coarse, **some),
        ]

    def plot(self, rows: list[Row], canvas: Canvas) -> None:
        canvas.set_size_inches(10, 4.2)
        left, right = canvas.subplots(1, 2)
        xi, strength, icl = grid(rows, "xi", "strength", sweep="map")
        image = left.pcolormesh(xi, strength, icl, cmap="viridis", rasterized=True)
        left.contour(xi, strength, icl, levels=10, colors="white", linewidths=0.6)
        left.set(xlabel="correlation length ξ (tokens)", ylabel="query strength S")
        left.grid(visible=False)
        canvas.colorbar(image, ax=left, label="ICL error (theory, weak)")
        for color, x in zip(CYCLE, sorted({r["xi"] for r in rows if r["sweep"] == "simulation"}), strict=False):
            for method, style in THEORY_LINES.items():
                line = select(rows, "strength", sweep="lines", xi=x, estimator=method)
                right.plot(line.x, line.y, style, color=color)
            found = select(rows, "strength", sweep="simulation", xi=x, estimator="simulate")
            right.errorbar(found.x, found.y, found.stderr, fmt="o", color=color, label=f"ξ = {x:g}")
        right.set(xlabel="query strength S", ylabel="ICL error", ylim=(0, None))
        right.legend(title="points: simulation")
