"""One `Linker` over all notes, kept in step with the catalog (spec 3.2, auto-link).

A note that is new to the catalog is added; building from scratch happens only when a note is renamed or gone.
"""
from __future__ import annotations

import threading
from typing import Dict, Optional

from echo_core.catalog.catalog import Catalog
from echo_core.kinds import is_system, kind_of
from echo_core.lint.sync_copies import conflict_copy
from echo_core.names.autolink import Linkable, Linker


class LinkerCache:
    """The linker of one vault, shared between threads."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._known: Dict[str, Linkable] = {}
        self._linker: Optional[Linker] = None
        self._generation = -1

    def current(self) -> Linker:
        """A linker that knows every note the catalog knows now."""
        with self._lock:
            generation = self._catalog.generation
            if self._linker is None or generation != self._generation:
                self._linker = self._followed()
                self._generation = generation
            return self._linker

    def _followed(self) -> Linker:
        changed = None if self._linker is None else self._catalog.changed_since(self._generation)
        if changed is None or self._linker is None:
            return self._rebuilt()
        for path in sorted(changed):
            now, before = self._linkable(path), self._known.get(path)
            if before is None and now is not None:
                self._known[path] = now
                self._linker.add(now)
            elif now != before:
                return self._rebuilt()
        return self._linker

    def _rebuilt(self) -> Linker:
        found = ((facts.path, self._linkable(facts.path)) for facts in self._catalog.all())
        self._known = {path: linkable for path, linkable in found if linkable is not None}
        return Linker(self._known.values())

    def _linkable(self, path: str) -> Optional[Linkable]:
        """What a mention may call the note at `path`; None for ECHO's own files, conflict copies and absent notes."""
        facts = self._catalog.facts(path)
        if facts is None or is_system(path) or conflict_copy(path):
            return None
        return Linkable(path, facts.title, tuple(facts.aliases), kind_of(path) or facts.kind)
