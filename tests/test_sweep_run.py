"""Running: the same table whoever computes it and whatever goes wrong on the way."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from sweep_estimators import wait_for

from corricl import InputError, theory
from corricl.plugins import import_module
from corricl.sweeps import Interrupted, Results, Spec, Store, dry_run, run
from corricl.sweeps._executors import Backlog
from corricl.sweeps._points import Point
from corricl.sweeps._worker import Task

HERE = Path(__file__).parent
MINE = str(HERE / "sweep_estimators.py")
BASE = {"d": 8, "alpha": 1, "tau": 2}


def sweep(*estimators, **changes):
    return Spec(**{"base": BASE, "estimators": list(estimators), "imports": [MINE], **changes})


@pytest.fixture(scope="module")
def grid():
    return sweep(
        "cheap:0.02",
        "theory:weak",
        base={**BASE, "kernel": "exp:{xi}"},
        axes={"xi": [0, 1, 2, 3, 4], "ridge": [0.0, 1.0]},
        replicates=10,
    )


@pytest.fixture(scope="module")
def one_worker(grid, tmp_path_factory):
    store = tmp_path_factory.mktemp("one") / "s.sqlite"
    run(grid, store, workers=1, progress=False)
    return Results(store)


def same(found, other):
    """Whether two stores have the same values, bit for bit, point by point and in the table."""
    columns = [name for name in other.points().columns if name != "seconds"]
    assert found.rows() == other.rows()
    assert found.points()[columns].equals(other.points()[columns])
    return found.dataset().identical(other.dataset())


def test_two_workers_make_the_same_table(grid, one_worker, tmp_path):
    report = run(grid, tmp_path / "s.sqlite", workers=2, progress=False)
    assert (report.points, report.finished, report.computed, report.failed) == (110, 110, 110, 0)
    assert same(Results(tmp_path / "s.sqlite"), one_worker)


def test_a_dask_cluster_of_which_a_worker_is_killed_makes_the_same_table(grid, one_worker, tmp_path):
    distributed = pytest.importorskip("distributed")
    store = tmp_path / "s.sqlite"
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    )
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        killed_at = []
        victim = next(iter(client.run(os.getpid).values()))

        def kill():
            wait_for(store, 15)
            os.kill(victim, signal.SIGKILL)
            with Store(store) as kept:
                killed_at.append(len(kept.results()))

        killer = threading.Thread(target=kill)
        killer.start()
        report = run(grid, store, executor=f"dask:{cluster.scheduler_address}", progress=False)
        killer.join()
    assert 15 <= killed_at[0] < 110
    assert (report.finished, report.computed, report.failed) == (110, 110, 0)
    assert same(Results(store), one_worker)


def test_the_kill_drill_with_five_kills(tmp_path):
    drill = import_module(str(HERE.parent / "validation" / "kill_drill.py"))
    report = drill.drill(tmp_path, kills=5, seed=1)
    assert len(report["committed at each kill"]) == 5


def test_a_worker_that_dies_is_replaced_and_its_point_goes_on_from_its_checkpoint(tmp_path):
    report = run(sweep("careful", replicates=1), tmp_path / "s.sqlite", workers=1, progress=False)
    assert (report.finished, report.failed) == (1, 0)
    assert Results(tmp_path / "s.sqlite").rows()[0]["mean"] == 2.0
    assert not (tmp_path / "s.sqlite.checkpoints").exists()


def test_points_that_fail_are_recorded_and_do_not_stop_the_others(tmp_path):
    store = tmp_path / "s.sqlite"
    spec = sweep("faulty", "faulty:nan", "faulty:dies", axes={"noise": [0.0, 0.1, 1.0, 0.2]}, replicates=1)
    report = run(spec, store, workers=2, progress=False)
    assert (report.points, report.finished, report.failed) == (12, 9, 3)
    errors = {failure["estimator"]: failure["error"] for failure in Results(store).failures()}
    assert errors["faulty"] == "ValueError: noise 1.0 is too much"
    assert errors["faulty:nan"] == "ArithmeticError: the estimator returned NaN for icl"
    assert errors["faulty:dies"] == "WorkerDied: 3 workers died at this point, the last by signal 9"
    again = run(spec, store, workers=1, progress=False)
    assert (again.computed, again.failed) == (0, 3)  # failed points are tried again, finished ones are not


def test_replicates_double_until_the_target_is_reached(tmp_path):
    spec = sweep("cheap", target_stderr="0.3%", replicates=64, axes={"ridge": [0.0, 0.9]})
    report = run(spec, tmp_path / "s.sqlite", workers=1, progress=False)
    rows = [row for row in Results(tmp_path / "s.sqlite").rows() if row["quantity"] == "icl"]
    assert [row["replicates"] for row in rows] == [16, 8]
    assert all(row["stderr"] < 0.003 * row["mean"] for row in rows)
    assert (report.points, report.unsettled) == (24, 0)
    strict = run(sweep("cheap", target_stderr="0.1%", replicates=16), tmp_path / "s.sqlite", workers=1, progress=False)
    assert (strict.unsettled, strict.computed) == (1, 0)


def test_workers_have_one_thread_and_keep_their_output_to_themselves(tmp_path, capfd):
    run(sweep("where", replicates=1), tmp_path / "s.sqlite", workers=1, progress=False)
    means = {row["quantity"]: row["mean"] for row in Results(tmp_path / "s.sqlite").rows()}
    assert means["threads"] == 1.0
    assert means["icl"] != os.getpid()
    assert "must not reach" not in capfd.readouterr().out


def tasks_of(groups):
    return [Task(Point(f"{group}{i}", "cheap", {}, 0, i, group), "") for i, group in enumerate(groups)]


def keys(tasks):
    return [task.point.key for task in tasks]


def test_a_worker_keeps_to_points_that_share_compiled_code():
    backlog = Backlog()
    backlog.put(tasks_of("abab"))
    first, second = backlog.take(), backlog.take(None, others=["a"])
    assert keys([first, second]) == ["a0", "b1"]  # the second worker starts where the first is not
    assert keys([backlog.take("b", others=["a"]), backlog.take("b", others=["a"])]) == ["b3", "a2"]
    assert backlog.take("a") is None


def test_the_points_of_a_dead_worker_come_first_and_the_one_that_kills_is_given_up():
    backlog = Backlog()
    tasks = tasks_of("aaaa")
    backlog.put(tasks[3:])
    for _ in range(2):
        assert backlog.lost(tasks[:3], "by signal 9") == []
        assert keys([backlog.take() for _ in range(3)]) == ["a0", "a1", "a2"]
    (given_up,) = backlog.lost(tasks[:3], "the last by signal 9")
    assert (given_up.key, given_up.values) == ("a0", None)
    assert keys([backlog.take() for _ in range(3)]) == ["a1", "a2", "a3"]
    assert backlog.take() is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_is_finished_and_says_how_to_resume(tmp_path, number):
    store = tmp_path / "s.sqlite"

    def interrupt():
        wait_for(store, 5)
        os.kill(os.getpid(), number)

    threading.Thread(target=interrupt).start()
    spec = sweep("cheap:0.05", replicates=1000)
    with pytest.raises(Interrupted, match="run the same sweep again to resume") as stopped:
        run(spec, store, workers=2, progress=False)
    kept = Results(store).progress()["finished"]
    assert 5 <= kept < 1000
    assert str(kept) in str(stopped.value)
    assert stopped.value.exit_code == 130


def test_workers_end_when_their_coordinator_is_killed(tmp_path):
    store, log = tmp_path / "s.sqlite", tmp_path / "log"
    code = "import sys; from corricl.sweeps import Spec, run; run(Spec.from_json(sys.argv[1]), sys.argv[2], workers=2)"
    spec = sweep("cheap:0.1", "cheap:100", replicates=4)
    process = subprocess.Popen(
        [sys.executable, "-c", code, spec.to_json(), str(store)], env={**os.environ, "SWEEP_TEST_LOG": str(log)}
    )
    wait_for(store, 4)
    process.kill()
    process.wait()
    workers = {int(line.split()[0]) for line in log.read_text().splitlines()}
    deadline = time.monotonic() + 5
    while alive := [pid for pid in workers if Path(f"/proc/{pid}").exists() and not _zombie(pid)]:
        assert time.monotonic() < deadline, alive
        time.sleep(0.05)


def _zombie(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_dry_run_counts_times_and_writes_nothing(tmp_path):
    plan = dry_run(sweep("cheap:0.05", "theory:weak", replicates=100), tmp_path / "s.sqlite", workers=2)
    assert (plan.cells, plan.points, plan.most, plan.finished) == (2, 101, 101, 0)
    assert 2.5 < plan.seconds < 10
    assert list(tmp_path.iterdir()) == []


def test_bad_executors_are_refused(tmp_path):
    for name, words in (("dusk", "unknown executor 'dusk'"), ("dask:", "unknown executor")):
        with pytest.raises(InputError, match=words):
            run(sweep("cheap"), tmp_path / "s.sqlite", executor=name, progress=False)
    with pytest.raises(InputError, match="workers must be at least 1"):
        run(sweep("cheap"), tmp_path / "s.sqlite", workers=0, progress=False)


def test_the_job_script_of_slurm_is_what_the_configuration_says():
    pytest.importorskip("dask_jobqueue")
    from dask_jobqueue.slurm import SLURMJob

    from corricl.sweeps._cluster import slurm_options

    options = slurm_options(queue="short", account="theory", walltime="01:00:00", memory="2 GiB")
    script = SLURMJob("tcp://login:8786", **options).job_script()
    for line in (
        "#SBATCH -J corricl", "#SBATCH -p short", "#SBATCH -A theory", "#SBATCH -n 1",
        "#SBATCH --cpus-per-task=1", "#SBATCH --mem=2G", "#SBATCH -t 01:00:00",
    ):  # fmt: skip
        assert line in script.splitlines()
    assert "--nthreads 1" in script
    assert "tcp://login:8786" in script


def test_a_sweep_over_the_kernel_compiles_the_solver_once_a_worker(tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("JAX_LOG_COMPILES", "1")
    spec = Spec(
        base={"d": 6, "alpha": 2, "tau": 2, "kappa": 0.5, "ridge": 0.01, "kernel": "exp:{xi}", "query": "continues"},
        axes={"xi": list(range(11))},
        estimators=["simulate"],
        replicates=1,
    )
    for workers in (1, 2):
        report = run(spec, tmp_path / f"{workers}.sqlite", workers=workers, progress=False)
        assert (report.finished, report.failed) == (11, 0)
        logged = capfd.readouterr().err
        for function in ("conjugate_gradients", "sample_sequences"):
            assert logged.count(f"Finished XLA compilation of jit({function})") == workers
    assert same(Results(tmp_path / "1.sqlite"), Results(tmp_path / "2.sqlite"))


def test_theory_sweeps_the_limit_and_what_needs_a_prompt_alone(tmp_path):
    base = {"alpha": 2, "kernel": "exp:{xi}", "noise": 0.1}
    limit = Spec(name="limit", base={**base, "tau": 2}, axes={"xi": [0, 1]}, estimators=["theory:weak"])
    floor = Spec(name="floor", base={**base, "d": 8}, axes={"xi": [0, 1]}, estimators=["theory:bayes"])
    for spec in (limit, floor):
        run(spec, tmp_path / "s.sqlite", workers=1, progress=False)
    found = Results(tmp_path / "s.sqlite")
    expected = [theory.limit(2, 2, kernel=f"exp:{xi}", noise=0.1).icl for xi in (0, 1)]
    assert [row["mean"] for row in found.rows("limit") if row["quantity"] == "icl"] == pytest.approx(
        expected, rel=1e-12
    )
    assert set(found.points("floor").method) == {"bayes"}
