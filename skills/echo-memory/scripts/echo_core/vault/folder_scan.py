"""What is in a folder vault: the walk, one folder, and names that match apart from case; everything raises OSError."""
from __future__ import annotations

import os
import re
from operator import itemgetter
from typing import Iterator, List, Optional, Set

from echo_core.atomic import is_temp_name
from echo_core.errors import InvalidPath
from echo_core.paths import case_key, check_path
from echo_core.vault.base import Listing, Stat
from echo_core.vault.safe_open import Below

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_(](?:[A-Za-z0-9_() ,.'&+-]{0,250}[A-Za-z0-9_(),'&+-])?\Z").match
_SHORT = 512
_PATH = itemgetter(0)
_FOLDER = -1


class Scan:
    """One walk. Afterwards: `unreadable` paths, `leftovers` (our temp files), `seen` (whether anything is there)."""

    def __init__(self, below: Below) -> None:
        self._below = below
        self.unreadable: List[str] = []
        self.leftovers: List[str] = []
        self.seen = False

    def files(self) -> Iterator[Stat]:
        """Every file in path order; only an unreadable root raises."""
        waiting = self._items("")
        while waiting:
            found = waiting.pop()
            if found.size != _FOLDER:
                yield found
                continue
            folder = found.path[:-1]
            try:
                waiting += self._items(folder)
            except (OSError, InvalidPath):
                # Also when the folder is gone by now: its files may just have moved, so they are unknown.
                self.unreadable.append(folder)

    def _items(self, path: str) -> List[Stat]:
        """Files and folders (path closed by "/", size _FOLDER) directly in `path`, last in path order first."""
        prefix = f"{path}/" if path else ""
        short = len(prefix) < _SHORT
        new = tuple.__new__
        with self._below.folder(path) as folder:
            entries = folder.entries()
            items: List[Stat] = []
            for entry in entries:
                # One pass over every file of the vault: the common case stays free of calls into Python.
                name = entry.name
                if short and _PLAIN_NAME(name) and entry.is_file(follow_symlinks=False):
                    try:
                        facts = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    items.append(new(Stat, (prefix + name, facts.st_size, facts.st_mtime_ns)))
                else:
                    items += self._uncommon(path, entry)
        self.seen = self.seen or bool(entries)
        items.sort(key=_PATH, reverse=True)
        return self._once(items)

    def _uncommon(self, folder: str, entry: "os.DirEntry[str]") -> List[Stat]:
        """A folder, a link or a file with a name that needs a closer look; nothing for what a walk leaves out."""
        path = self.accepted(folder, entry.name)
        if path is None:
            return []
        if entry.is_symlink():
            return self._linked(path)
        if entry.is_dir(follow_symlinks=False):
            return [Stat(path + "/", _FOLDER, 0)]
        if not entry.is_file(follow_symlinks=False):
            return []
        try:
            facts = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return []
        return [Stat(path, facts.st_size, facts.st_mtime_ns)]

    def accepted(self, folder: str, name: str) -> Optional[str]:
        """The NFC path of a name; None for a dot name, and, noted as unreadable, for one that ECHO refuses."""
        path = _join(folder, name)
        if name.startswith("."):
            if is_temp_name(name):
                self.leftovers.append(path)
            return None
        try:
            return check_path(path)
        except InvalidPath:
            self.unreadable.append(path.encode("utf-8", "replace").decode("utf-8"))
            return None

    def _linked(self, path: str) -> List[Stat]:
        """A link to a file inside counts as a file; one to a folder inside would only list its files twice."""
        try:
            place = self._below.place(path)
        except (OSError, InvalidPath):
            self.unreadable.append(path)
            return []
        with place:
            if place.facts is None:
                self.unreadable.append(path)
            elif place.is_file:
                return [Stat(path, place.facts.st_size, place.facts.st_mtime_ns)]
        return []

    def _once(self, items: List[Stat]) -> List[Stat]:
        """Drop what shares its NFC path with a neighbour (NFC and NFD side by side): only one of them can be read."""
        if all(map(str.isascii, map(_PATH, items))):
            return items
        kept: List[Stat] = []
        for item in items:
            if kept and kept[-1].path == item.path:
                self.unreadable.append(item.path.rstrip("/"))
            else:
                kept.append(item)
        return kept


def list_folder(below: Below, path: str) -> Listing:
    """Folders and files directly in `path`; names in NFC, what a walk leaves out left out."""
    scan = Scan(below)
    folders: Set[str] = set()
    files: Set[str] = set()
    with below.folder(path) as folder:
        for entry in folder.entries():
            full = scan.accepted(path, entry.name)
            if full is None:
                continue
            name = full.rpartition("/")[2]
            if entry.is_dir(follow_symlinks=False) or (entry.is_symlink() and is_folder(below, full)):
                folders.add(name)
            elif entry.is_file(follow_symlinks=False) or is_file(below, full):
                files.add(name)
    return Listing(sorted(folders), sorted(files))


def is_folder(below: Below, path: str) -> bool:
    """Whether the path leads to a folder inside."""
    try:
        below.folder(path).close()
    except (OSError, InvalidPath):
        return False
    return True


def is_file(below: Below, path: str) -> bool:
    """Whether the path leads to an ordinary file inside."""
    try:
        with below.place(path) as place:
            return place.is_file
    except (OSError, InvalidPath):
        return False


def matches(below: Below, path: str) -> List[str]:
    """Everything whose path differs from `path` at most in case or normal form, spelled as on the disk."""
    found = [""]
    for segment in path.split("/"):
        key = case_key(segment)
        found = [_join(folder, name) for folder in found for name in _spelled_like(key, _names(below, folder))]
    return sorted(found)


def _spelled_like(key: str, names: List[str]) -> List[str]:
    """The names with this `case_key`."""
    # A folder of thousands seldom holds one: it is asked as one text first. No name holds a "/".
    if f"/{key}/" not in case_key("/".join(["", *names, ""])):
        return []
    return [name for name in names if case_key(name) == key]


def has_entries(below: Below) -> bool:
    """Whether anything at all is in the root."""
    with below.open_root() as folder:
        return bool(folder.names())


def _names(below: Below, path: str) -> List[str]:
    """The names in a folder; none when it is a file or closed to us, since then nothing in it can be meant."""
    try:
        with below.folder(path) as folder:
            return folder.names()
    except (OSError, InvalidPath):
        return []


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
