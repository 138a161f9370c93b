"""Loss curves: rows, files, and the trackers that some people watch."""

from __future__ import annotations

import csv
import importlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError


class Row(NamedTuple):
    """A validation: steps so far, mean training loss since the last one, and error on the validation prompts."""

    step: int
    train: float | None
    validation: float


Watch = Callable[[Row], None]
"""What is called with each row as it comes."""

TRACKERS = ("tensorboard", "wandb")


def write_curve(rows: Sequence[Row], path: Path) -> None:
    """Rows as CSV, or as a list of JSON objects where the name ends in .json.

    Raises:
        InputError: another ending, or a file that cannot be written.
    """
    if path.suffix not in (".csv", ".json"):
        raise InputError(f"a loss curve is written to .csv or .json; got '{path}'")
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            if path.suffix == ".json":
                json.dump([row._asdict() for row in rows], file, allow_nan=False)
            else:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerows([Row._fields, *rows])
    except OSError as error:
        raise InputError(f"cannot write '{path}': {error.strerror}") from None


def tracker(name: str, folder: Path, config: dict[str, Any]) -> Watch:
    """A writer for TensorBoard (event files in the folder) or Weights & Biases (a run of project corricl).

    Args:
        name: tensorboard or wandb.
        folder: where files go.
        config: plain values that describe the run.

    Raises:
        InputError: an unknown name, or a package that is not installed.
    """
    if name not in TRACKERS:
        raise InputError(f"unknown tracker '{name}'; allowed: {', '.join(TRACKERS)}")
    try:
        module = importlib.import_module("tensorboard.summary" if name == "tensorboard" else "wandb")
    except ImportError:
        raise InputError(f"tracker '{name}' needs the extra 'tracking': pip install 'corricl[tracking]'") from None
    folder.mkdir(parents=True, exist_ok=True)
    if name == "wandb":
        run = module.init(project="corricl", dir=str(folder), config=config)
        return lambda row: run.log(_losses(row), step=row.step)
    writer = module.Writer(str(folder))

    def watch(row: Row) -> None:
        for loss, value in _losses(row).items():
            writer.add_scalar(loss, value, row.step)
        writer.flush()

    return watch


def _losses(row: Row) -> dict[str, float]:
    return {"validation": row.validation, **({} if row.train is None else {"train": row.train})}
