"""The catalog follows the vault cheaply, loses nothing it cannot see, and lets a bad note degrade alone."""
from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

import pytest
from echo_core.catalog import reading as note_reading
from echo_core.catalog import tables as catalog_tables
from echo_core.catalog.catalog import Catalog, Changes
from echo_core.catalog.note import facts
from echo_core.errors import VaultAuth, VaultUnreachable
from fakes.memory_vault import MemoryVault

NOTES = {
    "alpha-note.md": b"# Alpha\n",
    "Diary/Monday.md": b"---\ntitle: Moon day\naliases: [lundi]\n---\nSee [[alpha_note]] and ![[pic.png]].\n",
    "Diary/pic.png": b"\x89PNG",
    "resources/people/ada.md": b"# Ada\n\n[[Monday#Evening|Monday]] [md](../../Diary/Monday.md)\n",
}


class FussyVault(MemoryVault):
    """A vault in which reading one of `evicted` fails although the vault is fine."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(files)
        self.evicted: set[str] = set()

    def read(self, path: str) -> bytes:
        if path in self.evicted:
            self.calls["failed"] += 1
            raise VaultUnreachable(f"{path} is not on this machine", reason="evicted")
        return super().read(path)


@pytest.fixture
def vault() -> FussyVault:
    return FussyVault(dict(NOTES))


@pytest.fixture
def catalog(vault: FussyVault) -> Catalog:
    catalog = Catalog(vault)
    catalog.refresh()
    return catalog


def test_every_note_is_known_and_attachments_are_files(catalog: Catalog) -> None:
    """Titles, aliases and links of all Markdown; other files are there for links to mean."""
    assert catalog.paths() == ["Diary/Monday.md", "alpha-note.md", "resources/people/ada.md"]
    monday = catalog.facts("Diary/Monday.md")
    assert monday is not None
    assert (monday.title, list(monday.aliases)) == ("Moon day", ["lundi"])
    assert catalog.is_file("Diary/pic.png")
    assert catalog.facts("Diary/pic.png") is None
    assert [facts.path for facts in catalog.all(lambda path: path.startswith("Diary"))] == ["Diary/Monday.md"]


def test_nothing_changed_means_nothing_is_read(vault: FussyVault, catalog: Catalog) -> None:
    """A refresh of an unchanged vault is one walk."""
    vault.calls.clear()
    assert not catalog.refresh().any()
    assert dict(vault.calls) == {"walk": 1}


def test_added_changed_and_removed_notes_are_named_and_only_they_are_read(vault: FussyVault, catalog: Catalog) -> None:
    """Each change counts once, in path order; the texts reach the listener."""
    heard: list[Changes] = []
    catalog.subscribe(heard.append)
    vault.put("b.md", b"# B\n")
    vault.put("a.md", b"# A\n")
    vault.put("alpha-note.md", b"# Alpha two\n")
    vault.remove("resources/people/ada.md")
    vault.calls.clear()
    changes = catalog.refresh()
    assert (changes.added, changes.changed, changes.removed) == (
        ["a.md", "b.md"], ["alpha-note.md"], ["resources/people/ada.md"])
    assert vault.calls["read"] == 3
    assert {path: text for change in heard for path, text in change.texts.items()} == {
        "a.md": "# A\n", "b.md": "# B\n", "alpha-note.md": "# Alpha two\n"}
    assert [path for change in heard for path in change.removed] == ["resources/people/ada.md"]


def test_a_file_written_again_with_the_same_bytes_is_no_change(vault: FussyVault, catalog: Catalog) -> None:
    """A sync program that only touches files wakes nobody, and the file is not read twice for it."""
    generation = catalog.generation
    vault.put("alpha-note.md", NOTES["alpha-note.md"])
    assert not catalog.refresh().any()
    assert catalog.generation == generation
    vault.calls.clear()
    catalog.refresh()
    assert vault.calls["read"] == 0


def test_own_writes_count_at_once_and_are_checked_by_the_next_refresh(vault: FussyVault, catalog: Catalog) -> None:
    """`touch` and `forget` need no walk; somebody else's write in the same instant is still found."""
    catalog.touch("new.md", b"# New\n")
    catalog.touch("new.txt", b"no note")
    assert catalog.facts("new.md") is not None
    assert catalog.facts("new.txt") is None
    vault.put("new.md", b"# Foreign\n")
    assert catalog.refresh().changed == ["new.md"]
    catalog.forget("new.md")
    assert catalog.facts("new.md") is None


def test_an_unreadable_folder_keeps_its_notes(vault: FussyVault, catalog: Catalog) -> None:
    """A folder that cannot be read is not an empty folder; when it can be read again its losses count."""
    vault.closed = ["resources/people"]
    vault.put("c.md", b"# C\n")
    assert catalog.refresh() == Changes(["c.md"], [], [], {})
    assert catalog.facts("resources/people/ada.md") is not None
    assert not catalog.is_gone("resources/people/ada.md")
    assert not catalog.is_gone("resources/people/never-seen.md")
    assert catalog.is_gone("never-seen.md")
    assert not catalog.complete()
    assert catalog.unreadable() == ["resources/people"]
    vault.closed = []
    vault.remove("resources/people/ada.md")
    assert catalog.refresh().removed == ["resources/people/ada.md"]
    assert catalog.complete()


@pytest.mark.parametrize("trouble", [VaultUnreachable("down"), VaultAuth("closed")])
def test_a_vault_that_cannot_be_read_changes_nothing(
    vault: FussyVault, catalog: Catalog, trouble: VaultUnreachable | VaultAuth
) -> None:
    """The error is raised, and what was known stays known."""
    before = catalog.paths()
    vault.down = trouble
    with pytest.raises(type(trouble)):
        catalog.refresh()
    assert catalog.paths() == before


def test_a_note_the_walk_missed_but_its_folder_lists_is_not_gone(vault: FussyVault, catalog: Catalog) -> None:
    """A walk can miss a file that is being renamed over; the second look decides."""
    real = vault.walk
    vault.walk = lambda: (stat for stat in real() if stat.path != "alpha-note.md")  # type: ignore[method-assign]
    assert catalog.refresh().removed == []
    assert catalog.facts("alpha-note.md") is not None


def test_a_folder_renamed_in_case_alone_leaves_no_ghosts(vault: FussyVault, catalog: Catalog) -> None:
    """The notes move to the new spelling even where the old one still answers."""
    vault.put("diary/Monday.md", NOTES["Diary/Monday.md"])
    vault.remove("Diary/Monday.md")
    catalog.refresh()
    assert [path for path in catalog.paths() if "Monday" in path] == ["diary/Monday.md"]


def test_notes_that_cannot_be_read_are_known_by_name_and_tried_again_later(
    vault: FussyVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evicted files are named once each, do not stop the others, and are left alone for a while."""
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    vault.evicted = {"alpha-note.md"}
    catalog = Catalog(vault)
    assert len(catalog.refresh().added) == 3
    assert "not on this machine" in catalog.problems()["alpha-note.md"]
    alpha = catalog.facts("alpha-note.md")
    assert alpha is not None
    assert alpha.title == "alpha-note"
    failed = vault.calls["failed"]
    catalog.refresh()
    assert vault.calls["failed"] == failed
    vault.evicted = set()
    now[0] += 3600
    assert catalog.refresh().changed == ["alpha-note.md"]
    assert catalog.problems() == {}


def test_a_note_that_turns_unreadable_keeps_its_facts(vault: FussyVault, catalog: Catalog) -> None:
    """What was known of it stays until it can be read again."""
    vault.put("alpha-note.md", b"# Changed\n")
    vault.evicted = {"alpha-note.md"}
    assert not catalog.refresh().any()
    alpha = catalog.facts("alpha-note.md")
    assert alpha is not None
    assert alpha.title == "Alpha"


@pytest.mark.parametrize("data", [
    b"---\ntags: [#abc, def]\n---\n# Bad yaml\n", b"\xff\xfe\x00 not utf-8", b"", b"---\n" * 5000, b"[" * 20_000,
    b"# " + b"x" * 300_000, b"[[" * 5000 + b"]]" * 5000, "---\r\ntitle: Crlf\r\n---\r\n".encode("utf-8-sig"),
])
def test_a_bad_note_degrades_alone(vault: FussyVault, data: bytes) -> None:
    """Whatever one file holds, all others are known and the file itself is found by name."""
    vault.put("bad.md", data)
    catalog = Catalog(vault)
    assert len(catalog.refresh().added) == 4
    assert catalog.named({"bad"}) == {"bad.md"}
    assert catalog.facts("alpha-note.md") is not None


def test_a_parser_that_fails_is_one_named_problem(vault: FussyVault, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even a bug in the parser leaves the note findable by its file name and the others whole."""
    real = facts

    def fails(path: str, text: str) -> object:
        if path == "alpha-note.md":
            raise RecursionError
        return real(path, text)

    monkeypatch.setattr(note_reading, "facts", fails)
    catalog = Catalog(vault)
    catalog.refresh()
    assert list(catalog.problems()) == ["alpha-note.md"]
    assert len(catalog.paths()) == 3


@pytest.mark.parametrize(("target", "start", "right"), [
    ("alpha-note", "x/y.md", "alpha-note.md"),
    ("Alpha-Note.md", "x/y.md", "alpha-note.md"),
    ("alpha_note", "x/y.md", "alpha-note.md"),
    ("Alpha", "x/y.md", "alpha-note.md"),
    ("lundi", "x/y.md", "Diary/Monday.md"),
    ("diary/monday", "x/y.md", "Diary/Monday.md"),
    ("people/ada", "x/y.md", "resources/people/ada.md"),
    ("../Diary/Monday.md", "x/y.md", "Diary/Monday.md"),
    ("./pic.png", "Diary/Monday.md", "Diary/pic.png"),
    ("pic.png", "alpha-note.md", "Diary/pic.png"),
    ("/alpha-note", "x/y.md", "alpha-note.md"),
    ("/Monday", "x/y.md", None),
    ("pic", "alpha-note.md", None),
    ("x/alpha-note", "x/y.md", None),
    ("../../../etc/passwd", "x/y.md", None),
    ("nobody", "x/y.md", None),
    ("", "alpha-note.md", "alpha-note.md"),
    ("M\u00f6nday", "x/y.md", "Diary/Monday.md"),
])
def test_links_are_resolved_as_obsidian_does(catalog: Catalog, target: str, start: str, right: str | None) -> None:
    """Path, relative path, end of path, file name in any case, then a title or alias that only one note has."""
    assert catalog.resolve_link(target, start) == right


def test_of_several_files_the_nearest_is_meant_and_otherwise_nobody_guesses(vault: FussyVault) -> None:
    """Root first, then the same folder, then the nearest; equally near ones are all named."""
    for path in ("en/Home.md", "de/Home.md", "de/deep/Other.md", "fr/Start.md", "it/Start.md", "Start.md",
                 "en/README.md", "en/readme.md"):
        vault.put(path, b"# same title\n")
    catalog = Catalog(vault)
    catalog.refresh()
    assert catalog.resolve_link("Home", "de/deep/Other.md") == "de/Home.md"
    assert catalog.resolve_link("Home", "en/x.md") == "en/Home.md"
    assert catalog.resolve_link("Home", "alpha-note.md") == ["de/Home.md", "en/Home.md"]
    assert catalog.resolve_link("Start", "it/x.md") == "Start.md"
    assert catalog.resolve_link("readme", "x/y.md") == "en/readme.md"
    assert isinstance(catalog.resolve_link("same title", "x/y.md"), list)


def test_backlinks_follow_every_change(vault: FussyVault, catalog: Catalog) -> None:
    """By name, alias and relative path; a note that takes the name over takes the links along."""
    assert catalog.backlinks("Diary/Monday.md") == ["resources/people/ada.md"]
    assert catalog.backlinks("alpha-note.md") == ["Diary/Monday.md"]
    assert catalog.backlinks("Diary/pic.png") == ["Diary/Monday.md"]
    catalog.touch("z.md", b"[[lundi]] [[z]]")
    assert catalog.backlinks("Diary/Monday.md") == ["resources/people/ada.md", "z.md"]
    assert catalog.backlinks("z.md") == []
    catalog.touch("alpha_note.md", b"# nearer in spelling\n")
    assert catalog.backlinks("alpha-note.md") == []
    catalog.forget("alpha_note.md")
    assert catalog.backlinks("alpha-note.md") == ["Diary/Monday.md"]


def test_a_path_is_taken_in_any_case_and_normal_form(vault: FussyVault, catalog: Catalog) -> None:
    """What a case-insensitive disk would call the same file."""
    catalog.touch("caf\u00e9.md", b"x")
    assert catalog.taken("cafe\u0301.md") == "caf\u00e9.md"
    assert catalog.taken("ALPHA-note.md") == "alpha-note.md"
    assert catalog.taken("Diary/alpha-note.md") is None


def test_readers_learn_what_changed_since_they_looked(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """By generation; a reader from before everything has to look at all."""
    monkeypatch.setattr(catalog_tables, "LOG_LENGTH", 64)
    before = catalog.generation
    catalog.touch("a.md", b"1")
    catalog.touch("b.md", b"2")
    assert catalog.changed_since(before) == {"a.md", "b.md"}
    assert catalog.changed_since(catalog.generation) == set()
    assert catalog.changed_since(-1) is None
    for number in range(100):
        catalog.touch("a.md", b"%d" % number)
    assert catalog.changed_since(before) is None
    assert catalog.changed_since(catalog.generation - 10) == {"a.md"}


# -- the cache file -----------------------------------------------------------------------------------------------


def test_a_second_run_reads_only_what_changed(vault: FussyVault, tmp_path: Path) -> None:
    """The facts of the first run serve the second, in a file only we can read."""
    cache = str(tmp_path / "state" / "catalog.sqlite")
    Catalog(vault, cache).refresh()
    vault.put("alpha-note.md", b"# Alpha two\n")
    vault.calls.clear()
    second = Catalog(vault, cache)
    assert second.refresh().changed == ["alpha-note.md"]
    assert vault.calls["read"] == 1
    fresh = Catalog(vault)
    fresh.refresh()
    assert second.all() == fresh.all()
    assert second.backlinks("Diary/Monday.md") == ["resources/people/ada.md"]
    assert os.stat(cache).st_mode & 0o077 == 0


def test_a_note_removed_between_two_runs_is_gone(vault: FussyVault, tmp_path: Path) -> None:
    """The cache never brings a note back."""
    cache = str(tmp_path / "catalog.sqlite")
    Catalog(vault, cache).refresh()
    vault.remove("alpha-note.md")
    for _ in range(2):
        second = Catalog(vault, cache)
        second.refresh()
        assert second.facts("alpha-note.md") is None
        assert second.resolve_link("alpha-note", "") is None


def test_a_damaged_cache_costs_time_only(vault: FussyVault, tmp_path: Path) -> None:
    """Cut, overwritten, emptied, of another format, or a folder in its place: the notes are read again."""
    cache = tmp_path / "catalog.sqlite"
    expected = Catalog(vault)
    expected.refresh()
    Catalog(vault, str(cache)).refresh()
    good = cache.read_bytes()
    for data in (b"", b"garbage" * 500, good[:5000], good[:100] + b"\0" * 4000 + good[4100:],
                 good.replace(b"Moon day", b"Mood nay"), good.replace(b"1:path", b"0:path")):
        cache.write_bytes(data)
        catalog = Catalog(vault, str(cache))
        catalog.refresh()
        assert catalog.all() == expected.all()
    cache.unlink()
    cache.mkdir()
    catalog = Catalog(vault, str(cache))
    catalog.refresh()
    assert catalog.all() == expected.all()


def test_a_cache_in_use_by_another_process_is_left_alone(vault: FussyVault, tmp_path: Path) -> None:
    """A locked file is neither waited for long nor deleted."""
    cache = tmp_path / "catalog.sqlite"
    Catalog(vault, str(cache)).refresh()
    other = sqlite3.connect(cache, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    catalog = Catalog(vault, str(cache))
    catalog.refresh()
    other.execute("ROLLBACK")
    other.close()
    assert len(catalog.paths()) == 3
    assert cache.exists()


def test_hostile_text_survives_the_cache(vault: FussyVault, tmp_path: Path) -> None:
    """Bytes that are not UTF-8, malformed YAML and every line separator come back as they were read."""
    vault.put("bad.md", b"---\na: 1\na: 2\n---\n# \xff \xe2\x80\xa8 \x1c\n")
    vault.put("t\u00e4st \U0001f58a.md", "# \u2028 x\n".encode())
    cache = str(tmp_path / "catalog.sqlite")
    first = Catalog(vault, cache)
    first.refresh()
    second = Catalog(vault, cache)
    second.refresh()
    assert second.all() == first.all()
    bad = second.facts("bad.md")
    assert bad is not None
    assert bad.malformed is not None
    assert not bad.valid_utf8


# -- threads ------------------------------------------------------------------------------------------------------


def test_readers_and_writers_share_one_catalog(vault: FussyVault, catalog: Catalog) -> None:
    """Refreshes, own writes and questions from eight threads at once: no error, and the end is the vault's state."""
    heard: dict[str, str] = {}

    def listen(changes: Changes) -> None:
        heard.update(changes.texts)
        for path in changes.removed:
            del heard[path]

    catalog.subscribe(listen)
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(40):
                path = f"n{number}.md"
                data = f"# N {turn}\n[[alpha-note]]\n".encode()
                vault.put(path, data)
                catalog.touch(path, data)
                catalog.backlinks("alpha-note.md")
                catalog.resolve_link(f"n{(number + 1) % 8}", path)
                if turn % 10 == number:
                    catalog.refresh()
                assert catalog.facts(path).title == f"N {turn}"  # type: ignore[union-attr]
        except BaseException as problem:
            errors.append(problem)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    catalog.refresh()
    assert heard == {f"n{number}.md": "# N 39\n[[alpha-note]]\n" for number in range(8)}
    assert catalog.backlinks("alpha-note.md") == ["Diary/Monday.md", *(f"n{number}.md" for number in range(8))]
