"""How bytes of a folder vault are read, replaced and moved once their place is open; everything raises OSError."""
from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from typing import Optional

from echo_core.atomic import CREATE, sync, temp_name, write_all
from echo_core.vault.open_folder import ROOT, OpenFolder
from echo_core.vault.safe_open import Place

_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
_MAX_REREADS = 5
_NO_HARD_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL)


def read_place(place: Place) -> bytes:
    """The whole file; read again when somebody wrote to it meanwhile."""
    fd = place.folder.open(place.name, _READ)
    try:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode):
            raise IsADirectoryError(errno.EISDIR, "not a file")
        for _ in range(_MAX_REREADS):
            data = _read_all(fd, facts.st_size)
            now = os.fstat(fd)
            if (now.st_size, now.st_mtime_ns) == (facts.st_size, facts.st_mtime_ns):
                break
            facts = now
            os.lseek(fd, 0, os.SEEK_SET)
        return data
    finally:
        os.close(fd)


def replace(place: Place, data: bytes, expected: Optional[bytes], durable: bool) -> bool:
    """Put `data` at the place, only while it still holds `expected` (None: is still free).

    False when it does not; then, as after an OSError, nothing has changed. durable: survive a power cut.
    """
    folder, temp = place.folder, temp_name()
    fd = folder.open(temp, CREATE, 0o666 if place.facts is None else 0o600)
    try:
        try:
            write_all(fd, data)
            dress(fd, place)
            if durable:
                sync(fd)
        finally:
            os.close(fd)
        landed = _create(folder, temp, place.name) if expected is None else _swap(place, temp, expected)
    except BaseException:
        with contextlib.suppress(OSError):  # the failure itself is what the caller must hear of
            folder.unlink(temp)
        raise
    if landed and durable:
        folder.sync()
    return landed


def move(old: Place, new: Place, same: bool) -> bool:
    """Rename the file; False when the new place is taken. same: both names already are one file."""
    if not same:
        if not _second_name(old.folder, old.name, new.folder, new.name):
            return False
    elif old.facts is not None and old.facts.st_nlink == 1:
        # One file under two spellings: the file system ignores case or normal form.
        old.folder.rename(old.name, new.folder, new.name)
    else:
        # A move that was killed half way left both names; this finishes it.
        old.folder.unlink(old.name)
    new.folder.sync()
    old.folder.sync()
    return True


def dress(fd: int, place: Place) -> None:
    """Give the temp file the mode, owner and attributes of the file it replaces; a new one its folder's owner."""
    if sys.platform == "win32":
        return
    facts = place.folder.facts() if place.facts is None else place.facts
    if ROOT:
        os.fchown(fd, facts.st_uid, facts.st_gid)
    if place.facts is None:
        return
    with contextlib.suppress(PermissionError):  # a group we are not in cannot be kept
        if os.fstat(fd).st_gid != facts.st_gid:
            os.fchown(fd, -1, facts.st_gid)
    _copy_attributes(place, fd)
    os.fchmod(fd, stat.S_IMODE(facts.st_mode))


def _second_name(source: OpenFolder, name: str, target: OpenFolder, new_name: str) -> bool:
    """Link then unlink, since a rename would silently replace what somebody just put there."""
    try:
        source.link(name, target, new_name)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        return _rename_if_free(source, name, target, new_name)
    source.unlink(name)
    return True


def _rename_if_free(source: OpenFolder, name: str, target: OpenFolder, new_name: str) -> bool:
    """The next best thing on file systems without hard links."""
    try:
        target.lstat(new_name)
        return False
    except FileNotFoundError:
        source.rename(name, target, new_name)
        return True


def _create(folder: OpenFolder, temp: str, name: str) -> bool:
    """Give the temp file its name unless that is taken."""
    landed = _second_name(folder, temp, folder, name)
    if not landed:
        folder.unlink(temp)
    return landed


def _swap(place: Place, temp: str, expected: bytes) -> bool:
    """Rename over the old file, compared once more right before."""
    try:
        unchanged = read_place(place) == expected
    except FileNotFoundError:
        unchanged = False
    if unchanged:
        place.folder.rename(temp, place.folder, place.name)
    else:
        place.folder.unlink(temp)
    return unchanged


def _copy_attributes(place: Place, fd: int) -> None:
    """Copy extended attributes (tags, access lists), as far as the file system and our rights allow."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError):
        old = place.folder.open(place.name, _READ)
        try:
            for name in os.listxattr(old):
                os.setxattr(fd, name, os.getxattr(old, name))
        finally:
            os.close(old)


def _read_all(fd: int, size: int) -> bytes:
    """Everything from here to the end; `size` bytes are expected."""
    data = os.read(fd, size + 1)
    if len(data) == size:
        return data
    parts = [data]
    while parts[-1]:
        parts.append(os.read(fd, 1 << 20))
    return b"".join(parts)
