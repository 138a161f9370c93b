"""d = 512, alpha 4, tau 4, kappa 10 on one machine: time, peak memory, residual and error.

The table is results/large_problem.csv. Delete it to run again.
"""

from __future__ import annotations

import resource
import time

from _table import complete

from corricl import Pretraining, simulate, theory


def compute(key: dict[str, str]) -> dict[str, str]:
    pretraining = Pretraining.from_ratios(
        int(key["d"]), alpha=4, tau=4, kappa=10, kernel="exp:5", query="continues", noise=0.01
    )
    start = time.perf_counter()
    found = simulate.replicate(pretraining, 1e-8, seed=0, index=0, tolerance=1e-6)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "icl": f"{found.icl:.6f}",
        "idg": f"{found.idg:.6f}",
        "theory": f"{theory.risk(pretraining, 1e-8, method='weak').icl:.6f}",
        "residual": f"{found.residual:.2e}",
        "steps": str(found.steps),
        "minutes": f"{seconds / 60:.1f}",
        "peak_gib": f"{peak:.1f}",
    }


def main() -> None:
    for row in complete("large_problem", [{"d": "512"}], compute):
        print(row)


if __name__ == "__main__":
    main()
