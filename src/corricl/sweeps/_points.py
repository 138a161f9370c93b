"""Points: the units of work, each with a key made of everything that determines its value."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from typing import Any, NamedTuple

from ..setting import Setting
from ._estimator import Value, estimator
from ._setting import dumps, fields_of, identity
from ._spec import Cell, Coordinate

Values = dict[str, Value]
"""What one point has given, by name."""


class Point(NamedTuple):
    """One estimator at one setting, one replicate. `seed` and `replicate` are None where nothing is drawn.

    `group` gathers points that share compiled code; it does not enter the key.
    """

    key: str
    estimator: str
    setting: dict[str, Any]
    seed: int | None
    replicate: int | None
    group: Hashable


class Outcome(NamedTuple):
    """What became of a point: its values, or the error that stopped it."""

    key: str
    values: Values | None
    error: str = ""
    traceback: str = ""
    seconds: float = 0.0
    host: str = "{}"


class Entry(NamedTuple):
    """One entry of a sweep's table, as a store keeps it: where it lies, and which points belong to it.

    `digest` is the SHA-256 of everything but the replicate that determines the values.
    """

    digest: str
    coordinates: dict[str, Coordinate]
    estimator: str
    random: bool

    def key(self, replicate: int) -> str:
        """The key of the point of one replicate, counted from 0."""
        return f"{self.digest}-{replicate if self.random else 0}"


class PointMaker:
    """The points of one cell of a sweep.

    Args:
        cell: where.
        seed: the sweep's seed.
    """

    def __init__(self, cell: Cell, seed: int) -> None:
        self._cell = cell
        made = estimator(cell.estimator)
        made.check(cell.setting)
        self._seed = seed if made.random else None
        self._group = (cell.estimator, made.compile_key(cell.setting))
        self._setting = fields_of(cell.setting)
        digest = digest_of(cell.estimator, made.numerics, cell.setting, self._seed)
        self.entry = Entry(digest, cell.coordinates, cell.label, made.random)

    def point(self, replicate: int) -> Point:
        """The point of one replicate, counted from 0."""
        number = replicate if self.entry.random else None
        return Point(self.entry.key(replicate), self._cell.estimator, self._setting, self._seed, number, self._group)


def digest_of(name: str, numerics: int, setting: Setting, seed: int | None) -> str:
    """SHA-256 of the canonical JSON of estimator, its numerics version, setting and seed (None: draws nothing)."""
    parts = {"estimator": name, "numerics": numerics, "setting": identity(setting), "seed": seed}
    return hashlib.sha256(dumps(parts).encode()).hexdigest()
