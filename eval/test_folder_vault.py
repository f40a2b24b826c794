"""What only a folder can do wrong: a full or failing disk, a vault that is not there, the order of syncs."""
import errno
import os

import pytest
from echo_core.errors import InvalidPath, VaultAuth, VaultUnreachable
from echo_core.vault import folder_write, open_folder
from echo_core.vault.folder import LOCK_FILE, FolderVault


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
    sync, rename = open_folder.OpenFolder.sync, open_folder.OpenFolder.rename
    monkeypatch.setattr(folder_write, "sync", lambda fd: steps.append("sync file") or os.fsync(fd))
    monkeypatch.setattr(open_folder.OpenFolder, "rename", lambda *args: steps.append("rename") or rename(*args))
    monkeypatch.setattr(open_folder.OpenFolder, "sync", lambda self: steps.append("sync folder") or sync(self))
    vault.write("a.md", b"two", b"one")
    assert steps == ["sync file", "rename", "sync folder"]


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

    monkeypatch.setattr(*(open_folder.OpenFolder, "rename") if step == "rename" else (folder_write, step), fail)
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

    monkeypatch.setattr(open_folder.OpenFolder, "lstat", fail)
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
