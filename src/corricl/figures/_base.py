"""What a figure is, and the files it leaves."""

from __future__ import annotations

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from .. import __version__
from ..errors import ConvergenceError, InputError
from ._style import STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from ..sweeps import Spec

Row = dict[str, Any]
"""One plotted number (`mean`, `stderr`) with everything that identifies it."""


class Figure(ABC):
    """Sweeps and a plot. A subclass names itself and says what is swept and how it is drawn."""

    name: ClassVar[str]
    title: ClassVar[str]

    @abstractmethod
    def sweeps(self, quick: bool) -> list[Spec]:
        """What is computed, at full size or quick (two minutes on two cores, ten where models are trained)."""

    def extra(self, specs: list[Spec], rows: list[Row]) -> list[Row]:
        """Numbers that are drawn but not swept: published points, closed forms on a grid, fits to the swept rows."""
        return []

    @abstractmethod
    def plot(self, rows: list[Row], canvas: Canvas) -> None:
        """Draw the rows on an empty canvas."""

    def table(self, rows: list[Row]) -> str:
        """The main numbers as lines of text; by default the simulated ones."""
        return lines([row for row in rows if row["estimator"] == "simulate" and row["quantity"] == "icl"])


@dataclass(frozen=True)
class Made:
    """A figure's files (PNG, PDF, CSV, JSON spec) and rows."""

    files: tuple[Path, ...]
    rows: list[Row]


def make(figure: Figure, specs: list[Spec], out: Path, *, workers: int | None = None, progress: bool = True) -> Made:
    """Compute a figure and write NAME.png, NAME.pdf, NAME.csv and NAME.json into the folder `out`.

    Points are kept in out/NAME.sqlite, so that an interrupted figure goes on where it stopped.

    Args:
        figure: which.
        specs: its sweeps, from `figure.sweeps` or `read_spec`.
        out: folder, made if needed.
        workers: processes; default one for each core.
        progress: show it on stderr.

    Raises:
        InputError: when the folder cannot be written.
        ConvergenceError: when a point of the figure failed.
    """
    paths = tuple(out / f"{figure.name}.{suffix}" for suffix in ("png", "pdf", "csv", "json"))
    try:
        out.mkdir(parents=True, exist_ok=True)
        rows = _swept(specs, out / f"{figure.name}.sqlite", workers, progress)
        rows += figure.extra(specs, rows)
        _draw(figure, rows, paths[0], paths[1])
        write_csv(rows, paths[2])
        texts = [json.loads(spec.to_json()) for spec in specs]
        stored = {"figure": figure.name, "corricl": __version__, "sweeps": texts}
        paths[3].write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write to '{out}': {error.strerror}") from None
    return Made(paths, rows)


def _swept(specs: list[Spec], store: Path, workers: int | None, progress: bool) -> list[Row]:
    from .. import sweeps

    rows: list[Row] = []
    for spec in specs:
        report = sweeps.run(spec, store, workers=workers, progress=progress)
        if report.failed:
            raise ConvergenceError(f"{report.failed} points of sweep '{spec.name}' failed: {report.errors[0]}")
        rows += [{"sweep": spec.name, **row} for row in sweeps.Results(store).rows(spec.name)]
    return rows


def _draw(figure: Figure, rows: list[Row], png: Path, pdf: Path) -> None:
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with matplotlib.rc_context(STYLE):  # type: ignore[arg-type]
        canvas = Canvas(layout="constrained")
        FigureCanvasAgg(canvas)
        figure.plot(rows, canvas)
        canvas.savefig(png)
        canvas.savefig(pdf, metadata={"CreationDate": None})


def write_csv(rows: Sequence[Row], path: Path) -> None:
    """Rows as CSV, floats in full, missing values empty."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_spec(path: Path, name: str) -> list[Spec]:
    """The sweeps stored beside a picture.

    Raises:
        InputError: an unreadable file, or the spec of another figure.
    """
    from ..sweeps import Spec

    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        figure, texts = stored["figure"], [json.dumps(sweep) for sweep in stored["sweeps"]]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"'{path}' is not a stored figure spec") from None
    if figure != name:
        raise InputError(f"'{path}' is the spec of figure '{figure}', not '{name}'")
    try:
        specs = [Spec.from_json(text) for text in texts]
    except TypeError:
        raise InputError(f"'{path}' is not a stored figure spec") from None
    if not specs:
        raise InputError(f"'{path}' holds no sweep")
    return specs


def published(name: str) -> list[dict[str, str]]:
    """Rows of a published table that ships with the package (see figures/published/README.md)."""
    with (files("corricl.figures") / "published" / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def lines(rows: list[Row]) -> str:
    """Rows as aligned text: what identifies each, then mean ± standard error."""
    hidden = ("sweep", "mean", "stderr", "replicates", "quantity")
    names = list(dict.fromkeys(key for row in rows for key in row if key not in hidden))
    cells = [[str(row.get(name, "")) for name in names] for row in rows]
    widths = [max(len(text) for text in column) for column in zip(names, *cells, strict=True)]

    def line(texts: list[str], value: str) -> str:
        return "  ".join(text.ljust(width) for text, width in zip(texts, widths, strict=True)) + "  " + value

    shown = [line(texts, with_error(row)) for texts, row in zip(cells, rows, strict=True)]
    return "\n".join([line(names, "icl"), *shown])


def with_error(row: Row) -> str:
    """mean ± standard error, where there is one."""
    error = row.get("stderr")
    return f"{row['mean']:.4f}" + (f" ± {error:.4f}" if error else "")
