"""Training: its data, its loop, selection, exact resume, and the optima that it reaches."""

import json
import os
import sys
import types
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from helpers import z_limit

from corricl import ConvergenceError, InputError, Pretraining, Prompt, simulate, theory
from corricl.attention import (
    Architecture,
    Row,
    Training,
    _loop,
    configure,
    find_rate,
    tracker,
    train,
    train_many,
    write_curve,
)
from corricl.attention import _checkpoint as checkpoint
from corricl.attention._data import Streams, law_of, precision
from corricl.attention._positions import Sizes, Weighted
from corricl.attention._steps import advance, optimizer, scheduled
from corricl.attention._trained import drawn, pretraining_set, tasks_of
from corricl.attention._training import CHECKPOINT, subject_of
from corricl.setting import Setting
from corricl.sweeps._estimator import estimator

D, LENGTH = 3, 6
PROMPT = Prompt(D, LENGTH, "exp:2", "continues", 0.1)
FRESH = Training(steps=800, interval=200, batch=256, rate=0.01, data="fresh", validation=1024, test=65536)
FIXED = Training(
    steps=40, interval=10, batch=32, validation=50, test=512, dtype="float64", ema=0.9, weight_decay=0.1, patience=3
)
SET = Pretraining(PROMPT, 50, 4)


@pytest.fixture(scope="module")
def calm():
    """An uninterrupted run."""
    return train("linear", PROMPT, FRESH, seed=5)


def leaves(trained):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(trained.model)]


def same(found, other):
    assert found.curve == other.curve
    assert found.selected == other.selected
    for a, b in zip(leaves(found), leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


# data


@pytest.mark.parametrize(
    "prompt", [Prompt(D, LENGTH, noise=0.4), Prompt(D, LENGTH, "0.5*exp:2+0.5*blocks:4", "continues", 0.2)]
)
def test_drawn_prompts_have_the_joint_kernel_and_linear_labels(prompt):
    n = 20000
    with precision("float32"):
        key = Streams.of(1, 0).data
        x, y, task = map(np.asarray, drawn(key, law_of(prompt, "float32"), None, n, LENGTH, D))
    assert {a.dtype for a in (x, y, task)} == {np.dtype(np.float32)}
    products = np.einsum("nai,nbi->nab", x, x) - prompt.joint
    spread = products.std(0) / n**0.5
    assert np.abs(products.mean(0) / spread).max() < z_limit(products[0].size)
    assert spread.max() < 0.02
    rest = y - np.einsum("nai,ni->na", x, task)
    covariance = rest.T @ rest / n - prompt.noise * np.eye(LENGTH + 1)
    assert np.abs(covariance).max() < 5 * prompt.noise * (2 / n) ** 0.5
    assert np.abs(np.einsum("nai,ni->na", x, task).mean(0)).max() < 5 / n**0.5


def test_tasks_are_drawn_from_the_pool_and_streams_are_apart():
    with precision("float64"):
        keys = Streams.of(3, 1)
        pool = tasks_of(keys, SET, FIXED)
        made = pretraining_set(keys, SET, FIXED)
        law = law_of(PROMPT, "float64")
        others = [drawn(key, law, None, 50, LENGTH, D) for key in (keys.validation, keys.test)]
    assert made.x.dtype == np.float64
    assert made.x.shape == (50, LENGTH + 1, D)
    assert len(np.unique(made.task, axis=0)) == 4
    assert set(map(tuple, np.asarray(made.task))) == set(map(tuple, np.asarray(pool)))
    values = np.concatenate([np.asarray(s.x).ravel() for s in (made, *others)])
    assert len(np.unique(values)) == len(values)  # nothing is drawn twice
    assert len(np.unique(np.concatenate([np.asarray(jax.random.key_data(key)) for key in keys]))) == 12


# what the loop is made of


def test_the_rate_warms_up_and_falls():
    config = Training(steps=100, warmup=0.1)
    made = np.array([scheduled(jnp.asarray(s), config) for s in (0, 4, 9, 10, 55, 100)])
    np.testing.assert_allclose(made, [0.1, 0.5, 1, 1, 0.5, 0], atol=1e-6)
    flat = [float(scheduled(jnp.asarray(s), replace(config, schedule="constant"))) for s in (0, 50, 99)]
    np.testing.assert_allclose(flat, [0.1, 1, 1], rtol=1e-6)


def test_the_optimizer_is_clipped_adamw_that_spares_vectors():
    params = {"matrix": jnp.ones((2, 2)), "vector": jnp.ones(2)}
    slope = jax.tree.map(lambda p: 5 * p, params)
    ours = optimizer(Training(weight_decay=0.3, clip=0.5))
    decay = optax.adamw(-1.0, weight_decay=0.3, mask={"matrix": True, "vector": False})
    theirs = optax.chain(optax.clip_by_global_norm(0.5), decay)
    with jax.numpy_dtype_promotion("standard"):
        a, b = jax.jit(lambda: [o.update(slope, o.init(params), params)[0] for o in (ours, theirs)])()
    for name in params:
        np.testing.assert_allclose(a[name], b[name], rtol=1e-6)
    assert float(a["matrix"][0, 0]) > float(a["vector"][0]) + 0.2


def test_position_weights_do_not_decay():
    sizes = Sizes(width=3, heads=2, length=4, tied=False, positions="weighted", dtype=np.dtype("float32"))
    params = {"positions": Weighted(sizes), "matrix": jnp.ones((2, 2))}
    still = jax.tree.map(jnp.zeros_like, params)
    ours = optimizer(Training(weight_decay=0.3))
    with jax.numpy_dtype_promotion("standard"):
        moved, _ = jax.jit(lambda: ours.update(still, ours.init(params), params))()
    np.testing.assert_array_equal(moved["positions"].weight, 0)
    np.testing.assert_allclose(moved["matrix"], 0.3)


def test_the_curve_and_the_selection(calm):
    assert [row.step for row in calm.curve] == [0, 200, 400, 600, 800]
    assert calm.curve[0].train is None
    assert calm.validation == min(row.validation for row in calm.curve)
    assert calm.train == calm.curve[calm.selected].train
    assert calm.selected_step == calm.curve[calm.selected].step > 0
    assert calm.steps == 800


def test_seeds_and_rates_together_are_the_single_runs():
    many = train_many("linear", SET, FIXED, seeds=[1, 2], rates=[0.05, 0.01])
    assert [(t.seed, t.rate) for t in many] == [(1, 0.05), (1, 0.01), (2, 0.05), (2, 0.01)]
    for i in (0, 3):  # the rate is no constant of the program, so that these two share it
        alone = train("linear", SET, replace(FIXED, rate=many[i].rate), seed=many[i].seed)
        assert alone.model.layers[0].attention.query.dtype == np.float64
        np.testing.assert_allclose(np.array(many[i].curve[1:]), np.array(alone.curve[1:]), rtol=1e-9)
        for a, b in zip(leaves(many[i]), leaves(alone), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    # an index of its own makes another run, and the pretraining tasks are easier than fresh ones
    alone, other = many[0], train("linear", SET, replace(FIXED, rate=0.05), seed=1, index=1)
    assert alone.curve[0] != other.curve[0]
    assert alone.idg().stderr > 0


def test_a_shared_seed_trains_on_the_same_data_at_every_rate():
    found = find_rate("linear", PROMPT, replace(FRESH, steps=400, interval=None), rates=(1e-5, 0.01, 1e9))
    assert found == 0.01
    with pytest.raises(ConvergenceError, match=r"diverges at every rate from 1e\+09 to 1e\+10"):
        find_rate("linear", PROMPT, replace(FRESH, steps=400), rates=(1e9, 2e9, 1e10))


def test_patience_ends_a_run():
    made = train("linear", PROMPT, replace(FRESH, interval=20, patience=2, rate=1e-12))
    assert made.steps <= made.selected_step + 40 < 800


def test_every_position_as_query_and_a_moving_average():
    architecture = Architecture("linear", mask="causal")
    config = replace(FRESH, loss="every position", ema=0.5, steps=200, interval=100, batch=32)
    made = train(architecture, PROMPT, config)
    assert made.validation < 0.97 * made.curve[0].validation
    first, second = (row.train for row in made.curve[1:])
    assert second < 0.97 * first
    with pytest.raises(InputError, match="needs mask causal"):
        train("linear", PROMPT, config)


# exact resume


class Stop(Exception):
    pass


def stopped_at(step):
    def watch(row):
        if row.step == step:
            raise Stop

    return watch


def test_a_stopped_run_goes_on_bit_for_bit(calm, tmp_path):
    with pytest.raises(Stop):
        train("linear", PROMPT, FRESH, seed=5, folder=tmp_path, on_evaluation=stopped_at(400))
    assert checkpoint.load(tmp_path / CHECKPOINT).header["step"] == 400
    seen = []
    again = train("linear", PROMPT, FRESH, seed=5, folder=tmp_path, on_evaluation=seen.append)
    assert [row.step for row in seen] == [600, 800]
    same(again, calm)
    same(train("linear", PROMPT, FRESH, seed=5, folder=tmp_path, on_evaluation=seen.clear), calm)  # it is finished
    assert os.listdir(tmp_path) == [CHECKPOINT]


def test_checkpoints_of_other_runs_and_broken_ones_are_refused(tmp_path):
    file = tmp_path / CHECKPOINT
    with pytest.raises(Stop):
        train("linear", PROMPT, FRESH, seed=5, folder=tmp_path, on_evaluation=stopped_at(200))
    whole = file.read_bytes()
    for changed, reason in (
        ({"architecture": "softmax;width=4"}, "its layers is linear, here it is softmax"),
        ({"subject": Prompt(D, LENGTH, "exp:3", "continues", 0.1)}, "kernel is exp:2, here it is exp:3"),
        ({"config": replace(FRESH, steps=50)}, "steps is 800, here it is 50"),
        ({"seed": 6}, "its members is"),
    ):
        given = {"architecture": "linear", "subject": PROMPT, "config": FRESH, "seed": 5, **changed}
        with pytest.raises(InputError, match=f"checkpoint of another run.*{reason}"):
            train(given.pop("architecture"), given.pop("subject"), given.pop("config"), folder=tmp_path, **given)
    line, _, data = whole.partition(b"\n")
    for broken, reason in (
        (whole[:-7], r"is truncated: it has \d+ of \d+ bytes"),
        (whole[:-1] + bytes([whole[-1] ^ 1]), "is damaged"),
        (whole[: len(line) // 2], "is not a checkpoint"),
        (b"[]\n" + data, "is not a checkpoint"),
        (b"", "is not a checkpoint"),
    ):
        file.write_bytes(broken)
        with pytest.raises(InputError, match=reason):
            train("linear", PROMPT, FRESH, seed=5, folder=tmp_path)
    header = json.loads(line)
    assert header["run"]["layers"] == "linear"
    shapes = {**header, "arrays": [["float32", [len(data) // 4]]]}
    file.write_bytes(json.dumps(shapes).encode() + b"\n" + data)
    with pytest.raises(InputError, match="other shapes or types"):
        train("linear", PROMPT, FRESH, seed=5, folder=tmp_path)
    with pytest.raises(InputError, match="cannot write the checkpoint"):
        checkpoint.save(file / "below", {}, ())


def test_divergence_stops_and_keeps_the_last_good_checkpoint(calm, monkeypatch, tmp_path):
    with pytest.raises(ConvergenceError, match=r"diverged between steps 0 and 200 at rate 1e\+06, seed 5: .* rate$"):
        train("linear", PROMPT, replace(FRESH, rate=1e6), seed=5, folder=tmp_path)
    assert os.listdir(tmp_path) == []

    def broken(state, sources, shared, rates, span, program):
        state, losses = advance(state, sources, shared, rates, span, program)
        return state, losses * (np.nan if span[0] >= 400 else 1)

    monkeypatch.setattr(_loop, "advance", broken)
    with pytest.raises(ConvergenceError, match=r"between steps 400 and 600 .*; the checkpoint of step 400 is kept"):
        train("linear", PROMPT, FRESH, seed=5, folder=tmp_path)
    monkeypatch.undo()
    same(train("linear", PROMPT, FRESH, seed=5, folder=tmp_path), calm)


# what it reaches


def test_linear_attention_reaches_the_optimum_of_the_reduced_model(calm):
    optimum, found = theory.risk(PROMPT, method="linear").icl, calm.risk()
    assert found.stderr < 0.012 * optimum
    assert found.mean - 2 * found.stderr < 1.03 * optimum
    assert found.mean + 5 * found.stderr > 0.9 * optimum  # nothing leaks the label


@pytest.mark.parametrize(
    ("model", "method", "kernel", "within"),
    [
        ("softmax;width=8", "softmax", "exp:4", 1.05),
        ("linear;positions=weighted", "positional", "exp:4", 1.03),
    ],
)
def test_trained_models_reach_the_optimum_of_their_class(model, method, kernel, within):
    prompt = Prompt(4, 10, kernel, "continues", 0.05)
    made = train(f"{model};steps=1000;batch=256;rate=0.01;data=fresh;test=65536;interval=200", prompt)
    optimum, found = theory.risk(prompt, method=method).icl, made.risk()
    assert found.stderr < 0.012 * optimum
    assert found.mean - 2 * found.stderr < within * optimum
    assert found.mean + 5 * found.stderr > 0.85 * optimum  # nothing leaks the label


def test_scored_elsewhere_and_by_the_simulation(calm):
    longer = Prompt(D, 9, "exp:1", noise=0.3)
    far = calm.risk(longer, prompts=8000)
    with jax.enable_x64(True):  # whatever the caller has set
        there = simulate.score(calm.predict, longer, seed=2, prompts=8192)
    same(train("linear", PROMPT, FRESH, seed=5), calm)
    assert {leaf.dtype for leaf in leaves(calm)} == {np.dtype(np.float32)}  # beside the simulation's float64
    assert abs(far.mean - there.mean) < 4.5 * np.hypot(far.stderr, there.stderr)
    assert far.stderr < 0.03 * far.mean
    assert calm.risk().mean < far.mean - 5 * far.stderr
    with pytest.raises(InputError, match="test prompt has d = 5"):
        calm.risk(Prompt(5, LENGTH))
    with pytest.raises(InputError, match="idg is its icl"):
        calm.idg()


# strings, settings, curves


def test_strings_become_models_and_training():
    architecture, training = configure("ln+softmax+mlp;layers=4; width=32;batch=full;rate=find;tied=true;clip=none")
    assert architecture == Architecture("ln+softmax+mlp", repeats=4, width=32, tied=True)
    assert training == Training(batch=None, rate="find", clip=None)
    assert configure("linear", {"layers": "2", "weight-decay": "0.1", "steps": 7})[1] == Training(
        weight_decay=0.1, steps=7
    )
    for text, sentence in (
        ("linear;widht=3", "unknown option 'widht' .*did you mean 'width'"),
        ("linear;zzz=3", "unknown option 'zzz' .*allowed: batch"),
        ("linear;steps", "'steps' in 'linear;steps' is not KEY=VALUE"),
        ("linear;steps=many", "steps must be a number; got 'many'"),
        ("linear;rate=fast", "rate must be a number; got 'fast'"),
        ("linear;tied=yes", "tied must be true or false"),
        ("cubic", "unknown attention 'cubic'"),
    ):
        with pytest.raises(InputError, match=sentence):
            configure(text)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"steps": 0}, "steps must be an integer >= 1"),
        ({"batch": -1}, "batch must be an integer >= 1"),
        ({"rate": 0}, "rate must be finite and > 0"),
        ({"ema": 1.0}, "ema must be below 1"),
        ({"warmup": 1.5}, r"warmup must lie in \[0, 1\]"),
        ({"schedule": "linear"}, "schedule must be one of cosine, constant"),
        ({"data": "fresh", "batch": None}, "fresh data needs a batch size"),
        ({"clip": 0.0}, "clip must be finite and > 0"),
    ],
)
def test_bad_training_is_refused(fields, sentence):
    with pytest.raises(InputError, match=sentence):
        Training(**fields)


def test_bad_requests_are_refused():
    for given, sentence in (
        (("linear", PROMPT), "fixed data needs a Pretraining"),
        (("linear", SET, Training(batch=64)), "batch must be at most the number of sequences, 50"),
        (("linear;steps=3", SET, FIXED), "in the model's string or as a config"),
        (("linear", Pretraining(PROMPT, 10**12), Training()), "need .* GiB"),
    ):
        with pytest.raises(InputError, match=sentence):
            train(*given)
    with pytest.raises(InputError, match="rates that are numbers"):
        train_many("linear;rate=find;data=fresh", PROMPT)
    with pytest.raises(InputError, match="at least one seed"):
        train_many("linear;data=fresh", PROMPT, seeds=[])
    with pytest.raises(InputError, match="seed must lie"):
        train("linear", PROMPT, FRESH, seed=-1)


def test_curves_are_written(calm, tmp_path):
    write_curve(calm.curve, tmp_path / "curve.csv")
    lines = (tmp_path / "curve.csv").read_text().splitlines()
    assert lines[0] == "step,train,validation"
    assert lines[1].startswith("0,,")
    assert float(lines[-1].split(",")[2]) == calm.curve[-1].validation
    write_curve(calm.curve, tmp_path / "curve.json")
    assert [Row(**row) for row in json.loads((tmp_path / "curve.json").read_text())] == list(calm.curve)
    with pytest.raises(InputError, match=r"to \.csv or \.json"):
        write_curve(calm.curve, tmp_path / "curve.txt")
    with pytest.raises(InputError, match="cannot write"):
        write_curve(calm.curve, tmp_path / "no" / "curve.csv")


def test_trackers_get_the_losses(monkeypatch, tmp_path):
    said = []

    class Writer:
        def __init__(self, folder):
            said.append(folder)

        def add_scalar(self, tag, data, step):
            said.append((tag, data, step))

        def flush(self):
            pass

    def init(project, dir, config):
        said.append((project, config))
        return types.SimpleNamespace(log=lambda values, step: said.append((values, step)))

    monkeypatch.setitem(sys.modules, "tensorboard", types.ModuleType("tensorboard"))
    monkeypatch.setitem(sys.modules, "tensorboard.summary", types.SimpleNamespace(Writer=Writer))
    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=init))
    watch = tracker("tensorboard", tmp_path / "t", {})
    watch(Row(0, None, 2.0))
    watch(Row(5, 1.5, 1.0))
    assert said == [str(tmp_path / "t"), ("validation", 2.0, 0), ("validation", 1.0, 5), ("train", 1.5, 5)]
    said.clear()
    tracker("wandb", tmp_path / "w", {"d": 3})(Row(5, 1.5, 1.0))
    assert said == [("corricl", {"d": 3}), ({"validation": 1.0, "train": 1.5}, 5)]
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(InputError, match=r"needs the extra 'tracking': pip install"):
        tracker("wandb", tmp_path, {})
    with pytest.raises(InputError, match="unknown tracker 'paper'"):
        tracker("paper", tmp_path, {})


# sweeps


def test_the_estimator_trains_and_goes_on_in_its_folder(tmp_path):
    options = "steps=800;interval=200;batch=256;rate=0.01;data=fresh;validation=1024;test=65536"
    made = estimator(f"attention:linear;{options}")
    setting = Setting(d=D, length=LENGTH, kernel="exp:2", query="continues", noise=0.1)
    made.check(setting)
    with pytest.raises(Stop):
        train("linear", PROMPT, FRESH, seed=5, index=2, folder=tmp_path, on_evaluation=stopped_at(200))
    values = made.run(setting, seed=5, replicate=2, folder=tmp_path)
    whole = train("linear", PROMPT, FRESH, seed=5, index=2)
    assert values["icl"] == whole.risk().mean
    assert values["validation"] == whole.validation
    assert set(values) == {"icl", "validation", "train", "steps", "selected_step", "rate"}
    with pytest.raises(InputError, match="needs a model"):
        estimator("attention")
    with pytest.raises(InputError, match="give sequences or tau"):
        estimator("attention:linear").check(setting)
    with pytest.raises(InputError, match="needs sizes"):
        made.check(Setting(alpha=1, tau=2))
    assert subject_of(replace(setting, tasks=4), FRESH).tasks == 4
