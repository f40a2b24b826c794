"""A vault whose writes stay in memory: what a call would do, found by doing it (spec 3.2, previews)."""
from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Dict, Iterator, List, NamedTuple, Optional

from echo_core.errors import Conflict, NotFound
from echo_core.vault.base import Listing, Stat, Vault, version_of


class Change(NamedTuple):
    """One note a preview wrote; `before` is None when it would be created."""

    path: str
    before: Optional[bytes]
    after: bytes


class PreviewVault(Vault):
    """Reads through to `inner` and keeps every write to itself, so that the writes see each other.

    Listing and walking show `inner` as it is. Only edits are previewed this way: it neither deletes nor moves.
    """

    def __init__(self, inner: Vault) -> None:
        self._inner = inner
        self._written: Dict[str, bytes] = {}
        self._taken: Dict[str, Optional[bytes]] = {}

    def take(self) -> List[Change]:
        """The notes that changed since the last call, in the order of their first write."""
        changes = [Change(path, before, self._written[path]) for path, before in self._taken.items()]
        self._taken = {}
        return [change for change in changes if change.before != change.after]

    def read(self, path: str) -> bytes:
        if path in self._written:
            return self._written[path]
        return self._inner.read(path)

    def write(self, path: str, data: bytes, expected: Optional[bytes]) -> None:
        current = self._current(path)
        if current != expected:
            raise Conflict(
                f"{path} is not what was expected", path=path, version=version_of(current) if current else "",
            )
        self._taken.setdefault(path, current)
        self._written[path] = data

    def _current(self, path: str) -> Optional[bytes]:
        try:
            return self.read(path)
        except NotFound:
            return None

    def stat(self, path: str) -> Stat:
        if path in self._written:
            return Stat(path, len(self._written[path]), 0)
        return self._inner.stat(path)

    def is_gone(self, path: str) -> bool:
        return path not in self._written and self._inner.is_gone(path)

    def list_folder(self, path: str) -> Listing:
        return self._inner.list_folder(path)

    def walk(self) -> Iterator[Stat]:
        return self._inner.walk()

    def unreadable(self) -> List[str]:
        return self._inner.unreadable()

    def exclusive(self, *paths: str) -> AbstractContextManager[None]:
        """No lock: nothing is written, and taking one would make its file."""
        return nullcontext()

    def check(self) -> None:
        self._inner.check()

    def describe(self) -> Dict[str, object]:
        return self._inner.describe()
