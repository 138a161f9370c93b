"""The process in which points are computed, and what is said between it and its coordinator.

Every executor, a serial run included, computes in such processes, each with one numerical thread, so that
the last bit of a result does not depend on the executor, on its size or on the number of cores.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import queue
import sys
import threading
import time
import traceback
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from ..setting import Setting
from ._points import Outcome, Point

THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM", "BLIS")
XLA_FLAGS = "--xla_cpu_multi_thread_eigen=false"


class Hello(NamedTuple):
    """First message to a worker: what it needs to find what the coordinator finds."""

    path: list[str]
    folder: str
    imports: list[str]


class Task(NamedTuple):
    """A point and the folder for its checkpoints."""

    point: Point
    checkpoints: str


def environment() -> dict[str, str]:
    """Environment of a worker: one numerical thread, and the CPU unless JAX_PLATFORMS says otherwise."""
    one = {f"{name}_NUM_THREADS": "1" for name in THREADS}
    # NPROC is where XLA reads the size of its thread pools; the flag alone leaves some of them.
    one |= {"NPROC": "1", "PJRT_NPROC": "1", "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {XLA_FLAGS}".strip()}
    return {"JAX_PLATFORMS": "cpu", **os.environ, **one}


def compute(task: Task) -> Outcome:
    """Run a point's estimator; whatever it raises is recorded, not raised."""
    from ._estimator import estimator

    point, start = task.point, time.perf_counter()
    try:
        made = estimator(point.estimator).run(
            Setting(**point.setting),
            seed=point.seed or 0,
            replicate=point.replicate or 0,
            folder=Path(task.checkpoints),
        )
        values = {str(name): v if v is None or isinstance(v, str) else float(v) for name, v in made.items()}
        if wrong := [name for name, value in values.items() if isinstance(value, float) and math.isnan(value)]:
            raise ArithmeticError(f"the estimator returned NaN for {', '.join(wrong)}")
    except Exception as error:
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        return Outcome(point.key, None, text, traceback.format_exc(), time.perf_counter() - start, host())
    return Outcome(point.key, values, seconds=time.perf_counter() - start, host=host())


@cache
def host() -> str:
    """Kind of host and versions of the packages that make the numbers, as JSON."""
    record: dict[str, Any] = {"python": platform.python_version(), "system": platform.system()}
    for package in ("corricl", "numpy", "scipy", "jax", "jaxlib"):
        try:
            record[package] = version(package)
        except PackageNotFoundError:
            record[package] = None
    return json.dumps({**record, "machine": platform.machine(), "processor": _processor()}, sort_keys=True)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _read(connection: Connection, tasks: queue.SimpleQueue[Task]) -> None:
    """Move tasks into the queue; end the process at once when the coordinator is gone, even amid a point."""
    while True:
        try:
            tasks.put(connection.recv())
        except (EOFError, OSError):
            os._exit(0)


def main(descriptor: int) -> None:
    """Answer each task with its outcome, in order, until the coordinator closes the connection."""
    os.dup2(2, 1)  # what an estimator prints is not the command's output
    connection = Connection(descriptor)
    hello: Hello = connection.recv()
    if os.path.isdir(hello.folder):
        os.chdir(hello.folder)
    sys.path.extend(entry for entry in hello.path if entry not in sys.path)
    from ..plugins import import_module

    for module in hello.imports:
        import_module(module)
    tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(connection, tasks), daemon=True).start()
    with contextlib.suppress(BrokenPipeError):  # the coordinator is gone
        connection.send("ready")
        while True:
            connection.send(compute(tasks.get()))
