"""`corricl measure`: files of every kind, what it prints, and how it refuses."""

import json

import numpy as np
import pytest

from corricl import measure


@pytest.fixture
def data(tmp_path):
    values = np.random.default_rng(0).standard_normal((300, 2))
    values[1:] += 0.7 * values[:-1]
    np.save(tmp_path / "series.npy", values.astype(np.float32))
    return values.astype(np.float32), tmp_path


def test_json_has_the_numbers_of_the_library(run, data):
    values, folder = data
    code, out, _ = run("measure", folder / "series.npy", "--length", 12, "--noise", ".1", "--json")
    assert code == 0
    found, expected = json.loads(out), measure.measure(values, length=12, noise=0.1)
    for name in ("k2", "k0", "k1", "effective_length", "mean_length"):
        assert found[name] == getattr(expected, name)._asdict()
    assert len(found["autocorrelation"]["estimate"]) == 13
    assert found["prediction"]["here"]["independent"]["linear"] > 0
    assert found["preprocessing"]["scale"] == "channel"


def test_every_kind_of_file_reads_the_same(run, data):
    import pandas as pd

    values, folder = data
    np.savez(folder / "series.npz", x=values, other=values)
    pd.DataFrame(values, columns=["a", "b"]).to_csv(folder / "series.csv", index=False)
    pd.DataFrame(values, columns=["a", "b"]).to_parquet(folder / "series.parquet")
    np.savetxt(folder / "bare.csv", values, delimiter=",")
    assert isinstance(measure.read(folder / "series.npy"), np.memmap)
    for name in ("series.npz", "series.csv", "series.parquet", "bare.csv"):
        np.testing.assert_allclose(measure.read(folder / name), values, rtol=1e-6)


def test_table_and_report(run, data):
    _, folder = data
    code, out, _ = run("measure", folder / "series.npy", "--length", 8, "--out", folder / "out", "--sequences", 50)
    assert code == 0
    assert out.startswith(" " * 18 + "  estimate")
    assert "pretrained linear attention" in out
    for name in ("measurement.png", "measurement.pdf", "measurement.html", "context.npy", "joint.npy"):
        assert str(folder / "out" / name) in out
    text = (folder / "out" / "measurement.html").read_text()
    assert "data:image/png;base64," in text
    assert "http" not in text  # nothing to fetch
    sizes = ("--d", 2, "--length", 8, "--sequences", 50, "--method", "weak", "--json")
    code, out, _ = run("theory", "--kernel", f"file:{folder / 'out' / 'joint.npy'}", *sizes)
    assert code == 0
    assert json.loads(out)["k0"] > 0


BAD = {
    "empty.csv": ("", "is empty"),
    "ragged.csv": ("1,2\n3,4\n5\n", "line 3"),
    "text.csv": ("a,b\n1,x\n2,y\n", "text in column 2"),
    "nan.csv": ("1,\n2,\n3,\n" * 5, "channel 2 holds nothing but missing values"),
    "wide.csv": ("1,2,3\n4,5,6\n", "ambiguous"),
    "notes.txt": ("1", "must end in"),
    "broken.npy": ("no numbers", "not a readable .npy"),
    "broken.parquet": ("no numbers", "not a readable .parquet"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused_in_one_line(run, tmp_path, name):
    text, message = BAD[name]
    (tmp_path / name).write_text(text)
    code, out, err = run("measure", tmp_path / name, "--length", 2)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("shape", "words", "message"),
    [((1, 30, 2), (), "length of a window"), ((9, 1, 2), (), "at least 2"), ((0, 3), (), "hold something")],
)
def test_bad_shapes_are_refused_in_one_line(run, tmp_path, shape, words, message):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal(shape))
    code, out, err = run("measure", tmp_path / "x.npy", *words, "--json")
    assert code == 2
    assert message in json.loads(out)["error"]["message"]
    assert err.count("\n") == 1


def test_missing_file(run, tmp_path):
    code, _, err = run("measure", tmp_path / "none.npy")
    assert code == 2
    assert "does not exist" in err
