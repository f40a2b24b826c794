"""How long work tells of its progress and hears that it should stop."""
from __future__ import annotations

import threading
import time
from collections.abc import Callable

TELL_S = 5.0
"""Seconds between two lines of progress."""


class Stopped(Exception):
    """Somebody wants the work to end; nothing is wrong with it."""


class Watch:
    """Handed through everything that takes long.

    say: takes one line of progress. stop: once set, the next look raises Stopped.
    """

    def __init__(self, say: Callable[[str], None] = lambda line: None, stop: threading.Event | None = None) -> None:
        self._say = say
        self._stop = stop or threading.Event()
        self._told = time.monotonic()

    def look(self) -> None:
        """Raise Stopped when the work should end; asked between any two files and blocks."""
        if self._stop.is_set():
            raise Stopped

    def pause(self, seconds: float) -> None:
        """Wait, but not longer than until the work should end, which raises Stopped."""
        self._stop.wait(seconds)
        self.look()

    def tell(self, what: str, done: int, total: int) -> None:
        """Say `what`: how many of how many, at most every TELL_S seconds. Raises Stopped as `look` does."""
        self.look()
        if time.monotonic() - self._told >= TELL_S:
            self._told = time.monotonic()
            self._say(f"{what}: {done:,} of {total:,} files")
