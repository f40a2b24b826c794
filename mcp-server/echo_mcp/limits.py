"""Bounds: how many calls run at once, how many requests wait, how large a body may be (spec 4.1).

The threads here are daemons of our own and not an executor's: a call that hangs in the vault must neither hold
up calls that do not need the vault, nor keep the process from leaving.
"""
from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from echo_mcp.asgi import CLOSE, App, Message, Receive, Scope, Send
from echo_mcp.refusals import BODY_TOO_LARGE, BUSY, refuse

BODY_LIMIT = 4 * 1024 * 1024
"""Largest request body in bytes."""
MAX_REQUESTS = 256
"""Authorised requests in work at once; further ones are told to come back."""


class Workers:
    """A lane of at most `size` daemon threads, made when they are needed."""

    def __init__(self, name: str, size: int) -> None:
        self._name = name
        self._size = size
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._open = 0

    def submit(self, job: Callable[[], Any]) -> Future[Any]:
        """Run `job` in a thread of the lane; the future can be cancelled as long as no thread has taken it."""
        future: Future[Any] = Future()
        with self._lock:
            self._open += 1
            if self._open > self._threads and self._threads < self._size:
                self._threads += 1
                threading.Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True).start()
        future.add_done_callback(self._closed)
        self._jobs.put((future, job))
        return future

    @property
    def open(self) -> int:
        """Jobs that wait or run."""
        return self._open

    def drain(self, until: float) -> bool:
        """Wait until no job is open or `time.monotonic()` passes `until`; whether the lane is empty."""
        while self._open and time.monotonic() < until:
            time.sleep(0.01)
        return not self._open

    def _closed(self, _: Future[Any]) -> None:
        with self._lock:
            self._open -= 1

    def _work(self) -> None:
        while True:
            future, job = self._jobs.get()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = job()
            except BaseException as failure:
                future.set_exception(failure)
            else:
                future.set_result(result)


class RequestLimits:
    """Stands behind auth: refuses too many requests at once (503) and too large bodies (413).

    The body is read whole before the app runs, so the app cannot wait for a slow client; how long that may take is
    the connection's read deadline.
    """

    def __init__(self, app: App, body_limit: int = BODY_LIMIT, requests: int = MAX_REQUESTS) -> None:
        self._app = app
        self._body_limit = body_limit
        self._requests = requests
        self._busy = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._busy >= self._requests:
            await refuse(send, scope, BUSY, (b"retry-after", b"1"), CLOSE)
            return
        self._busy += 1
        try:
            await self._within(scope, receive, send)
        finally:
            self._busy -= 1

    async def _within(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _declared_length(scope) > self._body_limit:
            await self._too_large(scope, send)
            return
        body = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            if len(body) > self._body_limit:
                await self._too_large(scope, send)
                return
            more = message.get("more_body", False)
        await self._app(scope, _replay(bytes(body), receive), send)

    async def _too_large(self, scope: Scope, send: Send) -> None:
        await refuse(send, scope, BODY_TOO_LARGE, CLOSE, limit=self._body_limit)


def _declared_length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() and len(value) < 20 else 0
    return 0


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that first gives the whole body, then whatever the connection says."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def once() -> Message:
        return pending.pop() if pending else await receive()

    return once
