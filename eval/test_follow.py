"""A note that another program changes is known at once, without a walk over the vault (spec 5.5)."""
from __future__ import annotations

from pathlib import Path

import pytest
from echo_context import OpContext
from echo_mcp.follow import MOST, take_in
from opsfixture import call, make_ctx, put


@pytest.fixture
def ctx(tmp_path: Path) -> OpContext:
    put(tmp_path, "resources/people/ada.md", "# Ada\n\nFirst text about looms.\n")
    made = make_ctx(tmp_path)
    made.feed.listen()
    made.catalog.refresh()
    made.feed.catch_up()
    made.refresh = lambda: None
    return made


def found(ctx: OpContext, query: str) -> list[str]:
    return [hit["path"] for hit in call(ctx, "recall", query=query)["primary"]]


def test_changed_new_and_deleted_notes_are_taken_in(ctx: OpContext, tmp_path: Path) -> None:
    """Search, names and facts follow; no walk was needed."""
    put(tmp_path, "resources/people/ada.md", "# Ada\n\nSecond text about engines.\n")
    put(tmp_path, "notes/new.md", "# Zephyr\n\nA windmill.\n")
    assert take_in(["resources/people/ada.md", "notes/new.md"], ctx)
    assert found(ctx, "engines") == ["resources/people/ada.md"]
    assert found(ctx, "looms") == []
    assert call(ctx, "resolve", mention="zephyr")["path"] == "notes/new.md"
    (tmp_path / "vault/notes/new.md").unlink()
    assert take_in(["notes/new.md"], ctx)
    assert found(ctx, "windmill") == []
    assert call(ctx, "resolve", mention="zephyr")["match"] is False


def test_what_is_no_note_is_left_to_the_walk(ctx: OpContext, tmp_path: Path) -> None:
    """A renamed folder or a new attachment changes what links mean; ECHO's own files do not."""
    assert not take_in(["resources/people"], ctx)
    assert not take_in(["attachments/a.png", "resources/people/ada.md"], ctx)
    assert not take_in([f"n{number}.md" for number in range(MOST + 1)], ctx)
    assert take_in(["_agent/index/entities.json", "_agent/locks/write.lock"], ctx)


def test_trouble_with_a_note_is_left_to_the_walk(ctx: OpContext, tmp_path: Path) -> None:
    """A path that may not be read changes nothing here."""
    (tmp_path / "vault/out.md").symlink_to("/etc/passwd")
    assert not take_in(["out.md"], ctx)
    assert not take_in(["../../etc/x.md"], ctx)
    assert found(ctx, "looms") == ["resources/people/ada.md"]


def test_our_own_write_is_no_news(ctx: OpContext, tmp_path: Path) -> None:
    """The watcher reports it too; nothing is read into the tables a second time."""
    call(ctx, "append_note", path="resources/people/ada.md", line="A line of our own.")
    before = ctx.catalog.generation
    assert take_in(["resources/people/ada.md"], ctx)
    assert ctx.catalog.generation == before
