"""A small stored table: rows are written as they come, and what is there is not computed again."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def complete(
    name: str, keys: Iterable[dict[str, str]], compute: Callable[[dict[str, str]], dict[str, str]]
) -> list[dict[str, str]]:
    """Rows of results/NAME.csv for all keys, computing and appending the missing ones.

    Args:
        name: table name.
        keys: what identifies each row, as text.
        compute: the row's other columns, as text.
    """
    path = RESULTS / f"{name}.csv"
    rows = list(csv.DictReader(path.open(encoding="utf-8"))) if path.exists() else []
    for key in keys:
        if any(all(row[column] == value for column, value in key.items()) for row in rows):
            continue
        row = {**key, **compute(key)}
        new = not path.exists()
        with path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(row), lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow(row)
        rows.append(row)
        print(row, flush=True)
    return rows
