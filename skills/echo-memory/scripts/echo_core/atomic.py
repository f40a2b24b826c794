"""The steps of which a durable replacement is made: temp file, every byte, fsync, rename, fsync of the folder.

The folder vault puts them together, since it compares between fsync and rename.
"""
from __future__ import annotations

import os
import secrets
import sys

if sys.platform != "win32":
    import fcntl

_PREFIX, _SUFFIX = ".echo-", ".tmp"
_BINARY = getattr(os, "O_BINARY", 0)
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | _BINARY


def temp_name() -> str:
    """A fresh name for a temp file; a dot name, so that no listing and no other program shows it."""
    return f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"


def is_temp_name(name: str) -> bool:
    """Whether `name` is one of ours."""
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX)


def write_all(fd: int, data: bytes) -> None:
    """Write every byte to the descriptor; OSError when the disk refuses one."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view):]


def sync(fd: int) -> None:
    """Return when the descriptor's bytes survive a power cut."""
    if sys.platform == "darwin":
        # fsync on macOS stops at the drive's own cache.
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)


def sync_folder(path: str) -> None:
    """Make the names in a folder durable; Windows cannot and does it by itself."""
    if os.name == "nt":
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def private_folder(path: str) -> str:
    """The folder, made when missing, readable by its owner alone (0700); missing parents are made as usual."""
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path
