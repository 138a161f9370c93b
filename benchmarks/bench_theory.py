"""Theory: settings a second, vectorised, and the cold command against a bare import of numpy."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

import numpy as np

from corricl.theory import linear

COUNT, REPEATS = 100_000, 5


def vectorised() -> None:
    rng = np.random.default_rng(0)
    alpha, tau, kappa = rng.uniform(0.5, 8, COUNT), rng.uniform(0.2, 4, COUNT), rng.uniform(0.2, 20, COUNT)
    ridge, k2 = 10 ** rng.uniform(-10, 0, COUNT), rng.uniform(1, 4, COUNT)
    k0, k1 = rng.uniform(0, 1, COUNT), rng.uniform(0, 2, COUNT)
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        linear.icl(alpha, tau, kappa, 0.01, ridge, k0, k1, k2)
        times.append(time.perf_counter() - start)
    print(f"vectorised weak theory: {COUNT / statistics.median(times):.3g} settings a second (median of {REPEATS})")


def cold(method: str) -> None:
    setting = "--d 32 --length 128 --sequences 4096 --tasks 320 --noise .01 --kernel exp:2 --query continues"
    command = [sys.executable, "-m", "corricl.cli", "theory", *setting.split(), "--method", method, "--json"]
    bare = [sys.executable, "-c", "import numpy"]
    ratios, seconds = [], []
    for _ in range(2 * REPEATS):
        pair = []
        for words in (command, bare):
            start = time.perf_counter()
            subprocess.run(words, check=True, capture_output=True)
            pair.append(time.perf_counter() - start)
        ratios.append(pair[0] / pair[1])
        seconds.append(pair[0])
    print(
        f"cold `corricl theory --method {method}`: {statistics.median(seconds):.2f} s, "
        f"{statistics.median(ratios):.2f} times a bare import of numpy (median of {2 * REPEATS} pairs)"
    )


if __name__ == "__main__":
    vectorised()
    cold("weak")
    cold("auto")
