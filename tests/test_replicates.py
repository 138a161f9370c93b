"""Replicates: reproducible whatever surrounds them, as published and as theory says, compiled once."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import published, z_limit

from corricl import simulate, theory
from corricl.errors import InputError
from corricl.prompt import Pretraining, Prompt
from corricl.simulate._precision import key_of, require_float64
from corricl.simulate._replicates import estimate
from corricl.simulate._sampler import sample_sequences
from corricl.simulate._solver import conjugate_gradients
from corricl.theory import exact

SMALL = Pretraining(Prompt(6, 12, "exp:2", "continues", 0.1), 200, 9)


def numbers(simulation):
    return [(r.icl, r.idg, r.trace, r.square, r.residual) for r in simulation.replicates]


def test_replicate_i_depends_on_the_seed_and_i_alone():
    ten = numbers(simulate.risk(SMALL, 0.1, seed=7, replicates=10))
    five = numbers(simulate.risk(SMALL, 0.1, seed=7, replicates=5))
    assert five == ten[:5]
    alone = simulate.replicate(SMALL, 0.1, seed=7, index=3)
    assert (alone.icl, alone.idg) == ten[3][:2]
    assert len({icl for icl, *_ in ten}) == 10
    assert not set(ten) & set(numbers(simulate.risk(SMALL, 0.1, seed=8, replicates=5)))


@pytest.mark.parametrize("settings", [
    {"jax_enable_x64": True}, {"jax_enable_x64": False}, {"jax_threefry_partitionable": False},
    {"jax_default_prng_impl": "rbg"}, {"jax_numpy_dtype_promotion": "standard", "jax_numpy_rank_promotion": "allow"},
], ids=str)  # fmt: skip
def test_numbers_are_the_same_whatever_the_caller_configured(settings):
    expected = numbers(simulate.risk(SMALL, 0.1, seed=7, replicates=2))
    before = {name: getattr(jax.config, name) for name in settings}
    try:
        for name, value in settings.items():
            jax.config.update(name, value)
        found = numbers(simulate.risk(SMALL, 0.1, seed=7, replicates=2))
        wide = jnp.ones(2).dtype
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
    assert found == expected
    assert wide == ("float64" if settings.get("jax_enable_x64") else "float32")  # the caller's setting is untouched


def test_lower_precision_is_refused():
    with pytest.raises(InputError, match="gamma must be float64, not float32"):
        require_float64(gamma=np.zeros(2, np.float32))
    assert not jax.config.jax_enable_x64
    solution, tasks, data = simulate.pretrain(SMALL, 0.1, seed=0)
    assert {str(a.dtype) for a in (solution.gamma, tasks, *data)} == {"float64"}


def test_what_a_replicate_reports_is_that_of_its_gamma():
    solution, tasks, _ = simulate.pretrain(SMALL, 0.1, seed=7, index=2)
    gamma = np.asarray(solution.gamma)
    test = Prompt(6, 30, "power:1", "independent", 0.4)
    found = simulate.replicate(SMALL, 0.1, seed=7, index=2, test=test)
    assert found.icl == exact.risk_of(gamma, test)
    assert found.idg == exact.risk_of(gamma, SMALL.prompt, tasks)
    assert found.trace == pytest.approx(np.trace(gamma[:, :6]) / 6)
    assert found.square == pytest.approx((gamma**2).sum() / 6)
    assert (found.residual, found.steps, found.method) == (solution.residual, solution.steps, solution.method)


def test_pretraining_on_the_features_equals_pretraining_on_whole_contexts():
    """Gamma from contexts drawn in NumPy has the law of Gamma from the sampler: mean errors agree."""
    from helpers import draw_contexts, summary

    d, n, ridge = 3, 60, 0.05
    prompt = Prompt(d, 5, "exp:3", "continues", 0.2)
    direct = []
    for seed in range(300):
        x, y, query, target, _ = draw_contexts(prompt, n, seed)
        h = (query[:, :, None] * summary(x, y)[:, None, :]).reshape(n, -1)
        gamma = np.linalg.solve(h.T @ h + n / d * ridge * np.eye(h.shape[1]), h.T @ target).reshape(d, d + 1)
        direct.append((exact.risk_of(gamma, prompt), np.trace(gamma[:, :d]) / d))
    found = simulate.risk(Pretraining(prompt, n), ridge, seed=0, replicates=300).replicates
    for one, other in (
        (np.array(direct)[:, 0], [r.icl for r in found]),
        (np.array(direct)[:, 1], [r.trace for r in found]),
    ):
        error = np.hypot(np.std(one), np.std(other)) / np.sqrt(300)
        assert abs(np.mean(one) - np.mean(other)) < z_limit(2) * error
        assert error < 0.03 * np.mean(one)


def test_published_runs_at_d_32():
    """Every row: within four combined standard errors."""
    rows = published("correlated_reduced_d32.csv")
    assert len(rows) == 18
    found = {}
    for row in rows:
        d, length, n, tasks = (int(row[key]) for key in ("d", "length", "sequences", "tasks"))
        prompt = Prompt(d, length, f"exp:{row['kernel_correlation_length']}", row["query"], float(row["noise"]))
        if prompt not in found:
            found[prompt] = simulate.risk(Pretraining(prompt, n, tasks), 1e-8, seed=1, replicates=5)
        icl = found[prompt].icl
        mean, stderr = float(row["icl_mean"]), float(row["icl_std"]) / np.sqrt(int(row["runs"]))
        assert abs(icl.mean - mean) < 4 * np.hypot(icl.stderr, stderr), row
        assert icl.stderr < 0.03 * icl.mean, row  # five per cent off would be seen
        assert found[prompt].theory.icl < icl.mean + 4 * icl.stderr


def test_a_mismatched_test_prompt_agrees_with_the_theory_of_the_mismatch():
    d = 32
    pretraining = Pretraining(Prompt(d, 128, "exp:1", "continues", 0.1), 4096, 320)
    tests = [
        None,
        Prompt(d, 160, "exp:1", "continues", 0.1),
        Prompt(d, 80, "exp:3", "independent", 0.1),
        Prompt(d, 40, "iid", "independent", 0.5),
    ]
    gammas = [np.asarray(simulate.pretrain(pretraining, 0.05, seed=0, index=i)[0].gamma) for i in range(6)]
    for test in tests:
        values = [exact.risk_of(gamma, test or pretraining.prompt) for gamma in gammas]
        icl = estimate(values)
        expected = theory.risk(pretraining, 0.05, test=test, method="weak").icl
        assert abs(icl.mean - expected) < 4 * icl.stderr + 3 * expected / d, (test, icl, expected)
        assert icl.stderr < 0.02 * icl.mean
    direct = simulate.risk(pretraining, 0.05, seed=0, replicates=1, test=tests[3])
    assert direct.icl.mean == exact.risk_of(gammas[0], tests[3])
    assert direct.theory.icl == theory.risk(pretraining, 0.05, test=tests[3]).icl


def test_other_numbers_of_the_same_sizes_compile_nothing_new():
    def run(xi, noise, ridge):
        simulate.replicate(
            Pretraining(Prompt(6, 12, f"exp:{xi}", "continues", noise), 200, 9), ridge, seed=xi, index=xi
        )

    run(1, 0.1, 0.1)
    compiled = sample_sequences._cache_size(), conjugate_gradients._cache_size()
    for xi in range(2, 12):
        run(xi, 0.01 * xi, 0.1 / xi)
    assert (sample_sequences._cache_size(), conjugate_gradients._cache_size()) == compiled


def test_a_target_standard_error_stops_when_it_is_reached():
    seen = []
    found = simulate.risk(SMALL, 0.1, seed=1, target_stderr=0.04, on_replicate=lambda n, icl: seen.append((n, icl)))
    count = len(found.replicates)
    assert 8 <= count == len(seen)
    assert [n for n, _ in seen] == list(range(1, count + 1))
    assert seen[-1][1] == found.icl
    assert found.icl.stderr <= 0.04 * found.icl.mean
    assert all(icl.stderr > 0.04 * icl.mean for n, icl in seen[7:-1])
    assert len(simulate.risk(SMALL, 0.1, seed=1, target_stderr=10.0).replicates) == 8
    again = simulate.risk(SMALL, 0.1, seed=1, replicates=count)
    assert again.icl == found.icl


def test_standard_errors_are_those_of_the_mean():
    found = simulate.risk(SMALL, 0.1, seed=2, replicates=6)
    for name in ("icl", "idg"):
        values = np.array([getattr(r, name) for r in found.replicates])
        assert getattr(found, name).mean == pytest.approx(values.sum() / 6)
        assert getattr(found, name).stderr == pytest.approx(np.sqrt(((values - values.mean()) ** 2).sum() / 5 / 6))
    assert found.residual == max(r.residual for r in found.replicates) <= 1e-8
    assert simulate.risk(SMALL, 0.1, replicates=1).icl.stderr is None


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"replicates": 0}, "replicates must be an integer >= 1"),
        ({"replicates": 3, "target_stderr": 0.1}, "replicates or target_stderr, not both"),
        ({"target_stderr": 0.0}, "target_stderr must be finite and > 0"),
        ({"seed": -1}, r"seed must lie in \[0, 2\^63\)"),
        ({"seed": 2**63}, "seed must lie in"),
        ({"ridge": -1.0}, "ridge must be finite and >= 0"),
        ({"test": Prompt(5, 12)}, "the test prompt has d = 5; pretraining has d = 6"),
    ],
)
def test_bad_requests_are_refused(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        simulate.risk(SMALL, **({"ridge": 0.1} | changes))


def test_large_seeds_are_distinct():
    with jax.enable_x64(True):
        keys = [
            jax.random.key_data(key_of(seed, i)).tolist() for seed in (0, 1, 2**32, 2**62 + 1) for i in (0, 1, 2**31)
        ]
    assert len({tuple(key) for key in keys}) == len(keys)


DEVICES = """
import jax, numpy as np
from corricl import simulate
from corricl.prompt import Pretraining, Prompt
assert len(jax.devices()) == 4
for sequences, ridge in ((3000, 1e-8), (30, 0.1)):
    setting = Pretraining(Prompt(6, 12, "exp:2", "continues", 0.1), sequences, 9)
    options = {"seed": 3, "index": 1, "method": "cg", "tolerance": 1e-13}
    runs = [
        np.asarray(simulate.pretrain(setting, ridge, devices=jax.devices()[:n], **options)[0].gamma)
        for n in (1, 4)
    ]
    for run in runs[1:]:
        print(np.abs(run - runs[0]).max() / np.abs(runs[0]).max())
"""


def test_several_devices_give_the_numbers_of_one(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=4")
    done = subprocess.run([sys.executable, "-c", DEVICES], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    gaps = [float(line) for line in done.stdout.split()]
    assert len(gaps) == 2
    assert max(gaps) < 1e-10


def test_the_error_on_drawn_data_is_that_of_fresh_data():
    """Just above the number of features the error on the pretraining data itself would be far lower."""
    pretraining = Pretraining(Prompt(6, 12, "exp:2", "continues", 0.1), sequences=64, tasks=None)
    gaps = []
    for index in range(32):
        solution, _, _ = simulate.pretrain(pretraining, 1e-3, seed=3, index=index)
        gamma = np.asarray(solution.gamma)
        found = simulate.data_error(gamma, pretraining.prompt, sequences=64, seed=3, index=index)
        gaps.append(found / exact.risk_of(gamma, pretraining.prompt) - 1)
    mean, stderr = np.mean(gaps), np.std(gaps, ddof=1) / len(gaps) ** 0.5
    assert stderr < 0.1
    assert abs(mean) < 4 * stderr
