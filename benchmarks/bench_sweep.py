"""How much of two cores' time a sweep puts into its points, against a process pool that keeps nothing.

    python benchmarks/bench_sweep.py

Points keep a core busy for 50 ms. The share is (points x 50 ms) / (2 x wall time), start of the workers
included. The pool returns its results and forgets them; the sweep has each in its store.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from corricl.sweeps import Estimator, Setting, Spec, run

SECONDS, POINTS = 0.05, 400


def busy(_: object = None) -> float:
    """Keep a core busy."""
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        pass
    return end


class Busy(Estimator):
    """`busy` for 50 ms."""

    name = "busy-for-a-while"

    def run(self, setting: Setting, *, seed: int, replicate: int, folder: Path) -> dict[str, float | None]:
        return {"icl": busy()}


def share(wall: float) -> float:
    """Of two cores' time."""
    return POINTS * SECONDS / (2 * wall)


def by_sweep() -> float:
    """Share of a sweep on two local workers."""
    base = {"d": 8, "alpha": 1, "tau": 2}
    spec = Spec(base=base, estimators=["busy-for-a-while"], replicates=POINTS, imports=[os.path.abspath(__file__)])
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        report = run(spec, Path(folder) / "s.sqlite", workers=2, progress=False)
        wall = time.perf_counter() - start
    assert report.finished == POINTS
    return share(wall)


def by_pool() -> float:
    """Share of the standard library's process pool."""
    start = time.perf_counter()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert len(list(pool.map(busy, range(POINTS)))) == POINTS
    return share(time.perf_counter() - start)


if __name__ == "__main__":
    sweep, pool = by_sweep(), by_pool()
    print(f"sweep {sweep:.1%}, process pool {pool:.1%}, ratio {sweep / pool:.3f} (load {os.getloadavg()[0]:.1f})")
    sys.exit(sweep < min(0.85, pool))  # on a busy machine the pool shows what can be had
