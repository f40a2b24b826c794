"""Restoring a backup into an empty folder: all of it or, as far as anybody can see, nothing (spec 6.4).

Everything is written into a hidden folder inside the target, synced, and only then moved up, so a restore that is
killed leaves a target that still counts as empty.
"""
from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType

from echo_core.atomic import CREATE, sync_folder, write_all
from echo_core.errors import Conflict, InvalidArgument
from echo_core.paths import parent
from echo_core.vault.open_folder import ROOT, OpenFolder
from echo_core.vault.safe_open import Below

from echo_mcp.backup import space
from echo_mcp.backup.archive import Archive
from echo_mcp.backup.manifest import FileEntry
from echo_mcp.backup.shelf import remove_tree
from echo_mcp.backup.watch import Watch

_STAGING = ".echo-restore-"
_LEFTOVER = re.compile(r"\.echo-restore-[0-9a-f]{8}", re.ASCII)
_BLOCK_BYTES = 4096
_FILE_BITS, _FOLDER_BITS = 0o777, 0o3777


@dataclass
class Restored:
    """What was written. not_kept: what the target could not take over, in words."""

    files: int = 0
    folders: int = 0
    bytes: int = 0
    not_kept: str = ""


def restore_folder(archive: Archive, target: str, watch: Watch, durable: bool = True) -> Restored:
    """Write the archive's vault into the empty or absent folder `target` (a host path).

    Every byte is verified before the first one is written. durable: it survives a power cut when this returns.
    Raises BadBackup, Conflict when the target is not empty, StorageFailed, and Stopped.
    """
    leftovers = _leftovers(target)
    archive.check(watch)
    with space.writing():
        os.makedirs(target, exist_ok=True)
        for name in leftovers:
            remove_tree(os.path.join(target, name))
        space.require(target, archive.summary.bytes + archive.summary.files * _BLOCK_BYTES, "the restore")
        staging = os.path.join(target, _STAGING + secrets.token_hex(4))
        os.mkdir(staging, 0o700)
        try:
            done = write_tree(archive, staging, watch)
            if durable and hasattr(os, "sync"):
                os.sync()  # one for all files; one for each would take minutes
            for name in sorted(os.listdir(staging)):
                os.rename(os.path.join(staging, name), os.path.join(target, name))
        finally:
            remove_tree(staging)
        sync_folder(target)
    return done


def write_tree(archive: Archive, folder: str, watch: Watch) -> Restored:
    """Write everything into the existing folder, with modes and times. Raises BadBackup, StorageFailed, Stopped."""
    done = Restored()
    with space.writing(), _Tree(folder) as tree:
        for entry in archive.folders():
            tree.enter(entry.path)
            done.folders += 1
        for file in archive.files():
            tree.write(file, archive.blocks(file), watch)
            done.files += 1
            done.bytes += file.size
            watch.tell("restored", done.files, archive.summary.files)
        # A folder may be closed to writers, so folders get their modes last, the deepest first.
        for entry in reversed(list(archive.folders())):
            if entry.mode is not None:
                tree.close_with(entry.path, entry.mode & _FOLDER_BITS)
    return done


def _leftovers(target: str) -> list[str]:
    """What killed restores have left in the target; Conflict when there is anything else in it."""
    with space.writing():
        if not os.path.lexists(target):
            return []
        if not os.path.isdir(target):
            raise InvalidArgument("The target of the restore is no folder", field="into", hint="Name a new folder.")
        names = os.listdir(target)
    if any(not _LEFTOVER.fullmatch(name) for name in names):
        raise Conflict("The target of the restore is not empty, and nothing is restored over what is there",
                       hint="Name an empty or a new folder.")
    return names


class _Tree:
    """Writes files below `root` by exact name, never through a link."""

    def __init__(self, root: str) -> None:
        self._below = Below(root)
        self._path = ""
        self._folder = self._below.open_root()

    def __enter__(self) -> _Tree:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._folder.close()

    def enter(self, path: str) -> OpenFolder:
        """The folder at `path`, made with everything above it; it stays open until the next one is entered."""
        if path != self._path:
            folder = self._below.open_root()
            for segment in path.split("/") if path else ():
                with folder:
                    folder.make(segment)
                    folder = folder.child(segment)
            self._folder.close()
            self._path, self._folder = path, folder
        return self._folder

    def write(self, entry: FileEntry, blocks: Iterator[bytes], watch: Watch) -> None:
        """A new file; FileExistsError when the file system takes its name for another one's."""
        folder = self.enter(parent(entry.path))
        try:
            fd = folder.open(entry.path.rpartition("/")[2], CREATE, 0o666 if entry.mode is None else 0o600)
        except FileExistsError:
            raise Conflict(f"The target takes {entry.path} and another file's name for the same", path=entry.path,
                           hint="Restore to a file system that tells names apart as the vault's did.") from None
        try:
            for block in blocks:
                write_all(fd, block)
                watch.look()
            _dress(fd, entry, folder)
        finally:
            os.close(fd)

    def close_with(self, path: str, mode: int) -> None:
        """Give a folder its mode."""
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(self._below.folder(path))
            if folder.fd is None:
                os.chmod(folder.path, mode)
                return
            fd = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder.fd)
            stack.callback(os.close, fd)
            os.fchmod(fd, mode)


def _dress(fd: int, entry: FileEntry, folder: OpenFolder) -> None:
    """Give a file its time, its mode and, when we are root, its folder's owner."""
    if ROOT:
        above = folder.facts()
        os.fchown(fd, above.st_uid, above.st_gid)
    if entry.mode is not None and hasattr(os, "fchmod"):
        os.fchmod(fd, entry.mode & _FILE_BITS)
    if entry.mtime_ns is not None and os.utime in os.supports_fd:
        os.utime(fd, ns=(entry.mtime_ns, entry.mtime_ns))
