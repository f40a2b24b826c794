"""The MCP door: the registry spoken through the SDK's low-level server, over streamable HTTP and over stdio.

Nothing is declared here: lists come from the registry's records, results are built by hand as plain objects
(returning models costs two to three times as much and doubles the size). No subscriptions: an open listen stream
would keep the process from leaving on SIGTERM.
"""
from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import unquote

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError

from echo_mcp import __version__, outcomes
from echo_mcp.asgi import App
from echo_mcp.limits import BODY_LIMIT
from echo_mcp.mcp_endpoint import coded
from echo_mcp.registry import Registry, ToolRecord

KEY_IN_META = "echo/idempotency-key"
INSTRUCTIONS_LIMIT = 2048
"""Longest instructions and descriptions in characters: clients cut them there."""


class McpDoor:
    """The registry as an MCP server. Build it after everything is registered."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._tools = types.ListToolsResult(tools=[_listed(record) for record in registry.tools()])
        instructions = "\n".join(registry.instructions)
        if len(instructions) > INSTRUCTIONS_LIMIT:
            raise ValueError(f"the instructions are longer than {INSTRUCTIONS_LIMIT} characters")
        self._server = self._build(instructions)
        self._manager = StreamableHTTPSessionManager(
            self._server, json_response=True, stateless=True, max_request_body_size=BODY_LIMIT,
            # Host and Origin are checked for every door, without regard to case, by echo_mcp.auth.HostGuard.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )

    @property
    def app(self) -> App:
        """The ASGI app of streamable HTTP; it serves POST, whatever the path, while `running`."""
        return self._manager.handle_request

    def running(self) -> AbstractAsyncContextManager[None]:
        """Entered once around serving HTTP."""
        return self._manager.run()

    async def serve_stdio(self) -> None:
        """Speak JSON-RPC on stdin and stdout until stdin ends; meanwhile a stray print goes to stderr."""
        async with stdio_server() as (incoming, outgoing):
            await self._server.run(incoming, _Coded(outgoing), self._server.create_initialization_options())

    def _build(self, instructions: str) -> Server[Any]:
        server: Server[Any] = Server(
            "echo", version=__version__, title="ECHO memory", instructions=instructions or None,
            get_tool_input_schema=self._input_schema,
        )
        handlers: tuple[tuple[str, type[Any], Any], ...] = (
            ("tools/list", types.PaginatedRequestParams, self._list_tools),
            ("tools/call", types.CallToolRequestParams, self._call_tool),
            ("resources/list", types.PaginatedRequestParams, self._list_resources),
            ("resources/templates/list", types.PaginatedRequestParams, self._list_templates),
            ("resources/read", types.ReadResourceRequestParams, self._read_resource),
            ("prompts/list", types.PaginatedRequestParams, self._list_prompts),
            ("prompts/get", types.GetPromptRequestParams, self._get_prompt),
        )
        for method, params, handler in handlers:
            server.add_request_handler(method, params, handler)
        # No exporter is ever installed (no telemetry), so the spans would only cost time.
        server.middleware.clear()
        return server

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        record = self._registry.find(name)
        return record.input_schema if record else None

    async def _list_tools(self, _: Any, params: types.PaginatedRequestParams) -> types.ListToolsResult:
        return self._tools

    async def _call_tool(self, context: Any, params: types.CallToolRequestParams) -> dict[str, Any]:
        record = self._registry.find(params.name)
        if record is None:
            near = self._registry.nearest(params.name)
            hint = f" Did you mean {near}?" if near else ""
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool.{hint}", {"code": "not-found"})
        arguments = params.arguments or {}
        envelope = await self._registry.call(record.name, arguments, _client_key(context, params))
        return {
            "content": [{"type": "text", "text": outcomes.text(record.render, envelope, record.limit(arguments))}],
            "structuredContent": envelope,
            "isError": outcomes.is_error(envelope),
            "resultType": "complete",
        }

    async def _list_resources(self, _: Any, params: types.PaginatedRequestParams) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[])

    async def _list_templates(
        self, _: Any, params: types.PaginatedRequestParams
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[
            types.ResourceTemplate(
                name=record.name, uri_template=record.template, description=record.description,
                mime_type="text/markdown",
            )
            for record in self._registry.resources()
        ])

    async def _read_resource(self, _: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        envelope = await self._registry.read(unquote(str(params.uri)))
        if not envelope.get("ok"):
            # Parts of the protocol know no tool results: what is wrong with the request is -32602 here.
            code = types.INTERNAL_ERROR if outcomes.is_outage(envelope) else types.INVALID_PARAMS
            message = " ".join(str(envelope.get(key, "")) for key in ("error", "hint"))
            raise MCPError(code, message.strip(), {"code": envelope.get("code")})
        return types.ReadResourceResult(contents=[
            types.TextResourceContents(uri=params.uri, text=str(envelope["content"]), mime_type="text/markdown")
        ])

    async def _list_prompts(self, _: Any, params: types.PaginatedRequestParams) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[
            types.Prompt(name=record.name, description=record.description) for record in self._registry.prompts()
        ])

    async def _get_prompt(self, _: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        record = self._registry.prompt(params.name)
        if record is None:
            raise MCPError(types.INVALID_PARAMS, "Unknown prompt.", {"code": "not-found"})
        content = types.TextContent(type="text", text=record.text)
        return types.GetPromptResult(
            description=record.description, messages=[types.PromptMessage(role="user", content=content)]
        )


class _Coded:
    """The outgoing stream of stdio; errors that the SDK made itself get a code for machines, as over HTTP."""

    def __init__(self, outgoing: Any) -> None:
        self._outgoing = outgoing

    async def send(self, item: Any) -> None:
        """Send one message."""
        if isinstance(item.message, types.JSONRPCError):
            error = item.message.error
            error.data = coded(error.code, error.data)
        await self._outgoing.send(item)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._outgoing.aclose()

    async def __aenter__(self) -> _Coded:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _listed(record: ToolRecord) -> types.Tool:
    if len(record.description) > INSTRUCTIONS_LIMIT:
        raise ValueError(f"the description of {record.name} is longer than {INSTRUCTIONS_LIMIT} characters")
    return types.Tool(
        name=record.name, description=record.description, input_schema=record.input_schema,
        output_schema=record.output_schema,
        annotations=types.ToolAnnotations.model_validate(record.annotations),
    )


def _client_key(context: Any, params: types.CallToolRequestParams) -> str:
    """The client's own name for the call: `_meta` first, then the header of the HTTP request there may be."""
    key = (params.meta or {}).get(KEY_IN_META)
    if key is not None:
        return key if isinstance(key, str) and key else "\0"  # no text: refused as a key
    request = getattr(context, "request", None)
    return request.headers.get("idempotency-key", "") if request is not None else ""
