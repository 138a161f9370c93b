"""How many tasks it takes: the gap between fresh and pretraining tasks against their number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ._base import Figure, Row, published
from ._select import select
from ._style import BLUE, GREY, ORANGE

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from ..sweeps import Spec


class TaskDiversity(Figure):
    """ICL minus IDG error of iid prompts against kappa, with the published points at d = 64."""

    name = "task-diversity"
    title = "ICL minus IDG error against kappa for iid prompts"

    def sweeps(self, quick: bool) -> list[Spec]:
        from ..sweeps import Range, Spec

        base = {"d": 20 if quick else 64, "alpha": 10, "tau": 10, "noise": 0.01, "ridge": 1e-6}
        kappa = [0.2, 0.6, 1.0, 1.6, 4, 16]
        fine = Range(start=0.15, stop=20, num=60, log=True).values()
        limit = {**base, "d": 2000}  # large enough that rounding kappa d to a whole number of tasks does not show
        some = {"estimators": ["simulate"], "replicates": 20}
        return [
            Spec(name="theory", base=limit, axes={"kappa": fine}, estimators=["theory:weak"]),
            Spec(name="simulation", base=base, axes={"kappa": kappa}, **some),
        ]

    def extra(self, specs: list[Spec], rows: list[Row]) -> list[Row]:
        if specs[1].base["d"] != 64:
            return []
        rows = []
        for row in published("iid_task_diversity_d64"):
            mean, std, runs = (
                float(row[f"icl_minus_idg_sim_{n}"] if n != "runs" else row[n]) for n in ("mean", "std", "runs")
            )
            value = {"mean": mean, "stderr": std / runs**0.5, "replicates": int(runs)}
            rows.append(
                {
                    "sweep": "published",
                    "kappa": float(row["kappa"]),
                    "estimator": "published",
                    "quantity": "gap",
                    **value,
                }
            )
        return rows

    def plot(self, rows: list[Row], canvas: Canvas) -> None:
        axes = canvas.subplots()
        line_icl, line_idg = (select(rows, "kappa", q, estimator="theory:weak") for q in ("icl", "idg"))
        axes.plot(line_icl.x, line_icl.y - line_idg.y, color=BLUE, label="theory, weak")
        found = select(rows, "kappa", "gap", estimator="simulate")
        axes.errorbar(found.x, found.y, found.stderr, fmt="o", color=ORANGE, label="simulation")
        theirs = select(rows, "kappa", "gap", estimator="published")
        if len(theirs.x):
            axes.errorbar(
                theirs.x * 1.05, theirs.y, theirs.stderr, fmt="o", color=GREY, mfc="white", label="published (shifted)"
            )
        axes.set(xscale="log", yscale="log", xlabel="κ = tasks/d", ylabel="ICL error − IDG error")
        axes.legend()

    def table(self, rows: list[Row]) -> str:
        found = select(rows, "kappa", "gap", estimator="simulate")
        theirs = select(rows, "kappa", "gap", estimator="published")
        text = [f"{'kappa':>6}  {'simulation':<22}published"]
        for k, mean, stderr in zip(*found, strict=True):
            at = np.flatnonzero(theirs.x == k)
            there = f"{theirs.y[at[0]]:.5f} ± {theirs.stderr[at[0]]:.5f}" if len(at) else ""
            text.append(f"{k:>6g}  {f'{mean:.5f} ± {stderr:.5f}':<22}{there}")
        return "\n".join(text)
