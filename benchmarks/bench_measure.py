"""A file of float32 sequences measured from disk: seconds, memory, and the ratio to statsmodels' autocorrelation.

statsmodels.tsa.stattools.acf takes one series at a time, from memory; it is timed on a part of the same sequences and
its time scaled up. It gives r(t) alone: no correction, no interval, no k0, k1, k2. Size in GB: --gigabytes (default 1).
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
from statsmodels.tsa.stattools import acf

from corricl import measure

LENGTH, D = 128, 256
PART = 2000
"""Series of one channel that statsmodels is timed on."""


def write(path: Path, sequences: int) -> None:
    """White noise and an AR(1) mixed, shape (sequences, LENGTH, D), written piece by piece."""
    file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(sequences, LENGTH, D))
    draw = np.random.default_rng(0)
    for first in range(0, sequences, 256):
        piece = draw.standard_normal((min(256, sequences - first), LENGTH, D), dtype=np.float32)
        piece[:, 1:] += 0.5 * piece[:, :-1]
        file[first : first + len(piece)] = piece
    file.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gigabytes", type=float, default=1.0)
    gigabytes = parser.parse_args().gigabytes
    sequences = max(64, round(gigabytes * 1e9 / (4 * LENGTH * D)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sequences.npy"
        write(path, sequences)
        measure.measure(np.random.default_rng(0).standard_normal((64, LENGTH, 4)))  # imports and caches
        tracemalloc.start()
        start, used = time.perf_counter(), time.process_time()
        found = measure.measure(path)
        seconds, used = time.perf_counter() - start, time.process_time() - used
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        part = np.array(np.load(path, mmap_mode="r")[: -(-PART // D)], dtype=np.float64)
    series = part.transpose(0, 2, 1).reshape(-1, LENGTH)[:PART]
    start = time.process_time()
    for one in series:
        acf(one, nlags=LENGTH - 1, fft=True)
    theirs = (time.process_time() - start) * sequences * D / PART
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    size = sequences * LENGTH * D * 4 / 1e9
    print(f"{size:.2f} GB float32, {sequences} x {LENGTH} x {D}: {seconds:.1f} s, {used:.1f} s of processor time")
    print(f"k2 = {found.k2.estimate:.4f} ({found.k2.low:.4f} to {found.k2.high:.4f}), kernel {found.kernel}")
    print(f"peak of allocated arrays {peak / 2**20:.0f} MiB; resident, with the mapped file, {resident:.2f} GiB")
    print(f"statsmodels acf of every series: {theirs:.0f} s of processor time, ratio {theirs / used:.1f}")


if __name__ == "__main__":
    main()
