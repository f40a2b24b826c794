"""The vault as a folder of this machine (spec 2.3, 2.6, 6.1).

Reads never follow a link out of the folder. A write writes a temp file, syncs it, compares, renames and syncs the
folder, all under the kernel lock: between ECHO processes compare-and-rename is exact, and a foreign editor can only
slip into the microseconds between the compare and the rename. Control files (`is_control`) are replaced whole as well
but not synced: after a power cut they are rebuilt.
"""
from __future__ import annotations

import contextlib
import os
import time
from contextlib import AbstractContextManager
from typing import Callable, Dict, Iterator, List, Optional, TypeVar

from echo_core.errors import Conflict, EchoError, InvalidPath, NotFound, VaultUnreachable
from echo_core.paths import check_folder, check_path, is_control, parent
from echo_core.vault import folder_scan, folder_write
from echo_core.vault.base import Listing, Stat, Vault, version_of
from echo_core.vault.host_lock import host_lock
from echo_core.vault.open_folder import DIR_FDS
from echo_core.vault.os_errors import forbidden, translate
from echo_core.vault.refusals import conflict, emptied, missing
from echo_core.vault.safe_open import Below, Place

LOCK_FILE = "_agent/locks/write.lock"
_LEFTOVER_AGE_S = 60
_Answer = TypeVar("_Answer")


class FolderVault(Vault):
    """A folder of Markdown below `root` (a host path). dir_fds: False walks as on platforms without them."""

    def __init__(self, root: str, dir_fds: bool = DIR_FDS) -> None:
        self._below = Below(os.path.abspath(os.fspath(root)), dir_fds)
        self._lock = host_lock(os.path.realpath(self._below.root))
        self._unreadable: List[str] = []
        self._leftovers: List[str] = []
        self._had_files = False

    def read(self, path: str) -> bytes:
        return self._lookup(path, lambda _, place: folder_write.read_place(place))

    def stat(self, path: str) -> Stat:
        return self._lookup(path, _stat_of)

    def write(self, path: str, data: bytes, expected: Optional[bytes]) -> None:
        path = check_path(path)
        with self.exclusive(), self._place_to_write(path, make=expected is None) as place:
            if expected is None:
                self._refuse_taken(path, place)
            else:
                self._refuse_closed(path, place)
            with self._translating(path):
                landed = folder_write.replace(place, data, expected, durable=not is_control(path))
            if not landed:
                raise self._changed(path, place)
            self._had_files = True
            self._sweep_leftovers()

    def delete(self, path: str, expected: bytes) -> None:
        path = check_path(path)
        with self.exclusive(), self._place(path) as place:
            if place.facts is None:
                raise self._missing(path, self._files_like(path))
            self._refuse_closed(path, place)
            with self._translating(path):
                if folder_write.read_place(place) != expected:
                    raise self._changed(path, place)
                place.folder.unlink(place.name)
                if not is_control(path):
                    place.folder.sync()

    def move(self, source: str, target: str) -> None:
        source, target = check_path(source, "source"), check_path(target, "target")
        with self.exclusive(), self._place(source) as old:
            if old.facts is None or not old.is_file:
                raise self._missing(source, self._files_like(source))
            with self._place_to_write(target, make=True) as new:
                same = new.facts is not None and source != target and os.path.samestat(old.facts, new.facts)
                if not same:
                    self._refuse_taken(target, new, besides=source)
                with self._translating(target):
                    moved = folder_write.move(old, new, same)
                if not moved:
                    raise self._changed(target, new)

    def list_folder(self, path: str) -> Listing:
        path = check_folder(path)
        with self._translating(path):
            if path and not folder_scan.is_folder(self._below, path):
                found = [other for other in folder_scan.matches(self._below, path)
                         if folder_scan.is_folder(self._below, other)]
                path = found[0] if len(found) == 1 else path
            return folder_scan.list_folder(self._below, path)

    def walk(self) -> Iterator[Stat]:
        scan = folder_scan.Scan(self._below)
        with self._translating(""):
            yield from scan.files()
        if self._had_files and not scan.seen:
            raise emptied()
        self._unreadable, self._leftovers = scan.unreadable, scan.leftovers
        self._had_files = scan.seen

    def unreadable(self) -> List[str]:
        return list(self._unreadable)

    def exclusive(self, *paths: str) -> AbstractContextManager[None]:
        return self._lock.held(self._open_lock_file, self._is_lock_file)

    def check(self) -> None:
        with self._translating(""):
            self._below.open_root().close()
            self._refuse_emptied()

    def describe(self) -> Dict[str, object]:
        return {
            "backend": "folder",
            "links": "never followed out" if self._below.dir_fds else "checked before each step",
            "write_lock": "between processes" if self._lock.between_processes else "between threads only",
        }

    def _lookup(self, path: str, answer: Callable[[str, Place], _Answer]) -> _Answer:
        """`answer` for the file at exactly `path`, else for the only one that differs in case or normal form."""
        path = check_path(path)
        with contextlib.suppress(NotFound), self._place(path) as place:
            if place.is_file:
                with self._translating(path):
                    return answer(path, place)
        found = self._files_like(path)
        if len(found) != 1:
            raise self._missing(path, found)
        with self._place(found[0]) as place, self._translating(path):
            return answer(check_path(found[0]), place)

    def _place(self, path: str, make: bool = False) -> Place:
        """The open place of a checked path; NotFound when a folder on the way is missing and not to be made."""
        with self._translating(path):
            return self._below.place(path, make)

    def _place_to_write(self, path: str, make: bool) -> Place:
        """Like `_place`; a path whose folder is missing is a Conflict, one that lies below a file is refused."""
        if make:
            self._refuse_emptied()
        try:
            return self._place(path, make)
        except NotFound:
            if make:
                raise InvalidPath(f"{path} would lie below a file", field="path") from None
            raise self._gone(path) from None

    @contextlib.contextmanager
    def _translating(self, path: str) -> Iterator[None]:
        """Turn an OSError about `path` into what it means; when the root itself is the trouble, say that."""
        try:
            yield
        except OSError as error:
            raise self._root_trouble() or translate(error, path) from None

    def _root_trouble(self) -> Optional[EchoError]:
        try:
            self._below.open_root().close()
        except PermissionError as error:
            return translate(error, "")
        except (FileNotFoundError, NotADirectoryError):
            return VaultUnreachable("The vault's folder is not there", reason="missing",
                                    hint="Mount it, or correct ECHO_BASE.")
        except OSError as error:
            return translate(error, "")
        return None

    def _refuse_emptied(self) -> None:
        """An unmounted vault leaves an empty folder behind: not to be taken for an empty vault, nor written to."""
        with self._translating(""):
            if self._had_files and not folder_scan.has_entries(self._below):
                raise emptied()

    def _refuse_closed(self, path: str, place: Place) -> None:
        """Raise unless there is a file at the place and its permissions let us change it."""
        if not place.is_file:
            raise self._gone(path)
        with self._translating(path):
            if not place.folder.may_write(place.name):
                raise forbidden(path)

    def _refuse_taken(self, path: str, place: Place, besides: str = "") -> None:
        """Raise Conflict when something is at the place, or at another spelling of its path other than `besides`."""
        if place.facts is not None:
            raise self._changed(path, place)
        others = [other for other in self._spellings(path) if check_path(other) != besides]
        if others:
            raise conflict(path, "exists already in another spelling", "", others)

    def _changed(self, path: str, place: Place) -> Conflict:
        """The Conflict that says what is at the place now."""
        try:
            version = version_of(folder_write.read_place(place))
        except OSError:
            return conflict(path, "is taken by something that is no readable file")
        return conflict(path, "is not what you read", version)

    def _gone(self, path: str) -> Conflict:
        return conflict(path, "is not there any more", "", self._files_like(path))

    def _missing(self, path: str, like: List[str]) -> EchoError:
        """NotFound with what may have been meant; VaultUnreachable when the whole vault is gone."""
        self._refuse_emptied()
        return missing(path, like)

    def _files_like(self, path: str) -> List[str]:
        """Files whose path differs from `path` only in case or normal form, spelled as on the disk."""
        return [other for other in self._spellings(path) if folder_scan.is_file(self._below, other)]

    def _spellings(self, path: str) -> List[str]:
        """Everything whose path differs from `path` only in case or normal form; none for a control file.

        ECHO alone names those, so nobody means one by another spelling, and a lock is looked for at every write.
        """
        return [] if is_control(path) else folder_scan.matches(self._below, path)

    def _open_lock_file(self) -> int:
        """A descriptor of the lock file, made when missing; reading rights are enough to lock it."""
        try:
            place = self._place(LOCK_FILE)
        except NotFound:
            place = self._place_to_write(LOCK_FILE, make=True)
        with place, self._translating(LOCK_FILE):
            try:
                fd = place.folder.open(place.name, os.O_RDWR | os.O_CREAT)
            except PermissionError:
                return place.folder.open(place.name, os.O_RDONLY)
            if place.facts is None:
                folder_write.dress(fd, place)
            return fd

    def _is_lock_file(self, fd: int) -> bool:
        """Whether the descriptor is of the file that stands at the lock's path now."""
        with contextlib.suppress(OSError):  # the usual answer takes one call, every other the careful way
            if os.path.samestat(os.lstat(os.path.join(self._below.root, LOCK_FILE)), os.fstat(fd)):
                return True
        try:
            with self._place(LOCK_FILE) as place:
                return place.facts is not None and os.path.samestat(place.facts, os.fstat(fd))
        except NotFound:
            return False

    def _sweep_leftovers(self) -> None:
        """Remove temp files that the last walk saw; we hold the lock, so their writers are dead."""
        leftovers, self._leftovers = self._leftovers, []
        for path in leftovers:
            with contextlib.suppress(OSError), self._below.folder(parent(path)) as folder:
                name = path[len(parent(path)):].lstrip("/")
                # Another host may share the folder without sharing our lock: give it time to finish.
                if time.time() - folder.lstat(name).st_mtime > _LEFTOVER_AGE_S:
                    folder.unlink(name)


def _stat_of(path: str, place: Place) -> Stat:
    if place.facts is None:
        raise FileNotFoundError(path)
    return Stat(path, place.facts.st_size, place.facts.st_mtime_ns)
