"""What a figure is, and the files it leaves."""

from __future__ import annotations

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from .. import __version__
from ..errors import InputError
from ._style import STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Row = dict[str, Any]
"""One plotted number with everything that identifies it; a column of the CSV for each key."""

Spec = dict[str, Any]
"""Everything that determines the rows, as JSON types."""


class Figure(ABC):
    """A spec and a plot. A subclass names itself and defines the four methods."""

    name: ClassVar[str]
    title: ClassVar[str]

    @abstractmethod
    def spec(self, quick: bool) -> Spec:
        """The settings, at full size or quick (under two minutes on two cores)."""

    @abstractmethod
    def steps(self, spec: Spec) -> int:
        """How often `rows` calls `advance`."""

    @abstractmethod
    def rows(self, spec: Spec, advance: Callable[[str], None]) -> list[Row]:
        """Compute the plotted numbers; `advance` takes a note for the progress bar."""

    @abstractmethod
    def plot(self, rows: list[Row], canvas: Canvas) -> None:
        """Draw the rows on an empty canvas."""

    @abstractmethod
    def table(self, rows: list[Row]) -> str:
        """The main numbers as lines of text."""


@dataclass(frozen=True)
class Made:
    """A figure's files (PNG, PDF, CSV, JSON spec) and rows."""

    files: tuple[Path, ...]
    rows: list[Row]


def make(figure: Figure, spec: Spec, out: Path, advance: Callable[[str], None] = lambda note: None) -> Made:
    """Compute a figure and write NAME.png, NAME.pdf, NAME.csv and NAME.json into the folder `out`.

    Raises:
        InputError: when the folder cannot be written.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    rows = figure.rows(spec, advance)
    paths = tuple(out / f"{figure.name}.{suffix}" for suffix in ("png", "pdf", "csv", "json"))
    try:
        out.mkdir(parents=True, exist_ok=True)
        with matplotlib.rc_context(STYLE):  # type: ignore[arg-type]
            canvas = Canvas(layout="constrained")
            FigureCanvasAgg(canvas)
            figure.plot(rows, canvas)
            canvas.savefig(paths[0])
            canvas.savefig(paths[1], metadata={"CreationDate": None})
        write_csv(rows, paths[2])
        stored = {"figure": figure.name, "corricl": __version__, "spec": spec}
        paths[3].write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write to '{out}': {error.strerror}") from None
    return Made(paths, rows)


def write_csv(rows: Sequence[Row], path: Path) -> None:
    """Rows as CSV, floats in full, missing values empty."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)


def read_spec(path: Path, name: str) -> Spec:
    """The spec stored beside a picture.

    Raises:
        InputError: an unreadable file, or the spec of another figure.
    """
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        figure, spec = stored["figure"], stored["spec"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"'{path}' is not a stored figure spec") from None
    if figure != name:
        raise InputError(f"'{path}' is the spec of figure '{figure}', not '{name}'")
    return spec


def published(name: str) -> list[dict[str, str]]:
    """Rows of a published table that ships with the package (see figures/published/README.md)."""
    with (files("corricl.figures") / "published" / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
