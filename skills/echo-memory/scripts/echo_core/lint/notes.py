"""Lint checks that look at one note at a time: place, frontmatter, name, size, secrets (spec 3.4)."""
from __future__ import annotations

import re
from typing import Dict, Iterable, Iterator, List

from echo_core.catalog.notebytes import decode
from echo_core.errors import InvalidPath, SecretSuspected
from echo_core.guards import refuse_secrets
from echo_core.kinds import domain_of, is_entity, status_of
from echo_core.lint.scope import Finding, Scope, finding
from echo_core.lint.sync_copies import conflict_copy, numbered_original
from echo_core.paths import check_path, unportable
from echo_core.text import plural

MAX_NOTE_BYTES = 256 * 1024
"""A longer note is no longer read by anybody."""

MAX_SINGLE = 3
"""So many notes outside the route map are named one by one; more of one top folder are named together."""

READ_AT_ONCE = 200

_NOT_IN_A_LINK = re.compile(r"[\[\]#^]")


def route_unmatched(scope: Scope) -> Iterator[Finding]:
    """Notes that match no route; a folder with many of them is one finding."""
    folders: Dict[str, List[str]] = {}
    for note in scope.notes:
        if not scope.routes.match(note.path) and not scope.routes.retired(note.path):
            top, slash, _ = note.path.partition("/")
            folders.setdefault(top + slash if slash else "", []).append(note.path)
    for folder, paths in sorted(folders.items()):
        if folder and len(paths) > MAX_SINGLE:
            yield finding("route-unmatched", folder, f"{plural(len(paths), 'note')} here match no route")
        else:
            yield from (finding("route-unmatched", path, "matches no route") for path in paths)


def route_retired(scope: Scope) -> Iterator[Finding]:
    """Notes in a place that is no longer in use."""
    for note in scope.notes:
        retired = scope.routes.retired(note.path)
        if retired:
            instead = f"; use {retired.instead}" if retired.instead else ""
            yield finding("route-retired", note.path, f"this place is retired{instead}")


def frontmatter_missing(scope: Scope) -> Iterator[Finding]:
    """Notes of a kind of the layout without frontmatter; a person's other notes need none."""
    for note in scope.notes:
        if is_entity(note.path) and not note.has_frontmatter and note.malformed is None:
            yield finding("frontmatter-missing", note.path, "has no frontmatter")


def frontmatter_malformed(scope: Scope) -> Iterator[Finding]:
    """Notes whose YAML does not parse."""
    for note in scope.notes:
        if note.malformed is not None:
            fault = note.malformed
            detail = f"line {fault.line}, column {fault.column}: {fault.reason}"
            yield finding("frontmatter-malformed", note.path, detail)


def folder_status_mismatch(scope: Scope) -> Iterator[Finding]:
    """Projects whose status, and areas whose domain, is not that of their folder."""
    for note in scope.notes:
        for what, placed, said in (
            ("status", status_of(note.path), note.status), ("domain", domain_of(note.path), note.domain),
        ):
            if placed and said and said != placed:
                yield finding(
                    "folder-status-mismatch", note.path, f"{what} is {said[:40]}, but the folder says {placed}"
                )


def note_oversized(scope: Scope) -> Iterator[Finding]:
    """Notes above MAX_NOTE_BYTES."""
    for note in scope.notes:
        record = scope.catalog.record(note.path)
        if record is not None and record.size > MAX_NOTE_BYTES:
            detail = f"{record.size:,} bytes, more than {MAX_NOTE_BYTES:,}"
            yield finding("note-oversized", note.path, detail)


def bad_name(scope: Scope) -> Iterator[Finding]:
    """Names that ECHO refuses, that another system or a link cannot hold, or that differ in case alone."""
    spellings: Dict[str, str] = {}
    for note in scope.notes:
        why = _name_trouble(note.path)
        twin = spellings.setdefault(note.path.lower(), note.path)
        if twin != note.path:
            why = why or f"differs from {twin} in case alone"
        if why:
            yield finding("bad-name", note.path, why)
    for place in scope.catalog.unreadable():
        why = refused_name(place)
        if why:
            yield finding("bad-name", place, why)


def refused_name(path: str) -> str:
    """Why ECHO accepts no such path, "" when it does."""
    try:
        check_path(path)
    except InvalidPath as refused:
        return refused.message
    return ""


def _name_trouble(path: str) -> str:
    trouble = refused_name(path) or unportable(path)
    if trouble:
        return trouble
    if _NOT_IN_A_LINK.search(path):
        return "holds a character that no wikilink can hold"
    return ""


def invalid_utf8(scope: Scope) -> Iterator[Finding]:
    """Notes with bytes that are not UTF-8: they are kept, but words around them cannot be read or found."""
    for note in scope.notes:
        if not note.valid_utf8:
            yield finding("invalid-utf8", note.path, "holds bytes that are not UTF-8, which are kept as they are")


def secret_suspected(scope: Scope) -> Iterator[Finding]:
    """Notes that hold something like a live credential: the shape is named, never the value. Reads every note."""
    paths = [note.path for note in scope.notes]
    for start in range(0, len(paths), READ_AT_ONCE):
        for path, data in scope.vault.read_many(_readable(scope, paths[start:start + READ_AT_ONCE])):
            try:
                refuse_secrets(decode(data)[0], path)
            except SecretSuspected as suspected:
                yield finding("secret-suspected", path, f"looks like {suspected.data.get('shape', 'a credential')}")


def _readable(scope: Scope, paths: Iterable[str]) -> List[str]:
    problems = scope.catalog.problems()
    return [path for path in paths if path not in problems]


def conflict_copies(scope: Scope) -> Iterator[Finding]:
    """Copies that Obsidian Sync, iCloud, Syncthing or Dropbox made of a note that two devices changed."""
    for note in scope.notes:
        original = numbered_original(note.path)
        known = scope.catalog.facts(original) if original else None
        # People number their notes too: "Note 2" is a copy only when it still carries the title of "Note".
        if conflict_copy(note.path):
            yield finding("conflict-copy", note.path, "a sync program kept this copy beside the note it belongs to")
        elif known is not None and known.title == note.title:
            yield finding("conflict-copy", note.path, f"a copy of {original} under a number, as iCloud makes them")
