"""What commands print: one JSON object, or aligned lines for people."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Nested dataclasses, named tuples and arrays as JSON types.

    Infinity becomes "inf", NaN is refused, and fields that a dataclass hides (such as Gamma itself) are left out.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.repr}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(entry) for name, entry in value._asdict().items()}  # type: ignore[attr-defined]
    if isinstance(value, dict):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        if math.isnan(value):
            raise ArithmeticError("a result is NaN")
        return value if math.isfinite(value) else str(value)
    return value


def print_json(value: Any) -> None:
    """Exactly one JSON object on stdout."""
    print(json.dumps(plain(value), allow_nan=False))


def print_lines(rows: list[tuple[str, Any]]) -> None:
    """Names and values in two columns; what is None or an array is left out, a table within is opened."""
    shown = [(name, text(value)) for name, value in _opened(rows)]
    width = max(len(name) for name, _ in shown)
    for name, value in shown:
        print(f"{name:<{width}}  {value}")


def _opened(rows: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    for name, value in rows:
        if isinstance(value, dict):
            yield from _opened((f"{name}.{key}", entry) for key, entry in value.items())
        elif value is not None and not isinstance(value, np.ndarray):
            yield name, value


def text(value: Any) -> str:
    """A number in six digits, an estimate as mean ± standard error."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple) and hasattr(value, "stderr"):
        return f"{value.mean:.6g}" + ("" if value.stderr is None else f" ± {value.stderr:.2g}")  # type: ignore[attr-defined]
    return str(value)


def print_warnings(warnings: tuple[Any, ...]) -> None:
    """Warnings on stderr, one line each."""
    for caution in warnings:
        print(f"warning ({caution.code}): {caution.message}", file=sys.stderr)
