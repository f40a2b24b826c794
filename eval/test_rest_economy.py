"""How many requests the usual calls cost behind Obsidian's REST API (spec 6.1)."""
from __future__ import annotations

import os

import echo_note_edits
import echo_notes
import echo_ops
import echo_recall
import pytest
from echo_bootstrap import bootstrap_op
from echo_config import build_context
from echo_core.clock import Clock
from restvault import serving


@pytest.fixture(params=["5.1.0", "3.6.1"])
def warm(request, tmp_path):
    """A bootstrapped vault with one person, and a context as the server keeps it; the log is empty."""
    with serving(tmp_path, request.param) as rest:
        ctx = build_context("", Clock("UTC", "2026-11-30T14:05:09Z"), str(tmp_path / "state"), backend=rest.vault,
                            trust_s=60)
        bootstrap_op(ctx=ctx)
        echo_ops.capture_op("Ada Lovelace", kind="person", body="Wrote the first program.", ctx=ctx)
        ctx.feed.listen()
        ctx.catalog.refresh()
        ctx.feed.catch_up()
        ctx.refresh = lambda: None
        ctx.routes()
        rest.api.log.clear()
        yield rest.api.log, ctx
        ctx.history.close()


def test_recall_and_resolve_ask_nothing(warm):
    """They answer from what is in memory."""
    log, ctx = warm
    assert echo_recall.recall_op("first program", ctx=ctx)["primary"]
    assert echo_ops.resolve_op("Ada Lovelace", ctx=ctx)["match"]
    assert not echo_ops.resolve_op("Nobody", ctx=ctx)["match"]
    assert log.entries == []


@pytest.mark.parametrize("name", ["resources/people/ada-lovelace.md", "ada-lovelace", "Ada Lovelace"])
def test_reading_a_note_is_one_request(warm, name):
    """However it is named."""
    log, ctx = warm
    assert echo_notes.get_note_op(name, ctx=ctx)["ok"]
    assert [entry.method for entry in log.entries] == ["GET"]


def test_an_append_is_three_requests(warm):
    """Read, write, read back."""
    log, ctx = warm
    assert echo_note_edits.append_op("ada-lovelace", "- liked trains", ctx=ctx)["action"] == "appended"
    assert [entry.method for entry in log.entries] == ["GET", "PUT", "GET"]


@pytest.mark.parametrize("kind", ["person", "project", "concept"])
def test_a_capture_is_at_most_sixteen_requests(warm, kind):
    """Note, index under its lock and the day's log, also in a folder that is new."""
    log, ctx = warm
    answer = echo_ops.capture_op("Analytical Engine", kind=kind, body="Ada Lovelace wrote for it.", ctx=ctx)
    assert answer["action"] == "created"
    assert len(log.entries) <= 16
    assert {entry.method for entry in log.entries} == {"GET", "PUT", "DELETE"}


def test_the_next_start_reads_no_note_that_it_knows(tmp_path):
    """Names, facts and texts of unchanged notes come from the state folder: one search finds out that they are the
    same, and the listings what else there is."""
    with serving(tmp_path) as rest:
        for number in range(30):
            note = rest.folder / f"{number}.md"
            note.write_text(f"# Note {number}\n\nAbout looms.\n")
            os.utime(note, (1e9, 1e9))  # a note of this very moment would be looked at twice
        for _run in range(2):
            files = {name: str(tmp_path / f"state/{name}") for name in ("facts_cache", "notes_cache")}
            ctx = build_context("", Clock("UTC", "2026-11-30T14:05:09Z"), str(tmp_path / "state"), backend=rest.vault,
                                trust_s=60, keep_all=True, **files)
            rest.api.log.clear()
            assert len(echo_recall.recall_op("looms", limit=20, ctx=ctx)["primary"]) > 3
            ctx.known.notes.save()
            ctx.history.close()
        assert not [entry.path for entry in rest.api.log.entries if entry.path.endswith(".md")]
        assert rest.api.log.count("POST") == 1
