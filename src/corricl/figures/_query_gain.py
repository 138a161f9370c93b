"""What a continuing query gains, against the correlation length and as a map over k0 and k1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..theory import linear
from ._architectures import MODELS, SMALL, by_model, trained
from ._base import Figure, Row, with_error
from ._effective_length import PAPER, QUERIES
from ._select import Series, difference, grid, select
from ._style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, THEORY_LINES, VERMILION

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from ..sweeps import Spec

ALPHA, NOISE, K2 = 4.0, 0.01, 3.0
"""Prompt of the map: the population risk depends on these and on k0 and k1."""

LOOKS = ((GREEN, "s"), (VERMILION, "^"), (PURPLE, "D"), (BLACK, "v"))
"""Colour and marker of each trained model."""


class QueryGain(Figure):
    """ICL error with an independent query minus that with a continuing one: theory, reduced and trained models."""

    name = "query-gain"
    title = "gain of a query that continues the sequence, against xi and over (k0, k1)"

    def sweeps(self, quick: bool) -> list[Spec]:
        from ..sweeps import Range, Spec

        base = {**(SMALL if quick else PAPER), "kernel": "exp:{xi}"}
        fine = Range(start=0, stop=10, num=21 if quick else 101).values()
        xi = [0, 2, 6, 10] if quick else list(range(11))
        common: dict[str, Any] = {"base": base, "cases": QUERIES, "axes": {"xi": xi}}
        theory = Spec(name="theory", base=base, cases=QUERIES, axes={"xi": fine}, estimators=list(THEORY_LINES))
        simulation = Spec(name="simulation", estimators=["simulate"], replicates=5 if quick else 20, **common)
        models = [trained(name, quick) for name in MODELS]
        return [
            theory,
            simulation,
            Spec(name="models", estimators=models[:-1], replicates=2, **common),
            Spec(name="deep-models", estimators=models[-1:], replicates=1 if quick else 2, **common),
        ]

    def extra(self, specs: list[Spec], rows: list[Row]) -> list[Row]:
        k0, k1 = np.meshgrid(np.linspace(0, 1.5, 61), np.linspace(0, 4.5, 61))
        plain = linear.population(linear.couplings(ALPHA, NOISE, 0.0, 0.0, K2))[1]
        gain = plain - linear.population(linear.couplings(ALPHA, NOISE, k0, k1, K2))[1]
        here = {"sweep": "map", "estimator": "population", "quantity": "query_gain"}
        # a query with k0 has k1 <= k0 times the largest eigenvalue, which k2 does not bound: the map is the formula's
        return [
            {**here, "k0": float(a), "k1": float(b), "mean": float(g)}
            for a, b, g in zip(k0.ravel(), k1.ravel(), gain.ravel(), strict=True)
        ]

    def plot(self, rows: list[Row], canvas: Canvas) -> None:
        canvas.set_size_inches(10, 4.2)
        left, right = canvas.subplots(1, 2)
        for method, style in THEORY_LINES.items():
            line = _gain(rows, method)
            left.plot(line.x, line.y, style, color=BLUE, label=method.replace(":", ", "))
        found = _gain(rows, "simulate")
        left.errorbar(found.x, found.y, found.stderr, fmt="o", color=ORANGE, label="simulation")
        rows = by_model(rows)
        for (name, _), (color, marker) in zip(MODELS.items(), LOOKS, strict=True):
            gains = _gain(rows, name)
            if len(gains.x):
                left.errorbar(gains.x, gains.y, gains.stderr, fmt=f"{marker}:", color=color, ms=4, lw=1, label=name)
        left.set(xlabel="correlation length ξ (tokens)", ylabel="query gain Δ (ICL error)")
        left.legend()
        k0, k1, gain = grid(rows, "k0", "k1", "query_gain", estimator="population")
        limit = float(np.abs(gain).max())
        image = right.pcolormesh(k0, k1, gain, cmap="RdBu", vmin=-limit, vmax=limit, rasterized=True)
        right.contour(k0, k1, gain, levels=[0.0], colors=[GREY])
        right.set(xlabel="$k_0$", ylabel="$k_1$", title=f"population, α = {ALPHA:g}, ρ = {NOISE:g}, $k_2$ = {K2:g}")
        right.grid(visible=False)
        canvas.colorbar(image, ax=right, label="query gain Δ")

    def table(self, rows: list[Row]) -> str:
        found = _gain(rows, "simulate")
        lines = {method: _gain(rows, method) for method in THEORY_LINES}
        gains = {name: _gain(by_model(rows), name) for name in MODELS}
        titles = ["simulated gain", *gains]
        text = [f"{'xi':>4}  " + "".join(f"{t:<24}" for t in titles) + "".join(f"{method:<16}" for method in lines)]
        for x, gain, stderr in zip(*found, strict=True):
            values = [f"{gain:.4f} ± {stderr:.4f}", *(_at(series, x) for series in gains.values())]
            at = "".join(f"{np.interp(x, line.x, line.y):<16.4f}" for line in lines.values())
            text.append(f"{x:>4g}  " + "".join(f"{value:<24}" for value in values) + at)
        return "\n".join(text)


def _at(series: Series, x: float) -> str:
    """The value at x, with its standard error where there is one."""
    return next((with_error({"mean": y, "stderr": s}) for at, y, s in zip(*series, strict=True) if at == x), "")


def _gain(rows: list[Row], estimator: str) -> Series:
    plain, informed = (select(rows, "xi", case=case["name"], estimator=estimator) for case in QUERIES)
    return difference(plain, informed)
