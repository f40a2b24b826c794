"""What the background jobs did: one row a run, and a few facts they keep between runs (spec 6.6).

One SQLite file in the state folder, shared by the server and the commands beside it. Nothing in it is irreplaceable:
a damaged file is set aside and a new one begun.
"""
from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

from echo_core.clock import Clock
from echo_core.errors import StorageFailed

FILE = "jobs.sqlite3"
KEEP_RUNS = 200
"""Rows kept of each job."""
INTERRUPTED = "interrupted"
_WAIT_S = 10.0
_SCHEMA = """
create table if not exists runs (
    id integer primary key autoincrement, job text not null, started text not null, ended text not null default '',
    result text not null default '', detail text not null default '{}'
);
create index if not exists runs_job on runs (job, id);
create table if not exists facts (key text primary key, value text not null);
"""
_COLUMNS = "id, job, started, ended, result, detail"


class Run(NamedTuple):
    """One run. started, ended: instants with offset, `ended` "" while it runs. result: a word. detail: JSON values."""

    id: int
    job: str
    started: str
    ended: str
    result: str
    detail: dict[str, Any]


class Runs:
    """The table in `state_dir`. Every method raises StorageFailed when the file cannot be used; thread-safe."""

    def __init__(self, state_dir: str, clock: Clock) -> None:
        self._path = os.path.join(state_dir, FILE)
        self._clock = clock

    def begin(self, job: str) -> int:
        """A run of `job` begins; the id for `end`. One that never ended is closed as interrupted."""
        now = self._clock.instant()
        with self._open() as database, database:
            database.execute("update runs set ended = ?, result = ? where job = ? and ended = ''",
                             (now, INTERRUPTED, job))
            database.execute(
                "delete from runs where job = ? and id <= (select max(id) from runs where job = ?) - ? ",
                (job, job, KEEP_RUNS))
            row = database.execute("insert into runs (job, started) values (?, ?)", (job, now))
            return int(row.lastrowid or 0)

    def end(self, run: int, result: str, detail: dict[str, Any]) -> None:
        """The run is over. result: a word such as "ok" or "failed"; detail: JSON values."""
        with self._open() as database, database:
            database.execute("update runs set ended = ?, result = ?, detail = ? where id = ?",
                             (self._clock.instant(), result, json.dumps(detail), run))

    def last(self, job: str, *results: str) -> Run | None:
        """The newest run of a job that is over, of the named results only when there are any."""
        among = f" and result in ({', '.join('?' * len(results))})" if results else ""
        with self._open() as database:
            row = database.execute(
                f"select {_COLUMNS} from runs where job = ? and ended != ''{among} order by id desc limit 1",  # noqa: S608
                (job, *results)).fetchone()
        return _run(row) if row else None

    def recent(self, job: str, most: int = 20) -> list[Run]:
        """The newest runs of a job, the newest first, one that is running included."""
        with self._open() as database:
            rows = database.execute(f"select {_COLUMNS} from runs where job = ? order by id desc limit ?",  # noqa: S608
                                    (job, most)).fetchall()
        return [_run(row) for row in rows]

    def latest(self) -> list[Run]:
        """The newest run of each job, those that are running included, by job."""
        with self._open() as database:
            rows = database.execute(
                f"select {_COLUMNS} from runs where id in (select max(id) from runs group by job) order by job"  # noqa: S608
            ).fetchall()
        return [_run(row) for row in rows]

    def fact(self, key: str) -> Any:
        """The JSON value kept under `key`, None when there is none."""
        with self._open() as database:
            row = database.execute("select value from facts where key = ?", (key,)).fetchone()
        return json.loads(row[0]) if row else None

    def facts(self, prefix: str) -> dict[str, Any]:
        """All values whose key begins with `prefix`, by the rest of the key."""
        with self._open() as database:
            rows = database.execute("select key, value from facts where substr(key, 1, ?) = ?",
                                    (len(prefix), prefix)).fetchall()
        return {key[len(prefix):]: json.loads(value) for key, value in rows}

    def keep(self, key: str, value: Any) -> None:
        """Keep a JSON value under `key`; None forgets it."""
        with self._open() as database, database:
            if value is None:
                database.execute("delete from facts where key = ?", (key,))
            else:
                database.execute("insert or replace into facts values (?, ?)", (key, json.dumps(value)))

    def trace(self) -> int:
        """Changes whenever somebody has written; 0 while there is no file."""
        try:
            return os.stat(self._path).st_mtime_ns
        except OSError:
            return 0

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            try:
                database = self._connect()
            except sqlite3.DatabaseError as damage:
                if type(damage) is not sqlite3.DatabaseError:
                    raise  # locked, full or read-only: the file itself is sound
                self._set_aside()
                database = self._connect()
            with closing(database):
                yield database
        except (sqlite3.Error, OSError) as failure:
            raise StorageFailed(f"The table of runs cannot be used ({type(failure).__name__})", reason="runs",
                                hint="Free some space in the state folder, or make it writable.") from failure

    def _connect(self) -> sqlite3.Connection:
        os.close(os.open(self._path, os.O_CREAT | os.O_WRONLY, 0o600))
        database = sqlite3.connect(self._path, timeout=_WAIT_S)
        try:
            database.execute("pragma journal_mode = wal")
            database.executescript(_SCHEMA)
        except BaseException:
            database.close()
            raise
        return database

    def _set_aside(self) -> None:
        number = 1
        while os.path.exists(aside := f"{self._path}.corrupt-{number}"):
            number += 1
        for suffix in ("-wal", "-shm", ""):
            if os.path.exists(self._path + suffix):
                os.replace(self._path + suffix, aside + suffix)


def _run(row: tuple[Any, ...]) -> Run:
    return Run(row[0], row[1], row[2], row[3], row[4], json.loads(row[5]))
