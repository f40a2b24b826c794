"""A call that is only tried says so, in its structure and in its first line, and changes no byte (spec 3.1, 3.2)."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opsfixture import INSTANT, ZONE, call, get, make_ctx, put
from serverproc import LEGACY, MODERN, Server, running_server
from test_bad_input import tree

ENGINE = "resources/concepts/engine.md"
TEXT = "---\ntype: concept\ntitle: Engine\ntags:\n  - a\n---\n\n# Engine\n\nIt weaves.\n\n## Log\n\n- one ^id\n"
NOTE = {"path": ENGINE, "operation": "append", "dry_run": True}
TRIED: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "a new note": ("echo_capture", {"title": "Loom", "kind": "concept", "body": "Weaves.", "dry_run": True},
                   "create", "would create resources/concepts/loom.md"),
    "an inbox line": ("echo_capture", {"title": "buy brass", "dry_run": True},
                      "inbox", "would add a line to inbox/captures/inbox.md"),
    "a merge": ("echo_capture", {"title": "Gears", "kind": "concept", "body": "Of brass.", "merge_into": "engine",
                                 "dry_run": True}, "update", f"would update {ENGINE}"),
    "a rollup": ("echo_capture", {"title": "Week", "kind": "rollup", "period": "2026-W49", "body": "b",
                                  "dry_run": True}, "create", "would create journal/weekly/2026-W49.md"),
    "a section": ("echo_patch_note", {**NOTE, "target_type": "heading", "target": "Log", "content": "- two"},
                  "patch", f"would patch {ENGINE}"),
    "a key": ("echo_patch_note", {**NOTE, "target_type": "frontmatter", "target": "tags", "content": "b"},
              "patch", f"would patch {ENGINE}"),
    "a block": ("echo_patch_note", {**NOTE, "target_type": "block", "target": "id", "content": "x"},
                "patch", f"would patch {ENGINE}"),
    "a move": ("echo_move_note", {"path": ENGINE, "new_path": "resources/concepts/motor.md"},
               "move", f"would move {ENGINE} to resources/concepts/motor.md"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("tried")
    put(folder, ENGINE, TEXT)
    put(folder, "notes/about.md", "# About\n\nSee [[engine]].\n")
    with running_server(folder, ECHO_CLOCK=INSTANT, ECHO_TZ=ZONE) as running:
        yield running


@pytest.mark.parametrize("era", [MODERN, LEGACY])
@pytest.mark.parametrize("case", TRIED)
def test_what_was_only_tried_is_never_taken_for_done(server: Server, case: str, era: str) -> None:
    """`action: preview` and what it would do; the text opens with it; vault and state stay as they are."""
    name, arguments, would, words = TRIED[case]
    before = tree(server.vault)
    result = server.tool(name, era, **arguments)
    envelope = result["structuredContent"]
    assert (envelope["ok"], envelope["action"], envelope["would"]) == (True, "preview", would)
    assert envelope.get("dry_run") == arguments.get("dry_run")
    assert envelope["diff"]
    first = result["content"][0]["text"].splitlines()[0]
    assert first == f"Preview, nothing was written: {words}"
    assert server.call(name, **arguments) == envelope
    assert tree(server.vault) == before


@pytest.mark.parametrize(("tool", "arguments"), [
    ("capture", {"title": "Engine", "kind": "concept", "body": "It weaves."}),
    ("capture", {"title": "More", "kind": "concept", "body": "It weaves.", "merge_into": "engine"}),
    ("patch_note", {"path": ENGINE, "operation": "append", "target_type": "frontmatter", "target": "tags",
                    "content": "a"}),
])
def test_a_call_that_would_change_nothing_says_unchanged(tmp_path: Path, tool: str, arguments: dict[str, Any]) -> None:
    """The same word as the real call, with `dry_run` beside it."""
    put(tmp_path, ENGINE, TEXT)
    ctx = make_ctx(tmp_path)
    tried = call(ctx, tool, **arguments, dry_run=True)
    assert (tried["action"], tried["dry_run"], tried.get("diff", "")) == ("unchanged", True, "")
    assert call(ctx, tool, **arguments)["action"] == "unchanged"


def test_the_gate_stops_a_dry_run_as_it_would_stop_the_call(tmp_path: Path) -> None:
    """Somebody has to decide first either way."""
    put(tmp_path, ENGINE, TEXT)
    answer = call(make_ctx(tmp_path), "capture", title="engine", kind="concept", body="Other.", dry_run=True)
    assert (answer["ok"], answer["action"]) == (False, "duplicate-gate")


def test_a_dry_run_shows_the_bytes_that_the_call_then_writes(tmp_path: Path) -> None:
    """Added lines of the diff, put together, are the new note."""
    ctx = make_ctx(tmp_path)
    arguments = {"title": "Loom", "kind": "concept", "body": "Weaves.\r\n\r\n- x", "tags": ["a"]}
    diff = call(ctx, "capture", **arguments, dry_run=True)["diff"]
    path = call(ctx, "capture", **arguments)["path"]
    assert diff.startswith(f"--- /dev/null\n+++ b/{path}\n")
    added = [line[1:] for line in diff.splitlines(keepends=True)[3:]]
    assert "".join(added) == get(tmp_path, path)


def test_a_long_diff_says_that_it_was_cut(tmp_path: Path) -> None:
    """An edit that was made, a move, a restore: `truncated` and the full length."""
    lines = "".join(f"- line {n} of many\n" for n in range(2000))
    put(tmp_path, ENGINE, f"# Engine\n\n{lines}")
    put(tmp_path, "notes/about.md", "# About\n\n" + "See [[engine]].\n" * 2000)
    ctx = make_ctx(tmp_path)
    edit = {"path": ENGINE, "operation": "replace", "target_type": "heading", "target": "Engine", "content": "short"}
    whole = call(ctx, "patch_note", **edit, dry_run=True)["diff"]
    made = call(ctx, "patch_note", **edit)
    version = call(ctx, "note_history", path=ENGINE)["versions"][0]["id"]
    for answer in (made, call(ctx, "restore_note", path=ENGINE, version_id=version),
                   call(ctx, "move_note", path=ENGINE, new_path="resources/concepts/motor.md")):
        assert answer["truncated"] is True
        assert answer["total_chars"] > 20_000
        assert len(answer["diff"]) < 13_000
    assert made["total_chars"] == len(whole)
