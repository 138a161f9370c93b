"""Concentration: planted powers are found with honest standard errors, and clear cases get their verdict."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from corricl import InputError, Pretraining, simulate
from corricl.cli import main
from corricl.figures._registry import find
from corricl.simulate._powers import Sample, log_mean, log_relative, log_variance, measure_power, settles

SIZES = np.array([8, 16, 32, 64])


def planted(rng, mean_power, variance_power, replicates, shape="normal", sizes=SIZES):
    """Replicates whose mean and variance are known powers of d, shape (sizes, replicates)."""
    draw = {
        "normal": lambda size: rng.standard_normal(size),
        "skewed": lambda size: (rng.gamma(4.0, size=size) - 4) / 2,
    }[shape]
    mean, deviation = 2.0 * sizes ** float(mean_power), 0.8 * sizes ** (variance_power / 2)
    return mean[:, None] + deviation[:, None] * draw((len(sizes), replicates))


@pytest.mark.parametrize("shape", ["normal", "skewed"])
@pytest.mark.parametrize("replicates", [10, 40])
def test_planted_powers_are_recovered_with_calibrated_errors(shape, replicates):
    rng, trials = np.random.default_rng(3), 400
    expected = {log_mean: -0.5, log_variance: -3.0, log_relative: -2.0}
    z = {f: [] for f in expected}
    for _ in range(trials):
        sample = Sample.of(planted(rng, -0.5, -3.0, replicates, shape))
        for f, power in expected.items():
            fit = measure_power(SIZES, *f(sample))
            z[f].append((fit.power - power) / fit.stderr)
    for scores in map(np.array, z.values()):
        assert abs(scores.mean()) < (0.25 if shape == "normal" else 0.45)  # skewed means err towards small spreads
        assert 0.85 < scores.std() < 1.25  # neither far too bold nor far too shy
        assert (abs(scores) < 2).mean() > 0.88


def test_bias_of_the_logarithm_is_removed_where_replicates_differ():
    rng, rows = np.random.default_rng(4), []
    for _ in range(2000):
        few, many = rng.standard_normal(5), rng.standard_normal(100)
        variance = np.array([few.var(ddof=1), many.var(ddof=1)])
        rows.append(log_variance(Sample(np.ones(2), variance, np.array([5.0, 100.0]), np.zeros(2)))[0])
    few, many = np.array(rows).T
    assert abs(few.mean()) < 4 * few.std() / 2000**0.5  # -.27 if left alone
    assert abs(many.mean()) < 4 * many.std() / 2000**0.5


def test_chi_square_shows_a_misfit():
    logs = np.log(SIZES.astype(float))
    assert measure_power(SIZES, -2 * logs, np.full(4, 0.1)).chi2 < 1e-20
    bent = measure_power(SIZES, -2 * logs + logs**2, np.full(4, 0.1))
    assert bent.chi2 > 20 * bent.dof
    assert bent.dof == 2
    with pytest.raises(InputError, match="at least two sizes"):
        measure_power([8, 8], np.zeros(2), np.ones(2))


@pytest.mark.parametrize(
    ("means", "deviation", "answer"),
    [
        (1 + 2 / SIZES, 0.01, True),  # a limit with a 1/d correction
        (1 + 0 * SIZES, 0.01, True),  # nothing moves
        (SIZES**-0.7, 0.01, False),
        (1 / SIZES, 0.01, False),  # m + c/d with m = 0 is no limit
        (SIZES**0.4, 0.01, False),
        (1 + 8 / SIZES, 0.6, None),  # too noisy to tell
    ],
)
def test_a_limit_is_told_from_a_power(means, deviation, answer):
    count = np.full(4, 100.0)
    assert settles(SIZES, Sample(means, (deviation * means) ** 2, count, np.zeros(4))) is answer


def test_verdicts_of_planted_laws():
    rng = np.random.default_rng(6)
    assert simulate.trend(SIZES, planted(rng, 0, -2, 60)).verdict == "concentrates"
    assert simulate.trend(SIZES, planted(rng, 0, 0, 60) / 4 + 5).verdict == "does not concentrate"
    assert simulate.trend(SIZES[:3], planted(rng, 0, -0.6, 4, sizes=SIZES[:3])).verdict == "undecided"
    shrinking = simulate.trend(SIZES, planted(rng, -1, -2, 60))  # the variance falls only with its mean
    assert (shrinking.verdict, shrinking.scale) == ("does not concentrate", "runs away")
    assert shrinking.variance_power.power < -1.5


def family(kernel):
    def at(d):
        return Pretraining.from_ratios(d, 1, 4, 2, kernel=kernel.format(length=d), noise=0.1)

    return at


@pytest.fixture(scope="module")
def weak():
    return simulate.concentration(family("exp:1"), [6, 12, 24], ridge=0.3, replicates=30)


@pytest.mark.slow
def test_weak_correlations_concentrate(weak):
    assert weak.verdict == "concentrates", weak.summary
    assert weak.summary.startswith("concentrates: ")
    for trend in (weak.trace, weak.square, weak.icl):
        assert -4 < trend.relative_power.power < -1.2
        assert trend.scale == "settles"
    assert weak.residual < 1e-8


@pytest.mark.slow
def test_correlations_as_long_as_the_context_do_not():
    found = simulate.concentration(family("exp:{length}"), [6, 12, 24], ridge=0.3, replicates=30)
    assert found.verdict == "does not concentrate"
    assert found.trace.scale == "runs away"
    assert -1 < found.trace.mean_power.power < -0.4
    assert "runs away as d^(-0." in found.summary


@pytest.mark.slow
def test_the_command_prints_the_library_numbers(weak, capsys):
    words = "--sizes 6,12,24 --alpha 1 --tau 4 --kappa 2 --noise .1 --ridge .3 --kernel exp:1 --replicates 30"
    with pytest.raises(SystemExit) as stop:
        main(["concentration", *words.split(), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert stop.value.code == 0
    assert found["verdict"] == weak.verdict
    assert found["trace"]["variances"] == list(weak.trace.variances)
    assert found["icl"]["variance_power"]["stderr"] == weak.icl.variance_power.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--alpha 1 --tau 2 --d 8", "not sizes of their own"),
        ("--alpha 1 --tau 2 --tasks 8", "not sizes of their own"),
        ("--length 8 --tau 2", "not sizes of their own"),
        ("--alpha 1 --sequences 100", "not sizes of their own"),
        ("--alpha 1", "needs --alpha and --tau"),
        ("--alpha 1 --tau 2 --kernel exp:2 --xi-power 1", "not both"),
        ("--alpha 1 --tau 2 --xi-power -1", "xi-power must be finite and >= 0"),
        ("--alpha 1 --tau 2 --sizes 8,x,32", "integers separated by commas"),
        ("--alpha 1 --tau 2 --sizes 8,16", "three or more different d"),
        ("--alpha 1 --tau 2 --sizes 8,16,16", "three or more different d"),
        ("--alpha 1 --tau 2 --replicates 3", "replicates must be at least 4"),
        ("--alpha 1 --tau 2 --test-noise .1", "give no test prompt"),
    ],
)
def test_bad_input_is_one_clear_line(capsys, words, message):
    with pytest.raises(SystemExit) as stop:
        main(["concentration", *words.split()])
    error = capsys.readouterr().err
    assert stop.value.code == 2
    assert error.count("\n") == 1
    assert message in error


def test_the_growing_correlation_length_is_a_power_of_the_length():
    from corricl.cli._concentration import family_of
    from corricl.setting import Setting

    made = family_of(Setting(alpha=2, tau=3, kappa=0.5, query="continues"), 0.5)(18)
    assert made.prompt.kernel.spec == "exp:6"
    assert (made.prompt.length, made.sequences, made.tasks) == (36, 972, 9)


def test_families_and_values_that_say_nothing_are_refused():
    with pytest.raises(InputError, match="the family gives d = 8 for d = 4"):
        simulate.concentration(lambda d: family("iid")(8), [4, 8, 16], replicates=4)
    with pytest.raises(InputError, match="does not vary between replicates at d = 8"):
        simulate.trend(SIZES, np.ones((4, 9)))
    with pytest.raises(InputError, match="mean of the quantity is not positive at d = 8"):
        simulate.trend(SIZES, -planted(np.random.default_rng(0), 0, -2, 9))


@pytest.mark.parametrize("name", ["breakdown", "finite-size"])
@pytest.mark.parametrize("quick", [True, False])
def test_figures_build_their_sweeps(name, quick):
    specs = find(name).sweeps(quick)
    assert len({spec.name for spec in specs}) == len(specs)
    for spec in specs:
        assert sum(1 for _ in spec.cells()) == spec.count()


def test_the_breakdown_figure_fits_what_its_rows_say():
    figure = find("breakdown")
    specs, rows = figure.sweeps(quick=True), []
    for spec in specs:
        d, count = spec.base["d"], spec.replicates
        for cell in spec.cells():
            for quantity in ("trace", "square", "icl"):
                value = {"mean": d**-0.5, "stderr": d**-1.5 / count**0.5, "replicates": count}
                rows.append(
                    {"sweep": spec.name, **cell.coordinates, "estimator": "simulate", "quantity": quantity, **value}
                )
    fits = figure.extra(specs, rows)
    powers = {fit["kind"]: fit["mean"] for fit in fits}
    assert powers["mean"] == pytest.approx(-0.5)
    assert powers["variance"] == pytest.approx(-3, abs=0.05)  # replicates differ, and with them the bias taken off
    assert powers["relative"] == pytest.approx(-2, abs=0.05)
    assert len(fits) == 6 * 2 * 3 * 3  # kernels, queries, quantities, kinds
    assert figure.table(rows + fits).count("\n") == 6 * 2 * 3


def test_the_accuracy_map_of_the_page():
    root = Path(__file__).parents[1]
    spec = importlib.util.spec_from_file_location("theory_map_page", root / "docs" / "_theory_map.py")
    page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    row = {"d": "32", "alpha": "1", "tau": "1.5", "kernel": "exp:.3l", "query": "continues", "ridge": "1e-08"}
    simulated = {"replicates": "8", "icl": "2.0", "stderr": "0.0", "idg": "1.0", "weak": "1.0", "mixture_idg": "1.01"}
    rows = [
        {**row, **simulated, "kappa": "inf", "mixture": "2.04"},
        {**row, **simulated, "kappa": "2", "mixture": "nan"},
    ]
    table = page.table(rows)
    assert "| all | 2 | 50.0% | 50.0% | 50.0% | 2.0% | 2.0% | 2.0% | 1.0% | 1.0% | 1.0% |" in table
    assert "| d ≥ 32, κ = 2 | 1 | 50.0% | 50.0% | 50.0% | - | - | - | 1.0% | 1.0% | 1.0% |" in table
    assert "0 without a converged simulation, 1 without a converged mixture theory" in table
    text = page.filled(page.PAGE.read_text(encoding="utf-8"), table)
    assert page.filled(text, table) == text
    with pytest.raises(ValueError, match="once each"):
        page.filled("nothing", table)
