"""A note that somebody removed in Obsidian, and one that Obsidian has not loaded yet, both answer 404 (spec 6.1)."""
import echo_ops
import pytest
from echo_config import build_context
from echo_core.clock import Clock
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
