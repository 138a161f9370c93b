"""How fast the weak limit is reached, and where it never is: both theories and simulation against d."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from ._base import Figure, Row
from ._select import select
from ._style import BLUE, GREY, ORANGE

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from ..sweeps import Spec

BASE = {"alpha": 2, "tau": 1.5, "noise": 0.1, "ridge": 1e-2}
LINES = {"theory:weak": ("theory, weak", "--", GREY), "theory:mixture": ("theory, mixture", "-", BLUE)}


class Case(NamedTuple):
    """One panel; `reach` is the correlation length in tokens, or in units of the context where it `grows`."""

    name: str
    reach: float
    grows: bool
    query: str
    kappa: float


CASES = (
    Case("ξ = 2, independent query, κ = ∞", 2, False, "independent", math.inf),
    Case("ξ = 2, continuing query, κ = ∞", 2, False, "continues", math.inf),
    Case("ξ = 2, continuing query, κ = 0.5", 2, False, "continues", 0.5),
    Case("ξ = 0.3 length, independent query, κ = ∞", 0.3, True, "independent", math.inf),
    Case("ξ = 0.3 length, continuing query, κ = ∞", 0.3, True, "continues", math.inf),
    Case("ξ = 0.3 length, continuing query, κ = 0.5", 0.3, True, "continues", 0.5),
)


class FiniteSize(Figure):
    """ICL error against d at fixed ratios for weak and strong correlations, both queries, many and few tasks."""

    name = "finite-size"
    title = "simulation, weak limit and mixture theory against d for six settings"

    def sweeps(self, quick: bool) -> list[Spec]:
        simulated = {8: 60, 16: 30, 32: 8} if quick else {8: 400, 16: 200, 32: 80, 64: 20, 128: 4}
        drawn = (8, 16, 32) if quick else (8, 12, 16, 24, 32, 48, 64, 96, 128)
        specs = [_spec("theory", d, list(LINES), 1) for d in drawn]
        return specs + [_spec("simulation", d, ["simulate"], replicates) for d, replicates in simulated.items()]

    def plot(self, rows: list[Row], canvas: Canvas) -> None:
        canvas.set_size_inches(11, 6.4)
        rows = _with_d(rows)
        for axes, case in zip(canvas.subplots(2, 3, sharex=True).flat, CASES, strict=True):
            for method, (label, style, color) in LINES.items():
                line = select(rows, "d", case=case.name, estimator=method)
                axes.plot(line.x, line.y, style, color=color, label=label)
            found = select(rows, "d", case=case.name, estimator="simulate")
            axes.errorbar(found.x, found.y, found.stderr, fmt="o", color=ORANGE, ms=5, label="simulation")
            axes.set_title(case.name, fontsize=10)
            axes.set_xscale("log", base=2)
            axes.set_xticks(found.x, [f"{d:g}" for d in found.x])
            axes.set_ylim(0, 1.08 * max(r["mean"] for r in rows if r["quantity"] == "icl" and r["case"] == case.name))
        for axes in canvas.axes[3:]:
            axes.set_xlabel("d")
        for axes in canvas.axes[::3]:
            axes.set_ylabel("ICL error")
        canvas.axes[0].legend()

    def table(self, rows: list[Row]) -> str:
        rows = _with_d(rows)
        text = [f"{'setting':<44}{'d':>4}  {'simulation':<20}{'weak':<20}mixture"]
        for case in CASES:
            lines = {method: select(rows, "d", case=case.name, estimator=method) for method in LINES}
            for d, mean, stderr in zip(*select(rows, "d", case=case.name, estimator="simulate"), strict=True):
                values = [float(line.y[line.x == d][0]) for line in lines.values()]
                cells = "".join(f"{f'{value:.4f} ({value / mean - 1:+.1%})':<20}" for value in values)
                text.append(f"{case.name:<44}{d:>4g}  {f'{mean:.4f} ± {stderr:.4f}':<20}{cells}".rstrip())
        return "\n".join(text)


def _with_d(rows: list[Row]) -> list[Row]:
    return [{**row, "d": int(row["sweep"].rpartition("-")[2])} for row in rows]


def _spec(what: str, d: int, estimators: list[str], replicates: int) -> Spec:
    """All six settings at one d."""
    from ..sweeps import Spec

    cases: list[dict[str, Any]] = []
    for case in CASES:
        xi = case.reach * (round(BASE["alpha"] * d) if case.grows else 1)
        cases.append({"name": case.name, "kernel": f"exp:{xi:.9g}", "query": case.query, "kappa": case.kappa})
    base = {"d": d, **BASE}
    return Spec(name=f"{what}-{d}", base=base, cases=cases, estimators=estimators, replicates=replicates, seed=d)
