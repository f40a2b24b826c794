"""Lint checks that look at notes together: links, duplicates, the index, the inbox, unreadable places (spec 3.4)."""
from __future__ import annotations

import posixpath
import re
from datetime import date
from typing import Dict, Iterator, List, Set, Tuple

from echo_core.catalog.note import NoteFacts
from echo_core.catalog.notebytes import decode
from echo_core.errors import IndexCorrupt, NotFound
from echo_core.index import EntityIndex, entry_of
from echo_core.kinds import INBOX, INDEX, KINDS, is_entity, kind_of
from echo_core.lint.notes import refused_name
from echo_core.lint.scope import Finding, Scope, finding
from echo_core.text import name_keys, plural

INBOX_DAYS = 7
"""An inbox item older than this waits too long."""

MAX_NAMED = 5
"""How many meanings of an ambiguous link a detail names."""

TEMPLATES = "journal/templates/"

_INBOX_LINE = re.compile(r"^[-*+] (\d{4}-\d\d-\d\d): ", re.MULTILINE)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def broken_link(scope: Scope) -> Iterator[Finding]:
    """Links that name no file or folder of the vault; templates hold placeholders and are left out."""
    folders = scope.catalog.folders()
    for note in scope.notes:
        if not note.path.startswith(TEMPLATES):
            for target, meaning in scope.links_of(note).items():
                if meaning is None and _place(target, note.path) not in folders:
                    yield finding("broken-link", note.path, f"no file is called {_shown(target)}")


def _place(target: str, from_path: str) -> str:
    """The folder a link target may mean: from the root, or from the linking note's folder."""
    if target.startswith("."):
        target = posixpath.normpath(posixpath.join(from_path.rpartition("/")[0], target))
    return target.strip("/")


def ambiguous_link(scope: Scope) -> Iterator[Finding]:
    """Links that may mean several files."""
    for note in scope.notes:
        for target, meaning in scope.links_of(note).items():
            if isinstance(meaning, list):
                named = ", ".join(meaning[:MAX_NAMED]) + (", ..." if len(meaning) > MAX_NAMED else "")
                yield finding("ambiguous-link", note.path, f"{_shown(target)} may mean {named}")


def orphan(scope: Scope) -> Iterator[Finding]:
    """Notes of the layout that link to no file and that no other note links to."""
    linked: Set[str] = set()
    for note in scope.catalog.all():
        for meaning in scope.links_of(note).values():
            if isinstance(meaning, str) and meaning != note.path:
                linked.update((meaning, note.path))
    for note in scope.notes:
        if is_entity(note.path) and note.path not in linked:
            yield finding("orphan", note.path, "links to no note, and no note links to it")


def duplicate_entity(scope: Scope) -> Iterator[Finding]:
    """Entities of one kind (and one day, where the kind is dated) that answer to one name."""
    owners: Dict[Tuple[str, str, str], str] = {}
    reported: Set[Tuple[str, str]] = set()
    for note in scope.notes:
        if not is_entity(note.path):
            continue
        for key in sorted({key for name in (note.title, *note.aliases) for key in name_keys(name)}):
            first = owners.setdefault((kind_of(note.path), _day(note), key), note.path)
            if first != note.path and (first, note.path) not in reported:
                reported.add((first, note.path))
                yield finding("duplicate-entity", note.path, f"answers to the name {key!r}, as {first} does")


def _day(note: NoteFacts) -> str:
    """The day in the file name of a dated kind, "" for the others."""
    match = _DAY.match(note.path.rpartition("/")[2])
    return match.group() if match and KINDS[kind_of(note.path)].dated else ""


def index_stale(scope: Scope) -> Iterator[Finding]:
    """Index entries that say something else than their note, or whose note is gone; a file that is no index."""
    index, trouble = _index(scope)
    if trouble:
        yield finding("index-stale", INDEX, trouble)
    for slug, entry in sorted(index.entries.items()):
        note = scope.catalog.facts(entry.path)
        if note is not None and is_entity(entry.path) and entry_of(note) == entry:
            continue
        if note is None and not scope.catalog.is_gone(entry.path):
            continue
        if note is None:
            yield finding("index-stale", entry.path, f"entity {slug} has no note any more")
        elif not is_entity(entry.path):
            yield finding("index-stale", entry.path, f"entity {slug} lies outside the folders of the layout")
        else:
            wanted = entry_of(note)
            fields = [name for name in entry._fields if getattr(entry, name) != getattr(wanted, name)]
            yield finding("index-stale", entry.path, f"entity {slug} differs from its note in {', '.join(fields)}")


def index_missing(scope: Scope) -> Iterator[Finding]:
    """Notes of the layout that have no index entry."""
    entities = [note.path for note in scope.notes if is_entity(note.path)]
    try:
        scope.vault.stat(INDEX)
    except NotFound:
        if entities:
            yield finding("index-missing", INDEX, f"no index file, but {plural(len(entities), 'note')} belong into it")
        return
    index, _ = _index(scope)
    for path in entities:
        if path not in index.by_path:
            yield finding("index-missing", path, "has no index entry")


def _index(scope: Scope) -> Tuple[EntityIndex, str]:
    """The index, and what is wrong with its file ("" for nothing)."""
    try:
        broken = scope.store.broken()
        return scope.store.load(), "is broken; it is rebuilt at the next write" if broken else ""
    except IndexCorrupt as problem:
        return EntityIndex(), problem.message


def inbox_aging(scope: Scope) -> Iterator[Finding]:
    """Inbox items that wait longer than INBOX_DAYS."""
    try:
        text, _ = decode(scope.vault.read(INBOX))
    except NotFound:
        return
    today = scope.clock.today()
    old = sorted(day for day in _days(text) if (today - day).days > INBOX_DAYS)
    if old:
        detail = f"{plural(len(old), 'item')} older than {INBOX_DAYS} days, the oldest of {old[0].isoformat()}"
        yield finding("inbox-aging", INBOX, detail)


def _days(text: str) -> Iterator[date]:
    for written in _INBOX_LINE.findall(text.replace("\r\n", "\n").replace("\r", "\n")):
        try:
            yield date.fromisoformat(written)
        except ValueError:  # a line that only looks dated, such as 2026-13-45, has no age
            continue


def unreadable(scope: Scope) -> Iterator[Finding]:
    """Folders and links that nobody could look into, and notes that could not be read or parsed."""
    for place in scope.catalog.unreadable():
        if refused_name(place):
            continue  # known as a bad name
        yield finding("unreadable", place, "cannot be read, or is a link that leaves the vault")
    for path, reason in scope.catalog.problems().items():
        yield finding("unreadable", path, reason)


def _shown(target: str) -> str:
    cut: List[str] = [target[:79] + "…"] if len(target) > 80 else [target]
    return f"[[{cut[0]}]]"
