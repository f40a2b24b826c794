"""A vault that hands everything on to another one: what every wrapper begins with."""
from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from echo_core.vault.base import Listing, Stat, Vault


class ForwardingVault(Vault):
    """Forwards to `inner`; a wrapper overrides what it changes."""

    def __init__(self, inner: Vault) -> None:
        self._inner = inner
        self._call = threading.local()

    def note_context(self, tool: str, op_id: str) -> None:
        self._call.value = (tool, op_id)
        self._inner.note_context(tool, op_id)

    def _context(self) -> Tuple[str, str]:
        """Tool and op id of the call that this thread works for."""
        call: Tuple[str, str] = getattr(self._call, "value", ("", ""))
        return call

    def read(self, path: str) -> bytes:
        return self._inner.read(path)

    def read_many(self, paths: Iterable[str]) -> Iterator[Tuple[str, bytes]]:
        return self._inner.read_many(paths)

    def write(self, path: str, data: bytes, expected: Optional[bytes]) -> None:
        self._inner.write(path, data, expected)

    def delete(self, path: str, expected: bytes) -> None:
        self._inner.delete(path, expected)

    def move(self, source: str, target: str) -> None:
        self._inner.move(source, target)

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

    def exclusive(self, *paths: str) -> AbstractContextManager[None]:
        return self._inner.exclusive(*paths)

    def check(self) -> None:
        self._inner.check()

    def close(self) -> None:
        self._inner.close()

    def describe(self) -> Dict[str, object]:
        return self._inner.describe()

    def expect(self, known: Callable[[str], bool], anything: Callable[[], bool] = lambda: False) -> None:
        self._inner.expect(known, anything)
