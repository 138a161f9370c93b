"""The command line's contract: what it prints, and how it fails."""

import json
import subprocess
import sys

import numpy as np
import pytest

from corricl import Pretraining, Prompt, simulate, theory

SIZES = ["--d", "8", "--length", "16", "--sequences", "200"]
PAPER = ["--d", "32", "--length", "128", "--sequences", "4096", "--tasks", "320", "--noise", ".01"]


def test_theory_prints_the_library_numbers(run):
    code, out, err = run("theory", *PAPER, "--kernel", "exp:6", "--query", "continues", "--method", "weak", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["icl"] == pytest.approx(0.599400, abs=2e-6)
    keys = "icl idg effective_length equivalent_length k0 k1 k2 query_gain effective_ridge method valid warnings"
    assert set(keys.split()) <= set(found)
    assert err == ""


def test_theory_for_people_shows_warnings_on_stderr(run):
    code, out, err = run("theory", *PAPER, "--kernel", "exp:2", "--method", "weak")
    assert code == 0
    assert "icl" in out
    assert "0.492124" in out
    assert err.startswith("warning (finite_size)")


def test_the_limit_without_d(run):
    code, out, _ = run("theory", "--alpha", 10, "--tau", 2, "--noise", ".01", "--method", "weak", "--json")
    assert code == 0
    assert json.loads(out)["icl"] == pytest.approx(0.203, abs=5e-4)


def test_threshold_is_inf_with_a_warning(run):
    words = ("theory", "--d", 10, "--alpha", 2, "--tau", 1, "--noise", 0.1, "--method", "weak", "--json")
    code, out, _ = run(*words)
    found = json.loads(out)
    assert code == 0
    assert found["icl"] == "inf"
    assert "threshold" in [w["code"] for w in found["warnings"]]


def test_simulate_prints_the_library_numbers(run):
    words = ("simulate", *SIZES, "--noise", ".1", "--ridge", "1e-3", "--replicates", 3, "--seed", 5, "--json")
    code, out, _ = run(*words)
    assert code == 0
    found = json.loads(out)
    expected = simulate.risk(Pretraining(Prompt(8, 16, noise=0.1), 200), 1e-3, seed=5, replicates=3)
    assert found["icl"] == {"mean": expected.icl.mean, "stderr": expected.icl.stderr}
    assert len(found["replicates"]) == 3
    assert found["converged"] is True
    assert found["residual"] < 1e-8
    assert found["theory"]["icl"] == theory.risk(Pretraining(Prompt(8, 16, noise=0.1), 200), 1e-3).icl


def test_simulate_until_a_target(run):
    code, out, _ = run("simulate", *SIZES, "--noise", ".1", "--target-stderr", "5%", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["icl"]["stderr"] <= 0.05 * found["icl"]["mean"]
    assert len(found["replicates"]) >= 8


def test_sample_writes_arrays(run, tmp_path):
    code, out, _ = run("sample", *SIZES, "--kernel", "exp:inf", "--out", tmp_path / "x.npz", "--json")
    assert code == 0
    assert json.loads(out)["shapes"]["x"] == [200, 16, 8]
    with np.load(tmp_path / "x.npz") as drawn:
        np.testing.assert_allclose(drawn["x"][:, 0], drawn["x"][:, 15], atol=1e-12)
        np.testing.assert_allclose(drawn["y"], np.einsum("nai,ni->na", drawn["x"], drawn["task"]), atol=1e-12)


def test_ratios_are_rounded_half_up(run, tmp_path):
    words = ("--d", 100, "--alpha", 2.3, "--tau", 0.0005, "--kappa", 0.29, "--out", tmp_path / "x.npz", "--json")
    code, out, _ = run("sample", *words)
    assert code == 0
    assert json.loads(out)["shapes"]["x"] == [5, 230, 100]


def test_a_kernel_of_the_users(run, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\nimport numpy as np\nfrom corricl.kernels import Stationary\n\n"
        "@dataclass(frozen=True)\nclass Half(Stationary):\n    xi: float\n    name = 'half'\n\n"
        "    def at_lag(self, lag):\n        return np.exp(-lag / self.xi / 2)\n"
    )
    words = ("theory", *SIZES, "--noise", ".1", "--method", "weak", "--json")
    code, out, _ = run(*words, "--import", tmp_path / "mine.py", "--kernel", "0.5*half:2+0.5*iid")
    assert code == 0
    assert json.loads(out)["icl"] == json.loads(run(*words, "--kernel", "0.5*exp:4+0.5*iid")[1])["icl"]


def _files(folder):
    good = np.eye(16)
    for name, change in {
        "indefinite": lambda k: np.where(np.eye(16), 1.0, -0.5),
        "nan": lambda k: np.where(np.arange(256).reshape(16, 16) == 5, np.nan, k),
        "shape": lambda k: k[:, :15],
        "small": lambda k: k[:9, :9],
        "diagonal": lambda k: 2 * k,
        "asymmetric": lambda k: k + np.triu(np.full((16, 16), 0.1), 1),
        "words": lambda k: np.array(["a", "b"]),
    }.items():
        np.save(folder / f"{name}.npy", change(good))
    (folder / "ragged.csv").write_text("1,0\n0\n")
    (folder / "empty.csv").write_text("")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--kernel exp:-1", "XI must be >= 0"),
        ("--kernel ar1:1.2", "PHI must lie in [-1, 1]"),
        ("--kernel nope:1", "known kernels: ar1, blocks, cosine, equi, exp, file"),
        ("--kernel exp", "exp:XI"),
        ("--kernel equi:-0.9", "smallest joint eigenvalue is -12.5"),
        ("--kernel file:F/indefinite.npy", "smallest joint eigenvalue is -6.5"),
        ("--kernel file:F/nan.npy", "NaN"),
        ("--kernel file:F/shape.npy", "must be square"),
        ("--kernel file:F/small.npy", "is 9x9; length 16 needs 16x16"),
        ("--kernel file:F/diagonal.npy", "unit diagonal"),
        ("--kernel file:F/asymmetric.npy", "symmetric"),
        ("--kernel file:F/words.npy", "not a table of numbers"),
        ("--kernel file:F/ragged.csv", "not a table of numbers"),
        ("--kernel file:F/empty.csv", "empty"),
        ("--kernel file:F/missing.npy", "does not exist"),
        ("--kernel 0.7*exp:2+0.7*iid", "add up to 1"),
        ("--query sideways", "allowed: independent, continues"),
        ("--query strength:2", "[0, 1]"),
        ("--query gap:0", "gap must be an integer >= 1"),
        ("--noise -0.1", "noise must be finite and >= 0"),
        ("--noise nan", "noise must be finite and >= 0"),
        ("--ridge -1", "ridge must be finite and >= 0"),
        ("--tasks 0", "tasks must be an integer >= 1"),
        ("--tasks 2.5", "tasks must be an integer >= 1"),
        ("--length 0", "length must be an integer >= 1"),
        ("--d 0", "d must be an integer >= 1"),
        ("--d x", "not a valid integer"),
        ("--alpha 2", "give length or alpha, not both"),
        ("--tau 2", "give sequences or tau, not both"),
        ("--tasks 4 --kappa 2", "give tasks or kappa, not both"),
        ("--method magic", "unknown method 'magic'"),
        ("--import nothing_of_that_name", "cannot import"),
        ("--nope", "No such option"),
    ],
)
def test_bad_input_is_one_clear_line(run, tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "F").mkdir()
    _files(tmp_path / "F")
    code, out, err = run("theory", *SIZES, *words.split(), "--json")
    assert code == 2
    assert says in err
    assert err.count("\n") == 1
    assert json.loads(out)["error"]["message"] in err


def test_missing_sizes_are_named(run):
    assert "give d" in run("theory", "--length", 5)[2]
    assert "give sequences or tau" in run("theory", "--d", 5, "--length", 5, "--method", "weak")[2]


def test_a_solve_that_does_not_converge_exits_with_3(run, monkeypatch):
    from corricl.simulate import _replicates

    solve = _replicates.solve
    monkeypatch.setattr(_replicates, "solve", lambda *a, **k: solve(*a, **{**k, "max_steps": 2, "method": "cg"}))
    code, out, err = run("simulate", *SIZES, "--noise", ".1", "--json")
    assert code == 3
    assert json.loads(out)["error"]["code"] == "not_converged"
    assert "residual" in err


def test_doctor_sees_float64(run):
    code, out, _ = run("doctor", "--json")
    assert code == 0
    assert json.loads(out)["simulation_dtype"] == "float64"


@pytest.mark.parametrize("words", [("--version",), ("theory", "--help"), ("--help",)])
def test_the_installed_command_runs(words):
    done = subprocess.run([sys.executable, "-m", "corricl.cli", *words], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout
    assert done.stderr == ""


def test_no_arguments_is_help():
    done = subprocess.run([sys.executable, "-m", "corricl.cli"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "Usage" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--noise 1e154", "finite and >= 0"),
        ("--noise 1e99 --method weak", None),
        ("--ridge 1e300", "finite and >= 0"),
        ("--d 100000000000000000000", "beyond 2^53"),
        ("--tasks 99999999999999999999999", "integer >= 1"),
        ("--kappa 1e30", "size beyond 2^53"),
        ("--query gap:99999999999999999999999999", "gap must be an integer"),
        ("--query gap:1000000000 --kernel power:1", None),
        ("--kernel blocks:1e300", "integer >= 1"),
        ("--kernel matern:2,1e-300", "finite float64"),
        ("--kernel cosine:1e308,inf", "finite float64"),
        ("--kernel exp:1e-320", None),
        ("--kernel file:empty.npy", "not a table of numbers"),
        ("--kernel file:zip.npy", "not a table of numbers"),
        ("--import quits.py", "SystemExit"),
    ],
)
def test_extreme_input_is_answered_or_refused(run, tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "zip.npy").write_bytes(b"PK\x03\x04 no zip")
    (tmp_path / "quits.py").write_text("print('loud')\nraise SystemExit(7)\n")
    code, out, err = run("theory", *SIZES, *words.split(), "--json")
    answer = json.loads(out)
    if says is None:
        assert code == 0
        assert np.isfinite(answer["icl"])
    else:
        assert code == 2
        assert says in answer["error"]["message"]
        assert answer["error"]["message"] in err


def test_a_ratio_that_overflows_is_refused(run):
    code, out, _ = run("theory", "--alpha", 1e-300, "--tau", 2, "--json")
    assert code == 2
    assert "overflows" in json.loads(out)["error"]["message"]


def test_features_that_cannot_fit_are_refused(run):
    words = ("--d", 4, "--length", 6, "--sequences", 10**13, "--replicates", 1, "--json")
    code, out, _ = run("simulate", *words)
    assert code == 2
    assert "GiB" in json.loads(out)["error"]["message"]


def test_an_uncompared_weak_limit_says_so(run):
    words = ("--d", 2, "--length", 8, "--sequences", 100, "--noise", 0.1, "--json")
    found = json.loads(run("theory", *words)[1])
    assert found["method"] == "weak"
    assert "not_compared" in [w["code"] for w in found["warnings"]]


def test_the_seed_alone_decides(run):
    import jax

    from corricl.simulate import batches

    prompt = Prompt(2, 2, noise=0.1)
    plain = next(batches(prompt, seed=1, batch=2))
    jax.config.update("jax_random_seed_offset", 5)
    try:
        offset = next(batches(prompt, seed=1, batch=2))
    finally:
        jax.config.update("jax_random_seed_offset", 0)
    np.testing.assert_array_equal(plain.x, offset.x)
