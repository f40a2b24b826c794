"""The entity index: canonical bytes, free slugs, and no entity ever lost to a broken file or a race (spec 2.4)."""
from __future__ import annotations

import itertools
import json
import threading

import pytest
from echo_core.catalog.catalog import Catalog
from echo_core.catalog.note import facts
from echo_core.clock import Clock
from echo_core.errors import IndexCorrupt, VaultUnreachable
from echo_core.index import EntityIndex, Entry, build_index
from echo_core.index.store import IndexStore
from echo_core.kinds import INDEX
from echo_core.locks import AdvisoryLock, LockHeld
from fakes.memory_vault import MemoryVault

CLOCK = Clock("Europe/Vienna", "2026-11-30T14:05:09+01:00")
ADA = "resources/people/ada-lovelace.md"
ADA_NOTE = b"---\ntitle: Ada Lovelace\naliases:\n  - Ada\nupdated: 2026-11-01\n---\n\n# Ada Lovelace\n"


def person(name: str, path: str = "") -> Entry:
    return Entry([], "person", path or f"resources/people/{name}.md", name.title(), "2026-11-30")


class Desk:
    """A vault in memory with catalog and index store; `holder` names the client in the lock."""

    def __init__(self, vault: MemoryVault, holder: str = "desk") -> None:
        self.vault = vault
        self.catalog = Catalog(vault)
        self.lock = AdvisoryLock(vault, CLOCK, holder, 30, notify=lambda message: None)
        self.store = IndexStore(vault, self.lock, CLOCK, self.catalog.build_index, self.catalog.complete)

    def add(self, *names: str) -> bool:
        def change(index: EntityIndex) -> None:
            for name in names:
                index.put_path(person(name).path, person(name))

        return self.store.update(change)


@pytest.fixture
def vault() -> MemoryVault:
    return MemoryVault({ADA: ADA_NOTE})


def test_the_bytes_are_canonical() -> None:
    """Keys sorted, two-space indent, UTF-8 unescaped, final newline: the golden form of spec 2.4."""
    index = EntityIndex()
    index.put("zuse", Entry(["Konrad"], "person", "resources/people/zuse.md", "Zuse", "2026-11-30"))
    index.put("ärger", Entry([], "concept", "resources/concepts/ärger.md", "Ärger", ""))
    expected = (
        '{\n  "entities": {\n    "zuse": {\n      "aliases": [\n        "Konrad"\n      ],\n      "kind": "person",\n'
        '      "path": "resources/people/zuse.md",\n      "title": "Zuse",\n      "updated": "2026-11-30"\n    },\n'
        '    "ärger": {\n      "aliases": [],\n      "kind": "concept",\n'
        '      "path": "resources/concepts/ärger.md",\n      "title": "Ärger",\n      "updated": ""\n    }\n  },\n'
        '  "version": 1\n}\n'
    )
    assert index.to_bytes().decode() == expected
    assert EntityIndex.from_bytes(index.to_bytes()).to_bytes().decode() == expected


def test_a_path_in_the_other_normal_form_is_the_same_path() -> None:
    """NFD in, NFC stored, and both forms find the entry."""
    index = EntityIndex()
    index.put_path("resources/people/cafe\u0301.md", person("café", "resources/people/cafe\u0301.md"))
    index.put_path("resources/people/caf\u00e9.md", person("café", "resources/people/caf\u00e9.md"))
    assert list(index.by_path) == ["resources/people/caf\u00e9.md"]
    assert index.get("resources/people/cafe\u0301.md") == index.get("resources/people/caf\u00e9.md")
    assert len(index.entries) == 1


def test_a_taken_slug_gets_a_number_and_a_note_keeps_its_slug() -> None:
    """Another entity gets -2, -3; the same note is updated in place; a system note's slug is never given."""
    index = EntityIndex()
    assert index.put_path("resources/people/apple.md", person("apple")) == "apple"
    assert index.put_path("resources/companies/apple.md", person("apple")) == "apple-2"
    assert index.put_path("resources/concepts/Apple.md", person("apple")) == "apple-3"
    assert index.put_path("resources/companies/apple.md", person("new")) == "apple-2"
    assert index.entries["apple-2"].title == "New"
    assert index.free_slug("inbox", "resources/concepts/inbox.md") == "inbox-2"
    assert index.put_path("_agent/memory/semantic/operator-preferences.md", person("x")) == ""


def test_the_same_entry_again_changes_nothing() -> None:
    """The stamp tells readers of changes, so it stays when there is none."""
    index = EntityIndex()
    index.put("a", person("a"))
    before = index.stamp
    index.put("a", person("a"))
    index.remove("b")
    assert index.stamp == before
    index.remove_path(person("a").path)
    assert index.stamp != before
    assert not index.entries
    assert not index.by_path


def test_the_index_is_rebuilt_from_the_notes_the_same_each_time() -> None:
    """Notes of a kind get entries in path order, others none, and known slugs stay."""
    paths = ["resources/people/apple.md", "resources/companies/apple.md", "Diary/apple.md", ADA]
    notes = [facts(path, f"# {path}\n") for path in paths]
    fresh = build_index(notes)
    assert {name: entry.path for name, entry in fresh.entries.items()} == {
        "ada-lovelace": ADA, "apple": "resources/companies/apple.md", "apple-2": "resources/people/apple.md",
    }
    assert build_index(reversed(notes)).to_bytes() == fresh.to_bytes()
    kept = EntityIndex()
    kept.put_path("resources/people/apple.md", person("apple"))
    assert build_index(notes, kept).entries["apple"].path == "resources/people/apple.md"


def test_an_entry_goes_only_when_its_note_is_confirmed_gone() -> None:
    """What lies under an unreadable folder keeps its entry."""
    current = EntityIndex()
    current.put_path("resources/people/a.md", person("a"))
    current.put_path("resources/people/b.md", person("b"))
    rebuilt = build_index([], current, is_gone=lambda path: path.endswith("/a.md"))
    assert list(rebuilt.entries) == ["b"]


@pytest.mark.parametrize("data", [
    b"", b"{", b"[]", b"null", b"{}", b'{"version": 2, "entities": {}}', b'{"version": 1}',
    b'{"version": 1, "entities": []}', b'{"version": 1, "entities": {"a": {}}}',
    b'{"version": 1, "entities": {"a": {"path": 3}}}', b'{"version": 1, "entities": {"a": {"path": "x.md"},}}',
    b'{"version": 1, "entities": {"a": {"path": "x.md", "aliases": "b"}}}',
    b'{"version": 1, "entities": {"a": {"path": "x.md"}, "a": {"path": "y.md"}}}',
    b'{"version": 1, "entities": {"a": {"path": "x.md", "title": "\\ud800"}}}',
    b"<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> theirs\n", b"\xff\xfe\x00", b"[" * 100_000,
])
def test_a_broken_index_is_recognised_and_never_read_as_empty(data: bytes) -> None:
    """Whatever the fault, the answer is index-corrupt in one line."""
    with pytest.raises(IndexCorrupt) as broken:
        EntityIndex.from_bytes(data)
    assert "\n" not in broken.value.message


def test_a_missing_index_is_answered_from_the_notes_and_not_written(vault: MemoryVault) -> None:
    """A vault that ECHO never wrote to resolves at once and stays untouched."""
    desk = Desk(vault)
    assert desk.store.load().entries["ada-lovelace"] == Entry(("Ada",), "person", ADA, "Ada Lovelace", "2026-11-01")
    assert vault.snapshot() == {ADA: ADA_NOTE}


def test_an_update_that_changes_nothing_writes_nothing_and_takes_no_lock(vault: MemoryVault) -> None:
    """No churn for people's sync: neither the index nor the lock file is touched."""
    desk = Desk(vault)
    assert desk.add("b")
    before = dict(vault.calls)
    assert not desk.add("b")
    assert vault.calls["write"] == before["write"]
    assert vault.calls["delete"] == before["delete"]


def test_the_first_update_writes_the_notes_that_were_there_as_well(vault: MemoryVault) -> None:
    """A missing index is not replaced by one that knows the new entity only; no lock file stays."""
    desk = Desk(vault)
    assert desk.add("b")
    assert set(json.loads(vault.read(INDEX))["entities"]) == {"ada-lovelace", "b"}
    assert sorted(vault.snapshot()) == [INDEX, ADA]


@pytest.mark.parametrize("cut", range(0, 560, 64))
def test_a_truncated_index_is_set_aside_and_rebuilt(vault: MemoryVault, cut: int) -> None:
    """Reads go on, the next write keeps the broken bytes in a file of their own and loses no entity."""
    desk = Desk(vault)
    desk.add("b", "c")
    vault.put("resources/people/b.md", b"# B\n")
    vault.put("resources/people/c.md", b"# C\n")
    broken = vault.read(INDEX)[:cut]
    vault.put(INDEX, broken)
    fresh = Desk(vault)
    assert set(fresh.store.load().entries) == {"ada-lovelace", "b", "c"}
    assert vault.read(INDEX) == broken
    assert fresh.store.broken()
    fresh.add("d")
    assert set(json.loads(vault.read(INDEX))["entities"]) == {"ada-lovelace", "b", "c", "d"}
    assert vault.read(f"{INDEX}.corrupt-2026-11-30-1405") == broken


def test_two_broken_files_of_one_minute_are_both_kept(vault: MemoryVault) -> None:
    """The second gets a number; the same bytes again need no second copy."""
    for data in (b"{one", b"{two", b"{one"):
        vault.put(INDEX, data)
        Desk(vault).add("x")
    assert vault.read(f"{INDEX}.corrupt-2026-11-30-1405") == b"{one"
    assert vault.read(f"{INDEX}.corrupt-2026-11-30-1405-2") == b"{two"
    assert len(vault.snapshot()) == 4


def test_a_broken_index_is_not_replaced_while_notes_are_unreadable(vault: MemoryVault) -> None:
    """A rebuild that cannot see all notes is refused with index-corrupt; the broken bytes stay."""
    vault.put("resources/companies/acme.md", b"# Acme\n")
    vault.put(INDEX, b"{broken")
    vault.closed = ["resources/people"]
    desk = Desk(vault)
    assert set(desk.store.load().entries) == {"acme"}
    with pytest.raises(IndexCorrupt):
        desk.add("b")
    assert vault.read(INDEX) == b"{broken"


def test_a_vault_that_is_down_is_an_error_and_no_empty_index(vault: MemoryVault) -> None:
    """Neither load nor update makes up an index."""
    desk = Desk(vault)
    vault.down = VaultUnreachable("the vault is down")
    with pytest.raises(VaultUnreachable):
        desk.store.load()
    with pytest.raises(VaultUnreachable):
        desk.add("b")


def test_another_clients_entry_is_seen_and_kept(vault: MemoryVault) -> None:
    """The cached index is compared with the file before each use: neither client loses what the other wrote."""
    one, two = Desk(vault, "one"), Desk(vault, "two")
    one.add("x")
    two.store.load()
    one.add("y")
    assert "y" in two.store.load().entries
    one.add("z")
    two.add("w")
    assert {"x", "y", "z", "w", "ada-lovelace"} == set(one.store.load().entries)


def test_an_unchanged_index_is_not_read_again(vault: MemoryVault) -> None:
    """A settled file costs one stat."""
    desk = Desk(vault)
    desk.add("x")
    desk.store.load()
    reads = vault.calls["read"]
    for _ in range(5):
        desk.store.load()
    assert vault.calls["read"] == reads


def test_a_write_that_slips_in_between_is_merged(vault: MemoryVault) -> None:
    """A lost race starts over on what is there now, on a backend without any lock."""
    desk = Desk(vault)
    desk.add("x")
    other = EntityIndex.from_bytes(vault.read(INDEX))
    other.put_path(person("y").path, person("y"))
    played: list[str] = []

    def play(path: str) -> None:
        if path == INDEX and not played:
            played.append(path)
            vault.put(INDEX, other.to_bytes())

    vault.before_write = play
    desk.add("z")
    assert {"x", "y", "z"} < set(EntityIndex.from_bytes(vault.read(INDEX)).entries)


def test_a_held_lock_stops_the_write_and_nothing_else(vault: MemoryVault) -> None:
    """The holder is named; reading goes on; the entry waits in `pending` for its op."""
    one, two = Desk(vault, "one"), Desk(vault, "two")
    two.store.load()
    ticks = itertools.count(0, 3)
    impatient = AdvisoryLock(vault, CLOCK, "two", 30, notify=lambda message: None, sleep=lambda s: None,
                             timer=lambda: float(next(ticks)))
    store = IndexStore(vault, impatient, CLOCK, two.catalog.build_index)
    with one.lock.held("index"), pytest.raises(LockHeld) as held:
        store.update(lambda index: index.put("x", person("x")))
    assert held.value.holder == "one"
    assert "ada-lovelace" in two.store.load().entries


def test_parallel_updates_lose_nothing(vault: MemoryVault) -> None:
    """Eight threads of one store, 25 entities each: all 200 are in the file at the end."""
    desk = Desk(vault)
    threads = [
        threading.Thread(target=lambda n=n: [desk.add(f"p{n}-{i}") for i in range(25)]) for n in range(8)
    ]
    run(threads)
    assert len(EntityIndex.from_bytes(vault.read(INDEX)).entries) == 201


def test_the_index_parses_at_every_moment_of_a_parallel_run(vault: MemoryVault) -> None:
    """A reader beside two writers never sees a broken or shrinking index."""
    desk = Desk(vault)
    desk.add("first")
    sizes: list[int] = []
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            sizes.append(len(EntityIndex.from_bytes(vault.read(INDEX)).entries))

    def write(n: int) -> None:
        for i in range(20):
            desk.add(f"w{n}-{i}")

    watcher = threading.Thread(target=watch)
    watcher.start()
    run([threading.Thread(target=write, args=(n,)) for n in range(2)])
    done.set()
    watcher.join()
    assert sizes == sorted(sizes)


def run(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
