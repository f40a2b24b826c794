"""A folder as what is backed up: exact names and modes, no link followed out, no file torn (spec 6.4)."""
from __future__ import annotations

import io
import os
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from echo_core.errors import InvalidPath, VaultUnreachable
from echo_core.vault.os_errors import translate
from echo_core.vault.safe_open import Below, Place

from echo_mcp.backup.names import fault_of, shown
from echo_mcp.backup.source import Found, LeftOut, Reading, Snapshot, Unsaved
from echo_mcp.backup.space import writing
from echo_mcp.backup.watch import Watch

IN_MEMORY = 8 * 1024 * 1024
"""Larger files are copied into an unnamed file next to the backup while they are read."""
QUIET_S = 0.1
"""A file written to within this time may be in the middle of being written; it has to stay as it is for as long."""
TRIES = 6
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
_BLOCK = 1024 * 1024


class FolderSource:
    """The folder `root` (a host path). scratch: folder for copies of large files, outside the vault."""

    kind = "folder"
    loading_s = 0.0

    def __init__(self, root: str, scratch: str) -> None:
        self._below = Below(os.path.abspath(root))
        self._scratch = scratch
        self.left_out: list[LeftOut] = []
        self.unreadable: list[LeftOut] = []

    def close(self) -> None:
        """Nothing is held open between two calls."""

    def walk(self) -> Iterator[Found]:
        """Everything but dot names, links that lead out and what is no file. Raises VaultUnreachable, VaultAuth."""
        self.left_out, self.unreadable = [], []
        self._require_root()
        try:
            waiting = self._items("")
        except OSError as failure:
            raise translate(failure, "") from None
        while waiting:
            found = waiting.pop()
            yield found
            if found.is_folder:
                try:
                    waiting += self._items(found.path)
                except FileNotFoundError:
                    continue
                except (OSError, InvalidPath) as failure:
                    self.unreadable.append(LeftOut(found.path, _reason(failure)))

    def _require_root(self) -> None:
        """Raise VaultUnreachable or VaultAuth when the folder itself is the trouble."""
        try:
            self._below.open_root().close()
        except (FileNotFoundError, NotADirectoryError):
            raise VaultUnreachable("The vault's folder is not there", reason="missing",
                                   hint="Mount it, or correct ECHO_BASE.") from None
        except OSError as failure:
            raise translate(failure, "") from None

    def _items(self, path: str) -> list[Found]:
        """What is directly in a folder, the first name last."""
        items = []
        with self._below.folder(path) as folder:
            for entry in folder.entries():
                full = f"{path}/{entry.name}" if path else entry.name
                if entry.name.startswith("."):
                    self.left_out.append(LeftOut(shown(full), "hidden"))
                elif fault := fault_of(full):
                    self.unreadable.append(LeftOut(shown(full), fault))
                elif (found := self._found(full, entry)) is not None:
                    items.append(found)
        return sorted(items, reverse=True)

    def _found(self, path: str, entry: os.DirEntry[str]) -> Found | None:
        try:
            facts = entry.stat(follow_symlinks=False)
            if stat.S_ISLNK(facts.st_mode):
                return self._linked(path)
        except FileNotFoundError:
            return None
        except OSError as failure:
            self.unreadable.append(LeftOut(path, _reason(failure)))
            return None
        if stat.S_ISDIR(facts.st_mode):
            return Found(path, True, mode=stat.S_IMODE(facts.st_mode))
        if stat.S_ISREG(facts.st_mode):
            return _file(path, facts)
        self.left_out.append(LeftOut(path, "no file"))
        return None

    def _linked(self, path: str) -> Found | None:
        """A link to a file inside counts as a file, as it does for the vault; any other link is left out."""
        try:
            with self._below.place(path) as place:
                if place.facts is not None and place.is_file:
                    return _file(path, place.facts)
        except InvalidPath:
            pass  # it leads out, which is the reason below
        self.left_out.append(LeftOut(path, "a link that leads to no file of the vault"))
        return None

    def read(self, files: Iterable[Found], watch: Watch, patient: bool) -> Iterator[Reading]:
        """One after the other, each read again until nothing changed it meanwhile."""
        for found in files:
            watch.look()
            try:
                yield found, self._whole(found, watch, TRIES if patient else 1)
            except FileNotFoundError:
                continue
            except (OSError, InvalidPath) as failure:
                self._require_root()
                yield found, Unsaved(_reason(failure))

    def _whole(self, found: Found, watch: Watch, tries: int) -> Snapshot | Unsaved:
        for attempt in range(tries):
            if attempt:
                watch.pause(QUIET_S * attempt)
            with self._below.place(found.path) as place:
                if place.facts is None:
                    raise FileNotFoundError
                snapshot = self._once(place, watch, wait=tries > 1)
            if snapshot is not None:
                return snapshot
        return Unsaved("it changes all the time", busy=True)

    def _once(self, place: Place, watch: Watch, wait: bool) -> Snapshot | None:
        """The file, None when somebody wrote to it meanwhile, or, unless we may wait, right before."""
        fd = place.folder.open(place.name, _READ)
        try:
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode):
                raise FileNotFoundError  # a folder has taken its place
            fresh = abs(time.time_ns() - before.st_mtime_ns) < QUIET_S * 1e9
            if fresh and not wait:
                return None
            content = self._copy(fd, before.st_size, watch)
            try:
                if fresh:
                    watch.pause(QUIET_S)
                if content.tell() == before.st_size and _same(before, os.fstat(fd)):
                    content.seek(0)
                    return Snapshot(content, before.st_size, before.st_mtime_ns, stat.S_IMODE(before.st_mode))
            except BaseException:
                content.close()
                raise
            content.close()
            return None
        finally:
            os.close(fd)

    def _copy(self, fd: int, size: int, watch: Watch) -> BinaryIO:
        """At most one byte more than `size`, so that a file which only grows ends some time."""
        content: BinaryIO
        if size <= IN_MEMORY:
            content = io.BytesIO()
        else:
            content = tempfile.TemporaryFile(dir=self._scratch)  # noqa: SIM115 (its reader closes it)
        try:
            left = size + 1
            while left and (block := os.read(fd, min(_BLOCK, left))):
                with writing():
                    content.write(block)
                left -= len(block)
                watch.look()
        except BaseException:
            content.close()
            raise
        return content


def _file(path: str, facts: os.stat_result) -> Found:
    # The time of the last change of the inode cannot be set back, unlike the time of the last write.
    return Found(path, False, facts.st_size, facts.st_mtime_ns, stat.S_IMODE(facts.st_mode), facts.st_ctime_ns)


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_size, one.st_mtime_ns, one.st_ctime_ns) == (other.st_size, other.st_mtime_ns, other.st_ctime_ns)


def _reason(failure: OSError | InvalidPath) -> str:
    """Why something could not be read, without the host's path."""
    if isinstance(failure, InvalidPath):
        return "a link that leads out of the vault"
    return os.strerror(failure.errno or 0).lower()
