"""Storing what a conversation taught: preview, token, apply, each item on its own (spec 3.2)."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from opsfixture import DyingVault, call, get, make_ctx, put, snapshot

ADA = "resources/people/ada-lovelace.md"
PROPOSALS: list[dict[str, Any]] = [
    {"action": "capture", "kind": "person", "title": "Ada Lovelace", "body": "Wrote the first program.",
     "tags": ["math"]},
    {"action": "capture", "title": "ask about the notes on Menabrea"},
    {"action": "append", "path": "projects/active/engine.md", "line": "- Ada joined"},
    {"action": "link", "a": "Engine", "b": "Ada Lovelace"},
    {"action": "discard"},
]


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    put(tmp_path, "projects/active/engine.md", "---\ntype: project\ntitle: Engine\nstatus: active\n---\n\n# Engine\n")
    return tmp_path


def test_a_preview_shows_all_items_and_writes_nothing(folder: Path) -> None:
    """Path, effect and diff of each; later items see the notes that earlier ones make."""
    before = snapshot(folder)
    answer = call(make_ctx(folder), "reflect", proposals=PROPOSALS)
    assert snapshot(folder) == before
    assert [(row["action"], row["path"], row["would"]) for row in answer["plan"]] == [
        ("capture", ADA, "create"),
        ("capture", "inbox/captures/inbox.md", "inbox"),
        ("append", "projects/active/engine.md", "append"),
        ("link", "projects/active/engine.md", "link"),
        ("discard", "", "discard"),
    ]
    assert answer["plan"][3]["other_path"] == ADA
    assert "+- Ada joined\n" in answer["plan"][2]["diff"]


def test_what_is_applied_is_what_the_preview_showed(folder: Path) -> None:
    """The diff of an append and of a link is the change that apply makes, line for line."""
    put(folder, ADA, "---\ntype: person\ntitle: Ada Lovelace\n---\n\n# Ada Lovelace\n")
    ctx = make_ctx(folder)
    plan = call(ctx, "reflect", proposals=PROPOSALS[2:4])["plan"]
    before = get(folder, "projects/active/engine.md")
    call(ctx, "reflect", proposals=PROPOSALS[2:4], apply=True)
    diffs = plan[0]["diff"] + plan[1]["diff"]
    added = [line[1:] for line in diffs.splitlines() if line.startswith("+") and not line.startswith("+++")]
    after = get(folder, "projects/active/engine.md") + get(folder, ADA)
    assert "## Related" in added
    assert all(line in after for line in added)
    assert get(folder, "projects/active/engine.md").startswith(before)


def test_all_items_are_stored_with_the_token(folder: Path) -> None:
    """One result an item, in order, and the notes say it."""
    ctx = make_ctx(folder, token_required=True)
    token = call(ctx, "reflect", proposals=PROPOSALS)["preview_token"]
    answer = call(ctx, "reflect", proposals=PROPOSALS, apply=True, preview_token=token)
    assert answer["action"] == "applied"
    assert [(row["did"], row["ok"]) for row in answer["results"]] == [
        ("created", True), ("inbox", True), ("appended", True), ("linked", True), ("discarded", True)]
    assert "Wrote the first program." in get(folder, ADA)
    assert f"[[{ADA[:-3]}|Ada Lovelace]]" in get(folder, "projects/active/engine.md")
    assert "ask about the notes on Menabrea" in get(folder, "inbox/captures/inbox.md")


def test_a_token_is_good_for_its_own_proposals_only(folder: Path) -> None:
    """Other proposals, or another tool's token, are stale; nothing is written."""
    ctx = make_ctx(folder, token_required=True)
    token = call(ctx, "reflect", proposals=PROPOSALS[:1])["preview_token"]
    before = snapshot(folder)
    answer = call(ctx, "reflect", proposals=PROPOSALS[:2], apply=True, preview_token=token)
    assert (answer["ok"], answer["action"]) == (False, "stale-preview")
    assert snapshot(folder) == before


def test_a_note_that_appears_after_the_preview_makes_it_stale(folder: Path) -> None:
    """What would have been created would now meet the gate, so the operator has to look again."""
    ctx = make_ctx(folder, token_required=True)
    token = call(ctx, "reflect", proposals=PROPOSALS[:1])["preview_token"]
    put(folder, ADA, "---\ntype: person\ntitle: Ada Lovelace\n---\n\n# Ada Lovelace\n\nAnother Ada.\n")
    assert call(ctx, "reflect", proposals=PROPOSALS[:1], apply=True, preview_token=token)["action"] == "stale-preview"


def test_two_proposals_for_one_new_note_meet_the_gate(folder: Path) -> None:
    """The second of two captures of one name is planned and answered as a gate."""
    ctx = make_ctx(folder)
    twins = [PROPOSALS[0], {**PROPOSALS[0], "body": "Somebody else."}]
    assert [row["would"] for row in call(ctx, "reflect", proposals=twins)["plan"]] == ["create", "gate"]
    results = call(ctx, "reflect", proposals=twins, apply=True)["results"]
    assert [row["did"] for row in results] == ["created", "duplicate-gate"]
    assert "Somebody else." not in get(folder, ADA)


def test_a_single_gated_item_answers_with_the_gate_itself(folder: Path) -> None:
    """Nothing was stored, so the envelope is the decision, with the result beside it."""
    put(folder, ADA, "---\ntype: person\ntitle: Ada Lovelace\n---\n\n# Ada Lovelace\n")
    answer = call(make_ctx(folder), "reflect", proposals=PROPOSALS[:1], apply=True)
    assert (answer["ok"], answer["action"]) == (False, "duplicate-gate")
    assert answer["candidates"][0]["path"] == ADA
    assert answer["results"][0]["ok"] is False


def test_storing_twice_is_storing_once(folder: Path) -> None:
    """A repeat of the whole batch answers unchanged and changes no byte."""
    call(make_ctx(folder), "reflect", proposals=PROPOSALS, apply=True)
    done = snapshot(folder)
    answer = call(make_ctx(folder), "reflect", proposals=PROPOSALS, apply=True)
    assert [row["did"] for row in answer["results"]] == ["unchanged"] * 4 + ["discarded"]
    assert snapshot(folder) == done


def test_a_long_body_is_cut_in_the_plan_and_says_so(folder: Path) -> None:
    """The plan stays small; a cut diff is flagged with its real length, the note gets every word."""
    body = "word " * 20000
    ctx = make_ctx(folder)
    proposals = [{**PROPOSALS[0], "body": body}]
    row = call(ctx, "reflect", proposals=proposals)["plan"][0]
    assert len(row["diff"]) <= 20000
    assert row["truncated"] is True
    assert row["total_chars"] > 100000
    call(ctx, "reflect", proposals=proposals, apply=True)
    assert body.strip() in get(folder, ADA)


def test_no_proposals_are_an_error(folder: Path) -> None:
    """An empty list and a missing one name the field."""
    for arguments in ({}, {"proposals": []}):
        answer = call(make_ctx(folder), "reflect", **arguments)
        assert (answer["code"], answer["field"]) == ("invalid-argument", "proposals")


def test_proposals_may_come_as_json_text(folder: Path) -> None:
    """Clients that send objects as strings are understood."""
    answer = call(make_ctx(folder), "reflect", proposals='[{"action": "capture", "title": "a thought"}]')
    assert answer["plan"][0]["would"] == "inbox"


@pytest.mark.parametrize("writes", range(8))
def test_a_vault_that_dies_on_the_way_can_be_finished_later(folder: Path, writes: int) -> None:
    """After any number of writes the answer is vault-unreachable, and the same call later completes the rest."""
    dying = make_ctx(folder, wrap=lambda inner: DyingVault(inner, writes))
    answer = call(dying, "reflect", proposals=PROPOSALS, apply=True)
    if not answer["ok"]:
        assert answer["code"] == "vault-unreachable"
        assert len(answer.get("results", [])) < len(PROPOSALS)
    assert call(make_ctx(folder), "reflect", proposals=PROPOSALS, apply=True)["action"] == "applied"
    assert get(folder, "projects/active/engine.md").count("Ada joined") == 1
    assert get(folder, "projects/active/engine.md").count("[[resources/people/ada-lovelace|") == 1
    assert get(folder, ADA).count("Wrote the first program.") == 1
    assert get(folder, "inbox/captures/inbox.md").count("Menabrea") == 1
