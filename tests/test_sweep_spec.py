"""The sweep as an object: what it accepts, what it refuses and in which words."""

import math
from pathlib import Path

import pytest

from corricl import InputError
from corricl.kernels import Exponential
from corricl.sweeps import Range, Setting, Spec
from corricl.sweeps._points import PointMaker, digest_of
from corricl.sweeps._setting import sizes

BASE = {"d": 16, "alpha": 2, "tau": 2, "kernel": "exp:{xi}"}
TOML = """
estimators = ["theory:weak", "simulate"]
target_stderr = "1%"
replicates = 64
[base]
d = 16
alpha = 2
tau = 2
tasks = inf
kernel = "exp:{xi}"
[axes]
xi = [0, 1, 2.5, "inf"]
ridge = { start = 1e-6, stop = 1, num = 7, log = true }
[[cases]]
name = "alone"
query = "independent"
[[cases]]
name = "continued"
length = 20
query = "continues"
"""


def test_a_file_and_the_same_object_in_python_agree(tmp_path):
    (tmp_path / "my sweep.toml").write_text(TOML)
    read = Spec.load(tmp_path / "my sweep.toml")
    built = Spec(
        name="my-sweep",
        base={"d": 16, "alpha": 2, "tau": 2, "tasks": math.inf, "kernel": "exp:{xi}"},
        axes={"xi": [0, 1, 2.5, math.inf], "ridge": Range(start=1e-6, stop=1, num=7, log=True)},
        cases=[{"name": "alone", "query": "independent"}, {"name": "continued", "length": 20, "query": "continues"}],
        estimators=["theory:weak", "simulate"],
        target_stderr=0.01,
        replicates=64,
    )
    assert read == built == Spec.from_json(built.to_json())
    cells = list(read.cells())
    assert len(cells) == read.count() == 2 * 4 * 7 * 2
    assert cells[0].coordinates == {"case": "alone", "xi": 0, "ridge": 1e-6}
    assert cells[0].setting.kernel == "exp:0"
    assert cells[-1].setting.kernel == "exp:inf"
    assert sizes(cells[0].setting) == {"d": 16, "length": 32, "sequences": 512, "tasks": None}
    assert sizes(cells[-1].setting)["length"] == 20  # the case's length replaces the base's alpha


def test_the_spec_of_the_documentation_is_one(tmp_path):
    page = (Path(__file__).parent.parent / "docs" / "sweeps.md").read_text()
    (tmp_path / "gain.toml").write_text(page.partition("```toml")[2].partition("```")[0])
    spec = Spec.load(tmp_path / "gain.toml")
    assert (spec.name, len(list(spec.cells()))) == ("gain", 2 * 11 * 5 * 2)


def test_ranges_are_what_one_would_write():
    assert Range(start=0, stop=1, num=11).values() == [i / 10 for i in range(11)]
    assert Range(start=16, stop=128, num=4, log=True).values() == [16, 32, 64, 128]


def test_templates_reach_estimators_and_kernel_objects_are_allowed():
    spec = Spec(base={**BASE, "kernel": Exponential(5.0)}, axes={"m": ["weak"]}, estimators=["theory:{m}"])
    (cell,) = spec.cells()
    assert (cell.estimator, cell.label, cell.setting.kernel) == ("theory:weak", "theory:{m}", "exp:5")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"estimator": ["simulate"]}, "unknown key 'estimator' in the spec; did you mean 'estimators'?"),
        ({"base": {**BASE, "lenght": 3}}, "unknown key 'lenght' in [base]; did you mean 'length'?"),
        ({"axes": {"xi": [1], "rigde": [1]}}, "unknown key 'rigde' in [axes]; did you mean 'ridge'?"),
        ({"axes": {"xi": {"start": 0, "stop": 1, "nmu": 2}}}, "did you mean 'num'?"),
        ({"axes": {"xi": {"start": 0, "stop": 1, "num": 2, "log": True}}}, "a log range needs start and stop > 0"),
        ({"axes": {"xi": []}}, "axes.xi: an axis needs at least one value"),
        ({"axes": {"xi": 3}}, "an axis is a list of values or a table"),
        ({"axes": {}}, "{xi} stands in [base] or an estimator, but [axes] has no 'xi'"),
        ({"axes": {"xi": [1], "d": [8]}}, "'d' is given both in [base] and as an axis"),
        ({"cases": [{"query": "continues"}]}, "each of [[cases]] needs a name"),
        ({"cases": [{"name": "a", "quarry": "continues"}]}, "in case 'a'; did you mean 'query'?"),
        ({"replicates": 0}, "replicates: input should be greater than or equal to 1; got 0"),
        ({"target_stderr": "200%"}, "target_stderr: input should be less than 1"),
        ({"base": {**BASE, "length": 4}}, "give length or alpha, not both"),
        ({"base": {"d": 8, "alpha": 1, "kernel": "exp:{xi}"}}, "give sequences or tau"),
        ({"base": {"alpha": 1, "tau": 1, "kernel": "exp:{xi}"}, "estimators": ["simulate"]}, "needs sizes: give d"),
        ({"base": {**BASE, "d": 16.5}}, "d: input should be a valid integer, got a number with a fractional part"),
        ({"base": {**BASE, "noise": -1}}, "noise must be finite and >= 0; got -1"),
        ({"base": {**BASE, "query": "contnues"}}, "query 'contnues' is not understood"),
        ({"axes": {"xi": [-1]}}, "kernel 'exp:-1' is not allowed"),
        ({"base": {**BASE, "kernel": "epx:{xi}"}}, "unknown kernel 'epx'"),
        ({"estimators": ["theory:weak", "guess"]}, "unknown estimator 'guess'; known estimators: "),
        ({"estimators": ["theory:waek"]}, "unknown estimator 'theory:waek'; the methods of theory are auto, weak"),
        ({"imports": ["no_such_module"]}, "cannot import 'no_such_module'"),
        ({"imports": ["no_such_file.py"]}, "cannot import 'no_such_file.py': there is no such file"),
    ],
)
def test_a_bad_spec_is_refused_in_one_line(change, words):
    def build():
        spec = Spec(**{"base": BASE, "axes": {"xi": [1]}, **change})
        return [PointMaker(cell, 0) for cell in spec.cells()]

    with pytest.raises(InputError) as refusal:
        build()
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(("text", "words"), [("base = [", "is not TOML"), (None, "cannot read the spec")])
def test_a_bad_file_is_refused_in_one_line(tmp_path, text, words):
    if text is not None:
        (tmp_path / "s.toml").write_text(text)
    with pytest.raises(InputError, match=words):
        Spec.load(tmp_path / "s.toml")


def _digest(**changes):
    return digest_of("simulate", 1, Setting(**{"d": 10, "alpha": 2, "tau": 1, "kernel": "exp:5", **changes}), 0)


def test_the_key_is_the_same_for_the_same_point_and_another_for_another():
    same = [{}, {"kernel": "exp:5.0"}, {"alpha": None, "length": 20}, {"tau": 1.004}, {"kappa": math.inf}, {"noise": 0}]
    assert len({_digest(**change) for change in same}) == 1
    others = [{"ridge": 1e-3}, {"query": "continues"}, {"test_noise": 0.1}, {"kappa": 1}, {"tau": 1.006}, {"d": 20}]
    assert len({_digest(**change) for change in [{}, *others]}) == len(others) + 1
    setting = Setting(d=10, alpha=2, tau=1, kernel="exp:5")
    assert len({digest_of("simulate", n, setting, s) for n, s in [(1, 0), (2, 0), (1, 1), (1, None)]}) == 4


def test_the_key_follows_the_contents_of_a_file(tmp_path):
    path = tmp_path / "k.csv"
    keys = []
    for c in ("0.1", "0.2"):
        path.write_text(f"1,{c}\n{c},1\n")
        keys.append(_digest(alpha=None, length=2, kernel=f"file:{path}"))
    assert keys[0] != keys[1]


def test_replicates_are_looked_at_after_8_16_32_and_never_in_between():
    spec = Spec(base={"d": 4, "alpha": 1, "tau": 1}, target_stderr=0.1, replicates=20)
    steady, wild = [1.0, 1.01] * 10, [0.0, 2.0] * 10
    assert [spec.replicates_after(steady[:n]) for n in (0, 5, 8, 20)] == [8, 8, 8, 8]
    assert [spec.replicates_after(wild[:n]) for n in (0, 5, 8, 15, 16, 20)] == [8, 8, 16, 16, 20, 20]
    assert Spec(base={"d": 4, "alpha": 1, "tau": 1}, replicates=3).replicates_after([]) == 3
