"""Undo under edits by hand, previews that change nothing, and markup in fields."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import echo_tools
import pytest
from opsfixture import call, get, make_ctx, put, snapshot
from restvault import serving
from test_bad_input import SESSION

from faults.hosts import rest_host

NOTE = "resources/concepts/engine.md"


def replaced(folder: Path) -> Any:
    """A context in which the note said "first" and was replaced by "second"."""
    ctx = make_ctx(folder)
    call(ctx, "capture", title="Engine", kind="concept", body="## State\n\nfirst")
    assert call(ctx, "patch_note", path=NOTE, operation="replace", target_type="heading", target="State",
                content="second")["ok"]
    return ctx


def test_an_edit_by_hand_before_a_restore_is_shown_and_kept(tmp_path: Path) -> None:
    """HU-03: the preview shows the edit going, and afterwards it is a version that comes back byte for byte."""
    ctx = replaced(tmp_path)
    version = call(ctx, "note_history", path=NOTE)["versions"][0]["id"]
    edited = get(tmp_path, NOTE) + "\nBy hand, canary 71.\n"
    put(tmp_path, NOTE, edited)
    shown = call(ctx, "restore_note", path=NOTE, version_id=version)
    assert "-By hand, canary 71." in shown["diff"]
    assert get(tmp_path, NOTE) == edited
    assert call(ctx, "restore_note", path=NOTE, version_id=version, confirm=True)["action"] == "restored"
    assert "first" in get(tmp_path, NOTE) and "canary 71" not in get(tmp_path, NOTE)
    newest = call(ctx, "note_history", path=NOTE)["versions"][0]
    assert call(ctx, "restore_note", path=NOTE, version_id=newest["id"], confirm=True)["action"] == "restored"
    assert get(tmp_path, NOTE) == edited
    ctx.close()


@pytest.mark.parametrize("gone", ["deleted", "renamed"])
def test_a_deleted_note_is_restored_and_another_one_at_its_place_is_kept(tmp_path: Path, gone: str) -> None:
    """HU-08: at its old path; a different note that stands there goes only with `confirm`, and is a version then."""
    ctx = replaced(tmp_path)
    version = call(ctx, "note_history", path=NOTE)["versions"][0]["id"]
    file = tmp_path / "vault" / NOTE
    if gone == "deleted":
        file.unlink()
    else:
        file.rename(file.with_name("renamed.md"))
    ctx.catalog.refresh()
    assert call(ctx, "restore_note", path=NOTE, version_id=version, confirm=True)["ok"]
    assert "first" in get(tmp_path, NOTE)
    other = "# Somebody else's note\n\ncanary 72\n"
    put(tmp_path, NOTE, other)
    assert call(ctx, "restore_note", path=NOTE, version_id=version)["action"] == "preview"
    assert get(tmp_path, NOTE) == other
    assert call(ctx, "restore_note", path=NOTE, version_id=version, confirm=True)["ok"]
    newest = call(ctx, "note_history", path=NOTE)["versions"][0]["id"]
    assert call(ctx, "restore_note", path=NOTE, version_id=newest, confirm=True)["ok"]
    assert get(tmp_path, NOTE) == other
    ctx.close()


def files(folder: Path) -> dict[str, bytes]:
    """Everything below vault and state, but for the companions of open databases."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.name.endswith(("-shm", "-wal", ".lock"))}


def test_no_preview_changes_vault_or_state(tmp_path: Path) -> None:
    """HU-09, MS-04: without confirm, without apply, with dry_run, and at the gate, twenty inputs for each."""
    ctx = replaced(tmp_path)
    call(ctx, "capture", title="buy brass")
    version = call(ctx, "note_history", path=NOTE)["versions"][0]["id"]
    ctx.keep()
    before = files(tmp_path)
    for number in range(20):
        append = [{"action": "append", "path": NOTE, "line": f"- {number}"}]
        previews = [
            ("restore_note", {"path": NOTE, "version_id": version}), ("move_note", {"path": NOTE, "new_path":
             f"resources/concepts/motor{number}.md"}), ("reflect", {"proposals": append}),
            ("triage_inbox", {"proposals": [{"line": "buy brass", "action": "discard"}]}),
            ("log_session", {**SESSION, "reflect": append}),
            ("capture", {"title": f"New {number}", "kind": "person", "body": "b", "dry_run": True}),
            ("capture", {"title": "Engine", "kind": "concept", "body": f"other {number}"}),
            ("capture", {"title": f"line {number}", "dry_run": True}),
            ("append_note", {"path": NOTE, "line": f"- {number}", "dry_run": True}),
            ("patch_note", {"path": NOTE, "operation": "replace", "target_type": "heading", "target": "State",
                            "content": f"{number}", "dry_run": True}),
            ("link", {"a": NOTE, "b": "inbox/captures/inbox.md", "dry_run": True}),
            ("set_scope", {"scope": f"scope {number}", "dry_run": True}),
        ]
        for tool, arguments in previews:
            answer = call(ctx, tool, **arguments)
            if answer.get("code") == "invalid-argument" and answer.get("field") == "dry_run":
                continue  # a tool without previews
            assert answer.get("action") in ("preview", "duplicate-gate", "unchanged"), (tool, answer)
    assert files(tmp_path) == before
    ctx.close()


@pytest.mark.slow
def test_tools_that_read_send_the_api_no_write(tmp_path: Path) -> None:
    """MS-05: every tool that says it only reads, with fifty inputs each; the API hears of GET and searches only."""
    inputs = ["engine", "x", "areas/business/n0.md", "2026-W48", "ada", "../x", "", "inbox", "week", "a b c"]
    with rest_host(tmp_path) as host:
        before = snapshot(tmp_path)
        host.api.log.clear()
        for tool in (tool for tool in echo_tools.TOOLS if tool.reads):
            for turn in range(50):
                word = inputs[turn % len(inputs)]
                host.server.call(tool.name, **{param.name: word for param in tool.params if param.required})
        sent = {(entry.method, entry.path) for entry in host.api.log.entries}
        assert {method for method, _ in sent} <= {"GET", "POST"}
        assert {path for method, path in sent if method == "POST"} <= {"/search/"}
        assert snapshot(tmp_path) == before


def test_two_long_titles_that_differ_at_their_end(tmp_path: Path) -> None:
    """CR-19: two files of names that a disk takes, each found by its title; on a folder and behind the API."""
    with serving(_made(tmp_path / "rest")) as rest:
        for ctx in (make_ctx(tmp_path / "folder"), make_ctx(tmp_path / "behind", backend=rest.vault)):
            paths = []
            for end in ("甲", "乙"):
                made = call(ctx, "capture", title="長" * 290 + end, kind="concept", body=f"It ends in {end}.",
                            force=True)
                assert made["action"] == "created", made
                paths.append(made["path"])
                assert max(len(part.encode()) for part in made["path"].split("/")) <= 255
            assert len(set(paths)) == 2
            for end, path in zip(("甲", "乙"), paths):
                found = call(ctx, "resolve", mention="長" * 290 + end)
                assert found["path"] == path, found
            ctx.close()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


ODD = ["a]] b", "a | b", "# a", "--- a", "[[a]]", "a: b", "'a", "\"a\"", "- a", "{{a", "%%a%%", "&a", "*a", "`a`",
       "<a>", "!a", "a #tag", "@a", "> a", "1. a", "a\\b"]


@pytest.mark.parametrize("word", ODD)
def test_markup_in_a_field_stays_in_its_field(tmp_path: Path, word: str) -> None:
    """CR-21: title, tag, alias, line and relation of odd text: one item, one heading, one block, and it reads back."""
    ctx = make_ctx(tmp_path)
    made = call(ctx, "capture", title=f"{word} thing", kind="concept", body="Body.", aliases=[word])
    if not made["ok"]:
        assert made["code"] in ("invalid-argument", "active-content") and made.get("field"), made
        return
    text = get(tmp_path, made["path"])
    _, _, body = text.partition("\n---\n")
    assert text.startswith("---\n") and "\n---" not in body
    assert [line for line in body.splitlines() if line.startswith("#")] == [f"# {word} thing"]
    again = make_ctx(tmp_path)
    found = call(again, "get_note", path=made["path"])
    assert json.loads(json.dumps(found["frontmatter"]))["title"] == f"{word} thing"
    assert found["frontmatter"]["aliases"] == [word]
    answer = call(again, "append_note", path=made["path"], line=f"- {word}")
    assert answer["ok"], answer
    assert get(tmp_path, made["path"]) == text + f"- {word}\n"
    ctx.close()
    again.close()
