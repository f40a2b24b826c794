"""Connections: read deadline, header limits and a bound on their number, on uvicorn's h11 protocol.

h11 and not httptools: of the malformed requests of the fault catalogue (HT-10) h11 turned none into a 5xx where
httptools turned three, and httptools took a header of 128 kB (HT-24) that h11 refuses at its own limit. It costs
about 0.1 ms a request. uvicorn itself has no deadline for a request that arrives slowly or never.
"""
from __future__ import annotations

import asyncio
import sys
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from echo_mcp.refusals import BAD_REQUEST, BUSY, TIMEOUT, last_words

READ_DEADLINE_S = 30.0
"""Longest time from a request's first byte, or a connection's start, to the request's last byte."""
SPARE_FILES = 200
"""Descriptors kept free for the vault, the state folder and the process itself."""
MAX_CONNECTIONS = 2000

_READ = (h11.DONE, h11.MUST_CLOSE, h11.CLOSED, h11.ERROR)


def connection_limit() -> int:
    """How many connections may be open: what the process's file limit leaves, at most MAX_CONNECTIONS."""
    if sys.platform == "win32":
        return MAX_CONNECTIONS
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(16, min(MAX_CONNECTIONS, soft - SPARE_FILES))


class GuardedProtocol(H11Protocol):
    """One connection.

    A request must be read whole within READ_DEADLINE_S (else 408 and close). When too many connections are open, the
    oldest one that waits for a request makes room; when all are at work, the new one is refused with 503.
    """

    limit = connection_limit()
    _waiting: ClassVar[dict[GuardedProtocol, None]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_deadline()
        if len(self.connections) > self.limit:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._start_deadline()
        super().data_received(data)
        if self.conn.their_state in _READ:
            self._stop_deadline()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is refused like everything else."""
        self._leave(last_words(BAD_REQUEST))

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE:
            self._waiting[self] = None

    def timeout_keep_alive_handler(self) -> None:
        self._stop_deadline()
        super().timeout_keep_alive_handler()

    def _start_deadline(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(READ_DEADLINE_S, self._too_slow)
            self._waiting[self] = None

    def _stop_deadline(self) -> None:
        self._waiting.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._leave(b"" if self.cycle is not None and self.cycle.response_started else last_words(TIMEOUT))

    def _make_room(self) -> None:
        oldest = next(iter(self._waiting))
        if oldest is self:
            self._leave(last_words(BUSY))
        else:
            oldest._leave(b"")

    def _leave(self, last_words: bytes) -> None:
        self._stop_deadline()
        if not self.transport.is_closing():
            if last_words:
                self.transport.write(last_words)
            self.transport.close()
