"""HTTP/1.1 on the wire: one request read from a stream, one answer turned into bytes.

Written by hand, because the double has to take what a strict library refuses (raw Latin-1 header values, a body
without Content-Type, a PUT without Content-Length) and has to break answers in the middle.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

HEAD_LIMIT = 16 * 1024
METHODS = frozenset({
    "ACL", "BIND", "CHECKOUT", "COPY", "DELETE", "GET", "HEAD", "LINK", "LOCK", "M-SEARCH", "MERGE", "MKACTIVITY",
    "MKCALENDAR", "MKCOL", "MOVE", "NOTIFY", "OPTIONS", "PATCH", "POST", "PROPFIND", "PROPPATCH", "PURGE", "PUT",
    "QUERY", "REBIND", "REPORT", "SEARCH", "SOURCE", "SUBSCRIBE", "TRACE", "UNBIND", "UNLINK", "UNLOCK",
    "UNSUBSCRIBE",
})
# A second line of one of these is dropped; lines of any other name are joined by commas.
FIRST_WINS = frozenset({
    "age", "authorization", "content-length", "content-type", "etag", "expires", "from", "host", "if-modified-since",
    "if-unmodified-since", "last-modified", "location", "max-forwards", "proxy-authorization", "referer", "retry-after",
    "server", "user-agent",
})
TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class BadRequest(Exception):
    """The bytes are no HTTP request. `status` is 400, or 431 when the head is too large."""

    def __init__(self, status: int = 400) -> None:
        super().__init__(f"not HTTP: {status}")
        self.status = status


@dataclass
class Request:
    """One request. `target` and header values are Latin-1 decoded, as Node shows them; header names are lowercase."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""
    head_size: int = 0
    keep_alive: bool = True

    @property
    def path(self) -> str:
        """The target up to the query, still percent-encoded."""
        return self.target.partition("#")[0].partition("?")[0]

    @property
    def query(self) -> str:
        """What stands behind the first question mark."""
        return self.target.partition("#")[0].partition("?")[2]

    @property
    def has_body(self) -> bool:
        """Whether the head announces a body, be it an empty one."""
        return "transfer-encoding" in self.headers or self.headers.get("content-length", "").isdigit()

    def header(self, name: str) -> str:
        """The value of a header, "" when it is absent."""
        return self.headers.get(name.lower(), "")


@dataclass
class Answer:
    """One answer before it is put into bytes; header names are lowercase. dropped: for the log, see `Entry`."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    dropped: int = 0


async def read_head(reader: asyncio.StreamReader) -> Request | None:
    """The next request without its body; None when the client has closed. Raises BadRequest."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError as error:
        raise BadRequest(431) from error
    if len(raw) > HEAD_LIMIT:
        raise BadRequest(431)
    lines = raw[:-4].decode("latin-1").lstrip("\r\n").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or words[0] not in METHODS or words[2] not in ("HTTP/1.1", "HTTP/1.0"):
        raise BadRequest
    if not words[1] or not all("!" <= char <= "~" for char in words[1]):
        raise BadRequest
    request = Request(words[0], words[1], _headers(lines[1:]), head_size=len(raw))
    _check(request, words[2])
    return request


def _headers(lines: list[str]) -> dict[str, str]:
    """Header lines joined as Node joins them. Raises BadRequest for a line that is no header."""
    found: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        value = value.strip(" \t")
        if not colon or not name or not set(name) <= TOKEN or any(char in value for char in "\0\r\n"):
            raise BadRequest
        key = name.lower()
        if key == "content-length" and (not value.isdigit() or found.get(key, value) != value):
            raise BadRequest
        if key not in found:
            found[key] = value
        elif key not in FIRST_WINS:
            found[key] = f"{found[key]}{'; ' if key == 'cookie' else ', '}{value}"
    return found


def _check(request: Request, protocol: str) -> None:
    """Settle keep-alive and refuse what Node's parser refuses."""
    headers = request.headers
    if protocol == "HTTP/1.1" and "host" not in headers:
        raise BadRequest
    if "transfer-encoding" in headers and "content-length" in headers:
        raise BadRequest
    wish = headers.get("connection", "").lower()
    request.keep_alive = "close" not in wish and (protocol == "HTTP/1.1" or "keep-alive" in wish)


async def read_body(reader: asyncio.StreamReader, request: Request, at_most: int | None = None) -> None:
    """Fill `request.body`; at_most: stop after that many bytes. Raises BadRequest, IncompleteReadError."""
    if "chunked" in request.header("transfer-encoding").lower():
        request.body = await _chunks(reader)
        return
    length = int(request.header("content-length") or 0)
    request.body = await reader.readexactly(length if at_most is None else min(length, at_most))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    """A chunked body. Raises BadRequest for a broken chunk."""
    parts: list[bytes] = []
    while True:
        size_text = (await reader.readuntil(b"\r\n")).split(b";")[0].strip()
        try:
            size = int(size_text, 16)
        except ValueError as error:
            raise BadRequest from error
        if size == 0:
            while await reader.readuntil(b"\r\n") != b"\r\n":
                continue
            return b"".join(parts)
        parts.append(await reader.readexactly(size))
        if await reader.readexactly(2) != b"\r\n":
            raise BadRequest


REASONS = {
    200: "OK", 204: "No Content", 301: "Moved Permanently", 302: "Found", 304: "Not Modified",
    307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found",
    405: "Method Not Allowed", 409: "Conflict", 422: "Unprocessable Entity", 429: "Too Many Requests",
    431: "Request Header Fields Too Large", 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway",
    503: "Service Unavailable", 504: "Gateway Timeout",
}


def wire(answer: Answer, keep_alive: bool = True, head_only: bool = False) -> bytes:
    """The answer as bytes; head_only: the answer to a HEAD request, whose Content-Length stays."""
    lines = [f"HTTP/1.1 {answer.status} {REASONS.get(answer.status, 'Unknown')}"]
    lines += [f"{'-'.join(word.capitalize() for word in name.split('-'))}: {value}"
              for name, value in answer.headers.items()]
    lines.append("Connection: keep-alive" if keep_alive else "Connection: close")
    head = "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")
    return head if head_only else head + answer.body
