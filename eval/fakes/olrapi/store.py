"""The folder behind the double: what is really on disk, and what Obsidian's index knows of it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from fakes.olrapi.replies import Crash

_TEXTS = {
    errno.EISDIR: "illegal operation on a directory", errno.ENOTDIR: "not a directory",
    errno.ENOENT: "no such file or directory", errno.ENAMETOOLONG: "name too long",
    errno.EACCES: "permission denied", errno.ENOSPC: "no space left on device", errno.EROFS: "read-only file system",
}
T = TypeVar("T")
ALREADY_THERE = "File already exists."


def utf16_key(name: str) -> bytes:
    """The key that sorts names by UTF-16 code units, as JavaScript does."""
    return name.encode("utf-16-be", "surrogatepass")


@dataclass(frozen=True)
class Store:
    """One request's view of the vault folder.

    cold: the index is empty, as after a restart of Obsidian. ignore_case: names differ only beyond their case.
    """

    root: str
    cold: bool = False
    ignore_case: bool = False

    def real(self, path: str) -> str | None:
        """The place on disk; None when it would lie outside the vault, which this double never touches."""
        root = os.path.normpath(self.root)
        place = os.path.normpath(f"{root}/{path}")
        if place != root and not place.startswith(root + os.sep):
            return None
        return _in_any_case(root, place) if self.ignore_case else place

    def kind(self, path: str) -> str:
        """"file", "folder", or "" when nothing can be found there."""
        place = None if self.cold else self.real(path)
        try:
            if place is None or "\0" in place:
                return ""
            if os.path.isdir(place):
                return "folder"
            return "file" if os.path.isfile(place) and not path.endswith("/") else ""
        except OSError:
            return ""

    def exists(self, path: str) -> bool:
        """Whether anything is there."""
        return self.kind(path) != ""

    def in_index(self, path: str) -> str:
        """"file" or "folder" when Obsidian's index holds the path exactly so; "" for dot names and odd spellings."""
        if self.cold or not path or any(part == "" or part.startswith(".") for part in path.split("/")):
            return ""
        place = self.real(path)
        if self.ignore_case and place != os.path.normpath(f"{self.root}/{path}"):
            return ""
        return self.kind(path)

    def read(self, path: str) -> bytes:
        """A file's bytes. Raises Crash."""
        return _tried(lambda place: _read(place), self.real(path), path, "open")

    def write(self, path: str, data: bytes) -> None:
        """Write over whatever file is there, as the adapter does. Raises Crash."""
        _tried(lambda place: _write(place, data), self.real(path), path, "open")

    def create(self, path: str, data: bytes) -> None:
        """Write a new file. Raises Crash when something is there; a cold index sees nothing and writes over it."""
        if self.exists(path):
            raise Crash(ALREADY_THERE)
        self.write(path, data)

    def make_parent(self, path: str) -> None:
        """Create the folders above a path, if that can be done."""
        place = self.real(path)
        if place is not None and "\0" not in place:
            try:
                os.makedirs(os.path.dirname(place), exist_ok=True)
            except OSError:
                return

    def remove(self, path: str) -> None:
        """Delete a file for good. Raises Crash for a folder."""
        _tried(os.remove, self.real(path), path, "unlink")

    def trash(self, path: str) -> None:
        """Move a file or folder into `.trash`, under a free name. Raises Crash."""
        stem, dot, ending = os.path.basename(path).rpartition(".")
        name = (stem, dot + ending) if stem else (ending, "")
        target, number = f".trash/{''.join(name)}", 2
        while self.exists(target):
            target, number = f".trash/{name[0]} {number}{name[1]}", number + 1
        self.rename(path, target)

    def rename(self, path: str, target: str) -> None:
        """Move a file. Raises Crash."""
        self.make_parent(target)
        place = self.real(target) or ""
        _tried(lambda source: os.rename(source, place), self.real(path), path, "rename", place)

    def copy(self, path: str, target: str) -> None:
        """Copy a file. Raises Crash."""
        self.make_parent(target)
        place = self.real(target) or ""
        _tried(lambda source: _write(place, _read(source)), self.real(path), path, "copyfile", place)

    def listing(self, folder: str) -> list[str]:
        """Names right below a folder ("" the vault), folders with a trailing slash and only when a file is below."""
        place = self.real(folder)
        if self.cold or place is None or (folder and self.in_index(folder) != "folder"):
            return []
        found = []
        for entry in _entries(place):
            if entry.is_file():
                found.append(entry.name)
            elif entry.is_dir() and _holds_a_file(entry.path):
                found.append(f"{entry.name}/")
        return sorted(found, key=utf16_key)

    def notes(self) -> list[str]:
        """Every Markdown file of the index."""
        found: list[str] = []
        waiting = [] if self.cold else [("", self.root)]
        while waiting:
            prefix, place = waiting.pop()
            for entry in _entries(place):
                if entry.is_dir():
                    waiting.append((f"{prefix}{entry.name}/", entry.path))
                elif entry.name.endswith(".md"):
                    found.append(prefix + entry.name)
        return sorted(found, key=utf16_key)


def _entries(place: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(place) as scan:
            return [entry for entry in scan if not entry.name.startswith(".")]
    except OSError:
        return []


def _holds_a_file(place: str) -> bool:
    return any(entry.is_file() or (entry.is_dir() and _holds_a_file(entry.path)) for entry in _entries(place))


def _in_any_case(root: str, place: str) -> str:
    """The existing entry that equals `place` but for case; what does not exist keeps its spelling."""
    found = root
    for part in place[len(root) :].split(os.sep)[1:]:
        exact = os.path.join(found, part)
        if not os.path.lexists(exact) and os.path.isdir(found):
            same = [name for name in os.listdir(found) if name.casefold() == part.casefold()]
            part = same[0] if same else part
        found = os.path.join(found, part)
    return found


def _read(place: str) -> bytes:
    with open(place, "rb") as file:
        return file.read()


def _write(place: str, data: bytes) -> None:
    with open(place, "wb") as file:
        file.write(data)


def _tried(action: Callable[[str], T], place: str | None, path: str, call: str, target: str = "") -> T:
    """Run a file operation; an error becomes the message Node gives it."""
    if place is None:
        raise Crash(f"EACCES: permission denied, {call} '{path}'")
    try:
        return action(place)
    except ValueError as error:
        shown = place.replace("\0", "\\x00")
        text = "The argument 'path' must be a string, Uint8Array, or URL without null bytes."
        raise Crash(f"{text} Received '{shown}'") from error
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "EIO")
        text = _TEXTS.get(error.errno or 0, "i/o error")
        tail = f" -> '{target}'" if target else ""
        raise Crash(f"{name}: {text}, {call} '{place}'{tail}") from error
