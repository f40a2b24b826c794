"""No new note gets a name that Windows or Android cannot hold; notes that have one stay usable (spec 2.3, 3.4)."""
from __future__ import annotations

from pathlib import Path

import pytest
from opsfixture import call, get, make_ctx, put, snapshot
from test_bad_input import cli, plain

BAD = ["CON.md", "notes/aux.md", "notes/COM1.md", "lpt1/x.md", "why?.md", "a*b.md", 'say "hi".md', "x<y>.md", "a|b.md",
       "time 12:30.md", "Acme Inc./x.md", "blank /x.md"]


@pytest.mark.parametrize("title", ["CON", "Aux", "nul", "COM1", "Lpt9", "prn."])
def test_a_capture_never_gets_the_name_of_a_device(tmp_path: Path, title: str) -> None:
    """Its file is numbered as if the name were taken; it is found by its title."""
    ctx = make_ctx(tmp_path)
    made = call(ctx, "capture", title=title, kind="person", body="A short name.")
    word = title.strip(".").lower()
    assert (made["action"], made["path"]) == ("created", f"resources/people/{word}-2.md")
    assert call(ctx, "resolve", mention=title)["path"] == made["path"]
    assert [row for row in call(ctx, "health", deep=True)["violations"] if row["check"] == "bad-name"] == []


@pytest.mark.parametrize("path", BAD)
def test_no_door_makes_a_note_of_such_a_name(tmp_path: Path, path: str) -> None:
    """A move, also as a preview, and the shell's `put` answer invalid-path and what to do; nothing is written."""
    put(tmp_path, "notes/plain.md", "# Plain\n")
    ctx = make_ctx(tmp_path)
    before = snapshot(tmp_path)
    for confirm in (False, True):
        answer = plain(call(ctx, "move_note", path="notes/plain.md", new_path=path, confirm=confirm), tmp_path)
        assert (answer["code"], answer["field"]) == ("invalid-path", "new_path")
        assert "Choose a name" in answer["hint"]
    code, answer = cli(tmp_path, "put", path, "text")
    assert (code, plain(answer, tmp_path)["code"], answer["field"]) == (2, "invalid-path", "path")
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("path", BAD)
def test_a_note_that_has_such_a_name_is_read_edited_found_and_undone(tmp_path: Path, path: str) -> None:
    """It was made on a system that holds it: it is the person's, lint names it, and it may leave for a better name."""
    put(tmp_path, path, "# Wombat\n\nburrows at dusk\n")
    ctx = make_ctx(tmp_path)
    assert call(ctx, "get_note", path=path)["content"] == "# Wombat\n\nburrows at dusk\n"
    assert [hit["path"] for hit in call(ctx, "recall", query="burrows dusk")["primary"]] == [path]
    assert call(ctx, "resolve", mention="Wombat")["path"] == path
    assert call(ctx, "append_note", path=path, line="- eats grass")["action"] == "appended"
    assert call(ctx, "patch_note", path=path, operation="replace", target_type="frontmatter", target="type",
                content="animal")["ok"]
    assert get(tmp_path, path) == "---\ntype: animal\n---\n\n# Wombat\n\nburrows at dusk\n- eats grass\n"
    found = [row["path"] for row in call(ctx, "health", deep=True)["violations"] if row["check"] == "bad-name"]
    assert found == [path]
    first = call(ctx, "note_history", path=path)["versions"][-1]["id"]
    assert call(ctx, "restore_note", path=path, version_id=first, confirm=True)["ok"]
    assert cli(tmp_path, "put", path, "# Wombat\n\nnew\n", "--replace")[0] == 0
    (tmp_path / "vault" / path).unlink()
    ctx = make_ctx(tmp_path)
    assert call(ctx, "restore_note", path=path, version_id=first, confirm=True)["action"] == "restored"
    assert call(ctx, "move_note", path=path, new_path="notes/wombat.md", confirm=True)["ok"]
    assert get(tmp_path, "notes/wombat.md") == "# Wombat\n\nburrows at dusk\n"


def test_a_note_may_be_renamed_within_a_folder_whose_own_name_is_no_good(tmp_path: Path) -> None:
    """The folder is there already; only what a write would add has to fit every system."""
    put(tmp_path, "Acme Inc./x.md", "# X\n")
    ctx = make_ctx(tmp_path)
    assert call(ctx, "move_note", path="Acme Inc./x.md", new_path="Acme Inc./y.md", confirm=True)["ok"]
    assert call(ctx, "move_note", path="Acme Inc./y.md", new_path="Acme Inc./sub./y.md")["code"] == "invalid-path"
    assert get(tmp_path, "Acme Inc./y.md") == "# X\n"
