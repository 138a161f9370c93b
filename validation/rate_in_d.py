"""How fast finite size approaches the weak limit: |simulation - theory| against d should fall as 1/d.

Resumable; the table is results/rate_in_d.csv. Delete it to start anew.
"""

from __future__ import annotations

import numpy as np
from _table import complete

from corricl import Pretraining, simulate, theory

SETTINGS = {
    "iid": {"alpha": 2, "tau": 4, "kappa": float("inf"), "kernel": "iid", "query": "independent", "ridge": 1e-8},
    "correlated": {"alpha": 4, "tau": 4, "kappa": 10, "kernel": "exp:2", "query": "continues", "ridge": 1e-8},
    "ridge": {"alpha": 2, "tau": 1.5, "kappa": float("inf"), "kernel": "exp:1", "query": "independent", "ridge": 1e-1},
}
REPLICATES = {20: 2000, 40: 400, 80: 40, 160: 6}


def compute(key: dict[str, str]) -> dict[str, str]:
    ratios = dict(SETTINGS[key["setting"]])
    ridge = ratios.pop("ridge")
    pretraining = Pretraining.from_ratios(int(key["d"]), noise=0.05, **ratios)
    found = simulate.risk(pretraining, ridge, seed=1, replicates=REPLICATES[int(key["d"])])
    limit = theory.risk(pretraining, ridge, method="weak").icl
    numbers = {"icl": found.icl.mean, "stderr": found.icl.stderr, "theory": limit}
    return {name: f"{value:.6f}" for name, value in numbers.items()}


def main() -> None:
    keys = [{"setting": name, "d": str(d)} for d in REPLICATES for name in SETTINGS]
    rows = complete("rate_in_d", keys, compute)
    for name in SETTINGS:
        chosen = [row for row in rows if row["setting"] == name]
        d, icl, stderr, limit = (np.array([float(r[c]) for r in chosen]) for c in ("d", "icl", "stderr", "theory"))
        gap = np.abs(icl - limit)
        slope, cost = np.polyfit(np.log(d), np.log(gap), 1, w=gap / stderr, cov="unscaled")
        print(f"{name:<11} gap {np.round(gap, 4)}  slope {slope[0]:.3f} ± {cost[0, 0] ** 0.5:.3f}")


if __name__ == "__main__":
    main()
