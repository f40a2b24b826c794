"""ECHO's server: one registry of tools behind MCP (HTTP and stdio) and REST."""

__version__ = "0.1.0"
