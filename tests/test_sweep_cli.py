"""The two commands: what they print and how they end."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sweep_estimators import wait_for

TOML = """
estimators = ["cheap", "faulty"]
replicates = 4
import = ["mine.py"]
[base]
d = 8
alpha = 1
tau = 2
ridge = 0.9
[axes]
noise = [0.0, {last}]
"""


@pytest.fixture
def spec(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text((Path(__file__).parent / "sweep_estimators.py").read_text())
    path = tmp_path / "s.toml"
    path.write_text(TOML.replace("{last}", "0.1"))
    monkeypatch.chdir("/")  # modules are found beside the spec
    return path


def test_a_sweep_and_its_results(run, spec, tmp_path):
    code, out, _ = run("sweep", spec, "--json", "--workers", 1)
    report = json.loads(out)
    assert (code, report["points"], report["finished"], report["computed"], report["failed"]) == (0, 16, 16, 16, 0)
    store = tmp_path / "s.sqlite"
    found = json.loads(run("results", store, "--json", "--to", tmp_path / "t.csv")[1])
    assert (found["sweep"], found["points"], found["failures"]) == ("s", 16, [])
    assert {row["mean"] for row in found["rows"] if row["quantity"] == "idg"} == {"inf"}
    assert (tmp_path / "t.csv").exists()
    shown = run("results", store)[1]
    assert "s: 16 of 16 points finished" in shown
    assert "cheap" in shown
    assert json.loads(run("sweep", spec, "--json")[1])["computed"] == 0


def test_failed_points_end_with_code_4(run, spec, tmp_path):
    spec.write_text(TOML.replace("{last}", "1.0"))
    code, out, err = run("sweep", spec, "--quiet", "--json", "--workers", 1)
    assert code == 4
    error = json.loads(out)["error"]
    assert error["code"] == "failed_points"
    assert "4 of 16 points failed: ValueError: noise 1.0 is too much" in error["message"]
    assert len(err.splitlines()) == 1
    assert "failed: ValueError: noise 1.0 is too much (at noise = 1.0, " in run("results", tmp_path / "s.sqlite")[1]


def test_a_dry_run_says_how_many_and_how_long(run, spec, tmp_path):
    code, out, _ = run("sweep", spec, "--dry-run", "--workers", 2)
    assert code == 0
    assert "4 cells, 16 points, 0 finished; 16 take about" in out
    assert not (tmp_path / "s.sqlite").exists()


def test_stores_are_merged(run, spec, tmp_path):
    run("sweep", spec, "--quiet", "--workers", 1)
    run("sweep", spec, "--quiet", "--workers", 1, "--store", tmp_path / "other.sqlite")
    code, out, _ = run("results", tmp_path / "s.sqlite", "--merge", tmp_path / "other.sqlite")
    assert code == 0
    assert "merged: 0 points added, 16 shared, 0 of them differ" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sweep", "/none.toml"], "cannot read the spec '/none.toml'"),
        (["results", "/none.sqlite"], "there is no store '/none.sqlite'"),
        (["sweep", "SPEC", "--executor", "moon"], "unknown executor 'moon'; allowed: local, dask"),
        (["sweep", "SPEC", "--import", "nowhere.py"], "cannot import 'nowhere.py'"),
    ],
)
def test_bad_input_ends_with_code_2(run, spec, words, message):
    code, out, err = run(*(spec if word == "SPEC" else word for word in words))
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_ctrl_c_ends_with_code_130_and_says_how_to_resume(spec, tmp_path):
    spec.write_text(TOML.replace("{last}", "0.1").replace('"cheap"', '"cheap:0.1"').replace("= 4", "= 1000"))
    command = [sys.executable, "-c", "from corricl.cli import main; main()", "sweep", str(spec), "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, **pipes) as running:
        wait_for(tmp_path / "s.sqlite", 3)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to the workers too
        out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert json.loads(out)["error"]["code"] == "interrupted"
    assert "run the same sweep again to resume" in err
    assert "Traceback" not in err
