"""A write that is killed at any of its steps is whole after the restart, or was never begun (spec 6.2)."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from crashpoints import DATABASE, STEPS, SYSTEM_CALLS, Op, call, context, crashes
from echo_context import OpContext
from opsfixture import put

# Test runners have threads of their own; the forked children use nothing of them.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small vault with an inbox, two people who link to each other, a project, a scope and a rollup."""
    folder = tmp_path_factory.mktemp("template")
    (folder / "vault").mkdir()
    ctx = context(folder, "2026-11-29T10:00:00+01:00")
    for arguments in (
        {"title": "Ada Lovelace", "kind": "person", "body": "Wrote programs."},
        {"title": "Charles Babbage", "kind": "person", "body": "Knew Ada Lovelace."},
        {"title": "Use iron", "kind": "decision", "body": "It is cheap."},
        {"title": "Engine", "kind": "project",
         "body": "Built by Charles Babbage.\n\n## Log\n\n- begun\n\n## Status\n\nold"},
        {"title": "buy brass"}, {"title": "Grace writes compilers"}, {"title": "call the smith"},
    ):
        assert call(ctx, Op("echo_capture", arguments))["ok"]
    assert call(ctx, Op("echo_set_scope", {"scope": "Drawing"}))["ok"]
    ctx.close()
    put(folder, "journal/plain.md", "See [[ada-lovelace]] and [[Charles Babbage|him]].\n")
    return folder


def first_version(ctx: OpContext) -> dict[str, Any]:
    """A restore of the state before the newest change of the scope."""
    path = "_agent/context/current-context.md"
    return {"path": path, "version_id": ctx.history.versions(path)[0].id, "confirm": True}


def creation(ctx: OpContext) -> dict[str, Any]:
    """A restore of the state before a note was made: it goes to the trash."""
    path = "resources/people/ada-lovelace.md"
    return {"path": path, "version_id": ctx.history.versions(path)[-1].id, "confirm": True}


REFLECT = [
    {"action": "append", "path": "engine", "line": "- wants brass"},
    {"action": "capture", "title": "Grace Hopper", "kind": "person", "body": "Wrote compilers with Ada Lovelace."},
    {"action": "append", "path": "engine", "line": "- wants oil"},
]
OPS = {
    "append": Op("echo_append_note", {"path": "engine", "line": "- oiled", "section": "Log"}),
    "capture a line": Op("echo_capture", {"title": "new idea", "tags": ["x"]}),
    "capture a note": Op("echo_capture", {"title": "Use brass", "kind": "decision", "supersedes": "Use iron",
                                          "body": "Iron rusts, Ada Lovelace said."}),
    "capture by force": Op("echo_capture", {"title": "Ada Lovelace", "kind": "person", "body": "Another one.",
                                            "force": True}),
    "merge": Op("echo_capture", {"title": "Countess", "kind": "person", "body": "Charles Babbage was a friend.",
                                 "tags": ["math"], "merge_into": "ada-lovelace"}),
    "rollup": Op("echo_capture", {"title": "Week", "kind": "rollup", "period": "2026-W49", "body": "Brass."}),
    "patch, replace": Op("echo_patch_note", {"path": "engine", "operation": "replace", "target_type": "heading",
                                             "target": "Status", "content": "new"}),
    "patch, prepend": Op("echo_patch_note", {"path": "engine", "operation": "prepend", "target_type": "heading",
                                             "target": "Log", "content": "- first"}),
    "patch, title": Op("echo_patch_note", {"path": "engine", "operation": "replace", "target_type": "frontmatter",
                                           "target": "title", "content": "Great Engine"}),
    "link": Op("echo_link", {"a": "engine", "b": "ada-lovelace", "relation": "programmed by"}),
    "move": Op("echo_move_note", {"path": "ada-lovelace", "new_path": "resources/people/countess.md", "confirm": True}),
    "move a project": Op("echo_move_note", {"path": "engine", "new_path": "projects/archived/engine.md",
                                            "confirm": True}),
    "set the scope": Op("echo_set_scope", {"scope": "Building"}),
    "restore": Op("echo_restore_note", first_version),
    "undo a creation": Op("echo_restore_note", creation),
    "reflect": Op("echo_reflect", {"proposals": REFLECT, "apply": True}),
    "triage": Op("echo_triage_inbox", {"apply": True, "proposals": [
        {"line": "Grace writes compilers", "action": "capture", "title": "Grace Hopper", "kind": "person"},
        {"line": "buy brass", "action": "append", "path": "engine", "text": "- buy brass"},
        {"line": "call the smith", "action": "discard"},
    ]}),
    "log the session": Op("echo_log_session", {
        "slug": "brass day", "log_body": "Chose brass.", "agent_log_line": "chose brass", "scope": "Casting",
        "reflect": REFLECT[:1], "apply": True}),
}


@pytest.mark.parametrize("name", OPS)
def test_a_write_killed_at_any_step_is_whole_after_the_restart(name: str, template: Path, tmp_path: Path) -> None:
    """As before, or as undisturbed, byte for byte; nothing waits and nothing is parked."""
    survives(name, template, tmp_path, STEPS)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPS)
def test_a_write_killed_at_any_system_call_is_whole_after_the_restart(
    name: str, template: Path, tmp_path: Path
) -> None:
    """The same with every write, sync and change of a name in the vault's folder."""
    survives(name, template, tmp_path, DATABASE + SYSTEM_CALLS)


def survives(name: str, template: Path, folder: Path, steps: list[tuple[Any, str]]) -> None:
    seen = set()
    for crash in crashes(template, folder, OPS[name], steps):
        assert crash.open == [], crash.step
        whole = crash.after == crash.undisturbed
        assert whole or crash.after == crash.before, (crash.step, differences(crash.after, crash.undisturbed))
        seen.add(whole)
    assert seen == {False, True}


def differences(found: dict[str, bytes], wanted: dict[str, bytes]) -> dict[str, tuple[bytes | None, bytes | None]]:
    """The files that differ."""
    return {path: (found.get(path), wanted.get(path)) for path in sorted({*found, *wanted})
            if found.get(path) != wanted.get(path)}
