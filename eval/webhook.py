"""A webhook that keeps what it is sent.

    with Receiver() as receiver:
        receiver.url, receiver.messages
"""
from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver:
    """status: what it answers. location: where it redirects to. messages: the JSON bodies; targets: path and query."""

    def __init__(self, status: int = 200, location: str = "", path: str = "/hook") -> None:
        self.status = status
        self.messages: list[dict[str, Any]] = []
        self.targets: list[str] = []
        self.heads: list[dict[str, str]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.heads.append(dict(self.headers))
                receiver.targets.append(self.path)
                receiver.messages.append(json.loads(body))
                self.send_response(receiver.status)
                if location:
                    self.send_header("location", location)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}{path}"

    def wait_for(self, count: int, seconds: float = 30.0) -> None:
        """Return when so many messages have come; fail when they do not."""
        end = time.monotonic() + seconds
        while len(self.messages) < count:
            assert time.monotonic() < end, f"{len(self.messages)} of {count} messages came"
            time.sleep(0.02)

    def __enter__(self) -> Receiver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
