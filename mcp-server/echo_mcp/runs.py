"""What the background jobs did: one row a run, and a few facts they keep between runs (spec 6.6).

One SQLite file in the state folder, shared by the server and the commands beside it. Nothing in it is irreplaceable:
a damaged file is set aside and a new one begun.
"""
from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from echo_core.clock import Clock
from echo_core.errors import StorageFailed
from echo_core.state.database import StateDatabase

FILE = "jobs.sqlite3"
KEEP_RUNS = 200
"""Rows kept of each job."""
INTERRUPTED = "interrupted"
_SCHEMA = (
    """create table if not exists runs (
        id integer primary key autoincrement, job text not null, started text not null, ended text not null default '',
        result text not null default '', detail text not null default '{}'
    )""",
    "create index if not exists runs_job on runs (job, id)",
    "create table if not exists facts (key text primary key, value text not null)",
)
_Answer = TypeVar("_Answer")


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
        self._database = StateDatabase(state_dir, FILE, _make_tables, clock.file_stamp)

    def begin(self, job: str) -> int:
        """A run of `job` begins; the id for `end`. One that never ended is closed as interrupted."""
        now = self._clock.instant()

        def work(database: sqlite3.Connection) -> int:
            database.execute("update runs set ended = ?, result = ? where job = ? and ended = ''",
                             (now, INTERRUPTED, job))
            database.execute("delete from runs where job = ? and id <= (select max(id) from runs where job = ?) - ?",
                             (job, job, KEEP_RUNS))
            return int(database.execute("insert into runs (job, started) values (?, ?)", (job, now)).lastrowid or 0)

        return self._do(work)

    def end(self, run: int, result: str, detail: dict[str, Any]) -> None:
        """The run is over. result: a word such as "ok" or "failed"; detail: JSON values."""
        row = (self._clock.instant(), result, json.dumps(detail), run)
        self._do(lambda database: database.execute(
            "update runs set ended = ?, result = ?, detail = ? where id = ?", row))

    def last(self, job: str, *results: str) -> Run | None:
        """The newest run of a job that is over, of the named results only when there are any."""
        among = f"and result in ({', '.join('?' * len(results))})" if results else ""
        found = self._select(f"job = ? and ended != '' {among} order by id desc limit 1", job, *results)
        return found[0] if found else None

    def recent(self, job: str, most: int = 20) -> list[Run]:
        """The newest runs of a job, the newest first, one that is running included."""
        return self._select("job = ? order by id desc limit ?", job, most)

    def latest(self) -> list[Run]:
        """The newest run of each job, those that are running included, by job."""
        return self._select("id in (select max(id) from runs group by job) order by job")

    def fact(self, key: str) -> Any:
        """The JSON value kept under `key`, None when there is none."""
        return self.facts(key).get("")

    def facts(self, prefix: str) -> dict[str, Any]:
        """All values whose key begins with `prefix`, by the rest of the key."""
        rows = self._do(lambda database: database.execute(
            "select key, value from facts where substr(key, 1, ?) = ?", (len(prefix), prefix)).fetchall())
        return {key[len(prefix):]: json.loads(value) for key, value in rows}

    def keep(self, key: str, value: Any) -> None:
        """Keep a JSON value under `key`; None forgets it."""
        if value is None:
            self._do(lambda database: database.execute("delete from facts where key = ?", (key,)))
        else:
            row = (key, json.dumps(value))
            self._do(lambda database: database.execute("insert or replace into facts values (?, ?)", row))

    def _select(self, where: str, *values: Any) -> list[Run]:
        """The runs that a condition, made of our own words, picks."""
        query = f"select id, job, started, ended, result, detail from runs where {where}"  # noqa: S608
        rows = self._do(lambda database: database.execute(query, values).fetchall())
        return [Run(*row)._replace(detail=json.loads(row[-1])) for row in rows]

    def trace(self) -> int:
        """Changes whenever somebody has written; 0 while there is no file."""
        try:
            return os.stat(self._path).st_mtime_ns
        except OSError:
            return 0

    def _do(self, work: Callable[[sqlite3.Connection], _Answer]) -> _Answer:
        """`work` in one transaction of a file that is closed again: a command beside the server opens it as well."""
        try:
            return self._database.run(work)
        except (sqlite3.Error, OSError) as failure:
            raise StorageFailed(f"The table of runs cannot be used ({type(failure).__name__})", reason="runs",
                                hint="Free some space in the state folder, or make it writable.") from failure
        finally:
            self._database.close()


def _make_tables(database: sqlite3.Connection) -> None:
    for statement in _SCHEMA:
        database.execute(statement)
