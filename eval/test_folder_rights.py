"""Permissions, owners and attributes of a folder vault."""
import os
import stat

import pytest
from echo_core.errors import VaultAuth
from echo_core.vault.folder import LOCK_FILE, FolderVault
from fakes.forked import in_child

# Test runners have threads of their own; the forked children use nothing of them.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

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


def paths(vault):
    """Paths of the walk without the kernel lock's file."""
    return [found.path for found in vault.walk() if found.path != LOCK_FILE]


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
