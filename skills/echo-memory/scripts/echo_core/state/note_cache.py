"""The last known bytes of notes, for answers while the vault is away; never the base of a write (spec 6.1).

Of each note the bytes of its last reading or writing are kept with their version. Whoever asks compares the version
with what the catalog knows, so bytes that are known to be out of date are never shown. Losing the file costs nothing
else than such answers.
"""
from __future__ import annotations

import sqlite3
import threading
import time
from functools import partial
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence

from echo_core.kinds import INDEX, ROUTES
from echo_core.paths import is_note
from echo_core.state.cache_file import CacheFile, storable
from echo_core.vault.base import version_of

MOST_BYTES = 64 * 1024 * 1024
"""Bytes of notes kept; beyond, those go that were not met for the longest time."""
LARGEST = 1024 * 1024
"""A larger note is not kept: it would push out a thousand others."""
WAITING_BYTES = 4 * 1024 * 1024
"""Bytes that may wait in memory for being stored."""

_TABLES = (
    "CREATE TABLE kept (path TEXT PRIMARY KEY, version TEXT, at REAL, size INTEGER, data BLOB)",
    "CREATE INDEX sizes ON kept (at, size)",  # the sum of the sizes without a walk over all texts
)


class Kept(NamedTuple):
    """One note as it was met. at: when, in seconds since the epoch."""

    data: bytes
    version: str
    at: float


class NoteCache:
    """The kept notes of one vault. Thread-safe.

    path: file on this host, outside the vault; "" keeps them in memory. most_bytes: see MOST_BYTES.
    """

    def __init__(self, path: str = "", most_bytes: int = MOST_BYTES) -> None:
        self._file = CacheFile(path, "2", _TABLES) if path else None
        self._most_bytes = most_bytes
        self._room = min(most_bytes, WAITING_BYTES)
        self._lock = threading.Lock()
        self._storing = threading.Lock()
        self._waiting: Dict[str, Optional[Kept]] = {}
        self._waiting_bytes = 0
        self.changes = 0
        """Grows with every write that was announced: who reads meanwhile cannot tell old bytes from new ones."""

    def keep(self, path: str, data: bytes) -> None:
        """Keep what `path` holds now. Only notes, the entity index and the route map are worth it."""
        if len(data) > LARGEST or not storable(path) or not (is_note(path) or path in (INDEX, ROUTES)):
            return
        with self._lock:
            self._put(path, Kept(data, version_of(data), time.time()))
            full = self._waiting_bytes > self._room
        if full:
            self.save()

    def drop(self, paths: Iterable[str]) -> None:
        """Forget notes that are gone."""
        with self._lock:
            for path in filter(storable, paths):
                self._put(path, None)

    def changing(self) -> None:
        """Something is about to be written, or has just been."""
        with self._lock:
            self.changes += 1

    def get(self, path: str) -> Optional[Kept]:
        """What is kept of `path`, None when nothing is."""
        return self.get_many([path]).get(path)

    def get_many(self, paths: Sequence[str]) -> Dict[str, Kept]:
        """What is kept of each of `paths`, a few hundred at most; those of which nothing is kept are left out."""
        with self._lock:
            known = {path: self._waiting[path] for path in paths if path in self._waiting}
        found = {path: kept for path, kept in known.items() if kept is not None}
        asked = [path for path in paths if path not in known and storable(path)]
        if self._file is not None and asked:
            marks = ",".join("?" * len(asked))
            query = f"SELECT path, data, version, at FROM kept WHERE path IN ({marks})"  # noqa: S608 (marks only)
            for path, data, version, at in self._file.rows(query, asked):
                if version_of(data) == version:
                    found[path] = Kept(data, version, at)
        return found

    def save(self) -> None:
        """Store what waits; what cannot be stored now waits on, or goes when there is too much of it."""
        with self._storing:
            with self._lock:
                waiting = dict(self._waiting)
            stored = bool(waiting) and self._file is not None and self._file.change(partial(self._store, waiting))
            with self._lock:
                for path, kept in waiting.items():
                    too_much = kept is not None and self._waiting_bytes > self._room
                    if too_much or (stored and self._waiting.get(path) is kept):
                        self._take(path)

    def _put(self, path: str, kept: Optional[Kept]) -> None:
        self._take(path)
        if kept is None and self._file is None:
            return
        self._waiting[path] = kept
        self._waiting_bytes += len(kept.data) if kept else 0

    def _take(self, path: str) -> None:
        old = self._waiting.pop(path, None)
        self._waiting_bytes -= len(old.data) if old else 0

    def _store(self, waiting: Dict[str, Optional[Kept]], database: sqlite3.Connection) -> None:
        database.executemany("DELETE FROM kept WHERE path = ?", [(path,) for path, kept in waiting.items() if not kept])
        new: List[str] = []
        for path, kept in waiting.items():
            if kept is None:
                continue
            same = database.execute("UPDATE kept SET at = ? WHERE path = ? AND version = ?",
                                    (kept.at, path, kept.version)).rowcount
            if not same:
                new.append(path)
                database.execute("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?, ?)",
                                 (path, kept.version, kept.at, len(kept.data), kept.data))
        if new:
            self._evict(database)

    def _evict(self, database: sqlite3.Connection) -> None:
        """Let the notes go that were not met for the longest time, until the rest fits."""
        total = database.execute("SELECT sum(size) FROM kept").fetchone()[0] or 0
        if total <= self._most_bytes:
            return
        for path, size in database.execute("SELECT path, size FROM kept ORDER BY at").fetchall():
            if total <= self._most_bytes:
                break
            database.execute("DELETE FROM kept WHERE path = ?", (path,))
            total -= size
