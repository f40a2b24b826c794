"""Turns at writing to one API, between the threads and processes of one user on this host (spec 2.6, 6.5).

The REST API has no lock of its own: other programs and other hosts are met by comparing before each write and reading
back after it. One `Turn` exists per address and process, however many vault objects share it; a lock file in the
user's temporary folder joins the server and the command line.
"""
from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import threading
import time
from contextlib import AbstractContextManager
from typing import Dict, Iterator

from echo_core.atomic import private_folder
from echo_core.errors import VaultUnreachable
from echo_core.vault.host_lock import host_lock

_known: Dict[str, "Turn"] = {}
_known_guard = threading.Lock()


class Turn:
    """A re-entrant lock; who waited while the vault failed to answer does not try it anew."""

    def __init__(self, key: str) -> None:
        self._host = host_lock(f"api:{key}")
        self._file = _lock_file(key)
        self._mutex = threading.RLock()
        self._depth = 0
        self._failed_at = 0.0

    @contextlib.contextmanager
    def held(self, wait_s: float) -> Iterator[None]:
        """Hold the turn. VaultUnreachable with reason "busy" when it does not come within `wait_s` seconds, with
        reason "timeout" when the vault timed out for somebody before us: a queue at a hung vault ends at once."""
        asked = time.monotonic()
        if not self._mutex.acquire(timeout=wait_s):
            raise VaultUnreachable("Another write to the vault takes too long", hint="Try again.", reason="busy")
        try:
            if not self._depth and self._failed_at > asked:
                raise VaultUnreachable("The vault did not answer in time", hint="Is Obsidian running?",
                                       reason="timeout")
            self._depth += 1
            try:
                with self._host_held(wait_s - (time.monotonic() - asked)):
                    yield
            except VaultUnreachable as failure:
                if failure.data.get("reason") == "timeout":
                    self._failed_at = time.monotonic()
                raise
            finally:
                self._depth -= 1
        finally:
            self._mutex.release()


    def _host_held(self, wait_s: float) -> AbstractContextManager[None]:
        """The kernel lock between the ECHO processes of this user and host, where such a file can be had."""
        if not self._file:
            return contextlib.nullcontext()
        return self._host.held(
            lambda: os.open(self._file, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600),
            lambda fd: _is_file(fd, self._file), max(0.0, wait_s),
        )


def _lock_file(key: str) -> str:
    """The lock file of one API, "" when no folder can be trusted to be ours alone."""
    owner = os.getuid() if hasattr(os, "getuid") else 0
    folder = os.path.join(tempfile.gettempdir(), f"echo-locks-{owner}")
    try:
        private_folder(folder)
        found = os.lstat(folder)
    except OSError:
        return ""
    if not stat.S_ISDIR(found.st_mode) or (hasattr(os, "getuid") and found.st_uid != owner):
        return ""
    return os.path.join(folder, hashlib.sha256(key.encode()).hexdigest()[:16] + ".lock")


def _is_file(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def turn_of(key: str) -> Turn:
    """The turn of this process for one API."""
    with _known_guard:
        return _known.setdefault(key, Turn(key))
