"""What every lint check looks at, and the form of a finding (spec 3.4)."""
from __future__ import annotations

from typing import Dict, List, NamedTuple, Union

from echo_core.catalog.catalog import Catalog
from echo_core.catalog.note import NoteFacts
from echo_core.clock import Clock
from echo_core.index.store import IndexStore
from echo_core.routing import RouteMap
from echo_core.vault.base import Vault

Finding = Dict[str, str]
"""`{"check", "path", "detail"}`; path is a note, a folder ending in "/", or a control file."""

Meaning = Union[str, List[str], None]


class Scope(NamedTuple):
    """One run of lint. notes: those to check, in path order; the catalog was refreshed just before."""

    catalog: Catalog
    vault: Vault
    store: IndexStore
    routes: RouteMap
    clock: Clock
    notes: List[NoteFacts]
    meanings: Dict[str, Dict[str, Meaning]]

    def links_of(self, note: NoteFacts) -> Dict[str, Meaning]:
        """Link target as written -> what it means (a path, several, None), each distinct target of a note once."""
        found = self.meanings.get(note.path)
        if found is None:
            targets = [target for target in dict.fromkeys(note.links) if target]
            found = {target: self.catalog.resolve_link(target, note.path) for target in targets}
            self.meanings[note.path] = found
        return found


def finding(check: str, path: str, detail: str) -> Finding:
    """One finding; the detail is one line."""
    return {"check": check, "path": path, "detail": " ".join(detail.split())}
