"""No link leads out of a folder vault: not for reads, writes, walks or moves, and not in a race (spec 2.3)."""
import contextlib
import os
import threading

import pytest
from echo_core.errors import EchoError, InvalidPath, NotFound
from echo_core.vault.folder import LOCK_FILE, FolderVault

CANARY = b"canary outside the vault"


@pytest.fixture(params=[True, False], ids=["descriptors", "paths"])
def vault(request, tmp_path):
    """A vault beside a folder `outside` that holds a canary."""
    (tmp_path / "vault").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.md").write_bytes(CANARY)
    return FolderVault(str(tmp_path / "vault"), dir_fds=request.param)


@pytest.fixture
def root(tmp_path):
    """The vault's folder."""
    return tmp_path / "vault"


def paths(vault):
    """Paths of the walk without the kernel lock's file."""
    return [found.path for found in vault.walk() if found.path != LOCK_FILE]


@pytest.mark.parametrize("relative", [True, False])
def test_a_link_to_a_file_outside_is_refused_everywhere(vault, root, tmp_path, relative):
    """Read, stat, write, delete and move refuse it; the walk leaves it out and names it; the canary lives."""
    os.symlink("../outside/secret.md" if relative else tmp_path / "outside/secret.md", root / "x.md")
    for call in (
        lambda: vault.read("x.md"), lambda: vault.stat("x.md"), lambda: vault.write("x.md", b"", CANARY),
        lambda: vault.write("x.md", b"", None), lambda: vault.delete("x.md", CANARY),
        lambda: vault.move("x.md", "y.md"),
    ):
        with pytest.raises(InvalidPath):
            call()
    assert paths(vault) == []
    assert vault.unreadable() == ["x.md"]
    assert vault.list_folder("").files == []
    assert (tmp_path / "outside/secret.md").read_bytes() == CANARY


def test_a_link_to_a_folder_outside_is_refused_for_new_files_too(vault, root, tmp_path):
    """Nothing is created, listed or read below it."""
    os.symlink(tmp_path / "outside", root / "notes")
    for call in (
        lambda: vault.read("notes/secret.md"), lambda: vault.write("notes/new.md", b"", None),
        lambda: vault.write("notes/deep/new.md", b"", None), lambda: vault.list_folder("notes"),
        lambda: vault.read("notes/absent.md"),
    ):
        with pytest.raises(InvalidPath):
            call()
    assert paths(vault) == []
    assert vault.unreadable() == ["notes"]
    assert vault.list_folder("").folders in ([], ["_agent"])
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["secret.md"]


def test_a_link_into_a_hidden_folder_is_refused(vault, root):
    """The plugin's key in `.obsidian` is as far away as the rest of the disk."""
    (root / ".obsidian").mkdir()
    (root / ".obsidian/data.json").write_bytes(b"key")
    os.symlink(".obsidian/data.json", root / "x.md")
    os.symlink(".obsidian", root / "settings")
    for path in ("x.md", "settings/data.json"):
        with pytest.raises(InvalidPath):
            vault.read(path)
    assert paths(vault) == []


def test_links_that_stay_inside_work(vault, root):
    """A linked note is its target for reads and writes; a linked folder is not listed twice."""
    vault.write("real/a.md", b"one", None)
    os.symlink("real/a.md", root / "alias.md")
    os.symlink("real", root / "folder")
    assert vault.read("alias.md") == vault.read("folder/a.md") == b"one"
    vault.write("alias.md", b"two", b"one")
    vault.write("folder/b.md", b"new", None)
    assert (root / "alias.md").is_symlink()
    assert vault.read("real/a.md") == b"two"
    assert paths(vault) == ["alias.md", "real/a.md", "real/b.md"]
    assert vault.list_folder("folder").files == ["a.md", "b.md"]
    assert vault.unreadable() == []


def test_loops_and_dead_links_end(vault, root):
    """A link to itself, to the root, to nothing: an answer each time, and the walk names them."""
    os.symlink("loop.md", root / "loop.md")
    os.symlink(".", root / "self")
    os.symlink("gone.md", root / "dead.md")
    for path in ("loop.md", "self", "dead.md", "self/self/loop.md"):
        with pytest.raises((InvalidPath, NotFound)):
            vault.read(path)
    assert paths(vault) == []
    assert "dead.md" in vault.unreadable()


def test_the_vault_itself_may_be_a_link(tmp_path, vault, root):
    """A person may keep the vault elsewhere and link to it."""
    os.symlink(root, tmp_path / "link")
    vault.write("a.md", b"one", None)
    os.symlink("a.md", root / "b.md")
    assert FolderVault(str(tmp_path / "link")).read("b.md") == b"one"


def test_a_folder_swapped_for_a_link_during_writes_leads_nowhere(root, tmp_path):
    """Somebody swaps `notes` for a link to outside as fast as possible: no write lands there."""
    (root / "notes").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    vault = FolderVault(str(root))
    done = threading.Event()
    swaps = []

    def swap():
        while not done.is_set():
            # The vault may make the folder anew while it is away, so any step may find the other state.
            with contextlib.suppress(OSError):
                os.rename(root / "notes", root / f"aside-{len(swaps)}")
            with contextlib.suppress(OSError):
                os.symlink(tmp_path / "outside", root / "notes")
            with contextlib.suppress(OSError):
                os.unlink(root / "notes")
            with contextlib.suppress(OSError):
                os.mkdir(root / "notes")
            swaps.append(1)

    swapper = threading.Thread(target=swap)
    swapper.start()
    outcomes = {"fine": 0, "refused": 0}
    for number in range(400):
        try:
            vault.write(f"notes/{number}.md", b"x", None)
            outcomes["fine"] += 1
        except EchoError:
            outcomes["refused"] += 1
    done.set()
    swapper.join()
    assert list((tmp_path / "outside").iterdir()) == []
    assert len(swaps) > 100
    assert outcomes["fine"] + outcomes["refused"] == 400
