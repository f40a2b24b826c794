"""Serving HTTP with uvicorn: one socket, an orderly end on SIGTERM, no second process (spec 4.1)."""
from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator

import uvicorn

from echo_mcp.asgi import App
from echo_mcp.auth import HEAD_LIMIT
from echo_mcp.connections import GuardedProtocol

GRACE_S = 6
"""Seconds that requests in work get to finish after SIGTERM."""
BACKLOG = 128
"""Connections accepted at one go; more could exhaust the file limit before the first one is looked at."""


def bind(host: str, port: int) -> socket.socket:
    """A bound socket, not yet listening. port: 0 takes a free one. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except BaseException:
        bound.close()
        raise
    return bound


class _Server(uvicorn.Server):
    """uvicorn that leaves with a normal exit after SIGTERM or SIGINT instead of raising the signal again."""

    def __init__(self, config: uvicorn.Config, on_start: Callable[[], None], on_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = on_start
        self._on_stop = on_stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is threading.main_thread():
            for sig in (signal.SIGINT, signal.SIGTERM):
                signal.signal(sig, self.handle_exit)
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Not in `handle_exit`: a signal handler may interrupt a log line half written, and must not write another.
        self._on_stop()
        await super().shutdown(sockets)


def serve(app: App, bound: socket.socket, on_start: Callable[[], None], on_stop: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT, then let running requests finish for GRACE_S seconds.

    on_start: called when connections are accepted; on_stop: called as soon as the end begins.
    """
    config = uvicorn.Config(
        app, http=GuardedProtocol, ws="none", lifespan="on", log_config=None, access_log=False, server_header=False,
        proxy_headers=False, backlog=BACKLOG, timeout_graceful_shutdown=GRACE_S,
        h11_max_incomplete_event_size=HEAD_LIMIT,
    )
    _Server(config, on_start, on_stop).run([bound])
