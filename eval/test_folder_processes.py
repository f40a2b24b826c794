"""Kills, foreign editors and several processes at one folder vault lose nothing."""
import errno
import os
import threading

import pytest
from echo_core.errors import Conflict, VaultUnreachable
from echo_core.vault import folder_write, host_lock, open_folder
from echo_core.vault.base import edit
from echo_core.vault.folder import LOCK_FILE, FolderVault
from fakes.forked import dying_at

# Test runners have threads of their own; the forked children use nothing of them.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


@pytest.fixture(params=[True, False], ids=["descriptors", "paths"])
def vault(request, tmp_path):
    """A vault over `tmp_path / "vault"`, walked in both ways."""
    (tmp_path / "vault").mkdir()
    return FolderVault(str(tmp_path / "vault"), dir_fds=request.param)


@pytest.fixture
def root(tmp_path):
    """The vault's folder."""
    return tmp_path / "vault"


def names(root):
    """Every name below the folder, dot names too, the kernel lock's file left out."""
    found = {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()}
    return sorted(found - {LOCK_FILE})


def paths(vault):
    """Paths of the walk without the kernel lock's file."""
    return [found.path for found in vault.walk() if found.path != LOCK_FILE]


@pytest.mark.parametrize("action", ["create", "replace", "move", "delete"])
def test_a_kill_at_any_step_leaves_the_old_state_or_the_new(vault, root, action):
    """Whole versions only, and the next call works as if nothing had been."""
    actions = {
        "create": lambda: vault.write("new/b.md", b"new", None),
        "replace": lambda: vault.write("a.md", b"new", b"old"),
        "move": lambda: vault.move("a.md", "new/b.md"),
        "delete": lambda: vault.delete("a.md", b"old"),
    }
    states = {
        "create": [{"a.md": b"old"}, {"a.md": b"old", "new/b.md": b"new"}],
        "replace": [{"a.md": b"old"}, {"a.md": b"new"}],
        "move": [{"a.md": b"old"}, {"a.md": b"old", "new/b.md": b"old"}, {"new/b.md": b"old"}],
        "delete": [{"a.md": b"old"}, {}],
    }
    calls = [(os, name) for name in ("open", "write", "fsync", "replace", "link", "unlink", "mkdir")]
    step, died = 1, True
    while died:
        for path in paths(vault):
            (root / path).unlink()
        (root / "a.md").write_bytes(b"old")
        died = dying_at(step, calls, actions[action])
        assert {path: vault.read(path) for path in paths(vault)} in states[action]
        vault.write("proof.md", b"", None)
        (root / "proof.md").unlink()
        step += 1
    assert step > 5


def test_a_move_killed_half_way_is_finished_by_the_next_one(vault, root):
    """Both names of one file are no two notes."""
    (root / "a.md").write_bytes(b"one")
    os.link(root / "a.md", root / "b.md")
    vault.move("a.md", "b.md")
    assert names(root) == ["b.md"]


def test_leftovers_of_a_killed_writer_are_invisible_and_go_away(vault, root):
    """A walk notices them, the next write removes the old ones."""
    (root / "a").mkdir()
    for name in (".echo-old.tmp", ".echo-new.tmp", ".somebody.tmp"):
        (root / "a" / name).write_bytes(b"half")
    os.utime(root / "a/.echo-old.tmp", (1, 1))
    assert paths(vault) == []
    assert vault.list_folder("a").files == []
    vault.write("a/x.md", b"", None)
    assert names(root) == ["a/.echo-new.tmp", "a/.somebody.tmp", "a/x.md"]


@pytest.mark.parametrize("expected", [b"old", None])
def test_a_foreign_write_between_compare_and_rename_survives(vault, root, monkeypatch, expected):
    """An editor that saves while we sync wins; our write is a conflict and is retried from what it wrote."""
    if expected is not None:
        vault.write("a.md", expected, None)
    foreign = [b"by hand"]

    def save_by_hand(fd):
        if foreign:
            (root / "a.md").write_bytes(foreign.pop())

    monkeypatch.setattr(folder_write, "sync", save_by_hand)
    with pytest.raises(Conflict):
        vault.write("a.md", b"ours", expected)
    assert names(root) == ["a.md"]
    foreign.append(b"by hand again")
    assert edit(vault, "a.md", lambda before: before + b", ours").after == b"by hand again, ours"


def test_a_reader_sees_whole_versions_only(vault):
    """No read meets a half-written or empty note."""
    versions = [b"a" * 200_000, b"b" * 300_000]
    vault.write("a.md", versions[0], None)
    stop = threading.Event()
    seen = set()

    def read():
        while not stop.is_set():
            seen.add(vault.read("a.md"))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for turn in range(40):
        vault.write("a.md", versions[(turn + 1) % 2], versions[turn % 2])
    stop.set()
    for reader in readers:
        reader.join()
    assert seen <= set(versions)


def test_processes_that_append_to_one_note_lose_nothing(vault, root):
    """20 processes with 50 appends each: 1,000 lines, each once."""
    vault.write("log.md", b"", None)
    children = []
    for worker in range(20):
        pid = os.fork()
        if pid == 0:
            folder_write.sync = lambda fd: None  # the lock is on trial here, not the disk
            for number in range(50):
                edit(vault, "log.md", lambda before, n=number: before + b"%d-%d\n" % (worker, n))
            os._exit(0)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 20
    lines = vault.read("log.md").split()
    assert sorted(lines) == sorted(b"%d-%d" % (worker, number) for worker in range(20) for number in range(50))
    assert names(root) == ["log.md"]


def test_a_dead_holder_of_the_kernel_lock_blocks_nobody(vault):
    """The kernel gives the lock of a killed process away."""
    pid = os.fork()
    if pid == 0:
        with vault.exclusive():
            os._exit(0)
    os.waitpid(pid, 0)
    vault.write("a.md", b"", None)


def test_a_lock_that_is_never_free_is_an_error_and_no_hang(vault):
    """After the waiting time the vault counts as busy."""
    with vault.exclusive():
        lock = host_lock.HostLock()
        with pytest.raises(VaultUnreachable) as failure:
            lock.held(vault._open_lock_file, vault._is_lock_file, wait_s=0).__enter__()
    assert failure.value.data["reason"] == "busy"


def test_a_file_system_without_kernel_locks_still_takes_writes(vault, monkeypatch):
    """Threads still take turns, and `describe` says what is missing."""
    def refuse(fd):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(host_lock, "lock_now", refuse)
    vault.write("a.md", b"one", None)
    assert vault.describe()["write_lock"] == "between threads only"


def test_a_file_system_without_hard_links_still_creates_and_moves(vault, root, monkeypatch):
    """Compare and rename is the next best thing, and still overwrites nothing."""
    def refuse(*args):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(open_folder.OpenFolder, "link", refuse)
    vault.write("a.md", b"one", None)
    vault.write("b.md", b"two", None)
    vault.move("a.md", "c.md")
    with pytest.raises(Conflict):
        vault.move("b.md", "c.md")
    assert names(root) == ["b.md", "c.md"]
