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
        slopes = [_slope(d[i:], gap[i:], stderr[i:]) for i in (0, 1)]
        # A/d + B/d^2 in place of a single power: the first correction bends the line at d = 20
        terms = np.stack([1 / d, 1 / d**2], axis=1) / stderr[:, None]
        (a, b), chi2, *_ = np.linalg.lstsq(terms, gap / stderr, rcond=None)
        print(
            f"{name:<11} gap {np.round(gap, 4)}  slope {slopes[0]}, from d = 40 on {slopes[1]}; "
            f"{a:.3f}/d + {b:.2f}/d^2 fits with chi2 = {chi2[0]:.2f} for 2 degrees of freedom"
        )


def _slope(d: np.ndarray, gap: np.ndarray, stderr: np.ndarray) -> str:
    slope, cost = np.polyfit(np.log(d), np.log(gap), 1, w=gap / stderr, cov="unscaled")
    return f"{slope[0]:.3f} ± {cost[0, 0] ** 0.5:.3f}"


if __name__ == "__main__":
    main()
