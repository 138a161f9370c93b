"""The interpolation peak: error against the number of pretraining sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._base import Figure, Row, published
from ._select import select
from ._style import BLUE, GREEN, GREY, ORANGE

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from ..sweeps import Spec

COLORS = {1: BLUE, 10: ORANGE, 100: GREEN}


class DoubleDescent(Figure):
    """ICL and IDG error of iid prompts against tau, with the published points at d = 100."""

    name = "double-descent"
    title = "ICL and IDG error against tau for iid prompts"

    def sweeps(self, quick: bool) -> list[Spec]:
        from ..sweeps import Range, Spec

        d, alphas = (20, [1, 10]) if quick else (100, [1, 10, 100])
        base = {"d": d, "kappa": 0.5, "noise": 0.01, "ridge": 1e-8}
        fine = Range(start=0.1, stop=2, num=39 if quick else 191).values()
        coarse = [0.2, 0.5, 0.85, 1.25, 1.5, 2.0] if quick else [0.2, 0.85, 1.5]
        theory = Spec(name="theory", base=base, axes={"alpha": alphas, "tau": fine}, estimators=["theory:weak"])
        some = {"estimators": ["simulate"], "replicates": 40 if quick else 10}
        # alpha = 100 is theory beside published points: its 10^4 tokens take half an hour a replicate
        return [theory, Spec(name="simulation", base=base, axes={"alpha": [1, 10], "tau": coarse}, **some)]

    def extra(self, specs: list[Spec], rows: list[Row]) -> list[Row]:
        if specs[0].base["d"] != 100:
            return []
        rows = []
        for row in published("iid_reduced_d100"):
            place = {"alpha": float(row["alpha"]), "tau": float(row["tau"])}
            for quantity in ("icl", "idg"):
                stderr = float(row[f"{quantity}_sim_std"]) / float(row["runs"]) ** 0.5
                value = {"mean": float(row[f"{quantity}_sim_mean"]), "stderr": stderr, "replicates": int(row["runs"])}
                rows.append({"sweep": "published", **place, "estimator": "published", "quantity": quantity, **value})
        return rows

    def plot(self, rows: list[Row], canvas: Canvas) -> None:
        canvas.set_size_inches(10, 4.2)
        panels = canvas.subplots(1, 2)
        for axes, quantity in zip(panels, ("icl", "idg"), strict=True):
            for alpha, color in COLORS.items():
                line = select(rows, "tau", quantity, alpha=alpha, estimator="theory:weak")
                if not len(line.x):
                    continue
                axes.plot(line.x, line.y, color=color, label=f"α = {alpha}")
                found = select(rows, "tau", quantity, alpha=alpha, estimator="simulate")
                axes.errorbar(found.x, found.y, found.stderr, fmt="o", color=color)
                theirs = select(rows, "tau", quantity, alpha=alpha, estimator="published")
                axes.errorbar(theirs.x + 0.03, theirs.y, theirs.stderr, fmt="o", color=color, mfc="white", ms=4, lw=1)
            axes.set(xlabel="τ = n/d²", ylabel=f"{quantity.upper()} error", yscale="log")
            axes.set_ylim(None, 20)
        panels[1].plot([], [], "o", color=GREY, label="simulation")
        panels[1].plot([], [], "o", color=GREY, mfc="white", ms=4, label="published (shifted right)")
        panels[1].legend()
