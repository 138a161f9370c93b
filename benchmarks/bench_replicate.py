"""One replicate with its risk against the published route, in turn in one process; prints the ratio."""

from __future__ import annotations

import math
import statistics
import time

import jax
from _published_route import replicate as published_replicate

from corricl import Pretraining, Prompt, simulate

REPEATS = 3


def timed(function: object) -> tuple[float, float]:
    """(seconds, value)."""
    start = time.perf_counter()
    value = function()  # type: ignore[operator]
    return time.perf_counter() - start, value


def main() -> None:
    prompt = Prompt(d=64, length=256, kernel="exp:5", query="continues", noise=0.01)
    pretraining = Pretraining(prompt, sequences=16384, tasks=640)

    def ours(index: int) -> float:
        return simulate.replicate(pretraining, 1e-8, seed=0, index=index, tolerance=1e-6).icl

    def theirs(index: int) -> float:
        with jax.enable_x64(True):
            sizes = {
                "d": 64,
                "length": 256,
                "n": 16384,
                "k": 640,
                "phi": math.exp(-1 / 5),
                "noise": 0.01,
                "ridge": 1e-8,
            }
            return published_replicate(jax.random.key(index), **sizes)

    first_ours, first_theirs = timed(lambda: ours(0)), timed(lambda: theirs(0))
    pairs = [(timed(lambda i=i: ours(i)), timed(lambda i=i: theirs(i))) for i in range(1, REPEATS + 1)]
    ours_s, theirs_s = (statistics.median(pair[side][0] for pair in pairs) for side in (0, 1))
    print("one replicate with risk: d 64, length 256, n 16384, k 640, xi 5, continuing query, ridge 1e-8")
    print(f"  with compilation    corricl {first_ours[0]:.2f} s   published route {first_theirs[0]:.2f} s")
    print(f"  median of {REPEATS}         corricl {ours_s:.3f} s   published route {theirs_s:.2f} s")
    print(f"  ICL error           corricl {pairs[0][0][1]:.4f}    published route {pairs[0][1][1]:.4f}")
    print(f"  ratio, pair by pair {', '.join(f'{b[0] / a[0]:.0f}' for a, b in pairs)}")


if __name__ == "__main__":
    main()
