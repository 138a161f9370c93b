"""Where points run: one small interface, and local processes behind it. The Dask ones are in `_cluster.py`."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Protocol

from ..errors import CorriclError, InputError
from ._points import Outcome
from ._worker import Hello, Task, environment

ATTEMPTS = 3
"""A point that was running when this many workers died is recorded as failed."""
AHEAD = 0.25
"""Seconds of work that a local worker holds beyond the point it computes, so that it never waits."""


class Executor(Protocol):
    """Computes tasks in any order, somewhere, and says what became of them."""

    workers: int

    def submit(self, tasks: Sequence[Task]) -> None:
        """Take on more tasks."""
        ...

    def collect(self, timeout: float) -> list[Outcome]:
        """Outcomes since the last call; waits up to `timeout` seconds for the first. Each task has exactly one."""
        ...

    def close(self) -> None:
        """Drop what is not finished."""
        ...


class Backlog:
    """Tasks not yet handed out, by group of shared compiled code, and what is known of their cost."""

    def __init__(self) -> None:
        self._groups: dict[Hashable, deque[Task]] = {}
        self._deaths: Counter[str] = Counter()
        self.seconds: float | None = None

    def put(self, tasks: Iterable[Task], first: bool = False) -> None:
        """Add tasks, in front of all others of their group if `first`."""
        for task in reversed(list(tasks)) if first else tasks:
            group = self._groups.setdefault(task.point.group, deque())
            group.appendleft(task) if first else group.append(task)

    def take(self, last: Hashable = None, others: Iterable[Hashable] = ()) -> Task | None:
        """The next task for a worker: of its last group, else of one where no other worker is, else any."""
        if not self._groups:
            return None
        free = (group for group in self._groups if group not in others)
        group = last if last in self._groups else next(free, next(iter(self._groups)))
        task = self._groups[group].popleft()
        if not self._groups[group]:
            del self._groups[group]
        return task

    def learn(self, outcome: Outcome) -> None:
        """Update the running mean of a point's cost."""
        self.seconds = outcome.seconds if self.seconds is None else 0.8 * self.seconds + 0.2 * outcome.seconds

    def within(self, seconds: float, most: int) -> int:
        """How many points fit in `seconds`; 0 before any has been timed."""
        return 0 if self.seconds is None else min(most, int(seconds / max(self.seconds, 1e-9)))

    def lost(self, tasks: Sequence[Task], why: str) -> list[Outcome]:
        """Put the tasks of a dead worker back, the first of which was running; give that up if it kills workers."""
        if not tasks:
            return []
        running, *rest = tasks
        self.put(rest, first=True)
        self._deaths[running.point.key] += 1
        if self._deaths[running.point.key] >= ATTEMPTS:
            return [Outcome(running.point.key, None, f"WorkerDied: {ATTEMPTS} workers died at this point, {why}")]
        self.put([running], first=True)
        return []


class Child:
    """A worker process and the tasks that it holds, in order; the first is being computed."""

    def __init__(self, hello: Hello) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            code = f"from corricl.sweeps._worker import main; main({theirs.fileno()})"
            command = [sys.executable, "-c", code]
            with _signals_blocked():
                self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment())
        self.connection = Connection(ours.detach())
        self.held: deque[Task] = deque()
        self.group: Hashable = None
        self.started = False
        self.connection.send(hello)

    def send(self, task: Task) -> None:
        """Hand over one more task."""
        self.held.append(task)
        self.group = task.point.group
        with contextlib.suppress(OSError):  # it died: `receive` will say so
            self.connection.send(task)

    def receive(self) -> Outcome | None:
        """The next outcome, or None for the worker's first sign of life.

        Raises:
            EOFError: if the worker has died.
        """
        try:
            message = self.connection.recv()
        except OSError:
            raise EOFError from None
        if isinstance(message, Outcome):
            self.held.popleft()
            return message
        self.started = True
        return None

    def end(self) -> str:
        """End the process, which does so by itself when its connection closes; says how it ended."""
        self.connection.close()
        try:
            status = self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        return f"by signal {-status}" if status < 0 else f"with exit status {status}"


@contextlib.contextmanager
def _signals_blocked() -> Iterator[None]:
    """Processes started here never see Ctrl-C or SIGTERM, which may be sent to all: the coordinator ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Local:
    """Worker processes on this machine.

    Args:
        hello: what the workers need to find.
        workers: how many; by default one for each core that this process may use.
    """

    def __init__(self, hello: Hello, workers: int | None = None) -> None:
        self.workers = workers or usable_cores()
        self._hello = hello
        self._backlog = Backlog()
        self._children: list[Child] = []

    def submit(self, tasks: Sequence[Task]) -> None:
        """Queue the tasks; processes start with the first of them."""
        self._backlog.put(tasks)
        self._feed()

    def collect(self, timeout: float) -> list[Outcome]:
        """Outcomes of the workers; a worker that died is replaced and its points are queued again."""
        outcomes: list[Outcome] = []
        heard = wait([child.connection for child in self._children], timeout)
        for child in [child for child in self._children if child.connection in heard]:
            try:
                while child.connection.poll():
                    if (outcome := child.receive()) is not None:
                        self._backlog.learn(outcome)
                        outcomes.append(outcome)
            except EOFError:
                outcomes += self._bury(child)
        self._feed()
        return outcomes

    def _bury(self, child: Child) -> list[Outcome]:
        self._children.remove(child)
        why = f"the last {child.end()}"
        if not child.started:
            raise CorriclError(f"a worker process could not start; it ended {why.removeprefix('the last ')}")
        return self._backlog.lost(child.held, why)

    def _feed(self) -> None:
        depth = 1 + self._backlog.within(AHEAD, most=31)
        for index in range(self.workers):
            if index == len(self._children):
                if (task := self._backlog.take(None, [child.group for child in self._children])) is None:
                    return
                self._children.append(Child(self._hello))
                self._children[index].send(task)
            child = self._children[index]
            others = [other.group for other in self._children if other is not child]
            while len(child.held) < depth and (task := self._backlog.take(child.group, others)) is not None:
                child.send(task)

    def close(self) -> None:
        """End the workers, whatever they are doing."""
        for child in self._children:
            child.connection.close()
        for child in self._children:
            child.end()
        self._children = []


def usable_cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


def executor(name: str, hello: Hello, workers: int | None = None) -> Executor:
    """The executor of a string: `local`, `dask`, `dask:ADDRESS` or `slurm`."""
    kind, _, address = name.partition(":")
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1; got {workers}")
    if name == "local":
        return Local(hello, workers)
    if name in ("dask", "slurm") or (kind == "dask" and address):
        from ._cluster import Dask, local_cluster, slurm_cluster

        if address:
            return Dask(hello, address)
        count = workers or usable_cores()
        return Dask(hello, local_cluster(count) if name == "dask" else slurm_cluster(count))
    raise InputError(f"unknown executor '{name}'; allowed: local, dask, dask:ADDRESS or slurm")
