"""What only a folder can do wrong: torn files, full disks, permissions, foreign editors, several processes."""
import errno
import os
import stat
import threading
import unicodedata

import pytest
from echo_core.errors import Conflict, InvalidPath, NotFound, VaultAuth, VaultUnreachable
from echo_core.vault import folder_write, host_lock, safe_open
from echo_core.vault.base import edit
from echo_core.vault.folder import LOCK_FILE, FolderVault
from fakes.forked import dying_at, in_child

ROOT = os.geteuid() == 0


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


def test_a_write_syncs_the_file_before_its_name_and_the_folder_after(vault, root, monkeypatch):
    """The order that survives a power cut: bytes, fsync, rename, fsync of the folder."""
    vault.write("a.md", b"one", None)
    steps = []
    sync, rename = safe_open.OpenFolder.sync, safe_open.OpenFolder.rename
    monkeypatch.setattr(folder_write, "sync", lambda fd: steps.append("sync file") or os.fsync(fd))
    monkeypatch.setattr(safe_open.OpenFolder, "rename", lambda *args: steps.append("rename") or rename(*args))
    monkeypatch.setattr(safe_open.OpenFolder, "sync", lambda self: steps.append("sync folder") or sync(self))
    vault.write("a.md", b"two", b"one")
    assert steps == ["sync file", "rename", "sync folder"]


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


@pytest.mark.parametrize(("number", "code", "reason"), [
    (errno.ENOSPC, "vault-unreachable", "disk-full"), (errno.EDQUOT, "vault-unreachable", "disk-full"),
    (errno.EROFS, "vault-auth", "read-only"), (errno.EACCES, "vault-auth", "permission"),
    (errno.EIO, "vault-unreachable", "eio"), (errno.EDEADLK, "vault-unreachable", "evicted"),
    (errno.ESTALE, "vault-unreachable", "estale"),
])
@pytest.mark.parametrize("step", ["write_all", "sync", "rename"])
def test_a_failing_disk_changes_nothing_and_is_named(vault, root, monkeypatch, number, code, reason, step):
    """Each error has its code and reason, tells no host path, and leaves the old bytes and no temp file."""
    vault.write("a.md", b"old", None)

    def fail(*args):
        raise OSError(number, os.strerror(number), str(root))

    monkeypatch.setattr(*(safe_open.OpenFolder, "rename") if step == "rename" else (folder_write, step), fail)
    with pytest.raises((VaultUnreachable, VaultAuth)) as failure:
        vault.write("a.md", b"new", b"old")
    envelope = failure.value.envelope()
    assert (envelope["code"], envelope["reason"]) == (code, reason)
    assert str(root) not in repr(envelope)
    assert failure.value.__cause__ is None
    assert vault.read("a.md") == b"old"
    assert names(root) == ["a.md"]


def test_a_name_that_is_too_long_for_the_disk_is_an_invalid_path(vault, monkeypatch):
    """ENAMETOOLONG never reaches a caller."""
    def fail(*args, **kwargs):
        raise OSError(errno.ENAMETOOLONG, "File name too long")

    monkeypatch.setattr(safe_open.OpenFolder, "lstat", fail)
    with pytest.raises(InvalidPath):
        vault.read("a.md")


def test_a_missing_root_is_unreachable_and_never_empty(tmp_path):
    """No call takes an absent vault for an empty one, or makes it."""
    vault = FolderVault(str(tmp_path / "absent"))
    for call in (
        vault.check, lambda: list(vault.walk()), lambda: vault.read("a.md"), lambda: vault.list_folder(""),
        lambda: vault.write("a.md", b"", None), lambda: vault.stat("a.md"),
    ):
        with pytest.raises(VaultUnreachable) as failure:
            call()
        assert failure.value.data["reason"] == "missing"
    assert not (tmp_path / "absent").exists()


def test_a_vault_that_is_suddenly_empty_is_unreachable(vault, root):
    """An unmounted vault leaves an empty folder: nothing is reported gone, nothing is written beside it."""
    vault.write("a.md", b"one", None)
    assert paths(vault) == ["a.md"]
    for path in ("a.md", LOCK_FILE):
        (root / path).unlink()
    (root / "_agent/locks").rmdir()
    (root / "_agent").rmdir()
    for call in (lambda: list(vault.walk()), lambda: vault.read("a.md"), lambda: vault.write("b.md", b"", None),
                 vault.check):
        with pytest.raises(VaultUnreachable) as failure:
            call()
        assert failure.value.data["reason"] == "emptied"
    assert list(root.iterdir()) == []


def test_a_new_empty_vault_is_fine(vault):
    """Only a vault that held something can be suddenly empty."""
    vault.check()
    assert list(vault.walk()) == []
    vault.write("a.md", b"", None)


@pytest.fixture
def open_root(tmp_path_factory):
    """A vault's folder that every user may reach and write."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield folder


def test_permissions_that_keep_us_out_are_an_auth_error(open_root):
    """A closed file and a closed folder are refused as such, not reported absent."""
    vault = FolderVault(open_root)
    for path in ("closed.md", "shut/x.md", "open/x.md", "fixed.md"):
        vault.write(path, b"one", None)
    os.chmod(f"{open_root}/closed.md", 0)
    os.chmod(f"{open_root}/shut", 0)
    os.chmod(f"{open_root}/fixed.md", 0o444)
    os.chmod(f"{open_root}/{LOCK_FILE}", 0o444)

    def look():
        found = paths(vault)
        errors = []
        for call in (lambda: vault.read("closed.md"), lambda: vault.read("shut/x.md"),
                     lambda: vault.read("shut/absent.md"), lambda: vault.write("fixed.md", b"two", b"one"),
                     lambda: vault.write("open/y.md", b"", None)):
            with pytest.raises(VaultAuth) as failure:
                call()
            errors.append(failure.value.data["reason"])
        return found, vault.unreadable(), errors

    found, unreadable, errors = in_child(look, as_nobody=True)
    assert found == ["closed.md", "fixed.md", "open/x.md"]
    assert unreadable == ["shut"]
    assert errors == ["permission"] * 5
    os.chmod(f"{open_root}/shut", 0o700)


def test_an_unreadable_root_is_an_auth_error(open_root):
    """A scan of a closed vault aborts; it does not find nothing."""
    vault = FolderVault(open_root)
    vault.write("a.md", b"", None)
    os.chmod(open_root, 0)
    try:
        assert in_child(lambda: list(vault.walk()), as_nobody=True).startswith("VaultAuth")
        assert in_child(vault.check, as_nobody=True).startswith("VaultAuth")
    finally:
        os.chmod(open_root, 0o700)


def test_mode_and_attributes_of_a_note_survive_its_edit(vault, root):
    """The rename brings a new file in; it looks like the old one."""
    vault.write("a.md", b"one", None)
    assert stat.S_IMODE((root / "a.md").stat().st_mode) == 0o666 & ~_umask()
    os.chmod(root / "a.md", 0o640)
    tagged = _tag(root / "a.md")
    vault.write("a.md", b"two", b"one")
    assert stat.S_IMODE((root / "a.md").stat().st_mode) == 0o640
    assert not tagged or os.getxattr(root / "a.md", "user.tag") == b"red"


@pytest.mark.skipif(not ROOT, reason="only root can give files away")
def test_root_leaves_notes_to_their_owner(vault, root):
    """A container that runs as root does not lock the person out of the vault."""
    os.chown(root, 1234, 1235)
    vault.write("new/a.md", b"one", None)
    os.chown(root / "new/a.md", 4321, 4322)
    vault.write("new/a.md", b"two", b"one")
    owners = [(path.stat().st_uid, path.stat().st_gid) for path in (root / "new", root / "new/a.md", root / LOCK_FILE)]
    assert owners == [(1234, 1235), (4321, 4322), (1234, 1235)]


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

    monkeypatch.setattr(host_lock, "_take", refuse)
    vault.write("a.md", b"one", None)
    assert vault.describe()["write_lock"] == "between threads only"


def test_a_file_system_without_hard_links_still_creates_and_moves(vault, root, monkeypatch):
    """Compare and rename is the next best thing, and still overwrites nothing."""
    def refuse(*args):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(safe_open.OpenFolder, "link", refuse)
    vault.write("a.md", b"one", None)
    vault.write("b.md", b"two", None)
    vault.move("a.md", "c.md")
    with pytest.raises(Conflict):
        vault.move("b.md", "c.md")
    assert names(root) == ["b.md", "c.md"]


def test_decomposed_names_on_the_disk_are_found_and_not_doubled(vault, root):
    """A vault that came from a Mac: NFC asks, NFD is there, for folders as for files."""
    folder = root / unicodedata.normalize("NFD", "Café")
    folder.mkdir()
    (folder / unicodedata.normalize("NFD", "é.md")).write_bytes(b"one")
    assert paths(vault) == ["Café/é.md"]
    assert vault.list_folder("Café").files == ["é.md"]
    vault.write("Café/é.md", b"two", b"one")
    with pytest.raises(Conflict):
        vault.write("Café/é.md", b"three", None)
    vault.write("Café/b.md", b"", None)
    assert len(list(root.iterdir())) == 2
    assert [path.read_bytes() for path in sorted(folder.iterdir())] == [b"", b"two"]


def test_two_forms_of_one_name_side_by_side_lose_nothing(vault, root):
    """The composed one is the path's file; the other is named and never written."""
    decomposed = unicodedata.normalize("NFD", "é.md")
    (root / "é.md").write_bytes(b"composed")
    (root / decomposed).write_bytes(b"decomposed")
    assert paths(vault) == ["é.md"]
    assert vault.unreadable() == ["é.md"]
    vault.write("é.md", b"new", b"composed")
    assert (root / decomposed).read_bytes() == b"decomposed"


def test_names_that_differ_by_case_stay_apart(vault, root):
    """Both are read exactly; a third spelling is answered with both."""
    (root / "Note.md").write_bytes(b"upper")
    (root / "note.md").write_bytes(b"lower")
    assert (vault.read("Note.md"), vault.read("note.md")) == (b"upper", b"lower")
    with pytest.raises(NotFound) as refusal:
        vault.read("NOTE.md")
    assert [found["path"] for found in refusal.value.data["candidates"]] == ["Note.md", "note.md"]


def test_names_that_echo_refuses_are_named_and_left_alone(vault, root):
    """A backslash, a trailing space, a name that is no UTF-8: reported, not read, no crash."""
    for name in (b"a\\b.md", b"x.md ", b"caf\xe9.md", b"fine.md", b"tab\there.md"):
        with open(os.path.join(os.fsencode(root), name), "wb") as file:
            file.write(b"x")
    assert paths(vault) == ["fine.md"]
    assert len(vault.unreadable()) == 4
    "".join(vault.unreadable()).encode("utf-8")
    assert vault.list_folder("").files == ["fine.md"]


def test_a_pipe_in_the_vault_is_no_note_and_hangs_nobody(vault, root):
    """Only ordinary files count."""
    os.mkfifo(root / "pipe.md")
    assert paths(vault) == []
    for call in (lambda: vault.read("pipe.md"), lambda: vault.stat("pipe.md")):
        with pytest.raises(NotFound):
            call()
    with pytest.raises(Conflict):
        vault.write("pipe.md", b"", None)


def test_a_walk_opens_folders_and_no_file(vault, root, monkeypatch):
    """Its cost grows with folders and names, not with bytes."""
    for number in range(50):
        vault.write(f"a/{number}.md", b"x", None)
    opened = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *args, **kwargs: opened.append(path) or real(path, *args, **kwargs))
    assert len(paths(vault)) == 50
    assert not [path for path in opened if str(path).endswith(".md")]


def _umask():
    current = os.umask(0)
    os.umask(current)
    return current


def _tag(path):
    try:
        os.setxattr(path, "user.tag", b"red")
    except OSError:
        return False
    return True
