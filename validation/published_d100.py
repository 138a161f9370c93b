"""The published iid table at d = 100 against this simulation, row by row, in combined standard errors.

Resumable; the table is results/published_d100.csv. Rows at alpha = 100 draw 10^4 labels for each sequence
and are left to `corricl figure double-descent`.
"""

from __future__ import annotations

import math

from _table import complete

from corricl import Pretraining, simulate
from corricl.figures._base import published

ROWS = [("1", ".2"), ("10", ".2"), ("1", "1.5"), ("10", "1.5"), ("1", ".85")]


def compute(key: dict[str, str]) -> dict[str, str]:
    theirs = next(r for r in published("iid_reduced_d100") if (r["alpha"], r["tau"]) == (key["alpha"], key["tau"]))
    setting = Pretraining.from_ratios(100, float(key["alpha"]), float(key["tau"]), 0.5, noise=0.01)
    found = simulate.risk(setting, 1e-8, seed=3, replicates=10)
    row = {}
    for name in ("icl", "idg"):
        ours, mean = getattr(found, name), float(theirs[f"{name}_sim_mean"])
        stderr = float(theirs[f"{name}_sim_std"]) / math.sqrt(float(theirs["runs"]))
        row |= {name: f"{ours.mean:.5f}", f"{name}_stderr": f"{ours.stderr:.5f}", f"{name}_published": f"{mean:.5f}"}
        row[f"{name}_z"] = f"{(ours.mean - mean) / math.hypot(ours.stderr, stderr):.2f}"
    return row


def main() -> None:
    rows = complete("published_d100", [{"alpha": a, "tau": t} for a, t in ROWS], compute)
    worst = max(abs(float(row[f"{name}_z"])) for row in rows for name in ("icl", "idg"))
    print(f"{len(rows)} rows, largest deviation {worst:.2f} combined standard errors")


if __name__ == "__main__":
    main()
