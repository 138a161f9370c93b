"""Models of attention: what they skip changes nothing, nobody sees too much, and the theory's optima are among them."""

import dataclasses
import json
import math
from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from corricl import InputError, Prompt, simulate, theory
from corricl.attention import Architecture, Attention, Linear, build, known_attentions
from corricl.plugins import import_module

ROOT = Path(__file__).parents[1]
textbook = import_module(str(ROOT / "benchmarks" / "_all_positions.py"))

D, LENGTH = 3, 5
jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": "0"})  # compiling is what takes time here


def descend(arrays, slope):
    return jax.tree.map(lambda p, g: p - 0.01 * g, arrays, slope)


COMPOSITIONS = [
    Architecture("linear"),
    Architecture("linear", repeats=3, tied=True, mask="causal"),
    Architecture("linear", repeats=2, heads=2, positions="weighted"),
    Architecture("softmax", width=6, heads=2),
    Architecture("softmax", width=4, positions="weighted", mask="causal", tied=True),
    Architecture("softmax+mlp", repeats=4, width=4, mask="causal"),
    Architecture("ln+softmax+mlp", repeats=2, width=5, positions="rotary", mlp_ratio=2),
    Architecture("mlp,softmax", width=4, positions="alibi", mask="causal"),
    Architecture("linear,softmax,mlp", width=4, positions="learned"),
]


def named(architecture):
    defaults = dataclasses.asdict(Architecture(architecture.layers))
    changed = [f"{k}={v}" for k, v in dataclasses.asdict(architecture).items() if v != defaults[k]]
    return " ".join([architecture.layers, *changed])


def examples(batch, seed=0, d=D, length=LENGTH):
    """Tokens of size 1/sqrt(d), the query last, and labels of all of them, float64."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((batch, length + 1, d)) / d**0.5, rng.standard_normal((batch, length + 1))


def relative(a, b):
    """Largest difference of two trees over the largest entry of each array."""
    pairs = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return max(float(jnp.abs(x - y).max() / jnp.maximum(jnp.abs(y).max(), 1e-300)) for x, y in pairs)


def shifted(model):
    """The model with every array moved off its start, so that zeros and ones of the start hide nothing."""
    arrays, rest = eqx.partition(model, eqx.is_inexact_array)
    leaves, tree = jax.tree.flatten(arrays)
    rng = np.random.default_rng(1)
    moved = [jnp.asarray(0.6 * leaf + 0.1 * rng.standard_normal(leaf.shape)) for leaf in leaves]
    return eqx.combine(jax.tree.unflatten(tree, moved), rest)


@pytest.mark.parametrize("architecture", COMPOSITIONS, ids=named)
def test_training_on_the_query_alone_equals_training_the_textbook_model(architecture):
    with jax.enable_x64(True):
        model = shifted(build(architecture, D, LENGTH, key=jax.random.key(0), dtype="float64"))
        x, y = map(jnp.asarray, examples(4))
        arrays, rest = eqx.partition(model, eqx.is_inexact_array)

        def loss(arrays, predict):
            whole = eqx.combine(arrays, rest)
            found = jax.vmap(lambda x, y: predict(whole, x, y[:-1]))(x, y)
            return jnp.mean(jnp.square(found - y[:, -1])), found

        def step(both, _):
            mine, plain = both
            slope, found = jax.grad(loss, has_aux=True)(mine, type(model).__call__)
            plain_slope, expected = jax.grad(loss, has_aux=True)(plain, textbook.predict)
            return [descend(mine, slope), descend(plain, plain_slope)], [found, expected]

        (ours, theirs), (mine, plain) = jit(lambda a: jax.lax.scan(step, [a, a], length=20))(arrays)
        assert jnp.isfinite(plain).all()
        assert float(jnp.abs(plain[-1] - plain[0]).max()) > 1e-3  # it does move
        assert relative(mine, plain) < 1e-9
        assert relative(ours, theirs) < 1e-9


@pytest.mark.parametrize(
    "architecture",
    [
        Architecture("ln+softmax+mlp", repeats=2, width=4, positions="learned", mask="causal"),
        Architecture("linear", repeats=2, heads=2, positions="weighted", mask="causal"),
    ],
    ids=named,
)
def test_every_position_predicts_what_the_prompt_that_ends_there_does(architecture):
    with jax.enable_x64(True):
        model = shifted(build(architecture, D, LENGTH, key=jax.random.key(2), dtype="float64"))
        x, y = (jnp.asarray(part[0]) for part in examples(1, seed=3))
        every = model.at_every_position
        found, slopes = jit(lambda x, y: (every(x, y), jax.jacfwd(every, argnums=(0, 1))(x, y)))(x, y)
        for t in (1, 3):
            alone = jit(lambda x, y: model(x, y))(x[: t + 1], y[:t])
            assert float(found[t]) == pytest.approx(float(alone), rel=1e-12)
    by_token, by_label = (np.abs(j).max(axis=tuple(range(2, j.ndim))) for j in slopes)
    # prediction t (row) depends on every token up to t and on every label before t, and on nothing else
    assert (by_token[np.triu_indices(LENGTH + 1, 1)] == 0).all()
    assert (by_label[np.triu_indices(LENGTH + 1)] == 0).all()
    assert (by_token[np.tril_indices(LENGTH + 1, -1)] > 0).all()
    assert (by_label[np.tril_indices(LENGTH + 1, -1)] > 0).all()


def test_a_full_mask_cannot_predict_at_every_position():
    model = build(Architecture("linear"), D, LENGTH, key=jax.random.key(0))
    with pytest.raises(InputError, match="need mask causal"):
        model.at_every_position(jnp.ones((LENGTH + 1, D)), jnp.ones(LENGTH + 1))


def replaced(model, **arrays):
    """A one-layer model with arrays of its attention replaced."""
    return eqx.tree_at(
        lambda m: [getattr(m.layers[0].attention, name) for name in arrays],
        model,
        list(map(jnp.asarray, arrays.values())),
    )


def unit(size, value=1.0):
    """value at the last diagonal entry."""
    return np.diag(np.eye(size)[-1]) * value


def test_linear_attention_contains_the_reduced_model():
    rng = np.random.default_rng(4)
    gamma, column = rng.standard_normal((D, D)), rng.standard_normal(D)
    x, y = examples(1, seed=5)
    x, y = x[0], y[0, :-1]
    score = np.zeros((D + 1, D + 1))  # K'Q: from (sqrt(d) x_t, 0) to what meets (sqrt(d) x_a, y_a)
    score[:D, :D], score[D, :D] = gamma.T, column / D**0.5
    with jax.enable_x64(True):
        model = build(Architecture("linear"), D, LENGTH, key=jax.random.key(0), dtype="float64")
        model = replaced(model, query=score[None], key=np.eye(D + 1)[None], value=unit(D + 1)[None])
        found = float(model(jnp.asarray(x), jnp.asarray(y)))
    h = D / LENGTH * y @ x[:-1]
    assert found == pytest.approx(x[-1] @ (gamma @ h + column * np.mean(y**2)), rel=1e-12)


PROMPT = Prompt(d=8, length=24, kernel="exp:4", query="continues", noise=0.05)


def optimum(method):
    """A model of a theory's optimum, its arrays float64."""
    d, length = PROMPT.d, PROMPT.length
    details = theory.risk(PROMPT, method=method).details
    if method == "softmax":
        model = build(Architecture("softmax", width=d + 1), d, length, key=jax.random.key(0), dtype="float64")
        model = eqx.tree_at(lambda m: (m.embedding, m.readout), model, (jnp.eye(d + 1), jnp.eye(d + 1)[-1]))
        score = details["beta"] / d * math.sqrt(d + 1)
        model = replaced(model, output=np.eye(d + 1)[:, None])
        value = details["value"]
    else:
        architecture = Architecture("linear", positions="weighted" if method == "positional" else "none")
        model = build(architecture, d, length, key=jax.random.key(0), dtype="float64")
        score, value = length / d if method == "positional" else details["scale"], 1.0
        if method == "positional":
            by_distance = np.concatenate([[0.0], details["weights"][::-1]])
            model = eqx.tree_at(lambda m: m.layers[0].attention.positions.weight, model, jnp.asarray(by_distance)[None])
    query = np.eye(d + 1) - unit(d + 1)
    return replaced(model, query=score * query[None], key=np.eye(d + 1)[None], value=unit(d + 1, value)[None])


@pytest.mark.parametrize("method", ["linear", "positional", "softmax"])
def test_the_optima_of_the_theory_are_models(method):
    with jax.enable_x64(True):
        model = optimum(method)
        batched = jit(jax.vmap(model))

        def predict(x, y, query):
            return batched(jnp.concatenate([x, query[:, None]], axis=1), jnp.asarray(y))

        drawn = next(simulate.batches(PROMPT, seed=1, batch=1024))
        given = (drawn.x, drawn.y, drawn.query)
        np.testing.assert_allclose(predict(*given), simulate.optimal(method, PROMPT)(*given), rtol=1e-9, atol=1e-12)
        found = simulate.score(predict, PROMPT, seed=2, prompts=8192)
    risk = theory.risk(PROMPT, method=method)
    error = risk.details.get("numerical_error", 0.0)
    assert abs(found.mean - risk.icl) < 4 * math.hypot(found.stderr, error)
    assert found.stderr < 0.03 * risk.icl


def test_cost_is_that_of_the_query():
    def flops(predict, architecture, length):
        model = build(architecture, 8, length, key=jax.random.key(0))
        x, y = jnp.ones((4, length + 1, 8)), jnp.ones((4, length))
        step = jax.grad(lambda m, x, y: jnp.sum(jax.vmap(lambda x, y: predict(m, x, y))(x, y)))
        arrays, rest = eqx.partition(model, eqx.is_inexact_array)
        lowered = jax.jit(lambda a, x, y: step(eqx.combine(a, rest), x, y)).lower(arrays, x, y)
        return lowered.cost_analysis()["flops"]

    def ours(model, x, y):
        return model(x, y)

    for architecture in (Architecture("linear"), Architecture("softmax+mlp", width=16)):
        once = flops(ours, architecture, 64)
        assert flops(textbook.predict, architecture, 64) > 20 * once
        assert flops(ours, architecture, 128) < 2.1 * once
    deep = Architecture("softmax+mlp", repeats=4, width=16)
    assert flops(textbook.predict, deep, 64) > 1.2 * flops(ours, deep, 64)


def test_float32_stays_float32_beside_float64():
    x, y = examples(1)
    for wide in (False, True):
        with jax.enable_x64(wide):
            architecture = Architecture("ln+softmax+mlp", width=4, positions="alibi")
            model = build(architecture, D, LENGTH, key=jax.random.key(0))
            arrays = jax.tree.leaves(eqx.filter(model, eqx.is_array))
            assert {a.dtype.name for a in arrays} == {"float32"}
            assert jax.eval_shape(model, x[0].astype(np.float32), y[0, :-1].astype(np.float32)).dtype == "float32"


def test_parameters_do_not_depend_on_precision_and_blocks_share_the_stream():
    architecture = Architecture("softmax+mlp", repeats=8, width=16)
    with jax.enable_x64(True):
        narrow, wide = (
            build(architecture, D, LENGTH, key=jax.random.key(3), dtype=f"float{bits}") for bits in (32, 64)
        )
    for a, b in zip(*(jax.tree.leaves(eqx.filter(m, eqx.is_array)) for m in (narrow, wide)), strict=True):
        np.testing.assert_array_equal(a, np.asarray(b).astype(np.float32))
    for name, inputs, blocks in (("query", 16, 1), ("value", 16, 1), ("output", 16, 16)):
        drawn = np.stack([getattr(layer.attention, name) for layer in wide.layers])
        assert np.mean(drawn**2) * inputs * blocks == pytest.approx(1, abs=4 * (2 / drawn.size) ** 0.5)
    second = np.stack([layer.mlp.second for layer in wide.layers])
    assert np.mean(second**2) * 64 * 16 == pytest.approx(1, abs=4 * (2 / second.size) ** 0.5)


def test_an_architecture_is_plain_values():
    for architecture in COMPOSITIONS:
        assert Architecture(**json.loads(json.dumps(dataclasses.asdict(architecture)))) == architecture
    assert Architecture("linear").width is None
    assert Architecture("linear,softmax").width == 64
    assert [layer.attention for layer in Architecture("linear, softmax+mlp", repeats=2).plan] == [
        "linear",
        "softmax",
    ] * 2


class Squared(Linear):
    name = "squared"

    def weights(self, scores, view):
        return super().weights(jnp.square(scores), view)


def test_a_new_attention_is_a_class():
    assert known_attentions()["squared"] is Squared
    model = build(Architecture("softmax,squared", width=4), D, LENGTH, key=jax.random.key(0))
    assert isinstance(model.layers[1].attention, Squared)
    with pytest.raises(InputError, match="name 'squared' is taken by Squared"):

        class Other(Attention):
            name = "squared"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"layers": "sofmax"}, "unknown attention 'sofmax' in 'sofmax'; known attentions: linear, softmax"),
        ({"layers": "softmax+ln"}, r"not understood: a layer is written \[ln\+\]ATTENTION\[\+mlp\]"),
        ({"layers": "linear+softmax"}, "not understood"),
        ({"layers": "linear,"}, "not understood"),
        ({"layers": "ln"}, "not understood"),
        ({"repeats": 0}, "repeats must be an integer >= 1; got 0"),
        ({"heads": 1.5}, "heads must be an integer >= 1"),
        ({"width": -4}, "width must be an integer >= 1"),
        (
            {"positions": "sinusoidal"},
            "positions must be one of none, learned, rotary, alibi, weighted; got 'sinusoidal'",
        ),
        ({"mask": "half"}, "mask must be one of full, causal; got 'half'"),
    ],
)
def test_bad_architectures_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        Architecture(**values)


def test_sizes_that_do_not_fit_are_refused():
    def make(length=LENGTH, **values):
        return build(Architecture(**values), D, length, key=jax.random.key(0))

    with pytest.raises(InputError, match="needs a width that 3 heads can share; got 4"):
        make(layers="softmax", width=4, heads=3)
    x, y = (jnp.asarray(part[0], jnp.float32) for part in examples(1))
    with pytest.raises(InputError, match="a prompt with 6 labels has 7 tokens, the query last; got 6"):
        make()(x, y)
    for positions in ("weighted", "learned"):
        with pytest.raises(InputError, match="learned up to length 4; got a prompt of length 5"):
            jax.eval_shape(make(4, positions=positions), x, y[:-1])
