"""One look for all figures; colours of Okabe and Ito, distinguishable without colour vision."""

from __future__ import annotations

BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, BLACK, GREY = "#CC79A7", "#56B4E9", "#000000", "#777777"
CYCLE = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, BLACK)

THEORY_LINES = {"theory:weak": "--", "theory:mixture": "-"}
"""Estimators drawn as lines, with their line style."""

STYLE: dict[str, object] = {
    "figure.figsize": (6.4, 4.2),
    "figure.dpi": 150,
    "savefig.dpi": 200,
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.8,
    "errorbar.capsize": 2.5,
    "pdf.fonttype": 42,
}
