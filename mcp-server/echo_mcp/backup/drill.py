"""The drill: the newest backup is really restored, and what was restored is compared byte for byte (spec 6.4)."""
from __future__ import annotations

import hashlib
import os
import stat

from echo_core.errors import BadBackup
from echo_core.vault.safe_open import Below

from echo_mcp.backup import space
from echo_mcp.backup.archive import Archive, open_archive
from echo_mcp.backup.folder_source import FolderSource
from echo_mcp.backup.manifest import FileEntry
from echo_mcp.backup.restoring import restore_folder
from echo_mcp.backup.shelf import Shelf
from echo_mcp.backup.watch import Watch

_BLOCK = 256 * 1024


def drill(shelf: Shelf, name: str, watch: Watch) -> int:
    """Restore the backup `name` into a scratch folder and compare it with its manifest; the number of files compared.

    The caller holds the shelf's lock. Raises BadBackup when it does not restore to what was saved, StorageFailed when
    there is no room to try, and Stopped.
    """
    with space.writing(), open_archive(shelf.path(name)) as archive, shelf.scratch() as scratch:
        restore_folder(archive, scratch, watch, durable=False)
        return _compare(archive, scratch, watch)


def _compare(archive: Archive, folder: str, watch: Watch) -> int:
    """The number of files; BadBackup unless the folder holds exactly what the manifest names."""
    below, keeps_modes = Below(folder), _keeps_modes(folder)
    named = sum(1 for _ in archive.folders())
    files = 0
    for entry in archive.files():
        if not _is_as_saved(below, entry, keeps_modes, watch):
            raise BadBackup(f"The backup does not restore to what was saved: {entry.path} differs", reason="drill",
                            path=entry.path, hint="Check the disk of the state folder; the next backup is made anew.")
        files += 1
        watch.tell("compared", files, archive.summary.files)
    if archive.summary.source == FolderSource.kind and _count(folder) != named + files:
        raise BadBackup("The backup does not restore to what was saved: something is missing or too much",
                        reason="drill", hint="Check the disk of the state folder; the next backup is made anew.")
    return files


def _is_as_saved(below: Below, entry: FileEntry, keeps_modes: bool, watch: Watch) -> bool:
    digest = hashlib.sha256()
    try:
        with below.place(entry.path) as place:
            fd = place.folder.open(place.name, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        while block := os.read(fd, _BLOCK):
            digest.update(block)
            watch.look()
        mode = stat.S_IMODE(os.fstat(fd).st_mode)
    finally:
        os.close(fd)
    same_mode = entry.mode is None or not keeps_modes or mode == entry.mode & 0o777
    return same_mode and digest.hexdigest() == entry.sha256


def _count(folder: str) -> int:
    """How many files and folders a backup of the folder would hold."""
    return sum(1 for _ in FolderSource(folder, folder).walk())


def _keeps_modes(folder: str) -> bool:
    """Whether the file system under `folder` has permission bits at all."""
    before = stat.S_IMODE(os.stat(folder).st_mode)
    os.chmod(folder, 0o500)
    try:
        return stat.S_IMODE(os.stat(folder).st_mode) == 0o500
    finally:
        os.chmod(folder, before)
