"""Every method on one prompt: the decomposition, and the command."""

import json
import math

import numpy as np
import pytest
from helpers import random_joint

from corricl import InputError, Pretraining, Prompt, simulate, theory
from corricl.kernels import Tabulated

SIZES = ["--d", "8", "--length", "16", "--noise", ".1", "--kernel", "exp:2", "--query", "continues"]
PROMPT = Prompt(8, 16, "exp:2", "continues", 0.1)


def of(method, prompt, pretraining=None, ridge=0.0):
    subject = prompt if pretraining is None else Pretraining(prompt, pretraining.sequences, pretraining.tasks)
    return theory.risk(subject, ridge, method=method).icl


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_every_law_is_the_prompt_that_it_says(noise):
    prompt = Prompt(8, 16, "exp:2", "gap:2", noise)
    k = np.exp(-np.arange(17, 1, -1) / 2)  # of positions 1..16 with position 18
    found = theory.compare(prompt)
    assert [c.method for c in found] == ["linear", "positional", "softmax", "bayes"]
    for c in found:
        assert c.given.icl == of(c.method, prompt)
        assert c.independent.icl == of(c.method, Prompt(8, 16, "exp:2", "independent", noise))
        assert c.iid.icl == of(c.method, Prompt(8, 16, noise=noise))
        assert c.query_alone.icl == pytest.approx(of(c.method, Prompt(8, 16, query=k, noise=noise)), rel=1e-9)
        assert {r.method for r in (c.given, c.independent, c.iid, c.query_alone)} == {c.method}
        assert c.bulk_cost == c.independent.icl - c.iid.icl
        assert c.query_gain == c.independent.icl - c.given.icl
        assert c.both == pytest.approx(c.bulk_cost - c.query_gain, abs=1e-12)
        assert c.query_alone_gain == c.iid.icl - c.query_alone.icl


def test_a_pretraining_adds_the_reduced_model():
    pretraining, ridge = Pretraining(PROMPT, 400, 40), 1e-3
    found = {c.method: c for c in theory.compare(pretraining, ridge)}
    assert list(found) == ["weak", "mixture", "linear", "positional", "softmax", "bayes"]
    for method in ("weak", "mixture"):
        c = found[method]
        assert c.given.icl == of(method, PROMPT, pretraining, ridge)
        assert c.independent.icl == of(method, Prompt(8, 16, "exp:2", noise=0.1), pretraining, ridge)
        assert c.iid.icl == of(method, Prompt(8, 16, noise=0.1), pretraining, ridge)
        assert c.query_gain == pytest.approx(c.given.query_gain, rel=1e-9)  # two routes to one number
    assert found["mixture"].given.icl > found["linear"].given.icl  # a pretrained model against its best
    assert [c.method for c in theory.compare(Pretraining(Prompt(2, 16), 40))][:2] == ["weak", "linear"]


def test_query_alone_exists_where_it_can():
    """Iid tokens with query correlations k exist if and only if |k|^2 <= 1."""
    border = 2 / math.log(2)
    for kernel, length, exists in (
        (f"exp:{0.99 * border}", 60, True),
        (f"exp:{1.02 * border}", 60, False),
        ("blocks:3", 19, True),  # the query repeats one token: |k| = 1
        ("blocks:3", 20, False),  # and here two
        ("ar1:-0.7", 40, True),
        ("ar1:-0.72", 40, False),
    ):
        found = theory.compare(Prompt(4, length, kernel, "continues", 0.1))
        assert {c.query_alone is not None for c in found} == {exists}, kernel
        assert {c.query_alone_gain is not None for c in found} == {exists}, kernel


def test_no_correlations_no_effects():
    for c in theory.compare(Prompt(8, 16, noise=0.1)):
        assert (c.bulk_cost, c.query_gain, c.both, c.query_alone_gain) == (0, 0, 0, 0)


def test_a_matrix_from_a_file_loses_its_query():
    joint = random_joint(13, seed=4)
    prompt = Prompt(6, 12, Tabulated(joint), noise=0.2)
    plain = Prompt(6, 12, Tabulated(joint[:12, :12]), noise=0.2)
    for c in theory.compare(prompt):
        assert c.given.icl == of(c.method, prompt)
        assert c.independent.icl == pytest.approx(of(c.method, plain), rel=1e-12)


def test_what_is_infinite_has_no_difference():
    found = {c.method: c for c in theory.compare(Pretraining(Prompt(10, 20, "exp:2", "continues", 0.1), 100))}
    weak = found["weak"]
    assert weak.given.icl == weak.iid.icl == math.inf
    assert (weak.bulk_cost, weak.query_gain, weak.both) == (None, None, None)
    assert found["linear"].both is not None


def test_the_story_in_numbers():
    """A continuing query turns correlations from a cost into a gain for softmax, not for plain linear attention."""
    found = {c.method: c for c in theory.compare(Prompt(32, 128, "exp:10", "continues", 0.01))}
    assert found["linear"].both == pytest.approx(0.4854 - 0.2165, abs=2e-4)
    assert found["softmax"].both == pytest.approx(0.2135 - 0.4255, abs=0.004)
    assert found["positional"].both == pytest.approx(0.2214 - 0.2165, abs=2e-4)
    assert all(c.bulk_cost > 0 and c.query_gain > 0 for c in found.values())
    for method in ("linear", "positional", "softmax"):
        for law in ("given", "independent", "iid"):
            assert getattr(found[method], law).icl > 10 * getattr(found["bayes"], law).icl


def test_query_information_alone_by_simulation():
    """An iid context whose last token the query resembles, drawn from its joint matrix."""
    prompt = Prompt(8, 20, "exp:2.5", "continues", 0.2)
    alone = Prompt(8, 20, query=prompt.query_vector, noise=0.2)
    drawn = next(simulate.batches(alone, seed=8, batch=40000))
    for c in theory.compare(prompt):
        if c.method == "bayes":
            continue  # at length 2d its equivalent is compared elsewhere
        guess = simulate.optimal(c.method, alone)(drawn.x, drawn.y, drawn.query)
        losses = np.square(drawn.target - guess)
        stderr = losses.std(ddof=1) / math.sqrt(len(losses))
        assert stderr < 0.015 * losses.mean()
        assert abs(losses.mean() - c.query_alone.icl) < 4 * stderr
        assert c.query_alone_gain > 6 * stderr or c.method != "softmax"


def test_the_command_prints_the_library_numbers(run):
    code, out, err = run("compare", *SIZES, "--sequences", 400, "--tasks", 40, "--ridge", "1e-3", "--json")
    assert (code, err) == (0, "")
    entries = json.loads(out)["methods"]
    expected = theory.compare(Pretraining(PROMPT, 400, 40), 1e-3)
    assert [e["method"] for e in entries] == [c.method for c in expected]
    for entry, c in zip(entries, expected, strict=True):
        assert (entry["given"], entry["iid"]) == (c.given.icl, c.iid.icl)
        assert (entry["bulk_cost"], entry["query_gain"], entry["both"]) == (c.bulk_cost, c.query_gain, c.both)
        assert entry["query_alone"] == c.query_alone.icl
        assert entry["simulated"] is None
    weak = entries[0]
    assert not weak["valid"]
    assert {w["code"] for w in weak["warnings"]} >= {"finite_size"}
    assert {w["law"] for w in weak["warnings"]} >= {"given", "iid"}


def test_infinite_risks_are_the_word(run):
    code, out, _ = run("compare", "--d", 10, "--length", 20, "--noise", 0.1, "--sequences", 100, "--json")
    weak = json.loads(out)["methods"][0]
    assert code == 0
    assert (weak["given"], weak["both"]) == ("inf", None)


def test_the_command_simulates_and_draws(run, tmp_path):
    words = (*SIZES, "--sequences", 400, "--ridge", "1e-2", "--simulate", "--prompts", 6144, "--replicates", 8)
    code, out, _ = run("compare", *words, "--out", tmp_path / "new", "--json")
    found = json.loads(out)
    assert code == 0
    entries = {e["method"]: e for e in found["methods"]}
    assert entries["weak"]["simulated"] == entries["mixture"]["simulated"]
    own = simulate.risk(Pretraining(PROMPT, 400), 1e-2, seed=0, replicates=8).icl
    assert entries["mixture"]["simulated"] == {"mean": own.mean, "stderr": own.stderr}
    for method in ("mixture", "linear", "positional", "softmax", "bayes"):
        mean, stderr = entries[method]["simulated"].values()
        assert 0 < stderr < 0.03 * mean
        rough = 0.03 * mean if method in ("mixture", "bayes") else 0.0
        assert abs(mean - entries[method]["given"]) < 4 * stderr + rough, method
    assert found["files"] == [str(tmp_path / "new" / f"comparison.{kind}") for kind in ("png", "pdf")]
    assert (tmp_path / "new" / "comparison.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "new" / "comparison.pdf").read_bytes().startswith(b"%PDF")


def test_the_table_for_people(run, tmp_path):
    code, out, _ = run("compare", *SIZES, "--out", tmp_path)
    lines = out.splitlines()
    assert code == 0
    header = "method given independent iid query_alone bulk_cost query_gain both query_alone_gain valid"
    assert " ".join(lines[0].split()) == header
    assert lines[1].split()[:2] == ["linear", f"{of('linear', PROMPT):.4f}"]
    assert len(lines) == 1 + 4 + 2
    strong = run("compare", *SIZES, "--kernel", "exp:5")[1].splitlines()
    assert "query_alone" not in strong[0]  # no such prompt


def test_zero_and_infinite_risks_can_be_drawn(run, tmp_path):
    words = ("compare", "--d", 4, "--length", 12, "--sequences", 20, "--out", tmp_path, "--quiet")
    code, _, err = run(*words)  # noise 0: the floor is 0; sequences d(d+1): the mixture diverges
    assert code == 0
    assert "warning (threshold) mixture" in err
    assert (tmp_path / "comparison.png").exists()


def test_warnings_for_people_name_method_and_laws(run):
    err = run("compare", *SIZES, "--sequences", 400)[2]
    assert "warning (finite_size) weak, given, independent, iid, query_alone: " in err
    assert err.count("(finite_size) weak") == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--test-length 5", "compare takes one prompt"),
        ("--ridge 0.1", "give sequences or tau"),
        ("--tasks 5", "give sequences or tau"),
        ("--simulate --prompts 0", "prompts must be"),
        ("--simulate --sequences 50 --replicates 0", "replicates must be"),
    ],
)
def test_bad_usage_is_one_line(run, words, says):
    code, out, err = run("compare", *SIZES, *words.split(), "--json")
    assert code == 2
    assert says in json.loads(out)["error"]["message"]
    assert err.count("\n") == 1


def test_a_folder_that_cannot_be_written(run, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = run("compare", *SIZES, "--out", tmp_path / "file" / "x")
    assert code == 2
    assert "cannot write to" in err


def test_refusals():
    with pytest.raises(InputError, match="ridge"):
        theory.compare(Pretraining(PROMPT, 50), -1.0)
