"""Each method on one prompt against direct Monte Carlo of the same number, in one process; prints the ratios.

Monte Carlo is `simulate.score` of the predictor at its optimum, which it is given: finding beta or the weights would
cost it more. Its time to a standard error falls as one over the square of that error, so that a run of known
error gives the time to another. The target is the error that softmax states of itself; 1 % of the risk for the rest.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TypeVar

from corricl import Prompt, Risk, simulate, theory
from corricl.prompt import Estimate

T = TypeVar("T")
PROMPT = Prompt(d=32, length=128, kernel="exp:10", query="continues", noise=0.01)
REPEATS, DRAWN, TARGET = 5, 2048, 0.01


def timed(function: Callable[[], T]) -> tuple[float, T]:
    """(seconds, value)."""
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, value


def compare(method: str) -> None:
    """Print one line: medians of alternating runs, the first of each left out for what it compiles or caches."""
    best = simulate.optimal(method, PROMPT)

    def ours() -> Risk:
        return theory.risk(PROMPT, method=method)

    def direct() -> Estimate:
        return simulate.score(best, PROMPT, seed=0, prompts=DRAWN)

    first = timed(ours)[0]
    timed(direct)
    pairs = [(timed(ours), timed(direct)) for _ in range(REPEATS)]
    risk, sample = pairs[0][0][1], pairs[0][1][1]
    error = risk.details.get("numerical_error", TARGET * risk.icl)
    factor = (sample.stderr / error) ** 2
    seconds = statistics.median(pair[0][0] for pair in pairs)
    ratio = statistics.median(pair[1][0] * factor / pair[0][0] for pair in pairs)
    print(
        f"{method:<11} {risk.icl:.4f}  first {first:.3f} s  median {seconds:.4f} s  standard error {error:.2g}  "
        f"Monte Carlo {sample.mean:.4f} ± {sample.stderr:.2g}, {seconds * ratio:.1f} s to that error  ratio {ratio:.0f}"
    )


def main() -> None:
    print(f"{PROMPT.kernel.spec}, continuing query, d 32, length 128: median of {REPEATS} pairs")
    for method in theory.PROMPT_METHODS:
        compare(method)
    compared = [timed(lambda: theory.compare(PROMPT))[0] for _ in range(REPEATS)]
    print(f"corricl.theory.compare, all of them on three laws: {statistics.median(compared):.2f} s")


if __name__ == "__main__":
    main()
