"""A real server process whose tools are fakes: what the HTTP tests talk to when the notes do not matter.

    python fakeserver.py PORT     settings come from the environment as for the real server

FAKE_READ_DEADLINE shortens the read deadline (seconds), so that a test of it need not wait for half a minute.
"""
from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from echo_core.errors import EchoError, VaultUnreachable
from echo_mcp import connections, http, logs, serving, settings
from echo_mcp.health import Health
from echo_mcp.registry import Registry, ResourceRecord, ToolRecord

EFFECTS: list[str] = []


def echo_back(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as they came; the no-op of the latency bench."""
    return {"ok": True, "arguments": dict(arguments)}


def effect(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Counts how often it ran; `sleep_s` makes it slow."""
    time.sleep(float(arguments.get("sleep_s", 0)))
    EFFECTS.append(str(arguments.get("mark", "")))
    return {"ok": True, "action": "created", "count": len(EFFECTS)}


def crash(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A handler with a bug whose message holds a value."""
    raise RuntimeError(f"canary-in-exception {arguments}")


def vault_down(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What a tool answers while the vault is away."""
    failure: EchoError = VaultUnreachable("the vault cannot be reached", hint="Go on without memory.")
    return failure.envelope()


def decide(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A duplicate gate."""
    return {"ok": False, "action": "duplicate-gate", "hint": "Choose.", "candidates": [{"path": "a.md"}]}


def big(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """An answer of as many items as asked."""
    return {"ok": True, "items": [f"item {number}" for number in range(int(arguments.get("count", 10)))]}


def tool(name: str, handler: Any, **more: Any) -> ToolRecord:
    """A record around a handler, any argument allowed."""
    return ToolRecord(
        name=name, description=(handler.__doc__ or "").strip(), group="fake",
        handler=lambda arguments, _: handler(arguments),
        input_schema={"type": "object", "properties": {"text": {"type": "string"}}},
        output_schema={"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]},
        annotations={"readOnlyHint": not more.get("writes", True)},
        render=lambda envelope: f"{name}: {envelope}", **more,
    )


def fill(registry: Registry) -> Registry:
    """Register the fakes."""
    for record in (
        tool("fake_noop", echo_back, writes=False, lane="index"), tool("fake_effect", effect),
        tool("fake_crash", crash), tool("fake_down", vault_down, writes=False), tool("fake_decide", decide),
        tool("fake_big", big, writes=False),
    ):
        registry.add_tool(record)
    registry.add_resource(ResourceRecord(
        "note", "echo://note/", "echo://note/{path}", "A note.", lambda path: {"ok": True, "content": f"note {path}"},
    ))
    registry.instructions.append("Fakes.")
    return registry


def main(port: int) -> None:
    """Serve until SIGTERM."""
    from echo_mcp.sdk import McpDoor  # takes seconds; those who only want the fake tools need it not

    found = settings.load(settings.environment())
    connections.READ_DEADLINE_S = float(os.environ.get("FAKE_READ_DEADLINE", connections.READ_DEADLINE_S))
    logs.configure(found.log_level)
    registry, health = fill(Registry(found.workers, found.timeout_s)), Health()
    door = McpDoor(registry)

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        async with door.running():
            health.serve(True)
            yield

    with serving.bind(found.host, port) as bound:
        app = http.build_app(registry, door.app, health, found, lifespan)
        port = bound.getsockname()[1]
        serving.serve(app, bound, lambda: logs.event("listening", port=port), lambda: health.serve(False))


if __name__ == "__main__":
    main(int(sys.argv[1]))
