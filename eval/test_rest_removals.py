"""A note that somebody removed in Obsidian, and one that Obsidian has not loaded yet, both answer 404 (spec 6.1)."""
import echo_known
import echo_ops
import echo_tools
import pytest
from echo_config import build_context
from echo_core.clock import Clock
from echo_core.errors import NotFound, VaultUnreachable
from restvault import serving


@pytest.fixture
def newest(tmp_path):
    """A vault with three notes behind the newest plugin."""
    with serving(tmp_path, timeout_s=1.0) as served:
        for name in ("a.md", "b.md", "c.md"):
            (served.folder / name).write_bytes(b"x\n")
        list(served.vault.walk())
        yield served


def test_a_note_that_somebody_removed_can_be_made_again_at_once(newest):
    """Its folder shows the other notes that are known there, so Obsidian is not loading: no walk is needed."""
    (newest.folder / "a.md").unlink()
    assert newest.vault.is_gone("a.md")
    newest.vault.write("a.md", b"new\n", None)
    assert (newest.folder / "a.md").read_bytes() == b"new\n"


def test_the_only_note_of_a_folder_can_be_made_again_as_well(newest):
    """Nothing is left in its folder; the folder above tells."""
    (newest.folder / "people").mkdir()
    (newest.folder / "people/ada.md").write_bytes(b"x\n")
    list(newest.vault.walk())
    (newest.folder / "people/ada.md").unlink()
    newest.vault.write("people/ada.md", b"new\n", None)
    assert (newest.folder / "people/ada.md").read_bytes() == b"new\n"


def test_a_loading_vault_never_looks_like_a_removal(newest):
    """All notes cold, one cold note among others, or a folder that misses others too: nobody can tell."""
    fault = newest.api.faults.add("cold")
    assert not newest.vault.is_gone("a.md")
    newest.api.faults.remove(fault)
    fault = newest.api.faults.add("cold", method="GET", path="/vault/a.md")
    assert not newest.vault.is_gone("a.md")
    newest.api.faults.remove(fault)
    (newest.folder / "a.md").unlink()
    (newest.folder / "b.md").unlink()
    assert not newest.vault.is_gone("a.md")
    assert newest.api.log.count("PUT") == 0


def test_a_note_that_is_hidden_is_not_said_to_be_missing(newest):
    """Somebody who believes that would write it anew; one that was removed is missing."""
    fault = newest.api.faults.add("cold", method="GET", path="/vault/a.md")
    with pytest.raises(VaultUnreachable) as failure:
        newest.vault.read("a.md")
    assert failure.value.data["reason"] == "loading"
    newest.api.faults.remove(fault)
    (newest.folder / "a.md").unlink()
    with pytest.raises(NotFound):
        newest.vault.read("a.md")


def test_a_hidden_note_is_answered_from_what_was_known(tmp_path):
    """Marked as such; an edit of it waits, and is not refused for want of the note."""
    with serving(tmp_path, timeout_s=1.0) as rest:
        for name in ("a", "b", "c"):
            (rest.folder / f"{name}.md").write_text(f"# {name}\n\nText.\n")
        ctx = build_context("", Clock("UTC", "2026-11-30T14:05:09Z"), str(tmp_path / "state"), backend=rest.vault,
                            keep_all=True)
        ctx.catalog.refresh()
        ctx.refresh = lambda: None
        rest.api.faults.add("cold", method="GET", path="/vault/a.md")
        found = echo_known.run(echo_tools.BY_NAME["echo_get_note"], {"path": "a.md"}, ctx)
        assert (found["content"], found["offline"]) == ("# a\n\nText.\n", True)
        edited = echo_tools.run(echo_tools.BY_NAME["echo_append_note"], {"path": "a.md", "line": "- x"}, ctx)
        assert (edited["code"], edited["reason"]) == ("vault-unreachable", "loading")
        assert (rest.folder / "a.md").read_text() == "# a\n\nText.\n"
        ctx.close()


def test_a_removed_note_is_captured_again_without_a_gate(tmp_path):
    """The look-alike that the gate would name is not there any more, and nothing has walked since."""
    with serving(tmp_path) as rest:
        ctx = build_context("", Clock("UTC", "2026-11-30T14:05:09Z"), str(tmp_path / "state"), backend=rest.vault)
        for name in ("Ada Lovelace", "Charles Babbage"):
            echo_ops.capture_op(name, kind="person", body=f"{name} lived in London.", ctx=ctx)
        ctx.refresh = lambda: None
        (rest.folder / "resources/people/ada-lovelace.md").unlink()
        answer = echo_ops.capture_op("Ada Lovelace", kind="person", body="Wrote the first program.", ctx=ctx)
        assert (answer["action"], answer["path"]) == ("created", "resources/people/ada-lovelace.md")
        assert "Wrote the first program." in (rest.folder / answer["path"]).read_text()
        ctx.history.close()
