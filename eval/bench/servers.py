"""The processes the bench measures.

    python servers.py bare          a Starlette app with one JSON route, served with the server's own uvicorn settings
    python servers.py echo          the real server, and one tool more that does nothing: `bench_noop`
"""
from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from echo_mcp import logs, serving
from echo_mcp.registry import Registry, ToolRecord
from echo_mcp.toolsets.memory import MemoryToolset
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


async def _echo(request: Request) -> JSONResponse:
    return JSONResponse({"ok": True, "arguments": json.loads(await request.body())})


def serve_bare() -> None:
    """The baseline: parse a JSON body and answer it."""
    logs.configure("info")
    with serving.bind("127.0.0.1", 0) as bound:
        port = bound.getsockname()[1]
        app = Starlette(routes=[Route("/bare", _echo, methods=["POST"])])
        serving.serve(app, bound, lambda: logs.event("listening", port=port), lambda: None)  # type: ignore[arg-type]


def _noop(arguments: Mapping[str, Any], client_key: str = "") -> dict[str, Any]:
    """Does nothing."""
    return {"ok": True, "arguments": dict(arguments)}


class _WithNoop(MemoryToolset):
    """The memory toolset and a tool that shows what a call costs before it does anything."""

    def register_tools(self, registry: Registry) -> None:
        super().register_tools(registry)
        registry.add_tool(ToolRecord(
            name="bench_noop", description="Does nothing.", group="bench", handler=_noop, render=str, writes=False,
            input_schema={"type": "object", "properties": {}}, output_schema={"type": "object"},
            annotations={"readOnlyHint": True}, lane="index",
        ))


def serve_echo() -> int:
    """The real server, started as its own command does it."""
    from echo_mcp import wiring
    from echo_mcp.__main__ import main

    wiring.MemoryToolset = _WithNoop  # type: ignore[misc]
    return main(["serve"])


if __name__ == "__main__":
    raise SystemExit(serve_echo() if sys.argv[1] == "echo" else serve_bare())
