"""The names the entity index knows beyond what the notes themselves say, kept in step with both (spec 2.4)."""
from __future__ import annotations

import threading
from typing import Dict, Iterable, List, Optional, Protocol, Set, Tuple

from echo_core.catalog.catalog import Catalog
from echo_core.catalog.names import file_stem, note_keys
from echo_core.index import EntityIndex, Entry
from echo_core.text import name_keys


class IndexSource(Protocol):
    """Where the index comes from: `IndexStore`, or what is known of it."""

    def load(self) -> EntityIndex:
        """The index as it stands now."""

    def known(self) -> Optional[EntityIndex]:
        """The index as of the last load, None before the first."""


class IndexNames:
    """A small lookup table, since nearly all entries mirror their note, and the catalog knows those names already.

    index: the index as of the last `follow`, shared and not to be changed. Thread-safe.
    """

    def __init__(self, store: IndexSource, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._lock = threading.RLock()
        self.index = EntityIndex()
        self._refreshes = -1
        self._generation = -1
        self._paths: Dict[str, Set[str]] = {}
        self._keys: Dict[str, Tuple[str, ...]] = {}

    def name_keys(self) -> List[str]:
        """Every folded name in the table, in no order."""
        with self._lock:
            return list(self._paths)

    def named(self, keys: Iterable[str]) -> Set[str]:
        """The notes to which the index gives one of the folded `keys`."""
        with self._lock:
            found: Set[str] = set()
            for key in keys:
                found.update(self._paths.get(key, ()))
            return found

    def follow(self) -> None:
        """Bring the extra table up to what index and catalog say now, looking only at what changed."""
        with self._lock:
            refreshes, generation = self._catalog.refreshes(), self._catalog.generation
            known = self._store.known()
            if known is None or refreshes != self._refreshes:
                known = self._store.load()
            if known.stamp == self.index.stamp and generation == self._generation:
                self._refreshes = refreshes
                return
            changed = self._catalog.changed_since(self._generation)
            if known.stamp != self.index.stamp:
                changed = None if changed is None else changed | _differing(self.index, known)
            self.index = known
            for path in set(known.by_path) | set(self._keys) if changed is None else changed:
                self._enter(path)
            self._refreshes, self._generation = refreshes, generation

    def _enter(self, path: str) -> None:
        """Enter the names that the index gives to the note at `path` beyond those of the note itself."""
        for key in self._keys.pop(path, ()):
            self._paths[key].discard(path)
            if not self._paths[key]:
                del self._paths[key]
        slug = self.index.by_path.get(path)
        if slug is None:
            return
        keys = self._names_beyond(path, slug, self.index.entries[slug])
        if keys:
            self._keys[path] = keys
        for key in keys:
            self._paths.setdefault(key, set()).add(path)

    def _names_beyond(self, path: str, slug: str, entry: Entry) -> Tuple[str, ...]:
        record = self._catalog.record(path)
        names = [slug, entry.title, *entry.aliases]
        if record is None:
            return note_keys(path, "", names)
        mirrored = {file_stem(path), record.title, *record.aliases}
        keys: Set[str] = set()
        for name in names:
            if name not in mirrored:
                keys |= name_keys(name)
        return tuple(keys.difference(record.keys))


def _differing(old: EntityIndex, new: EntityIndex) -> Set[str]:
    """The paths of entries that stand in one of the two only."""
    changed = new.changed_since(old.stamp)
    if changed is not None:
        return changed
    paths: Set[str] = set()
    for one, other in ((old.entries, new.entries), (new.entries, old.entries)):
        paths.update(entry.path for slug, entry in one.items() if other.get(slug) != entry)
    return paths
