"""What a store holds, as a table and as an array with named axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ._plan import replicates
from ._points import Entry, Values
from ._spec import Spec
from ._store import Store

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

SUFFIXES = (".csv", ".parquet", ".nc")


class Results:
    """The results of a store, sweep by sweep.

    Args:
        path: the store.

    Attributes:
        sweeps: names of the sweeps in the store.
    """

    def __init__(self, path: str | Path) -> None:
        with Store(path) as store:
            self._sweeps = store.sweeps()
            self._known: dict[str, Values] = store.results()
            self._failures = store.failures()
            self._provenance = store.provenance()
        self.sweeps = list(self._sweeps)

    def spec(self, sweep: str | None = None) -> Spec:
        """The spec of a sweep; its name may be left out if the store holds one."""
        return self._sweep(sweep)[0]

    def _sweep(self, sweep: str | None) -> tuple[Spec, list[Entry]]:
        if sweep is None and len(self.sweeps) == 1:
            return self._sweeps[self.sweeps[0]]
        if sweep not in self._sweeps:
            wanted = "name one of the sweeps" if sweep is None else f"there is no sweep '{sweep}'"
            raise InputError(f"{wanted}; the store holds {', '.join(self.sweeps) or 'none'}")
        return self._sweeps[sweep]

    def progress(self, sweep: str | None = None) -> dict[str, int]:
        """Cells, points, finished and failed points of a sweep."""
        cells = list(self._cells(sweep))
        keys = {entry.key(r) for entry, wanted, _ in cells for r in range(wanted)}
        return {
            "cells": len(cells),
            "points": len(keys),
            "finished": len(keys & self._known.keys()),
            "failed": len(keys & self._failures.keys()),
        }

    def failures(self, sweep: str | None = None) -> list[dict[str, Any]]:
        """Coordinates, replicate and error of each failed point of a sweep."""
        return [
            {**entry.coordinates, "estimator": entry.estimator, "replicate": r, "error": error}
            for entry, wanted, _ in self._cells(sweep)
            for r in range(wanted)
            if (error := self._failures.get(entry.key(r))) is not None
        ]

    def rows(self, sweep: str | None = None) -> list[dict[str, Any]]:
        """The long table as dictionaries: coordinates, estimator, quantity, mean, stderr, replicates.

        `stderr` is None where there is one replicate or an estimator that draws nothing.
        """
        return [
            {**entry.coordinates, "estimator": entry.estimator, "quantity": name, **summary}
            for entry, _, values in self._cells(sweep)
            for name, summary in summaries(values)
        ]

    def table(self, sweep: str | None = None) -> pd.DataFrame:
        """The long table: a row for each cell and quantity, with mean, standard error and number of replicates."""
        import pandas as pd

        names = ("estimator", "quantity", "mean", "stderr", "replicates")
        columns = [*_axes(self.spec(sweep)), *names]
        table = pd.DataFrame(self.rows(sweep), columns=columns)
        return table.astype({"mean": float, "stderr": float, "replicates": int})

    def points(self, sweep: str | None = None) -> pd.DataFrame:
        """One row for each finished point: coordinates, replicate, values, seconds, and where it was computed."""
        import pandas as pd

        rows = []
        for entry, wanted, _ in self._cells(sweep):
            for r in range(wanted):
                if (values := self._known.get(key := entry.key(r))) is not None:
                    seconds, host = self._provenance[key]
                    about = {"seconds": seconds, **host, "key": key}
                    rows.append({**entry.coordinates, "estimator": entry.estimator, "replicate": r, **values, **about})
        return pd.DataFrame(rows)

    def dataset(self, sweep: str | None = None) -> xr.Dataset:
        """Every quantity and its standard error (`icl`, `icl_stderr`) over the named axes of the sweep.

        Dimensions are `case` (if there are cases), the axes in the order of the spec, and `estimator`;
        what is not there is NaN. `replicates` counts them; the spec is in the attributes.
        """
        import xarray as xr

        spec = self.spec(sweep)
        axes = {**_axes(spec), "estimator": spec.estimators}
        places = {name: {value: i for i, value in enumerate(values)} for name, values in axes.items()}
        shape = tuple(map(len, axes.values()))
        data: dict[str, np.ndarray] = {"replicates": np.zeros(shape, dtype=np.int64)}
        for row in self.rows(spec.name):
            at = tuple(places[name][row[name]] for name in axes)
            for name, value in ((row["quantity"], row["mean"]), (f"{row['quantity']}_stderr", row["stderr"])):
                data.setdefault(name, np.full(shape, np.nan))[at] = np.nan if value is None else value
            data["replicates"][at] = row["replicates"]
        coordinates = {name: np.asarray(values) for name, values in axes.items()}
        attributes = {"sweep": spec.name, "spec": spec.to_json()}
        return xr.Dataset({name: (list(axes), array) for name, array in data.items()}, coordinates, attributes)

    def export(self, path: str | Path, sweep: str | None = None) -> None:
        """Write the table to .csv or .parquet, or the dataset to .nc."""
        path = Path(path)
        if path.suffix not in SUFFIXES:
            raise InputError(f"cannot write '{path}': its name must end in {', '.join(SUFFIXES)}")
        try:
            self._write(path, sweep)
        except OSError as error:
            raise InputError(f"cannot write '{path}': {error.strerror or error}") from None

    def _write(self, path: Path, sweep: str | None) -> None:
        if path.suffix == ".csv":
            self.table(sweep).to_csv(path, index=False)
        elif path.suffix == ".parquet":
            table = self.table(sweep)
            for name in [
                n for n, kind in table.dtypes.items() if str(kind) == "object"
            ]:  # an axis of numbers and words
                table[name] = table[name].astype(str)
            table.to_parquet(path, index=False)
        else:
            self.dataset(sweep).to_netcdf(path, engine="h5netcdf")

    def _cells(self, sweep: str | None) -> Iterator[tuple[Entry, int, list[Values]]]:
        spec, entries = self._sweep(sweep)
        for entry in entries:
            yield entry, *replicates(spec, entry, self._known)


def _axes(spec: Spec) -> dict[str, list[Any]]:
    cases = {"case": [case["name"] for case in spec.cases]} if spec.cases else {}
    return {**cases, **spec.axes}


def summaries(values: list[Values]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each number with its mean, standard error and count over replicates, in their order."""
    names: Mapping[str, None] = dict.fromkeys(name for replicate in values for name in replicate)
    for name in names:
        made = np.array([v for replicate in values if isinstance(v := replicate.get(name), float | int)])
        if not len(made):
            continue
        known = len(made) > 1 and np.isfinite(made).all()
        stderr = float(made.std(ddof=1) / len(made) ** 0.5) if known else None
        yield name, {"mean": float(made.mean()), "stderr": stderr, "replicates": len(made)}
