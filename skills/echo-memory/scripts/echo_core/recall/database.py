"""The SQLite file behind search: a cache that may be thrown away at any time, so whatever is wrong with it, it goes."""
from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import contextmanager, suppress
from typing import Any, Iterator, List, Sequence, Tuple

from echo_core.recall.faults import IndexBusy, IndexLost
from echo_core.recall.term_counts import FIELDS
from echo_core.recall.tokens import VERSION

FORMAT = f"2 {VERSION} {sys.byteorder} {' '.join(FIELDS)}"
"""Format of the tables, version of the tokens: a file of another one is made anew."""

BUSY_S = 10.0
"""How long a change waits for another process that is changing the same file."""

_AT_ONCE = 500
"""Values in one statement; SQLite of old takes 999."""

_COUNTS = ", ".join(f"{name} INTEGER NOT NULL DEFAULT 0" for name in FIELDS)
_TOTALS = ", ".join(f"{name}_{what} INTEGER NOT NULL DEFAULT 0" for name in FIELDS for what in ("holders", "tokens"))
_SCHEMA = f"""
CREATE TABLE note (id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, version TEXT NOT NULL, kind TEXT NOT NULL,
    day TEXT NOT NULL, title TEXT NOT NULL, aliases TEXT NOT NULL, tags TEXT NOT NULL, status TEXT NOT NULL,
    updated TEXT NOT NULL, superseded_by TEXT NOT NULL, chars INTEGER NOT NULL, cut INTEGER NOT NULL);
CREATE INDEX note_kind ON note (kind, day);
CREATE INDEX note_day ON note (day);
CREATE TABLE passage (id INTEGER PRIMARY KEY AUTOINCREMENT, note INTEGER NOT NULL, number INTEGER NOT NULL,
    fresh INTEGER NOT NULL, counts BLOB NOT NULL, digest BLOB NOT NULL, line INTEGER NOT NULL, start INTEGER NOT NULL,
    headings TEXT NOT NULL, text BLOB NOT NULL);
CREATE INDEX passage_note ON passage (note, number);
CREATE INDEX passage_fresh ON passage (id) WHERE fresh = 1;
CREATE TABLE gone (id INTEGER PRIMARY KEY);
CREATE TABLE term (id INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE, {_COUNTS});
CREATE TABLE totals (documents INTEGER NOT NULL DEFAULT 0, {_TOTALS});
INSERT INTO totals DEFAULT VALUES;
CREATE TABLE format (value TEXT NOT NULL);
"""


@contextmanager
def guarded() -> Iterator[None]:
    """Turns what SQLite or a damaged row raises into IndexLost, and a long wait for another process into IndexBusy."""
    try:
        yield
    except sqlite3.OperationalError as failure:
        if "locked" in str(failure):
            raise IndexBusy("another process is changing the search index") from failure
        raise IndexLost(f"the search index cannot be used ({type(failure).__name__})") from failure
    except (sqlite3.Error, OSError, ValueError, TypeError, KeyError) as failure:
        raise IndexLost(f"the search index cannot be used ({type(failure).__name__})") from failure


class SearchDatabase:
    """One connection for all threads of this process; who uses it takes turns.

    path: of the file, on this host and outside the vault; "" is in memory only. alone: no other process may use it
    while it is open. Raises IndexLost when it cannot be made, IndexBusy when another process holds it.
    """

    def __init__(self, path: str, alone: bool = False) -> None:
        self.path = path
        self._alone = alone
        self.made = False
        """Whether the tables are new."""
        with guarded():
            if path:
                os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # SQLite gives its other files this mode
            self._connection = sqlite3.connect(
                path or ":memory:", 0 if alone else BUSY_S, isolation_level=None, check_same_thread=False)
            try:
                self._prepare()
            except BaseException as failure:
                self.close(lost=type(failure) is sqlite3.DatabaseError)
                raise

    def _prepare(self) -> None:
        if self._alone:
            self.run("PRAGMA locking_mode = EXCLUSIVE")
        self.run("PRAGMA synchronous = NORMAL")
        self.run("PRAGMA journal_mode = WAL")
        self.run("PRAGMA journal_size_limit = 16777216")
        if self._format() == FORMAT:
            return
        self.run("BEGIN IMMEDIATE")
        if self._format() != FORMAT:  # another process may have been quicker
            for (name,) in self.rows("SELECT name FROM sqlite_master WHERE type = 'table'"
                                     " AND name NOT LIKE 'sqlite_%'"):
                self.run(f'DROP TABLE IF EXISTS "{name}"')
            for statement in _SCHEMA.split(";"):
                if statement.strip():
                    self.run(statement)
            self.run("INSERT INTO format VALUES (?)", (FORMAT,))
            self.made = True
        self.run("COMMIT")

    def _format(self) -> str:
        if not self.rows("SELECT 1 FROM sqlite_master WHERE name = 'format'"):
            return ""
        return str((self.rows("SELECT value FROM format") or [("",)])[0][0])

    def run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run one statement; the id of the last row it put in."""
        return self._connection.execute(statement, values).lastrowid or 0

    def run_many(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        """Run one statement for each of `values`."""
        if values:
            self._connection.executemany(statement, values)

    def rows(self, statement: str, values: Sequence[Any] = ()) -> List[Tuple[Any, ...]]:
        """All rows of a query."""
        return self._connection.execute(statement, values).fetchall()

    def where(self, query: str, values: Sequence[Any]) -> List[Tuple[Any, ...]]:
        """All rows of a query that ends in `IN`, for any number of values."""
        found: List[Tuple[Any, ...]] = []
        for start in range(0, len(values), _AT_ONCE):
            some = values[start:start + _AT_ONCE]
            found += self.rows(f"{query} ({', '.join('?' * len(some))})", some)
        return found

    @property
    def changing(self) -> bool:
        """Whether a transaction is open."""
        return self._connection.in_transaction

    def close(self, lost: bool = False) -> None:
        """Close the file; what was not committed is gone. lost: remove it too, as far as that is possible."""
        with suppress(sqlite3.Error):
            self._connection.close()
        for suffix in ("", "-wal", "-shm") if lost and self.path else ():
            with suppress(OSError):
                os.unlink(self.path + suffix)
