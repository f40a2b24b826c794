"""Who may come in: the Host and Origin rules and the bearer token, around the whole app (spec 4.1).

The open paths are compared with the bytes of the request line, before any decoding: no other spelling of a path
reaches a route without the token.
"""
from __future__ import annotations

import hmac
import time
from collections.abc import Iterable
from urllib.parse import urlsplit

from echo_mcp import logs, refusals
from echo_mcp.asgi import CLOSE, App, Receive, Scope, Send
from echo_mcp.refusals import refuse

OPEN_PATHS = (b"/health",)
"""Paths that answer GET and HEAD without a token."""
ABSENT_PATHS = (b"/.well-known/", b"/register")
"""Where clients look for OAuth: 404 with and without a token, since a 401 there would promise it."""
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
UNREAD_BODY = 65536
"""Largest body of a refused request that is read and thrown away, so that its sender can read the answer."""

HEAD_LIMIT = 32 * 1024
"""Largest path with headers, in bytes."""
MAX_HEADERS = 100


class HostGuard:
    """Refuses oversized heads (431) and foreign Host (421) and Origin (403) headers: no DNS rebinding.

    hosts: names beside loopback, with or without a port; a name without one stands for every port. origins: web
    origins beside loopback. Both are compared without regard to case.
    """

    def __init__(self, app: App, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self._app = app
        self._hosts = frozenset((*LOOPBACK, *(host.lower() for host in hosts)))
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        hosts = _header(scope, b"host")
        origins = _header(scope, b"origin")
        if _head_too_large(scope):
            await refuse(send, scope, refusals.HEAD_TOO_LARGE, CLOSE, limit=HEAD_LIMIT)
        elif len(hosts) != 1 or len(origins) > 1:
            await refuse(send, scope, refusals.BAD_HEADERS, CLOSE)
        elif not self._host_allowed(hosts[0]):
            await refuse(send, scope, refusals.HOST)
        elif origins and not self._origin_allowed(origins[0]):
            await refuse(send, scope, refusals.ORIGIN)
        else:
            await self._app(scope, receive, send)

    def _host_allowed(self, value: bytes) -> bool:
        host = value.decode("latin-1").strip().lower()
        return host in self._hosts or _without_port(host) in self._hosts

    def _origin_allowed(self, value: bytes) -> bool:
        origin = value.decode("latin-1").strip().lower()
        if origin in self._origins:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        if parts.scheme not in ("http", "https") or parts.path or parts.query or parts.fragment:
            return False
        bare = f"{parts.scheme}://{_without_port(parts.netloc)}"
        return bare in self._origins or _without_port(parts.netloc) in LOOPBACK


class TokenGuard:
    """Lets a request through when its one Authorization header is `Bearer <token>`; all others get the same 401.

    open_app: serves the open paths, for GET and HEAD only; app: everything else. token: at least one character;
    compared as bytes in constant time.
    """

    def __init__(self, app: App, open_app: App, token: str) -> None:
        if not token:
            raise ValueError("a server without a token would be open")
        self._app = app
        self._open_app = open_app
        self._expected = b"Bearer " + token.encode()
        self._refused = 0
        self._told = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("raw_path") or scope["path"].encode()
        if path.startswith(ABSENT_PATHS[0]) or path == ABSENT_PATHS[1]:
            await refuse(send, scope, refusals.NOT_FOUND, *_hang_up(scope))
        elif path in OPEN_PATHS and scope["method"] in ("GET", "HEAD"):
            await self._open_app(scope, receive, send)
        elif self._authorized(scope):
            await self._app(scope, receive, send)
        else:
            self._count()
            challenge = (b"www-authenticate", b'Bearer realm="echo"')
            await refuse(send, scope, refusals.UNAUTHORIZED, challenge, *_hang_up(scope))

    def _authorized(self, scope: Scope) -> bool:
        values = _header(scope, b"authorization")
        right = hmac.compare_digest(values[0] if values else b"", self._expected)
        return right and len(values) == 1

    def _count(self) -> None:
        """Log refusals at most once a second, with their number."""
        self._refused += 1
        if time.monotonic() - self._told >= 1.0:
            logs.event("unauthorized", requests=self._refused)
            self._refused, self._told = 0, time.monotonic()


def _header(scope: Scope, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key == name]


def _head_too_large(scope: Scope) -> bool:
    headers = scope["headers"]
    size = len(scope.get("raw_path") or b"") + len(scope["query_string"])
    size += sum(len(name) + len(value) for name, value in headers)
    return size > HEAD_LIMIT or len(headers) > MAX_HEADERS


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def _hang_up(scope: Scope) -> tuple[tuple[bytes, bytes], ...]:
    """`connection: close` when the refused request brings a body that is too long to read and throw away.

    A short one is left to the protocol: closing while it is on its way would reset the connection, and the client
    would not see the answer.
    """
    length = b"".join(_header(scope, b"content-length"))
    if _header(scope, b"transfer-encoding") or (length and (not length.isdigit() or int(length) > UNREAD_BODY)):
        return (CLOSE,)
    return ()
