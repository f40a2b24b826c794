"""A vault that keeps what it replaces: no replacement without a version to go back to (spec 6.3)."""
from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from typing import Dict, Iterable, Iterator, List, Optional, Tuple

from echo_core.errors import Conflict, InvalidPath, NotFound, NoUndo, Overtaken, VaultAuth
from echo_core.history import HistoryStore
from echo_core.paths import is_control
from echo_core.vault.base import Listing, Stat, Vault

# After these the write surely did not happen, an Overtaken aside; after others (a timeout, say) it may have, and its
# version stays.
_NOTHING_WRITTEN = (Conflict, InvalidPath, NotFound, VaultAuth)


class JournaledVault(Vault):
    """Forwards to `inner`; versions of what is about to go are in `history` before it goes.

    Control files (locks, the derived index) have no history. When no version can be kept, what loses bytes is refused
    with NoUndo; what only adds (a creation, an append, a move) goes on, and `describe` counts it.
    """

    def __init__(self, inner: Vault, history: HistoryStore) -> None:
        self._inner = inner
        self._history = history
        self._call = threading.local()
        self._unkept = 0

    def note_context(self, tool: str, op_id: str) -> None:
        self._call.value = (tool, op_id)
        self._inner.note_context(tool, op_id)

    def write(self, path: str, data: bytes, expected: Optional[bytes]) -> None:
        kept = self._keep(path, expected, data)
        try:
            self._inner.write(path, data, expected)
        except _NOTHING_WRITTEN as failure:
            if not isinstance(failure, Overtaken):
                self._withdraw(kept)
            raise

    def delete(self, path: str, expected: bytes) -> None:
        kept = self._keep(path, expected, None)
        try:
            self._inner.delete(path, expected)
        except _NOTHING_WRITTEN:
            self._withdraw(kept)
            raise

    def move(self, source: str, target: str) -> None:
        with self.exclusive():
            kept: List[str] = []
            try:
                kept = self._history.moved(source, target, self._inner.read(source), *self._context())
            except NoUndo:
                self._unkept += 1
            try:
                self._inner.move(source, target)
            except _NOTHING_WRITTEN:
                self._withdraw(kept)
                raise

    def _keep(self, path: str, before: Optional[bytes], after: Optional[bytes]) -> List[str]:
        """Ids of the versions that were kept for a write; NoUndo when one is needed and cannot be."""
        if is_control(path):
            return []
        try:
            return [self._history.record(path, before, *self._context(), after=after)]
        except NoUndo:
            if before is None or (after is not None and after.startswith(before)):
                self._unkept += 1
                return []
            raise

    def _withdraw(self, kept: List[str]) -> None:
        try:
            if kept:
                self._history.withdraw(kept)
        except NoUndo:
            # A version too many is harmless; the caller must hear why the write failed.
            self._unkept += 1

    def _context(self) -> Tuple[str, str]:
        call: Tuple[str, str] = getattr(self._call, "value", ("", ""))
        return call

    def describe(self) -> Dict[str, object]:
        facts = dict(self._inner.describe())
        facts["history_gaps"] = self._unkept
        facts["history_problems"] = self._history.problems()
        return facts

    def read(self, path: str) -> bytes:
        return self._inner.read(path)

    def read_many(self, paths: Iterable[str]) -> Iterator[Tuple[str, bytes]]:
        return self._inner.read_many(paths)

    def stat(self, path: str) -> Stat:
        return self._inner.stat(path)

    def is_gone(self, path: str) -> bool:
        return self._inner.is_gone(path)

    def list_folder(self, path: str) -> Listing:
        return self._inner.list_folder(path)

    def walk(self) -> Iterator[Stat]:
        return self._inner.walk()

    def unreadable(self) -> List[str]:
        return self._inner.unreadable()

    def exclusive(self) -> AbstractContextManager[None]:
        return self._inner.exclusive()

    def check(self) -> None:
        self._inner.check()
