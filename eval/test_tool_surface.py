"""What a client sees of the tools: the lists of both profiles, their cost, and what is said about each of them.

A change of the surface is a change of `eval/golden/tools-*.json`: renew them with `make golden` and look at the
difference, because every assistant reads it.
"""
from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from echo_mcp.registry import schema_size
from goldenfiles import GOLDEN, PROFILES, listed, tools_json
from serverproc import MODERN, running_server

CHARS_A_TOKEN = 4
LIMITS = {"core": 2500, "full": 8000}
"""Most tokens of name, description and input schema of all tools of a profile (spec 3.2)."""


def surface(profile: str) -> list[dict[str, Any]]:
    return list(json.loads((GOLDEN / f"tools-{profile}.json").read_text(encoding="utf-8")))


def every_tool() -> list[dict[str, Any]]:
    return surface("full")


def nodes(value: Any) -> Iterator[Any]:
    """A JSON value and everything inside it."""
    yield value
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        yield from nodes(child)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_surface_is_the_committed_one(profile: str, tmp_path: Path) -> None:
    """Names, order, descriptions, schemas and annotations; `make golden` renews them."""
    assert json.loads(tools_json(profile, tmp_path)) == surface(profile)
    assert tools_json(profile, tmp_path) == (GOLDEN / f"tools-{profile}.json").read_bytes()


@pytest.mark.parametrize("profile", PROFILES)
def test_a_real_server_lists_the_committed_surface(profile: str, tmp_path: Path) -> None:
    """tools/list over HTTP is the snapshot, with nothing added or lost on the way."""
    with running_server(tmp_path, ready=False, ECHO_MCP_TOOLS=profile) as server:
        answered = server.rpc("tools/list", era=MODERN).json()["result"]["tools"]
    assert answered == surface(profile)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_costs_no_more_than_its_budget(profile: str, tmp_path: Path) -> None:
    """Characters / 4 of name, description and input schema."""
    assert schema_size(listed(profile, tmp_path)) / CHARS_A_TOKEN <= LIMITS[profile]
    shown = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in surface(profile)]
    assert len(json.dumps(shown, ensure_ascii=False, separators=(",", ":"))) / CHARS_A_TOKEN <= LIMITS[profile]


def test_core_is_a_part_of_full_in_the_same_order() -> None:
    """A tool is the same in both profiles."""
    names = {tool["name"] for tool in surface("core")}
    assert surface("core") == [tool for tool in every_tool() if tool["name"] in names]
    assert names == {"echo_load", "echo_recall", "echo_capture", "echo_triage_inbox", "echo_log_session", "echo_health"}


def test_schemas_are_flat_plain_objects() -> None:
    """No `$defs`, no `$ref`, no union a client could trip over; unknown arguments are forbidden."""
    for tool in every_tool():
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            assert schema["type"] == "object"
            keys = {key for node in nodes(schema) if isinstance(node, dict) for key in node}
            assert not keys & {"$defs", "$ref", "definitions", "anyOf", "oneOf", "allOf", "patternProperties"}
        for node in nodes(tool["inputSchema"]):
            if isinstance(node, dict) and node.get("type") == "object":
                assert node["additionalProperties"] is False, tool["name"]
                assert set(node.get("required", [])) <= set(node["properties"])
        assert tool["outputSchema"]["required"] == ["ok"]


def test_a_description_is_at_most_three_sentences_and_short() -> None:
    """Clients cut at 2,048 characters; three sentences are what a model reads."""
    for text in (tool["description"] for tool in every_tool()):
        assert 40 <= len(text) <= 2048, text
        assert len(re.findall(r"[.!?](?=\s+[A-Z`]|$)", text)) <= 3, text
        assert text.endswith("."), text


def test_no_text_of_a_tool_holds_invisible_characters() -> None:
    """What the operator reads is what the model reads: no format, control or private characters."""
    for node in (node for tool in every_tool() for node in nodes(tool)):
        for text in [*node, *node.values()] if isinstance(node, dict) else [node]:
            if isinstance(text, str):
                assert all(unicodedata.category(char) not in ("Cf", "Cc", "Co", "Cs", "Cn", "Zl", "Zp")
                           for char in text), text


def test_descriptions_name_only_tools_and_arguments_that_exist() -> None:
    """A pointer to a tool that is not there would cost a model a turn."""
    names = {tool["name"] for tool in every_tool()}
    for tool in every_tool():
        for node in nodes(tool):
            if isinstance(node, str):
                assert set(re.findall(r"\becho_[a-z_]+", node)) <= names


def test_annotations_say_what_a_tool_does() -> None:
    """All four hints are given; what only reads destroys nothing and may be repeated."""
    for tool in every_tool():
        hints = tool["annotations"]
        assert set(hints) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}, tool["name"]
        if hints["readOnlyHint"]:
            assert not hints["destructiveHint"], tool["name"]
            assert hints["idempotentHint"], tool["name"]


def test_the_hints_are_those_a_client_may_build_on() -> None:
    """Which tools read, and which may replace text."""
    hints = {tool["name"]: tool["annotations"] for tool in every_tool()}
    assert {name for name, hint in hints.items() if hint["readOnlyHint"]} == {
        "echo_recall", "echo_resolve", "echo_get_note", "echo_get_scope", "echo_health", "echo_rollup_data",
        "echo_note_history"}
    assert {name for name, hint in hints.items() if hint["destructiveHint"]} == {
        "echo_patch_note", "echo_move_note", "echo_restore_note"}
    assert not hints["echo_capture"]["destructiveHint"]


def test_tools_that_are_absent_on_purpose_are_absent() -> None:
    """Whole-file writes, deletion and vault-wide upkeep have no tool (docs/skill-and-hooks.md says why)."""
    words = {word for tool in every_tool() for word in tool["name"].split("_")}
    assert not words & {"put", "delete", "sweep", "bootstrap", "migrate", "lock", "unlock", "search", "ls", "map"}
