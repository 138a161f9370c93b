"""How accurate are the weak limit and the mixture theory? Two hundred settings drawn from a grid, simulated.

Resumable; the table is results/theory_map.csv. A simulation goes on to a standard error of .3 %, or .5 %
where that would take over 20 seconds of processor time, and stops at two minutes. Delete the table to start anew.
"""

from __future__ import annotations

import itertools
import time

import numpy as np
from _table import complete

from corricl import ConvergenceError, Pretraining, simulate
from corricl.theory import mixture, weak

COUNT, NOISE, WORKERS = 200, 0.05, 2
FINE, COARSE, DEAR, LAST = 0.003, 0.005, 20.0, 120.0
AXES = {
    "d": (16, 32, 64),
    "alpha": (1, 4),
    "tau": (0.5, 1.5, 4),
    "kappa": (0.5, 2, 10, float("inf")),
    "kernel": (
        *("exp:0", "exp:2", "exp:8", "exp:.1l", "exp:.3l", "exp:1l"),
        *("power:0.01", "power:0.1", "power:0.3", "power:0.5", "power:1"),
    ),
    "query": ("independent", "continues"),
    "ridge": (1e-8, 1e-2),
}


def keys() -> list[dict[str, str]]:
    """COUNT cells of the grid, drawn without replacement."""
    cells = list(itertools.product(*AXES.values()))
    drawn = np.random.default_rng(2026).choice(len(cells), COUNT, replace=False)
    return [dict(zip(AXES, map(str, cells[i]), strict=True)) for i in drawn]


def pretraining_of(key: dict[str, str]) -> Pretraining:
    """The setting; a correlation length such as .3l is in units of the context."""
    d, alpha, kernel = int(key["d"]), float(key["alpha"]), key["kernel"]
    if kernel.endswith("l"):
        kernel = f"exp:{float(kernel[4:-1]) * round(alpha * d):g}"
    kappa = float(key["kappa"])
    return Pretraining.from_ratios(d, alpha, float(key["tau"]), kappa, kernel=kernel, query=key["query"], noise=NOISE)


def compute(key: dict[str, str]) -> dict[str, str]:
    pretraining, ridge = pretraining_of(key), float(key["ridge"])
    limit = weak(pretraining, ridge)
    try:
        found = mixture(pretraining, ridge)
        predicted = {"mixture": f"{found.icl:.5f}", "mixture_idg": f"{found.idg:.5f}"}
    except ConvergenceError:
        predicted = {"mixture": "nan", "mixture_idg": "nan"}
    start, made = time.process_time(), []
    while True:
        try:
            made.append(simulate.replicate(pretraining, ridge, seed=7, index=len(made)))
        except ConvergenceError:
            return {
                "replicates": "0",
                "icl": "nan",
                "stderr": "nan",
                "idg": "nan",
                "weak": f"{limit.icl:.5f}",
                **predicted,
            }
        if len(made) % 8:
            continue
        icl, seconds = simulate.estimate([r.icl for r in made]), time.process_time() - start
        error = (icl.stderr or 0.0) / icl.mean
        if error < (FINE if seconds < DEAR else COARSE) or seconds > LAST:
            break
    return {
        "replicates": str(len(made)),
        "icl": f"{icl.mean:.5f}",
        "stderr": f"{icl.stderr:.5f}",
        "idg": f"{np.mean([r.idg for r in made]):.5f}",
        "weak": f"{limit.icl:.5f}",
        **predicted,
    }


def main() -> None:
    rows = complete("theory_map", keys(), compute, workers=WORKERS)
    d = np.array([int(row["d"]) for row in rows])
    kappa = np.array([float(row["kappa"]) for row in rows])
    icl, stderr, idg, weak_icl, mix, mix_idg = (
        np.array([float(row[c]) for row in rows]) for c in ("icl", "stderr", "idg", "weak", "mixture", "mixture_idg")
    )
    print(
        f"{len(rows)} settings; no converged simulation in {np.isnan(icl).sum()}, no mixture in {np.isnan(mix).sum()}"
    )
    noise = stderr / icl
    groups = {"d = 16": d == 16, "d >= 32": d >= 32, "d >= 32, kappa >= 2": (d >= 32) & (kappa >= 2)}
    for name, chosen in groups.items():
        for method, value, truth in (("weak", weak_icl, icl), ("mixture", mix, icl), ("mixture, IDG", mix_idg, idg)):
            error = (value / truth - 1)[chosen & np.isfinite(value / truth)]
            size = np.sqrt(np.maximum(error**2 - np.nanmean(noise[chosen]) ** 2, 0))
            median, high = np.quantile(size, [0.5, 0.95])
            print(f"{name:<20} {method:<13} median {median:.2%}  95 % {high:.2%}  worst {np.abs(error).max():.2%}")
    apart = np.abs(weak_icl - mix) > 2 * stderr
    better = np.abs(mix - icl) < np.abs(weak_icl - icl)
    print(f"mixture nearer than weak in {(apart & better).sum()} of {apart.sum()} settings 2 standard errors apart")


if __name__ == "__main__":
    main()
