"""No replacement without a version to go back to (spec 6.3)."""
import pytest
from echo_core.clock import Clock
from echo_core.errors import Conflict, InvalidPath, NotFound, NoUndo, Overtaken, VaultUnreachable
from echo_core.history import HistoryStore
from echo_core.vault.base import edit
from echo_core.vault.journaled import JournaledVault
from fakes.memory_vault import MemoryVault


class FullHistory(HistoryStore):
    """A history on a full disk."""

    def record(self, *args, **kwargs):
        raise NoUndo("The history of notes cannot be used")

    moved = withdraw = record


@pytest.fixture
def inner():
    """The vault below."""
    return MemoryVault({"a.md": b"old"})


@pytest.fixture
def history(tmp_path):
    """A history that works."""
    store = HistoryStore(str(tmp_path), Clock("UTC", "2026-11-30T14:05:09Z"))
    yield store
    store.close()


@pytest.fixture
def vault(inner, history):
    """The journaled vault."""
    return JournaledVault(inner, history)


@pytest.fixture
def gapped(inner, tmp_path):
    """A journaled vault whose history cannot be written."""
    return JournaledVault(inner, FullHistory(str(tmp_path), Clock("UTC")))


def states(history, path):
    """Contents of the path's versions, newest first."""
    return [history.content(path, version.id) for version in history.versions(path)]


def test_every_change_of_a_note_leaves_its_former_state(vault, history):
    """Creation, edit, deletion: each can be undone."""
    vault.write("b.md", b"one", None)
    edit(vault, "b.md", lambda before: before + b" two")
    vault.delete("b.md", b"one two")
    assert states(history, "b.md") == [b"one two", b"one", None]


def test_a_move_can_be_undone_at_both_ends(vault, history):
    """The old path gets its bytes back, the new one goes."""
    vault.move("a.md", "b.md")
    assert states(history, "a.md") == [b"old"]
    assert states(history, "b.md") == [None]


def test_a_version_names_the_call_that_made_it_necessary(vault, history):
    """Tool and op id of the thread's current call."""
    vault.note_context("echo_patch_note", "op-7")
    vault.write("a.md", b"new", b"old")
    version, = history.versions("a.md")
    assert (version.tool, version.op_id, version.by_others) == ("echo_patch_note", "op-7", True)


@pytest.mark.parametrize("change", [
    lambda vault: vault.write("a.md", b"new", b"stale"), lambda vault: vault.write("a.md", b"new", None),
    lambda vault: vault.delete("a.md", b"stale"), lambda vault: vault.delete("x.md", b""),
    lambda vault: vault.move("a.md", "b.md"), lambda vault: vault.move("a.md", "b.md/c.md"),
    lambda vault: vault.move("x.md", "y.md"), lambda vault: vault.write("../x.md", b"", None),
])
def test_a_write_that_did_not_happen_leaves_no_version(vault, history, inner, change):
    """Conflicts, refused paths and absent files are no states to go back to."""
    inner.put("b.md", b"other")
    edit(vault, "a.md", lambda before: b"older" if before == b"old" else before)
    with pytest.raises((Conflict, NotFound, InvalidPath)):
        change(vault)
    assert states(history, "a.md") == [b"old"]
    assert not any(history.versions(path) for path in ("b.md", "b.md/c.md", "x.md", "y.md", "../x.md"))


def test_a_write_that_may_have_happened_keeps_its_version(inner, vault, history):
    """After a timeout nobody knows; the bytes stay safe."""
    def down(path):
        raise VaultUnreachable("too slow")

    inner.before_write = down
    with pytest.raises(VaultUnreachable):
        vault.write("a.md", b"new", b"old")
    assert states(history, "a.md") == [b"old"]


def test_control_files_have_no_history(vault, history):
    """Locks and the derived index come and go."""
    for path in ("_agent/locks/index.json", "_agent/index/entities.json"):
        vault.write(path, b"{}", None)
        vault.write(path, b"{ }", b"{}")
        assert history.versions(path) == []


@pytest.mark.parametrize("change", [
    lambda vault: vault.write("a.md", b"new", b"old"), lambda vault: vault.write("a.md", b"", b"old"),
    lambda vault: vault.delete("a.md", b"old"),
])
def test_without_a_version_nothing_is_replaced(gapped, inner, change):
    """`no-undo`, and the note is as it was."""
    with pytest.raises(NoUndo):
        change(gapped)
    assert inner.snapshot() == {"a.md": b"old"}


def test_without_a_history_what_only_adds_goes_on_and_is_counted(gapped, inner):
    """An append, a creation and a move lose no bytes."""
    gapped.write("a.md", b"old and more", b"old")
    gapped.write("b.md", b"new", None)
    gapped.move("b.md", "c.md")
    assert inner.snapshot() == {"a.md": b"old and more", "c.md": b"new"}
    assert gapped.describe()["history_gaps"] == 3


def test_a_restored_version_is_itself_undoable(vault, history):
    """Back, and forth again, byte for byte."""
    vault.write("a.md", b"new\xff", b"old")
    edit(vault, "a.md", lambda before: history.content("a.md", history.versions("a.md")[0].id))
    assert vault.read("a.md") == b"old"
    edit(vault, "a.md", lambda before: history.content("a.md", history.versions("a.md")[0].id))
    assert vault.read("a.md") == b"new\xff"


def test_a_version_stays_when_our_write_may_have_had_its_effect(vault, inner, history):
    """Somebody's bytes took the place of ours after they were sent; what stood there before can be brought back."""
    def lost(path, data, expected):
        inner.put(path, b"theirs")
        raise Overtaken("a.md was changed by somebody else meanwhile", path=path)

    inner.write = lost
    with pytest.raises(Overtaken):
        vault.write("a.md", b"new", b"old")
    assert states(history, "a.md") == [b"old"]
