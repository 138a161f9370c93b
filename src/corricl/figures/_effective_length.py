"""Correlated prompts are worth fewer tokens: the error of the reduced model against the correlation length."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import theory
from ..prompt import Pretraining, Prompt
from ._base import Figure, Row, Spec, published
from ._style import BLUE, GREY, ORANGE

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

CURVES = {
    "independent_query": ("independent query", BLUE, "o"),
    "continuing_query": ("continuing query", ORANGE, "s"),
    "iid_effective_length": ("iid prompt of the effective length", GREY, "^"),
}


class EffectiveLength(Figure):
    """Theory, simulation and published points for two queries and for iid prompts of the effective length."""

    name = "effective-length"
    title = "error of the reduced model against the correlation length, with its iid equivalent"

    def spec(self, quick: bool) -> Spec:
        return {
            "d": 32,
            "length": 128,
            "sequences": 4096,
            "tasks": 320,
            "noise": 0.01,
            "ridge": 1e-8,
            "xi": [0, 2, 6, 10] if quick else list(range(11)),
            "replicates": 5 if quick else 20,
            "seed": 0,
        }

    def steps(self, spec: Spec) -> int:
        return len(spec["xi"]) * len(CURVES)

    def rows(self, spec: Spec, advance: Callable[[str], None]) -> list[Row]:
        from .. import simulate

        rows = [row for xi in np.linspace(0, max(spec["xi"]), 101).tolist() for row in self._theory(spec, xi)]
        for xi in spec["xi"]:
            for curve in CURVES:
                setting = _setting(spec, curve, xi)
                found = simulate.risk(setting, spec["ridge"], seed=spec["seed"], replicates=spec["replicates"])
                icl = {"icl": found.icl.mean, "stderr": found.icl.stderr}
                rows.append({"source": "simulation", "curve": curve, "xi": xi, "length": setting.prompt.length, **icl})
                advance(f"xi = {xi}, icl {found.icl.mean:.4f}")
        return rows + _published_rows(spec)

    def _theory(self, spec: Spec, xi: float) -> list[Row]:
        rows = []
        for curve in ("independent_query", "continuing_query"):
            icl = theory.risk(_setting(spec, curve, xi), spec["ridge"], method="weak").icl
            rows.append({"source": "theory:weak", "curve": curve, "xi": xi, "length": spec["length"], "icl": icl})
        return rows

    def plot(self, rows: list[Row], canvas: Canvas) -> None:
        axes = canvas.subplots()
        for curve, (label, color, marker) in CURVES.items():
            xi, icl, _ = columns(rows, "theory:weak", curve)
            axes.plot(xi, icl, color=color, label=f"theory, {label}" if len(xi) else None)
            xi, icl, stderr = columns(rows, "simulation", curve)
            axes.errorbar(xi, icl, stderr, fmt=marker, color=color, label=f"simulation, {label}")
            xi, icl, stderr = columns(rows, "published", curve)
            axes.errorbar(xi + 0.15, icl, stderr, fmt=marker, color=color, mfc="white", ms=4, lw=1)
        axes.plot([], [], "o", color=GREY, mfc="white", ms=4, label="published, 20 runs (shifted right)")
        axes.set(xlabel="correlation length ξ (tokens)", ylabel="ICL error", ylim=(0, None))
        axes.legend()

    def table(self, rows: list[Row]) -> str:
        lines = [f"{'xi':>4}  {'curve':<22}{'length':>7}{'theory':>9}   {'simulation':<18}published"]
        named = {(r["source"], r["curve"], r["xi"]): r for r in rows}
        for (source, curve, xi), row in named.items():
            if source != "simulation":
                continue
            predicted = named.get(("theory:weak", "independent_query" if "iid" in curve else curve, float(xi)))
            reference = named.get(("published", curve, xi))
            lines.append(
                f"{xi:>4}  {curve:<22}{row['length']:>7}{predicted['icl'] if predicted else math.nan:>9.4f}"
                f"   {row['icl']:.4f} ± {row['stderr']:.4f}   "
                + (f"{reference['icl']:.4f} ± {reference['stderr']:.4f}" if reference else "")
            )
        return "\n".join(lines)


def _setting(spec: Spec, curve: str, xi: float) -> Pretraining:
    query = "continues" if curve == "continuing_query" else "independent"
    prompt = Prompt(spec["d"], spec["length"], f"exp:{xi}", query, spec["noise"])
    if curve == "iid_effective_length":
        worth = theory.linear.effective_length(prompt.length, prompt.noise, prompt.statistics.k2)
        prompt = Prompt(spec["d"], round(float(worth)), "iid", "independent", spec["noise"])
    return Pretraining(prompt, spec["sequences"], spec["tasks"])


def _published_rows(spec: Spec) -> list[Row]:
    """The published points, where the spec is theirs."""
    rows = []
    for row in published("correlated_reduced_d32"):
        ours = all(float(row[key]) == spec[key] for key in ("d", "sequences", "tasks", "noise"))
        if ours and float(row["correlation_length"]) <= max(spec["xi"]):
            icl = {"icl": float(row["icl_mean"]), "stderr": float(row["icl_std"]) / float(row["runs"]) ** 0.5}
            place: Row = {"curve": row["curve"], "xi": int(row["correlation_length"]), "length": int(row["length"])}
            rows.append({"source": "published", **place, **icl})
    return rows


def columns(rows: list[Row], source: str, curve: str) -> tuple[Any, Any, Any]:
    """xi, icl and standard error (0 where there is none) of one curve from one source."""
    chosen = [r for r in rows if r["source"] == source and r["curve"] == curve]
    xi, icl, stderr = (np.array([r.get(key) or 0.0 for r in chosen]) for key in ("xi", "icl", "stderr"))
    return xi, icl, stderr
