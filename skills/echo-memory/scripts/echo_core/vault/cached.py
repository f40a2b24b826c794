"""A vault whose notes are remembered for the time when it is away (spec 6.1).

Nothing is ever answered from memory here: each read asks the vault, so a write is never based on old bytes. What is
remembered is asked for by name, through `KnownVault`.
"""
from __future__ import annotations

from typing import Iterable, Iterator, Optional, Tuple

from echo_core.state.note_cache import NoteCache
from echo_core.vault.base import Vault
from echo_core.vault.forwarding import ForwardingVault


class CachedVault(ForwardingVault):
    """Keeps in `cache` what is read from and written to `inner`.

    bulk: also what is read many at a time.
    """

    def __init__(self, inner: Vault, cache: NoteCache, bulk: bool) -> None:
        super().__init__(inner)
        self._cache = cache
        self._bulk = bulk

    def read(self, path: str) -> bytes:
        changes = self._cache.changes
        data = self._inner.read(path)
        self._keep(path, data, changes)
        return data

    def read_many(self, paths: Iterable[str]) -> Iterator[Tuple[str, bytes]]:
        changes = self._cache.changes
        for path, data in self._inner.read_many(paths):
            if self._bulk:
                self._keep(path, data, changes)
            yield path, data

    def write(self, path: str, data: bytes, expected: Optional[bytes]) -> None:
        self._cache.changing()
        try:
            self._inner.write(path, data, expected)
        finally:
            self._cache.changing()
        self._cache.keep(path, data)

    def delete(self, path: str, expected: bytes) -> None:
        self._cache.changing()
        try:
            self._inner.delete(path, expected)
        finally:
            self._cache.changing()
        self._cache.drop([path])

    def move(self, source: str, target: str) -> None:
        kept = self._cache.get(source)
        self._cache.changing()
        try:
            self._inner.move(source, target)
        finally:
            self._cache.changing()
        self._cache.drop([source])
        if kept is not None:
            self._cache.keep(target, kept.data)

    def _keep(self, path: str, data: bytes, changes: int) -> None:
        """Keep what was read, unless a write came in between: then nobody can say which of both it is."""
        if self._cache.changes == changes:
            self._cache.keep(path, data)
