"""Room that is set aside on the disk of the state folder, so that small writes are still taken when it is full (6.2).

A file of BYTES that holds nothing. When a write of ours meets a full disk, the file gets shorter by one piece and the
write is tried once more; when there is room again, it is made whole.
"""
from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from typing import Tuple

from echo_core.atomic import CREATE, private_folder, sync, write_all

FILE = "reserve"
BYTES = 8 * 1024 * 1024
PIECE = 1024 * 1024
"""Bytes that one write gets; one that needs more is refused."""
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Reserve:
    """The reserve of one state folder, shared by all processes that use it. Methods raise nothing."""

    def __init__(self, state_dir: str) -> None:
        self._folder = state_dir
        self._path = os.path.join(state_dir, FILE)

    def left(self) -> int:
        """Bytes that are still set aside."""
        try:
            return os.stat(self._path).st_size
        except OSError:
            return 0

    def fill(self) -> bool:
        """Set aside what is missing, where as much again stays free; whether the reserve is whole."""
        if self.left() >= BYTES:
            return True
        try:
            private_folder(self._folder)
            if self._free() < 2 * BYTES:
                return False
            self._allocate()
        except OSError:  # whoever needs it finds it short
            return False
        return True

    def give(self) -> bool:
        """Make room for one write; False when nothing is left."""
        left = self.left()
        if left < PIECE:
            return False
        try:
            fd = os.open(self._path, os.O_RDWR | getattr(os, "O_BINARY", 0))
            try:
                os.ftruncate(fd, left - PIECE)
                sync(fd)  # some file systems hand the room out only then
            finally:
                os.close(fd)
        except OSError:
            return False
        return True

    def helps(self, size: int) -> bool:
        """Make room for a file of `size` bytes that may lie on the same disk; whether that can have helped."""
        return size <= PIECE // 2 and self._is_short() and self.give()

    def helps_after(self, error: Exception) -> bool:
        """Make room when that is what a database of the state folder failed for; whether to try again."""
        if isinstance(error, OSError):
            full = error.errno in _FULL
        else:
            # A log or index file that cannot grow is told as an I/O error.
            full = isinstance(error, sqlite3.OperationalError) and "locked" not in str(error) and (
                "full" in str(error) or self._is_short())
        return full and self.give()

    def state(self) -> Tuple[bool, str]:
        """Whether it is whole, and one line about it."""
        left = self.left()
        if left >= BYTES:
            return True, f"{BYTES >> 20} MiB set aside for writes on a full disk"
        return False, f"the state folder's disk is full or was; {left >> 20} of {BYTES >> 20} MiB set aside are left"

    def _free(self) -> int:
        return shutil.disk_usage(self._folder).free

    def _is_short(self) -> bool:
        try:
            return self._free() < PIECE
        except OSError:
            return False

    def _allocate(self) -> None:
        if not os.path.exists(self._path):
            os.close(os.open(self._path, CREATE, 0o600))
        fd = os.open(self._path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(fd, 0, BYTES)
            else:
                missing = BYTES - os.fstat(fd).st_size
                os.lseek(fd, 0, os.SEEK_END)
                write_all(fd, os.urandom(missing))  # zeros would take no room on a disk that compresses
            sync(fd)
        finally:
            os.close(fd)
