"""Turns at writing to one API, between the threads of this process (spec 2.6, 6.5).

The REST API has no lock of its own: other programs are met by comparing before each write and reading back after it.
One `Turn` exists per address and process, however many vault objects share it.
"""
from __future__ import annotations

import contextlib
import threading
import time
from typing import Dict, Iterator

from echo_core.errors import VaultUnreachable

_known: Dict[str, "Turn"] = {}
_known_guard = threading.Lock()


class Turn:
    """A re-entrant lock; who waited while the vault failed to answer does not try it anew."""

    def __init__(self) -> None:
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
                yield
            except VaultUnreachable as failure:
                if failure.data.get("reason") == "timeout":
                    self._failed_at = time.monotonic()
                raise
            finally:
                self._depth -= 1
        finally:
            self._mutex.release()


def turn_of(key: str) -> Turn:
    """The turn of this process for one API."""
    with _known_guard:
        return _known.setdefault(key, Turn())
