"""Lint, sweep, decay, reindex and the lock by hand."""
from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from echo_bootstrap import bootstrap_op
from echo_context import OpContext
from echo_core.errors import InvalidArgument
from echo_locking import lock_op, unlock_op
from echo_maintenance import decay_op, lint_op, reindex_op, sweep_op
from opsfixture import get, make_ctx, put, snapshot

HEALTH = "_agent/health/2026-11-vault-health.md"
LONG_AGO = 1_500_000_000


@pytest.fixture
def ctx(tmp_path: Path) -> OpContext:
    """A context over a vault that was just set up."""
    made = make_ctx(tmp_path)
    bootstrap_op(ctx=made)
    return made


def found(answer: dict[str, object], check: str) -> list[str]:
    """The paths a check names."""
    rows = answer["violations"]
    assert isinstance(rows, list)
    return [row["path"] for row in rows if row["check"] == check]


def test_lint_names_check_and_note(ctx: OpContext, tmp_path: Path) -> None:
    """Each finding says which check, which path and what is wrong; no byte changes."""
    put(tmp_path, "projects/active/engine.md", "---\ntype: project\nstatus: archived\n---\n\n[[Nowhere]]\n")
    before = snapshot(tmp_path)
    answer = lint_op(ctx=ctx)
    assert found(answer, "folder-status-mismatch") == ["projects/active/engine.md"]
    assert found(answer, "broken-link") == ["projects/active/engine.md"]
    assert answer["counts"]["broken-link"] == 1
    assert snapshot(tmp_path) == before


def test_lint_can_be_asked_for_one_check(ctx: OpContext, tmp_path: Path) -> None:
    """Other findings are left out."""
    put(tmp_path, "projects/active/engine.md", "---\nstatus: archived\n---\n\n[[Nowhere]]\n")
    assert set(lint_op(["broken-link"], ctx=ctx)["counts"]) == {"broken-link"}


def test_lint_refuses_a_check_it_does_not_have(ctx: OpContext) -> None:
    """The refusal lists the real ones."""
    with pytest.raises(InvalidArgument) as refused:
        lint_op(["broken-links"], ctx=ctx)
    assert "broken-link," in refused.value.hint


def test_a_sweep_of_a_clean_vault_writes_nothing(ctx: OpContext, tmp_path: Path) -> None:
    """No finding, no health note, no churn for people's sync."""
    before = snapshot(tmp_path)
    assert sweep_op(ctx=ctx)["action"] == "unchanged"
    assert snapshot(tmp_path) == before


def test_a_sweep_writes_the_health_note(ctx: OpContext, tmp_path: Path) -> None:
    """The findings stand in this month's note, in code, so that a broken link is not repeated as a link."""
    put(tmp_path, "notes/a.md", "---\ntitle: A\n---\n\n[[Nowhere]]\n")
    answer = sweep_op(ctx=ctx)
    assert answer["action"] == "updated"
    assert answer["path"] == HEALTH
    text = get(tmp_path, HEALTH)
    assert text.startswith("---\ntype: health\ntitle: Vault Health 2026-11\ncreated: 2026-11-30\n")
    assert "- broken-link: `notes/a.md`: `" in text
    again = sweep_op(ctx=ctx)
    assert again["action"] == "unchanged"
    assert found(again, "broken-link") == ["notes/a.md"]


def test_a_second_sweep_changes_no_byte_on_another_day(ctx: OpContext, tmp_path: Path) -> None:
    """The stamp moves only with the findings."""
    put(tmp_path, "notes/a.md", "[[Nowhere]]\n")
    sweep_op(ctx=ctx)
    before = snapshot(tmp_path)
    sweep_op(ctx=make_ctx(tmp_path, "2026-11-30T23:00:00+01:00"))
    assert snapshot(tmp_path) == before


def test_a_repaired_note_leaves_the_health_note(ctx: OpContext, tmp_path: Path) -> None:
    """What is gone is gone from the list, and what a person added to the note stays."""
    put(tmp_path, "notes/a.md", "[[Nowhere]]\n")
    sweep_op(ctx=ctx)
    put(tmp_path, HEALTH, get(tmp_path, HEALTH) + "\n## Mine\n\nKeep this.\n")
    put(tmp_path, "notes/a.md", "No link.\n")
    sweep_op(ctx=ctx)
    text = get(tmp_path, HEALTH)
    assert "broken-link" not in text
    assert text.endswith("## Mine\n\nKeep this.\n")


def test_a_fast_sweep_looks_at_changed_notes_and_keeps_the_rest(ctx: OpContext, tmp_path: Path) -> None:
    """Findings about notes it did not look at stay in the list; those about notes it did are renewed."""
    put(tmp_path, "notes/old.md", "[[Nowhere]]\n")
    os.utime(tmp_path / "vault/notes/old.md", (LONG_AGO, LONG_AGO))
    put(tmp_path, "notes/new.md", "[[Elsewhere]]\n")
    sweep_op(ctx=ctx)
    put(tmp_path, "notes/new.md", "No link.\n")
    answer = sweep_op(fast=True, ctx=ctx)
    assert answer["checked"] < len(ctx.catalog.paths())
    assert found(answer, "broken-link") == []
    text = get(tmp_path, HEALTH)
    assert "notes/old.md" in text
    assert "broken-link: `notes/new.md`" not in text


def test_decay_proposes_what_was_left_alone(ctx: OpContext, tmp_path: Path) -> None:
    """Working memory past 14 days, active projects untouched for 60, inbox items past 7; nothing is touched."""
    put(tmp_path, "_agent/memory/working/old.md", "---\ntitle: Old\nupdated: 2026-11-15\n---\n")
    put(tmp_path, "_agent/memory/working/fresh.md", "---\ntitle: Fresh\nupdated: 2026-11-16\n---\n")
    put(tmp_path, "projects/active/slow.md", "---\ntitle: Slow\nupdated: 2026-09-30\n---\n")
    put(tmp_path, "projects/active/live.md", "---\ntitle: Live\nupdated: 2026-10-01\n---\n")
    put(tmp_path, "projects/archived/done.md", "---\ntitle: Done\nupdated: 2020-01-01\n---\n")
    put(tmp_path, "inbox/captures/inbox.md", "# Inbox\n\n- 2026-11-22: past\n- 2026-11-23: not yet\n")
    before = snapshot(tmp_path)
    rows: list[tuple[str, int]] = [(row["title"], row["age_days"]) for row in decay_op(ctx=ctx)["proposals"]]
    assert rows == [("Slow", 61), ("Old", 15), ("past", 8)]
    assert snapshot(tmp_path) == before


def test_reindex_brings_the_index_up_to_the_notes(ctx: OpContext, tmp_path: Path) -> None:
    """Notes added by hand get entries, those of removed notes go, the file is canonical."""
    put(tmp_path, "resources/people/ada.md", "---\ntype: person\ntitle: Ada\nupdated: 2026-11-01\n---\n")
    put(tmp_path, "_agent/index/entities.json", json.dumps({"version": 1, "entities": {
        "gone": {"aliases": [], "kind": "person", "path": "resources/people/gone.md", "title": "Gone", "updated": ""},
    }}))
    answer = reindex_op(ctx=ctx)
    assert (answer["action"], answer["added"], answer["removed"]) == ("reindexed", ["ada"], ["gone"])
    entities = json.loads(get(tmp_path, "_agent/index/entities.json"))["entities"]
    assert list(entities) == ["ada"]
    assert reindex_op(ctx=ctx)["action"] == "unchanged"


def test_reindex_sets_a_corrupt_index_aside(ctx: OpContext, tmp_path: Path) -> None:
    """The broken bytes are kept under a stamped name; they are never silently emptied."""
    put(tmp_path, "resources/people/ada.md", "# Ada\n")
    put(tmp_path, "_agent/index/entities.json", "{broken")
    assert reindex_op(ctx=ctx)["entities"] == 1
    files = snapshot(tmp_path)
    assert files["_agent/index/entities.json.corrupt-2026-11-30-1405"] == b"{broken"
    assert b'"ada"' in files["_agent/index/entities.json"]


def test_reindex_waits_for_a_held_lock_and_says_who_has_it(ctx: OpContext, tmp_path: Path) -> None:
    """A decision, not an error: holder and expiry are named, nothing is written."""
    put(tmp_path, "resources/people/ada.md", "# Ada\n")
    lock_op("laptop", ctx=make_ctx(tmp_path))
    waiting = make_ctx(tmp_path)
    waiting.lock._sleep = lambda seconds: None
    waiting.lock._timer = iter(range(0, 1000, 3)).__next__  # type: ignore[assignment]
    answer = reindex_op(ctx=waiting)
    assert (answer["ok"], answer["action"], answer["holder"]) == (False, "lock-held", "laptop")
    assert answer["expires"] == "2026-11-30T14:05:39+01:00"


def test_lock_and_unlock_by_hand(ctx: OpContext, tmp_path: Path) -> None:
    """One process takes the lock, another one of the same name gives it back."""
    taken = lock_op(ctx=ctx)
    assert (taken["action"], taken["holder"]) == ("locked", "operator")
    assert json.loads(get(tmp_path, "_agent/locks/index.json"))["holder"] == "operator"
    assert unlock_op(ctx=make_ctx(tmp_path))["action"] == "unlocked"
    assert not (tmp_path / "vault/_agent/locks/index.json").exists()
    assert unlock_op(ctx=make_ctx(tmp_path))["action"] == "unchanged"


def test_somebody_elses_lock_is_not_taken(ctx: OpContext, tmp_path: Path) -> None:
    """Neither by `lock` nor by `unlock`; `force` is the operator's word."""
    lock_op("laptop", ctx=ctx)
    for op in (lock_op, unlock_op):
        answer = op("phone", ctx=make_ctx(tmp_path))
        assert (answer["ok"], answer["action"], answer["holder"]) == (False, "lock-held", "laptop")
    assert unlock_op("phone", force=True, ctx=make_ctx(tmp_path))["action"] == "unlocked"


def test_an_expired_lock_is_free(ctx: OpContext, tmp_path: Path) -> None:
    """A dead holder blocks nobody for long."""
    lock_op("laptop", ctx=ctx)
    later = make_ctx(tmp_path, "2026-11-30T14:06:30+01:00")
    assert lock_op("phone", ctx=later)["holder"] == "phone"
