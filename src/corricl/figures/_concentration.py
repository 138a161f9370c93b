"""Where the weak limit breaks down: correlations that grow with the context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._base import Figure, Row, lines
from ._select import select
from ._style import CYCLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from ..sweeps import Spec

LINES = {"theory:weak": "--", "theory:mixture": "-"}
QUERIES = ("independent", "continues")


class Concentration(Figure):
    """ICL error over d = 16..128 as the correlation length passes the context, and over the power law's exponent."""

    name = "concentration"
    title = "exponential and power-law correlations through the breakdown of the weak limit"

    def sweeps(self, quick: bool) -> list[Spec]:
        sizes = {16: 8, 32: 4} if quick else {16: 80, 32: 40, 64: 10, 128: 2}
        coarse = ([0.03, 0.3, 3.0], [0.25, 0.5, 1.0])
        fine = ([0.01, 0.03, 0.1, 0.3, 1.0, 3.0], [0.1, 0.25, 0.4, 0.5, 0.6, 0.6667, 0.8, 1.0, 1.5])
        return [spec for d, r in sizes.items() for spec in _specs(d, r, *(coarse if quick or d == 128 else fine))]

    def plot(self, rows: list[Row], canvas: Canvas) -> None:
        canvas.set_size_inches(10, 7.6)
        rows = _placed(rows)
        panels = canvas.subplots(2, 2, sharey="row")
        sizes = sorted({row["d"] for row in rows})
        for i, query in enumerate(QUERIES):
            for j, (family, x) in enumerate((("exp", "share"), ("power", "gamma"))):
                axes = panels[i, j]
                mine = [r for r in rows if r["family"] == family and r["query"] == query]
                for color, d in zip(CYCLE, sizes, strict=False):
                    self._curves(axes, [r for r in mine if r["d"] == d], x, color, d)
                axes.set(yscale="log", xscale="log" if family == "exp" else "linear")
                axes.set(xlabel="ξ / length" if family == "exp" else "exponent γ", ylabel=f"ICL error, query {query}")
                for border in (0.5, 2 / 3) if family == "power" else ():
                    axes.axvline(border, color="k", lw=0.8, ls="-.")
        for label, style, marker in (
            ("theory, weak", "--", ""),
            ("theory, mixture", "-", ""),
            ("exact risk of Γ*", "", "o"),
            ("simulated test data", "", "x"),
            ("published approximation, weak", "", "1"),
            ("published approximation, strong", "", "2"),
        ):
            panels[1, 1].plot([], [], ls=style or "none", marker=marker, color="k", label=label)
        panels[0, 1].legend(fontsize=8)
        panels[1, 1].legend(fontsize=8, handles=panels[1, 1].lines[-6:], loc="lower right")

    def _curves(self, axes: Any, rows: list[Row], x: str, color: str, d: int) -> None:
        for method, style in LINES.items():
            line = select(rows, x, estimator=method)
            axes.plot(line.x, line.y, style, color=color, lw=1.2)
        found = select(rows, x, estimator="simulate:checked")
        axes.errorbar(found.x, found.y, found.stderr, fmt="o", color=color, ms=5, label=f"d = {d}")
        for quantity, marker in (("icl_data", "x"), ("icl_weak_approximation", "1"), ("icl_strong_approximation", "2")):
            other = select(rows, x, quantity, estimator="simulate:checked")
            axes.plot(other.x, other.y, marker, color=color, ms=7)

    def table(self, rows: list[Row]) -> str:
        return lines([row for row in rows if row["quantity"] == "icl"])


def _placed(rows: list[Row]) -> list[Row]:
    """Rows with family, d and position on their axis, read off the sweep's name and the kernel."""
    placed = []
    for row in rows:
        family, d = row["sweep"].split("-")
        value = float(row["kernel"].partition(":")[2])
        place = {"share": value / int(d)} if family == "exp" else {"gamma": value}
        placed.append({**row, "family": family, "d": int(d), **place})
    return placed


def _specs(d: int, replicates: int, shares: list[float], gammas: list[float]) -> list[Spec]:
    """One sweep for each family at this d; sizes are fixed within one, so that the solver compiles once."""
    from ..sweeps import Spec

    base = {"d": d, "alpha": 1, "kappa": 0.5, "tau": 4, "noise": 0.01, "ridge": 1e-8}
    common = {"estimators": [*LINES, "simulate:checked"], "replicates": replicates}
    axes = {"query": list(QUERIES)}
    xi = [f"exp:{round(share * d, 6)}" for share in shares]
    power = [f"power:{gamma}" for gamma in gammas]
    return [
        Spec(name=f"exp-{d}", base=base, axes={**axes, "kernel": xi}, **common),
        Spec(name=f"power-{d}", base=base, axes={**axes, "kernel": power}, **common),
    ]
