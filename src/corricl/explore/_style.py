"""The look of the page: system fonts, few colours, and a layout that folds in a narrow window."""

from __future__ import annotations

from ..figures._style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION

LINES = {
    "weak": (PURPLE, "dashed"),
    "mixture": (VERMILION, "solid"),
    "linear": (BLUE, "solid"),
    "positional": (GREEN, "solid"),
    "softmax": (ORANGE, "solid"),
    "bayes": (BLACK, "dotted"),
}
"""Colour (of Okabe and Ito) and dash of each method."""

SIMULATED, POSITION = VERMILION, GREY
CORRELATIONS = (BLUE, "#ffffff", VERMILION)
"""Colours of correlations -1, 0 and 1."""

PAGE = """
body { font-family: system-ui, sans-serif; color: #222; background: #fff; margin: 0; }
"""

BASE = """
:host { font-family: system-ui, sans-serif; color: #222; }
h1 { font-size: 1.35rem; font-weight: 600; margin: .2rem 0; }
h2 { font-size: 1.02rem; font-weight: 600; margin: .9rem 0 .3rem; padding-bottom: .2rem;
     border-bottom: 1px solid #ddd; }
p { margin: .25rem 0; line-height: 1.4; max-width: 46rem; }
small, .quiet { color: #666; }
code { background: #f4f4f4; padding: 0 .2em; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { text-align: right; padding: .18rem .8rem .18rem 0; font-weight: 400; }
th { color: #666; }
th:first-child, td:first-child { text-align: left; }
td b { font-weight: 600; }
iframe { width: 100%; height: 46rem; border: 1px solid #ddd; box-sizing: border-box; }
.tables { display: flex; flex-wrap: wrap; column-gap: 2.5rem; row-gap: .6rem; }
.warn { border-left: 3px solid #E69F00; padding: .15rem .6rem; margin: .4rem 0; background: #fdf8ee; max-width: 46rem; }
.bad { border-left: 3px solid #D55E00; padding: .3rem .6rem; margin: .4rem 0; background: #fdf2ec; max-width: 46rem; }
"""

LEFT = {"flex": "1 1 270px", "max-width": "420px", "min-width": "0", "padding": "0 1rem"}
RIGHT = {"flex": "4 1 340px", "min-width": "0", "padding": "0 1rem", "max-width": "1000px"}
