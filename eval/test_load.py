"""Orientation: one small answer that says where things stand, whatever the vault looks like (spec 3.2)."""
from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest
from echo_core.errors import VaultUnreachable
from echo_output import render
from opsfixture import call, get, make_ctx, put, snapshot

PREFERENCES = "_agent/memory/semantic/operator-preferences.md"
MARKER = "_agent/echo-vault.md"
SESSION = "_agent/sessions/2026-11-29-1800-harbour.md"
DAY = "journal/daily/2026-11-30.md"


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    put(tmp_path, MARKER, "---\nschema_version: 3\nbootstrapped: 2026-01-02T08:00:00+01:00\n---\n\n# ECHO\n")
    put(tmp_path, PREFERENCES, "---\ntype: semantic\n---\n\n# Operator Preferences\n\nShort answers, metric units.\n")
    put(tmp_path, SESSION, "---\ntype: session\n---\n\n# harbour\n\nMeasured the quay. Open: the crane.\n")
    put(tmp_path, DAY, "---\ntype: daily\n---\n\n# 2026-11-30\n\n## Agent Log\n\n- 09:00 loaded\n")
    put(tmp_path, "inbox/captures/inbox.md", "- 2026-11-18: old\n- 2026-11-30: new\n")
    call(make_ctx(tmp_path, "2026-11-29T09:00:00+01:00"), "set_scope", scope="Rebuild the harbour")
    return tmp_path


def test_a_brief_answer_says_where_things_stand(folder: Path) -> None:
    """Marker, preferences, scope, last session, today and the inbox; nothing is written."""
    before = snapshot(folder)
    answer = call(make_ctx(folder), "load")
    assert snapshot(folder) == before
    sections = answer["sections"]
    assert sections["marker"] == "schema_version 3, bootstrapped 2026-01-02T08:00:00+01:00"
    assert sections["preferences"] == "Short answers, metric units."
    assert sections["scope"] == "Rebuild the harbour"
    assert sections["last_session"] == "2026-11-29-1800-harbour\nMeasured the quay. Open: the crane."
    assert sections["today"] == "## Agent Log\n\n- 09:00 loaded"
    assert (sections["inbox_count"], sections["inbox_oldest_days"], sections["sessions_since"]) == (2, 12, 1)
    assert (answer["queued_flushed"], answer["offline"], answer["parked"], answer["conflicts"]) == (0, False, 0, 0)
    assert answer["aging"] == 1
    assert "truncated" not in answer


def test_a_whole_answer_has_the_notes_as_they_are(folder: Path) -> None:
    """Each note with its frontmatter, and the inbox itself."""
    sections = call(make_ctx(folder), "load", brief=False)["sections"]
    assert sections["preferences"] == get(folder, PREFERENCES)
    assert sections["marker"] == get(folder, MARKER)
    assert sections["context"] == get(folder, "_agent/context/current-context.md")
    assert sections["inbox"] == get(folder, "inbox/captures/inbox.md")
    assert sections["last_session"] == get(folder, SESSION)
    assert sections["today"] == get(folder, DAY)


@pytest.mark.parametrize("letter", ["word ", "ж", "\"\\\n", "👩‍👩‍👧", "[[a|b]] "])
def test_a_brief_answer_stays_small_whatever_the_vault_holds(folder: Path, letter: str) -> None:
    """Envelope and text together at most 6,000 characters, every cut flagged with its real length."""
    for path in (PREFERENCES, SESSION, DAY):
        put(folder, path, "# T\n\n" + letter * 30000)
    put(folder, "_agent/context/current-context.md", "---\nscope: " + json.dumps("s" * 9000) + "\n---\n")
    put(folder, "inbox/captures/inbox.md", "- 2026-11-18: x\n" * 5000)
    for number in range(300):
        put(folder, f"_agent/sessions/2026-11-28-{number % 24:02}{number // 24:02}-{'long-name-' * 8}.md", "x\n")
    answer = call(make_ctx(folder), "load")
    whole = json.dumps(answer, ensure_ascii=False) + render("echo_load", answer)
    assert len(whole) <= 6000
    assert answer["truncated"] is True
    assert answer["full_chars"]["scope"] == 9000
    assert set(answer["full_chars"]) >= {"preferences", "today"}
    assert answer["read_more"]["preferences"] == PREFERENCES
    assert len(answer["sections"]["preferences"]) > 0
    assert answer["sections"]["inbox_count"] == 5000


def test_short_sections_leave_their_room_to_long_ones(folder: Path) -> None:
    """With nothing else to say, a long preferences note gets nearly all of the answer."""
    put(folder, PREFERENCES, "rule " * 2000)
    answer = call(make_ctx(folder), "load")
    assert len(answer["sections"]["preferences"]) > 1200
    assert list(answer["full_chars"]) == ["preferences"]


def test_a_long_day_is_shown_from_its_end(folder: Path) -> None:
    """The newest lines of the agent log are the ones that matter."""
    put(folder, DAY, "# D\n\n## Agent Log\n\n" + "".join(f"- {i // 60:02}:{i % 60:02} step {i}\n" for i in range(900)))
    answer = call(make_ctx(folder), "load")
    assert answer["sections"]["today"].rstrip().endswith("step 899")
    assert answer["sections"]["today"].startswith("- ")
    assert answer["full_chars"]["today"] > 10000


def test_whole_sections_end_at_their_limit_and_say_so(folder: Path) -> None:
    """Up to 8,000 characters each; a longer note is flagged with its length."""
    put(folder, PREFERENCES, "p" * 8000)
    put(folder, DAY, "d" * 8001)
    answer = call(make_ctx(folder), "load", brief=False)
    assert (len(answer["sections"]["preferences"]), len(answer["sections"]["today"])) == (8000, 8000)
    assert answer["full_chars"] == {"today": 8001}


def test_a_vault_that_was_never_set_up_answers_and_says_so(tmp_path: Path) -> None:
    """An empty folder is no error: the marker is missing, and the hint names the cure."""
    answer = call(make_ctx(tmp_path), "load")
    assert answer["ok"]
    assert answer["sections"]["marker"] == "not bootstrapped"
    assert "bootstrap" in answer["hint"]
    assert (answer["sections"]["inbox_count"], answer["sections"]["scope"]) == (0, "")
    assert snapshot(tmp_path) == {}


@pytest.mark.parametrize("path", [MARKER, PREFERENCES, SESSION, DAY, "_agent/context/current-context.md",
                                  "inbox/captures/inbox.md", "projects/active/x.md"])
@pytest.mark.parametrize("data", [
    b"---\ntags: [#abc, def]\n---\n\nbody\n", b"\xff\xfe\x00\x80", b"", b"---\n", b"# \n" * 99,
])
def test_one_broken_note_degrades_alone(folder: Path, path: str, data: bytes) -> None:
    """Malformed YAML, bytes that are no text, an empty file: the other sections are there as always."""
    (folder / "vault" / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / "vault" / path).write_bytes(data)
    for brief in (True, False):
        answer = call(make_ctx(folder), "load", brief=brief)
        assert answer["ok"]
        json.dumps(answer).encode("utf-8")
        if path != PREFERENCES:
            assert "Short answers, metric units." in answer["sections"]["preferences"]
        if path != SESSION:
            assert "Measured the quay." in answer["sections"]["last_session"]


@pytest.mark.skipif(os.name == "nt", reason="folders of this name are made differently there")
def test_a_folder_where_a_note_should_be_is_named(folder: Path) -> None:
    """What cannot be read is empty and stands in the warnings by name."""
    (folder / "vault" / PREFERENCES).unlink()
    (folder / "vault" / PREFERENCES).mkdir()
    answer = call(make_ctx(folder), "load")
    assert answer["ok"]
    assert answer["sections"]["preferences"] == ""


def test_a_vault_that_is_not_there_is_an_error(folder: Path) -> None:
    """Down is not empty: the answer is vault-unreachable."""
    (folder / "vault").rename(folder / "elsewhere")
    ctx = make_ctx(folder)
    (folder / "vault").rmdir()
    answer = call(ctx, "load")
    assert (answer["ok"], answer["code"]) == (False, "vault-unreachable")


def test_waiting_writes_are_flushed_and_counted(folder: Path) -> None:
    """The flush comes first and its number is told; parked writes and conflicts get a hint."""
    ctx = make_ctx(folder)

    def flush() -> int:
        put(folder, DAY, "# D\n\n- just arrived\n")
        return 1

    ctx.flush = flush
    ctx.queue = lambda: {"depth": 0, "parked": 2, "conflicts": 1}
    answer = call(ctx, "load")
    assert (answer["queued_flushed"], answer["parked"], answer["conflicts"]) == (1, 2, 1)
    assert "just arrived" in answer["sections"]["today"]
    assert "operator" in answer["hint"]


def test_a_read_only_context_does_not_flush(folder: Path) -> None:
    """Reading changes nothing when nothing may be changed."""
    ctx = make_ctx(folder, read_only=True)
    ctx.flush = lambda: pytest.fail("flushed")
    assert call(ctx, "load")["queued_flushed"] == 0


@pytest.mark.parametrize("failure", [VaultUnreachable("gone again"), OSError("full"), sqlite3.DatabaseError("broken")])
def test_a_flush_that_fails_does_not_hide_the_memory(folder: Path, failure: Exception) -> None:
    """The sections are answered, the trouble stands in the warnings."""
    ctx = make_ctx(folder)

    def fail() -> int:
        raise failure

    ctx.flush = fail
    answer = call(ctx, "load")
    assert answer["ok"]
    assert answer["sections"]["scope"] == "Rebuild the harbour"
    assert answer["warnings"][0].startswith("waiting writes: not available")


def test_things_left_alone_are_counted(folder: Path) -> None:
    """Working memory past 14 days, active projects past 60 and inbox items past 7 are aging."""
    put(folder, "_agent/memory/working/a.md", "---\nupdated: 2026-11-10\n---\n")
    put(folder, "_agent/memory/working/b.md", "---\nupdated: 2026-11-20\n---\n")
    put(folder, "projects/active/c.md", "---\nupdated: 2026-09-01\n---\n")
    put(folder, "projects/active/d.md", "---\nupdated: 2026-11-01\n---\n")
    ctx = make_ctx(folder)
    answer = call(ctx, "load")
    assert answer["aging"] == 3
    assert "Aging" in answer["hint"]
    ctx.catalog.refresh()
    assert call(ctx, "load")["aging"] == 3


def test_what_the_catalog_knows_is_not_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of projects cost a start of a session no read each."""
    for number in range(20):
        put(folder, f"projects/active/p{number}.md", "---\nupdated: 2026-09-01\n---\n")
        os.utime(folder / f"vault/projects/active/p{number}.md", (1, 1))  # what was just written is read twice
    ctx = make_ctx(folder)
    ctx.catalog.refresh()
    read: list[str] = []
    inner = ctx.vault.read_many
    monkeypatch.setattr(ctx.vault, "read_many", lambda paths: inner(read.extend(paths) or paths))
    assert call(ctx, "load")["aging"] == 21  # an inbox item too
    assert not [path for path in read if path.startswith("projects/")]
