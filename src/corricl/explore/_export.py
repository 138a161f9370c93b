"""The plotted numbers as CSV, and the same picture in the style of the figures."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import BytesIO, StringIO

from ..prompt import Estimate
from ._curves import METHODS, Point
from ._state import State
from ._style import LINES, POSITION, SIMULATED

COLUMNS = ("axis", "x", "method", "icl", "stderr", "valid", "note")


def table(state: State, points: Sequence[Point], simulated: dict[float, Estimate]) -> str:
    """CSV with a row for each number, floats in full; an infinite error is inf, a refused one is empty."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for p in points:
        writer.writerow((state.axis, p.x, p.method, p.icl, "", p.valid, p.note))
    for x, found in sorted(simulated.items()):
        writer.writerow((state.axis, x, "simulate", found.mean, found.stderr, True, ""))
    return out.getvalue()


def picture(state: State, points: Sequence[Point], simulated: dict[float, Estimate]) -> bytes:
    """The plot as PNG."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from ..figures._style import STYLE

    out = BytesIO()
    with matplotlib.rc_context(STYLE):  # type: ignore[arg-type]
        canvas = Figure(layout="constrained")
        FigureCanvasAgg(canvas)
        axes = canvas.subplots()
        for method, label in METHODS.items():
            line = [(p.x, p.icl) for p in points if p.method == method and p.icl is not None]
            color, dash = LINES[method]
            if line:
                axes.plot(*zip(*line, strict=True), color=color, linestyle=dash, label=label)
        rows = sorted(simulated.items())
        if rows:
            errors = [2 * (found.stderr or 0.0) for _, found in rows]
            x, y = [x for x, _ in rows], [found.mean for _, found in rows]
            axes.errorbar(x, y, errors, fmt="o", color=SIMULATED, label="simulation ± 2 standard errors")
        axes.axvline(state.position, color=POSITION, ls=":", lw=1)
        axes.set(xlabel=state.quantity.label, ylabel="ICL error (mean squared)", yscale=state.scale)
        axes.set_xscale("log" if state.quantity.log else "linear")
        if state.scale == "linear":
            axes.set_ylim(0, None)
        axes.set_title(f"{state.kernel}, query {state.query}, d = {state.d}, length = {state.length}", fontsize=9)
        if points or rows:
            axes.legend()
        canvas.savefig(out, format="png")
    return out.getvalue()
