"""The HTTP surface on one page: every path, and what stands around it.

    connection   read deadline, header limit, bound on connections     echo_mcp.connections
      HostGuard      400 431 421 403                                   echo_mcp.auth
        TokenGuard   401; open: GET /health; 404: where OAuth would be echo_mcp.auth
          RequestLimits   503 413                                      echo_mcp.limits
            POST /mcp /mcp/ /          MCP, streamable HTTP            echo_mcp.sdk
            POST /api/tools/{name}     a tool                          echo_mcp.rest
            GET  /api/openapi.json /api/docs                           echo_mcp.rest
            GET  /metrics                                              echo_mcp.rest
"""
from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from echo_mcp import rest
from echo_mcp.auth import HostGuard, TokenGuard
from echo_mcp.health import Health
from echo_mcp.limits import App, Receive, RequestLimits, Scope, Send, answer
from echo_mcp.registry import Registry
from echo_mcp.settings import Settings

MCP_PATHS = ("/mcp", "/mcp/", "/")
"""Where MCP answers; `/mcp` is advertised, connectors also try the others."""
_METHODS = ("GET", "HEAD", "POST")


def routes(registry: Registry, mcp: App, health: Health) -> list[Route]:
    """Every route; only `/health` is open (`echo_mcp.auth.OPEN_PATHS`)."""
    bridge = rest.Bridge(registry, health)
    return [
        *(Route(path, _Passed(mcp), methods=["POST"]) for path in MCP_PATHS),
        Route("/api/tools/{name}", bridge.call, methods=["POST"]),
        Route("/api/openapi.json", bridge.openapi, methods=["GET"]),
        Route("/api/docs", bridge.docs, methods=["GET"]),
        Route("/metrics", bridge.metrics, methods=["GET"]),
        health_route(health),
    ]


def health_route(health: Health) -> Route:
    """`GET /health`: booleans and numbers from memory, 503 while starting or stopping."""

    async def show(_: Request) -> Response:
        status, facts = health.snapshot()
        return Response(json.dumps(facts), status, {"cache-control": "no-store"}, "application/json")

    return Route("/health", show, methods=["GET"])


def build_app(
    registry: Registry, mcp: App, health: Health, settings: Settings,
    lifespan: Callable[[Any], AbstractAsyncContextManager[None]],
) -> App:
    """The whole ASGI app. lifespan: entered before the first request, left after the last."""
    inner = Router(routes(registry, mcp, health), redirect_slashes=False, lifespan=lifespan)
    opened = Router([health_route(health)], redirect_slashes=False)
    guarded = HostGuard(
        TokenGuard(RequestLimits(_KnownMethods(inner)), opened, settings.token),
        settings.allowed_hosts, settings.allowed_origins,
    )

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await (inner if scope["type"] == "lifespan" else guarded)(scope, receive, send)

    return app


class _Passed:
    """An ASGI app as the endpoint of a route (Starlette takes a plain function for a request handler)."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


class _KnownMethods:
    """405 for methods that no route has, whatever the path."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] in _METHODS:
            await self._app(scope, receive, send)
        else:
            await answer(send, 405, b"Method not allowed.", (b"allow", ", ".join(_METHODS).encode()))
