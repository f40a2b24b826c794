"""Bounds: how many calls run at once, how many requests wait, how large a body may be (spec 4.1).

The threads here are daemons of our own and not an executor's: a call that hangs in the vault must neither hold
up calls that do not need the vault, nor keep the process from leaving.
"""
from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

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


async def answer(send: Send, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    """Send one whole response; a text body unless a content-type header is given."""
    own = [(b"content-length", str(len(body)).encode())]
    if not any(name == b"content-type" for name, _ in headers):
        own.append((b"content-type", b"text/plain; charset=utf-8"))
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
    await send({"type": "http.response.body", "body": body})


CLOSE = (b"connection", b"close")


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
            await answer(send, 503, b"Too many requests at once; try again.", (b"retry-after", b"1"), CLOSE)
            return
        self._busy += 1
        try:
            await self._within(scope, receive, send)
        finally:
            self._busy -= 1

    async def _within(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _declared_length(scope) > self._body_limit:
            await self._too_large(send)
            return
        body = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            if len(body) > self._body_limit:
                await self._too_large(send)
                return
            more = message.get("more_body", False)
        await self._app(scope, _replay(bytes(body), receive), send)

    async def _too_large(self, send: Send) -> None:
        await answer(send, 413, f"The body is larger than {self._body_limit} bytes.".encode(), CLOSE)


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
