"""The HTTP surface on one page: every path, and what stands around it.

    connection   read deadline, header limit, bound on connections     echo_mcp.connections
      HostGuard      400 431 421 403                                   echo_mcp.auth
        TokenGuard   401; open: GET /health; 404: where OAuth would be echo_mcp.auth
          RequestLimits   503 413                                      echo_mcp.limits
            POST /mcp /mcp/ /          MCP, streamable HTTP; 415       echo_mcp.mcp_endpoint, echo_mcp.sdk
            POST /api/tools/{name}     a tool                          echo_mcp.rest
            GET  /api/openapi.json /api/docs                           echo_mcp.rest
            GET  /metrics                                              echo_mcp.rest
            any other path or method   404 405                         echo_mcp.refusals
"""
from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from echo_mcp import logs, refusals, rest
from echo_mcp.asgi import CLOSE, App, Message, Receive, Scope, Send
from echo_mcp.auth import HostGuard, TokenGuard
from echo_mcp.health import Health
from echo_mcp.limits import RequestLimits
from echo_mcp.mcp_endpoint import McpEndpoint
from echo_mcp.refusals import MCP_PATHS, refuse
from echo_mcp.registry import Registry
from echo_mcp.settings import Settings


def routes(registry: Registry, mcp: App, health: Health) -> list[Route]:
    """Every route; only `/health` is open (`echo_mcp.auth.OPEN_PATHS`)."""
    bridge = rest.Bridge(registry, health)
    return [
        *(_Route(path, McpEndpoint(mcp), methods=["POST"]) for path in MCP_PATHS),
        _Route("/api/tools/{name}", bridge.call, methods=["POST"]),
        _Route("/api/openapi.json", bridge.openapi, methods=["GET"]),
        _Route("/api/docs", bridge.docs, methods=["GET"]),
        _Route("/metrics", bridge.metrics, methods=["GET"]),
        health_route(health),
    ]


def health_route(health: Health) -> Route:
    """`GET /health`: booleans and numbers from memory, 503 while starting or stopping."""

    async def show(_: Request) -> Response:
        status, facts = health.snapshot()
        return Response(json.dumps(facts), status, {"cache-control": "no-store"}, "application/json")

    return _Route("/health", show, methods=["GET"])


def build_app(
    registry: Registry, mcp: App, health: Health, settings: Settings,
    lifespan: Callable[[Any], AbstractAsyncContextManager[None]],
) -> App:
    """The whole ASGI app. lifespan: entered before the first request, left after the last."""
    inner = Router(routes(registry, mcp, health), redirect_slashes=False, lifespan=lifespan, default=_nowhere)
    opened = Router([health_route(health)], redirect_slashes=False, default=_nowhere)
    guarded = HostGuard(
        TokenGuard(RequestLimits(inner), opened, settings.token),
        settings.allowed_hosts, settings.allowed_origins,
    )

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _telling_why(inner, scope, receive, send)
        else:
            await _guarded_against_bugs(guarded, scope, receive, send)

    return app


async def _telling_why(app: App, scope: Scope, receive: Receive, send: Send) -> None:
    """A start or an end that fails leaves the type and the place of the failure in the log."""
    try:
        await app(scope, receive, send)
    except Exception as failure:
        logs.event("lifespan-failed", logging.ERROR, **logs.cause(failure))
        raise


async def _guarded_against_bugs(app: App, scope: Scope, receive: Receive, send: Send) -> None:
    """500 with an `error_id` for what no part foresaw; the log has the exception's type under that id."""
    begun = False

    async def watched(message: Message) -> None:
        nonlocal begun
        begun = True
        await send(message)

    try:
        await app(scope, receive, watched)
    except Exception as failure:
        error_id = os.urandom(6).hex()
        logs.event("request-failed", logging.ERROR, error_id=error_id, **logs.cause(failure))
        if begun:
            raise
        await refuse(send, scope, refusals.INTERNAL, CLOSE, error_id=error_id)


class _Route(Route):
    """A route whose 405 has a code and names the allowed methods."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        allowed = sorted(self.methods or ())
        if scope["method"] in allowed:
            await self.app(scope, receive, send)
        else:
            await refuse(send, scope, refusals.METHOD, (b"allow", ", ".join(allowed).encode()), allowed=allowed)


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    """404 for a path of no route."""
    await refuse(send, scope, refusals.NOT_FOUND)
