"""Keeps the search index in step with the catalog.

The server listens from the start; the command line reads the notes only when a call searches.
"""
from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Callable, Dict, List, Optional

from echo_core.catalog import Catalog, Changes
from echo_core.errors import EchoError
from echo_core.kinds import is_searchable, kind_of
from echo_core.notebytes import decode
from echo_core.vault.base import Vault, version_of

if TYPE_CHECKING:
    from echo_core.search import SearchIndex

AT_ONCE = 8
"""Changes of up to so many notes are indexed by whoever announces them."""
PENDING_CHARS = 32 * 1024 * 1024
"""Characters of text that may wait to be indexed; what is beyond is read again."""


class SearchFeed:
    """Feeds one search index from one catalog. Thread-safe.

    make: gives an empty search index; called by whoever needs it first, since most calls search nothing.
    """

    def __init__(self, make: Callable[[], SearchIndex], catalog: Catalog, vault: Vault) -> None:
        self._make = make
        self._making = threading.Lock()
        self._search: Optional[SearchIndex] = None
        self._catalog = catalog
        self._vault = vault
        self._lock = threading.RLock()
        self._reading = threading.Lock()
        self._versions: Dict[str, str] = {}
        self._missed: List[str] = []
        self._pending: Dict[str, str] = {}
        self._pending_chars = 0
        self._listening = False
        self._generation = -1

    @property
    def search(self) -> SearchIndex:
        """The search index as far as it has been fed."""
        with self._making:
            if self._search is None:
                self._search = self._make()
            return self._search

    def listen(self) -> None:
        """Hear of every change from now on."""
        with self._lock:
            if not self._listening:
                self._listening = True
                self._catalog.subscribe(self._take)

    def catch_up(self) -> SearchIndex:
        """The search index with every note of the catalog in it; reads what it has not heard of.

        While another thread reads, the answer is the index as far as that one has come: see `building`.
        """
        self.listen()
        generation = self._catalog.generation
        if generation != self._generation and self._reading.acquire(blocking=False):
            try:
                self._read_missing()
                self._generation = generation
            finally:
                self._reading.release()
        return self.search

    def building(self) -> bool:
        """Whether notes are being read into the index right now."""
        return self._reading.locked()

    def missed(self) -> List[str]:
        """Notes that are known but could not be read when they were to be indexed."""
        return [path for path in self._missed if path not in self._versions]

    def coverage(self) -> float:
        """Share, 0 to 1, of the catalog's notes that can be found now."""
        known = sum(1 for path in self._catalog.paths() if is_searchable(path))
        return min(1.0, len(self._versions) / known) if known else 1.0

    def _take(self, changes: Changes) -> None:
        """A single note is searchable at once; the texts of a large reading wait for `catch_up`, which reads no file
        twice that fits into memory."""
        with self._lock:
            later = len(changes.texts) > AT_ONCE
            for path in [*changes.added, *changes.changed]:
                self._forget_pending(path)
                text = changes.texts[path]
                if not later:
                    self._put(path, text)
                elif self._pending_chars + len(text) <= PENDING_CHARS:
                    self._pending[path] = text
                    self._pending_chars += len(text)
            for path in changes.removed:
                self._forget_pending(path)
                self._drop(path)

    def _forget_pending(self, path: str) -> None:
        self._pending_chars -= len(self._pending.pop(path, ""))

    def _put(self, path: str, text: str) -> None:
        record = self._catalog.record(path)
        if record is not None and is_searchable(path):
            self.search.upsert(record.facts, text, kind_of(path))
            self._versions[path] = record.version

    def _drop(self, path: str) -> None:
        if self._versions.pop(path, None) is not None:
            self.search.delete(path)

    def _read_missing(self) -> None:
        paths = [path for path in self._catalog.paths() if is_searchable(path)]
        records = {path: record for path in paths for record in [self._catalog.record(path)] if record is not None}
        for path in paths:
            self._put_pending(path)
        stale = [path for path, record in records.items() if self._versions.get(path) != record.version]
        with self._lock:
            for path in [path for path in self._versions if self._catalog.record(path) is None]:
                self._drop(path)
        try:
            for path, data in self._vault.read_many(stale):
                self._put_read(path, data)
        except EchoError:  # one note that cannot be read must not hide the others
            self._vault.check()
            self._read_each([path for path in stale if self._versions.get(path) != records[path].version])

    def _put_pending(self, path: str) -> None:
        with self._lock:
            if path in self._pending:
                self._put(path, self._pending[path])
                self._forget_pending(path)

    def _read_each(self, paths: List[str]) -> None:
        self._missed = []
        for path in paths:
            try:
                self._put_read(path, self._vault.read(path))
            except EchoError:  # recall names it
                self._missed.append(path)

    def _put_read(self, path: str, data: bytes) -> None:
        """Index what was read, unless the catalog has heard of newer bytes meanwhile: those were announced."""
        with self._lock:
            record = self._catalog.record(path)
            if record is not None and record.version in ("", version_of(data)):
                self._put(path, decode(data)[0])
