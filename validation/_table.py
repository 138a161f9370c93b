"""A small stored table: rows are written as they come, and what is there is not computed again."""

from __future__ import annotations

import csv
import multiprocessing
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

RESULTS = Path(__file__).parent / "results"

Row = dict[str, str]


def read(name: str) -> list[Row]:
    """Rows of results/NAME.csv, none if it does not exist."""
    path = RESULTS / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def complete(name: str, keys: Iterable[Row], compute: Callable[[Row], Row], workers: int = 0) -> list[Row]:
    """Rows of results/NAME.csv for all keys, computing and appending the missing ones.

    Args:
        name: table name.
        keys: what identifies each row, as text.
        compute: the row's other columns, as text; a module-level function.
        workers: processes of one numerical thread each; 0 computes in this process.
    """
    rows = read(name)
    missing = [key for key in keys if not any(all(row[k] == v for k, v in key.items()) for row in rows)]
    if not workers:
        return rows + [_append(name, {**key, **compute(key)}) for key in missing]
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(compute, key): key for key in missing}
        return rows + [_append(name, {**running[done], **done.result()}) for done in as_completed(running)]


def _append(name: str, row: Row) -> Row:
    path = RESULTS / f"{name}.csv"
    new = not path.exists()
    RESULTS.mkdir(exist_ok=True)
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)
    print(row, flush=True)
    return row
