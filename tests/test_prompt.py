"""The nouns: sizes, rounding, queries, the eigenbasis, and what is refused."""

import math

import numpy as np
import pytest
from helpers import KERNELS, QUERIES, SINGULAR, random_joint, vector_query, zoo
from hypothesis import given
from hypothesis import strategies as st

from corricl.errors import InputError
from corricl.kernels import Exponential, Query, Tabulated, parse
from corricl.numerics import eigen
from corricl.prompt import Pretraining, Prompt, size_of_ratio


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"d": 0}, "d must be an integer >= 1; got 0"),
        ({"d": 2.5}, "d must be an integer >= 1"),
        ({"d": True}, "d must be an integer"),
        ({"d": "3"}, "d must be an integer"),
        ({"length": 0}, "length must be an integer >= 1; got 0"),
        ({"length": -4}, "length must be an integer >= 1"),
        ({"length": math.nan}, "length must be an integer >= 1"),
        ({"noise": -0.1}, "noise must be finite and >= 0; got -0.1"),
        ({"noise": math.nan}, "noise must be finite"),
        ({"noise": math.inf}, "noise must be finite"),
        ({"query": np.ones(3)}, "query vector has 3 entries; the context has 8 tokens"),
        ({"query": np.full(8, 0.9)}, "not positive semidefinite.*eigenvalue is -1.54558"),
        ({"query": np.full(8, math.nan)}, "finite float64"),
        ({"query": np.ones((2, 4))}, "one dimension"),
        ({"kernel": "exp:-2"}, "XI must be >= 0"),
        ({"kernel": Tabulated(np.eye(9)), "query": "independent"}, "already holds the query"),
        ({"kernel": Tabulated(np.eye(8)), "query": "continues"}, "use independent or vector"),
        ({"kernel": Tabulated(np.eye(8)), "query": "gap:2"}, "use independent or vector"),
        ({"kernel": Tabulated(np.eye(7))}, "is 7x7; length 8 needs 8x8, or 9x9"),
        ({"kernel": 0.5 * Tabulated(np.eye(8)) + 0.5 * Tabulated(np.eye(9))}, "different sizes"),
        ({"kernel": 0.5 * parse("exp:2")}, "add up to 0.5"),
    ],
)
def test_bad_prompts_are_refused_in_one_sentence(changes, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        Prompt(**({"d": 4, "length": 8} | changes)).joint  # noqa: B018 - a lone mixture is checked on use
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("tasks", [0, -1, 1.5, math.nan, -math.inf])
def test_bad_numbers_of_tasks_and_sequences_are_refused(tasks):
    prompt = Prompt(4, 8)
    with pytest.raises(InputError, match="tasks must be an integer >= 1"):
        Pretraining(prompt, 10, tasks)
    with pytest.raises(InputError, match="sequences must be an integer >= 1"):
        Pretraining(prompt, tasks)


def test_unbounded_tasks_are_one_value():
    prompt = Prompt(4, 8)
    assert Pretraining(prompt, 10, math.inf) == Pretraining(prompt, 10) == Pretraining(prompt, 10, None)
    assert Pretraining(prompt, 10).kappa == math.inf
    assert (Pretraining(prompt, 32, 6).tau, Pretraining(prompt, 32, 6).kappa) == (2.0, 1.5)


@given(st.integers(1, 5000), st.integers(1, 400))
def test_sizes_of_decimal_ratios_are_rounded_half_up(hundredths, d):
    exact, half = divmod(hundredths * d, 100)
    expected = exact + (half >= 50)
    if expected:
        assert size_of_ratio(hundredths / 100, d, "alpha") == expected
    else:
        with pytest.raises(InputError, match="gives a size of 0"):
            size_of_ratio(hundredths / 100, d, "alpha")


def test_ratios_become_sizes_and_are_then_recomputed():
    made = Pretraining.from_ratios(10, alpha=1.25, tau=0.999, kappa=0.55, kernel="exp:2", query="continues", noise=0.1)
    assert (made.prompt.length, made.sequences, made.tasks) == (13, 100, 6)
    assert (made.prompt.alpha, made.tau, made.kappa) == (1.3, 1.0, 0.6)
    assert (made.prompt.kernel, made.prompt.query, made.prompt.noise) == (Exponential(2.0), Query(), 0.1)
    assert Pretraining.from_ratios(10, 1, 1).tasks is None
    for bad in ({"alpha": 0}, {"alpha": -1}, {"tau": math.nan}, {"kappa": 0}, {"alpha": math.inf}):
        with pytest.raises(InputError, match="must be finite and > 0"):
            Pretraining.from_ratios(10, **({"alpha": 1, "tau": 1} | bad))


@pytest.mark.parametrize("spec", KERNELS)
def test_the_eigenbasis_gives_back_the_matrix_and_the_query(spec):
    for query in (*QUERIES, vector_query(parse(spec), 9, seed=3)):
        prompt = Prompt(3, 9, spec, query)
        vectors = eigen(prompt.kernel.matrix(9)).vectors
        basis = prompt.basis
        assert np.all(basis.eigenvalues >= 0)
        np.testing.assert_allclose(vectors * basis.eigenvalues @ vectors.T, prompt.kernel.matrix(9), atol=1e-11)
        np.testing.assert_allclose(vectors @ basis.query, prompt.query_vector, atol=1e-9)
        assert not basis.query[basis.eigenvalues == 0].any()
        k0, k1, k2 = prompt.statistics
        assert np.square(basis.query).sum() == pytest.approx(k0, rel=1e-9, abs=1e-12)
        assert (basis.eigenvalues * np.square(basis.query)).sum() == pytest.approx(k1, rel=1e-9, abs=1e-12)
        assert np.square(basis.eigenvalues).sum() / 9 == pytest.approx(k2, rel=1e-9)


@pytest.mark.parametrize("spec", SINGULAR)
def test_directions_of_rounding_are_exact_zeros(spec):
    basis = Prompt(3, 12, spec, "continues").basis
    rank = {"cosine:0.3,inf": 2, "blocks:3": 4}.get(spec, 1)
    assert np.count_nonzero(basis.eigenvalues) == rank


def test_the_zoo_is_valid():
    for prompt in zoo(4, 10, queries=QUERIES):
        assert np.linalg.eigvalsh(prompt.joint)[0] > -1e-10


def test_a_query_given_as_an_array_needs_no_file():
    k = vector_query(parse("power:0.4"), 6)
    prompt = Prompt(3, 6, "power:0.4", k)
    np.testing.assert_array_equal(prompt.query_vector, k)
    assert prompt.query.spec == "vector:<array>"
    assert Prompt(3, 6, "iid", np.zeros((6, 1))).query.is_independent


def test_copies_keep_the_query_of_a_joint_matrix():
    prompt = Prompt(3, 5, Tabulated(random_joint(6)), noise=0.1)
    again = prompt.replace(noise=0.5)
    assert (again.noise, again.kernel, again.d) == (0.5, prompt.kernel, 3)
    np.testing.assert_array_equal(again.joint, prompt.joint)
    assert Prompt(3, 5, "exp:2", "continues").replace(length=9).joint.shape == (10, 10)


def test_prompts_are_equal_by_value_and_usable_as_keys():
    assert Prompt(3, 5, "exp:2", "continues") == Prompt(3, 5, Exponential(2.0), Query())
    assert len({Prompt(3, 5, "exp:2"), Prompt(3, 5, Exponential(2.0)), Prompt(3, 5, "exp:3")}) == 2
    one, other = (Prompt(3, 5, Tabulated(random_joint(6, seed=s))) for s in (0, 1))
    assert one != other
    assert one == Prompt(3, 5, Tabulated(random_joint(6, seed=0)))
