"""Files and arrays to (sequences, tokens, channels); what cannot be that is refused in one sentence."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from ..errors import InputError

AXES = ("sequence,time,channel", "time,channel", "sequence,time", "time")
"""What the axes of an array can mean."""

FORMS = "(sequences, length, channels), (length, channels) or (length,)"


def read(path: str | Path) -> np.ndarray:
    """The array of a .npy, .npz, .csv or .parquet file; .npy is mapped into memory, not loaded.

    A .npz holds one array, or one called x as `corricl sample` writes it. Tables have a channel a column and a
    token a row; the first line of a CSV may name the channels.

    Raises:
        InputError: no such file, another kind of file, ragged rows, columns of text, or no numbers.
    """
    path = Path(path)
    readers = {".npy": _npy, ".npz": _npz, ".csv": _csv, ".parquet": _parquet}
    if path.suffix not in readers:
        raise InputError(f"'{path}' must end in {', '.join(readers)}")
    if not path.is_file():
        raise InputError(f"file '{path}' does not exist")
    if path.stat().st_size == 0:
        raise InputError(f"'{path}' is empty")
    try:
        return readers[path.suffix](path)
    except InputError:
        raise
    except (OSError, ValueError, EOFError, KeyError, BadZipFile) as error:
        raise InputError(f"'{path}' is not a readable {path.suffix} file of numbers ({error})") from None


def _npy(path: Path) -> np.ndarray:
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _npz(path: Path) -> np.ndarray:
    with np.load(path, allow_pickle=False) as file:
        names = list(file)
        if "x" not in names and len(names) != 1:
            raise InputError(f"'{path}' holds {', '.join(names) or 'nothing'}; it must hold one array, or one called x")
        return file["x" if "x" in names else names[0]]


def _csv(path: Path) -> np.ndarray:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [(number, row) for number, row in enumerate(csv.reader(file), 1) if any(cell.strip() for cell in row)]
    if not rows:
        raise InputError(f"'{path}' is empty")
    widths = len(rows[0][1])
    if ragged := next((number for number, row in rows if len(row) != widths), None):
        raise InputError(f"line {ragged} of '{path}' has another number of columns than line {rows[0][0]} ({widths})")
    header = all(_number(cell) is None for cell in rows[0][1])
    table = [[_number(cell) for cell in row] for _, row in rows[header:]]
    for (number, row), cells in zip(rows[header:], table, strict=True):
        if None in cells:
            column = cells.index(None)
            raise InputError(f"line {number} of '{path}' has text in column {column + 1}: '{row[column]}' is no number")
    return np.array(table, dtype=np.float64).reshape(len(table), widths)


def _number(cell: str) -> float | None:
    """A number, NaN for an empty cell, None for text."""
    try:
        return float(cell) if cell.strip() else float("nan")
    except ValueError:
        return None


def _parquet(path: Path) -> np.ndarray:
    import pandas as pd

    table = pd.read_parquet(path)
    if text := [name for name, kind in table.dtypes.items() if not pd.api.types.is_numeric_dtype(kind)]:
        raise InputError(f"column '{text[0]}' of '{path}' holds no numbers: leave it out")
    return table.to_numpy(dtype=np.float64)


def arrange(values: Any, axes: str | None) -> np.ndarray:
    """An array as (sequences, tokens, channels), a view where possible.

    Args:
        values: an array of one, two or three axes.
        axes: one of `AXES`; None reads three axes as (sequences, length, channels), two as (length, channels).

    Raises:
        InputError: no numbers, no such axes, or a shape that can be read in two ways.
    """
    array = values if isinstance(values, np.ndarray) else np.asarray(values)
    if array.dtype.kind not in "fiu":
        raise InputError(f"the data must be real numbers; they are of type {array.dtype}")
    if array.size == 0 or not 1 <= array.ndim <= 3:
        raise InputError(f"the data must have shape {FORMS} and hold something; their shape is {array.shape}")
    if axes is None:
        axes = _guess(array.shape)
    if axes not in AXES:
        raise InputError(f"axes must be one of {'; '.join(AXES)}; got '{axes}'")
    if axes.count(",") + 1 != array.ndim:
        raise InputError(f"axes '{axes}' do not fit an array of shape {array.shape}")
    return {
        "sequence,time,channel": lambda: array,
        "time,channel": lambda: array[None],
        "sequence,time": lambda: array[:, :, None],
        "time": lambda: array[None, :, None],
    }[axes]()


def _guess(shape: tuple[int, ...]) -> str:
    if len(shape) == 2 and shape[0] < shape[1]:
        raise InputError(
            f"shape {shape} is ambiguous: {shape[0]} tokens of {shape[1]} channels or {shape[0]} sequences of "
            f"{shape[1]} tokens? Give axes 'time,channel' or 'sequence,time'"
        )
    return {1: "time", 2: "time,channel", 3: "sequence,time,channel"}[len(shape)]


def windows(values: np.ndarray, length: int, stride: int | None) -> np.ndarray:
    """One series cut into windows that are treated as independent sequences; unchanged without a stride.

    Args:
        values: shape (sequences, tokens, channels).
        length: tokens of a window.
        stride: from the start of a window to that of the next, at least `length`.
    """
    if stride is None:
        return values
    if values.shape[0] != 1:
        raise InputError("a stride cuts one series into windows; the data are sequences already")
    if stride < length:
        raise InputError(
            f"stride must be at least length = {length}: windows that overlap are not independent sequences"
        )
    count = (values.shape[1] - length) // stride + 1
    shape, strides = (count, length, values.shape[2]), values.strides
    return np.lib.stride_tricks.as_strided(
        values, shape, (stride * strides[1], strides[1], strides[2]), writeable=False
    )
