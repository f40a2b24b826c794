"""Turns at writing to one API, between the threads and processes of one user on this host (spec 2.6, 6.5).

The REST API has no lock of its own: other programs and other hosts are met by comparing before each write and reading
back after it. Writers of one note take turns, writers of different notes do not wait for each other: every path
belongs to one of `STRIPES` locks, taken in the order of their numbers. Lock files in the user's temporary folder join
the server and the command line.
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
from typing import Dict, Iterator, Sequence

from echo_core.atomic import private_folder
from echo_core.errors import VaultUnreachable
from echo_core.paths import CONTROL_FOLDERS, case_key, is_inside
from echo_core.vault.host_lock import host_lock

STRIPES = 64
_known: Dict[str, "Turns"] = {}
_known_guard = threading.Lock()


class Turns:
    """Re-entrant locks of one API; who waited while the vault failed to answer does not try it anew."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._folder = _lock_folder(key)
        self._mutexes = [threading.RLock() for _ in range(STRIPES)]
        self._failed_at = 0.0
        self._holds = threading.local()

    @property
    def between_processes(self) -> bool:
        """False when no folder could be had for lock files: then only our own threads take turns."""
        return bool(self._folder)

    @contextlib.contextmanager
    def held(self, paths: Sequence[str], wait_s: float) -> Iterator[None]:
        """Hold the turn at these paths, without any at all of them.

        VaultUnreachable with reason "busy" when it does not come within `wait_s` seconds, with reason "timeout" when
        the vault timed out for somebody before us: a queue at a hung vault ends at once.
        """
        asked = time.monotonic()
        depth = getattr(self._holds, "depth", 0)
        with contextlib.ExitStack() as stack:
            for number in sorted(set(map(_stripe, paths))) if paths else range(STRIPES):
                stack.enter_context(self._one(number, asked + wait_s))
            if not depth and self._failed_at > asked:
                raise VaultUnreachable("The vault did not answer in time", hint="Is Obsidian running?",
                                       reason="timeout")
            self._holds.depth = depth + 1
            try:
                yield
            except VaultUnreachable as failure:
                if failure.data.get("reason") == "timeout":
                    self._failed_at = time.monotonic()
                raise
            finally:
                self._holds.depth = depth

    @contextlib.contextmanager
    def _one(self, number: int, deadline: float) -> Iterator[None]:
        """Hold one of the locks, between threads and between processes."""
        if not self._mutexes[number].acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise VaultUnreachable("Another write to the vault takes too long", hint="Try again.", reason="busy")
        try:
            with self._host_held(number, deadline - time.monotonic()):
                yield
        finally:
            self._mutexes[number].release()

    def _host_held(self, number: int, wait_s: float) -> AbstractContextManager[None]:
        """The kernel lock between the ECHO processes of this user and host, where such a file can be had."""
        if not self._folder:
            return contextlib.nullcontext()
        file = os.path.join(self._folder, f"{number}.lock")
        return host_lock(f"api:{self._key}:{number}").held(
            lambda: os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600),
            lambda fd: _is_file(fd, file), max(0.0, wait_s),
        )


def _stripe(path: str) -> int:
    """The number of a path's lock; one for all control files of a folder, and for spellings that may be one file."""
    folder = next((folder for folder in CONTROL_FOLDERS if is_inside(path, folder)), "")
    return hashlib.sha256((folder or case_key(path)).encode()).digest()[0] % STRIPES


def _lock_folder(key: str) -> str:
    """The folder for the lock files of one API, "" when none can be trusted to be ours alone."""
    owner = os.getuid() if hasattr(os, "getuid") else 0
    above = os.path.join(tempfile.gettempdir(), f"echo-locks-{owner}")
    folder = os.path.join(above, hashlib.sha256(key.encode()).hexdigest()[:16])
    try:
        private_folder(above)
        found = os.lstat(above)
        if not stat.S_ISDIR(found.st_mode) or (hasattr(os, "getuid") and found.st_uid != owner):
            return ""
        return private_folder(folder)
    except OSError:
        return ""


def _is_file(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def turns_of(key: str) -> Turns:
    """The turns of this process at one API."""
    with _known_guard:
        return _known.setdefault(key, Turns(key))
