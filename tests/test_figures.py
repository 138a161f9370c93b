"""Figures are made again from what they store, and carry the published numbers."""

import csv
import json
from pathlib import Path

import pytest

from corricl import InputError, figures
from corricl.figures._base import Figure, published
from corricl.figures._select import difference, select
from corricl.sweeps import Spec


class Tiny(Figure):
    name = "tiny"
    title = "a figure small enough for a test"

    def sweeps(self, quick):
        base = {"d": 6, "length": 12, "sequences": 90, "noise": 0.1, "ridge": 1e-3, "kernel": "exp:{xi}"}
        estimators = ["theory:weak", "simulate"]
        return [Spec(name="all", base=base, axes={"xi": [0, 2]}, estimators=estimators, replicates=2 if quick else 3)]

    def plot(self, rows, canvas):
        found = select(rows, "xi", estimator="simulate")
        canvas.subplots().errorbar(found.x, found.y, found.stderr)


def test_a_figure_is_made_again_from_its_stored_spec(tmp_path):
    figure = Tiny()
    first = figures.make(figure, figure.sweeps(quick=True), tmp_path / "a", workers=1, progress=False)
    assert [f.suffix for f in first.files] == [".png", ".pdf", ".csv", ".json"]
    assert all(f.stat().st_size > 0 for f in first.files)
    again = figures.make(figure, figures.read_spec(first.files[3], "tiny"), tmp_path / "b", workers=2, progress=False)
    assert again.files[2].read_bytes() == first.files[2].read_bytes()
    with first.files[2].open() as file:
        rows = list(csv.DictReader(file))
    kept = [row for row in rows if row["estimator"] == "simulate" and row["quantity"] == "icl"]
    assert [float(row["mean"]) for row in kept] == [r["mean"] for r in first.rows if r in _icl(first.rows)]
    assert "±" in figure.table(first.rows)


def _icl(rows):
    return [r for r in rows if r["estimator"] == "simulate" and r["quantity"] == "icl"]


def test_a_failing_point_is_loud(tmp_path):
    from corricl import ConvergenceError

    base = {"d": 6, "length": 12, "sequences": 90, "kernel": "exp:{xi}"}
    bad = Spec(name="bad", base=base, axes={"xi": [1]}, estimators=["no-such-thing"])
    with pytest.raises((ConvergenceError, InputError), match="no-such-thing"):
        figures.make(Tiny(), [bad], tmp_path, workers=1, progress=False)


@pytest.mark.parametrize("figure", figures.FIGURES.values(), ids=lambda f: f.name)
@pytest.mark.parametrize("quick", [True, False])
def test_every_spec_survives_storage(figure, quick):
    for spec in figure.sweeps(quick):
        assert Spec.from_json(spec.to_json()) == spec
        assert next(iter(spec.cells())).setting.prompt.d >= 6


@pytest.mark.parametrize(
    ("name", "rows"), [("correlated_reduced_d32", 18), ("iid_reduced_d100", 9), ("iid_task_diversity_d64", 6)]
)
def test_published_tables_ship_with_the_package(name, rows):
    assert len(published(name)) == rows


def test_unknown_and_foreign_specs_are_refused(tmp_path):
    with pytest.raises(InputError, match="known figures: effective-length"):
        figures.find("nope")
    (tmp_path / "x.json").write_text(json.dumps({"figure": "other", "sweeps": []}))
    with pytest.raises(InputError, match="figure 'other'"):
        figures.read_spec(tmp_path / "x.json", "tiny")
    (tmp_path / "y.json").write_text("[")
    with pytest.raises(InputError, match="not a stored figure spec"):
        figures.read_spec(tmp_path / "y.json", "tiny")


def test_difference_adds_errors_in_quadrature():
    rows = [
        {"case": c, "xi": x, "quantity": "icl", "mean": m, "stderr": s}
        for c, x, m, s in (("a", 1, 3.0, 0.3), ("a", 2, 5.0, 0.1), ("b", 1, 1.0, 0.4))
    ]
    found = difference(select(rows, "xi", case="a"), select(rows, "xi", case="b"))
    assert found.x.tolist() == [1]
    assert found.y.tolist() == [2.0]
    assert found.stderr == pytest.approx([0.5])


def stored(figure):
    """Rows of the numbers behind a picture of the documentation."""
    with (Path(__file__).parents[1] / "docs" / "_static" / "numbers" / f"{figure}.csv").open() as text:
        return list(csv.DictReader(text))


def test_the_captions_of_the_documentation_hold_in_the_stored_numbers():
    errors = [float(row["stderr"]) for row in stored("breakdown") if row["kind"] in ("variance", "relative")]
    assert 0.185 < min(errors) <= max(errors) < 0.205  # "about .19"

    rows = [row for row in stored("finite-size") if row["quantity"] == "icl"]
    weak, mixture = (
        {
            (row["sweep"].partition("-")[2], row["case"]): float(row["mean"])
            for row in rows
            if row["estimator"] == method
        }
        for method in ("theory:weak", "theory:mixture")
    )
    for row in rows:
        if row["estimator"] != "simulate":
            continue
        at, mean, stderr = (row["sweep"].partition("-")[2], row["case"]), float(row["mean"]), float(row["stderr"])
        assert stderr < 0.0205 * mean
        assert 0.04 < 1 - weak[at] / mixture[at] < 0.665
        assert 4.5 < (mean - weak[at]) / stderr < 71.5
        few = at[1].endswith("0.5") and int(at[0]) <= 64
        assert abs(mean - mixture[at]) / stderr < (6.25 if few else 2.45)
