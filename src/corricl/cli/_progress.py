"""Progress of long work on stderr: rate, time left and the current value."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(what: str, total: int | None, quiet: bool) -> Iterator[Callable[..., None]]:
    """A bar that the yielded function(note, by=1) advances; silent when quiet or not on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda note, by=1: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, note="")
        yield lambda note, by=1: bar.update(task, advance=by, note=note)
