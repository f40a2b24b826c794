"""The thread that looks again at what was written behind an API without compare-and-swap (spec 6.1)."""
from __future__ import annotations

import logging
import threading
import time

import echo_settle
from echo_context import OpContext
from echo_core.errors import EchoError
from echo_core.settle.watch import Watch

from echo_mcp import logs

SHORT_S = 0.4
"""Long enough for a look before the end of the process: another server's write follows its read within 0.25 s."""
_IDLE_S = 3600.0


class Settler:
    """Looks at what is on the context's watch, at once at what an earlier process has left there.

    put_back: pieces that were gone and are back. lost: texts that were written over and are listed as conflicts.
    """

    def __init__(self, ctx: OpContext) -> None:
        self._ctx = ctx
        self._watch = ctx.watch
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="settle", daemon=True)
        self.put_back = 0
        self.lost = 0

    def start(self) -> None:
        """Begin to look, where there may be anything to look at."""
        if self._watch is not None:
            self._thread.start()

    def finish(self, until: float) -> None:
        """Look at what is still on watch, sooner than usual, and end; until: monotonic seconds.

        What there is no time for is looked at by the next process.
        """
        self._ended.set()
        if self._watch is None:
            return
        self._watch.wake()
        while self._watch.paths():
            wait_s = max(0.0, self._watch.wrote_at + SHORT_S - time.monotonic())
            if time.monotonic() + wait_s > until:
                return
            time.sleep(wait_s)
            for path in self._watch.paths():
                if not self._look(path, SHORT_S, self._watch):
                    return

    def _run(self) -> None:
        assert self._watch is not None, "only then the thread is started"
        try:
            self._watch.resume()
        except EchoError as failure:
            logs.event("settle-failed", logging.WARNING, code=failure.code)
        while not self._ended.is_set():
            path = self._watch.next(_IDLE_S)
            if path and not self._ended.is_set():
                self._look(path, self._watch.settle_s, self._watch)

    def _look(self, path: str, patience_s: float, watch: Watch) -> bool:
        """Look at one note; False when that failed, which leaves it on watch."""
        try:
            found = echo_settle.look(path, patience_s, ctx=self._ctx, watch=watch)
        except EchoError as failure:
            logs.event("settle-failed", logging.WARNING, code=failure.code)
            return False
        except Exception as failure:
            logs.LOGGER.error("job-failed", exc_info=failure, extra={"fields": {"job": self._thread.name}})
            return False
        self.put_back += found.put_back
        self.lost += found.lost
        if found.put_back:
            logs.event("put-back", logging.WARNING, pieces=found.put_back)
        if found.lost:
            logs.event("overwritten", logging.WARNING, texts=found.lost)
        return True
