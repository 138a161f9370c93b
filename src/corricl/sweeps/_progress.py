"""What a person sees while a sweep runs, on stderr."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

if TYPE_CHECKING:
    from types import TracebackType

    from ._plan import Plan

EVERY = 30.0
"""Seconds between two lines where stderr is no terminal."""


class _Pace(ProgressColumn):
    """Rate and time left, over the points of this run alone."""

    def render(self, task: Task) -> Text:
        return Text(pace(task.fields["computed"], task.fields["seconds"], task.remaining or 0), style="cyan")


def pace(computed: int, seconds: float, remaining: float) -> str:
    """Such as `12.5/s, 1:20 left`."""
    if not computed or seconds <= 0:
        return "starting"
    rate = computed / seconds
    left = round(remaining / rate)
    hours, minutes = divmod(left // 60, 60)
    clock = f"{hours}:{minutes:02d}:{left % 60:02d}" if hours else f"{minutes}:{left % 60:02d}"
    return f"{rate:.3g}/s, {clock} left"


class Display:
    """Points done, rate, time left, failures and the latest error.

    Args:
        plan: what is shown.
        shown: False shows nothing.
    """

    def __init__(self, plan: Plan, shown: bool = True) -> None:
        self._plan, self._start, self._first = plan, time.monotonic(), plan.finished + len(plan.failed)
        self._console = Console(stderr=True, quiet=not shown)
        self._live = self._console.is_terminal and shown
        self._printed, self._error = self._start, ""
        line = Column(no_wrap=True, overflow="ellipsis")
        columns = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn(), _Pace(line))
        state = TextColumn("{task.fields[state]}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1))
        self._bar = Progress(*columns, state, console=self._console, disable=not self._live, expand=True)
        self._task = self._bar.add_task(escape(plan.spec.name), total=plan.total, computed=0, seconds=0.0, state="")

    def __enter__(self) -> Display:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.update()
        self._bar.stop()

    def update(self, error: str = "") -> None:
        """Show where the plan stands, and the latest error."""
        self._error = error or self._error
        plan, seconds = self._plan, time.monotonic() - self._start
        done, failed = plan.finished + len(plan.failed), len(plan.failed)
        state = f"[red]{failed} failed[/]: {escape(self._error)}" if failed else ""
        fields = {"computed": done - self._first, "seconds": seconds, "state": state}
        self._bar.update(self._task, total=plan.total, completed=done, **fields)
        if not self._live and time.monotonic() - self._printed > EVERY:
            self._printed = time.monotonic()
            line = f"{plan.spec.name}: {done}/{plan.total}, {pace(done - self._first, seconds, len(plan.open))}"
            self._console.print(escape(line) + (f", {state}" if state else ""), soft_wrap=True)
