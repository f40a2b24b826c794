"""A client that adds next to nothing to what it measures: one connection, requests prepared as bytes."""
from __future__ import annotations

import json
import socket
import time
from typing import Any

from serverproc import MODERN, TOKEN

KEPT_S = 3.0
"""Idle connections older than this are replaced: the server closes them after five seconds."""


class Wire:
    """One kept-alive connection to 127.0.0.1:port."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open()

    def _open(self) -> None:
        self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._used = time.perf_counter()

    def timed(self, request: bytes) -> tuple[float, Any]:
        """(milliseconds until the whole answer was there, the answer's JSON)."""
        if time.perf_counter() - self._used > KEPT_S:
            self.close()
            self._open()
        started = time.perf_counter()
        self._socket.sendall(request)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, body = data.partition(b"\r\n\r\n")
        size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(body) < size:
            body += self._more()
        self._used = time.perf_counter()
        return (self._used - started) * 1000, json.loads(body)

    def _more(self) -> bytes:
        data = self._socket.recv(1 << 20)
        if not data:
            raise ConnectionError("the server closed the connection")
        return data

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def post(path: str, body: Any, **headers: str) -> bytes:
    """A POST of a JSON body as bytes."""
    data = json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "host: 127.0.0.1", f"authorization: Bearer {TOKEN}",
             "content-type: application/json", f"content-length: {len(data)}",
             *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def rest(name: str, arguments: dict[str, Any]) -> bytes:
    """A call of a tool by the REST bridge."""
    return post(f"/api/tools/{name}", arguments)


def rpc(method: str, params: dict[str, Any]) -> bytes:
    """A JSON-RPC request of the newest protocol."""
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
    named = {"mcp_name": params["name"]} if "name" in params else {}
    return post(
        "/mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}},
        accept="application/json, text/event-stream", mcp_protocol_version=MODERN, mcp_method=method, **named)


def mcp(name: str, arguments: dict[str, Any]) -> bytes:
    """A call of a tool by MCP."""
    return rpc("tools/call", {"name": name, "arguments": arguments})
