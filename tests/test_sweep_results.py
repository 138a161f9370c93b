"""Results: what the table and the files say."""

import math

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from corricl import InputError
from corricl.sweeps import Results, Spec, Store
from corricl.sweeps._plan import Plan
from corricl.sweeps._points import Outcome
from corricl.sweeps._results import summaries


@pytest.fixture
def found(tmp_path):
    """A store with made-up values: replicate r of noise v has icl v + r, and the last point has failed."""
    spec = Spec(
        name="made-up",
        base={"d": 8, "alpha": 1, "tau": 2},
        axes={"noise": [0.5, 0.25], "query": ["independent", "strength:0.5"]},
        cases=[{"name": "b"}, {"name": "a", "ridge": 0.1}],
        estimators=["theory:weak", "simulate"],
        replicates=3,
    )
    plan = Plan(spec, {})
    outcomes = []
    for key, point in plan.open.items():
        icl = point.setting["noise"] + (point.replicate or 0)
        outcomes.append((point, Outcome(key, {"icl": icl, "idg": math.inf, "gain": None}, seconds=0.5, host='{"a":1}')))
    point = outcomes[-1][0]
    outcomes[-1] = (point, Outcome(point.key, None, "ValueError: no", "Traceback ..."))
    with Store(tmp_path / "s.sqlite", write=True) as store:
        store.remember(spec, plan.entries)
        store.commit(outcomes)
    return Results(tmp_path / "s.sqlite")


def test_the_table_has_means_and_standard_errors(found):
    assert found.progress() == {"cells": 16, "points": 32, "finished": 31, "failed": 1}
    table = found.table()
    assert list(table.columns) == ["case", "noise", "query", "estimator", "quantity", "mean", "stderr", "replicates"]
    first = table[(table.estimator == "simulate") & (table.quantity == "icl")].iloc[0]
    assert (first["case"], first["noise"], first["query"]) == ("b", 0.5, "independent")
    assert (first["mean"], first["replicates"]) == (1.5, 3)
    assert first["stderr"] == pytest.approx(1 / math.sqrt(3), rel=1e-15)
    assert table[table.estimator == "theory:weak"].stderr.isna().all()
    assert set(table.quantity) == {"icl", "idg"}  # one without a value has no row
    assert len(found.points()) == 31
    failure = {"case": "a", "noise": 0.25, "query": "strength:0.5", "estimator": "simulate", "replicate": 2}
    assert found.failures() == [{**failure, "error": "ValueError: no"}]


def test_the_dataset_has_named_axes(found):
    data = found.dataset()
    assert dict(data.sizes) == {"case": 2, "noise": 2, "query": 2, "estimator": 2}
    assert list(data.noise.values) == [0.5, 0.25]  # as in the spec, not sorted
    cell = data.sel(case="a", noise=0.25, query="strength:0.5", estimator="simulate")
    assert (float(cell.icl), int(cell.replicates)) == (0.75, 2)
    assert float(cell.icl_stderr) == pytest.approx(0.5)
    assert np.isinf(data.idg.values).all()
    assert Spec.from_json(data.attrs["spec"]) == found.spec()


def test_files_hold_the_same(found, tmp_path):
    for suffix in ("csv", "parquet", "nc"):
        found.export(tmp_path / f"t.{suffix}")
    table = found.table()
    for read in (pd.read_csv(tmp_path / "t.csv"), pd.read_parquet(tmp_path / "t.parquet")):
        pd.testing.assert_frame_equal(read, table, check_exact=True, check_dtype=False)
    with xr.open_dataset(tmp_path / "t.nc", engine="h5netcdf") as data:
        xr.testing.assert_equal(data.load(), found.dataset())
    with pytest.raises(InputError, match=r"its name must end in .csv, .parquet, .nc"):
        found.export(tmp_path / "t.xlsx")


def test_infinite_values_have_an_infinite_mean_and_no_standard_error():
    made = dict(summaries([{"icl": math.inf}, {"icl": 1.0}]))
    assert made["icl"] == {"mean": math.inf, "stderr": None, "replicates": 2}
