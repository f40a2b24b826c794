"""The scope: read, switched in one edit, its past kept, sessions counted since (spec 2.7)."""
from __future__ import annotations

from pathlib import Path

import pytest
from opsfixture import INSTANT, call, get, make_ctx, put, snapshot

SCOPE = "_agent/context/current-context.md"


def test_a_vault_without_scope_says_so(tmp_path: Path) -> None:
    """No note, no scope: an empty answer with a hint, and nothing is written."""
    ctx = make_ctx(tmp_path)
    answer = call(ctx, "get_scope")
    assert answer["ok"]
    assert (answer["scope"], answer["scope_updated"], answer["sessions_since"]) == ("", "", 0)
    assert "echo_set_scope" in answer["hint"]
    assert snapshot(tmp_path) == {}


def test_the_first_scope_makes_the_note(tmp_path: Path) -> None:
    """Frontmatter and section say the same; there is no history yet."""
    ctx = make_ctx(tmp_path)
    answer = call(ctx, "set_scope", scope="Build the engine")
    assert answer["ok"]
    assert answer["action"] == "updated"
    assert answer["scope_updated"] == INSTANT
    text = get(tmp_path, SCOPE)
    assert f"scope: Build the engine\nscope_updated: {INSTANT}\n" in text
    assert "## Scope\n\nBuild the engine\n\n## Scope History\n" in text
    assert call(ctx, "get_scope")["scope"] == "Build the engine"


def test_the_same_scope_again_changes_nothing(tmp_path: Path) -> None:
    """Setting what is set already answers unchanged and keeps every byte."""
    call(make_ctx(tmp_path), "set_scope", scope="Build the engine")
    before = snapshot(tmp_path)
    later = make_ctx(tmp_path, "2026-12-02T09:00:00+01:00")
    answer = call(later, "set_scope", scope="  Build the engine ")
    assert answer["action"] == "unchanged"
    assert answer["scope_updated"] == INSTANT
    assert snapshot(tmp_path) == before


def test_old_scopes_stand_newest_first_in_the_history(tmp_path: Path) -> None:
    """Each switch puts the scope it replaces on top, with the instant of the switch."""
    for minute, scope in (("05", "one"), ("06", "two"), ("07", "three")):
        call(make_ctx(tmp_path, f"2026-11-30T14:{minute}:09+01:00"), "set_scope", scope=scope)
    text = get(tmp_path, SCOPE)
    assert text.endswith(
        "## Scope\n\nthree\n\n## Scope History\n\n"
        "- 2026-11-30T14:07:09+01:00: two\n- 2026-11-30T14:06:09+01:00: one\n"
    )


@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"])
def test_only_the_lines_of_the_scope_change(tmp_path: Path, eol: str) -> None:
    """Comments, quoting, foreign keys, other sections, line ends and BOM of a hand-kept note stay."""
    note = (
        "\ufeff---\ntitle: 'Current Context' # mine\nscope: old one\nversion: 1.50\n"
        "scope_updated: 2026-11-01T08:00:00Z\n---\n\n# Current Context\n\nIntro.\n\n"
        "## Scope\n\nold one\n\n## Scope History\n\n- 2026-10-01T08:00:00Z: older\n"
        "\n## Mine\n\nkeep  "
    ).replace("\n", eol)
    put(tmp_path, SCOPE, note)
    assert call(make_ctx(tmp_path), "set_scope", scope="new one")["ok"]
    expected = (
        note.replace("scope: old one", "scope: new one")
        .replace("scope_updated: 2026-11-01T08:00:00Z", f"scope_updated: {INSTANT}")
        .replace(f"{eol}old one{eol}", f"{eol}new one{eol}")
        .replace("- 2026-10-01", f"- {INSTANT}: old one{eol}- 2026-10-01")
    )
    assert get(tmp_path, SCOPE) == expected


def test_what_a_person_wrote_into_the_section_is_kept_in_the_history(tmp_path: Path) -> None:
    """A section edited by hand is replaced, but its text moves to the history instead of being lost."""
    put(tmp_path, SCOPE, "---\nscope: engine\n---\n\n## Scope\n\nengine, but first\nthe paper\n\n## Scope History\n")
    call(make_ctx(tmp_path), "set_scope", scope="harbour")
    text = get(tmp_path, SCOPE)
    assert f"- {INSTANT}: engine, but first the paper\n- {INSTANT}: engine\n" in text


def test_a_note_whose_yaml_does_not_parse_is_left_alone(tmp_path: Path) -> None:
    """Setting is refused with line and column; reading falls back to the section and says why."""
    put(tmp_path, SCOPE, "---\ntags: [#abc, def]\nscope: x\n---\n\n## Scope\n\nfrom the section\n")
    before = snapshot(tmp_path)
    ctx = make_ctx(tmp_path)
    refused = call(ctx, "set_scope", scope="new")
    assert refused["code"] == "malformed-note"
    assert refused["line"] == 2
    assert snapshot(tmp_path) == before
    shown = call(ctx, "get_scope")
    assert shown["ok"]
    assert shown["scope"] == "from the section"
    assert "does not parse" in shown["warnings"][0]


def test_a_scope_that_looks_like_markdown_makes_no_heading(tmp_path: Path) -> None:
    """The scope stays one line of text, whatever it begins with."""
    ctx = make_ctx(tmp_path)
    for scope in ("# Big", "---", "```", "<!-- hidden"):
        assert call(ctx, "set_scope", scope=scope)["ok"]
        assert call(ctx, "get_scope")["scope"] == scope
        headings = call(ctx, "get_note", path=SCOPE)["headings"]
        assert headings == ["Current Context", "Current Context::Scope", "Current Context::Scope History"]


def test_sessions_are_counted_from_the_scope_on(tmp_path: Path) -> None:
    """A log counts when the minute in its name is later than the scope; other names do not count."""
    call(make_ctx(tmp_path), "set_scope", scope="engine")
    for name in ("11-30-1404-a", "11-30-1405-b", "11-30-1406-c", "12-01-0900-d", "12-01-0900-d-2"):
        put(tmp_path, f"_agent/sessions/2026-{name}.md", "x\n")
    put(tmp_path, "_agent/sessions/notes.md", "x\n")
    put(tmp_path, "_agent/sessions/2026-13-41-9999-e.md", "x\n")
    assert call(make_ctx(tmp_path), "get_scope")["sessions_since"] == 3


def test_sessions_are_compared_as_instants_across_zones(tmp_path: Path) -> None:
    """`scope_updated` in UTC and session names in the owner's zone meet on one line of time."""
    put(tmp_path, SCOPE, "---\nscope: x\nscope_updated: 2026-11-30T13:30:00Z\n---\n")
    put(tmp_path, "_agent/sessions/2026-11-30-1400-early.md", "x\n")
    put(tmp_path, "_agent/sessions/2026-11-30-1431-late.md", "x\n")
    assert call(make_ctx(tmp_path), "get_scope")["sessions_since"] == 1


def test_a_credential_is_no_scope(tmp_path: Path) -> None:
    """A live key is refused by name of its shape, and nothing is written."""
    ctx = make_ctx(tmp_path)
    answer = call(ctx, "set_scope", scope="use ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8")
    assert answer["code"] == "secret-suspected"
    assert answer["field"] == "scope"
    assert snapshot(tmp_path) == {}


@pytest.mark.parametrize("updated", ["", "soon", "0001-01-01", "9999-12-30", "9999-12-31T23:59:59-12:00", "2026-11-30"])
def test_odd_scope_stamps_never_fail(tmp_path: Path, updated: str) -> None:
    """A stamp that is no moment of the calendar counts all sessions; one far ahead counts none."""
    put(tmp_path, SCOPE, f"---\nscope: x\nscope_updated: {updated}\n---\n")
    put(tmp_path, "_agent/sessions/2026-11-30-1400-a.md", "x\n")
    put(tmp_path, "_agent/sessions/0001-01-01-0000-b.md", "x\n")
    answer = call(make_ctx(tmp_path), "get_scope")
    assert answer["ok"]
    expected = {"9999-12-30": 0, "2026-11-30": 1, "0001-01-01": 1}.get(updated, 2)
    assert answer["sessions_since"] == expected
