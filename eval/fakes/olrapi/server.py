"""The double as a server in a thread of its own, with its faults, its race and its log."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

from fakes.olrapi import connection
from fakes.olrapi.app import App
from fakes.olrapi.dialects import DIALECTS
from fakes.olrapi.faults import Faults
from fakes.olrapi.http1 import HEAD_LIMIT
from fakes.olrapi.race import Race
from fakes.olrapi.requestlog import RequestLog


class Olrapi:
    """The Local REST API of one plugin version over the folder `root`.

    Use as a context manager, or `start()` and `stop()`. `tls` is a server context for https. While a `refuse` fault
    is on, nothing listens on the port; call `settle()` after switching it from another thread.
    """

    def __init__(
        self, root: str, version: str = "5.1.0", key: str = "KEY", port: int = 0, host: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None, race: Race | None = None,
    ) -> None:
        self.race = race or Race()
        self.app = App(root, DIALECTS[version], key, self.race)
        self.faults = Faults()
        self.log = RequestLog()
        self.host = host
        self.port = port
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="olrapi", daemon=True)
        self._listener: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready = threading.Event()
        self._failure: OSError | None = None

    @property
    def url(self) -> str:
        """The base URL without a trailing slash."""
        return f"{'https' if self._tls else 'http'}://{self.host}:{self.port}"

    def start(self) -> Self:
        """Listen. Raises OSError when the port is taken."""
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def stop(self) -> None:
        """Close every connection and end the thread."""
        if self._loop.is_running():
            self._call(self._close())
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def settle(self) -> None:
        """Make the listening socket follow the `refuse` faults; returns when it does."""
        self._call(self._follow_refusals())

    def refuse(self) -> None:
        """Refuse connections and drop the open ones, as when Obsidian is closed."""
        self.faults.add("refuse")
        self.settle()

    def accept(self) -> None:
        """Listen again on the same port."""
        for fault in self.faults.active("refuse"):
            self.faults.remove(fault)
        self.settle()

    def drop_connections(self) -> None:
        """Close every open connection, as a restart does to sockets that a client keeps."""
        self._call(self._drop())

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._listen())
        except OSError as error:
            self._failure = error
            self._ready.set()
            return
        self._ready.set()
        self._loop.run_forever()

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=10)

    async def _listen(self) -> None:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        self._listener = await asyncio.start_server(
            self._accepted, self.host, self.port, family=family, ssl=self._tls, limit=HEAD_LIMIT + 1024, backlog=512
        )
        self.port = self._listener.sockets[0].getsockname()[1]

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(asyncio.CancelledError):
            await connection.serve(self, reader, writer)

    async def _follow_refusals(self) -> None:
        refusing = bool(self.faults.active("refuse"))
        if refusing and self._listener is not None:
            await self._close()
        elif not refusing and self._listener is None:
            await self._listen()

    async def _close(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        await self._drop()

    async def _drop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
