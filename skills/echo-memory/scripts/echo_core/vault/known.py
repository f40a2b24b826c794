"""What is known of a vault that is away: a view for reading that asks nobody (spec 6.1)."""
from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Dict, Iterable, Iterator, Optional, Tuple

from echo_core.catalog.catalog import Catalog
from echo_core.errors import VaultUnreachable
from echo_core.kinds import INDEX, ROUTES
from echo_core.paths import check_folder, check_path, is_note, parent
from echo_core.state.note_cache import Kept, NoteCache
from echo_core.vault.base import Listing, Stat, Vault
from echo_core.vault.forwarding import ForwardingVault
from echo_core.vault.refusals import missing

_BATCH = 200


class KnownVault(Vault):
    """The notes that the catalog knows, with the bytes that the cache keeps of them.

    A note whose bytes are not kept, or are known to be out of date, is not reachable; what the catalog does not know
    is not there, as far as is known. Nothing can be written. oldest: when the oldest bytes that were read here were
    surely those of the vault, in seconds since the epoch; None before a read.
    """

    def __init__(self, catalog: Catalog, cache: NoteCache) -> None:
        self._catalog = catalog
        self._cache = cache
        self.oldest: Optional[float] = None

    def read(self, path: str) -> bytes:
        path = check_path(path)
        kept = self._cache.get(path)
        if not is_note(path):
            if kept is None and path in (INDEX, ROUTES):  # made anew from the notes, or the default
                raise missing(path)
            return self._shown(path, kept, None)
        record = self._catalog.record(path)
        if record is None and self._catalog.paths():
            raise missing(path)
        current = kept is not None and record is not None and kept.version == record.version
        return self._shown(path, kept if current else None, self._catalog.as_of())

    def stat(self, path: str) -> Stat:
        record = self._catalog.record(check_path(path))
        if record is None:
            raise _away(path)
        return Stat(record.path, record.size, record.mtime_ns)

    def list_folder(self, path: str) -> Listing:
        path = check_folder(path)
        inside = [note for note in self._catalog.paths() if not path or note.startswith(path + "/")]
        if not inside:
            raise missing(path) if self._catalog.paths() else _away(path)
        names = [note[len(path):].lstrip("/") for note in inside]
        return Listing(sorted({name.partition("/")[0] for name in names if "/" in name}),
                       sorted(note.rpartition("/")[2] for note in inside if parent(note) == path))

    def walk(self) -> Iterator[Stat]:
        raise _away("")

    def write(self, path: str, data: bytes, expected: Optional[bytes]) -> None:
        raise _away(path)

    def delete(self, path: str, expected: bytes) -> None:
        raise _away(path)

    def move(self, source: str, target: str) -> None:
        raise _away(source)

    def exclusive(self, *paths: str) -> AbstractContextManager[None]:
        return nullcontext()

    def check(self) -> None:
        """What is known is there whatever the vault does."""

    def describe(self) -> Dict[str, object]:
        return {"backend": "none, only what is known"}

    def _shown(self, path: str, kept: Optional[Kept], as_of: Optional[float]) -> bytes:
        if kept is None:
            raise _away(path)
        sure = max(kept.at, as_of or 0.0)
        self.oldest = sure if self.oldest is None else min(self.oldest, sure)
        return kept.data


class KnownFirstVault(ForwardingVault):
    """For readers that want the bytes of the very version that the catalog knows: kept ones cost no request."""

    def __init__(self, inner: Vault, catalog: Catalog, cache: NoteCache) -> None:
        super().__init__(inner)
        self._catalog = catalog
        self._cache = cache

    def read_many(self, paths: Iterable[str]) -> Iterator[Tuple[str, bytes]]:
        wanted, rest = list(paths), []
        for start in range(0, len(wanted), _BATCH):
            batch = wanted[start:start + _BATCH]
            kept = self._cache.get_many(batch)
            for path in batch:
                record = self._catalog.record(path)
                if path in kept and record is not None and kept[path].version == record.version:
                    yield path, kept[path].data
                else:
                    rest.append(path)
        if rest:
            yield from self._inner.read_many(rest)


def age_s(at: float) -> int:
    """Whole seconds since `at`, never less than 0: clocks are set."""
    return max(0, int(time.time() - at))


def _away(path: str) -> VaultUnreachable:
    return VaultUnreachable(f"the vault is away, and {path or 'all of it'} is not kept", reason="not-kept", path=path)
