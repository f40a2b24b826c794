"""The facts of every note of a vault, for links, names, lint and search; one instance is shared by all threads.

`refresh` (in `catalog_refresh`) brings it up to date with the vault; `touch` and `forget` tell it about own writes
at once. Whoever derives something from it either subscribes or compares `generation`.
"""
from __future__ import annotations

import threading
from typing import Callable, Dict, Iterable, List, Optional, Sequence, Set, Union

from echo_core.catalog.names import link_keys
from echo_core.catalog.note import NoteFacts
from echo_core.catalog.reading import Reader
from echo_core.catalog.records import Record, RecordCache
from echo_core.catalog.refresh import Refresher
from echo_core.catalog.sketches import SketchTable
from echo_core.catalog.tables import Changes, Listener, Tables, is_note_file
from echo_core.index import EntityIndex, build_index
from echo_core.kinds import is_entity, may_hold_entities
from echo_core.vault.base import Vault

__all__ = ["Catalog", "Changes", "Listener"]


class Catalog:
    """The notes of one vault.

    cache_file: where to keep the facts between two runs, on this host and outside the vault; "" keeps none.
    """

    def __init__(self, vault: Vault, cache_file: str = "") -> None:
        self._tables = Tables()
        self._sketches = SketchTable(self._tables)
        self._reader = Reader(vault)
        self._building = threading.Lock()
        self._built = EntityIndex()
        self._built_at = -1
        self._refresher = Refresher(vault, self._reader, self._tables, RecordCache(cache_file))

    @property
    def generation(self) -> int:
        """A number that grows with every change."""
        return self._tables.generation

    def facts(self, path: str) -> Optional[NoteFacts]:
        """The facts of the note at `path` (exact, NFC), None when there is no such note."""
        record = self._tables.records.get(path)
        return None if record is None else record.facts

    def record(self, path: str) -> Optional[Record]:
        """Size, time, version and names of a note, cheaper than its facts; None when there is no such note."""
        return self._tables.records.get(path)

    def all(self, wanted: Callable[[str], bool] = lambda path: True) -> List[NoteFacts]:
        """The facts of all notes whose path is `wanted`, in path order."""
        with self._tables.lock:
            records = sorted(item for item in self._tables.records.items() if wanted(item[0]))
        return [record.facts for _, record in records]

    def with_body_like(self, fingerprint: Sequence[int]) -> List[NoteFacts]:
        """The facts of the notes whose body may be nearly the one with this `sketch`, in path order."""
        return [record.facts for record in self._sketches.like(fingerprint)]

    def paths(self) -> List[str]:
        """The paths of all notes in path order."""
        with self._tables.lock:
            return sorted(self._tables.records)

    def is_file(self, path: str) -> bool:
        """Whether the last refresh saw this file, note or not."""
        return path in self._tables.records or path in self._tables.others

    def folders(self) -> Set[str]:
        """Every folder that holds a file, directly or further down."""
        with self._tables.lock:
            files = [*self._tables.records, *self._tables.others]
        found: Set[str] = set()
        for path in files:
            folder = path.rpartition("/")[0]
            while folder and folder not in found:
                found.add(folder)
                folder = folder.rpartition("/")[0]
        return found

    def backlinks(self, path: str) -> List[str]:
        """The notes that link to `path`, in path order, itself left out."""
        with self._tables.lock:
            record = self._tables.records.get(path)
            keys = set(record.keys if record else link_keys([path]))
            sources: Set[str] = set()
            for key in keys:
                sources.update(self._tables.names.sources.get(key, ()))
            sources.discard(path)
            return sorted(source for source in sources if self._links_to(source, path, keys))

    def _links_to(self, source: str, path: str, keys: Set[str]) -> bool:
        return any(
            self._tables.names.resolve_link(target, source) == [path]
            for target in self._tables.records[source].facts.links
            if not keys.isdisjoint(link_keys([target]))
        )

    def resolve_link(self, target: str, from_path: str) -> Union[str, List[str], None]:
        """The file a link target means by Obsidian's rules (see NoteNames.resolve_link).

        target: as in the link, without heading and alias. None: no such file; a list: it may mean any of these.
        """
        with self._tables.lock:
            found = self._tables.names.resolve_link(target, from_path)
        return found if len(found) > 1 else found[0] if found else None

    def taken(self, path: str) -> Optional[str]:
        """The file that has this path but for case and normal form, None when the path is free."""
        with self._tables.lock:
            return self._tables.names.same_path(path)

    def named(self, keys: Iterable[str]) -> Set[str]:
        """The notes that answer to one of the folded `keys` by file name, title or alias."""
        with self._tables.lock:
            return self._tables.names.named(keys)

    def name_keys(self) -> List[str]:
        """Every folded name some note answers to, in no order."""
        with self._tables.lock:
            return list(self._tables.names.by_key)

    def changed_since(self, generation: int) -> Optional[Set[str]]:
        """The notes that changed after `generation`; None when that is too long ago to know."""
        return self._tables.changed_since(generation)

    def unreadable(self) -> List[str]:
        """Folders and links that the last refresh could not look into."""
        return list(self._refresher.unreadable)

    def problems(self) -> Dict[str, str]:
        """Path -> why this note could not be read or parsed."""
        return self._reader.problems()

    def seed(self) -> None:
        """Take in what an earlier run has kept, without asking the vault; a refresh begins with the same."""
        self._refresher.seed()

    def as_of(self) -> Optional[float]:
        """When the vault was last seen to be as this says, in seconds since the epoch; None before the first time."""
        return self._refresher.as_of

    def refreshes(self) -> int:
        """How many refreshes went through."""
        return self._refresher.finished

    def complete(self) -> bool:
        """Whether the last refresh saw every place and every note that can belong into the entity index."""
        hidden = any(may_hold_entities(place) for place in self._refresher.unreadable)
        failed = any(is_entity(path) for path in self._reader.problems())
        return self._refresher.finished > 0 and not hidden and not failed

    def is_gone(self, path: str) -> bool:
        """Whether the last refresh could look where `path` lies and the note was not there."""
        return self._refresher.finished > 0 and path not in self._tables.records and not self._refresher.hidden(path)

    def build_index(self) -> EntityIndex:
        """The entity index the notes ask for, of what is known now; refreshed first if that never happened.

        The same object until a note changes: callers must not change it. Raises the vault's errors.
        """
        if not self._refresher.finished:
            self.refresh()
        with self._building:
            if self._built_at != self.generation:
                generation = self.generation
                self._built = build_index(self.all(is_entity))
                self._built_at = generation
            return self._built

    def subscribe(self, on_change: Listener) -> None:
        """Call `on_change` after every change, one call at a time, also in the middle of a long refresh.

        It must not raise and must not ask the entity index. Notes known before this call are not announced.
        """
        with self._tables.announcing:
            self._tables.listeners.append(on_change)

    def refresh(self) -> Changes:
        """Bring everything up to date with the vault; with nothing changed it costs one walk.

        Raises the vault's errors when the vault as a whole cannot be read; then nothing was forgotten.
        """
        return self._refresher.refresh()

    def touch(self, path: str, data: bytes) -> None:
        """Take in the bytes just written to `path`; a path that is no note is ignored."""
        if not is_note_file(path):
            return
        reading = self._reader.parse(path, data)
        # Time 0: the next refresh reads it once more, since somebody else may write in the same instant.
        self._tables.apply([(Record.of(reading.facts, len(data), 0, reading.version), reading.text)], [])
        self._refresher.told(path)

    def forget(self, path: str) -> None:
        """Take in that the note at `path` was just deleted or moved away."""
        self._tables.apply([], [path])
        self._refresher.told(path)

    def store(self) -> None:
        """Keep what `touch` and `forget` told also for the next run; a refresh keeps the rest."""
        self._refresher.store()
