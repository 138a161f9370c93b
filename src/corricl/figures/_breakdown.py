"""What breaks down with strong correlations: fitted powers of d of the scale and the risk of Gamma*."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._base import Figure, Row
from ._select import select
from ._style import BLUE, GREEN, ORANGE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from ..sweeps import Spec

QUERIES = {"independent": "o", "continues": "s"}
LOOKS = {"trace": ("tr Γ/d", BLUE), "square": ("|Γ|²/d", ORANGE), "icl": ("exact risk", GREEN)}
KINDS = {"variance": "variance", "relative": "variance / mean²", "mean": "mean"}
FAMILIES = {"exp": "exponential, ξ = lengthᵖ: p", "power": "power law: γ"}
BASE = {"alpha": 1, "tau": 2, "kappa": 0.5, "noise": 0.01, "ridge": 1e-2}


class Breakdown(Figure):
    """Powers of d of means and variances over pretrainings, against the growth of the correlations.

    Variances fall about as d^-2 everywhere: every pretraining averages over tau d^2 sequences. What breaks
    down is the mean, a scale that should settle and runs away.
    """

    name = "breakdown"
    title = "powers of d of the variances and means of Γ* and its risk as correlations grow with the context"

    def sweeps(self, quick: bool) -> list[Spec]:
        sizes = {8: 40, 16: 30, 32: 20} if quick else {16: 100, 32: 60, 64: 40}
        growth = [0.3, 1.0, 1.3] if quick else [0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 1.1, 1.3]
        gammas = [0.25, 0.5, 0.8] if quick else [0.1, 0.3, 0.4, 0.5, 0.6, 0.6667, 0.8, 1.0]
        return [_spec(d, replicates, growth, gammas) for d, replicates in sizes.items()]

    def extra(self, specs: list[Spec], rows: list[Row]) -> list[Row]:
        return fitted(rows)

    def plot(self, rows: list[Row], canvas: Canvas) -> None:
        canvas.set_size_inches(10, 9)
        fits = _fits(rows)
        for line, (kind, label) in zip(canvas.subplots(3, 2, sharex="col", sharey="row"), KINDS.items(), strict=True):
            for axes, (family, xlabel) in zip(line, FAMILIES.items(), strict=True):
                self._points(axes, [f for f in fits if (f["family"], f["kind"]) == (family, kind)])
                axes.axhline(0 if kind == "mean" else -2, color="k", lw=0.8, ls=":")
                for border in (1.0,) if family == "exp" else (0.5, 2 / 3):
                    axes.axvline(border, color="k", lw=0.8, ls="-.")
                axes.set(ylabel=f"power of d of the {label}" if family == "exp" else "")
                axes.set(xlabel=xlabel if kind == "mean" else "")
            if kind == "variance":
                line[0].legend(fontsize=8)

    def _points(self, axes: Axes, fits: list[Row]) -> None:
        """Shifted sideways a little, so that error bars do not hide one another."""
        for i, (quantity, (label, color)) in enumerate(LOOKS.items()):
            for query, marker in QUERIES.items():
                mine = [f for f in fits if (f["quantity"], f["query"]) == (quantity, query)]
                x = np.array([f["x"] for f in mine]) + 0.008 * (i - 1) + (0.004 if query == "continues" else 0)
                y, error = [f["mean"] for f in mine], [f["stderr"] for f in mine]
                style = {"fmt": marker, "color": color, "ms": 4.5, "lw": 1}
                face = color if query == "independent" else "white"
                axes.errorbar(x, y, error, mfc=face, label=f"{label}, query {query}", **style)

    def table(self, rows: list[Row]) -> str:
        kinds = "".join(f"{f'power of {label}':<28}" for label in KINDS.values())
        text = [f"{'family':<8}{'x':<8}{'query':<13}{'quantity':<10}{kinds}".rstrip()]
        cells: dict[tuple[Any, ...], dict[str, Row]] = {}
        for fit in _fits(rows):
            place = tuple(fit[name] for name in ("family", "x", "query", "quantity"))
            cells.setdefault(place, {})[fit["kind"]] = fit
        for (family, x, query, quantity), fits in cells.items():
            powers = "".join(f"{'{mean:+.2f} ± {stderr:.2f}'.format(**fits[kind]):<28}" for kind in KINDS)
            text.append(f"{family:<8}{x:<8g}{query:<13}{quantity:<10}{powers}".rstrip())
        return "\n".join(text)


def fitted(rows: list[Row]) -> list[Row]:
    """Powers of d of each quantity as rows of the estimator `fit`, placed by family, x, query, quantity and kind."""
    from ..simulate import Sample, log_mean, log_relative, log_variance, measure_power

    rows = [{**row, "d": int(row["sweep"].removeprefix("d-"))} for row in rows]
    found = []
    for case in dict.fromkeys(row["case"] for row in rows):
        family, x = case.split("-")
        for query in QUERIES:
            for quantity in LOOKS:
                here = select(rows, "d", quantity, case=case, query=query)
                count = select([{**r, "mean": r["replicates"]} for r in rows], "d", quantity, case=case, query=query).y
                # the rows hold no fourth moments: normal values are assumed
                sample = Sample(here.y, here.stderr**2 * count, count, np.zeros_like(count))
                place = {"family": family, "x": float(x), "query": query, "estimator": "fit", "quantity": quantity}
                for kind, of in (("variance", log_variance), ("relative", log_relative), ("mean", log_mean)):
                    fit = measure_power(here.x, *of(sample))
                    found.append({"sweep": "fit", **place, "kind": kind, "mean": fit.power, "stderr": fit.stderr})
    return found


def _fits(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["estimator"] == "fit"]


def _spec(d: int, replicates: int, growth: list[float], gammas: list[float]) -> Spec:
    """All kernels at one d, with random numbers of its own, so that sizes are independent."""
    from ..sweeps import Spec

    length = round(BASE["alpha"] * d)
    cases = [{"name": f"exp-{p:g}", "kernel": f"exp:{length**p:.9g}"} for p in growth]
    cases += [{"name": f"power-{gamma:g}", "kernel": f"power:{gamma:g}"} for gamma in gammas]
    return Spec(
        name=f"d-{d}",
        base={"d": d, **BASE},
        cases=cases,
        axes={"query": list(QUERIES)},
        estimators=["simulate"],
        replicates=replicates,
        seed=d,
    )
