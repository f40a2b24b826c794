"""What the catalog keeps of one note, and a file that keeps it between two runs (a cache: losing it costs time only).

The file is SQLite. A row that is damaged, of another format or no longer fits the note's size and time is not used;
a file that cannot be used at all is thrown away and made anew.
"""
from __future__ import annotations

import dataclasses
import json
import os
import sqlite3
import zlib
from contextlib import closing
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from echo_core.frontmatter import Problem
from echo_core.note import NoteFacts
from echo_core.note_names import link_keys, note_keys

# The names of the facts are part of it, so that a new fact is never missing from an old row.
CACHE_FORMAT = "2:" + ",".join(field.name for field in dataclasses.fields(NoteFacts))


class Record:
    """One note. size, mtime_ns: of the file when it was read; mtime_ns 0 asks for another read.

    version: of the bytes, as `version_of`. keys, links: what `NoteNames` was told. sketch: of the body. facts are
    decoded on first use.
    """

    __slots__ = ("_facts", "_packed", "aliases", "keys", "links", "mtime_ns", "path", "size", "sketch", "title",
                 "version")

    def __init__(
        self, path: str, size: int, mtime_ns: int, version: str, title: str, aliases: Sequence[str],
        keys: Sequence[str], links: Sequence[str], sketch: Sequence[int], facts: Optional[NoteFacts] = None,
        packed: str = "",
    ) -> None:
        self.path = path
        self.size = size
        self.mtime_ns = mtime_ns
        self.version = version
        self.title = title
        self.aliases = tuple(aliases)
        self.keys = tuple(keys)
        self.links = tuple(links)
        self.sketch = tuple(sketch)
        self._facts = facts
        self._packed = packed

    @classmethod
    def of(cls, facts: NoteFacts, size: int, mtime_ns: int, version: str) -> "Record":
        """The record of a note that was just read."""
        return cls(
            facts.path, size, mtime_ns, version, facts.title, facts.aliases,
            note_keys(facts.path, facts.title, facts.aliases), link_keys(facts.links),
            facts.sketch, facts,
        )

    @property
    def facts(self) -> NoteFacts:
        """The facts of the note."""
        packed, found = self._packed, self._facts  # in this order: another thread sets facts before it clears packed
        if found is None:
            found = self._facts = _unpacked(packed)
            self._packed = ""
        return found

    def row(self) -> Tuple[str, int, int, str, str, int]:
        """(path, size, mtime_ns, head, facts, checksum) as the cache file stores it."""
        head = json.dumps([self.version, self.title, self.aliases, self.keys, self.links, self.sketch])
        body = self._packed or json.dumps(_plain(self.facts))
        return self.path, self.size, self.mtime_ns, head, body, _checksum(head, body)


def _plain(facts: NoteFacts) -> Dict[str, Any]:
    values = {field.name: getattr(facts, field.name) for field in dataclasses.fields(facts)}
    problem = facts.malformed
    values["malformed"] = None if problem is None else [problem.line, problem.column, problem.reason]
    return values


def _unpacked(packed: str) -> NoteFacts:
    values = json.loads(packed)
    if values["malformed"] is not None:
        values["malformed"] = Problem(*values["malformed"])
    return NoteFacts(**values)


def _checksum(head: str, body: str) -> int:
    return zlib.crc32(body.encode("utf-8"), zlib.crc32(head.encode("utf-8")))


class RecordCache:
    """The cache file of one vault. path: on this host, outside the vault; "" keeps nothing."""

    def __init__(self, path: str) -> None:
        self._path = path

    def load(self) -> List[Record]:
        """All good records; none when there is no usable file."""
        if not self._path or not os.path.exists(self._path):
            return []
        try:
            with closing(self._open()) as database:
                rows = database.execute("SELECT path, size, mtime_ns, head, facts, checksum FROM notes").fetchall()
        except (sqlite3.Error, OSError):
            return []
        return [record for record in map(_record, rows) if record is not None]

    def save(self, changed: Iterable[Record], removed: Iterable[str]) -> bool:
        """Store and drop records. Returns False when that was not possible now: nobody depends on it."""
        if not self._path:
            return False
        rows = [record.row() for record in changed if _storable(record.path)]
        for attempt in range(2):
            try:
                with closing(self._open()) as database, database:
                    database.executemany("INSERT OR REPLACE INTO notes VALUES (?, ?, ?, ?, ?, ?)", rows)
                    gone = [(path,) for path in removed if _storable(path)]
                    database.executemany("DELETE FROM notes WHERE path = ?", gone)
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
        """The database with its tables; another format is emptied first."""
        if not os.path.exists(self._path):
            os.makedirs(os.path.dirname(self._path) or ".", mode=0o700, exist_ok=True)
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        database = sqlite3.connect(self._path, timeout=0.3)
        try:
            known = database.execute("SELECT name FROM sqlite_master WHERE name = 'format'").fetchone()
            stored = database.execute("SELECT value FROM format").fetchone() if known else None
            if stored != (CACHE_FORMAT,):
                self._create(database)
        except BaseException:
            database.close()
            raise
        return database

    def _create(self, database: sqlite3.Connection) -> None:
        with database:
            database.execute("DROP TABLE IF EXISTS notes")
            database.execute("DROP TABLE IF EXISTS format")
            database.execute("CREATE TABLE format (value TEXT)")
            database.execute(
                "CREATE TABLE notes (path TEXT PRIMARY KEY, size INTEGER, mtime_ns INTEGER, head TEXT, facts TEXT,"
                " checksum INTEGER)"
            )
            database.execute("INSERT INTO format VALUES (?)", (CACHE_FORMAT,))

    def _discard(self) -> bool:
        """Throw the file away; False when that is not allowed."""
        try:
            os.unlink(self._path)
        except OSError:
            return False
        return True


def _storable(path: str) -> bool:
    """Whether SQLite can hold the text: a file name that is not UTF-8 it cannot."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _record(row: Sequence[Any]) -> Optional[Record]:
    """The record of one row, None when the row is damaged."""
    try:
        path, size, mtime_ns, head, body, checksum = row
        if checksum != _checksum(head, body):
            return None
        version, title, aliases, keys, links, sketch = json.loads(head)
        return Record(path, size, mtime_ns, version, title, aliases, keys, links, sketch, None, body)
    except (ValueError, TypeError, AttributeError):
        return None
