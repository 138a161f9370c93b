"""How often the 95 % intervals of a measurement hold the truth, and how far its estimates are off on average.

Resumable; the tables are results/coverage.csv (500 draws of each process) and results/measure_bias.csv (200 draws of
each). Delete them to start anew.
"""

from __future__ import annotations

import numpy as np
from _table import Row, complete
from scipy.signal import lfilter

from corricl import Prompt, kernels, measure
from corricl.measure._estimate import Estimator, effective_dimension
from corricl.measure._measure import intervals
from corricl.measure._products import moments, products

LENGTH, DRAWS, NOISE = 32, 500, 0.01
CASES = (
    # kernel, sequences, tokens of each, channels
    ("exp:5", 100, 33, 4),
    ("ar1:-0.6", 100, 33, 4),
    ("power:0.7", 100, 33, 4),
    ("matern:1.5,3", 100, 33, 4),
    ("0.5*exp:5+0.5*iid", 100, 33, 4),
    ("iid", 100, 33, 4),
    ("exp:5", 1, 2048, 4),
    ("ar1:-0.6", 1, 2048, 4),
    ("power:0.7", 1, 2048, 4),
    ("exp:5", 20, 33, 4),
    ("exp:5", 1, 640, 1),
    ("iid", 1, 2048, 4),
    ("matern:1.5,3", 1, 2048, 4),
)


BIAS_LENGTH, BIAS_DRAWS = 128, 200
BIASED = (
    # kernel, sequences, tokens of each, channels: white noise at every size, then 20 windows or sequences
    *(("iid", 1, n, d) for d in (1, 8, 64) for n in (128, 256, 512, 2048, 8192)),
    *((f"ar1:{phi}", 1, 2560, 8) for phi in (-0.8, -0.5, 0.5, 0.9)),
    *((f"ar1:{phi}", 20, 128, 8) for phi in (-0.8, -0.5, 0.5, 0.9)),
    ("power:0.7", 20, 128, 8),
    ("power:0.7", 1, 2560, 8),
)


def draw(kernel: kernels.Kernel, sequences: int, size: int, d: int, seed: list[int]) -> np.ndarray:
    """Gaussian sequences, shape (sequences, size, d)."""
    noise = np.random.default_rng(seed).standard_normal((sequences, size, d))
    phi = getattr(kernel, "phi", None)
    if phi is None:
        return noise if kernel.spec == "iid" else np.einsum("ab,sbd->sad", root(kernel, size), noise)
    noise[:, 1:] *= np.sqrt(1 - phi**2)
    return np.asarray(lfilter([1.0], [1.0, -phi], noise, axis=1))


def root(kernel: kernels.Kernel, size: int) -> np.ndarray:
    """Cholesky factor of the kernel matrix, kept between draws."""
    key = kernel.spec, size
    if key not in _ROOTS:
        _ROOTS.clear()
        _ROOTS[key] = np.linalg.cholesky(kernel.matrix(size) + 1e-12 * np.eye(size))
    return _ROOTS[key]


_ROOTS: dict[tuple[str, int], np.ndarray] = {}


def one(values: np.ndarray, length: int, seed: int) -> dict[str, measure.Interval]:
    """Intervals of one data set, without the fits and cautions."""
    mean, _ = moments(values)
    gathered = products(values, length, None, mean)
    estimator = Estimator(gathered, effective_dimension(gathered))
    return intervals(estimator, estimator.full(), estimator(1 - estimator.sets), NOISE, 0.95, seed)


def compute(key: Row) -> Row:
    kernel, sequences, size, d = kernels.parse(key["kernel"]), int(key["sequences"]), int(key["tokens"]), int(key["d"])
    truth = Prompt(1, LENGTH, kernel, "continues", NOISE).statistics._asdict()
    truth["effective_length"] = LENGTH * (1 + NOISE) / (truth["k2"] + NOISE)
    truth["mean_length"] = LENGTH**2 / kernel.matrix(LENGTH).sum()
    found = [one(draw(kernel, sequences, size, d, [7, i]), LENGTH, i) for i in range(DRAWS)]
    row = {}
    for name, value in truth.items():
        parts = [f[name] for f in found if f[name] is not None]
        held = np.mean([p.low <= value <= p.high for p in parts])
        row[f"{name}_covered"] = f"{held:.3f}"
        if name == "k2":
            estimates = np.array([p.estimate for p in parts])
            row |= {"k2": f"{value:.4f}", "k2_mean": f"{estimates.mean():.4f}"}
            row |= {"k2_stderr": f"{estimates.std() / np.sqrt(DRAWS):.4f}"}
            row["k2_below"] = f"{np.mean([p.high < value for p in parts]):.3f}"
    return row


def bias(key: Row) -> Row:
    kernel, sequences, size, d = kernels.parse(key["kernel"]), int(key["sequences"]), int(key["tokens"]), int(key["d"])
    truth = Prompt(1, BIAS_LENGTH, kernel).statistics.k2
    drawn = (draw(kernel, sequences, size, d, [11, sequences, size, d, i]) for i in range(BIAS_DRAWS))
    k2 = np.array([one(values, BIAS_LENGTH, 0)["k2"].estimate for values in drawn])
    error = k2.std(ddof=1) / np.sqrt(BIAS_DRAWS)
    return {
        "k2": f"{truth:.4f}",
        "mean": f"{k2.mean():.5f}",
        "stderr": f"{error:.5f}",
        "bias_percent": f"{100 * (k2.mean() / truth - 1):.2f}",
        "bias_in_stderr": f"{(k2.mean() - truth) / error:.2f}",
    }


def main() -> None:
    names = ("kernel", "sequences", "tokens", "d")
    keys: list[Row] = [dict(zip(names, map(str, case), strict=True)) for case in CASES]
    complete("coverage", keys, compute)
    complete("measure_bias", [dict(zip(names, map(str, case), strict=True)) for case in BIASED], bias)


if __name__ == "__main__":
    main()
