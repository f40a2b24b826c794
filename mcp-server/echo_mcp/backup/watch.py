"""How long work tells of its progress and hears that it should stop."""
from __future__ import annotations

import threading
import time
from collections.abc import Callable

from echo_core.errors import EchoError

TELL_S = 5.0
"""Seconds between two lines of progress."""
WORK_S, MOST_REST_S = 0.005, 0.1
"""Gentle work rests after so many seconds of processor time, and at a time at most so long."""
REST = 3.0
"""Rest of gentle work in multiples of the processor time it took: calls have the interpreter to themselves as long."""


class Stopped(Exception):
    """Somebody wants the work to end; nothing is wrong with it."""


class Overrun(EchoError):
    """The work has taken longer than it may."""

    way_out = "Look for a slow disk, network or vault."


class Watch:
    """Handed through everything that takes long.

    say: takes one line of progress. stop: once set, the next look raises Stopped. gentle: rest REST times as long as
    the work has kept the processor busy, so that calls served beside it hardly notice; for one thread. limit_s: how
    long work may take from `begin` on, 0 for any time.
    """

    def __init__(self, say: Callable[[str], None] = lambda line: None, stop: threading.Event | None = None,
                 gentle: bool = False, limit_s: float = 0.0) -> None:
        self._say = say
        self._stop = stop or threading.Event()
        self._gentle = gentle
        self._limit_s = limit_s
        self._rested = 0.0
        self._told = self._began = time.monotonic()

    def begin(self) -> None:
        """A piece of work begins; its time counts from now."""
        self._began = time.monotonic()

    def look(self) -> None:
        """Raise Stopped when the work should end, Overrun when it has taken too long; asked between any two blocks."""
        if self._gentle:
            self._rest()
        if self._stop.is_set():
            raise Stopped
        if self._limit_s and time.monotonic() - self._began > self._limit_s:
            raise Overrun("The work took too long and was ended", reason="overrun")

    def _rest(self) -> None:
        busy = time.thread_time() - self._rested
        if not 0 <= busy < WORK_S:
            self._stop.wait(min(REST * max(busy, 0.0), MOST_REST_S))
            self._rested = time.thread_time()

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
