"""The predictors whose optima the theory gives: what they compute, and that simulation finds the predicted errors."""

import math

import numpy as np
import pytest
from helpers import draw_contexts

from corricl import InputError, Prompt, simulate, theory
from corricl.simulate import context_ridge, softmax, weighted_linear

PROMPTS = {
    "exp": Prompt(8, 20, "exp:3", "continues", 0.1),
    "alternating": Prompt(8, 20, "ar1:-0.7", "gap:2", 0.3),
}
SIZE = 40000
KERNELS = [
    ("iid", "independent"),
    ("exp:4", "continues"),
    ("ar1:-0.7", "continues"),
    ("power:0.7", "independent"),
    ("blocks:3", "continues"),
    ("equi:0.4", "strength:0.5"),
]


@pytest.fixture(scope="module")
def drawn():
    """One set of prompts for each law, for all methods."""
    return {name: next(simulate.batches(p, seed=11, batch=SIZE)) for name, p in PROMPTS.items()}


def loss(predictor, prompts):
    """Squared errors on drawn prompts, shape (n,)."""
    return np.square(prompts.target - predictor(prompts.x, prompts.y, prompts.query))


def test_predictors_are_what_they_say():
    """Literal sums over tokens, one prompt at a time."""
    rng = np.random.default_rng(0)
    x, y, query = rng.standard_normal((3, 5, 4)), rng.standard_normal((3, 5)), rng.standard_normal((3, 4))
    weights = rng.standard_normal(5)
    for m in range(3):
        scores = [sum(x[m, a] * query[m]) for a in range(5)]
        linear = sum(weights[a] * y[m, a] * scores[a] for a in range(5))
        p = np.array([math.exp(-1.3 * z) for z in scores])
        averaged = 0.6 * sum(p * y[m]) / sum(p)
        inverse = np.linalg.inv(x[m].T @ x[m] + 0.4 * np.eye(4))
        ridge = query[m] @ inverse @ x[m].T @ y[m]
        assert weighted_linear(weights)(x, y, query)[m] == pytest.approx(linear, rel=1e-12)
        assert softmax(-1.3, 0.6)(x, y, query)[m] == pytest.approx(averaged, rel=1e-12)
        assert context_ridge(0.4)(x, y, query)[m] == pytest.approx(ridge, rel=1e-10)
    assert weighted_linear(0.7)(x, y, query) == pytest.approx(weighted_linear(np.full(5, 0.7))(x, y, query))


def test_softmax_survives_large_scores():
    x, y = np.array([[[1.0], [0.5]]]), np.array([[2.0, 3.0]])
    assert softmax(1e5, 1.0)(x, y, np.array([[1.0]])) == pytest.approx([2.0])
    assert softmax(-1e5, 1.0)(x, y, np.array([[1.0]])) == pytest.approx([3.0])


def test_context_ridge_without_penalty_is_least_squares_of_least_norm():
    rng = np.random.default_rng(1)
    for length in (3, 9):
        x, y, query = rng.standard_normal((2, length, 5)), rng.standard_normal((2, length)), np.eye(5)[:2]
        expected = [np.linalg.lstsq(x[m], y[m], rcond=None)[0] @ query[m] for m in range(2)]
        np.testing.assert_allclose(context_ridge(0.0)(x, y, query), expected, rtol=1e-9)


@pytest.mark.parametrize("law", PROMPTS)
@pytest.mark.parametrize("method", theory.PROMPT_METHODS)
def test_simulation_at_the_optimum_has_the_predicted_error(method, law, drawn):
    prompt = PROMPTS[law]
    losses = loss(simulate.optimal(method, prompt), drawn[law])
    predicted = theory.risk(prompt, method=method)
    stderr = losses.std(ddof=1) / math.sqrt(len(losses))
    assert stderr < 0.012 * losses.mean()
    bias = 0.01 * predicted.icl if method == "bayes" else 4 * predicted.details.get("numerical_error", 0.0)
    assert abs(losses.mean() - predicted.icl) < 4 * stderr + bias


@pytest.mark.parametrize("law", PROMPTS)
def test_the_optimum_beats_its_neighbours_on_the_same_prompts(law, drawn):
    """Paired differences: nothing near an optimum may be better by more than chance."""
    prompt = PROMPTS[law]
    best = {method: loss(simulate.optimal(method, prompt), drawn[law]) for method in theory.PROMPT_METHODS}
    weights = theory.positional(prompt).details["weights"]
    scale = theory.risk(prompt, method="linear").details["scale"] * prompt.d / prompt.length
    pair = theory.softmax(prompt).details
    bumped = weights * (1 + 0.5 * np.cos(np.arange(prompt.length)))
    rivals = [("positional", weighted_linear(bumped)), ("linear", weighted_linear(1.3 * scale))]
    rivals += [("softmax", softmax(f * pair["beta"], pair["value"])) for f in (0.4, 2.5)]
    rivals += [("bayes", context_ridge(f * prompt.noise)) for f in (0.1, 10.0)]
    for method, rival in rivals:
        gap = loss(rival, drawn[law]) - best[method]
        stderr = gap.std(ddof=1) / math.sqrt(len(gap))
        assert gap.mean() > 3 * stderr, (method, law)


def test_each_class_contains_the_one_below(drawn):
    """No predictor passes the floor, and position weights never lose to plain linear attention."""
    for law, prompt in PROMPTS.items():
        losses = {method: loss(simulate.optimal(method, prompt), drawn[law]) for method in theory.PROMPT_METHODS}
        for worse, better in (("linear", "positional"), ("positional", "bayes"), ("softmax", "bayes")):
            gap = losses[worse] - losses[better]
            assert gap.mean() > 3 * gap.std() / math.sqrt(SIZE), (worse, better, law)


def floors(prompt, contexts, seed):
    """The floor given each context; x_t = X'u + (rest of variance `unexplained`/d) is averaged by hand."""
    x = draw_contexts(prompt, contexts, seed)[0]
    inverse = np.linalg.inv(np.matmul(x.transpose(0, 2, 1), x) + prompt.noise * np.eye(prompt.d))
    u = np.linalg.pinv(prompt.kernel.matrix(prompt.length), rcond=1e-12) @ prompt.query_vector
    unexplained, seen = 1 - u @ prompt.query_vector, u @ x
    fresh = unexplained * np.trace(inverse, axis1=1, axis2=2) / prompt.d
    return prompt.noise * (1 + fresh + np.einsum("mi,mij,mj->m", seen, inverse, seen))


@pytest.mark.parametrize(("kernel", "query"), KERNELS)
@pytest.mark.parametrize(("alpha", "noise"), [(1.5, 0.01), (0.75, 0.1)])
def test_the_floor_within_one_and_a_half_per_cent(kernel, query, alpha, noise):
    prompt = Prompt(24, round(24 * alpha), kernel, query, noise)
    found = floors(prompt, 3000, seed=5)
    stderr = found.std(ddof=1) / math.sqrt(len(found))
    assert 3 * stderr < 0.015 * found.mean()
    assert theory.bayes(prompt).icl == pytest.approx(found.mean(), rel=0.015)


def test_refusals():
    with pytest.raises(InputError, match="unknown method"):
        simulate.optimal("magic", PROMPTS["exp"])
    with pytest.raises(InputError, match="Pretraining"):
        simulate.optimal("mixture", PROMPTS["exp"])
