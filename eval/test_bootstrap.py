"""Setting a vault up, and bringing an older one to the current layout."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from echo_bootstrap import bootstrap_op
from echo_context import OpContext
from echo_core.errors import EchoError, Misconfigured, VaultUnreachable
from echo_migrate import migrate_op
from opsfixture import get, make_ctx, put, snapshot

MARKER = "_agent/echo-vault.md"
FILES = {
    "README.md", "inbox/captures/inbox.md", "_agent/context/current-context.md",
    "_agent/memory/semantic/operator-preferences.md", "_agent/routing.json", "_agent/index/entities.json", MARKER,
}

MARKER_TEXT = """\
---
type: marker
title: ECHO Vault
created: 2026-11-30
updated: 2026-11-30
agent_written: true
schema_version: 3
bootstrapped: 2026-11-30T14:05:09+01:00
---

# ECHO Vault

This folder is an ECHO memory. `schema_version` says which layout it has.
ECHO writes this note last when it sets a vault up; leave it in place.
"""

CONTEXT_TEXT = """\
---
type: context
title: Current Context
created: 2026-11-30
updated: 2026-11-30
agent_written: true
---

# Current Context

## Scope

## Scope History
"""


def test_an_empty_folder_becomes_a_vault(tmp_path: Path) -> None:
    """Every file the format needs is there afterwards, and nothing else."""
    answer = bootstrap_op(ctx=make_ctx(tmp_path))
    assert answer["action"] == "created"
    assert answer["schema_version"] == 3
    assert set(answer["created"]) == FILES == set(snapshot(tmp_path))


def test_the_marker_is_pinned(tmp_path: Path) -> None:
    """Every client reads the same marker bytes."""
    bootstrap_op(ctx=make_ctx(tmp_path))
    assert get(tmp_path, MARKER) == MARKER_TEXT


def test_the_context_note_is_pinned(tmp_path: Path) -> None:
    """The scope note starts empty, with both of its sections."""
    bootstrap_op(ctx=make_ctx(tmp_path))
    assert get(tmp_path, "_agent/context/current-context.md") == CONTEXT_TEXT


def test_the_readme_greets_the_owner_by_name(tmp_path: Path) -> None:
    """Whoever opens the folder learns what it is."""
    bootstrap_op(ctx=make_ctx(tmp_path, owner="Ada"))
    assert get(tmp_path, "README.md").startswith("# The memory of Ada\n")


def test_the_new_index_is_canonical(tmp_path: Path) -> None:
    """An empty index has the bytes of spec 2.4."""
    bootstrap_op(ctx=make_ctx(tmp_path))
    assert get(tmp_path, "_agent/index/entities.json") == '{\n  "entities": {},\n  "version": 1\n}\n'
    assert json.loads(get(tmp_path, "_agent/routing.json"))["version"] == 1


def test_running_it_again_changes_no_byte(tmp_path: Path) -> None:
    """A second run, days later, answers `unchanged`."""
    bootstrap_op(ctx=make_ctx(tmp_path))
    before = snapshot(tmp_path)
    answer = bootstrap_op(ctx=make_ctx(tmp_path, "2026-12-24T09:00:00+01:00"))
    assert answer["action"] == "unchanged"
    assert answer["created"] == []
    assert snapshot(tmp_path) == before


def test_what_a_person_wrote_is_never_overwritten(tmp_path: Path) -> None:
    """Existing files stay byte for byte, whatever they hold; only what is missing is made."""
    mine = {"README.md": "mine\r\n", "inbox/captures/inbox.md": "", "notes/own.md": "---\nbroken: [\n---\n"}
    for path, text in mine.items():
        put(tmp_path, path, text)
    answer = bootstrap_op(ctx=make_ctx(tmp_path))
    assert {path: get(tmp_path, path) for path in mine} == mine
    assert {"README.md", "inbox/captures/inbox.md"} <= set(answer["kept"])


def test_a_readme_in_other_case_counts_as_there(tmp_path: Path) -> None:
    """On a disk that tells case apart, no second README appears beside the first."""
    put(tmp_path, "readme.md", "mine")
    bootstrap_op(ctx=make_ctx(tmp_path))
    assert "README.md" not in snapshot(tmp_path)


class Crash(Exception):
    """The process dies here."""


def crash_at_write(ctx: OpContext, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the vault's writes of files work until the `number`-th, which dies before it changes anything."""
    real = type(ctx.vault).write
    left = [number]

    def write(self: object, path: str, data: bytes, expected: bytes | None) -> None:
        if not path.startswith("_agent/locks/"):
            left[0] -= 1
            if left[0] == 0:
                raise Crash
        real(ctx.vault, path, data, expected)

    monkeypatch.setattr(ctx.vault, "write", write.__get__(ctx.vault), raising=True)


@pytest.mark.parametrize("step", range(1, len(FILES) + 1))
def test_a_crash_at_any_step_leaves_no_marker_and_the_next_run_completes(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A marker means a complete vault; the second run makes exactly what was missing."""
    ctx = make_ctx(tmp_path)
    crash_at_write(ctx, step, monkeypatch)
    with pytest.raises(Crash):
        bootstrap_op(ctx=ctx)
    assert MARKER not in snapshot(tmp_path)
    made = set(snapshot(tmp_path))
    answer = bootstrap_op(ctx=make_ctx(tmp_path))
    assert set(answer["created"]) == FILES - made
    assert set(snapshot(tmp_path)) >= FILES


def test_a_missing_folder_is_an_error_and_not_a_new_vault(tmp_path: Path) -> None:
    """An unmounted disk must not be filled with a second vault."""
    ctx = make_ctx(tmp_path)
    (tmp_path / "vault").rmdir()
    with pytest.raises(VaultUnreachable):
        bootstrap_op(ctx=ctx)
    assert not (tmp_path / "vault").exists()


def test_a_newer_vault_is_left_alone(tmp_path: Path) -> None:
    """A format this program does not know is refused with the cure."""
    put(tmp_path, MARKER, "---\nschema_version: 4\n---\n")
    before = snapshot(tmp_path)
    for op in (bootstrap_op, migrate_op):
        with pytest.raises(Misconfigured) as refused:
            op(ctx=make_ctx(tmp_path))
        assert "Update ECHO" in refused.value.hint
    assert snapshot(tmp_path) == before


def old_vault(tmp_path: Path) -> None:
    """A vault of schema 2 with a project in the wrong folder, links to it, a bare note and a malformed one."""
    put(tmp_path, MARKER, "---\ntitle: Marker\nschema_version: 2 # old\n---\n\nMine.\n")
    put(tmp_path, "projects/active/engine.md", "---\ntype: project\nstatus: archived # done\n---\n\n# Engine\n")
    put(tmp_path, "projects/active/loom.md", "# Loom\n\nSee [[projects/active/engine|Engine]].\n")
    put(tmp_path, "resources/people/ada.md", "---\ntitle: Ada\n---\n\n# Ada\n")
    put(tmp_path, "resources/people/bad.md", "---\ntags: [#abc\n---\n\n# Bad\n")
    put(tmp_path, "own/diary.md", "No frontmatter, and none wanted.\n")


def test_migrate_only_plans_unless_told_to_apply(tmp_path: Path) -> None:
    """The plan names every step, and no byte changes."""
    old_vault(tmp_path)
    before = snapshot(tmp_path)
    answer = migrate_op(ctx=make_ctx(tmp_path))
    assert answer["action"] == "preview"
    assert snapshot(tmp_path) == before
    steps = {(step["action"], step["path"]) for step in answer["plan"]}
    assert ("move", "projects/active/engine.md") in steps
    assert ("frontmatter", "projects/active/loom.md") in steps
    assert ("frontmatter", "resources/people/ada.md") in steps
    assert ("create", "README.md") in steps
    assert answer["plan"][-1]["action"] == "marker"
    assert answer["left_alone"] == ["resources/people/bad.md"]


def test_migrate_does_what_it_planned_and_nothing_else(tmp_path: Path) -> None:
    """Moved with its links, keys added by surgery, malformed and foreign notes untouched, marker brought up."""
    old_vault(tmp_path)
    before = snapshot(tmp_path)
    answer = migrate_op(apply=True, ctx=make_ctx(tmp_path))
    assert all(row["ok"] for row in answer["results"])
    after = snapshot(tmp_path)
    assert after["projects/archived/engine.md"] == before["projects/active/engine.md"]
    assert "projects/active/engine.md" not in after
    loom = get(tmp_path, "projects/active/loom.md")
    assert "[[projects/archived/engine|Engine]]" in loom
    assert "type: project" in loom
    assert "status: active" in loom
    assert get(tmp_path, "resources/people/ada.md") == "---\ntype: person\ntitle: Ada\n---\n\n# Ada\n"
    for path in ("resources/people/bad.md", "own/diary.md"):
        assert after[path] == before[path]
    assert get(tmp_path, MARKER) == "---\ntitle: Marker\nschema_version: 3 # old\n---\n\nMine.\n"
    entities = json.loads(get(tmp_path, "_agent/index/entities.json"))["entities"]
    assert entities["engine"]["path"] == "projects/archived/engine.md"


def test_a_migrated_vault_needs_nothing_more(tmp_path: Path) -> None:
    """Applying twice changes nothing the second time."""
    old_vault(tmp_path)
    migrate_op(apply=True, ctx=make_ctx(tmp_path))
    before = snapshot(tmp_path)
    assert migrate_op(apply=True, ctx=make_ctx(tmp_path))["action"] == "unchanged"
    assert snapshot(tmp_path) == before


def test_a_failed_step_keeps_the_marker_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What worked stays done, what failed is named, and the vault still counts as the older one."""
    old_vault(tmp_path)

    def refuse(*args: object, **options: object) -> None:
        raise EchoError("the disk said no")

    monkeypatch.setattr("echo_migrate.move_op", refuse)
    answer = migrate_op(apply=True, ctx=make_ctx(tmp_path))
    failed = [row for row in answer["results"] if not row["ok"]]
    assert [row["error"] for row in failed] == ["the disk said no"]
    assert "schema_version: 2" in get(tmp_path, MARKER)
    assert (tmp_path / "vault/README.md").exists()


def test_a_project_is_not_moved_onto_another(tmp_path: Path) -> None:
    """When the target is taken the note stays, and lint keeps naming it."""
    old_vault(tmp_path)
    put(tmp_path, "projects/archived/engine.md", "---\ntype: project\nstatus: archived\n---\n\n# Another\n")
    plan = migrate_op(ctx=make_ctx(tmp_path))["plan"]
    assert not [step for step in plan if step["action"] == "move"]
