"""Toolsets: each registers its tools in the registry it is handed; importing one registers nothing."""
from __future__ import annotations

from typing import Protocol

from echo_mcp.registry import Registry


class Toolset(Protocol):
    """A group of tools that is on or off as a whole. It gets the registry, never the server."""

    name: str

    def register_tools(self, registry: Registry) -> None:
        """Add the toolset's tools, resources and prompts."""

    def shutdown(self) -> None:
        """Let go of everything; called once, after the last call."""
