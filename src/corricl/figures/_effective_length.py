"""Correlated prompts are worth fewer tokens: the error of the reduced model against the correlation length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..kernels import Exponential, Query, statistics
from ..theory import linear
from ._base import Figure, Row, published, with_error
from ._select import select
from ._style import BLUE, GREY, ORANGE, THEORY_LINES

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from ..sweeps import Spec

PAPER = {"d": 32, "length": 128, "sequences": 4096, "tasks": 320, "noise": 0.01, "ridge": 1e-8}
"""Sizes of the published points."""

QUERIES = [
    {"name": "independent query", "query": "independent"},
    {"name": "continuing query", "query": "continues"},
]
EQUIVALENT = "iid prompt of the effective length"
LOOKS = {"independent query": (BLUE, "o"), "continuing query": (ORANGE, "s"), EQUIVALENT: (GREY, "^")}


class EffectiveLength(Figure):
    """Theory, simulation and published points for two queries and for iid prompts of the effective length."""

    name = "effective-length"
    title = "error of the reduced model against the correlation length, and its iid equivalent"

    def sweeps(self, quick: bool) -> list[Spec]:
        from ..sweeps import Range, Spec

        xi = [0, 2, 6, 10] if quick else list(range(11))
        few = {"replicates": 5 if quick else 20, "estimators": ["simulate"]}
        base = {**PAPER, "kernel": "exp:{xi}"}
        fine = {"xi": Range(start=0, stop=10, num=21 if quick else 101).values()}
        theory = Spec(name="theory", base=base, cases=QUERIES, axes={"xi": fine["xi"]}, estimators=list(THEORY_LINES))
        simulation = Spec(name="simulation", base=base, cases=QUERIES, axes={"xi": xi}, **few)
        cases = equivalents(xi, PAPER)
        return [theory, simulation, Spec(name="equivalent", base={**PAPER, "kernel": "iid"}, cases=cases, **few)]

    def extra(self, specs: list[Spec], rows: list[Row]) -> list[Row]:
        rows = []
        theirs: tuple[str, ...] = ("independent_query", "continuing_query", "iid_effective_length")
        labels: dict[str, str] = dict(zip(theirs, LOOKS, strict=True))
        for row in published("correlated_reduced_d32"):
            stderr = float(row["icl_std"]) / float(row["runs"]) ** 0.5
            place = {"case": labels[row["curve"]], "xi": int(row["correlation_length"]), "length": int(row["length"])}
            value = {"mean": float(row["icl_mean"]), "stderr": stderr, "replicates": int(row["runs"])}
            rows.append({"sweep": "published", **place, "estimator": "published", "quantity": "icl", **value})
        return rows

    def plot(self, rows: list[Row], canvas: Canvas) -> None:
        axes = canvas.subplots()
        rows = with_equivalents(rows)
        for case, (color, marker) in LOOKS.items():
            for method, style in THEORY_LINES.items():
                line = select(rows, "xi", case=case, estimator=method)
                axes.plot(line.x, line.y, style, color=color)
            found = select(rows, "xi", case=case, estimator="simulate")
            axes.errorbar(found.x, found.y, found.stderr, fmt=marker, color=color, label=case)
            theirs = select(rows, "xi", case=case, estimator="published")
            axes.errorbar(theirs.x + 0.15, theirs.y, theirs.stderr, fmt=marker, color=color, mfc="white", ms=4, lw=1)
        for method, style in THEORY_LINES.items():
            axes.plot([], [], style, color=GREY, label=method.replace(":", ", "))
        axes.plot([], [], "o", color=GREY, mfc="white", ms=4, label="published, 20 runs (shifted right)")
        axes.set(xlabel="correlation length ξ (tokens)", ylabel="ICL error", ylim=(0, None))
        axes.legend()

    def table(self, rows: list[Row]) -> str:
        rows = with_equivalents(rows)
        text = [f"{'xi':>4}  {'curve':<36}{''.join(f'{m:<18}' for m in THEORY_LINES)}{'simulation':<18}published"]
        for row in (r for r in rows if r["estimator"] == "simulate" and r["quantity"] == "icl"):
            there = QUERIES[0]["name"] if row["case"] == EQUIVALENT else row["case"]

            def value(estimator: str, case: str, xi: float = row["xi"]) -> str:
                same = (r for r in rows if (r["estimator"], r.get("case")) == (estimator, case))
                return next((with_error(r) for r in same if r["xi"] == xi and r["quantity"] == "icl"), "")

            predicted = "".join(f"{value(method, there):<18}" for method in THEORY_LINES)
            reference = value("published", row["case"])
            text.append(f"{row['xi']:>4g}  {row['case']:<36}{predicted}{with_error(row):<18}{reference}")
        return "\n".join(text)


def equivalents(xi: list[int], sizes: dict[str, Any]) -> list[dict[str, Any]]:
    """Cases of an iid prompt: for each xi the nearest whole effective length, under the name of xi."""

    def effective(x: int) -> int:
        k2 = statistics(Exponential(float(x)), sizes["length"], Query(0.0)).k2
        return round(float(linear.effective_length(sizes["length"], sizes["noise"], k2)))

    return [{"name": str(x), "length": effective(x)} for x in xi]


def with_equivalents(rows: list[Row]) -> list[Row]:
    """Rows of the iid prompts under their curve, at the xi that names their case."""
    return [
        {**row, "xi": float(row["case"]), "case": EQUIVALENT} if row["sweep"].startswith("equivalent") else row
        for row in rows
    ]
