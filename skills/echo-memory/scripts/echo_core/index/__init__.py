"""The entity index as plain data: slug -> (aliases, kind, path, title, updated), and its canonical bytes (spec 2.4).

Nothing here touches a vault; `echo_core.index.store` loads, rebuilds and writes it.
"""
from __future__ import annotations

import itertools
import json
import unicodedata
from bisect import bisect_left
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

from echo_core.catalog.note import NoteFacts
from echo_core.catalog.notebytes import displayable
from echo_core.errors import IndexCorrupt, InvalidPath
from echo_core.kinds import INDEX, SYSTEM_NOTES, is_entity, kind_of
from echo_core.paths import check_path, stem
from echo_core.text import slug

VERSION = 1

_stamps = itertools.count(1)
_quoted = json.JSONEncoder(ensure_ascii=False).encode
_HEAD = b'{\n  "entities": '
_TAIL = b',\n  "version": %d\n}\n' % VERSION
_LOG_LENGTH = 1000
"""How many changes a copy remembers, for whoever follows one index through its copies."""

RESERVED_SLUGS = frozenset(slug(stem(path)) for path in SYSTEM_NOTES)
"""Slugs of the system notes, never given to an entity."""


class Entry(NamedTuple):
    """One entity. path: vault-relative, NFC. updated: the day of the last write, "" when unknown."""

    aliases: Sequence[str]
    kind: str
    path: str
    title: str
    updated: str


class EntityIndex:
    """All entities of a vault by slug.

    entries: slug -> Entry; change it through the methods only. by_path: NFC path -> slug.
    """

    def __init__(self, entries: Optional[Dict[str, Entry]] = None) -> None:
        self.entries: Dict[str, Entry] = dict(entries or {})
        self.by_path: Dict[str, str] = {}
        for name in sorted(self.entries, reverse=True):
            self.by_path[self.entries[name].path] = name
        self._written: Dict[str, bytes] = {}  # slug -> its entry as it stands in the file
        self._unwritten = set(self.entries)
        self._log: List[Tuple[int, str]] = [(next(_stamps), "")]

    @property
    def stamp(self) -> int:
        """A number that no other state of any index has, so readers see a change by comparing it."""
        return self._log[-1][0]

    def changed_since(self, stamp: int) -> Optional[Set[str]]:
        """The paths whose entries may have changed since this index had `stamp`; None when nobody can tell any more."""
        first = bisect_left(self._log, (stamp, ""))
        if first == len(self._log) or self._log[first][0] != stamp:
            return None
        return {path for _, path in self._log[first + 1:]}

    @classmethod
    def from_bytes(cls, data: bytes) -> "EntityIndex":
        """Read `_agent/index/entities.json`. Raises IndexCorrupt when any part of it is not as spec 2.4 says."""
        try:
            document = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_without_repeats)
            entities = document["entities"]
            if document["version"] != VERSION:
                raise ValueError(f"version is not {VERSION}")
            return cls({name: _entry(fields) for name, fields in entities.items()})
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, InvalidPath) as problem:
            raise IndexCorrupt(
                f"{INDEX} cannot be read: {type(problem).__name__}: {str(problem)[:120]}",
                hint="It is rebuilt from the notes at the next write, or by `echo.py reindex`.", path=INDEX,
            ) from None

    def to_bytes(self) -> bytes:
        """The canonical bytes: keys sorted, two-space indent, UTF-8 unescaped, final newline."""
        for name in self._unwritten:
            self._written[name] = _json_member(name, self.entries[name]).encode()
        self._unwritten = set()
        members = b",\n".join(map(self._written.__getitem__, sorted(self.entries)))
        return b"".join((_HEAD, b"{\n" + members + b"\n  }" if members else b"{}", _TAIL))

    def copy(self) -> "EntityIndex":
        """An independent index with the same entries."""
        other = EntityIndex()
        other.entries, other.by_path = dict(self.entries), dict(self.by_path)
        other._written, other._unwritten = dict(self._written), set(self._unwritten)
        other._log = self._log[-_LOG_LENGTH:]
        return other

    def get(self, path: str) -> Optional[Entry]:
        """The entry of the note at `path`, None when it has none."""
        name = self.by_path.get(unicodedata.normalize("NFC", path))
        return None if name is None else self.entries[name]

    def put(self, name: str, entry: Entry) -> None:
        """Set the entry of slug `name`, replacing what the slug stood for and any other entry of the same path."""
        entry = _clean(entry)
        if self.entries.get(name) == entry and self.by_path.get(entry.path) == name:
            return
        self.remove(name)
        self.remove(self.by_path.get(entry.path, ""))
        self.entries[name] = entry
        self.by_path[entry.path] = name
        self._unwritten.add(name)
        self._log.append((next(_stamps), entry.path))

    def put_path(self, path: str, entry: Entry) -> str:
        """Set the entry of the note at `path` under the slug it has, or a free one. Returns the slug.

        A system note gets no entry (the answer is "").
        """
        path = unicodedata.normalize("NFC", path)
        if path in SYSTEM_NOTES:
            return ""
        name = self.by_path.get(path) or self.free_slug(slug(stem(path)), path)
        self.put(name, entry._replace(path=path))
        return name

    def remove(self, name: str) -> None:
        """Drop the entry of slug `name`, if there is one."""
        entry = self.entries.pop(name, None)
        if entry is None:
            return
        self._written.pop(name, None)
        self._unwritten.discard(name)
        if self.by_path.get(entry.path) == name:
            del self.by_path[entry.path]
        self._log.append((next(_stamps), entry.path))

    def remove_path(self, path: str) -> None:
        """Drop the entry of the note at `path`, if there is one."""
        self.remove(self.by_path.get(unicodedata.normalize("NFC", path), ""))

    def free_slug(self, wanted: str, path: str) -> str:
        """`wanted`, or `wanted-2`, `-3`, ... when another entity than the note at `path` has it (spec 2.3)."""
        path = unicodedata.normalize("NFC", path)
        for name in itertools.chain([wanted], (f"{wanted}-{n}" for n in itertools.count(2))):
            owner = self.entries.get(name)
            if name not in RESERVED_SLUGS and (owner is None or owner.path == path):
                return name
        raise AssertionError("unreachable: counting never ends")


def entry_of(facts: NoteFacts) -> Entry:
    """The index entry that says what the note says."""
    return _clean(Entry(tuple(facts.aliases), kind_of(facts.path), facts.path, facts.title, facts.updated))


def build_index(
    notes: Iterable[NoteFacts], current: Optional[EntityIndex] = None,
    is_gone: Callable[[str], bool] = lambda path: True,
) -> EntityIndex:
    """The index the notes ask for.

    current: entries to start from; a note keeps the slug it has there, and an entry whose note is not among `notes`
    goes only when `is_gone(path)` confirms that the note does not exist.
    """
    wanted = {facts.path: entry_of(facts) for facts in notes if is_entity(facts.path)}
    index = EntityIndex()
    for name, entry in sorted(current.entries.items() if current else ()):
        if entry.path in wanted and entry.path not in index.by_path:
            index.put(name, wanted[entry.path])
        elif entry.path not in wanted and not is_gone(entry.path):
            index.put(name, entry)
    for path in sorted(wanted):
        index.put_path(path, wanted[path])
    return index


def _clean(entry: Entry) -> Entry:
    """The entry with an NFC path, tuple of aliases, and no text that UTF-8 cannot hold."""
    return Entry(
        tuple(displayable(alias) for alias in entry.aliases), entry.kind, unicodedata.normalize("NFC", entry.path),
        displayable(entry.title), displayable(entry.updated),
    )


def _json_member(name: str, entry: Entry) -> str:
    """One member of `entities` as it stands in the file."""
    items = ",".join(f"\n        {_quoted(alias)}" for alias in entry.aliases)
    aliases = f"[{items}\n      ]" if items else "[]"
    return (
        f'    {_quoted(name)}: {{\n      "aliases": {aliases},\n      "kind": {_quoted(entry.kind)},\n'
        f'      "path": {_quoted(entry.path)},\n      "title": {_quoted(entry.title)},\n'
        f'      "updated": {_quoted(entry.updated)}\n    }}'
    )


def _without_repeats(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    """An object of the file; a repeated key would silently lose an entity, so it is refused."""
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return document


def _entry(fields: Dict[str, Any]) -> Entry:
    aliases = fields.get("aliases", [])
    texts = [fields.get("kind", ""), fields["path"], fields.get("title", ""), fields.get("updated", "")]
    if not isinstance(aliases, list) or not all(isinstance(text, str) for text in aliases + texts):
        raise ValueError("an entity holds something else than text")
    kind, path, title, updated = texts
    for text in aliases + texts:
        text.encode("utf-8")
    return Entry(tuple(aliases), kind, check_path(path), title, updated)
