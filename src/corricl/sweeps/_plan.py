"""Which points a spec needs, given those that are finished."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from ._points import Entry, Outcome, Point, PointMaker, Values
from ._spec import Spec


def followed(values: Values) -> float:
    """The value whose standard error a target is for: `icl`, or an estimator's first number."""
    numbers = {name: value for name, value in values.items() if isinstance(value, float | int)}
    return numbers.get("icl", next(iter(numbers.values()), float("nan")))


def replicates(spec: Spec, entry: Entry, known: Mapping[str, Values]) -> tuple[int, list[Values]]:
    """How many replicates an entry needs as far as can be told, and the values of those that are finished."""
    if not entry.random:
        return 1, [known[key]] if (key := entry.key(0)) in known else []
    made: list[float] = []
    for replicate in range(spec.most_replicates if spec.target_stderr is not None else 0):
        if (found := known.get(entry.key(replicate))) is None:
            break
        made.append(followed(found))
    wanted = spec.replicates_after(made)
    return wanted, [known[key] for r in range(wanted) if (key := entry.key(r)) in known]


class Plan:
    """The open points of a sweep.

    Args:
        spec: the sweep.
        known: key to values of the finished points; `record` adds to it.
    """

    def __init__(self, spec: Spec, known: dict[str, Values]) -> None:
        self.spec = spec
        self._makers = [PointMaker(cell, spec.seed) for cell in spec.cells()]
        self.open: dict[str, Point] = {}
        self.failed: dict[str, str] = {}
        self._known = known
        self._waiting: dict[int, set[str]] = {}
        self._cells: defaultdict[str, set[int]] = defaultdict(set)
        for index in range(len(self._makers)):
            self._look(index)
        self.finished = len(self._keys() & known.keys())

    @property
    def entries(self) -> list[Entry]:
        """The entries of the table, in order."""
        return [maker.entry for maker in self._makers]

    @property
    def total(self) -> int:
        """Points of the sweep, as many as are known to be needed."""
        return self.finished + len(self.open) + len(self.failed)

    def record(self, outcomes: Iterable[Outcome]) -> tuple[list[tuple[Point, Outcome]], list[Point]]:
        """Take note of outcomes; returns those that count, with their points, and the points that they call for."""
        counted, more = [], []
        for outcome in outcomes:
            if (point := self.open.pop(outcome.key, None)) is None:
                continue  # a second outcome of one point, as after a lost connection
            counted.append((point, outcome))
            if outcome.values is None:
                self.failed[outcome.key] = outcome.error
            else:
                self._known[outcome.key] = outcome.values
                self.finished += 1
            for index in self._cells.pop(outcome.key):
                self._waiting[index].discard(outcome.key)
                if not self._waiting[index] and outcome.values is not None:
                    more += self._look(index)
        return counted, more

    def _look(self, index: int) -> list[Point]:
        """Open the points that a cell still needs; returns those that no other cell had opened."""
        maker = self._makers[index]
        wanted, _ = replicates(self.spec, maker.entry, self._known)
        points = [p for r in range(wanted) if (p := maker.point(r)).key not in self._known and p.key not in self.failed]
        new = [point for point in points if point.key not in self.open]
        self.open |= {point.key: point for point in new}
        self._waiting[index] = {point.key for point in points}
        for point in points:
            self._cells[point.key].add(index)
        return new

    def _keys(self) -> set[str]:
        wanted = ((entry, replicates(self.spec, entry, self._known)[0]) for entry in self.entries)
        return {entry.key(replicate) for entry, count in wanted for replicate in range(count)}

    def unsettled(self) -> int:
        """Cells whose standard error is above the target although they have all the replicates allowed."""
        if self.spec.target_stderr is None:
            return 0
        return sum(map(self._misses_target, self.entries))

    def _misses_target(self, entry: Entry) -> bool:
        import numpy as np

        _, values = replicates(self.spec, entry, self._known)
        made = np.array([followed(v) for v in values])
        if not entry.random or len(made) < self.spec.most_replicates or len(made) < 2 or not np.isfinite(made).all():
            return False
        return bool(made.std(ddof=1) > (self.spec.target_stderr or 0) * abs(made.mean()) * len(made) ** 0.5)
