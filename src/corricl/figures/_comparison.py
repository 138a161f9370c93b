"""The picture of `corricl compare`: every method on one prompt and on what is left of it without its correlations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError
from ..prompt import Estimate
from ._style import BLACK, BLUE, GREY, ORANGE, SKY, STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..theory import Comparison

LABELS = {
    "weak": "pretrained linear (weak)",
    "mixture": "pretrained linear (mixture)",
    "linear": "linear attention",
    "positional": "position-weighted linear",
    "softmax": "softmax attention",
    "bayes": "Bayes floor",
}
LAWS = (
    ("iid", "iid tokens", "o", GREY),
    ("query_alone", "iid context, this query", "D", SKY),
    ("independent", "this context, independent query", "s", BLUE),
    ("given", "this prompt", "o", ORANGE),
)
"""Attribute of a `Comparison`, its label, marker and colour."""


def save_comparison(
    comparisons: Sequence[Comparison], simulated: Mapping[str, Estimate], title: str, out: Path
) -> list[Path]:
    """Draw a comparison into out/comparison.png and .pdf.

    Args:
        comparisons: of `theory.compare`; risks of 0 and of infinity have no place on the axis.
        simulated: estimates of the risk of the prompt as given, by method; may be empty.
        title: above the picture.
        out: folder, made if needed.

    Raises:
        InputError: when the folder cannot be written.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    paths = [out / "comparison.png", out / "comparison.pdf"]
    with matplotlib.rc_context(STYLE):  # type: ignore[arg-type]
        canvas = Canvas(figsize=(8.6, 1.9 + 0.5 * len(comparisons)), layout="constrained")
        FigureCanvasAgg(canvas)
        _draw(canvas.subplots(), comparisons, simulated)
        canvas.suptitle(title, fontsize=11)
        canvas.legend(loc="outside lower center", ncols=3)
        try:
            out.mkdir(parents=True, exist_ok=True)
            canvas.savefig(paths[0])
            canvas.savefig(paths[1], metadata={"CreationDate": None})
        except OSError as error:
            raise InputError(f"cannot write to '{out}': {error.strerror}") from None
    return paths


def _draw(axes: Axes, comparisons: Sequence[Comparison], simulated: Mapping[str, Estimate]) -> None:
    """One line of the picture for a method, the first on top: risks on a logarithmic axis, joined."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    rows = range(len(comparisons))
    for row, found in zip(rows, comparisons, strict=True):
        risks = [x for name, *_ in LAWS if (x := _place(found, name))]
        if risks:
            axes.hlines(row, min(risks), max(risks), color=GREY, lw=1, zorder=1)
    for name, label, marker, color in LAWS:
        points = [(r, x) for r, c in zip(rows, comparisons, strict=True) if (x := _place(c, name))]
        if points:
            y, x = zip(*points, strict=True)
            axes.plot(x, y, marker, color=color, ms=8, label=label, zorder=2)
    drawn = [(row, simulated[c.method]) for row, c in zip(rows, comparisons, strict=True) if c.method in simulated]
    if drawn:
        y, estimates = zip(*drawn, strict=True)
        spread = [2 * (e.stderr or 0.0) for e in estimates]
        label = "this prompt, simulated (± 2 s.e.)"
        axes.errorbar([e.mean for e in estimates], y, xerr=spread, fmt="|", color=BLACK, ms=14, label=label, zorder=3)
    axes.set(xscale="log", xlabel="ICL error", ylim=(len(comparisons) - 0.5, -0.5))
    axes.set_yticks(list(rows), [LABELS[c.method] for c in comparisons])
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _place(found: Comparison, law: str) -> float | None:
    risk = getattr(found, law)
    return risk.icl if risk is not None and 0 < risk.icl < math.inf else None
