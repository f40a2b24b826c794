"""The material of a rollup: threads, aging inbox, scope history, sessions and decisions of one period (seed 6.3)."""
from __future__ import annotations

from pathlib import Path

import pytest
from opsfixture import call, make_ctx, put, snapshot


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    put(tmp_path, "projects/active/engine.md",
        "---\ntitle: Engine\nupdated: 2026-11-28\n---\n\n# Engine\n\n## Status\n\nBrass ordered.\n\n"
        "### Next\n\nCrank.\n\n## Log\n\nx\n")
    put(tmp_path, "projects/active/quay.md", "---\ntitle: Quay\nupdated: 2026-10-02\n---\n\n# Quay\n\nNo status.\n")
    put(tmp_path, "projects/archived/old.md", "---\ntitle: Old\n---\n\n## Status\n\nDone.\n")
    put(tmp_path, "inbox/captures/inbox.md", "- 2026-11-10: old thing\n- 2026-11-29: new thing\n- undated\n")
    put(tmp_path, "_agent/context/current-context.md", (
        "---\nscope: Build\n---\n\n## Scope\n\nBuild\n\n## Scope History\n\n"
        "- 2026-12-01T00:30:00+01:00: next week? no, this\n"
        "- 2026-11-29T23:30:00Z: Monday in Vienna\n- 2026-11-29T22:30:00Z: Sunday in Vienna\n"
        "- 2026-11-02: by hand\n- odd line\n"
    ))
    for name in ("2026-11-29-2359-sunday", "2026-11-30-0000-monday", "2026-12-06-2359-end", "2026-12-07-0000-after"):
        put(tmp_path, f"_agent/sessions/{name}.md", f"---\ntitle: {name[16:]}\n---\n\n# {name[16:]}\n")
    put(tmp_path, "decisions/by-date/2026-12-02-brass.md", "# Use brass\n")
    put(tmp_path, "decisions/by-date/2026-11-02-iron.md", "# No iron\n")
    put(tmp_path, "decisions/by-date/undated.md", "# Undated\n")
    return tmp_path


def test_a_week_has_what_happened_in_it(folder: Path) -> None:
    """ISO week in the owner's zone: borders by wall time, nothing from the days around it, nothing written."""
    before = snapshot(folder)
    answer = call(make_ctx(folder), "rollup_data", period="week")
    assert snapshot(folder) == before
    assert (answer["period"], answer["first"], answer["last"]) == ("2026-W49", "2026-11-30", "2026-12-06")
    assert (answer["path"], answer["exists"], answer["scope"]) == ("journal/weekly/2026-W49.md", False, "Build")
    assert [row["title"] for row in answer["sessions"]] == ["monday", "end"]
    assert answer["sessions"][0]["at"] == "2026-11-30T00:00+01:00"
    assert [row["scope"] for row in answer["scope_history"]] == ["next week? no, this", "Monday in Vienna"]
    assert answer["decisions"] == [
        {"path": "decisions/by-date/2026-12-02-brass.md", "title": "Use brass", "date": "2026-12-02"}]


def test_open_threads_are_the_active_projects_with_their_status(folder: Path) -> None:
    """Longest untouched first; the Status section with its sub-sections, empty when there is none."""
    rows = call(make_ctx(folder), "rollup_data", period="week")["projects"]
    assert rows == [
        {"path": "projects/active/quay.md", "title": "Quay", "updated": "2026-10-02", "status": ""},
        {"path": "projects/active/engine.md", "title": "Engine", "updated": "2026-11-28",
         "status": "Brass ordered.\n\n### Next\n\nCrank."},
    ]


def test_only_aging_inbox_items_are_listed(folder: Path) -> None:
    """Items past seven days, as the listing shows them."""
    rows = call(make_ctx(folder), "rollup_data", period="week")["inbox"]
    assert [(row["text"], row["age_days"]) for row in rows] == [("old thing", 20)]


def test_a_month_is_named_by_any_day_in_it(folder: Path) -> None:
    """The date picks the period; the default is today."""
    answer = call(make_ctx(folder), "rollup_data", period="month", date="2026-11-15")
    assert (answer["period"], answer["first"], answer["last"]) == ("2026-11", "2026-11-01", "2026-11-30")
    assert [row["title"] for row in answer["sessions"]] == ["sunday", "monday"]
    assert [row["scope"] for row in answer["scope_history"]] == ["Monday in Vienna", "Sunday in Vienna", "by hand"]
    assert [row["title"] for row in answer["decisions"]] == ["No iron"]


def test_a_stored_rollup_is_reported(folder: Path) -> None:
    """What echo_capture stored for the period is found where the data said it belongs."""
    ctx = make_ctx(folder)
    call(ctx, "capture", title="Week 49", kind="rollup", period="2026-W49", body="A good week.")
    assert call(ctx, "rollup_data", period="week")["exists"] is True


def test_an_empty_vault_has_empty_lists(tmp_path: Path) -> None:
    """Nothing there is no error."""
    answer = call(make_ctx(tmp_path), "rollup_data", period="week")
    assert answer["ok"]
    assert [answer[name] for name in ("projects", "inbox", "scope_history", "sessions", "decisions")] == [[]] * 5


def test_long_material_is_cut_and_says_so(folder: Path) -> None:
    """At most fifty items a list with the full number beside it; a long status is flagged with its length."""
    for number in range(60):
        put(folder, f"projects/active/p{number:02}.md", f"# P{number}\n\n## Status\n\n{'busy ' * 400}\n")
    answer = call(make_ctx(folder), "rollup_data", period="week")
    assert (len(answer["projects"]), answer["projects_total"], answer["truncated"]) == (50, 62, True)
    row = answer["projects"][0]
    assert (row["truncated"], row["total_chars"]) == (True, 1999)
    assert len(row["status"]) <= 600


def test_a_broken_note_is_listed_by_name_and_harms_no_other(folder: Path) -> None:
    """Malformed YAML and bytes that are no text still have a row."""
    put(folder, "projects/active/bad.md", "---\ntags: [#a, b]\n---\n\n# Bad\n\n## Status\n\nalive\n")
    (folder / "vault/projects/active/bytes.md").write_bytes(b"# B\xff\n\n## Status\n\n\xfe\n")
    rows = {row["path"]: row for row in call(make_ctx(folder), "rollup_data", period="week")["projects"]}
    assert rows["projects/active/bad.md"]["status"] == "alive"
    assert rows["projects/active/bytes.md"]["title"] == "B\ufffd"


@pytest.mark.parametrize(("arguments", "field"), [
    ({}, "period"), ({"period": "year"}, "period"), ({"period": "week", "date": "2026-02-30"}, "date"),
    ({"period": "week", "date": "yesterday"}, "date"),
    ({"period": "week", "date": "9999-12-31"}, "date"), ({"period": "week", "from": "x"}, "from"),
])
def test_a_wrong_argument_is_refused_by_name(folder: Path, arguments: dict[str, str], field: str) -> None:
    """Missing, unknown and impossible values name the field and what is allowed."""
    answer = call(make_ctx(folder), "rollup_data", **arguments)
    assert (answer["code"], answer["field"]) == ("invalid-argument", field)
