"""The SQLite file behind the history: opened when first needed, set aside when broken, private to its owner."""
from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import contextmanager
from typing import Callable, Iterator, List, Optional, TypeVar

from echo_core.atomic import private_folder
from echo_core.errors import NoUndo

_BUSY_S = 10.0
_SCHEMA = """
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;
PRAGMA secure_delete = ON;
PRAGMA journal_size_limit = 16777216;
CREATE TABLE IF NOT EXISTS version (
    id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, ts TEXT NOT NULL, tool TEXT NOT NULL,
    op_id TEXT NOT NULL, sha TEXT, size INTEGER NOT NULL, summary TEXT NOT NULL, after_sha TEXT,
    by_others INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS blob (
    sha TEXT PRIMARY KEY, size INTEGER NOT NULL, stored INTEGER NOT NULL, base TEXT, data BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS total (bytes INTEGER NOT NULL);
INSERT INTO total SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM total);
CREATE TRIGGER IF NOT EXISTS blob_in AFTER INSERT ON blob BEGIN UPDATE total SET bytes = bytes + NEW.stored; END;
CREATE TRIGGER IF NOT EXISTS blob_out AFTER DELETE ON blob BEGIN UPDATE total SET bytes = bytes - OLD.stored; END;
CREATE TABLE IF NOT EXISTS conflict (
    id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, ts TEXT NOT NULL, version INTEGER NOT NULL,
    sha TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS version_path ON version (path, id);
CREATE INDEX IF NOT EXISTS version_sha ON version (sha);
CREATE INDEX IF NOT EXISTS version_after ON version (after_sha);
CREATE INDEX IF NOT EXISTS blob_base ON blob (base) WHERE base IS NOT NULL;
"""
_Answer = TypeVar("_Answer")


class HistoryDatabase:
    """One connection for all threads, which take turns; other processes wait for each other's transactions."""

    def __init__(self, state_dir: str, stamp: Callable[[], str]) -> None:
        """stamp: a time for the name of a broken file that is set aside."""
        self._folder = os.path.join(state_dir, "history")
        self._file = os.path.join(self._folder, "history.sqlite3")
        self._stamp = stamp
        self._lock = threading.RLock()
        self._connection: Optional[sqlite3.Connection] = None
        self._pid = 0
        self.set_aside: List[str] = []
        """Names (in the history folder) of broken files that were replaced by an empty one."""

    def exists(self) -> bool:
        """Whether there is any history; asking makes no file."""
        return self._connection is not None or os.path.exists(self._file)

    def run(self, work: Callable[[sqlite3.Connection], _Answer], durable: bool = True) -> _Answer:
        """`work` in one transaction; NoUndo when the database cannot do it.

        durable: it is on the disk when this returns; else it survives a kill, and a power cut from the next durable
        one on. A broken database file is renamed, reported by `set_aside`, and the work done in a fresh one.
        """
        with self._lock:
            try:
                try:
                    return self._once(work, durable)
                except sqlite3.DatabaseError as error:
                    # The subclasses are about locks, space and constraints; the class itself is about a broken file.
                    if type(error) is not sqlite3.DatabaseError:
                        raise
                    self._replace_broken()
                    return self._once(work, durable)
            except (sqlite3.Error, OSError) as error:
                raise NoUndo(
                    f"The history of notes cannot be used ({type(error).__name__})",
                    hint="Free space in the state folder, or make it writable.",
                ) from error

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None and self._pid == os.getpid():
                connection.close()

    def compact(self) -> None:
        """Leave nothing of deleted rows in the files, and give the space back."""
        with self._lock:
            self.run(lambda connection: None)
            if self._connection is not None:
                self._connection.execute("PRAGMA incremental_vacuum").fetchall()
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _once(self, work: Callable[[sqlite3.Connection], _Answer], durable: bool) -> _Answer:
        with self._transaction(durable) as connection:
            return work(connection)

    @contextmanager
    def _transaction(self, durable: bool) -> Iterator[sqlite3.Connection]:
        connection = self._open()
        connection.execute("PRAGMA synchronous = FULL" if durable else "PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._pid == os.getpid():
            return self._connection
        private_folder(self._folder)
        # SQLite gives its companion files the mode of this one.
        os.close(os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(self._file, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            connection.executescript(_SCHEMA)
        except BaseException:
            connection.close()
            raise
        self._connection, self._pid = connection, os.getpid()
        return connection

    def _replace_broken(self) -> None:
        self.close()
        for number in range(1, 1000):
            name = f"history.sqlite3.corrupt-{self._stamp()}" + (f"-{number}" if number > 1 else "")
            aside = os.path.join(self._folder, name)
            if not os.path.lexists(aside):
                break
        for suffix in ("-wal", "-shm", ""):
            if os.path.exists(self._file + suffix):
                os.replace(self._file + suffix, aside + suffix)
        self.set_aside.append(name)
