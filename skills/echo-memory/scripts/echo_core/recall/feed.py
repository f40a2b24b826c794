"""Keeps the search index in step with the catalog.

The server listens from the start; the command line reads the notes only when a call searches.
"""
from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Set

from echo_core.catalog.catalog import Catalog, Changes
from echo_core.catalog.notebytes import decode
from echo_core.errors import EchoError, VaultUnreachable
from echo_core.kinds import is_searchable, kind_of
from echo_core.recall.faults import IndexBusy, IndexLost
from echo_core.recall.passages import Cut, cut_note
from echo_core.vault.base import Vault, version_of

if TYPE_CHECKING:
    from echo_core.recall.search import Found, SearchIndex

AT_ONCE = 8
"""Changes of up to so many notes are indexed by whoever announces them or asks."""
RETRY_S = 60.0
"""Seconds until a note that could not be read is tried again: a sync program may have taken thousands off the disk."""
PENDING_CHARS = 32 * 1024 * 1024
"""Characters of text that may wait to be indexed; what is beyond is read again."""
MOST_LOSSES = 2
"""After so many lost indexes the disk is not trusted again in this process, and the index is in memory."""
COMMIT_NOTES = 500
"""Notes of a large reading that become searchable together."""
MOST_WAITING = 128
"""Changed passages that may wait for the engine; until then they are searched beside it."""
SETTLE_S = 10.0
"""Seconds between two times that the engine takes in fewer than that."""


class SearchFeed:
    """Feeds one search index from one catalog. Thread-safe.

    make: opens the search index; called by whoever needs it first, since most calls search nothing. Its argument is
    how many of its indexes were lost before. behind: asks somebody else to read many notes; None when whoever asks
    has to read them. changed: hears when `settle` would save the next search some work.
    """

    def __init__(self, make: Callable[[int], SearchIndex], catalog: Catalog, vault: Vault) -> None:
        self._make = make
        self._making = threading.Lock()
        self._search: Optional[SearchIndex] = None
        self._losses = 0
        self._catalog = catalog
        self._vault = vault
        self._lock = threading.RLock()
        self._reading = threading.Lock()
        self._todo: Optional[Set[str]] = None
        self._missed: Set[str] = set()
        self._missed_at = 0.0
        self._pending: Dict[str, Cut] = {}
        self._pending_chars = 0
        self._listening = False
        self._settled = 0.0
        self.behind: Optional[Callable[[], None]] = None
        self.changed: Callable[[], None] = lambda: None

    @property
    def search(self) -> SearchIndex:
        """The search index as far as it has been fed."""
        with self._making:
            if self._search is None:
                self._search = self._make(self._losses)
            return self._search

    def find(self, query: str, away: bool = False, **asked: Any) -> Found:
        """What `SearchIndex.find` answers, of every note of the catalog if need be; an index that is lost is made anew.

        While many notes are still to be read by somebody else, the answer is of those that have been: see `building`.
        away: see `gather`.
        """
        current = self.gather if away else self.catch_up
        index = current()
        try:
            return index.find(query, **asked)
        except IndexLost:
            self._lose(index)
            return current().find(query, **asked)

    def listen(self) -> None:
        """Hear of every change from now on."""
        with self._lock:
            if not self._listening:
                self._listening = True
                self._catalog.subscribe(self._take)

    def catch_up(self, everything: bool = False) -> SearchIndex:
        """The search index with what there is to read read into it, by this thread or, when it is much, `behind`.

        everything: read all of it here. Raises the vault's errors.
        """
        self.listen()
        if not everything and self.behind is not None and self._work() > AT_ONCE:
            self.behind()
        elif self._work() and self._reading.acquire(blocking=False):
            try:
                self._read_all_missing()
            except IndexBusy:
                pass  # another process reads the same notes: what it has read so far is found
            finally:
                self._reading.release()
        return self.search

    def gather(self) -> SearchIndex:
        """Like `catch_up` while the vault is away: with what can be had of the notes, the rest is left out."""
        with contextlib.suppress(VaultUnreachable):
            self.catch_up(everything=True)
        return self.search

    def settle(self, fully: bool = False) -> None:
        """Keep what was changed, so that the next search need not; have the engine take it in now and then.

        An engine's commit syncs a dozen files, and each write to the vault that happens meanwhile waits for the disk.
        fully: have it taken in now.
        """
        index = self._search
        if index is not None:
            try:
                if fully or index.waiting() > MOST_WAITING or time.monotonic() - self._settled >= SETTLE_S:
                    index.commit()
                    self._settled = time.monotonic()
                else:
                    index.keep()
            except IndexLost:
                self._lose(index)

    def renew(self) -> None:
        """Begin again with an empty index, whose files hold nothing of the former one."""
        with self._reading, self._lock, self._making:
            index, self._search, self._todo = self._search, None, None
            self._pending, self._pending_chars = {}, 0
            if index is not None:
                index.close(lost=True)
        if self.behind is not None:
            self.behind()

    def close(self) -> None:
        """Keep what was indexed and let go of the files; the next search opens them again."""
        self.settle(fully=True)
        with self._making:
            if self._search is not None:
                self._search.close()
                self._search = None

    def building(self) -> bool:
        """Whether notes have still to be read into the index."""
        return self._reading.locked() or self._work() > 0

    def missed(self) -> List[str]:
        """Notes that are known but could not be read when they were to be indexed."""
        return sorted(self._missed)

    def coverage(self) -> float:
        """Share, 0 to 1, of the catalog's notes that can be found now."""
        known = sum(1 for path in self._catalog.paths() if is_searchable(path))
        todo = self._todo
        if not known or todo is None:
            return min(1.0, len(self.search) / known) if known else float(len(self.search) > 0)
        return max(0.0, 1 - len(todo) / known) * self.search.restored()

    def _work(self) -> int:
        """How many notes there may be to read."""
        with self._lock:
            if self._todo is None:
                return AT_ONCE + 1
            if self._missed and time.monotonic() - self._missed_at >= RETRY_S:
                self._todo |= self._missed
                self._missed = set()
            return len(self._todo)

    def _lose(self, index: SearchIndex) -> None:
        """Go on with a new index; every note has to be read into it."""
        with self._lock, self._making:
            if self._search is index:
                self._search = None
                self._losses += 1
                self._todo = None
                index.close(lost=True)

    def _take(self, changes: Changes) -> None:
        """A single note is searchable at once; the passages of a large reading wait for `catch_up`, which reads no file
        twice that fits into memory. They are cut while what the catalog found out about the lines is still at hand."""
        with self._lock:
            later = len(changes.texts) > AT_ONCE
            for path in [*changes.added, *changes.changed]:
                self._forget_pending(path)
                if later or not self._put_quietly(path, changes.texts[path]):
                    self._put_off(path, changes.texts[path])
            for path in changes.removed:
                self._forget_pending(path)
                self._drop_quietly(path)
        self.changed()

    def _put_off(self, path: str, text: str) -> None:
        if not is_searchable(path):
            return
        if self._todo is not None:
            self._todo.add(path)
        if self._pending_chars + len(text) <= PENDING_CHARS:
            self._pending[path] = cut_note(text)
            self._pending_chars += len(text)

    def _forget_pending(self, path: str) -> None:
        known = self._pending.pop(path, None)
        self._pending_chars -= known.chars if known else 0

    def _put_quietly(self, path: str, text: str) -> bool:
        """Whether a note is indexed now; a lost index is noticed by whoever searches."""
        try:
            self._put(path, cut_note(text))
        except (IndexLost, IndexBusy):
            return False
        return True

    def _drop_quietly(self, path: str) -> None:
        try:
            self.search.delete(path)
        except (IndexLost, IndexBusy):
            self._todo = None  # compare again: what is gone must not be found
        self._done(path)

    def _put(self, path: str, text: Cut) -> None:
        record = self._catalog.record(path)
        if record is not None and is_searchable(path):
            self.search.put(record.facts, text, kind_of(path), record.version)
        self._done(path)

    def _done(self, path: str) -> None:
        self._missed.discard(path)
        if self._todo is not None:
            self._todo.discard(path)

    def _read_all_missing(self) -> None:
        """Index what is not indexed yet; in a new index when the one there is gets lost."""
        while True:
            index = self.search
            try:
                self._read_missing()
                return
            except IndexLost:
                if self._losses > MOST_LOSSES:
                    raise
                self._lose(index)

    def _read_missing(self) -> None:
        """Index what is not indexed yet, in parts that become searchable together."""
        wanted = self._todo
        if wanted is None:
            self.search.restore()
            wanted = self._compare()
        todo = sorted(wanted)
        parts = [todo[start:start + COMMIT_NOTES] for start in range(0, len(todo), COMMIT_NOTES)]
        if len(todo) > AT_ONCE:
            self._read_parts(parts)
        else:
            for part in parts:
                self._read_part(part)

    def _read_parts(self, parts: Sequence[List[str]]) -> None:
        """Read and commit part by part; a part is committed while the next one is read."""
        from concurrent.futures import Future, ThreadPoolExecutor  # few calls read many notes

        index = self.search
        with ThreadPoolExecutor(1) as beside:
            committed: "Future[None]" = beside.submit(lambda: None)
            for part in parts:
                self._read_part(part)
                committed.result()  # no more than two parts wait for the engine
                committed = beside.submit(index.commit)
            committed.result()

    def _compare(self) -> Set[str]:
        """The notes that are not indexed as they are; once the vault was read, forget those that are no more."""
        indexed = self.search.versions()
        with self._lock:
            paths = [path for path in self._catalog.paths() if is_searchable(path)]
            records = [(path, self._catalog.record(path)) for path in paths]
            # What has no version could not be read by the catalog, which tries it again by itself and announces it.
            todo = {path for path, record in records
                    if record is not None and record.version not in ("", indexed.get(path))}
            if self._catalog.refreshes():
                for path in indexed.keys() - set(paths):
                    self.search.delete(path)
                self._todo = todo
        return todo

    def _read_part(self, paths: List[str]) -> None:
        for path in paths:
            with self._lock:
                if path in self._pending:
                    self._put(path, self._pending[path])
                    self._forget_pending(path)
        with self._lock:
            stale = [path for path in paths if self._wants(path)]
        try:
            for path, data in self._vault.read_many(stale):
                self._put_read(path, data)
        except EchoError:  # one note that cannot be read must not hide the others
            self._vault.check()
            self._read_each(stale)

    def _wants(self, path: str) -> bool:
        """Whether a note that was to be read has not been indexed meanwhile."""
        return self._todo is None or path in self._todo

    def _read_each(self, paths: List[str]) -> None:
        for path in paths:
            if self._wants(path):
                try:
                    self._put_read(path, self._vault.read(path))
                except EchoError:  # recall names it
                    self._done(path)
                    self._missed.add(path)
        self._missed_at = time.monotonic()

    def _put_read(self, path: str, data: bytes) -> None:
        """Index what was read, unless the catalog has heard of newer bytes meanwhile: those were announced."""
        with self._lock:
            record = self._catalog.record(path)
            if record is not None and record.version in ("", version_of(data)):
                self._put(path, cut_note(decode(data)[0]))
