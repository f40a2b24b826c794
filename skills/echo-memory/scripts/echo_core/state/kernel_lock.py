"""Locks of the kernel on files of the state folder: they end with their process, so none is ever left behind."""
from __future__ import annotations

import os
import sys
import threading
from typing import Optional

from echo_core.atomic import private_folder

if sys.platform == "win32":
    import msvcrt

    def lock_now(fd: int) -> None:
        """Lock an open file for this process. Raises BlockingIOError or PermissionError when another one has it."""
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def lock_now(fd: int) -> None:
        """Lock an open file for this process. Raises BlockingIOError or PermissionError when another one has it."""
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


class KernelLock:
    """The lock on the file `path` (made when missing, 0600; its folder 0700), between threads and processes."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._guard = threading.Lock()
        self._fd: Optional[int] = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._fd is not None

    def take(self) -> bool:
        """Take the lock if nobody has it. Raises OSError when the file cannot be made."""
        with self._guard:
            if self._fd is not None:
                return False
            private_folder(os.path.dirname(self.path))
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
            try:
                lock_now(fd)
            except (BlockingIOError, PermissionError):
                os.close(fd)
                return False
            except BaseException:
                os.close(fd)
                raise
            self._fd = fd
            return True

    def release(self) -> None:
        """Give the lock back; the file stays."""
        with self._guard:
            fd, self._fd = self._fd, None
            if fd is not None:
                os.close(fd)

    def is_free(self) -> bool:
        """Whether nobody holds the lock now, or its file is gone; takes nothing."""
        if not os.path.exists(self.path):
            return True
        if not self.take():
            return False
        self.release()
        return True
