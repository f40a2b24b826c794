"""The REST bridge: every tool of the registry as a POST, its description as OpenAPI, and metrics (spec 4.3)."""
from __future__ import annotations

import json
from typing import Any

from echo_core.errors import InvalidArgument, NotFound
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from echo_mcp import openapi
from echo_mcp.health import Health
from echo_mcp.metrics import prometheus
from echo_mcp.outcomes import rest_answer, to_json
from echo_mcp.registry import Registry


class Bridge:
    """The request handlers of `/api` and `/metrics`."""

    def __init__(self, registry: Registry, health: Health) -> None:
        self._registry = registry
        self._health = health

    async def call(self, request: Request) -> Response:
        """`POST /api/tools/{name}`: body = arguments, answer = `{"success", "data"}` with the status of spec 3.1.

        A header `Idempotency-Key` is the client's own name for the call.
        """
        name = request.path_params["name"]
        if self._registry.find(name) is None:
            near = self._registry.nearest(name)
            hint = f"Did you mean {near}?" if near else "See /api/openapi.json for the tools."
            return _answer(NotFound("there is no such tool", hint=hint).envelope())
        try:
            arguments = json.loads(await request.body() or b"{}", parse_constant=_no_constant)
        except (ValueError, RecursionError):
            refusal = InvalidArgument("the body is not JSON", hint="Send one JSON object with the tool's arguments.")
            return _answer(refusal.envelope(), status=400)
        if not isinstance(arguments, dict):
            refusal = InvalidArgument("the body must be a JSON object", hint="Its members are the tool's arguments.")
            return _answer(refusal.envelope())
        client_key = request.headers.get("idempotency-key", "")
        return _answer(await self._registry.call(name, arguments, client_key))

    async def openapi(self, request: Request) -> Response:
        """`GET /api/openapi.json`."""
        return JSONResponse(openapi.describe(self._registry.tools()))

    async def docs(self, request: Request) -> Response:
        """`GET /api/docs`: the same as a page that loads nothing from elsewhere."""
        headers = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return HTMLResponse(openapi.page(self._registry.tools()), headers=headers)

    async def metrics(self, request: Request) -> Response:
        """`GET /metrics`: Prometheus text."""
        text = prometheus(self._registry, self._health)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


def _answer(envelope: dict[str, Any], status: int = 0) -> Response:
    mapped, body = rest_answer(envelope)
    return Response(to_json(body), status or mapped, media_type="application/json")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
