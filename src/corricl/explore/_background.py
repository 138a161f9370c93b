"""Work beside the page: one thread that does the latest job, and hands its results over in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from time import monotonic
from typing import Any

REST = 0.1
"""Seconds that a page has for itself between two batches."""

Post = Callable[[Callable[[], None]], Any]
"""Runs a function on the page's own thread, soon; callable from any thread."""


class Background:
    """Runs one job at a time; a new job replaces the one before, which ends at its next item.

    A job is an iterable that computes as it is read. Its items reach the page in batches, with a rest between
    them, so that a fast job cannot flood a slow page.

    Args:
        post: how to reach the page's own thread.
    """

    def __init__(self, post: Post) -> None:
        self._post = post
        self._threads = ThreadPoolExecutor(1)
        self._job: _Job | None = None

    def start(
        self, items: Iterable[Any], show: Callable[[list[Any]], None], end: Callable[[Exception | None], None]
    ) -> None:
        """Replace the running job.

        Args:
            items: what is computed.
            show: takes each batch of items, on the page's thread.
            end: called last, with what went wrong or None. Neither is called once the job is cancelled.
        """
        self.cancel()
        self._job = _Job(items, show, end, self._post)
        self._threads.submit(self._job.run)

    def cancel(self) -> None:
        """Stop the running job at its next item; nothing of it is shown any more."""
        if self._job is not None:
            self._job.cancelled.set()

    @property
    def running(self) -> bool:
        """True from `start` until the job has ended or is cancelled."""
        return self._job is not None and not self._job.ended and not self._job.cancelled.is_set()

    def close(self) -> None:
        """Cancel, and take no more jobs."""
        self.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Job:
    def __init__(self, items: Iterable[Any], show: Any, end: Any, post: Post) -> None:
        self._items, self._show, self._end, self._post = items, show, end, post
        self.cancelled = Event()
        self.ended = False
        self._lock = Lock()
        self._waiting: list[Any] = []
        self._posted, self._rest = False, 0.0

    def run(self) -> None:
        """On the thread of the background."""
        items, failure = iter(self._items), None
        try:
            while not self.cancelled.is_set():
                self._hand_over(next(items))
        except StopIteration:
            pass
        except Exception as error:  # whatever happens on this thread is shown on the page
            failure = error
        if not self.cancelled.is_set():
            self._post(lambda: self._finish(failure))

    def _hand_over(self, item: Any) -> None:
        with self._lock:
            self._waiting.append(item)
            due = not self._posted and monotonic() >= self._rest
            self._posted = self._posted or due
        if due and not self.cancelled.is_set():
            self._post(self._show_waiting)

    def _show_waiting(self) -> None:
        with self._lock:
            batch, self._waiting, self._posted = self._waiting, [], False
            self._rest = monotonic() + REST
        if batch and not self.cancelled.is_set():
            self._show(batch)

    def _finish(self, failure: Exception | None) -> None:
        self._show_waiting()
        if not self.cancelled.is_set():
            self.ended = True
            self._end(failure)
