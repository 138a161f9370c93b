"""The store: one SQLite file of finished points, written by the coordinating process alone."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import InputError
from ._filesystem import is_local, lock
from ._points import Entry, Values
from ._setting import dumps
from ._spec import Spec

if TYPE_CHECKING:
    from types import TracebackType

    from ._points import Outcome, Point

SCHEMA_VERSION = 1
APPLICATION = 0x636F7269  # "cori": tells a store from any other SQLite file

_SCHEMA = """
CREATE TABLE sweeps (digest TEXT PRIMARY KEY, name TEXT NOT NULL, spec TEXT NOT NULL, started TEXT NOT NULL);
CREATE TABLE entries (
  sweep TEXT NOT NULL REFERENCES sweeps, place INTEGER NOT NULL, digest TEXT NOT NULL, coordinates TEXT NOT NULL,
  estimator TEXT NOT NULL, random INTEGER NOT NULL, PRIMARY KEY (sweep, place)
) WITHOUT ROWID;
CREATE TABLE hosts (id INTEGER PRIMARY KEY, record TEXT NOT NULL UNIQUE);
CREATE TABLE points (
  key TEXT PRIMARY KEY, estimator TEXT NOT NULL, setting TEXT NOT NULL, seed INTEGER, replicate INTEGER,
  result TEXT NOT NULL, seconds REAL NOT NULL, host INTEGER NOT NULL REFERENCES hosts, finished TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE failures (
  key TEXT PRIMARY KEY, estimator TEXT NOT NULL, setting TEXT NOT NULL, seed INTEGER, replicate INTEGER,
  error TEXT NOT NULL, traceback TEXT NOT NULL, failed TEXT NOT NULL
) WITHOUT ROWID;
"""


class Merged(NamedTuple):
    """Points taken over, points that both stores had, and how many of those differ in value."""

    added: int
    shared: int
    differing: int


class Store:
    """Finished points, failures, the specs that asked for them, and where they were computed.

    Args:
        path: the SQLite file; it is made if `write` and it does not exist.
        write: take the store for writing. One process at a time may.

    Raises:
        InputError: if there is no such store, it is another kind of file, its schema version is not
            this one, or another process is writing it.
    """

    def __init__(self, path: str | Path, write: bool = False) -> None:
        self.path = Path(path).resolve()
        if not write and not self.path.is_file():
            raise InputError(f"there is no store '{path}'")
        if not self.path.parent.is_dir():
            raise InputError(f"there is no folder '{self.path.parent}' for the store")
        self._lock = lock(self.path) if write else None
        mode = "rwc" if write else "ro"
        try:
            self.db = sqlite3.connect(f"{self.path.as_uri()}?mode={mode}", uri=True, timeout=60, isolation_level=None)
        except sqlite3.Error as error:
            raise InputError(f"cannot open the store '{path}': {error}") from None
        try:
            self._open(write)
        except BaseException:
            self.close()
            raise

    def _open(self, write: bool) -> None:
        try:
            kind, version = (self.db.execute(f"PRAGMA {p}").fetchone()[0] for p in ("application_id", "user_version"))
            empty = not self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        except sqlite3.DatabaseError as error:
            raise InputError(f"'{self.path}' is not a store of sweeps: {error}") from None
        if empty and write:
            self.db.executescript(
                f"BEGIN;{_SCHEMA}PRAGMA application_id={APPLICATION};PRAGMA user_version={SCHEMA_VERSION};COMMIT;"
            )
        elif kind != APPLICATION:
            raise InputError(f"'{self.path}' is not a store of sweeps")
        elif version != SCHEMA_VERSION:
            raise InputError(f"'{self.path}' has schema version {version}; this corricl reads {SCHEMA_VERSION}")
        if write:
            # A write-ahead log needs memory shared between processes, which network file systems lack.
            self.db.execute(f"PRAGMA journal_mode={'WAL' if is_local(self.path) else 'DELETE'}")
            self.db.execute("PRAGMA synchronous=NORMAL" if is_local(self.path) else "PRAGMA synchronous=FULL")

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and let another process write it."""
        self.db.close()
        if self._lock is not None:
            self._lock.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    def remember(self, spec: Spec, entries: Iterable[Entry]) -> None:
        """Keep the spec and the entries of its table; of several specs with one name the latest counts."""
        text = spec.to_json()
        digest = hashlib.sha256(text.encode()).hexdigest()
        rows = (
            (digest, at, e.digest, dumps(e.coordinates, sort=False), e.estimator, e.random)
            for at, e in enumerate(entries)
        )
        with self._transaction():
            self.db.execute("INSERT OR REPLACE INTO sweeps VALUES (?,?,?,?)", (digest, spec.name, text, _now()))
            self.db.execute("DELETE FROM entries WHERE sweep=?", (digest,))
            self.db.executemany("INSERT INTO entries VALUES (?,?,?,?,?,?)", rows)

    def sweeps(self) -> dict[str, tuple[Spec, list[Entry]]]:
        """The latest spec of each name, with the entries of its table. Nothing is imported or parsed anew."""
        rows = self.db.execute("SELECT name, spec, digest FROM sweeps ORDER BY started")
        latest = {name: (Spec.from_json(text), digest) for name, text, digest in rows}
        return {name: (spec, list(self._entries(digest))) for name, (spec, digest) in latest.items()}

    def _entries(self, sweep: str) -> Iterator[Entry]:
        columns = "digest, coordinates, estimator, random"
        for row in self.db.execute(f"SELECT {columns} FROM entries WHERE sweep=? ORDER BY place", (sweep,)):
            yield Entry(row[0], _values(row[1]), row[2], bool(row[3]))

    def commit(self, outcomes: Iterable[tuple[Point, Outcome]]) -> None:
        """Write outcomes in one transaction. A point that is already there is a programming error and raises."""
        with self._transaction():
            for point, outcome in outcomes:
                row = (point.key, point.estimator, dumps(point.setting), point.seed, point.replicate)
                if outcome.values is None:
                    failure = (*row, outcome.error, outcome.traceback, _now())
                    self.db.execute("INSERT OR REPLACE INTO failures VALUES (?,?,?,?,?,?,?,?)", failure)
                    continue
                values = (*row, dumps(outcome.values), outcome.seconds, self._host(outcome.host), _now())
                self.db.execute("INSERT INTO points VALUES (?,?,?,?,?,?,?,?,?)", values)
                self.db.execute("DELETE FROM failures WHERE key=?", (point.key,))

    def _host(self, record: str) -> int:
        self.db.execute("INSERT OR IGNORE INTO hosts (record) VALUES (?)", (record,))
        return self.db.execute("SELECT id FROM hosts WHERE record=?", (record,)).fetchone()[0]

    def results(self) -> dict[str, Values]:
        """Key to values, of all finished points."""
        return {key: _values(text) for key, text in self.db.execute("SELECT key, result FROM points")}

    def failures(self) -> dict[str, str]:
        """Key to error, of the points that failed and have not been finished since."""
        return dict(self.db.execute("SELECT key, error FROM failures"))

    def provenance(self) -> dict[str, tuple[float, dict[str, Any]]]:
        """Key to (seconds, record of host and versions) of all finished points."""
        rows = self.db.execute("SELECT key, seconds, record FROM points JOIN hosts ON points.host=hosts.id")
        return {key: (seconds, json.loads(record)) for key, seconds, record in rows}

    def check(self) -> None:
        """SQLite's own integrity check."""
        if (found := self.db.execute("PRAGMA integrity_check").fetchone()[0]) != "ok":
            raise InputError(f"the store '{self.path}' is damaged: {found}")

    def checkpoints(self, key: str) -> Path:
        """The folder beside the store in which the point may keep checkpoints."""
        return self.path.with_name(self.path.name + ".checkpoints") / key

    def discard_checkpoints(self, key: str) -> None:
        """Remove the checkpoints of a finished point."""
        shutil.rmtree(self.checkpoints(key), ignore_errors=True)
        with contextlib.suppress(OSError):  # others are still there, or there never were any
            self.checkpoints(key).parent.rmdir()


def merge(into: str | Path, other: str | Path) -> Merged:
    """Take the points, failures and specs of one store over into another, which keeps its own where both have one."""
    with Store(into, write=True) as store, Store(other) as source:
        if store.path == source.path:
            raise InputError(f"'{into}' cannot be merged into itself")
        mine, theirs = store.results(), source.results()
        shared = mine.keys() & theirs.keys()
        with store._transaction():
            for row in source.db.execute(
                "SELECT key, estimator, setting, seed, replicate, result, seconds, record, finished "
                "FROM points JOIN hosts ON points.host=hosts.id"
            ):
                if row[0] not in mine:
                    added = (*row[:7], store._host(row[7]), row[8])
                    store.db.execute("INSERT INTO points VALUES (?,?,?,?,?,?,?,?,?)", added)
            failures = source.db.execute("SELECT * FROM failures").fetchall()
            store.db.executemany("INSERT OR IGNORE INTO failures VALUES (?,?,?,?,?,?,?,?)", failures)
            store.db.execute("DELETE FROM failures WHERE key IN (SELECT key FROM points)")
            for table, places in (("sweeps", "?,?,?,?"), ("entries", "?,?,?,?,?,?")):
                rows = source.db.execute(f"SELECT * FROM {table}").fetchall()
                store.db.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({places})", rows)
        differing = sum(mine[key] != theirs[key] for key in shared)
        return Merged(len(theirs) - len(shared), len(shared), differing)


def _values(text: str) -> dict[str, Any]:
    return {name: float(v) if v in ("inf", "-inf") else v for name, v in json.loads(text).items()}


def _now() -> str:
    return datetime.now(UTC).isoformat()
