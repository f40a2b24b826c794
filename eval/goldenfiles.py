"""What `eval/golden/` pins: the bytes of a vault and what `tools/list` answers; `make golden` renews it.

    eval/golden/bootstrap/          the tree of a vault that was just set up
    eval/golden/vault/              the tree after every kind of capture, triage, reflect, scope and session
    eval/golden/tools-core.json     tools/list of each profile
    eval/golden/tools-full.json

The clock stands still, so the bytes are the same on every machine.
"""
from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from echo_bootstrap import bootstrap_op
from echo_context import OpContext
from echo_mcp.registry import Registry, ToolRecord
from echo_mcp.toolsets.memory import MemoryToolset
from opsfixture import call, make_ctx, snapshot

GOLDEN = Path(__file__).parent / "golden"
PROFILES = ("core", "full")
TREES = ("bootstrap", "vault")

CAPTURES: tuple[dict[str, Any], ...] = (
    {"title": "Ada Lovelace", "kind": "person", "aliases": ["Ada King"], "tags": ["math"],
     "body": "Mathematician who wrote the first program."},
    {"title": "Analytical Engine", "kind": "project",
     "body": "A machine that Ada Lovelace wrote for.\n\n## Status\n\nDrawing.\n\n## Log\n\n- begun"},
    {"title": "Difference Engine", "kind": "project", "status": "archived", "body": "# Difference Engine\n\nUnbuilt."},
    {"title": "Babbage & Co.", "kind": "company", "body": "Builds the Analytical Engine."},
    {"title": "Jürgen Groß", "kind": "person", "body": "Makes gears. Colon: in a body, #no-tag."},
    {"title": "Ada King", "kind": "person", "body": "Countess of Lovelace.", "tags": ["nobility"],
     "merge_into": "ada-lovelace"},
    {"title": "Punched card", "kind": "concept", "body": "Holds a program, see [[Analytical Engine]]."},
    {"title": "北京 计划", "kind": "concept", "body": "一个计划。"},
    {"title": "C", "kind": "concept", "body": "The language."},
    {"title": "C++", "kind": "concept", "body": "Another language."},
    {"title": "!!!", "kind": "concept", "body": "A title without letters."},
    {"title": "Sketch: notes by the translator", "kind": "reference", "body": "Taylor's memoirs, volume 3.",
     "sources": ["https://example.org/sketch", "resources/people/ada-lovelace"]},
    {"title": "Gear review", "kind": "meeting", "date": "2026-11-27", "body": "Ada Lovelace and Jürgen Groß met."},
    {"title": "Workshop", "kind": "area", "domain": "personal", "body": "Tools and brass."},
    {"title": "Accounts", "kind": "area", "body": "Bills."},
    {"title": "Prefers metric units", "kind": "semantic", "body": "In every answer."},
    {"title": "First demonstration", "kind": "episodic", "body": "The engine ran for an hour."},
    {"title": "Waiting for brass", "kind": "working", "body": "Ordered on Friday."},
    {"title": "Cut a gear", "kind": "skill", "body": "1. Mark\n2. Cut\n\n```\nnot a # heading\n```"},
    {"title": "Use iron", "kind": "decision", "date": "2026-11-20", "body": "It is cheap."},
    {"title": "Use brass", "kind": "decision", "body": "Iron rusts.", "supersedes": "2026-11-20-use-iron"},
    {"title": "Week 49", "kind": "rollup", "period": "2026-W49", "body": "Brass."},
    {"title": "November", "kind": "rollup", "period": "2026-11", "body": "Drawing."},
    {"title": "Fourth quarter", "kind": "rollup", "period": "2026-Q4", "body": "Building."},
    {"title": "The year", "kind": "rollup", "period": "2026", "body": "An engine."},
    {"title": "buy more brass #workshop"},
    {"title": "Charles Babbage likes mechanical organs"},
    {"title": "look at the weather"},
    {"title": "answer the letter"},
)
"""Every kind, every folder, and the names and bodies that are easy to get wrong."""


def trees(folder: Path) -> dict[str, dict[str, bytes]]:
    """The golden trees, made in `folder`: tree name -> path -> bytes."""
    ctx = make_ctx(folder)
    bootstrap_op(ctx=ctx)
    made = {"bootstrap": snapshot(folder)}
    _live(ctx)
    made["vault"] = snapshot(folder)
    ctx.history.close()
    return made


def _live(ctx: OpContext) -> None:
    for arguments in CAPTURES:
        _do(ctx, "capture", **arguments)
    _do(ctx, "link", a="Ada Lovelace", b="Analytical Engine")
    _do(ctx, "link", a="Jürgen Groß", b="Babbage & Co.", relation="makes gears for")
    _do(ctx, "append_note", path="analytical-engine", line="- ordered brass", section="Log")
    _do(ctx, "patch_note", path="analytical-engine", operation="replace", target_type="heading", target="Status",
        content="Cutting brass.")
    for scope in ("Drawing the engine", "Building the Analytical Engine"):
        _do(ctx, "set_scope", scope=scope)
    items = _do(ctx, "triage_inbox")["items"]
    _do(ctx, "triage_inbox", apply=True, proposals=[
        {"line": items[0]["id"], "action": "append", "path": "waiting-for-brass", "text": "- buy more brass"},
        {"line": items[1]["id"], "action": "capture", "title": "Charles Babbage", "kind": "person",
         "body": "Likes mechanical organs."},
        {"line": items[2]["id"], "action": "discard"},
        {"line": items[3]["id"], "action": "keep"},
    ])
    session = {"log_body": "Chose brass and ordered it.\n\n## Open\n\n- [ ] cut it", "agent_log_line": "chose brass"}
    _do(ctx, "log_session", slug="brass day", apply=True, **session, reflect=[
        {"action": "capture", "title": "Likes brass", "kind": "semantic", "body": "More than iron."},
        {"action": "append", "path": "charles-babbage", "line": "- prefers brass"},
    ])
    _do(ctx, "log_session", slug="brass day", apply=True, **{**session, "log_body": "A second one in this minute."},
        scope="Cutting brass")


def _do(ctx: OpContext, tool: str, **arguments: Any) -> dict[str, Any]:
    envelope = call(ctx, tool, **arguments)
    if not envelope["ok"] or any(not row["ok"] for row in envelope.get("results", ())):
        raise AssertionError(f"{tool} {arguments}: {envelope}")
    return envelope


def listed(profile: str, folder: Path) -> list[ToolRecord]:
    """The records of a profile's tools, in order."""
    registry = Registry()
    ctx = make_ctx(folder)
    MemoryToolset(ctx, ctx, core_only=profile == "core").register_tools(registry)
    return registry.tools()


def tools_json(profile: str, folder: Path) -> bytes:
    """What tools/list answers for a profile, as readable JSON."""
    shown = [
        {"name": record.name, "description": record.description, "inputSchema": record.input_schema,
         "outputSchema": record.output_schema, "annotations": record.annotations}
        for record in listed(profile, folder)
    ]
    return (json.dumps(shown, ensure_ascii=False, indent=1) + "\n").encode("utf-8")


def golden_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file of `eval/golden/`: `(path below it, bytes)`."""
    for name, tree in trees(folder).items():
        for path, data in tree.items():
            yield f"{name}/{path}", data
    for profile in PROFILES:
        yield f"tools-{profile}.json", tools_json(profile, folder)


def main() -> None:
    """Replace `eval/golden/`."""
    with tempfile.TemporaryDirectory() as name:
        files = dict(golden_files(Path(name)))
    shutil.rmtree(GOLDEN, ignore_errors=True)
    for path, data in files.items():
        (GOLDEN / path).parent.mkdir(parents=True, exist_ok=True)
        (GOLDEN / path).write_bytes(data)


if __name__ == "__main__":
    main()
