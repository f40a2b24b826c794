"""What the catalog keeps of one note, and a file that keeps it between two runs (a cache: losing it costs time only).

A row that is damaged or no longer fits the note's size and time is not used.
"""
from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sqlite3
import zlib
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from echo_core.catalog.names import link_keys, note_keys
from echo_core.catalog.note import NoteFacts
from echo_core.frontmatter import Problem
from echo_core.state.cache_file import CacheFile, storable

# The names of the facts are part of it, so that a new fact is never missing from an old row.
CACHE_FORMAT = "2:" + ",".join(field.name for field in dataclasses.fields(NoteFacts))

_TABLE = ("CREATE TABLE notes (path TEXT PRIMARY KEY, size INTEGER, mtime_ns INTEGER, head TEXT, facts TEXT,"
          " checksum INTEGER)")


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
        self._file = CacheFile(path, CACHE_FORMAT, [_TABLE]) if path else None

    def load(self) -> List[Record]:
        """All good records; none when there is no usable file."""
        if self._file is None:
            return []
        rows = self._file.rows("SELECT path, size, mtime_ns, head, facts, checksum FROM notes")
        return [record for record in map(_record, rows) if record is not None]

    def save(self, changed: Iterable[Record], removed: Iterable[str]) -> bool:
        """Store and drop records. Returns False when that was not possible now: nobody depends on it."""
        rows = [record.row() for record in changed if storable(record.path)]
        gone = [(path,) for path in removed if storable(path)]

        def work(database: sqlite3.Connection) -> None:
            database.executemany("INSERT OR REPLACE INTO notes VALUES (?, ?, ?, ?, ?, ?)", rows)
            database.executemany("DELETE FROM notes WHERE path = ?", gone)

        return self._file is not None and self._file.change(work)

    def confirmed_at(self) -> Optional[float]:
        """When the vault was last seen to be as the file says, in seconds since the epoch; None without a file."""
        try:
            return (os.stat(self._file.path).st_mtime or None) if self._file else None
        except OSError:
            return None

    def confirm(self, at: float) -> None:
        """Note that the vault was as the file says at this moment, in seconds since the epoch; 0 for none."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.utime(self._file.path, (at, at))


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
