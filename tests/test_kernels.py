"""Kernels: every family against a literal formula, statistics against brute force, bad input refused."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from helpers import KERNELS, QUERIES, vector_query
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import gamma as gamma_function
from scipy.special import kv

from corricl.errors import InputError
from corricl.kernels import (
    AR1,
    Blocks,
    Exponential,
    Kernel,
    Query,
    Stationary,
    Tabulated,
    ar1_statistics,
    known_kernels,
    limit_statistics,
    parse,
    statistics,
)
from corricl.kernels import _statistics as implementation
from corricl.prompt import Prompt

LITERAL = {
    "iid": lambda a, b: float(a == b),
    "exp:0": lambda a, b: float(a == b),
    "exp:2": lambda a, b: math.exp(-abs(a - b) / 2),
    "exp:30": lambda a, b: math.exp(-abs(a - b) / 30),
    "exp:inf": lambda a, b: 1.0,
    "ar1:-0.7": lambda a, b: (-0.7) ** abs(a - b),
    "ar1:-1": lambda a, b: -1.0 if (a - b) % 2 else 1.0,
    "ar1:1": lambda a, b: 1.0,
    "power:0": lambda a, b: 1.0,
    "power:0.4": lambda a, b: 1 / (1 + abs(a - b)) ** 0.4,
    "power:2": lambda a, b: 1 / (1 + abs(a - b)) ** 2,
    "matern:0.5,3": lambda a, b: math.exp(-abs(a - b) / 3),
    "matern:1.5,2": lambda a, b: (1 + math.sqrt(3) * abs(a - b) / 2) * math.exp(-math.sqrt(3) * abs(a - b) / 2),
    "matern:2.5,4": lambda a, b: (
        (1 + math.sqrt(5) * abs(a - b) / 4 + 5 * (a - b) ** 2 / 48) * math.exp(-math.sqrt(5) * abs(a - b) / 4)
    ),
    "sqexp:3": lambda a, b: math.exp(-((a - b) ** 2) / 18),
    "cosine:0.3,inf": lambda a, b: math.cos(0.3 * (a - b)),
    "cosine:0.9,4": lambda a, b: math.exp(-abs(a - b) / 4) * math.cos(0.9 * (a - b)),
    "equi:0.3": lambda a, b: 0.7 * (a == b) + 0.3,
    "equi:-0.05": lambda a, b: 1.05 * (a == b) - 0.05,
    "equi:1": lambda a, b: 1.0,
    "ma:0": lambda a, b: float(a == b),
    "ma:3": lambda a, b: max(0.0, 1 - abs(a - b) / 4),
    "blocks:1": lambda a, b: float(a == b),
    "blocks:3": lambda a, b: float(math.ceil(a / 3) == math.ceil(b / 3)),
    "0.7*exp:5+0.3*iid": lambda a, b: 0.7 * math.exp(-abs(a - b) / 5) + 0.3 * (a == b),
    "0.5*power:0.6+0.25*equi:0.5+0.25*blocks:2": lambda a, b: (
        0.5 * (1 + abs(a - b)) ** -0.6 + 0.25 * (0.5 + 0.5 * (a == b)) + 0.25 * ((a + 1) // 2 == (b + 1) // 2)
    ),
    "exp:20*cosine:0.3,inf": lambda a, b: math.exp(-abs(a - b) / 20) * math.cos(0.3 * (a - b)),
    "0.6*ar1:-0.5*exp:4+0.4*matern:1.5,2": lambda a, b: (
        0.6 * (-0.5) ** abs(a - b) * math.exp(-abs(a - b) / 4) + 0.4 * LITERAL["matern:1.5,2"](a, b)
    ),
}


def literal_joint(spec, query, length):
    """Joint matrix entry by entry from the formulas of this file."""
    entry = LITERAL[spec]
    matrix = np.array([[entry(a, b) for b in range(1, length + 1)] for a in range(1, length + 1)])
    word, _, value = query.partition(":")
    gap = int(value) if word == "gap" else 1
    strength = {"independent": 0.0, "strength": float(value or 0)}.get(word, 1.0)
    k = strength * np.array([entry(length + gap, a) for a in range(1, length + 1)])
    return np.block([[matrix, k[:, None]], [k[None, :], np.ones((1, 1))]])


def test_every_family_of_the_zoo_has_a_literal_formula():
    assert set(KERNELS) <= set(LITERAL)
    families = {name for name, cls in known_kernels().items() if cls.__module__.startswith("corricl.")} - {"file"}
    assert families == {part.partition(":")[0] for s in KERNELS for part in s.replace("+", "*").split("*")} & families


@pytest.mark.parametrize("spec", LITERAL)
def test_matrix_is_the_formula_at_every_query(spec):
    for length in (1, 2, 7, 13):
        for query in QUERIES:
            prompt = Prompt(3, length, spec, query)
            expected = literal_joint(spec, query, length)
            np.testing.assert_allclose(prompt.joint, expected, atol=1e-12, rtol=0)
            assert prompt.joint.dtype == prompt.query_vector.dtype == np.float64
            assert np.linalg.eigvalsh(expected)[0] > -1e-12
            k, matrix = expected[-1, :-1], expected[:-1, :-1]
            brute = (k @ k, k @ matrix @ k, np.trace(matrix @ matrix) / length)
            np.testing.assert_allclose(prompt.statistics, brute, rtol=1e-11, atol=1e-13)


def test_matern_has_its_spectral_density_at_a_general_smoothness():
    nu, scale = 1.7, 2.3
    table = parse(f"matern:{nu},{scale}").matrix(9)[0]
    for lag in range(1, 9):
        z = math.sqrt(2 * nu) * lag / scale
        assert table[lag] == pytest.approx(2 ** (1 - nu) / gamma_function(nu) * z**nu * kv(nu, z), rel=1e-12)
    rate = math.sqrt(2 * nu) / scale

    def density(frequency):
        return (rate**2 + frequency**2) ** (-nu - 0.5)

    total = 2 * quad(density, 0, np.inf)[0]
    transform = 2 * quad(density, 0, np.inf, weight="cos", wvar=3.0)[0] / total
    assert table[3] == pytest.approx(transform, rel=1e-5)


def test_matern_underflows_to_zero_and_not_to_nan():
    table = parse("matern:1.5,0.01").matrix(50)[0]
    assert table[0] == 1
    assert np.all(table[1:] < 1e-60)
    assert np.isfinite(table).all()


SPECS = st.one_of(
    st.floats(0, 50).map("exp:{}".format),
    st.floats(-1, 1).map("ar1:{}".format),
    st.floats(0, 5).map("power:{}".format),
    st.tuples(st.floats(0.05, 20), st.floats(0.05, 30)).map(lambda p: f"matern:{p[0]},{p[1]}"),
    st.floats(0.05, 30).map("sqexp:{}".format),
    st.tuples(st.floats(-7, 7), st.floats(0.05, 50)).map(lambda p: f"cosine:{p[0]},{p[1]}"),
    st.floats(0, 1).map("equi:{}".format),
    st.integers(0, 30).map("ma:{}".format),
    st.integers(1, 12).map("blocks:{}".format),
)


@given(SPECS, SPECS, st.floats(0, 1), st.integers(1, 40), st.sampled_from(QUERIES))
def test_joint_matrices_are_positive_semidefinite_at_random_parameters(first, second, weight, length, query):
    a, b = parse(first), parse(second)
    for kernel in (a, a * b, weight * a + (1 - weight) * b):
        prompt = Prompt(2, length, kernel, query)
        joint = prompt.joint
        assert joint.shape == (length + 1, length + 1)
        assert np.array_equal(joint, joint.T)
        assert np.allclose(np.diagonal(joint), 1, atol=1e-12)
        assert np.linalg.eigvalsh(joint)[0] > -1e-11
        assert np.all(np.abs(joint) <= 1 + 1e-12)


@given(SPECS, SPECS, st.floats(0.01, 0.99))
def test_spec_strings_read_back_as_the_same_kernel(first, second, weight):
    a, b = parse(first), parse(second)
    for kernel in (a, a * b, weight * a + (1 - weight) * b):
        assert parse(kernel.spec) == kernel


@pytest.mark.parametrize("query", QUERIES)
def test_query_spec_strings_read_back(query):
    assert Query.parse(Query.parse(query).spec) == Query.parse(query)
    assert Query.parse(query).spec == query.replace("strength:0.6", "strength:0.6")


def test_numbers_with_exponents_and_blanks_are_read():
    assert parse("exp:1e+2") == Exponential(100.0)
    mixed = parse(" 2.5e-1*exp:1e+1 + .75*iid")
    assert mixed.weights == (0.25, 0.75)
    assert mixed.matrix(3)[0, 1] == pytest.approx(0.25 * math.exp(-0.1))
    assert parse("0.5*0.5*exp:2+0.75*iid").weights == (0.25, 0.75)


def test_kernels_of_one_law_agree():
    np.testing.assert_allclose(Exponential(3.0).matrix(9), AR1(math.exp(-1 / 3)).matrix(9), rtol=1e-14)
    np.testing.assert_allclose(parse("matern:0.5,3").matrix(9), Exponential(3.0).matrix(9), rtol=1e-12)
    np.testing.assert_allclose(parse("matern:100,3").matrix(9), parse("sqexp:3").matrix(9), atol=4e-3)
    np.testing.assert_allclose(parse("ma:0").matrix(9), np.eye(9))


@pytest.mark.parametrize("phi", [0.0, 0.5, -0.5, 0.9, -0.97, 0.9949])
@pytest.mark.parametrize("length", [1, 2, 17, 400])
def test_closed_statistics_of_an_autoregression(phi, length):
    positions = np.arange(length)
    matrix = phi ** np.abs(positions[:, None] - positions).astype(float)
    k = phi ** (length - positions).astype(float)
    brute = (k @ k, k @ matrix @ k, (matrix * matrix).sum() / length)
    np.testing.assert_allclose(ar1_statistics(phi, length), brute, rtol=1e-9, atol=1e-14)
    for gap, strength in ((1, 1.0), (3, 1.0), (1, 0.3)):
        factor = strength**2 * phi ** (2.0 * (gap - 1))
        found = statistics(AR1(phi), length, Query(strength, gap))
        np.testing.assert_allclose(found, (factor * brute[0], factor * brute[1], brute[2]), rtol=1e-9, atol=1e-14)


def test_closed_statistics_broadcast_and_have_their_limit():
    phi, length = np.array([[0.2], [-0.6]]), np.array([5.0, 50.0, np.inf])
    both = ar1_statistics(phi, length)
    for i in range(2):
        for j in range(3):
            one = ar1_statistics(phi[i, 0], length[j])
            np.testing.assert_allclose([k[i, j] for k in both], one, rtol=1e-14)
    x = 0.36
    np.testing.assert_allclose(
        [k[1, 2] for k in both], [x / (1 - x), x * (1 + x) / (1 - x) ** 2, (1 + x) / (1 - x)], rtol=1e-13
    )


@pytest.mark.parametrize(
    "spec",
    ["power:0.3", "matern:1.5,40", "cosine:0.3,inf", "ar1:-0.999", "exp:900", "0.7*exp:300+0.3*power:1", "exp:inf"],
)
@pytest.mark.parametrize("query", QUERIES)
def test_statistics_of_long_contexts_use_the_transform_and_agree_with_the_matrix(spec, query, monkeypatch):
    kernel, query = parse(spec), Query.parse(query)
    monkeypatch.setattr(implementation, "_DENSE", 100)
    monkeypatch.setattr(Kernel, "matrix", lambda *_: pytest.fail("the matrix was built"))
    found = statistics(kernel, 701, query)
    monkeypatch.undo()
    matrix, k = kernel.matrix(701), query.correlations(kernel, 701)
    np.testing.assert_allclose(found, (k @ k, k @ matrix @ k, (matrix * matrix).sum() / 701), rtol=1e-10, atol=1e-10)


def test_a_long_context_of_blocks_still_has_statistics():
    assert statistics(Blocks(4.0), 4000, Query()).k2 == pytest.approx(4)


def test_limit_statistics():
    x = math.exp(-2 / 3)
    found = limit_statistics(Exponential(3.0), Query(0.5, 2))
    np.testing.assert_allclose(
        found, (0.25 * x * x / (1 - x), 0.25 * x * x * (1 + x) / (1 - x) ** 2, (1 + x) / (1 - x))
    )
    lags = np.arange(1, 400.0)
    found = limit_statistics(parse("matern:1.5,3"), Query())
    z = math.sqrt(3) * lags / 3
    assert found.k2 == pytest.approx(1 + 2 * np.sum(((1 + z) * np.exp(-z)) ** 2), rel=1e-5)
    assert found.k0 == pytest.approx(np.sum(((1 + z) * np.exp(-z)) ** 2), rel=1e-5)
    assert limit_statistics(parse("power:2"), Query(0.0)).k2 == pytest.approx(1 + 2 * (math.pi**4 / 90 - 1), rel=1e-4)


@pytest.mark.parametrize("spec", ["power:0.3", "equi:0.2", "exp:inf", "cosine:0.3,inf", "power:0.5"])
def test_a_kernel_without_limit_is_refused(spec):
    with pytest.raises(InputError, match=r"no weak-correlation limit.*--d and --length"):
        limit_statistics(parse(spec), Query(0.0))
    with pytest.raises(InputError, match="no infinite-length limit"):
        limit_statistics(Tabulated(np.eye(3)), Query(0.0))


# ---- a user's own kernels


@dataclass(frozen=True)
class Triangle(Stationary):
    width: float
    name = "usertriangle"

    def at_lag(self, lag):
        return np.maximum(0.0, 1 - lag / self.width)


@dataclass(frozen=True)
class Warped(Kernel):
    """Not stationary: exponential in the logarithm of the position."""

    rate: float
    name = "userwarped"

    def correlation(self, a, b):
        return np.exp(-self.rate * np.abs(np.log(np.asarray(a, float)) - np.log(np.asarray(b, float))))


@dataclass(frozen=True)
class Negative(Stationary):
    name = "usernegative"

    def at_lag(self, lag):
        return np.where(lag == 0, 1.0, -0.8)


@dataclass(frozen=True)
class Single(Stationary):
    name = "usersingle"

    def at_lag(self, lag):
        return np.exp(-lag).astype(np.float32)


@dataclass(frozen=True)
class SingleEverywhere(Kernel):
    name = "usersingleeverywhere"

    def correlation(self, a, b):
        return np.exp(-np.abs(np.asarray(a) - np.asarray(b), dtype=np.float32))


@dataclass(frozen=True)
class Nothing(Stationary):
    name = "usernan"

    def at_lag(self, lag):
        return np.where(lag == 0, 1.0, np.nan)


@dataclass(frozen=True)
class Lopsided(Kernel):
    name = "userlopsided"

    def correlation(self, a, b):
        return np.where(np.asarray(a) == b, 1.0, np.where(np.asarray(a) < b, 0.2, 0.3))


@dataclass(frozen=True)
class Heavy(Stationary):
    name = "userheavy"

    def at_lag(self, lag):
        return np.where(lag == 0, 2.0, 0.0)


def test_a_users_kernel_works_by_definition():
    assert parse("usertriangle:4") == Triangle(4.0)
    assert {"usertriangle", "userwarped"} <= set(known_kernels())
    np.testing.assert_allclose(Prompt(2, 6, "usertriangle:4").joint, Prompt(2, 6, "ma:3").joint)
    mixed = Prompt(2, 6, "0.5*usertriangle:4+0.5*exp:2", "continues")
    np.testing.assert_allclose(mixed.joint, 0.5 * Triangle(4.0).matrix(7) + 0.5 * Exponential(2.0).matrix(7))
    warped = Prompt(2, 5, "userwarped:2*iid", "continues")
    np.testing.assert_allclose(warped.joint, np.eye(6))
    ratio = np.minimum.outer(np.arange(1, 7), np.arange(1, 7)) / np.maximum.outer(np.arange(1, 7), np.arange(1, 7))
    np.testing.assert_allclose(Prompt(2, 5, Warped(2.0), "continues").joint, ratio**2, rtol=1e-13)


def test_a_users_kernel_is_simulated():
    from corricl import simulate
    from corricl.prompt import Pretraining

    found = [
        simulate.risk(Pretraining(Prompt(6, 12, spec, "continues", 0.1), 200, 9), 0.1, replicates=2).icl
        for spec in ("usertriangle:4", "ma:3")
    ]
    assert found[0] == found[1]


def test_a_name_belongs_to_one_class():
    with pytest.raises(InputError, match="kernel name 'exp' is taken by Exponential"):
        type("Mine", (Stationary,), {"name": "exp"})


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("usersingle", "float64 correlations, not float32"),
        ("usersingleeverywhere", "float64"),
        ("0.5*usersingleeverywhere+0.5*iid", "float64"),
        ("usersingleeverywhere*exp:2", "float64"),
        ("usernan", "finite float64"),
        ("userlopsided", r"must be symmetric; it is off by 0\.1"),
        ("userheavy", "unit diagonal; it is off by 1"),
        ("usernegative", r"not positive semidefinite at length 4: its smallest joint eigenvalue is -2\.2"),
        ("equi:-0.5", r"smallest joint eigenvalue is -1"),
        ("0.5*usernegative+0.5*iid", "smallest joint eigenvalue is -0.6"),
    ],
)
def test_an_unusable_kernel_is_refused(spec, sentence):
    with pytest.raises(InputError, match=sentence):
        Prompt(3, 4, spec, "continues")


# ---- bad input


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("exp:-1", r"'exp:-1' is not allowed: XI must be >= 0"),
        ("exp:nan", "XI must be >= 0"),
        ("ar1:1.2", r"PHI must lie in \[-1, 1\]"),
        ("power:-1", "GAMMA must be >= 0"),
        ("matern:0,1", "NU must lie in"),
        ("matern:1,inf", "L in"),
        ("sqexp:0", "L must lie in"),
        ("cosine:inf,1", "OMEGA must be finite"),
        ("cosine:1,0", "XI > 0"),
        ("equi:2", r"C must lie in \[-1, 1\]"),
        ("ma:1.5", "Q must be an integer"),
        ("blocks:0", "B must be an integer >= 1"),
        ("exp", r"is written exp:XI; got 'exp:'"),
        ("exp:1,2", r"is written exp:XI; got"),
        ("exp:five", r"is written exp:XI with numbers"),
        ("iid:3", "is written iid; got"),
        ("", "unknown kernel ''"),
        ("0.5*exp:2", "add up to 0.5; they must add up to 1"),
        ("exp:2+iid", "add up to 2"),
        ("-0.5*exp:2+1.5*iid", "unknown kernel '-0.5'"),
        ("0.5+0.5*iid", "a term without a kernel"),
        ("file:", r"written file:PATH"),
        ("file:nowhere.npy", "does not exist"),
        ("file:matrix.txt", "must end in .npy or .csv"),
    ],
)
def test_bad_kernel_specs_say_what_is_allowed(spec, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        parse(spec)
    assert "\n" not in str(caught.value)


def test_an_unknown_kernel_lists_the_known_ones():
    with pytest.raises(InputError, match="unknown kernel 'expo' in 'expo:3'") as caught:
        parse("expo:3")
    families = ("ar1", "blocks", "cosine", "equi", "exp", "file", "iid", "ma", "matern", "power", "sqexp")
    assert all(family in str(caught.value).partition("known kernels:")[2] for family in families)


def test_sums_are_built_before_they_are_products():
    a, b, c = parse("exp:2"), parse("iid"), parse("equi:0.5")
    with pytest.raises(InputError, match="write a\\*b \\+ a\\*c"):
        a * (0.5 * b + 0.5 * c)
    with pytest.raises(InputError, match=">= 0"):
        -0.5 * a
    with pytest.raises(TypeError):
        a + 1
    with pytest.raises(TypeError):
        a * "iid"
    assert (0.5 * (0.5 * a + 0.5 * b) + 0.5 * c).weights == (0.25, 0.25, 0.5)


@pytest.mark.parametrize(
    "query", ["gap:0", "gap:1.5", "strength:1.2", "strength:-1", "strength:nan", "next", "gap", "vector:"]
)
def test_bad_queries_say_what_is_allowed(query):
    with pytest.raises(InputError, match="query"):
        Query.parse(query)


def write(tmp_path, array, name="kernel.npy"):
    path = tmp_path / name
    if name.endswith(".npy"):
        np.save(path, array)
    else:
        np.savetxt(path, array, delimiter=",")
    return str(path)


@pytest.mark.parametrize("file", ["kernel.npy", "kernel.csv"])
def test_a_matrix_from_a_file_is_context_or_joint_by_the_length(tmp_path, file):
    joint = Exponential(2.0).matrix(6)
    path = write(tmp_path, joint, file)
    with_query = Prompt(3, 5, f"file:{path}")
    np.testing.assert_allclose(with_query.joint, joint, atol=1e-15)
    context = Prompt(3, 6, f"file:{path}")
    np.testing.assert_allclose(context.kernel.matrix(6), joint, atol=1e-15)
    assert not context.query_vector.any()
    k = vector_query(Exponential(2.0), 6)
    given_query = Prompt(3, 6, f"file:{path}", f"vector:{write(tmp_path, k, 'query.csv')}")
    np.testing.assert_allclose(given_query.query_vector, k)
    np.testing.assert_allclose(given_query.statistics, (k @ k, k @ joint @ k, (joint * joint).sum() / 6))
    mixed = Prompt(3, 5, f"0.5*file:{path}+0.5*iid")
    np.testing.assert_allclose(mixed.joint, (joint + np.eye(6)) / 2, atol=1e-15)


def test_matrices_stored_in_float32_are_used_in_float64(tmp_path):
    joint = Exponential(8.0).matrix(30).astype(np.float32)
    prompt = Prompt(3, 29, f"file:{write(tmp_path, joint)}")
    assert prompt.joint.dtype == np.float64
    np.testing.assert_array_equal(prompt.joint, joint.astype(np.float64))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda m: np.where(np.eye(5) > 0, 1, -0.6), "not positive semidefinite.*eigenvalue is -1.4"),
        (lambda m: m[:4], r"must be square; its shape is \(4, 5\)"),
        (lambda m: m[0], "must be square"),
        (lambda m: np.where(m == 1, np.nan, m), "NaN"),
        (lambda m: np.where(m == 1, np.inf, m), "infinite"),
        (lambda m: 2 * m, "unit diagonal; it is off by 1"),
        (lambda m: m + 0.1 * np.tri(5, k=-1), r"symmetric; it is off by 0\.1"),
        (lambda m: np.zeros((0, 0)), "empty"),
        (lambda m: Exponential(2.0).matrix(7), "kernel 'file:.*' is 7x7; length 5 needs 5x5, or 6x6"),
    ],
)
@pytest.mark.parametrize("file", ["kernel.npy", "kernel.csv"])
def test_unusable_matrices_are_refused_in_one_sentence(tmp_path, change, sentence, file):
    path = write(tmp_path, np.atleast_1d(change(Exponential(2.0).matrix(5))), file)
    with pytest.raises(InputError, match=sentence) as caught:
        Prompt(3, 5, f"file:{path}")
    assert "\n" not in str(caught.value)


def test_files_that_hold_no_numbers_are_refused(tmp_path):
    words = tmp_path / "words.csv"
    words.write_text("a,b\nc,d\n")
    with pytest.raises(InputError, match="not a table of numbers"):
        parse(f"file:{words}")
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="not a table of numbers"):
        parse(f"file:{tmp_path / 'objects.npy'}")
    np.save(tmp_path / "complex.npy", np.eye(2) + 0j)
    with pytest.raises(InputError, match="not a table of numbers"):
        parse(f"file:{tmp_path / 'complex.npy'}")
    (tmp_path / "text.npy").write_text("not a npy file")
    with pytest.raises(InputError, match="not a table of numbers"):
        parse(f"file:{tmp_path / 'text.npy'}")
