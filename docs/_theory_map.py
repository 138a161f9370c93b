"""Write the accuracy map of docs/which-theory.md from results/theory_map.csv: `python docs/_theory_map.py`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "validation"))

from _table import read  # noqa: E402 - a folder of scripts, no package
from theory_map import pretraining_of  # noqa: E402

PAGE = ROOT / "docs" / "which-theory.md"
BEGIN, END = "<!-- theory-map:begin -->", "<!-- theory-map:end -->"
STRENGTHS = ((0.0, 0.1, "k2/ℓ below .1"), (0.1, 0.5, "k2/ℓ from .1 to .5"), (0.5, np.inf, "k2/ℓ above .5"))
METHODS = {"weak, ICL": ("weak", "icl"), "mixture, ICL": ("mixture", "icl"), "mixture, IDG": ("mixture_idg", "idg")}

Row = Mapping[str, str]


def table(rows: Sequence[Row]) -> str:
    """The map as Markdown: median, 95th percentile and worst relative error of each method in each group.

    Rows without a converged simulation are counted below the table, and so are those without a theory.
    """
    columns = {name: np.array([float(row[name]) for row in rows]) for name in (*_NUMBERS, "d", "kappa")}
    share = np.array([_share(row) for row in rows])
    heads = [f"{name}, {of}" for name in METHODS for of in ("median", "95 %", "worst")]
    text = [f"| settings | number | {' | '.join(heads)} |", f"|---|---|{'---|' * 3 * len(METHODS)}"]
    for name, chosen in _groups(columns["d"], columns["kappa"], share):
        cells = [_summary(columns, chosen, *method) for method in METHODS.values()]
        text.append(f"| {name} | {int(chosen.sum())} | {' | '.join(cells)} |")
    missing = {"simulation": "icl", "mixture theory": "mixture"}
    counts = [f"{int(np.isnan(columns[c]).sum())} without a converged {name}" for name, c in missing.items()]
    return "\n".join([*text, "", f"{len(rows)} settings: {', '.join(counts)}."])


_NUMBERS = ("icl", "stderr", "idg", "weak", "mixture", "mixture_idg")


def _share(row: Row) -> float:
    prompt = pretraining_of(dict(row)).prompt
    return prompt.statistics.k2 / prompt.length


def _groups(d: np.ndarray, kappa: np.ndarray, share: np.ndarray) -> list[tuple[str, np.ndarray]]:
    groups = [("all", np.ones(len(d), dtype=bool)), ("d ≥ 32", d >= 32)]
    groups += [(f"d = {value:g}", d == value) for value in np.unique(d)]
    groups += [
        (f"d ≥ 32, κ = {value:g}".replace("inf", "∞"), (d >= 32) & (kappa == value)) for value in np.unique(kappa)
    ]
    groups += [(f"d ≥ 32, {name}", (d >= 32) & (share >= low) & (share < high)) for low, high, name in STRENGTHS]
    return groups


def _summary(columns: Mapping[str, np.ndarray], chosen: np.ndarray, method: str, truth: str) -> str:
    """Three cells; the simulation's noise is known for ICL alone."""
    error = np.abs(columns[method] / columns[truth] - 1)[chosen]
    noise = (columns["stderr"] / columns["icl"])[chosen] * (truth == "icl")
    known = np.isfinite(error)
    if not known.any():
        return "- | - | -"
    clean = np.sqrt(np.maximum(error[known] ** 2 - noise[known] ** 2, 0))
    median, high = np.quantile(clean, [0.5, 0.95])
    return f"{median:.1%} | {high:.1%} | {error[known].max():.1%}"


def filled(page: str, content: str) -> str:
    """The page with `content` between its two markers.

    Raises:
        ValueError: when the markers are not there once each, in order.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in after:
        raise ValueError(f"the page must hold {BEGIN} and then {END}, once each")
    return f"{before}{BEGIN}\n\n{content}\n\n{END}{after}"


def main() -> None:
    rows = read("theory_map")
    if not rows:
        raise SystemExit("validation/results/theory_map.csv is not there: run python validation/theory_map.py")
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), table(rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
