"""The store: one writer, every point once, and what it refuses."""

import sqlite3
from pathlib import Path

import pytest

from corricl import InputError
from corricl.sweeps import Results, Spec, Store, merge, run
from corricl.sweeps import _store as module
from corricl.sweeps._filesystem import filesystem, is_local
from corricl.sweeps._plan import Plan
from corricl.sweeps._points import Outcome

BASE = {"d": 8, "alpha": 1, "tau": 2}


def sweep(**changes):
    return Spec(**{"base": BASE, "axes": {"noise": [0.0, 0.1]}, "estimators": ["theory:weak"], **changes})


def filled(path, spec, value=1.0):
    """A store with a made-up result for every point."""
    plan = Plan(spec, {})
    outcomes = [(point, Outcome(key, {"icl": value, "idg": float("inf")})) for key, point in plan.open.items()]
    with Store(path, write=True) as store:
        store.remember(spec, plan.entries)
        store.commit(outcomes)
    return outcomes


def test_a_point_is_committed_once_or_the_store_is_left_alone(tmp_path):
    outcomes = filled(tmp_path / "s.sqlite", sweep())
    with Store(tmp_path / "s.sqlite", write=True) as store:
        before = store.results()
        with pytest.raises(sqlite3.IntegrityError):
            store.commit([(outcomes[0][0]._replace(key="new"), outcomes[0][1]), outcomes[0]])
        assert store.results() == before
        assert next(iter(before.values())) == {"icl": 1.0, "idg": float("inf")}
        store.check()


def test_infinity_is_a_word_in_the_file(tmp_path):
    filled(tmp_path / "s.sqlite", sweep())
    with Store(tmp_path / "s.sqlite") as store:
        assert store.db.execute("SELECT DISTINCT result FROM points").fetchall() == [('{"icl":1.0,"idg":"inf"}',)]


def test_one_process_writes_and_others_read(tmp_path):
    path = tmp_path / "s.sqlite"
    filled(path, sweep())
    with Store(path, write=True), Store(path) as reader:
        assert len(reader.results()) == 2
        with pytest.raises(InputError, match="another process is writing"):
            Store(path, write=True)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.db.execute("DELETE FROM points")


def test_what_is_no_store_is_refused(tmp_path):
    with pytest.raises(InputError, match="there is no store"):
        Store(tmp_path / "none.sqlite")
    with pytest.raises(InputError, match="there is no folder"):
        Store(tmp_path / "none" / "s.sqlite", write=True)
    (tmp_path / "text.sqlite").write_text("not a database, but long enough to look like one" * 40)
    with pytest.raises(InputError, match="is not a store"):
        Store(tmp_path / "text.sqlite", write=True)
    other = sqlite3.connect(tmp_path / "other.sqlite")
    other.execute("CREATE TABLE mine (x)")
    other.close()
    with pytest.raises(InputError, match="is not a store"):
        Store(tmp_path / "other.sqlite", write=True)


def test_another_schema_version_is_refused(tmp_path, monkeypatch):
    filled(tmp_path / "s.sqlite", sweep())
    monkeypatch.setattr(module, "SCHEMA_VERSION", 2)
    with pytest.raises(InputError, match="has schema version 1; this corricl reads 2"):
        Store(tmp_path / "s.sqlite")


@pytest.mark.parametrize(("local", "mode"), [(True, "wal"), (False, "delete")])
def test_the_journal_fits_the_file_system(tmp_path, monkeypatch, local, mode):
    monkeypatch.setattr(module, "is_local", lambda path: not local)
    filled(tmp_path / "s.sqlite", sweep())  # a store that has moved changes its journal
    monkeypatch.setattr(module, "is_local", lambda path: local)
    with Store(tmp_path / "s.sqlite", write=True) as store:
        assert store.db.execute("PRAGMA journal_mode").fetchone()[0] == mode


def test_file_systems_are_told_apart(tmp_path):
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "/dev/sda / ext4 rw 0 0\nserver:/home /home nfs4 rw 0 0\n/dev/sdb /home/my\\040disk xfs rw 0 0\n"
        "scratch /scratch lustre rw 0 0\n"
    )
    found = {p: filesystem(Path(p), mounts) for p in ("/a/b", "/home/me/s", "/home/my disk/s", "/scratch/s")}
    assert list(found.values()) == ["ext4", "nfs4", "xfs", "lustre"]
    assert filesystem(Path("/a"), tmp_path / "none") == "unknown"
    assert not is_local(Path("/proc/1"))  # a file system that is no disk of this machine


def test_stores_merge(tmp_path):
    ours, theirs = tmp_path / "ours.sqlite", tmp_path / "theirs.sqlite"
    filled(ours, sweep(name="a"))
    filled(theirs, sweep(name="b", axes={"noise": [0.1, 0.2]}), value=2.0)
    assert merge(ours, theirs) == (1, 1, 1)  # of the one that both have the value differs; ours is kept
    assert merge(ours, theirs) == (0, 2, 1)
    found = Results(ours)
    assert found.sweeps == ["a", "b"]
    assert [row["mean"] for row in found.rows("b") if row["quantity"] == "icl"] == [1.0, 2.0]
    with pytest.raises(InputError, match="name one of the sweeps; the store holds a, b"):
        found.rows()


def test_results_need_neither_the_estimators_nor_the_files(tmp_path):
    matrix = tmp_path / "k.csv"
    matrix.write_text("1,0.5\n0.5,1\n")
    spec = sweep(base={"d": 2, "length": 2, "tau": 2, "kernel": f"file:{matrix}"}, imports=["gone_by_then"])
    filled(tmp_path / "s.sqlite", spec.model_copy(update={"imports": []}))
    matrix.unlink()
    assert len(Results(tmp_path / "s.sqlite").rows()) == 4


def test_a_finished_sweep_is_not_computed_again(tmp_path):
    filled(tmp_path / "s.sqlite", sweep())
    report = run(sweep(axes={"noise": [0.0, 0.1, 0.2]}), tmp_path / "s.sqlite", workers=1, progress=False)
    assert (report.points, report.finished, report.computed) == (3, 3, 1)
