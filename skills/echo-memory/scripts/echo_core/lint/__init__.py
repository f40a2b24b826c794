"""Every check of the vault's notes (spec 3.4), run in one order over a catalog that was just refreshed."""
from __future__ import annotations

from typing import Callable, Container, Dict, Iterator, List, Optional

from echo_core.catalog.catalog import Catalog
from echo_core.clock import Clock
from echo_core.errors import InvalidArgument
from echo_core.index.store import IndexStore
from echo_core.kinds import ROUTES
from echo_core.lint import notes as lint_notes
from echo_core.lint import vault as lint_vault
from echo_core.lint.scope import Finding, Scope
from echo_core.lint.sync_copies import conflict_copy
from echo_core.routing import RouteMap
from echo_core.vault.base import Vault

__all__ = ["CHECKS", "FAST_CHECKS", "Finding", "conflict_copy", "lint"]

Check = Callable[[Scope], Iterator[Finding]]

CHECKS: Dict[str, Check] = {
    "route-unmatched": lint_notes.route_unmatched,
    "route-retired": lint_notes.route_retired,
    "frontmatter-missing": lint_notes.frontmatter_missing,
    "frontmatter-malformed": lint_notes.frontmatter_malformed,
    "folder-status-mismatch": lint_notes.folder_status_mismatch,
    "broken-link": lint_vault.broken_link,
    "ambiguous-link": lint_vault.ambiguous_link,
    "duplicate-entity": lint_vault.duplicate_entity,
    "index-stale": lint_vault.index_stale,
    "index-missing": lint_vault.index_missing,
    "orphan": lint_vault.orphan,
    "inbox-aging": lint_vault.inbox_aging,
    "note-oversized": lint_notes.note_oversized,
    "bad-name": lint_notes.bad_name,
    "invalid-utf8": lint_notes.invalid_utf8,
    "secret-suspected": lint_notes.secret_suspected,
    "conflict-copy": lint_notes.conflict_copies,
    "unreadable": lint_vault.unreadable,
}
"""Check name -> the function that makes its findings, in the order they are reported."""

FAST_CHECKS = tuple(
    name for name in CHECKS if name not in ("duplicate-entity", "index-stale", "orphan", "secret-suspected")
)
"""The checks that make sense over a few notes and read none of them again."""


def lint(
    catalog: Catalog, vault: Vault, index: IndexStore, routes: Callable[[], RouteMap], clock: Clock,
    only: Optional[Container[str]] = None, fast: bool = False,
) -> List[Finding]:
    """All findings, by check and then by path; refresh the catalog first.

    routes: loads the route map; a broken one is a finding, and the default routes count. only: check just these
    notes. fast: leave out the checks that compare all notes or read them again. Raises the vault's errors when the
    vault as a whole cannot be read.
    """
    notes = [note for note in catalog.all() if only is None or note.path in only]
    found: List[Finding] = []
    try:
        known = routes()
    except InvalidArgument as broken:
        known = RouteMap.load(None)
        found.append({"check": "route-map-broken", "path": ROUTES, "detail": broken.message})
    scope = Scope(catalog, vault, index, known, clock, notes, {})
    for name, check in CHECKS.items():
        if name in FAST_CHECKS or not fast:
            found.extend(sorted(check(scope), key=lambda row: (row["path"], row["detail"])))
    return found
