"""Kill a sweep with SIGKILL at random moments, resume it each time, and compare with an undisturbed run.

    python validation/kill_drill.py --kills 20

After every kill SQLite's integrity check must pass; at the end the table must be the same bit for bit and no
point may have been committed twice, which a trigger in the store counts.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from corricl.sweeps import Estimator, Results, Setting, Spec, Store

RUN = """
import sys
from corricl.sweeps import Spec, run
run(Spec.from_json(sys.argv[1]), sys.argv[2], workers=2, progress=False)
"""
AUDIT = """
CREATE TABLE audit (key TEXT, what TEXT);
CREATE TRIGGER added AFTER INSERT ON points BEGIN INSERT INTO audit VALUES (new.key, 'insert'); END;
CREATE TRIGGER changed AFTER UPDATE ON points BEGIN INSERT INTO audit VALUES (new.key, 'update'); END;
CREATE TRIGGER removed AFTER DELETE ON points BEGIN INSERT INTO audit VALUES (old.key, 'delete'); END;
"""


class Drill(Estimator):
    """A hundred normals, `drill:SECONDS` later."""

    name = "drill"

    def run(self, setting: Setting, *, seed: int, replicate: int, folder: Path) -> dict[str, float | None]:
        time.sleep(float(self.argument))
        drawn = np.random.default_rng([seed, replicate]).standard_normal(100)
        return {"icl": setting.ridge + float(drawn.mean()), "idg": float(drawn.std())}


def spec(seconds: float = 0.02) -> Spec:
    """200 points of about `seconds` each."""
    return Spec(
        name="drill",
        base={"d": 8, "alpha": 1, "tau": 2},
        axes={"ridge": [0.0, 0.001, 0.01, 0.1], "noise": [0.0, 0.1, 0.2, 0.3, 0.4]},
        estimators=[f"drill:{seconds}"],
        replicates=10,
        seed=7,
        imports=[__file__],
    )


def count(store: Path) -> int:
    """Points committed so far; the integrity check must pass."""
    with Store(store) as kept:
        kept.check()
        return kept.db.execute("SELECT count(*) FROM points").fetchone()[0]


def disturbed(store: Path, kills: int, seed: int) -> list[int]:
    """Run the drill into `store`, killed at random moments; returns the points committed at each kill."""
    draw = random.Random(seed)
    with Store(store, write=True) as kept:
        kept.db.executescript(AUDIT)
    moments = sorted(draw.sample(range(190), kills))  # some fall into the start of the workers
    seen = []
    for moment in [*moments, None]:
        process = subprocess.Popen([sys.executable, "-c", RUN, spec().to_json(), str(store)])
        if moment is None:
            if process.wait(timeout=120) != 0:
                raise SystemExit("the last run failed")
            break
        while count(store) < moment and process.poll() is None:
            time.sleep(0.01)
        time.sleep(draw.uniform(0, 0.05))
        process.kill()
        process.wait()
        seen.append(count(store))
    return seen


def drill(folder: Path, kills: int, seed: int = 0) -> dict[str, Any]:
    """The whole drill; raises AssertionError where the store breaks its promise."""
    seen = disturbed(folder / "killed.sqlite", kills, seed)
    subprocess.run([sys.executable, "-c", RUN, spec().to_json(), str(folder / "calm.sqlite")], check=True)
    assert sum(0 < committed < 200 for committed in seen) >= kills // 2, f"too few kills fell amid the points: {seen}"
    assert count(folder / "killed.sqlite") == count(folder / "calm.sqlite") == 200
    with sqlite3.connect(folder / "killed.sqlite") as db:
        assert db.execute("SELECT count(*), count(DISTINCT key), min(what), max(what) FROM audit").fetchone() == (
            200, 200, "insert", "insert",
        )  # fmt: skip
    db.close()
    killed, calm = (Results(folder / f"{name}.sqlite") for name in ("killed", "calm"))
    assert killed.rows() == calm.rows()
    assert killed.dataset().identical(calm.dataset())
    columns = ["ridge", "noise", "replicate", "icl", "idg", "key"]
    assert killed.points()[columns].equals(calm.points()[columns])
    return {"kills": kills, "committed at each kill": seen, "table": "identical"}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        print(drill(Path(name), arguments.kills, arguments.seed))
