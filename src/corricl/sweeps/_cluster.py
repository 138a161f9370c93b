"""Points on a Dask cluster: one that runs, one started here, or one of Slurm jobs."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import CorriclError, InputError
from ._executors import Backlog, Child
from ._points import Outcome
from ._worker import Hello, Task

if TYPE_CHECKING:
    from dask_jobqueue.slurm import SLURMCluster
    from distributed import Future
    from distributed.deploy.cluster import Cluster

BATCH = 0.5
"""Seconds of work in one Dask task, which costs the scheduler about a millisecond."""
_MISSING = "the executors dask and slurm need the extra 'cluster': pip install 'corricl[cluster]'"


class Dask:
    """Points on the workers of a Dask cluster, which may come and go.

    Each thread of a Dask worker keeps one worker process of corricl, the same as on a single machine, so
    that results do not depend on how the cluster was set up.

    Args:
        hello: what the workers need to find.
        cluster: a cluster, which is closed at the end, or the address of a scheduler, which is left alone.
    """

    def __init__(self, hello: Hello, cluster: Cluster | str) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise InputError(_MISSING) from None
        try:
            self._client = Client(cluster, set_as_default=False, timeout=60)
        except (OSError, ValueError) as error:
            raise InputError(f"no Dask scheduler answers at '{cluster}': {error}") from None
        self._cluster = None if isinstance(cluster, str) else cluster
        self._hello = hello
        self._backlog = Backlog()
        self._running: dict[Future, list[Task]] = {}
        self._done: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self._asked = 0.0
        self.workers = 1
        self._count_workers()

    def submit(self, tasks: Sequence[Task]) -> None:
        """Queue the tasks; the scheduler holds only as many as keep the workers busy."""
        self._backlog.put(tasks)
        self._feed()

    def collect(self, timeout: float) -> list[Outcome]:
        """Outcomes of finished Dask tasks; tasks of workers that died are queued again."""
        outcomes: list[Outcome] = []
        self._count_workers()
        try:
            future = self._done.get(timeout=timeout) if timeout else self._done.get_nowait()
            while True:
                outcomes += self._take(future)
                future = self._done.get_nowait()
        except queue.Empty:
            pass
        if self._client.status in ("closed", "closing"):
            raise CorriclError("the Dask scheduler is gone; run the same sweep again to resume")
        self._feed()
        return outcomes

    def _take(self, future: Future) -> list[Outcome]:
        tasks = self._running.pop(future)
        made: list[Outcome] = future.result() if future.status == "finished" else []
        for outcome in made:
            self._backlog.learn(outcome)
        why = (
            "the last in a Dask worker" if future.status == "finished" else f"the last with Dask saying {future.status}"
        )
        return made + self._backlog.lost(tasks[len(made) :], why)

    def _feed(self) -> None:
        while len(self._running) < 2 * self.workers and (task := self._backlog.take()) is not None:
            batch = [task]
            while len(batch) < self._backlog.within(BATCH, most=64):
                if (more := self._backlog.take(task.point.group)) is None:
                    break
                batch.append(more)
            future = self._client.submit(on_worker, self._hello, batch, pure=False)
            self._running[future] = batch
            future.add_done_callback(self._done.put)

    def _count_workers(self) -> None:
        if time.monotonic() - self._asked > 2:
            self._asked = time.monotonic()
            known: dict[str, Any] = self._client.scheduler_info(n_workers=-1)["workers"]
            self.workers = max(1, sum(worker["nthreads"] for worker in known.values()))

    def close(self) -> None:
        """Cancel what is not finished and close a cluster that was started here."""
        self._client.cancel(list(self._running))
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


_here = threading.local()


def on_worker(hello: Hello, tasks: list[Task]) -> list[Outcome]:
    """Compute tasks in this thread's worker process; the list is shorter if the process died on the way."""
    child: Child | None = getattr(_here, "child", None)
    if child is None or child.process.poll() is not None or getattr(_here, "hello", None) != hello:
        if child is not None:
            child.end()
        child, _here.hello = Child(hello), hello
        _here.child = child
    outcomes: list[Outcome] = []
    for task in tasks:
        child.send(task)
    try:
        while len(outcomes) < len(tasks):
            if (outcome := child.receive()) is not None:
                outcomes.append(outcome)
    except EOFError:
        child.end()
        _here.child = None
    return outcomes


def local_cluster(workers: int) -> Cluster:
    """A Dask cluster on this machine, of processes with one thread each."""
    try:
        from distributed import LocalCluster
    except ImportError:
        raise InputError(_MISSING) from None
    return LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None)  # type: ignore[arg-type]


def slurm_options(**options: Any) -> dict[str, Any]:
    """What each Slurm job is asked for: one core, unless Dask's configuration or `options` say more."""
    try:
        import dask_jobqueue  # fills in the configuration's defaults
        from dask.config import get as configuration
    except ImportError:
        raise InputError(_MISSING) from None
    del dask_jobqueue
    wanted = {"job_name": "corricl", "cores": 1, "processes": 1, "memory": "4 GiB"}
    configured = configuration("jobqueue.slurm", {})
    return {name: configured.get(name) or value for name, value in wanted.items()} | options


def slurm_cluster(workers: int, **options: Any) -> SLURMCluster:
    """Slurm jobs that join a Dask scheduler in this process.

    Partition, account, walltime, memory and the rest come from Dask's configuration (`jobqueue.slurm` in
    ~/.config/dask/jobqueue.yaml); `options` go before it. The file system must be shared by all nodes.
    """
    settings = slurm_options(**options)
    from dask_jobqueue.slurm import SLURMCluster

    cluster = SLURMCluster(**settings)
    cluster.scale(jobs=workers)
    return cluster
