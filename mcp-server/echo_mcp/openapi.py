"""OpenAPI and a readable page, both derived from the registry's records."""
from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import Any

from echo_core.errors import DECISIONS, ERRORS

from echo_mcp import __version__
from echo_mcp.registry import ToolRecord

_STYLE = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}" \
    "table{border-collapse:collapse;width:100%}td,th{border:1px solid #bbb;padding:.3rem .5rem;text-align:left;" \
    "vertical-align:top}code{background:#eee8}pre{overflow:auto}"


def describe(records: Sequence[ToolRecord]) -> dict[str, Any]:
    """The OpenAPI 3.1 document of the REST bridge."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "ECHO", "version": __version__, "description": "One long-term memory, every assistant."},
        "paths": {f"/api/tools/{record.name}": {"post": _operation(record)} for record in records},
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(record: ToolRecord) -> dict[str, Any]:
    failure = {
        "type": "object", "required": ["success", "error", "data"],
        "properties": {
            "success": {"const": False}, "data": {"type": "object"},
            "error": {"type": "object", "required": ["code", "message"],
                      "properties": {"code": {"type": "string"}, "message": {"type": "string"}}},
        },
    }
    success = {
        "type": "object", "required": ["success", "data"],
        "properties": {"success": {"const": True}, "data": record.output_schema},
    }
    responses = {"200": _response("The tool's envelope.", success)}
    if record.writes:
        responses["202"] = _response("Queued: the vault is down, the write follows.", success)
    for status, codes in sorted(_failures().items()):
        responses[str(status)] = _response(" or ".join(codes), failure)
    return {
        "operationId": record.name, "summary": record.description.split(". ")[0].rstrip("."),
        "description": record.description, "tags": [record.group],
        "requestBody": {"required": bool(record.input_schema.get("required")),
                        "content": {"application/json": {"schema": record.input_schema}}},
        "responses": responses,
    }


def _failures() -> dict[int, list[str]]:
    """Codes and decisions by HTTP status, with the two that the bridge adds: 400 no JSON, 401 no token."""
    found: dict[int, list[str]] = {400: ["the body is not JSON"]}
    for code, outcome in (*ERRORS.items(), *DECISIONS.items()):
        found.setdefault(outcome.http_status, []).append(code)
    return found


def _response(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def page(records: Sequence[ToolRecord]) -> str:
    """One HTML page with every tool, its arguments and the fields of its answer."""
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>ECHO</title><style>{_STYLE}</style>",
        "<h1>ECHO: the REST bridge</h1><p><code>POST /api/tools/NAME</code> with the arguments as a JSON object and ",
        "the header <code>Authorization: Bearer TOKEN</code>. The answer is <code>{\"success\", \"data\"}</code>, or ",
        "<code>{\"success\": false, \"error\", \"data\"}</code>. The same as <code>/api/openapi.json</code>.</p>",
    ]
    parts += [_section(record) for record in records]
    return "".join(parts)


def _section(record: ToolRecord) -> str:
    rows = []
    required = record.input_schema.get("required", [])
    for name, schema in record.input_schema.get("properties", {}).items():
        facts = {key: value for key, value in schema.items() if key not in ("description", "items")}
        mark = " (required)" if name in required else ""
        cells = (f"<code>{html.escape(name)}</code>{mark}", html.escape(json.dumps(facts, ensure_ascii=False)),
                 html.escape(schema.get("description", "")))
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    fields = ", ".join(record.output_schema.get("properties", {}))
    head = "<tr><th>argument<th>type<th>meaning</tr>"
    table = f"<table>{head}{''.join(rows)}</table>" if rows else "<p>No arguments.</p>"
    return (f"<h2 id={record.name}>{record.name}</h2><p>{html.escape(record.description)}</p>{table}"
            f"<p>Answers: <code>{html.escape(fields)}</code></p>")
