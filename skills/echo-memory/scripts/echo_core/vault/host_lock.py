"""The kernel lock that keeps every other ECHO writer of this host out of a folder vault (spec 2.6).

One `HostLock` exists per lock file and process, however many vault objects share it: threads take turns on a mutex,
processes on `flock`. The kernel drops the lock of a process that dies, so nothing can be left behind.
"""
from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from typing import Callable, Dict, Iterator, Optional

from echo_core.errors import VaultUnreachable
from echo_core.state.kernel_lock import lock_now
from echo_core.vault.os_errors import translate

MAX_WAIT_S = 30.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.0002, 0.01
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
_known: Dict[str, "HostLock"] = {}
_known_guard = threading.Lock()


class HostLock:
    """A re-entrant lock between the threads and processes of one host."""

    def __init__(self) -> None:
        self._mutex = threading.RLock()
        self._depth = 0
        self._fd: Optional[int] = None
        self.between_processes = True
        """False once the file system turned out to have no such locks: then only our own threads take turns."""

    @contextlib.contextmanager
    def held(self, open_file: Callable[[], int], same_file: Callable[[int], bool],
             wait_s: float = MAX_WAIT_S) -> Iterator[None]:
        """Hold the lock; VaultUnreachable with reason "busy" when it is not free within `wait_s` seconds.

        open_file: opens the lock file. same_file: whether a descriptor still is the file at that path, since
        somebody may replace the file while we wait and a lock on the old one keeps nobody out.
        """
        deadline = time.monotonic() + wait_s
        if not self._mutex.acquire(timeout=wait_s):
            raise _busy()
        try:
            if self._depth == 0:
                self._fd = self._locked(open_file, same_file, deadline)
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0 and self._fd is not None:
                    os.close(self._fd)
                    self._fd = None
        finally:
            self._mutex.release()

    def _locked(self, open_file: Callable[[], int], same_file: Callable[[int], bool], deadline: float) -> int:
        """A descriptor of the lock file that holds the kernel lock."""
        pause = _FIRST_PAUSE_S
        while True:
            fd = open_file()
            try:
                while not self._try(fd):
                    if time.monotonic() > deadline:
                        raise _busy()
                    time.sleep(pause)
                    pause = min(pause * 1.5, _LONGEST_PAUSE_S)
                if same_file(fd):
                    return fd
            except OSError as error:
                os.close(fd)
                raise translate(error, "the write lock") from None
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)

    def _try(self, fd: int) -> bool:
        """Whether the kernel gave us the lock just now, or has none to give."""
        try:
            lock_now(fd)
        except (BlockingIOError, PermissionError):
            return False
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            self.between_processes = False
        return True


def host_lock(key: str) -> HostLock:
    """The lock of this process for `key` (the real path of a vault's root)."""
    with _known_guard:
        return _known.setdefault(key, HostLock())


def _busy() -> VaultUnreachable:
    return VaultUnreachable("Another program holds the vault's write lock for too long", reason="busy",
                            hint="Look for a stopped ECHO process on this machine.")
