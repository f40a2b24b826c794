"""Switches of a double that runs in another process: a small HTTP endpoint on a port of its own.

POST /faults {"kind": …, …} · GET /faults · DELETE /faults · GET /fired?kind=… · GET /requests · DELETE /requests ·
POST /race {"enabled", "seconds", "torn_writes"} · POST /drop (close every open connection).
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from fakes.olrapi.server import Olrapi


class Control:
    """The endpoint; a context manager."""

    def __init__(self, server: Olrapi, port: int = 0) -> None:
        self._http = ThreadingHTTPServer(("127.0.0.1", port), _handler(server))
        self._http.daemon_threads = True
        self.port: int = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, name="olrapi-control", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def act(server: Olrapi, method: str, path: str, query: dict[str, list[str]], body: Any) -> Any:
    """Do what a control request asks and give its JSON answer. Raises KeyError for an unknown one, ValueError."""
    match method, path:
        case "POST", "/faults":
            server.faults.add(**body)
            server.settle()
        case "DELETE", "/faults":
            server.faults.clear()
            server.settle()
        case "DELETE", "/requests":
            server.log.clear()
        case "GET", "/requests":
            return server.log.as_json()
        case "GET", "/faults":
            return server.faults.as_json()
        case "GET", "/fired":
            return server.faults.fired(query["kind"][0])
        case "POST", "/race":
            for name in ("enabled", "seconds", "torn_writes"):
                setattr(server.race, name, body.get(name, getattr(server.race, name)))
        case "POST", "/drop":
            server.drop_connections()
        case _:
            raise KeyError(path)
    return {"ok": True}


def _handler(server: Olrapi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            address = urlsplit(self.path)
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                status, value = 200, act(
                    server, self.command, address.path, parse_qs(address.query), json.loads(raw or b"{}")
                )
            except (KeyError, ValueError, TypeError) as error:
                status, value = 400, {"error": str(error)}
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = _answer

        def log_message(self, format: str, *args: Any) -> None:
            """Keep standard error quiet."""

    return Handler
