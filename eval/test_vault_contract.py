"""One suite for every vault backend and wrapper: what `echo_core.vault.base` promises, each keeps."""
import contextlib
import threading
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from echo_core.clock import Clock
from echo_core.errors import Conflict, InvalidPath, MalformedNote, NotFound
from echo_core.history import HistoryStore
from echo_core.state.note_cache import NoteCache
from echo_core.vault.base import Stat, edit, version_of
from echo_core.vault.cached import CachedVault
from echo_core.vault.folder import LOCK_FILE, FolderVault
from echo_core.vault.journaled import JournaledVault
from echo_core.vault.reach import ReachedVault
from echo_core.vault.rest import RestVault
from echo_core.vault.rest_address import parse_address
from fakes.memory_vault import MemoryVault
from fakes.olrapi import Olrapi


@contextlib.contextmanager
def _folder(tmp_path):
    (tmp_path / "vault").mkdir()
    yield FolderVault(str(tmp_path / "vault"))


@contextlib.contextmanager
def _folder_of_paths(tmp_path):
    (tmp_path / "vault").mkdir()
    yield FolderVault(str(tmp_path / "vault"), dir_fds=False)


@contextlib.contextmanager
def _memory(tmp_path):
    yield MemoryVault()


def _rest(version):
    @contextlib.contextmanager
    def serve(tmp_path):
        (tmp_path / "vault").mkdir()
        with Olrapi(str(tmp_path / "vault"), version) as api:
            vault = RestVault(parse_address(api.url), "KEY")
            yield vault
            vault.close()

    return serve


BACKENDS = {
    "folder": _folder, "folder without descriptors": _folder_of_paths, "memory": _memory,
    "rest 5.1.0": _rest("5.1.0"), "rest 4.1.7": _rest("4.1.7"), "rest 3.6.1": _rest("3.6.1"),
}


@pytest.fixture(params=[f"{name}{wrapped}" for name in BACKENDS for wrapped in ("", ", wrapped")])
def vault(request, tmp_path):
    """An empty vault of each backend, bare and in all its wrappers."""
    name, _, wrapped = request.param.partition(", ")
    with BACKENDS[name](tmp_path) as inner:
        if not wrapped:
            yield inner
            return
        history = HistoryStore(str(tmp_path / "state"), Clock("UTC", "2026-11-30T14:05:09Z"))
        yield CachedVault(JournaledVault(ReachedVault(inner), history), NoteCache(), bulk=True)
        history.close()


def files(vault):
    """Paths of the walk without the kernel lock's own file."""
    return [stat.path for stat in vault.walk() if stat.path != LOCK_FILE]


def test_what_was_written_is_read_back_byte_for_byte(vault):
    """Text is never normalised: NUL, mixed line ends, a byte order mark and a missing last newline come back."""
    data = "\ufeff---\r\nx: 1\r---\r\n\x00 cafe\u0301 \U0001f600\u2028 1.50".encode()
    vault.write("a/b/c.md", data, None)
    assert vault.read("a/b/c.md") == data
    vault.write("a/b/c.md", b"", data)
    assert vault.read("a/b/c.md") == b""


def test_broken_text_comes_back_byte_for_byte_or_is_refused_untouched(vault):
    """Bytes that are no UTF-8 are kept as they are; a backend that cannot do that says where they stand."""
    data = b"\xef\xbb\xbf---\r\nx: 1\r---\r\n\x00\xff\xfe caf\xc3"
    if vault.describe()["backend"] != "rest":
        vault.write("a.md", data, None)
        assert vault.read("a.md") == data
        return
    with pytest.raises(MalformedNote) as refusal:
        vault.write("a.md", data, None)
    assert (refusal.value.data["path"], refusal.value.data["line"], refusal.value.data["column"]) == ("a.md", 3, 2)
    assert files(vault) == []


def test_a_large_file_comes_back_whole(vault):
    """Several megabytes are no special case."""
    data = "".join(map(chr, range(1, 2000))).encode() * 1400
    vault.write("big.txt", data, None)
    assert vault.read("big.txt") == data


def test_a_write_over_other_bytes_is_a_conflict_with_the_version_of_now(vault):
    """A stale `expected` changes nothing and is told what is there."""
    vault.write("a.md", b"one", None)
    with pytest.raises(Conflict) as refusal:
        vault.write("a.md", b"three", b"two")
    assert refusal.value.data["version"] == version_of(b"one")
    assert vault.read("a.md") == b"one"


def test_a_creation_over_a_file_is_a_conflict(vault):
    """`expected` None means: not there yet."""
    vault.write("a.md", b"one", None)
    with pytest.raises(Conflict) as refusal:
        vault.write("a.md", b"two", None)
    assert refusal.value.data["version"] == version_of(b"one")
    assert vault.read("a.md") == b"one"


@pytest.mark.parametrize("path", ["a.md", "no/such/folder/a.md"])
def test_a_write_over_an_absent_file_is_a_conflict_without_version(vault, path):
    """Somebody deleted it: nothing is created by an edit."""
    with pytest.raises(Conflict) as refusal:
        vault.write(path, b"two", b"one")
    assert refusal.value.data["version"] == ""
    assert files(vault) == []


def test_what_is_not_there_is_not_found(vault):
    """Every question about an absent file says so, and names the path."""
    vault.write("a/x.md", b"", None)
    for ask in (
        lambda: vault.read("a/y.md"), lambda: vault.stat("a/y.md"), lambda: vault.read("b/y.md"),
        lambda: vault.delete("a/y.md", b""), lambda: vault.move("a/y.md", "a/z.md"), lambda: vault.list_folder("b"),
        lambda: vault.read("a"), lambda: vault.stat("a"), lambda: vault.read("a/x.md/y.md"),
        lambda: vault.list_folder("a/x.md"),
    ):
        with pytest.raises(NotFound) as refusal:
            ask()
        assert refusal.value.data["path"]
        assert refusal.value.data["candidates"] == []


def test_a_file_is_no_folder_and_a_folder_no_file(vault):
    """Nothing is written below a file or over a folder."""
    vault.write("a/x.md", b"", None)
    with pytest.raises(InvalidPath):
        vault.write("a/x.md/y.md", b"", None)
    with pytest.raises(Conflict):
        vault.write("a", b"", None)
    assert files(vault) == ["a/x.md"]


def test_delete_removes_only_what_was_expected(vault):
    """A changed file stays."""
    vault.write("a.md", b"one", None)
    with pytest.raises(Conflict):
        vault.delete("a.md", b"other")
    assert vault.read("a.md") == b"one"
    vault.delete("a.md", b"one")
    assert files(vault) == []


def test_move_renames_and_never_overwrites(vault):
    """Parents are made; a taken target, itself included, is a conflict."""
    vault.write("a.md", b"one", None)
    vault.move("a.md", "new/folder/b.md")
    assert files(vault) == ["new/folder/b.md"]
    vault.write("a.md", b"two", None)
    for target in ("new/folder/b.md", "a.md", "new/folder/B.md"):
        with pytest.raises(Conflict):
            vault.move("a.md", target)
    assert vault.read("a.md") == b"two"
    assert vault.read("new/folder/b.md") == b"one"


def test_a_move_may_change_only_the_case(vault):
    """The file itself does not stand in its own way."""
    vault.write("note.md", b"one", None)
    vault.move("note.md", "Note.md")
    assert files(vault) == ["Note.md"]


def test_stat_walk_and_listing_agree(vault):
    """Path order, sizes, direct children, the times of `stat`."""
    for path in ("b.md", "a/b.md", "a b.md", "a/c/d.md", "a.md", "ä/x.md", "Z.md"):
        vault.write(path, path.encode(), None)
    walked = [stat for stat in vault.walk() if stat.path != LOCK_FILE]
    assert [stat.path for stat in walked] == sorted(stat.path for stat in walked)
    assert {stat.path: stat.size for stat in walked} == {path: len(path.encode()) for path in files(vault)}
    assert all(vault.stat(stat.path) == stat for stat in walked)
    listing = vault.list_folder("")
    assert [name for name in listing.folders if name != "_agent"] == ["a", "ä"]
    assert listing.files == ["Z.md", "a b.md", "a.md", "b.md"]
    assert vault.list_folder("a") == (["c"], ["b.md"])
    assert vault.unreadable() == []


def test_a_change_shows_in_stat(vault):
    """Another size or another time."""
    vault.write("a.md", b"one", None)
    before = vault.stat("a.md")
    vault.write("a.md", b"three", b"one")
    after = vault.stat("a.md")
    assert (after.size, after.mtime_ns >= before.mtime_ns) == (5, True)


def test_a_read_finds_the_other_case_when_only_one_fits(vault):
    """Reads may guess a unique spelling, and `stat` says which it was."""
    vault.write("People/Ada.md", b"ada", None)
    assert vault.read("people/ADA.md") == b"ada"
    assert vault.stat("people/ada.md").path == "People/Ada.md"
    assert vault.list_folder("people").files == ["Ada.md"]


def test_a_write_never_goes_to_another_case(vault):
    """Creating or editing a look-alike is a conflict that names the real one; a delete finds nothing."""
    vault.write("People/Ada.md", b"ada", None)
    for write in (lambda: vault.write("people/ada.md", b"x", None), lambda: vault.write("people/ada.md", b"x", b"ada")):
        with pytest.raises(Conflict) as refusal:
            write()
        assert [found["path"] for found in refusal.value.data["candidates"]] == ["People/Ada.md"]
    with pytest.raises(NotFound) as refusal:
        vault.delete("people/ada.md", b"ada")
    assert [found["path"] for found in refusal.value.data["candidates"]] == ["People/Ada.md"]
    assert files(vault) == ["People/Ada.md"]


def test_both_normal_forms_reach_one_file(vault):
    """NFD in, NFC out: one path for reads and for writes."""
    decomposed = unicodedata.normalize("NFD", "Café/Ömer.md")
    vault.write(decomposed, b"one", None)
    assert vault.read("Café/Ömer.md") == b"one"
    vault.write("Café/Ömer.md", b"two", b"one")
    assert vault.read(decomposed) == b"two"
    assert files(vault) == ["Café/Ömer.md"]


@pytest.mark.parametrize("path", ["../x.md", "/x.md", ".obsidian/app.json", "a\\b.md", "%2e%2e/x.md", "a//b.md", ""])
def test_a_refused_path_reaches_no_method(vault, path):
    """Backends check paths themselves, in every argument."""
    vault.write("ok.md", b"", None)
    calls = [
        lambda: vault.read(path), lambda: vault.stat(path), lambda: vault.write(path, b"", None),
        lambda: vault.write(path, b"", b""), lambda: vault.delete(path, b""), lambda: vault.move(path, "x.md"),
        lambda: vault.move("ok.md", path),
    ]
    for call in calls + ([lambda: vault.list_folder(path)] if path else []):
        with pytest.raises(InvalidPath):
            call()
    assert files(vault) == ["ok.md"]


def test_read_many_skips_only_what_is_absent(vault):
    """Absent paths are left out, order is kept."""
    vault.write("a.md", b"1", None)
    vault.write("b.md", b"2", None)
    assert list(vault.read_many(["b.md", "x.md", "a.md"])) == [("b.md", b"2"), ("a.md", b"1")]


def test_exclusive_can_be_entered_again_by_its_thread(vault):
    """An op that holds the vault may call others that hold it too, and write."""
    with vault.exclusive(), vault.exclusive():
        vault.write("a.md", b"one", None)
    with vault.exclusive():
        assert vault.read("a.md") == b"one"


def test_exclusive_keeps_other_threads_out(vault):
    """A second thread gets in only after the first has left."""
    order = []
    inside = threading.Event()

    def second():
        inside.wait(10)
        with vault.exclusive():
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with vault.exclusive():
        inside.set()
        thread.join(0.05)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]


def test_parallel_edits_of_threads_lose_nothing(vault):
    """Every line of every thread is in the note, once."""
    vault.write("log.md", b"", None)

    def append(worker):
        for number in range(10):
            edit(vault, "log.md", lambda before: before + b"%d-%d\n" % (worker, number))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(append, range(8)))
    lines = vault.read("log.md").split()
    assert sorted(lines) == sorted(b"%d-%d" % (worker, number) for worker in range(8) for number in range(10))


def test_an_edit_that_changes_nothing_writes_nothing(vault):
    """Equal bytes leave the file's time alone."""
    vault.write("a.md", b"one", None)
    before = vault.stat("a.md")
    assert not edit(vault, "a.md", lambda data: data).changed
    assert vault.stat("a.md") == before


def test_an_edit_of_an_old_version_is_refused(vault):
    """`if_match` holds the edit to the version the caller saw."""
    vault.write("a.md", b"one", None)
    with pytest.raises(Conflict):
        edit(vault, "a.md", lambda data: b"two", if_match=version_of(b"zero"))
    edit(vault, "a.md", lambda data: b"two", if_match=version_of(b"one"))
    assert vault.read("a.md") == b"two"


def test_a_healthy_vault_says_so(vault):
    """`check` is silent, `describe` names the backend and no place of the host."""
    vault.check()
    facts = vault.describe()
    assert facts["backend"] in ("folder", "memory", "rest")
    assert "/tmp" not in repr(facts)


def test_stat_is_a_plain_tuple(vault):
    """Callers compare and store stats."""
    vault.write("a.md", b"one", None)
    path, size, mtime_ns = vault.stat("a.md")
    assert Stat(path, size, mtime_ns) == Stat("a.md", 3, mtime_ns)
    assert mtime_ns > 0
