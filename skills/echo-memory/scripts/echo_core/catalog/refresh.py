"""How the catalog follows the vault: one walk, then only the notes whose size or time differ are read.

What lies under an unreadable folder stays known, a vault that cannot be read changes nothing, and a note goes only
when its folder, looked at a second time, does not list it.
"""
from __future__ import annotations

import threading
import time
from typing import Dict, List, Optional, Sequence, Set, Tuple

from echo_core.catalog.reading import Reader
from echo_core.catalog.records import Record, RecordCache
from echo_core.catalog.tables import Changes, Tables, is_note_file
from echo_core.errors import EchoError, NotFound
from echo_core.vault.base import Stat, Vault
from echo_core.vault.refusals import emptied

BATCH = 16
"""Notes read between two announcements. Few: what was found out about the lines of a text is then still at hand."""

SETTLED_NS = 100_000_000
"""A file that was written less than this before it was read may change again without its time moving."""

SKEW_NS = 2_000_000_000
"""A time further in the future than this is a wrong clock, not a recent write."""


class Refresher:
    """Refreshes the tables of one catalog, one thread at a time.

    unreadable: the places the last walk had to leave out. finished: how many refreshes went through. as_of: when the
    vault was last seen to be as the tables say, in seconds since the epoch; None before the first time.
    """

    def __init__(self, vault: Vault, reader: Reader, tables: Tables, cache: RecordCache) -> None:
        self._vault = vault
        self._reader = reader
        self._tables = tables
        self._cache = cache
        self._cache_loaded = False
        self._lock = threading.RLock()
        self._telling = threading.Lock()
        self._seeding = threading.Lock()
        self.unreadable: List[str] = []
        self.finished = 0
        self.as_of: Optional[float] = None
        self._told: Set[str] = set()

    def hidden(self, path: str) -> bool:
        """Whether `path` lies where the last walk could not look."""
        return any(place in ("", path) or path.startswith(place + "/") for place in self.unreadable)

    def seed(self) -> None:
        """Take in what is known from an earlier run, once; asks nothing of the vault."""
        with self._seeding:  # not the other lock: a refresh holds that for as long as the vault does not answer
            if not self._cache_loaded:
                self._cache_loaded = True
                self._tables.seed(self._cache.load())
                self.as_of = self._cache.confirmed_at()

    def told(self, path: str) -> None:
        """The tables have just been told of an own write to `path`, which the cache does not know yet."""
        with self._telling:
            self._told.add(path)

    def store(self) -> None:
        """Bring what the tables were told of own writes into the cache; the next refresh reads those notes once more.
        """
        with self._telling:
            told, self._told = self._told, set()
        known = {path: self._tables.records.get(path) for path in told}
        stored = [record for record in known.values() if record is not None and record.version]
        if told and self._cache.save(stored, [path for path, record in known.items() if record is None]):
            self._cache.confirm(self.as_of or 0.0)

    def refresh(self) -> Changes:
        """Bring the tables up to date. Raises the vault's errors when the vault as a whole cannot be read."""
        with self._lock:
            self.seed()
            with self._tables.lock:
                known = dict(self._tables.records)
            looked = time.time()
            stats = list(self._vault.walk())
            if known and not stats and not self.finished:  # known from an earlier run: an empty mount point
                raise emptied()
            self.unreadable = self._vault.unreadable()
            notes = {stat.path: stat for stat in stats if is_note_file(stat.path)}
            self._tables.take_others({stat.path for stat in stats if stat.path not in notes})
            total = Changes([], [], [], {})
            total.removed.extend(self._remove_gone(known, notes))
            stored = self._read_stale(known, self._stale(known, notes), total)
            if stored or total.removed:
                self._cache.save(stored, total.removed)
            self._cache.confirm(looked)
            self.as_of = looked
            self.finished += 1
            return total

    def _stale(self, known: Dict[str, Record], notes: Dict[str, Stat]) -> List[Stat]:
        """The files whose size or time differs from what is known, those that failed lately left out."""
        now = time.monotonic()
        stale: List[Stat] = []
        for path, stat in notes.items():
            record = known.get(path)
            same = record is not None and record.mtime_ns == stat.mtime_ns and record.size == stat.size
            if not same and self._reader.may_try(path, now):
                stale.append(stat)
        return stale

    def _read_stale(self, known: Dict[str, Record], stale: Sequence[Stat], total: Changes) -> List[Record]:
        """Read the stale notes batch by batch into the tables. Returns the records the cache should store."""
        stored: List[Record] = []
        for start in range(0, len(stale), BATCH):
            fresh = self._read(stale[start:start + BATCH], known)
            with self._tables.announcing:
                # Written by ourselves meanwhile means another record: that one is newer than what was read here.
                current = [(new, text) for new, text in fresh if self._unchanged(known, new.path)]
                news = [(new, text) for new, text in current if _differs(known.get(new.path), new)]
                changes = self._tables.apply(news, [])
                with self._tables.lock:
                    self._tables.records.update((new.path, new) for new, _ in current)
            total.added.extend(changes.added)
            total.changed.extend(changes.changed)
            stored.extend(new for new, _ in current if new.version)
        return stored

    def _read(self, batch: Sequence[Stat], known: Dict[str, Record]) -> List[Tuple[Record, str]]:
        """Record and text of each note of `batch` that is still there; a failed one keeps the record it had."""
        now = time.time_ns()
        fresh: List[Tuple[Record, str]] = []
        for stat, reading in self._reader.read(batch):
            if reading.failed and stat.path in known:
                continue
            again = reading.failed or -SKEW_NS < now - stat.mtime_ns < SETTLED_NS
            mtime_ns = 0 if again else stat.mtime_ns
            fresh.append((Record.of(reading.facts, stat.size, mtime_ns, reading.version), reading.text))
        return fresh

    def _unchanged(self, known: Dict[str, Record], path: str) -> bool:
        return self._tables.records.get(path) is known.get(path)

    def _remove_gone(self, known: Dict[str, Record], notes: Dict[str, Stat]) -> List[str]:
        """Drop the notes that are confirmed to be gone; returns their paths in order."""
        missing = [path for path in known if path not in notes and not self.hidden(path)]
        # A folder renamed in case alone still answers to its old name; the walk saw what it is called now.
        respelled = {path.lower() for path in notes} if missing else set()
        absent = [path for path in missing if path.lower() in respelled]
        absent += self._absent([path for path in missing if path.lower() not in respelled])
        self._reader.forget(absent)
        with self._tables.announcing:
            gone = [path for path in absent if self._unchanged(known, path)]
            return self._tables.apply([], gone).removed

    def _absent(self, paths: Sequence[str]) -> List[str]:
        """Those of `paths` whose folder does not list them either: a walk can miss a file that is being renamed."""
        listings: Dict[str, Optional[Set[str]]] = {}
        absent: List[str] = []
        for path in paths:
            folder, _, name = path.rpartition("/")
            if folder not in listings:
                listings[folder] = self._files_in(folder)
            files = listings[folder]
            if files is not None and name not in files:
                absent.append(path)
        return absent

    def _files_in(self, folder: str) -> Optional[Set[str]]:
        """The names of the files in `folder`; none when there is no such folder, None when nobody can tell."""
        try:
            return set(self._vault.list_folder(folder).files)
        except NotFound:
            return set()
        except EchoError:
            return None


def _differs(before: Optional[Record], after: Record) -> bool:
    return before is None or before.version != after.version
