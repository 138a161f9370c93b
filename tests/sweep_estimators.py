"""Estimators that the sweep tests import by path, as a user would bring them, and a helper of these tests."""

import os
import signal
import time
from pathlib import Path

import numpy as np

from corricl import InputError
from corricl.sweeps import Estimator, Store


def _log(setting):
    if path := os.environ.get("SWEEP_TEST_LOG"):
        with open(path, "a") as file:  # appends of one short line are atomic
            file.write(f"{os.getpid()} {setting.kernel} {setting.ridge}\n")


class Cheap(Estimator):
    """A few random numbers; `cheap:SECONDS` sleeps first."""

    name = "cheap"

    def run(self, setting, *, seed, replicate, folder):
        _log(setting)
        time.sleep(float(self.argument or 0))
        k2 = setting.pretraining.prompt.statistics.k2
        noise = np.random.default_rng([seed, replicate]).standard_normal(100).mean()
        return {"icl": k2 + 0.1 * noise + setting.ridge, "idg": float("inf") if setting.ridge > 0.5 else noise**3}


class Busy(Estimator):
    """`busy:SECONDS` keeps a core busy for so long."""

    name = "busy"

    def run(self, setting, **_):
        end = time.perf_counter() + float(self.argument)
        while time.perf_counter() < end:
            pass
        return {"icl": setting.noise}


class Faulty(Estimator):
    """Fails where the noise is large: with an error, NaN, or the death of the process."""

    name = "faulty"

    def run(self, setting, **_):
        if setting.noise > 0.5:
            if self.argument == "nan":
                return {"icl": float("nan")}
            if self.argument == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError(f"noise {setting.noise} is too much")
        return {"icl": setting.noise}


class Careful(Estimator):
    """Counts to three in a checkpoint and dies on the way, once at each count."""

    name = "careful"

    def run(self, setting, *, seed, replicate, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        state = folder / "count"
        count = int(state.read_text()) if state.exists() else 0
        if count < 2:
            state.write_text(str(count + 1))
            os.kill(os.getpid(), signal.SIGKILL)
        return {"icl": float(count)}


class Where(Estimator):
    """Says which process ran the point, and how many numerical threads it has."""

    name = "where"

    def run(self, setting, *, seed, replicate, folder):
        print("this must not reach the output of a command")
        return {"icl": float(os.getpid()), "threads": float(os.environ["OMP_NUM_THREADS"])}


def wait_for(store, points):
    """Until so many points are in the store."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if store.exists():
            try:
                with Store(store) as kept:
                    if len(kept.results()) >= points:
                        return
            except InputError:
                pass  # it is being made
        time.sleep(0.02)
    raise AssertionError(f"there are not {points} points in {store} after a minute")
