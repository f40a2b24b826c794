"""The SQLite file behind the history: its tables, and what its failures mean to a caller."""
from __future__ import annotations

import os
import sqlite3
from typing import Callable, List, TypeVar

from echo_core.errors import NoUndo
from echo_core.state.database import StateDatabase
from echo_core.state.reserve import Reserve

_SCHEMA = """
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
CREATE TABLE IF NOT EXISTS unsettled (
    id INTEGER PRIMARY KEY AUTOINCREMENT, door TEXT NOT NULL, path TEXT NOT NULL, at REAL NOT NULL, held TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS version_path ON version (path, id);
CREATE INDEX IF NOT EXISTS version_op ON version (op_id);
CREATE INDEX IF NOT EXISTS version_sha ON version (sha);
CREATE INDEX IF NOT EXISTS version_after ON version (after_sha);
CREATE INDEX IF NOT EXISTS blob_base ON blob (base) WHERE base IS NOT NULL;
"""
_Answer = TypeVar("_Answer")


class HistoryDatabase:
    """`history/history.sqlite3` below `state_dir`; every failure is a NoUndo."""

    def __init__(self, state_dir: str, stamp: Callable[[], str]) -> None:
        """stamp: a time for the name of a broken file that is set aside."""
        self._file = StateDatabase(os.path.join(state_dir, "history"), "history.sqlite3", _make_tables, stamp,
                                   Reserve(state_dir))

    @property
    def set_aside(self) -> List[str]:
        """Names (in the history folder) of broken files that were replaced by an empty one."""
        return self._file.set_aside

    def exists(self) -> bool:
        """Whether there is any history; asking makes no file."""
        return self._file.exists()

    def run(self, work: Callable[[sqlite3.Connection], _Answer], durable: bool = True) -> _Answer:
        """`work` in one transaction, see `StateDatabase.run`; NoUndo when the database cannot do it."""
        try:
            return self._file.run(work, durable)
        except (sqlite3.Error, OSError) as error:
            raise NoUndo(
                f"The history of notes cannot be used ({type(error).__name__})",
                hint="Free space in the state folder, or make it writable.",
            ) from error

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._file.close()

    def compact(self) -> None:
        """Leave nothing of deleted rows in the files, and give the space back."""
        self._file.compact()


def _make_tables(connection: sqlite3.Connection) -> None:
    connection.executescript(_SCHEMA)
