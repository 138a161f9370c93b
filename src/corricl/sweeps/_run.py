"""Run a sweep: everything that is not in the store yet, somewhere, with what happens on the way."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CorriclError
from ..setting import Setting
from ._executors import Executor, executor, usable_cores
from ._plan import Plan
from ._points import Point
from ._progress import Display
from ._setting import sizes
from ._spec import Spec
from ._store import Store
from ._worker import Hello, Task

if TYPE_CHECKING:
    from types import FrameType

PAUSE = 0.2
"""Longest wait, in seconds, between a finished point and its place in the store."""


class Interrupted(CorriclError):
    """The sweep was interrupted; the finished points are in the store and the message says how to resume."""

    code = "interrupted"
    exit_code = 130


@dataclass(frozen=True)
class Report:
    """How a sweep ended.

    Attributes:
        sweep: its name.
        store: path of the store.
        points: number of points of the sweep.
        finished: of these, how many are in the store.
        computed: of these, how many were computed in this run.
        failed: how many raised an error in this run.
        unsettled: cells above the target standard error although they have all the replicates allowed.
        seconds: that this run took.
        errors: the different errors, most frequent first, at most ten.
    """

    sweep: str
    store: str
    points: int
    finished: int
    computed: int
    failed: int
    unsettled: int
    seconds: float
    errors: tuple[str, ...] = ()

    def sentence(self) -> str:
        """The report in words."""
        target = f"; {self.unsettled} cells did not reach the target standard error" if self.unsettled else ""
        failed = f", {self.failed} failed" if self.failed else ""
        return (
            f"{self.sweep}: {self.finished} of {self.points} points in {self.store}{failed}; "
            f"{self.computed} computed in {self.seconds:.1f} s{target}"
        )


@dataclass(frozen=True)
class DryRun:
    """What a sweep would do.

    Attributes:
        cells: entries of its table.
        points: points known to be needed; with a target standard error, for the first look at it.
        most: points at most.
        finished: of `points`, how many are in the store already.
        seconds: estimate for the rest, from one point of each estimator; None if all is finished.
        workers: that the estimate is for.
    """

    cells: int
    points: int
    most: int
    finished: int
    seconds: float | None
    workers: int

    def sentence(self) -> str:
        """The estimate in words."""
        points = f"{self.points} points" if self.most == self.points else f"{self.points} to {self.most} points"
        if self.seconds is None:
            return f"{self.cells} cells, {points}, all finished"
        time = f"about {self.seconds:.3g} s on {self.workers} worker{'s' * (self.workers > 1)}"
        return f"{self.cells} cells, {points}, {self.finished} finished; {self.points - self.finished} take {time}"


def run(
    spec: Spec,
    store: str | Path,
    *,
    executor: str | Executor = "local",
    workers: int | None = None,
    progress: bool = True,
) -> Report:
    """Compute the points of a sweep that its store lacks.

    A point that raises is recorded with its error, does not stop the others, and is tried again by the next run.

    Args:
        spec: the sweep.
        store: the SQLite file; it is made if it does not exist.
        executor: `local`, `dask`, `dask:ADDRESS`, `slurm`, or an object with the methods of `Executor`.
        workers: processes (local, dask) or jobs (slurm); by default one for each core.
        progress: show it on stderr.

    Raises:
        Interrupted: on Ctrl-C or SIGTERM, after the finished points have been written.
    """
    start = time.monotonic()
    with Store(store, write=True) as kept:
        plan = Plan(spec, kept.results())
        kept.remember(spec, plan.entries)
        before = plan.finished
        if plan.open:
            with _opened(executor, spec, workers) as place, Display(plan, progress) as display, _stop() as stop:
                _work(plan, kept, place, display, stop)
            if stop.is_set():
                raise Interrupted(
                    f"interrupted: {plan.finished} of {plan.total} points are kept in {store}; "
                    "run the same sweep again to resume"
                )
        errors = [error for error, _ in Counter(plan.failed.values()).most_common(10)]
        return Report(
            spec.name, str(store), plan.total, plan.finished, plan.finished - before, len(plan.failed),
            plan.unsettled(), time.monotonic() - start, tuple(errors),
        )  # fmt: skip


def _work(plan: Plan, store: Store, place: Executor, display: Display, stop: threading.Event) -> None:
    def tasks(points: list[Point]) -> list[Task]:
        return [Task(point, str(store.checkpoints(point.key))) for point in points]

    place.submit(tasks(list(plan.open.values())))
    while plan.open:
        stopped = stop.is_set()  # read before the last collection, so that nothing finished is dropped
        counted, more = plan.record(place.collect(0 if stopped else PAUSE))
        if counted:
            store.commit(counted)
            for point, outcome in counted:
                if outcome.values is not None:
                    store.discard_checkpoints(point.key)
        if stopped:
            return
        place.submit(tasks(more))
        display.update(next((outcome.error for _, outcome in reversed(counted) if outcome.error), ""))


def dry_run(spec: Spec, store: str | Path | None = None, workers: int | None = None) -> DryRun:
    """Count the points of a sweep and estimate its time from one point of each estimator; nothing is written."""
    known = {}
    if store is not None and Path(store).is_file():
        with Store(store) as kept:
            known = kept.results()
    plan = Plan(spec, known)
    workers = workers or usable_cores()
    most = sum(spec.most_replicates if entry.random else 1 for entry in plan.entries)
    seconds = _estimate(list(plan.open.values()), spec, workers) if plan.open else None
    return DryRun(len(plan.entries), plan.total, max(most, plan.total), plan.finished, seconds, workers)


def _estimate(points: list[Point], spec: Spec, workers: int) -> float:
    """Seconds for the points: of each estimator one of middling size is run, twice to tell compilation apart."""
    total = 0.0
    with _opened("local", spec, 1) as place:
        for name in dict.fromkeys(point.estimator for point in points):
            mine = sorted((p for p in points if p.estimator == name), key=_size)
            point = mine[len(mine) // 2]
            first, second = (_timed(place, point) for _ in range(2))
            groups = len({p.group for p in mine})
            total += groups * max(first - second, 0.0) + len(mine) * second
    return total / min(workers, len(points))


def _timed(place: Executor, point: Point) -> float:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        place.submit([Task(point, str(Path(folder) / point.key))])
        while not (outcomes := place.collect(PAUSE)):
            pass
    if outcomes[0].values is None:
        raise CorriclError(f"the point that was to be timed failed: {outcomes[0].error}")
    return outcomes[0].seconds


def _size(point: Point) -> float:
    known = sizes(Setting(**point.setting))
    return float(known.get("sequences") or 1) * float(known.get("length") or 1)


@contextlib.contextmanager
def _opened(place: str | Executor, spec: Spec, workers: int | None) -> Iterator[Executor]:
    hello = Hello([os.path.abspath(entry) for entry in sys.path], os.getcwd(), spec.imports)
    opened = executor(place, hello, workers) if isinstance(place, str) else place
    try:
        yield opened
    finally:
        opened.close()


@contextlib.contextmanager
def _stop() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set in place of what they do; a second Ctrl-C is not waited for."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
