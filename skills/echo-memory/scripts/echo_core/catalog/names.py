"""Lookup tables over the notes of a vault: by file name, by folded name, and by what links point at.

Kept up to date note by note, so that no question ever scans the vault. Not thread-safe: the catalog holds its lock.
"""
from __future__ import annotations

import posixpath
import unicodedata
from functools import lru_cache
from typing import Dict, FrozenSet, Iterable, List, Optional, Sequence, Set, Tuple

from echo_core.text import name_keys

Tags = Tuple[Sequence[str], Sequence[str]]


def note_keys(path: str, title: str, aliases: Iterable[str]) -> Tuple[str, ...]:
    """Every folded key a note answers to: those of its file name, title and aliases, sorted."""
    keys: Set[str] = set()
    for name in {file_stem(path), title, *aliases}:
        keys.update(name_keys(name))
    return tuple(sorted(keys))


def link_keys(targets: Iterable[str]) -> Tuple[str, ...]:
    """The folded keys of the last segments of link targets, sorted: where to look for what they may mean."""
    return tuple(sorted(frozenset().union(*map(_target_keys, set(targets)))))


@lru_cache(maxsize=32768)
def _target_keys(target: str) -> FrozenSet[str]:
    """The keys of one link target, remembered: the notes of one vault link to the same names over and over."""
    return name_keys(file_stem(target))


def file_stem(path: str) -> str:
    """The last segment of a path or link target without its `.md`."""
    name = path.rstrip("/").rsplit("/", 1)[-1]
    return name[:-3] if name.lower().endswith(".md") else name


def file_key(name: str) -> str:
    """A file name as link resolution compares it: NFC, without case, without `.md`."""
    name = unicodedata.normalize("NFC", name).lower()
    return name[:-3] if name.endswith(".md") else name


class NoteNames:
    """The tables; `add` and `remove` get the same keys for one note.

    by_file: file key -> paths. by_key: folded name -> notes that answer to it. sources: folded last segment of
    a link -> notes that hold such a link.
    """

    def __init__(self) -> None:
        self.by_file: Dict[str, Set[str]] = {}
        self.by_key: Dict[str, Set[str]] = {}
        self.sources: Dict[str, Set[str]] = {}

    def add(self, path: str, keys: Sequence[str], links: Sequence[str]) -> None:
        """Enter a note that is not in the tables."""
        self.add_file(path)
        for key in keys:
            self.by_key.setdefault(key, set()).add(path)
        for key in links:
            self.sources.setdefault(key, set()).add(path)

    def remove(self, path: str, keys: Sequence[str], links: Sequence[str]) -> None:
        """Take a note out again."""
        self.remove_file(path)
        for key in keys:
            _discard(self.by_key, key, path)
        for key in links:
            _discard(self.sources, key, path)

    def change(self, path: str, before: Tags, after: Tags) -> None:
        """Give a note that stays where it is other (keys, links): `before` is what it was entered with."""
        for table, old, new in zip((self.by_key, self.sources), map(set, before), map(set, after)):
            for key in old - new:
                _discard(table, key, path)
            for key in new - old:
                table.setdefault(key, set()).add(path)

    def add_file(self, path: str) -> None:
        """Enter any file of the vault under its name alone."""
        self.by_file.setdefault(file_key(path.rsplit("/", 1)[-1]), set()).add(path)

    def remove_file(self, path: str) -> None:
        """Take a file out again."""
        _discard(self.by_file, file_key(path.rsplit("/", 1)[-1]), path)

    def resolve_link(self, target: str, from_path: str) -> List[str]:
        """The files a link may mean, by Obsidian's rules: none, the one it means, or several in path order.

        Path from the root, path from the linking note's folder, end of a path; case does not matter unless two
        files differ in nothing else. Of several the one nearest to the linking note wins when it is nearer than
        all others. Then a title or alias that only one note has, `_`, `-` and blanks being equal.
        """
        target = unicodedata.normalize("NFC", target).strip()
        folder = from_path.rpartition("/")[0]
        if not target:
            return [from_path]
        if target.startswith(("./", "../")):
            target = "/" + posixpath.normpath(posixpath.join(folder, target))
        named = self.by_file.get(file_key(target.rsplit("/", 1)[-1]), ())
        if f"{target}.md" in named:
            return [f"{target}.md"]
        found = _by_path(target, folder, named)
        if len(found) > 1:
            found = _nearest(found, folder)
        if found or "/" in target:
            return sorted(found)
        return sorted(self.named(name_keys(file_stem(target))))

    def same_path(self, path: str) -> Optional[str]:
        """The file whose path differs from `path` in case and normal form at most; the exact one first."""
        wanted = unicodedata.normalize("NFC", path)
        found = [
            other for other in self.by_file.get(file_key(wanted.rsplit("/", 1)[-1]), ())
            if other.lower() == wanted.lower()
        ]
        return wanted if wanted in found else min(found, default=None)

    def named(self, keys: Iterable[str]) -> Set[str]:
        """The notes that answer to one of `keys`."""
        found: Set[str] = set()
        for key in keys:
            found.update(self.by_key.get(key, ()))
        return found


def _discard(table: Dict[str, Set[str]], key: str, path: str) -> None:
    paths = table.get(key)
    if paths is None:
        return
    paths.discard(path)
    if not paths:
        del table[key]


def _by_path(target: str, folder: str, named: Iterable[str]) -> List[str]:
    """Those of the files `named` like the target's last segment whose path fits the whole target."""
    rooted = target.startswith("/")
    wanted = file_key(target.strip("/"))
    beside = f"{folder}/{wanted}".lower() if folder else wanted
    fitting = [path for path in named if ("" if rooted else "/" + file_key(path)).endswith("/" + wanted)
               or file_key(path) == wanted]
    for exact in (wanted, beside):
        chosen = [path for path in fitting if file_key(path) == exact]
        if chosen:
            return _same_case(target, chosen)
    return _same_case(target, fitting)


def _same_case(target: str, paths: List[str]) -> List[str]:
    """Those spelled exactly like the target when there are any, else all."""
    bare = target.strip("/")
    exact = [path for path in paths if path.endswith((bare, f"{bare}.md"))]
    return exact or paths


def _nearest(paths: List[str], folder: str) -> List[str]:
    """The one path that shares more leading folders with `folder` than all others, else all of them."""
    home = folder.split("/") if folder else []

    def shared(path: str) -> int:
        count = 0
        for mine, other in zip(home, path.split("/")[:-1]):
            if mine != other:
                break
            count += 1
        return count

    best = max(shared(path) for path in paths)
    nearest = [path for path in paths if shared(path) == best]
    return nearest if len(nearest) == 1 else paths
