"""`corricl train`: one object, exact resume after a kill, and refusals in a sentence."""

import json
import os
import signal
import subprocess
import sys

import pytest

SIZES = ["--d", 3, "--length", 6, "--noise", 0.1, "--kernel", "exp:2", "--query", "continues"]
SMALL = [*SIZES, "--sequences", 50, "--tasks", 4, "--batch", 32, "--steps", 40, "--seed", 3]
SMALL += ["--set", "interval=10", "--set", "validation=64", "--set", "test=512"]

CHILD = """
import os, signal, sys
from corricl import attention
from corricl.cli import main
write = attention._loop.save
def killing(file, header, tree):
    write(file, header, tree)
    if header["step"] == 20:
        os.kill(os.getpid(), signal.SIGKILL)
attention._loop.save = killing
main(sys.argv[1:])
"""


def test_a_killed_run_ends_as_one_that_was_left_alone(run, tmp_path):
    command = ["train", *SMALL, "--json"]
    words = [str(word) for word in [*command, "--out", tmp_path / "killed"]]
    environment = {**os.environ, "JAX_NUMPY_DTYPE_PROMOTION": "standard"}
    ended = subprocess.run([sys.executable, "-c", CHILD, *words], capture_output=True, text=True, env=environment)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert os.listdir(tmp_path / "killed") == ["checkpoint.corricl"]
    code, resumed, _ = run(*command, "--out", tmp_path / "killed")
    assert code == 0
    code, calm, err = run(*command, "--out", tmp_path / "calm")
    assert (code, err) == (0, "")
    assert json.loads(resumed) == json.loads(calm)
    files = [tmp_path / name / "checkpoint.corricl" for name in ("killed", "calm")]
    assert files[0].read_bytes() == files[1].read_bytes()
    found = json.loads(calm)
    assert {"icl", "idg", "validation", "train", "steps", "selected_step", "model"} <= found.keys()
    assert set(found["icl"]) == {"mean", "stderr"}
    assert found["model"] == "linear"
    assert (found["steps"], found["rate"]) == (40, 0.003)
    assert [row["step"] for row in found["curve"]] == [0, 10, 20, 30, 40]
    assert found["training"]["batch"] == 32
    assert (tmp_path / "calm" / "curve.csv").read_text().count("\n") == 6
    # finished, so that what follows only scores it: on other prompts, and for people
    code, text, _ = run("train", *SMALL, "--out", tmp_path / "calm", "--test-length", 4, "--test-noise", 0.5)
    assert code == 0
    assert text.startswith("icl")
    assert "selected_step" in text
    assert float(text.split()[1]) != pytest.approx(found["icl"]["mean"], rel=1e-3)
    code, _, err = run("train", *SMALL, "--out", tmp_path / "calm", "--rate", 0.1)
    assert code == 2
    assert "checkpoint of another run: its rate is 0.003, here it is 0.1" in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (SIZES, "give sequences or tau"),
        ([*SMALL, "--model", "cubic"], "unknown attention 'cubic'"),
        ([*SMALL, "--data", "stale"], "data must be one of fixed, fresh; got 'stale'"),
        ([*SMALL, "--set", "widht=3"], "did you mean 'width'"),
        ([*SMALL, "--set", "width"], "--set takes KEY=VALUE; got 'width'"),
        ([*SMALL, "--positions", "polar"], "positions must be one of"),
        ([*SMALL, "--track", "wandb"], "--track needs --out"),
        ([*SIZES, "--data", "fresh", "--batch", "full"], "fresh data needs a batch size"),
    ],
)
def test_bad_requests_are_one_line(run, words, sentence):
    code, out, err = run("train", *words, "--json")
    assert code == 2
    assert sentence in json.loads(out)["error"]["message"]
    assert err.count("\n") == 1
