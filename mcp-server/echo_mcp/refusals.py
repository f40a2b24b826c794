"""What HTTP itself answers, before or instead of a tool: one table, and the envelope of every other failure.

REST and everything else gets `{"success": false, "error": {"code", "message"}, "data": envelope}`. A POST to MCP gets
a JSON-RPC error with the envelope as its `data`, since its clients read nothing else. The one 401 is the same
everywhere and says nothing about what it guards.
"""
from __future__ import annotations

from http import HTTPStatus
from typing import Any, NamedTuple

from echo_mcp.asgi import CLOSE, JSON, Header, Scope, Send, answer
from echo_mcp.outcomes import failure_body, to_json

MCP_PATHS = ("/mcp", "/mcp/", "/")
"""Where MCP answers; `/mcp` is advertised, connectors also try the others."""
INVALID_REQUEST = -32600
"""JSON-RPC's code for a request that never reached a method."""


class Refusal(NamedTuple):
    """One refusal. code: for machines; error: one line, what is wrong; hint: what to do next."""

    status: int
    code: str
    error: str
    hint: str = ""


BAD_REQUEST = Refusal(400, "bad-request", "the request is no valid HTTP", "Send HTTP/1.1.")
BAD_HEADERS = Refusal(400, "bad-request", "exactly one Host header and at most one Origin are needed",
                      "Send each of them once.")
UNAUTHORIZED = Refusal(401, "unauthorized", "a valid token is needed", "Send the header Authorization: Bearer TOKEN.")
ORIGIN = Refusal(403, "origin-refused", "this web origin may not call", "Add it to ECHO_MCP_ALLOWED_ORIGINS.")
NOT_FOUND = Refusal(404, "not-found", "there is nothing at this path",
                    "MCP answers at /mcp, tools at /api/tools/NAME; see /api/docs.")
METHOD = Refusal(405, "method-not-allowed", "this path does not take this method", "Use one of `allowed`.")
TIMEOUT = Refusal(408, "timeout", "the request did not arrive in time", "Send it again on a new connection.")
BODY_TOO_LARGE = Refusal(413, "too-large", "the request's body is too large", "Send less in one call.")
MEDIA_TYPE = Refusal(415, "unsupported-media-type", "MCP takes JSON only", "Send Content-Type: application/json.")
HOST = Refusal(421, "host-refused", "this host name is not served", "Add it to ECHO_MCP_ALLOWED_HOSTS.")
HEAD_TOO_LARGE = Refusal(431, "too-large", "the request's path and headers are too large", "Send fewer headers.")
INTERNAL = Refusal(500, "internal", "the request failed for an unforeseen reason",
                   "Tell the operator the error_id; the server's log has a line under it.")
BUSY = Refusal(503, "busy", "too many requests at once", "Try again in a second.")

REFUSALS = (BAD_REQUEST, BAD_HEADERS, UNAUTHORIZED, ORIGIN, NOT_FOUND, METHOD, TIMEOUT, BODY_TOO_LARGE, MEDIA_TYPE,
            HOST, HEAD_TOO_LARGE, INTERNAL, BUSY)
"""Every refusal, in order of its status."""


async def refuse(send: Send, scope: Scope, refusal: Refusal, *headers: Header, **data: Any) -> None:
    """Answer with a refusal. data: further fields of its envelope."""
    envelope = _envelope(refusal, data)
    is_mcp = scope["method"] == "POST" and scope["path"] in MCP_PATHS and refusal is not UNAUTHORIZED
    body = _rpc_error(envelope) if is_mcp else failure_body(envelope)
    await answer(send, refusal.status, to_json(body).encode(), JSON, *headers)


def last_words(refusal: Refusal) -> bytes:
    """A whole response for a connection whose request was never read."""
    body = to_json(failure_body(_envelope(refusal, {}))).encode()
    headers = (CLOSE, JSON, (b"content-length", str(len(body)).encode()))
    head = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
    return f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}\r\n".encode() + head + b"\r\n" + body


def _envelope(refusal: Refusal, data: dict[str, Any]) -> dict[str, Any]:
    return {"ok": False, "code": refusal.code, "error": refusal.error, "hint": refusal.hint, **data}


def _rpc_error(envelope: dict[str, Any]) -> dict[str, Any]:
    message = f"{envelope['error']}. {envelope['hint']}"
    return {"jsonrpc": "2.0", "id": None, "error": {"code": INVALID_REQUEST, "message": message, "data": envelope}}
