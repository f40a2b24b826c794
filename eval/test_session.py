"""The end of a session: log, agent log, scope, reflections, heartbeat last, and repeats that finish it (spec 3.2)."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from opsfixture import INSTANT, DyingVault, call, get, make_ctx, put, snapshot

LOG = "_agent/sessions/2026-11-30-1405-engine-design.md"
DAY = "journal/daily/2026-11-30.md"
HEART = "_agent/sessions/heartbeat.json"
SCOPE = "_agent/context/current-context.md"
BUNDLE: dict[str, Any] = {
    "slug": "Engine design", "log_body": "Chose brass.\n\nOpen: the crank.", "agent_log_line": "designed the engine",
    "scope": "Build the engine",
    "reflect": [{"action": "capture", "kind": "person", "title": "Ada Lovelace", "body": "Wrote the first program."}],
}
SMALL = {name: BUNDLE[name] for name in ("slug", "log_body", "agent_log_line")}


def test_a_preview_shows_each_step_and_writes_nothing(tmp_path: Path) -> None:
    """Log, agent log, scope, reflection and heartbeat in order, each with its diff."""
    answer = call(make_ctx(tmp_path), "log_session", **BUNDLE)
    assert snapshot(tmp_path) == {}
    assert answer["path"] == LOG
    assert [(row["step"], row["path"], row["would"]) for row in answer["plan"]] == [
        ("log", LOG, "create"), ("agent-log", DAY, "append"), ("scope", SCOPE, "update"),
        ("reflect", "resources/people/ada-lovelace.md", "create"), ("heartbeat", HEART, "update"),
    ]
    assert "+Chose brass.\n" in answer["plan"][0]["diff"]
    assert "+- 14:05 designed the engine\n" in answer["plan"][1]["diff"]
    assert answer["preview_token"]


def test_an_apply_writes_every_part(tmp_path: Path) -> None:
    """Each step reports its own result, and the notes are those the format asks for."""
    answer = call(make_ctx(tmp_path, token_required=True), "log_session", **BUNDLE, apply=True)
    assert (answer["ok"], answer["action"], answer["path"]) == (True, "logged", LOG)
    assert [(row["step"], row["ok"]) for row in answer["results"]] == [
        ("log", True), ("agent-log", True), ("scope", True), ("reflect", True), ("heartbeat", True)]
    assert get(tmp_path, LOG) == (
        "---\ntype: session\ntitle: Engine design\ncreated: 2026-11-30\nupdated: 2026-11-30\n"
        "agent_written: true\n---\n\n# Engine design\n\nChose brass.\n\nOpen: the crank.\n"
    )
    assert "## Agent Log\n\n- 14:05 designed the engine\n" in get(tmp_path, DAY)
    assert call(make_ctx(tmp_path), "get_scope")["scope"] == "Build the engine"
    assert "Wrote the first program." in get(tmp_path, "resources/people/ada-lovelace.md")
    assert json.loads(get(tmp_path, HEART)) == {"session": LOG, "at": INSTANT, "agent": "echo"}


def test_the_bare_minimum_leaves_scope_and_notes_alone(tmp_path: Path) -> None:
    """Without scope and reflections there are three steps and three files."""
    answer = call(make_ctx(tmp_path), "log_session", **SMALL, apply=True)
    assert [row["step"] for row in answer["results"]] == ["log", "agent-log", "heartbeat"]
    assert sorted(snapshot(tmp_path)) == sorted([LOG, DAY, HEART])


def test_the_same_session_twice_is_one_session(tmp_path: Path) -> None:
    """A repeat, in the same minute or later, answers unchanged and changes no byte."""
    call(make_ctx(tmp_path), "log_session", **BUNDLE, apply=True)
    done = snapshot(tmp_path)
    for instant in (INSTANT, "2026-11-30T14:09:30+01:00", "2026-12-01T09:00:00+01:00"):
        answer = call(make_ctx(tmp_path, instant), "log_session", **BUNDLE, apply=True)
        assert (answer["action"], answer["path"]) == ("unchanged", LOG)
        assert snapshot(tmp_path) == done


def test_another_session_of_the_same_minute_and_name_gets_a_number(tmp_path: Path) -> None:
    """Different text is a different session: `-2`, and the first one keeps its bytes."""
    call(make_ctx(tmp_path), "log_session", **SMALL, apply=True)
    first = get(tmp_path, LOG)
    answer = call(make_ctx(tmp_path), "log_session", **{**SMALL, "log_body": "Another."}, apply=True)
    assert answer["path"] == LOG.replace(".md", "-2.md")
    assert get(tmp_path, LOG) == first
    again = call(make_ctx(tmp_path), "log_session", **{**SMALL, "log_body": "Another."}, apply=True)
    assert (again["path"], again["action"]) == (answer["path"], "unchanged")


def test_the_last_session_of_a_minute_is_the_last_session(tmp_path: Path) -> None:
    """Heartbeat and load name the one logged last: -2 after the plain name, -10 after -9, whatever the letters say."""
    for number in range(11):
        text = f"Session number {number}."
        answer = call(make_ctx(tmp_path), "log_session", **{**SMALL, "log_body": text}, apply=True)
        assert json.loads(get(tmp_path, HEART))["session"] == answer["path"]
        assert text in call(make_ctx(tmp_path), "load")["sections"]["last_session"]
    answer = call(make_ctx(tmp_path), "log_session", **{**SMALL, "slug": "Another name"}, apply=True)
    assert json.loads(get(tmp_path, HEART))["session"] == answer["path"]


@pytest.mark.parametrize("writes", range(9))
def test_a_session_that_broke_off_is_finished_by_the_repeat(tmp_path: Path, writes: int) -> None:
    """Whatever write the vault died at: heartbeat only after everything else, and a later repeat doubles nothing."""
    broken = call(make_ctx(tmp_path, wrap=lambda inner: DyingVault(inner, writes)), "log_session", **BUNDLE, apply=True)
    if not broken["ok"]:
        assert broken["code"] == "vault-unreachable"
        assert HEART not in snapshot(tmp_path)
    later = call(make_ctx(tmp_path, "2026-11-30T14:07:00+01:00"), "log_session", **BUNDLE, apply=True)
    assert later["ok"]
    assert all(row["ok"] for row in later["results"])
    logs = [path for path in snapshot(tmp_path) if path.startswith("_agent/sessions/2026")]
    assert len(logs) == 1
    assert json.loads(get(tmp_path, HEART))["session"] == logs[0]
    assert get(tmp_path, DAY).count("designed the engine") == 1
    assert get(tmp_path, SCOPE).count("scope: Build the engine") == 1


def test_a_gated_reflection_does_not_keep_the_session_open(tmp_path: Path) -> None:
    """The gate stands in its row and in a warning; log and heartbeat are written."""
    put(tmp_path, "resources/people/ada-lovelace.md", "---\ntype: person\ntitle: Ada Lovelace\n---\n\n# Ada Lovelace\n")
    answer = call(make_ctx(tmp_path), "log_session", **BUNDLE, apply=True)
    assert (answer["ok"], answer["action"]) == (True, "partial")
    rows = {row["step"]: row for row in answer["results"]}
    assert (rows["reflect"]["ok"], rows["reflect"]["did"]) == (False, "duplicate-gate")
    assert rows["heartbeat"]["ok"]
    assert "reflect" in answer["warnings"][0]


def test_a_broken_scope_note_is_named_and_the_rest_is_logged(tmp_path: Path) -> None:
    """Frontmatter that does not parse is left alone; the other steps are done."""
    put(tmp_path, SCOPE, "---\ntags: [#abc, def]\n---\n\n## Scope\n")
    answer = call(make_ctx(tmp_path), "log_session", **BUNDLE, apply=True)
    row = next(row for row in answer["results"] if row["step"] == "scope")
    assert (row["ok"], row["code"], row["line"]) == (False, "malformed-note", 2)
    assert json.loads(get(tmp_path, HEART))["session"] == LOG


def test_an_older_session_that_arrives_late_does_not_turn_the_heartbeat_back(tmp_path: Path) -> None:
    """A queued session replayed after a newer one is logged, and the newer one stays the last committed."""
    call(make_ctx(tmp_path, "2026-11-30T18:00:00+01:00"), "log_session", **{**SMALL, "slug": "later"}, apply=True)
    answer = call(make_ctx(tmp_path), "log_session", **SMALL, apply=True)
    assert answer["ok"]
    assert LOG in snapshot(tmp_path)
    assert json.loads(get(tmp_path, HEART))["session"].endswith("1800-later.md")


def test_a_broken_heartbeat_is_replaced(tmp_path: Path) -> None:
    """Bytes that are no heartbeat do not stop a session."""
    put(tmp_path, HEART, "{oops")
    assert call(make_ctx(tmp_path), "log_session", **SMALL, apply=True)["ok"]
    assert json.loads(get(tmp_path, HEART))["session"] == LOG


def test_a_token_is_optional_but_never_ignored(tmp_path: Path) -> None:
    """Applying with the preview's token works a minute later; with a token of something else it is stale."""
    ctx = make_ctx(tmp_path, token_required=True)
    token = call(ctx, "log_session", **BUNDLE)["preview_token"]
    stale = call(ctx, "log_session", **{**BUNDLE, "log_body": "Other."}, apply=True, preview_token=token)
    assert (stale["ok"], stale["action"]) == (False, "stale-preview")
    assert snapshot(tmp_path) == {}
    later = make_ctx(tmp_path, "2026-11-30T14:06:30+01:00", token_required=True)
    assert call(later, "log_session", **BUNDLE, apply=True, preview_token=token)["action"] == "logged"


@pytest.mark.parametrize(("change", "code", "field"), [
    ({"slug": " "}, "invalid-argument", "slug"),
    ({"log_body": ""}, "invalid-argument", "log_body"),
    ({"log_body": None}, "invalid-argument", "log_body"),
    ({"agent_log_line": "-"}, "invalid-argument", "agent_log_line"),
    ({"agent_log_line": "a\nb"}, "invalid-argument", "agent_log_line"),
    ({"reflect": [{"action": "append", "line": "x"}]}, "invalid-argument", "reflect[0].path"),
    ({"log_body": "key ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"}, "secret-suspected", "log_body"),
    ({"reflect": [{"action": "append", "path": "a", "line": "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"}]},
     "secret-suspected", "reflect[0].line"),
    ({"log_body": "<% tp.file.title %>"}, "active-content", "log_body"),
])
def test_what_must_not_be_logged_is_refused_before_any_step(
    tmp_path: Path, change: dict[str, Any], code: str, field: str
) -> None:
    """Code and field are named, and the vault stays as it was."""
    answer = call(make_ctx(tmp_path), "log_session", **{**BUNDLE, **change}, apply=True)
    assert (answer["ok"], answer["code"], answer["field"]) == (False, code, field)
    assert snapshot(tmp_path) == {}


def test_the_operator_may_allow_credentials(tmp_path: Path) -> None:
    """With ECHO_ALLOW_SECRETS the log takes the text as it is."""
    body = "key ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    ctx = make_ctx(tmp_path, allow_secrets=True)
    assert call(ctx, "log_session", **{**SMALL, "log_body": body}, apply=True)["ok"]


def test_a_session_in_the_hour_that_happens_twice_is_found_again(tmp_path: Path) -> None:
    """On the night the clocks go back the repeat still meets its first attempt."""
    bundle = {**SMALL, "scope": "night"}
    call(make_ctx(tmp_path, "2026-10-25T02:30:00+02:00"), "log_session", **bundle, apply=True)
    done = snapshot(tmp_path)
    answer = call(make_ctx(tmp_path, "2026-10-25T02:30:00+02:00"), "log_session", **bundle, apply=True)
    assert answer["action"] == "unchanged"
    assert snapshot(tmp_path) == done
