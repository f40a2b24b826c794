"""The entity index for answers that must not ask the vault (spec 6.2)."""
from __future__ import annotations

import threading
from typing import Optional, Tuple

from echo_core.catalog.catalog import Catalog
from echo_core.errors import EchoError
from echo_core.index import EntityIndex, build_index
from echo_core.index.store import IndexStore
from echo_core.kinds import INDEX, is_entity
from echo_core.vault.known import KnownVault


class KnownIndex:
    """The index that `store` loaded last, else the file as it was kept, else one made of the notes that are known."""

    def __init__(self, store: IndexStore, vault: KnownVault, catalog: Catalog) -> None:
        self._store = store
        self._vault = vault
        self._catalog = catalog
        self._lock = threading.Lock()
        self._kept: Optional[EntityIndex] = None
        self._made: Tuple[int, EntityIndex] = (-1, EntityIndex())

    def known(self) -> EntityIndex:
        """The index; shared, so callers must not change it. The same object until something changes."""
        loaded = self._store.known()
        if loaded is not None:
            return loaded
        with self._lock:
            if self._kept is None:
                self._kept = self._read()
            return self._kept or self._from_notes()

    def load(self) -> EntityIndex:
        """The same: nothing newer can be had."""
        return self.known()

    def _read(self) -> Optional[EntityIndex]:
        try:
            return EntityIndex.from_bytes(self._vault.read(INDEX))
        except EchoError:  # not kept, or not an index
            return None

    def _from_notes(self) -> EntityIndex:
        generation = self._catalog.generation
        if self._made[0] != generation:
            self._made = generation, build_index(self._catalog.all(is_entity))
        return self._made[1]
