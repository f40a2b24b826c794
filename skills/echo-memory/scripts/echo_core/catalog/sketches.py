"""Which notes hold which hash of a body sketch, so that a likely copy is found without a look at every note."""
from __future__ import annotations

import threading
from typing import Dict, Iterable, List, Sequence, Tuple

from echo_core.catalog.records import Record
from echo_core.catalog.sketch import alike
from echo_core.catalog.tables import Tables


class SketchTable:
    """Follows the records of one catalog; made when first asked, since most calls compare no bodies. Thread-safe.

    Entries of former states stay until many have gathered: whoever is found is compared as it is now.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._lock = threading.Lock()
        self._holders: Dict[int, Tuple[str, ...]] = {}
        self._entered = self._room = 0
        self._generation = -1

    def like(self, fingerprint: Sequence[int]) -> List[Record]:
        """The records whose sketch is close to `fingerprint`, in path order."""
        with self._lock:
            self._follow()
            paths = {path for part in fingerprint for path in self._holders.get(part, ())}
        found = [self._tables.records.get(path) for path in sorted(paths)]
        return [record for record in found if record is not None and alike(fingerprint, record.sketch)]

    def _follow(self) -> None:
        with self._tables.lock:
            generation, changed = self._tables.generation, self._tables.changed_since(self._generation)
            if changed is None or self._entered > self._room:
                self._holders, self._entered = {}, 0
                changed = set(self._tables.records)
                self._room = 2 * len(changed) + 1000
            self._enter(changed)
            self._generation = generation

    def _enter(self, paths: Iterable[str]) -> None:
        for path in paths:
            record = self._tables.records.get(path)
            self._entered += 1
            for part in record.sketch if record else ():
                known = self._holders.get(part, ())
                if path not in known:
                    self._holders[part] = (*known, path)
