"""An SQLite file that may be lost at any time: what cannot be used is thrown away and made anew."""
from __future__ import annotations

import contextlib
import os
import sqlite3
from typing import Any, Callable, List, Sequence, Tuple

BUSY_S = 0.3
"""How long another process may hold the file before this one goes on without it."""


class CacheFile:
    """One cache. path: on this host, outside the vault. form: says what the rows hold; a file of another form is
    emptied. tables: the statements that make its tables.
    """

    def __init__(self, path: str, form: str, tables: Sequence[str]) -> None:
        self.path = path
        self._form = form
        self._tables = tables

    def rows(self, query: str, values: Sequence[Any] = ()) -> List[Tuple[Any, ...]]:
        """The rows of a query; none when there is no usable file."""
        if not os.path.exists(self.path):
            return []
        try:
            with contextlib.closing(self._open()) as database:
                return list(database.execute(query, values).fetchall())
        except (sqlite3.Error, OSError):
            return []

    def change(self, work: Callable[[sqlite3.Connection], None]) -> bool:
        """Do `work` in one transaction. Returns False when that was not possible now: nobody depends on it."""
        for attempt in range(2):
            try:
                with contextlib.closing(self._open()) as database, database:
                    work(database)
                return True
            except sqlite3.OperationalError:
                return False
            except sqlite3.DatabaseError:
                if attempt or not self._discard():
                    return False
            except OSError:
                return False
        return False

    def _open(self) -> sqlite3.Connection:
        """The database with its tables; another form is emptied first."""
        if not os.path.exists(self.path):
            os.makedirs(os.path.dirname(self.path) or ".", mode=0o700, exist_ok=True)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        database = sqlite3.connect(self.path, timeout=BUSY_S)
        try:
            database.execute("PRAGMA secure_delete = ON")
            database.execute("PRAGMA synchronous = OFF")  # whoever reads checks each row
            if not self._is_ready(database):
                self._create(database)
        except BaseException:
            database.close()
            raise
        return database

    def _is_ready(self, database: sqlite3.Connection) -> bool:
        known = database.execute("SELECT name FROM sqlite_master WHERE name = 'format'").fetchone()
        return bool(known) and database.execute("SELECT value FROM format").fetchone() == (self._form,)

    def _create(self, database: sqlite3.Connection) -> None:
        with database:
            database.execute("BEGIN IMMEDIATE")
            if self._is_ready(database):  # another process was quicker, and may have stored something already
                return
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                database.execute(f'DROP TABLE "{name}"')
            database.execute("CREATE TABLE format (value TEXT)")
            database.execute("INSERT INTO format VALUES (?)", (self._form,))
            for table in self._tables:
                database.execute(table)

    def _discard(self) -> bool:
        """Throw the file away; False when that is not allowed."""
        try:
            os.unlink(self.path)
        except OSError:
            return False
        return True


def storable(path: str) -> bool:
    """Whether SQLite can hold the text: a file name that is not UTF-8 it cannot."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
