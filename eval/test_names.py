"""A name means one note, several, or none; writes never go to a guess (spec 2.3, 2.4)."""
from __future__ import annotations

import threading

import pytest
from echo_core.catalog.catalog import Catalog
from echo_core.clock import Clock
from echo_core.errors import Ambiguous, NotFound
from echo_core.index import EntityIndex, Entry
from echo_core.index.store import IndexStore
from echo_core.kinds import INDEX
from echo_core.locks import AdvisoryLock
from echo_core.names import Match, Names, Several
from fakes.memory_vault import MemoryVault

CLOCK = Clock("Europe/Vienna", "2026-11-30T14:05:09+01:00")


def note(title: str, *aliases: str) -> bytes:
    listed = "".join(f"  - {alias}\n" for alias in aliases)
    return f"---\ntitle: {title}\n{'aliases:' if aliases else ''}\n{listed}---\n\n# {title}\n".encode()


NOTES = {
    "resources/people/ada-lovelace.md": note("Ada Lovelace", "Ada", "Countess"),
    "resources/people/schluter.md": note("J\u00fcrgen Schl\u00fcter", "Schl\u00fcter", "Gro\u00df"),
    "resources/people/grace.md": note("Grace Hopper", "Countess"),
    "resources/companies/acme.md": note("ACME & Co."),
    "resources/concepts/tcp.md": note("TCP/IP", "\u8fc1\u79fb"),
    "projects/active/engine.md": note("Analytical Engine"),
    "Diary/Gardening tips.md": b"# How to grow beans\n",
    "caf\u00e9.md": b"no heading\n",
    "inbox/captures/inbox.md": note("Inbox"),
    "_agent/memory/semantic/operator-preferences.md": note("Operator Preferences"),
    "_agent/sessions/2026-11-30-1405-engine.md": note("Analytical Engine"),
    "_agent/sessions/2026-11-30-1500-beans.md": note("Beans talk"),
}


class Desk:
    """A vault with its names."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.vault = MemoryVault(files)
        self.catalog = Catalog(self.vault)
        self.catalog.refresh()
        lock = AdvisoryLock(self.vault, CLOCK, "desk", 30, notify=lambda message: None)
        self.store = IndexStore(self.vault, lock, CLOCK, self.catalog.build_index)
        self.names = Names(self.store, self.catalog)

    def put(self, path: str, data: bytes) -> None:
        self.vault.put(path, data)
        self.catalog.touch(path, data)

    def means(self, mention: str) -> str | list[str] | None:
        """The path, the candidates' paths, or None."""
        found = self.names.resolve(mention)
        if isinstance(found, Several):
            return [row["path"] for row in found.candidates]
        return found.path if isinstance(found, Match) else None


@pytest.fixture
def desk() -> Desk:
    return Desk(dict(NOTES))


@pytest.mark.parametrize(("mention", "path", "by"), [
    ("resources/people/ada-lovelace.md", "resources/people/ada-lovelace.md", "path"),
    ("resources/people/ada-lovelace", "resources/people/ada-lovelace.md", "path"),
    ("cafe\u0301", "caf\u00e9.md", "path"),
    ("ada-lovelace", "resources/people/ada-lovelace.md", "slug"),
    ("ADA  lovelace ", "resources/people/ada-lovelace.md", "title"),
    ("Ada_Lovelace.md", "resources/people/ada-lovelace.md", "title"),
    ("ada", "resources/people/ada-lovelace.md", "alias"),
    ("schlueter", "resources/people/schluter.md", "alias"),
    ("Schluter", "resources/people/schluter.md", "title"),
    ("SCHL\u00dcTER", "resources/people/schluter.md", "title"),
    ("juergen schlueter", "resources/people/schluter.md", "title"),
    ("gross", "resources/people/schluter.md", "alias"),
    ("acme co", "resources/companies/acme.md", "title"),
    ("TCP/IP", "resources/concepts/tcp.md", "title"),
    ("\u8fc1\u79fb", "resources/concepts/tcp.md", "alias"),
    ("gardening tips", "Diary/Gardening tips.md", "title"),
    ("How to grow beans", "Diary/Gardening tips.md", "title"),
    ("Analytical Engine", "projects/active/engine.md", "title"),
    ("Beans talk", "_agent/sessions/2026-11-30-1500-beans.md", "title"),
    ("inbox", "inbox/captures/inbox.md", "title"),
])
def test_a_name_is_found_in_every_spelling(desk: Desk, mention: str, path: str, by: str) -> None:
    """Path, slug, title, alias, folded and in both German spellings, for entities and for anybody's notes."""
    found = desk.names.resolve(mention)
    assert isinstance(found, Match)
    assert (found.path, found.by) == (path, by)
    assert desk.names.exact(mention) == path


@pytest.mark.parametrize("mention", [
    "people/ada-lovelace.md", "Routing Test NONEXISTENT", "ada-lovelac", "", "..", "../../etc/passwd",
    "Ada Lovelace II", "*", "\x00", "\ud800", "x" * 100_000,
])
def test_what_names_no_note_is_never_guessed(desk: Desk, mention: str) -> None:
    """A near miss, a wrong folder or nonsense resolves to nothing, and a write is refused with candidates."""
    assert desk.means(mention) is None
    with pytest.raises(NotFound) as missing:
        desk.names.exact(mention)
    assert all(set(row) == {"path", "title", "kind", "slug"} for row in missing.value.data["candidates"])
    assert len(missing.value.message) < 200


def test_two_notes_on_one_name_are_ambiguous(desk: Desk) -> None:
    """Candidates, no match: by alias, by title, and between an entity and a person's own note."""
    assert desk.means("Countess") == ["resources/people/ada-lovelace.md", "resources/people/grace.md"]
    desk.put("Diary/x.md", note("Grace Hopper"))
    assert desk.means("grace hopper") == ["Diary/x.md", "resources/people/grace.md"]
    with pytest.raises(Ambiguous) as several:
        desk.names.exact("grace hopper")
    assert several.value.data["candidates"][1] == {
        "path": "resources/people/grace.md", "title": "Grace Hopper", "kind": "person", "slug": "grace"}


def test_a_title_is_not_taken_away_by_somebody_elses_alias(desk: Desk) -> None:
    """Title goes before alias, so a note that claims another's title as its alias changes nothing."""
    desk.put("resources/people/thief.md", note("Thief", "Ada Lovelace", "acme & co"))
    assert desk.means("Ada Lovelace") == "resources/people/ada-lovelace.md"
    assert desk.means("ACME & Co.") == "resources/companies/acme.md"


@pytest.mark.parametrize("claimed", ["Operator Preferences", "operator-preferences", "Inbox", "OPERATOR preferences"])
def test_a_system_note_keeps_its_name_whoever_claims_it(desk: Desk, claimed: str) -> None:
    """Neither alias, title, file name nor slug of a captured note shadows preferences or inbox."""
    before = desk.means(claimed)
    desk.put("resources/people/mallory.md", note("Mallory", claimed))
    desk.put(f"resources/concepts/{claimed}.md", note(claimed))
    forged = EntityIndex()
    forged.put("inbox", Entry([claimed], "concept", f"resources/concepts/{claimed}.md", claimed, ""))
    forged.put("operator-preferences", Entry([], "person", "resources/people/mallory.md", "Mallory", ""))
    desk.vault.put(INDEX, forged.to_bytes())
    desk.catalog.refresh()
    assert desk.means(claimed) == before
    assert before in ("inbox/captures/inbox.md", "_agent/memory/semantic/operator-preferences.md")


def test_a_slug_tells_twins_apart(desk: Desk) -> None:
    """Two notes of one title are ambiguous by title and reachable by slug and path."""
    desk.put("resources/companies/engine.md", note("Analytical Engine"))
    assert desk.means("analytical engine") == ["projects/active/engine.md", "resources/companies/engine.md"]
    assert desk.means("engine-2") == "resources/companies/engine.md"
    assert desk.means("engine") == "projects/active/engine.md"
    assert desk.names.slug_of("resources/companies/engine.md") == "engine-2"
    assert desk.names.slug_of("Diary/Gardening tips.md") == ""


def test_a_conflict_copy_does_not_make_a_name_ambiguous(desk: Desk) -> None:
    """Sync programs leave copies with the same title; the note itself is meant."""
    copy = "resources/people/grace.sync-conflict-20261130-140509-ABCDEFG.md"
    desk.put(copy, note("Grace Hopper", "Amazing Grace"))
    assert desk.means("Grace Hopper") == "resources/people/grace.md"
    assert desk.means("Amazing Grace") == copy


def test_names_that_only_the_index_knows_count(desk: Desk) -> None:
    """An alias or slug in the index that the note does not say resolves too, until the entry says otherwise."""
    index = EntityIndex()
    index.put("countess-ada", Entry(["Byron's daughter"], "person", "resources/people/ada-lovelace.md", "Ada", ""))
    desk.vault.put(INDEX, index.to_bytes())
    desk.catalog.refresh()
    assert desk.means("byron s daughter") == "resources/people/ada-lovelace.md"
    assert desk.means("countess-ada") == "resources/people/ada-lovelace.md"
    assert desk.means("Countess Ada") == "resources/people/ada-lovelace.md"
    index.put("countess-ada", Entry([], "person", "resources/people/ada-lovelace.md", "Ada Lovelace", ""))
    desk.vault.put(INDEX, index.to_bytes())
    desk.catalog.refresh()
    assert desk.means("byron s daughter") is None


def test_an_entry_whose_note_is_gone_resolves_to_nothing(desk: Desk) -> None:
    """A stale index never sends anybody to a note that does not exist; one that cannot be seen still counts."""
    desk.store.update(lambda index: None)
    desk.vault.remove("resources/people/grace.md")
    desk.catalog.refresh()
    assert desk.means("grace") is None
    assert desk.means("Grace Hopper") is None
    assert desk.means("resources/people/grace.md") is None
    desk.vault.put("resources/people/grace.md", note("Grace Hopper"))
    desk.vault.closed = ["resources/people"]
    fresh = Catalog(desk.vault)
    fresh.refresh()
    assert isinstance(Names(desk.store, fresh).resolve("grace hopper"), Match)


def test_every_change_counts_at_once(desk: Desk) -> None:
    """A new title, a removed alias, a deleted note, an index update of our own: no refresh in between."""
    desk.put("resources/people/ada-lovelace.md", note("Ada King"))
    assert desk.means("ada king") == "resources/people/ada-lovelace.md"
    assert desk.means("Countess") == "resources/people/grace.md"
    desk.catalog.forget("resources/people/grace.md")
    assert desk.means("Countess") is None
    acme = Entry(["Roadrunner"], "company", "resources/companies/acme.md", "ACME & Co.", "")
    desk.store.update(lambda index: index.put("acme", acme))
    assert desk.means("roadrunner") == "resources/companies/acme.md"


@pytest.mark.parametrize(("mention", "best"), [
    ("ada lovelac", "resources/people/ada-lovelace.md"),
    ("lovelace", "resources/people/ada-lovelace.md"),
    ("Hoper Grace", "resources/people/grace.md"),
    ("resources/people/ada-lovelace2.md", "resources/people/ada-lovelace.md"),
    ("Analytikal Engine", "projects/active/engine.md"),
    ("Schleuter", "resources/people/schluter.md"),
    ("\u8fc1", "resources/concepts/tcp.md"),
])
def test_candidates_are_the_nearest_names(desk: Desk, mention: str, best: str) -> None:
    """Misspelt, half or misplaced names lead to the note that was meant."""
    assert desk.names.candidates(mention)[0]["path"] == best


def test_candidates_of_nonsense_are_none(desk: Desk) -> None:
    """Nothing like it in the vault: an empty list, not the five least unlike."""
    assert desk.names.candidates("qqqq zzzz") == []
    assert desk.names.candidates("") == []
    assert len(desk.names.candidates("a", n=2)) <= 2


def test_linkables_are_memory_and_a_persons_notes(desk: Desk) -> None:
    """Own files are never linked; a text narrows the list to what it may mention."""
    every = {linkable.path for linkable in desk.names.linkables()}
    assert every == {path for path in NOTES if not path.startswith(("_agent", "inbox"))}
    text = "Talked to Schlueter about beans, \u8fc1\u79fb."
    some = {linkable.path: linkable for linkable in desk.names.linkables(text)}
    assert set(some) == {"resources/people/schluter.md", "resources/concepts/tcp.md"}
    assert set(some["resources/people/schluter.md"].names) >= {"Schl\u00fcter", "Gro\u00df"}
    assert some["resources/people/schluter.md"].kind == "person"


def test_resolving_asks_the_vault_nothing(desk: Desk) -> None:
    """Once index and catalog are known, a thousand names cost no read and no stat."""
    desk.store.update(lambda index: None)
    desk.means("ada")
    desk.vault.calls.clear()
    for _ in range(1000):
        desk.means("schlueter")
    assert not desk.vault.calls


def test_threads_share_the_names(desk: Desk) -> None:
    """Writers and resolvers at once: no error, no half-entered name."""
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(30):
                desk.put(f"resources/people/p{number}.md", note(f"Person {number}", f"alias {number} {turn}"))
                assert desk.means(f"alias {number} {turn}") == f"resources/people/p{number}.md"
                assert desk.means("ada") == "resources/people/ada-lovelace.md"
        except BaseException as problem:
            errors.append(problem)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
