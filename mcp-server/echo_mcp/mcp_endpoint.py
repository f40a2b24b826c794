"""MCP over HTTP around the SDK: the media type, and a code for machines in every JSON-RPC error (spec 3.1)."""
from __future__ import annotations

import json
from typing import Any

from echo_mcp.asgi import App, Message, Receive, Scope, Send
from echo_mcp.outcomes import to_json
from echo_mcp.refusals import MEDIA_TYPE, refuse

_JSON = b"application/json"
_WORDS = {-32603: "internal", -32601: "not-found"}
"""Codes for errors that the SDK makes by itself; all its others are about the request."""


class McpEndpoint:
    """The SDK's app as the endpoint of a route. app: answers each request with one whole JSON body."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kinds = [value for name, value in scope["headers"] if name == b"content-type"]
        if [kind.partition(b";")[0].strip().lower() for kind in kinds] != [_JSON]:
            await refuse(send, scope, MEDIA_TYPE)
            return
        # The SDK compares letter by letter, although letter case and parameters of a media type do not matter.
        headers = [(name, value) for name, value in scope["headers"] if name != b"content-type"]
        await self._app({**scope, "headers": [*headers, (b"content-type", _JSON)]}, receive, _Coded(send))


class _Coded:
    """A `send` that holds the head back until the body is there, since a code makes it longer."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._head: Message = {}

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._head = message
            return
        head, self._head = self._head, {}
        body = message.get("body", b"")
        if head and not message.get("more_body", False):
            body = with_code(body)
            headers = [pair for pair in head["headers"] if pair[0].lower() != b"content-length"]
            head["headers"] = [*headers, (b"content-length", str(len(body)).encode())]
        if head:
            await self._send(head)
        await self._send({**message, "body": body})


def with_code(body: bytes) -> bytes:
    """A JSON-RPC answer; its error, if it is one, has a word as `code` in its `data`."""
    if b'"error":{' not in body:  # the one object of that name is JSON-RPC's own
        return body
    try:
        message = json.loads(body)
    except ValueError:
        return body
    error = message.get("error") if isinstance(message, dict) else None
    if not isinstance(error, dict):
        return body
    error["data"] = coded(int(error.get("code") or 0), error.get("data"))
    return to_json(message).encode()


def coded(code: int, data: Any) -> dict[str, Any]:
    """The `data` of a JSON-RPC error with the number `code`, with a word for machines as its `code`."""
    known = data if isinstance(data, dict) else {} if data is None else {"detail": data}
    return {"code": _WORDS.get(code, "invalid-argument"), **known}
