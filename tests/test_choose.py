"""Prompt choice: the exact error of a known prompt, its fast updates, the search, and the command."""

import itertools
import json

import numpy as np
import pytest

from corricl import InputError, Prompt, simulate, theory
from corricl.measure import choose, prepare, prompt_risk, selector
from corricl.measure._choose_models import Candidates, Ridge, Softmax, Weighted, model_of
from corricl.measure._choose_search import error_of, fill, nearest, search

LAWS = {
    "linear": Prompt(5, 4, noise=0.3),
    "positional": Prompt(5, 4, "exp:3", "continues", noise=0.3),
    "softmax": Prompt(5, 4, noise=0.3),
    "bayes": Prompt(5, 4, noise=0.3),
}


def pool_of(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return Candidates.of(rng.normal(size=(n, d)) / d**0.5, rng.normal(size=d) / d**0.5)


def model(method):
    return model_of(theory.risk(LAWS[method], method=method), LAWS[method])


def with_zero(method):
    """The same without noise, where ridge regression is a projection."""
    law = LAWS[method].replace(noise=0.0)
    return model_of(theory.risk(law, method=method), law)


def test_error_of_a_known_prompt_is_the_quadratic_form_of_the_labels_covariance():
    rng = np.random.default_rng(1)
    x, query, g, noise = rng.normal(size=(7, 3)), rng.normal(size=3), rng.normal(size=7), 0.4
    labels = x @ x.T + noise * np.eye(7)  # E y y' given the tokens
    expected = query @ query + noise - 2 * g @ x @ query + g @ labels @ g
    assert prompt_risk(g, x, query, noise) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("method", LAWS)
def test_models_read_prompts_as_the_simulated_predictors_do(method):
    pool, law = pool_of(20, 5), LAWS[method]
    x = pool.points[:4]
    predict = simulate.optimal(method, law)  # linear in the labels: unit vectors show its coefficients
    expected = predict(np.tile(x, (4, 1, 1)), np.eye(4), np.tile(pool.query, (4, 1)))
    np.testing.assert_allclose(model(method).coefficients(x, pool.query), expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("method", LAWS)
def test_predicted_error_of_a_choice_is_the_mean_over_drawn_tasks_and_labels(method):
    law = LAWS[method]
    rng = np.random.default_rng(3)
    pool, query = rng.normal(size=(40, 5)) @ rng.normal(size=(5, 5)) + 2, rng.normal(size=5) + 2
    options = {"method": method, "noise": law.noise, "kernel": law.kernel.spec, "law_query": law.query.spec}
    ready = selector(pool, 4, **options)
    found = ready.choose(query, draws=2)
    x, token = ready.points[found.chosen.examples], ready.space.tokens(query)
    w = rng.normal(size=(40_000, 5))
    y = w @ x.T + law.noise**0.5 * rng.normal(size=(len(w), 4))
    target = w @ token + law.noise**0.5 * rng.normal(size=len(w))
    guess = simulate.optimal(method, law)(np.broadcast_to(x, (len(w), 4, 5)), y, np.broadcast_to(token, w.shape))
    errors = np.square(target - guess)
    stderr = errors.std() / len(w) ** 0.5
    assert stderr < 0.01 * found.chosen.icl
    assert abs(errors.mean() - found.chosen.icl) < 4 * stderr


@pytest.mark.parametrize("make", [model, with_zero])
@pytest.mark.parametrize("method", LAWS)
@pytest.mark.parametrize("start", [(3, 7, 0, 9), (-1, -1, 7, -1), (2, -1, 7, 4)])
def test_trial_is_the_error_with_each_candidate_in_the_slot(make, method, start):
    pool, reader, prompt = pool_of(12, 5), make(method), np.array(start)
    for slot in range(4):
        full = prompt.copy()
        full[slot] = 0
        slots = np.flatnonzero(full >= 0)
        weights = reader.weights[slots]
        part = {
            Weighted: lambda w: Weighted(w, reader.noise),
            Softmax: lambda w: Softmax(reader.beta, reader.value, w, reader.noise),
            Ridge: lambda w: Ridge(w, reader.noise),
        }[type(reader)](weights)
        expected = []
        for candidate in range(12):
            full[slot] = candidate
            expected.append(error_of(part, pool, full[slots]))
        np.testing.assert_allclose(reader.trial(pool, prompt, slot), expected, rtol=1e-9, atol=1e-12)


def test_softmax_of_extreme_scores_stays_finite():
    pool, prompt = pool_of(30, 5), np.array([4, 1, 2, 3])
    for beta in (-1e5, 1e5):
        sharp = Softmax(beta, 1.0, np.ones(4), 0.1)
        errors = sharp.trial(pool, prompt, 0)
        assert np.isfinite(errors).all()
        assert errors[4] == pytest.approx(error_of(sharp, pool, prompt))


def test_exchange_is_the_change_of_the_error():
    pool, reader, prompt = pool_of(12, 5), model("positional"), np.array([3, 7, 0, 9])
    change, error = reader.exchange(pool, prompt), error_of(reader, pool, prompt)
    for i, j in itertools.product(range(4), repeat=2):
        other = prompt.copy()
        other[[i, j]] = other[[j, i]]
        assert change[i, j] == pytest.approx(error_of(reader, pool, other) - error, abs=1e-13)


@pytest.mark.parametrize("method", LAWS)
def test_search_comes_near_the_best_of_all_prompts(method):
    reader, ratios = model(method), []
    for seed in range(12):
        pool = pool_of(9, 5, seed)
        groups = itertools.permutations(range(9), 4) if method == "positional" else itertools.combinations(range(9), 4)
        best = min(error_of(reader, pool, np.array(group)) for group in groups)
        starts = fill(reader, pool), nearest(pool, 4)
        ratios.append(min(error_of(reader, pool, search(reader, pool, start)) for start in starts) / best)
    ratios = np.array(ratios)
    assert (ratios > 1 - 1e-9).all()
    assert (ratios < 1 + 1e-9).mean() > 0.6
    assert ratios.max() < 1.1


@pytest.mark.parametrize("method", LAWS)
def test_no_single_exchange_helps_and_the_nearest_are_not_better(method):
    pool, reader = pool_of(60, 5, 5), model(method)
    for start in (fill(reader, pool), nearest(pool, 4)):
        found = search(reader, pool, start)
        error = error_of(reader, pool, found)
        assert error <= error_of(reader, pool, start) * (1 + 1e-12)
        assert len(set(found)) == 4
        for slot in range(4):
            errors = np.delete(reader.trial(pool, found, slot), found)
            assert errors.min() > error - 1e-10
    if method == "positional":
        assert reader.exchange(pool, found).min() > -1e-10


def test_the_better_of_both_starts_is_chosen():
    differ = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        ready, query = selector(rng.normal(size=(40, 5)), 4, method="bayes", noise=0.3), rng.normal(size=5)
        tokens, reader = ready._tokens(query), ready._model
        ends = [
            error_of(reader, tokens, search(reader, tokens, start))
            for start in (fill(reader, tokens), nearest(tokens, 4))
        ]
        assert ready.choose(query, draws=2).chosen.icl == pytest.approx(min(ends), rel=1e-12)
        differ += abs(ends[0] - ends[1]) > 1e-6
    assert differ


@pytest.mark.parametrize("method", ["linear", "softmax", "bayes"])
def test_random_prompts_have_the_error_of_the_theory(method):
    law, rng = Prompt(6, 8, noise=0.2), np.random.default_rng(8)
    expected = theory.risk(law, method=method)
    reader, errors = model_of(expected, law), []
    for _ in range(4000):
        x, query = rng.normal(size=(8, 6)) / 6**0.5, rng.normal(size=6) / 6**0.5
        errors.append(prompt_risk(reader.coefficients(x, query), x, query, 0.2))
    stderr = np.std(errors) / len(errors) ** 0.5
    assert stderr < 0.015 * expected.icl
    slack = 0.01 if method == "bayes" else 0.0  # an equivalent, exact only as d grows
    assert abs(np.mean(errors) - expected.icl) < 4 * stderr + slack


def test_copies_in_the_pool_fool_the_nearest_and_not_the_choice():
    rng = np.random.default_rng(2)
    d, query = 8, rng.normal(size=8)
    near = query + 0.9 * rng.normal(size=d)
    pool = np.vstack([np.tile(near, (6, 1)), rng.normal(size=(120, d))])
    found = choose(pool, query, 4, method="bayes", noise=0.01, preparation="none", draws=2)
    assert set(found.nearest.examples) <= set(range(6))
    assert sum(row < 6 for row in found.chosen.examples) <= 1
    assert found.chosen.icl < 0.5 * found.nearest.icl


def test_without_noise_enough_examples_leave_no_error():
    pool = np.random.default_rng(4).normal(size=(30, 5))
    found = choose(pool, pool[0] + 0.1, 6, method="bayes", noise=0.0, draws=2)
    assert found.chosen.icl == pytest.approx(0, abs=1e-20)
    assert found.chosen.icl >= 0


def test_position_weights_decide_the_order():
    rng = np.random.default_rng(9)
    options = {"method": "positional", "noise": 0.1, "kernel": "exp:10", "law_query": "continues"}
    ready = selector(rng.normal(size=(80, 8)), 6, **options)
    weights = theory.positional(ready.law).details["weights"]
    query = rng.normal(size=8)
    order = ready.examples(query)
    found = ready.choose(query, draws=2)
    np.testing.assert_array_equal(order, found.chosen.examples)
    x, token = ready.points[order], ready.space.tokens(query)
    errors = [
        prompt_risk(weights * (x[p] @ token), x[p], token, 0.1) for p in map(list, itertools.permutations(range(6)))
    ]
    assert errors[0] == pytest.approx(found.chosen.icl)
    assert min(errors) > 0.99 * errors[0]
    assert np.mean(errors) > 1.1 * errors[0]


# Embeddings to tokens


def test_whitening_gives_tokens_of_one_variance_and_undoes_any_linear_map():
    rng = np.random.default_rng(6)
    z, query = rng.normal(size=(3000, 4)), rng.normal(size=4)
    stretch = np.tri(4) * np.array([1, 3, 0.5, 1])[:, None]
    space = prepare(z @ stretch + 7)
    assert space.shrinkage < 0.02
    tokens = space.tokens(z @ stretch + 7)
    np.testing.assert_allclose(tokens.mean(0), 0, atol=1e-12)
    assert np.square(tokens).sum(1).mean() == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(tokens.T @ tokens / 3000, np.eye(4) / 4, atol=0.02)
    raw = choose(z @ stretch + 7, query @ stretch + 7, 5, noise=0.1, draws=2)
    plain = choose(z, query, 5, noise=0.1, draws=2)
    assert raw.chosen.icl == pytest.approx(plain.chosen.icl, rel=0.1)
    units = np.array([1, 1e3, 1e-6, 5])  # of the channels: no matter at all
    np.testing.assert_allclose(prepare(z * units).tokens(query * units), prepare(z).tokens(query), rtol=1e-9)


def test_whitening_is_that_of_ledoit_and_wolf():
    from sklearn.covariance import LedoitWolf

    spread = np.arange(1, 7)
    pool = np.random.default_rng(3).normal(size=(30, 6)) @ np.tri(6)
    space = prepare(pool * spread)
    fitted = LedoitWolf().fit(pool / pool.std(0))
    assert space.shrinkage == pytest.approx(fitted.shrinkage_)
    half = space.matrix * (spread * pool.std(0))[:, None]
    ours = half @ half.T  # S^{-1}, scaled
    np.testing.assert_allclose(ours / np.trace(ours), fitted.precision_ / np.trace(fitted.precision_), rtol=1e-9)


def test_constant_channels_are_dropped_and_counted():
    pool = np.random.default_rng(3).normal(size=(50, 4))
    pool[:, 2] = 5
    for preparation in ("whiten", "centre"):
        space = prepare(pool, preparation)
        assert (space.d, space.dropped) == (3, 1)
    assert prepare(pool, "none").d == 4
    spread = prepare(np.diag([1.0, 1, 0]) @ np.ones((3, 3)) * [[1], [-1], [0]], "centre")
    assert spread.effective_dimension == pytest.approx(1)


def test_cautions_name_what_makes_the_numbers_doubtful():
    rng = np.random.default_rng(1)
    codes = lambda found: {caution.code for caution in found.warnings}  # noqa: E731
    pool = rng.normal(size=(20, 8))
    assert codes(choose(pool, pool[0], 2, draws=2)) == {"few_candidates"}
    assert codes(choose(pool, 9 * pool[0], 2, draws=2, preparation="centre")) == {"outlying_query"}
    assert codes(choose(pool, pool[0], 2, draws=2, preparation="none")) == {"scale"}
    assert codes(choose(pool, pool[0], 2, draws=2, preparation="centre")) == set()


POOL = np.random.default_rng(0).normal(size=(20, 3))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pool": POOL[0]}, "the pool must have shape"),
        ({"pool": POOL[:3]}, "cannot choose 4 examples from a pool of 3"),
        ({"pool": np.where(POOL > 1, np.nan, POOL)}, "NaN or infinite"),
        ({"pool": POOL.astype(str)}, "must hold real numbers"),
        ({"pool": np.ones((20, 3))}, "constant"),
        ({"pool": np.array([[1.0, 2, 3], [3, 1, 2]]), "m": 1}, "singular"),
        ({"query": np.ones(4)}, "one embedding of 3 channels"),
        ({"query": POOL}, "one embedding of 3 channels"),
        ({"query": np.full(3, np.inf)}, "NaN or infinite"),
        ({"m": 0}, "m must be an integer >= 1"),
        ({"method": "auto"}, "unknown method 'auto'; allowed: linear"),
        ({"noise": -1.0}, "noise must be"),
        ({"preparation": "pca"}, "unknown preparation 'pca'; allowed: whiten, centre, none"),
        ({"draws": 1}, "draws must be at least 2"),
        ({"kernel": "nope"}, "nope"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(change, words):
    given = {"pool": POOL, "query": np.ones(3), "m": 4, **change}
    with pytest.raises(InputError, match=words):
        choose(given.pop("pool"), given.pop("query"), given.pop("m"), **given)


# The command


@pytest.fixture
def files(tmp_path):
    np.save(tmp_path / "pool.npy", POOL)
    np.savetxt(tmp_path / "query.csv", POOL[:1] + 0.1, delimiter=",")
    np.savez(tmp_path / "pool.npz", embeddings=POOL)
    np.savez(tmp_path / "two.npz", a=POOL, b=POOL)
    return tmp_path


def test_command_prints_the_choice_of_the_library(run, files):
    words = ["choose", files / "pool.npy", "--query", files / "query.csv", "--choose", 4, "--noise", 0.1, "--seed", 3]
    code, out, _ = run(*words, "--json")
    found, expected = json.loads(out), choose(POOL, POOL[0] + 0.1, 4, noise=0.1, seed=3)
    assert code == 0
    assert found["chosen"]["examples"] == expected.chosen.examples.tolist()
    assert found["chosen"]["icl"] == expected.chosen.icl
    assert found["random"] == expected.random._asdict()
    assert found["law"] == {"d": 3, "length": 4, "kernel": "iid", "query": "independent", "noise": 0.1}
    words[1] = files / "pool.npz"
    code, text, _ = run(*words)
    assert code == 0
    assert f"chosen: {' '.join(map(str, expected.chosen.examples))}\n" in text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.npz", "does not exist"),
        ("missing.npy", "does not exist"),
        ("two.npz", "must hold one array"),
        ("pool.txt", "must end in .npy"),
    ],
)
def test_bad_files_are_one_clear_line(run, files, name, words):
    code, out, err = run("choose", files / name, "--query", files / "query.csv", "--choose", 2)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1
