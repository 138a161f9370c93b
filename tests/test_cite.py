"""BibTeX of the works behind a result."""

import json
import re
from pathlib import Path

import pytest

from corricl import InputError, __version__, theory
from corricl.references import ALWAYS, METHODS, SIGNS, bibtex, entries, methods_of

ROOT = Path(__file__).parents[1]


def keys(text):
    return re.findall(r"^@\w+\{(\w+),$", text, re.MULTILINE)


def test_every_entry_is_whole_and_used():
    found = entries()
    assert set(found) == {key for used in METHODS.values() for key in used} | set(ALWAYS)
    for key, entry in found.items():
        assert keys(entry) == [key]
        assert entry.count("{") == entry.count("}")
        for fields in (("author", "key"), ("title",), ("year",)):  # BibTeX sorts by key where no author is known
            assert any(f"\n  {field} = {{" in entry for field in fields), (key, fields)
    assert f"version = {{{__version__}}}" in found["corricl"]
    assert "doi = {10.1073/pnas.2502599122}" in found["lu2025"]


def test_every_method_of_the_theory_can_be_cited():
    assert set(theory.METHODS) <= set(METHODS)
    assert set(SIGNS.values()) <= set(METHODS)


def test_works_named_in_the_citation_file_are_there():
    text = (ROOT / "CITATION.cff").read_text()
    printed = bibtex()
    for mark in re.findall(r"doi: (\S+)|arXiv:([\d.]+)", text):
        assert "".join(mark) in printed


def test_only_what_a_method_rests_on_is_printed():
    assert keys(bibtex()) == list(ALWAYS)
    assert keys(bibtex(["softmax", "softmax", "bayes"])) == [*ALWAYS, "vaswani2017", "bai2004"]
    with pytest.raises(InputError, match="unknown method 'guess'; allowed: auto"):
        bibtex(["guess"])


def test_methods_of_a_result_are_found_at_every_depth():
    result = {"methods": [{"method": "linear"}, {"method": "bayes"}], "theory": {"method": "weak"}, "method": "other"}
    assert methods_of(result) == ["linear", "bayes", "weak"]
    assert methods_of({"replicates": [1], "theory": {"method": "auto"}}) == ["simulate", "auto"]
    assert methods_of([3, "linear", None]) == []


def test_command_cites_a_stored_result(run, tmp_path):
    words = ["theory", "--d", 8, "--length", 16, "--method", "bayes", "--noise", 0.1, "--json"]
    (tmp_path / "result.json").write_text(run(*words)[1])
    code, out, _ = run("cite", tmp_path / "result.json")
    assert code == 0
    assert out == bibtex(["bayes"])
    code, out, _ = run("cite", "--method", "softmax", "--json")
    found = json.loads(out)
    assert found["methods"] == ["softmax"]
    assert found["references"] == keys(found["bibtex"]) == [*ALWAYS, "vaswani2017"]


@pytest.mark.parametrize(
    ("content", "words"),
    [("{}", "names no method"), ("@article", "is not a result written with --json"), (None, "No such file")],
)
def test_bad_results_are_one_clear_line(run, tmp_path, content, words):
    path = tmp_path / "result.json"
    if content is not None:
        path.write_text(content)
    code, out, err = run("cite", path)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1


def test_an_unknown_method_is_refused(run):
    code, out, err = run("cite", "--method", "guess")
    assert (code, out) == (2, "")
    assert "unknown method 'guess'; allowed: auto" in err
