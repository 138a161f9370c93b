"""Rows to arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._base import Row


class Series(NamedTuple):
    """Points sorted by x; `stderr` is 0 where there is none."""

    x: np.ndarray
    y: np.ndarray
    stderr: np.ndarray


def select(rows: list[Row], x: str, quantity: str = "icl", **where: Any) -> Series:
    """The rows of one quantity with the given columns, as arrays against column x (shape (m,) each)."""
    chosen = [r for r in rows if r["quantity"] == quantity and all(r.get(k) == v for k, v in where.items())]
    chosen.sort(key=lambda r: r[x])
    values = ([r[x] for r in chosen], [r["mean"] for r in chosen], [r.get("stderr") or 0.0 for r in chosen])
    return Series(*(np.array(v, dtype=np.float64) for v in values))


def difference(a: Series, b: Series) -> Series:
    """a - b where both have a point, standard errors in quadrature (the two are drawn independently)."""
    x, i, j = np.intersect1d(a.x, b.x, return_indices=True)
    return Series(x, a.y[i] - b.y[j], np.hypot(a.stderr[i], b.stderr[j]))


def grid(rows: list[Row], x: str, y: str, quantity: str = "icl", **where: Any) -> tuple[np.ndarray, ...]:
    """Values on a full grid: x (m,), y (k,), values (k, m)."""
    chosen = [r for r in rows if r["quantity"] == quantity and all(r.get(k) == v for k, v in where.items())]
    xs, ys = (np.unique([r[name] for r in chosen]) for name in (x, y))
    values = np.full((len(ys), len(xs)), np.nan)
    for r in chosen:
        values[np.searchsorted(ys, r[y]), np.searchsorted(xs, r[x])] = r["mean"]
    return xs, ys, values
