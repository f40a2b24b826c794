"""Names on a disk: normal forms, case, names ECHO refuses, things that are no files."""
import os
import unicodedata

import pytest
from echo_core.errors import Conflict, NotFound
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


def paths(vault):
    """Paths of the walk without the kernel lock's file."""
    return [found.path for found in vault.walk() if found.path != LOCK_FILE]


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
    """A backslash, a blank name, a name that is no UTF-8: reported, not read, no crash."""
    for name in (b"a\\b.md", b" ", b"caf\xe9.md", b"fine.md", b"tab\there.md"):
        with open(os.path.join(os.fsencode(root), name), "wb") as file:
            file.write(b"x")
    assert paths(vault) == ["fine.md"]
    assert len(vault.unreadable()) == 4
    "".join(vault.unreadable()).encode("utf-8")
    assert vault.list_folder("").files == ["fine.md"]


def test_names_that_windows_could_not_hold_are_read_and_edited_where_they_are(vault, root):
    """A folder `Acme Inc.`, a note CON.md, a question mark: they are a person's own names."""
    for name in ("Acme Inc./x.md", "CON.md", "what?.md", "blank /y.md"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(b"one")
        vault.write(name, b"two", vault.read(name))
    assert paths(vault) == ["Acme Inc./x.md", "CON.md", "blank /y.md", "what?.md"]
    assert vault.unreadable() == []


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
