"""Sorting the inbox: ids, preview without a write, and a line that leaves only after its target and log (spec 3.2)."""
from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest
from echo_inbox import find_item, items_of, without_item
from hypothesis import given, settings
from hypothesis import strategies as st
from opsfixture import call, get, make_ctx, put, snapshot

INBOX = "inbox/captures/inbox.md"
LOG = "inbox/processing-log/2026-11.md"
ENGINE = "projects/active/engine.md"
NOTES = (
    "# Inbox\n\n"
    "- 2026-11-20: call the harbour office #todo #harbour\n"
    "- 2026-11-29: Ada Lovelace wrote the first program\n"
    "* undated thought about issue #12\n"
)


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    put(tmp_path, INBOX, NOTES)
    put(tmp_path, ENGINE, "---\ntype: project\ntitle: Engine\nstatus: active\n---\n\n# Engine\n\n- first\n")
    return tmp_path


def ids(ctx: Any) -> dict[str, str]:
    """Text -> id of the listed items."""
    return {item["text"]: item["id"] for item in call(ctx, "triage_inbox")["items"]}


def test_the_listing_names_each_bullet(folder: Path) -> None:
    """Id, text without date and trailing tags, date, age and tags; nothing is written."""
    before = snapshot(folder)
    answer = call(make_ctx(folder), "triage_inbox")
    assert [{**item, "id": len(item["id"])} for item in answer["items"]] == [
        {"id": 8, "text": "call the harbour office", "date": "2026-11-20", "age_days": 10, "tags": ["todo", "harbour"]},
        {"id": 8, "text": "Ada Lovelace wrote the first program", "date": "2026-11-29", "age_days": 1, "tags": []},
        {"id": 8, "text": "undated thought about issue #12", "date": "", "age_days": None, "tags": []},
    ]
    assert answer["total"] == 3
    assert snapshot(folder) == before


def test_a_vault_without_inbox_has_no_items(tmp_path: Path) -> None:
    """An empty list, not an error, and no file is made."""
    assert call(make_ctx(tmp_path), "triage_inbox")["items"] == []
    assert snapshot(tmp_path) == {}


def test_code_comments_and_frontmatter_hold_no_items(tmp_path: Path) -> None:
    """Only bullets a reader sees as bullets are items; nested ones and tasks are."""
    put(tmp_path, INBOX, (
        "---\ntags:\n- a\n---\n\n```\n- in code\n```\n\n<!--\n- hidden\n-->\n\n"
        "- [ ] 2026-11-28: a task\n  - nested\n\n    - deeper\n"
    ))
    items = call(make_ctx(tmp_path), "triage_inbox")["items"]
    assert [item["text"] for item in items] == ["a task", "nested", "deeper"]


def test_exact_repeats_have_numbered_ids(tmp_path: Path) -> None:
    """Two equal lines are two items: `abc` and `abc-2`."""
    put(tmp_path, INBOX, "- 2026-11-28: milk\n- 2026-11-28: milk\n- 2026-11-29: milk\n")
    first, second, third = [item["id"] for item in call(make_ctx(tmp_path), "triage_inbox")["items"]]
    assert second == f"{first}-2"
    assert "-" not in third
    assert third != first


def test_a_long_inbox_is_listed_in_parts(tmp_path: Path) -> None:
    """A hundred items at most, the rest counted; a long text is cut and says so."""
    put(tmp_path, INBOX, "- 2026-11-28: " + "word " * 400 + "\n" + "".join(f"- 2026-11-28: n{i}\n" for i in range(150)))
    answer = call(make_ctx(tmp_path), "triage_inbox")
    assert (len(answer["items"]), answer["total"], answer["truncated"]) == (100, 151, True)
    assert answer["items"][0]["truncated"] is True
    assert answer["items"][0]["total_chars"] == 1999


def test_a_preview_writes_nothing_and_names_every_target(folder: Path) -> None:
    """Each action shows path, what it would do and the diff; not one byte of the vault changes."""
    ctx = make_ctx(folder)
    found = ids(ctx)
    before = snapshot(folder)
    answer = call(ctx, "triage_inbox", proposals=[
        {"line": found["call the harbour office"], "action": "append", "path": "Engine"},
        {"line": found["Ada Lovelace wrote the first program"], "action": "capture", "kind": "person",
         "title": "Ada Lovelace"},
        {"line": found["undated thought about issue #12"], "action": "keep"},
    ])
    assert snapshot(folder) == before
    plan = answer["plan"]
    assert [(row["index"], row["action"], row["path"], row["would"]) for row in plan] == [
        (0, "append", ENGINE, "append"),
        (1, "capture", "resources/people/ada-lovelace.md", "create"),
        (2, "keep", INBOX, "keep"),
    ]
    assert "+- call the harbour office #todo #harbour\n" in plan[0]["diff"]
    assert "+Ada Lovelace wrote the first program\n" in plan[1]["diff"]
    assert len(answer["preview_token"]) == 24


def test_an_apply_files_logs_and_removes_exactly_the_lines(folder: Path) -> None:
    """Targets are written, the processing log has one line an item, and only the kept line stays in the inbox."""
    ctx = make_ctx(folder, token_required=True)
    found = ids(ctx)
    proposals = [
        {"line": found["call the harbour office"], "action": "append", "path": ENGINE},
        {"line": found["Ada Lovelace wrote the first program"], "action": "capture", "kind": "person",
         "title": "Ada Lovelace"},
        {"line": found["undated thought about issue #12"], "action": "keep"},
    ]
    token = call(ctx, "triage_inbox", proposals=proposals)["preview_token"]
    answer = call(ctx, "triage_inbox", proposals=proposals, apply=True, preview_token=token)
    assert answer["action"] == "applied"
    assert [(row["index"], row["action"], row["path"], row["ok"], row["did"]) for row in answer["results"]] == [
        (0, "append", ENGINE, True, "appended"),
        (1, "capture", "resources/people/ada-lovelace.md", True, "created"),
        (2, "keep", INBOX, True, "kept"),
    ]
    assert get(folder, INBOX) == "# Inbox\n\n* undated thought about issue #12\n"
    assert get(folder, ENGINE).endswith("- first\n- call the harbour office #todo #harbour\n")
    assert get(folder, LOG).endswith(
        "# Processing Log 2026-11\n\n"
        f'- 2026-11-30 14:05: "call the harbour office #todo #harbour" → {ENGINE} (append)\n'
        '- 2026-11-30 14:05: "Ada Lovelace wrote the first program" → resources/people/ada-lovelace.md (capture)\n'
    )


def test_a_discarded_line_leaves_a_trace(folder: Path) -> None:
    """Discarding writes the log line and removes the line, nothing else."""
    ctx = make_ctx(folder)
    answer = call(ctx, "triage_inbox", apply=True, proposals=[{"line": "call the harbour office", "action": "discard"}])
    assert answer["results"][0]["ok"]
    assert '"call the harbour office #todo #harbour" → - (discard)\n' in get(folder, LOG)
    assert "harbour" not in get(folder, INBOX)


@pytest.mark.parametrize("eol", ["\r\n", "\r"])
def test_the_other_bytes_of_the_inbox_stay(tmp_path: Path, eol: str) -> None:
    """Line ends, blank lines, BOM and a missing final newline survive the removal of a line."""
    put(tmp_path, INBOX, f"\ufeff# In{eol}{eol}- 2026-11-01: a  {eol}{eol}- 2026-11-02: b{eol}text{eol}- 2026-11-03: c")
    call(make_ctx(tmp_path), "triage_inbox", apply=True, proposals=[{"line": "b", "action": "discard"}])
    assert get(tmp_path, INBOX) == f"\ufeff# In{eol}{eol}- 2026-11-01: a  {eol}{eol}text{eol}- 2026-11-03: c"


def test_apply_without_a_token_is_refused_where_one_is_required(folder: Path) -> None:
    """MCP and REST need the preview's token; the refusal names the field and changes nothing."""
    ctx = make_ctx(folder, token_required=True)
    before = snapshot(folder)
    answer = call(ctx, "triage_inbox", apply=True, proposals=[{"line": "call the harbour office", "action": "discard"}])
    assert (answer["code"], answer["field"]) == ("invalid-argument", "preview_token")
    assert snapshot(folder) == before


@pytest.mark.parametrize(("path", "stale"), [
    (ENGINE, True), ("projects/active/other.md", False), ("journal/daily/2026-11-30.md", False),
])
def test_a_preview_is_stale_only_when_what_it_read_changed(folder: Path, path: str, stale: bool) -> None:
    """A change of the target note spoils the token; unrelated notes do not."""
    ctx = make_ctx(folder, token_required=True)
    proposals = [{"line": "call the harbour office", "action": "append", "path": ENGINE}]
    token = call(ctx, "triage_inbox", proposals=proposals)["preview_token"]
    put(folder, path, "# Engine\n\nchanged by hand\n")
    before = snapshot(folder)
    answer = call(ctx, "triage_inbox", proposals=proposals, apply=True, preview_token=token)
    if stale:
        assert (answer["ok"], answer["action"]) == (False, "stale-preview")
        assert snapshot(folder) == before
    else:
        assert answer["ok"]


def test_lines_that_arrive_after_the_preview_do_not_spoil_it(folder: Path) -> None:
    """The token covers the addressed lines only, and the new line is still there afterwards."""
    ctx = make_ctx(folder, token_required=True)
    proposals = [{"line": "call the harbour office", "action": "discard"}]
    token = call(ctx, "triage_inbox", proposals=proposals)["preview_token"]
    call(ctx, "capture", title="a new thought")
    assert call(ctx, "triage_inbox", proposals=proposals, apply=True, preview_token=token)["ok"]
    assert "a new thought" in get(folder, INBOX)
    assert "harbour" not in get(folder, INBOX)


def test_a_line_that_was_edited_spoils_the_preview(folder: Path) -> None:
    """The id no longer means a line of the inbox: the plan is stale, nothing is filed."""
    ctx = make_ctx(folder, token_required=True)
    proposals = [{"line": ids(ctx)["call the harbour office"], "action": "discard"}]
    token = call(ctx, "triage_inbox", proposals=proposals)["preview_token"]
    put(folder, INBOX, NOTES.replace("office", "master"))
    answer = call(ctx, "triage_inbox", proposals=proposals, apply=True, preview_token=token)
    assert answer["action"] == "stale-preview"
    assert "master" in get(folder, INBOX)


def test_a_gate_inside_a_plan_stops_only_its_own_item(folder: Path) -> None:
    """The look-alike is planned as `gate`, answered with candidates, and its line stays; the others are done."""
    put(folder, "resources/people/ada-lovelace.md", "---\ntype: person\ntitle: Ada Lovelace\n---\n\n# Ada Lovelace\n")
    ctx = make_ctx(folder)
    proposals = [
        {"line": "Ada Lovelace wrote the first program", "action": "capture", "kind": "person",
         "title": "Ada Lovelace"},
        {"line": "call the harbour office", "action": "discard"},
    ]
    plan = call(ctx, "triage_inbox", proposals=proposals)["plan"]
    assert plan[0]["would"] == "gate"
    assert plan[0]["candidates"][0]["path"] == "resources/people/ada-lovelace.md"
    answer = call(ctx, "triage_inbox", proposals=proposals, apply=True)
    assert (answer["ok"], answer["action"]) == (True, "partial")
    first, second = answer["results"]
    assert (first["ok"], first["did"], bool(first["candidates"])) == (False, "duplicate-gate", True)
    assert second["ok"]
    assert get(folder, INBOX) == NOTES.replace("- 2026-11-20: call the harbour office #todo #harbour\n", "")


def test_one_bad_item_says_why_and_the_rest_is_done(folder: Path) -> None:
    """A target that does not exist fails alone, with candidates; its line stays in the inbox."""
    ctx = make_ctx(folder)
    proposals = [
        {"line": "call the harbour office", "action": "append", "path": "Engin NONEXISTENT"},
        {"line": "no such line", "action": "discard"},
        {"line": "Ada Lovelace wrote the first program", "action": "discard"},
    ]
    plan = call(ctx, "triage_inbox", proposals=proposals)["plan"]
    assert [(row["would"], row.get("code")) for row in plan] == [
        ("refuse", "not-found"), ("refuse", "not-found"), ("discard", None)]
    answer = call(ctx, "triage_inbox", proposals=proposals, apply=True)
    assert [row["ok"] for row in answer["results"]] == [False, False, True]
    assert answer["results"][0]["code"] == "not-found"
    assert "harbour" in get(folder, INBOX)
    assert "Lovelace" not in get(folder, INBOX)


def test_when_nothing_could_be_done_the_answer_is_no_success(folder: Path) -> None:
    """A batch whose every item failed answers like its first item, with all results beside it."""
    proposals = [{"line": "no such line", "action": "discard"}]
    answer = call(make_ctx(folder), "triage_inbox", apply=True, proposals=proposals)
    assert (answer["ok"], answer["code"]) == (False, "not-found")
    assert answer["results"][0]["code"] == "not-found"


@pytest.mark.parametrize(("proposal", "field"), [
    ({"line": "x", "action": "capture", "kind": "person"}, "proposals[0].title"),
    ({"line": "x", "action": "capture", "title": "T"}, "proposals[0].kind"),
    ({"line": "x", "action": "append"}, "proposals[0].path"),
    ({"line": "x", "action": "link", "a": "Engine"}, "proposals[0].b"),
    ({"action": "discard"}, "proposals[0].line"),
    ({"line": "x", "action": "burn"}, "proposals[0].action"),
    ({"line": "x", "action": "append", "path": "../x"}, "proposals[0].path"),
])
def test_an_incomplete_proposal_is_refused_by_field(folder: Path, proposal: dict[str, str], field: str) -> None:
    """The whole call is refused before anything is looked at."""
    before = snapshot(folder)
    answer = call(make_ctx(folder), "triage_inbox", proposals=[proposal], apply=True)
    assert answer["code"] in ("invalid-argument", "invalid-path")
    assert answer["field"] == field
    assert snapshot(folder) == before


def test_one_line_takes_one_proposal(folder: Path) -> None:
    """Addressing a line twice is refused, by id and text alike; exact repeats are two lines."""
    ctx = make_ctx(folder)
    twice = [{"line": "call the harbour office", "action": "keep"},
             {"line": ids(ctx)["call the harbour office"], "action": "discard"}]
    assert call(ctx, "triage_inbox", proposals=twice)["field"] == "proposals[1].line"
    put(folder, INBOX, "- 2026-11-28: milk\n\n## Later\n\n- 2026-11-28: milk\n- 2026-11-28: milk\n")
    found = [item["id"] for item in call(ctx, "triage_inbox")["items"]]
    both = [{"line": found[1], "action": "discard"}, {"line": "milk", "action": "discard"}]
    assert [row["ok"] for row in call(ctx, "triage_inbox", proposals=both, apply=True)["results"]] == [True, True]
    assert get(folder, INBOX) == "\n## Later\n\n- 2026-11-28: milk\n"


def test_the_same_text_on_two_dates_is_ambiguous(tmp_path: Path) -> None:
    """Writes never guess: the ids are offered instead."""
    put(tmp_path, INBOX, "- 2026-11-28: milk\n- 2026-11-29: milk\n")
    row = call(make_ctx(tmp_path), "triage_inbox", proposals=[{"line": "milk", "action": "discard"}])["plan"][0]
    assert (row["would"], row["code"], len(row["candidates"])) == ("refuse", "ambiguous", 2)


def test_a_later_proposal_may_use_the_note_an_earlier_one_makes(folder: Path) -> None:
    """The plan knows notes that do not exist yet, and applying does what it says."""
    ctx = make_ctx(folder)
    proposals = [
        {"line": "Ada Lovelace wrote the first program", "action": "capture", "kind": "person",
         "title": "Ada Lovelace"},
        {"line": "call the harbour office", "action": "append", "path": "Ada Lovelace"},
    ]
    plan = call(ctx, "triage_inbox", proposals=proposals)["plan"]
    assert (plan[1]["would"], plan[1]["path"]) == ("append", "resources/people/ada-lovelace.md")
    answer = call(ctx, "triage_inbox", proposals=proposals, apply=True)
    assert [row["ok"] for row in answer["results"]] == [True, True]
    assert "call the harbour office" in get(folder, "resources/people/ada-lovelace.md")


def test_a_repeat_after_a_crash_doubles_nothing(folder: Path) -> None:
    """Target and log were written and the line is back, as after a crash: the repeat only removes the line."""
    proposals = [{"line": "call the harbour office", "action": "append", "path": ENGINE},
                 {"line": "Ada Lovelace wrote the first program", "action": "capture", "kind": "person",
                  "title": "Ada Lovelace"}]
    call(make_ctx(folder), "triage_inbox", proposals=proposals, apply=True)
    done = snapshot(folder)
    put(folder, INBOX, NOTES)
    answer = call(make_ctx(folder), "triage_inbox", proposals=proposals, apply=True)
    assert [(row["ok"], row["did"]) for row in answer["results"]] == [(True, "unchanged"), (True, "unchanged")]
    assert snapshot(folder) == done


def test_captures_during_an_apply_are_not_lost(tmp_path: Path) -> None:
    """Lines that another client adds while twenty items are filed are all still there."""
    put(tmp_path, INBOX, "# Inbox\n\n" + "".join(f"- 2026-11-28: old{i}x\n" for i in range(20)))
    ctx, other = make_ctx(tmp_path), make_ctx(tmp_path)
    adding = threading.Thread(target=lambda: [call(other, "capture", title=f"new{i}x") for i in range(20)])
    adding.start()
    answer = call(ctx, "triage_inbox", apply=True,
                  proposals=[{"line": f"old{i}x", "action": "discard"} for i in range(20)])
    adding.join()
    assert all(row["ok"] for row in answer["results"])
    assert sorted(re.findall(r"(?:old|new)\d+x", get(tmp_path, INBOX))) == sorted(f"new{i}x" for i in range(20))


def test_a_credential_in_a_proposal_is_refused_before_anything_is_written(folder: Path) -> None:
    """The field is named, the value is not repeated, the inbox keeps its lines."""
    before = snapshot(folder)
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    answer = call(make_ctx(folder), "triage_inbox", apply=True, proposals=[
        {"line": "Ada Lovelace wrote the first program", "action": "discard"},
        {"line": "call the harbour office", "action": "capture", "kind": "concept", "title": "K", "body": f"see {key}"},
    ])
    assert (answer["code"], answer["field"]) == ("secret-suspected", "proposals[1].body")
    assert key not in str(answer)
    assert snapshot(folder) == before


LINES = st.sampled_from(
    ["- 2026-11-28: milk", "- 2026-11-28: milk ", "* x #a", "  - y", "", "# H", "text", "```", "- [ ] z"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(LINES, max_size=12), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans(), st.data())
def test_taking_out_an_item_takes_out_one_line(lines: list[str], eol: str, closed: bool, data: st.DataObject) -> None:
    """For any inbox: the text without an item is the text without exactly the bytes of that line."""
    text = eol.join(lines) + (eol if closed else "")
    items = items_of(text)
    assert len({item.id for item in items}) == len(items)
    if items:
        item = data.draw(st.sampled_from(items))
        assert without_item(text, item.line, item.nth) == text[:item.start] + text[item.stop:]
        assert text[item.start:item.stop].rstrip("\r\n") == item.line
        assert find_item(items, item.id) is item
