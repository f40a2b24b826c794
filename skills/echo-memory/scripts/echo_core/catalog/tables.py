"""The records and lookup tables behind the catalog, changed under one lock and announced in one order."""
from __future__ import annotations

import threading
from itertools import takewhile
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

from echo_core.catalog.names import NoteNames
from echo_core.catalog.records import Record
from echo_core.kinds import TRASH

LOG_LENGTH = 8192
"""How many changes `changed_since` can look back."""


class Changes(NamedTuple):
    """Paths of notes that came, changed and went, each in path order.

    texts: path -> text of the added and changed notes, in what listeners get; empty in what `refresh` returns.
    """

    added: List[str]
    changed: List[str]
    removed: List[str]
    texts: Dict[str, str]

    def any(self) -> bool:
        """Whether there is any change at all."""
        return bool(self.added or self.changed or self.removed)


Listener = Callable[[Changes], None]


class Tables:
    """The records and lookup tables of one catalog, and who wants to hear of changes. Thread-safe."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        # Held over a change and its announcement, so that all listeners see all changes in one order.
        self.announcing = threading.RLock()
        self.records: Dict[str, Record] = {}
        self.names = NoteNames()
        self.others: Set[str] = set()
        self.listeners: List[Listener] = []
        self.generation = 0
        self._log: List[Tuple[int, str]] = []
        self._log_floor = 0

    def seed(self, records: Iterable[Record]) -> None:
        """Take in records of an earlier run, without announcing them."""
        with self.lock:
            for record in records:
                if record.path not in self.records:
                    self.records[record.path] = record
                    self.names.add(record.path, record.keys, record.links)
            self.generation += 1
            self._log_floor = self.generation

    def apply(self, news: Sequence[Tuple[Record, str]], gone: Sequence[str]) -> Changes:
        """Put records with their texts in, take paths out, and tell the listeners."""
        changes = Changes([], [], [], {})
        with self.announcing:
            with self.lock:
                for record, text in sorted(news, key=lambda pair: pair[0].path):
                    changes.texts[record.path] = text
                    (changes.changed if self._put(record) else changes.added).append(record.path)
                changes.removed.extend(path for path in sorted(gone) if self._drop(path))
                if changes.any():
                    self._log_changes(changes.added + changes.changed + changes.removed)
            if changes.any():
                for listener in self.listeners:
                    listener(changes)
        return changes

    def take_others(self, others: Set[str]) -> None:
        """Take in which files are there that are no notes: links may mean them."""
        if others == self.others:
            return
        with self.lock:
            for path in self.others - others:
                self.names.remove_file(path)
            for path in others - self.others:
                self.names.add_file(path)
            self.others = others

    def changed_since(self, generation: int) -> Optional[Set[str]]:
        """The paths that changed after `generation`; None when that is too long ago to know."""
        with self.lock:
            if generation < self._log_floor:
                return None
            return {path for _, path in takewhile(lambda entry: entry[0] > generation, reversed(self._log))}

    def _put(self, record: Record) -> bool:
        """Take the record in; whether it replaces another."""
        known, self.records[record.path] = self.records.get(record.path), record
        if known is None:
            self.names.add(record.path, record.keys, record.links)
        else:
            self.names.change(record.path, (known.keys, known.links), (record.keys, record.links))
        return known is not None

    def _drop(self, path: str) -> bool:
        record = self.records.pop(path, None)
        if record is None:
            return False
        self.names.remove(path, record.keys, record.links)
        return True

    def _log_changes(self, paths: Iterable[str]) -> None:
        self.generation += 1
        self._log.extend((self.generation, path) for path in paths)
        if len(self._log) > LOG_LENGTH:
            cut = len(self._log) - LOG_LENGTH // 2
            self._log_floor = self._log[cut - 1][0]
            del self._log[:cut]


def is_note_file(path: str) -> bool:
    """Whether the catalog reads this file: Markdown, no dot file, and not in ECHO's trash."""
    return path.endswith(".md") and not path.rsplit("/", 1)[-1].startswith(".") and not path.startswith(TRASH)
