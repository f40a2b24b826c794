"""Every lint check finds what it is named for, and is silent about a tidy vault and about a person's own ways."""
from __future__ import annotations

import pytest
from echo_core.catalog.catalog import Catalog
from echo_core.clock import Clock
from echo_core.index import EntityIndex, Entry
from echo_core.index.store import IndexStore
from echo_core.kinds import INDEX
from echo_core.lint import CHECKS, lint
from echo_core.lint.sync_copies import conflict_copy
from echo_core.locks import AdvisoryLock
from echo_core.routing import Retired, Route, RouteMap
from fakes.memory_vault import MemoryVault

CLOCK = Clock("Europe/Vienna", "2026-11-30T14:05:09+01:00")

TIDY = {
    "README.md": b"# My vault\n",
    "_agent/echo-vault.md": b"---\nschema_version: 3\n---\n",
    "inbox/captures/inbox.md": b"# Inbox\n\n- 2026-11-28: call Ada\n",
    "journal/daily/2026-11-30.md": b"# 2026-11-30\n\nSee [[ada]].\n",
    "resources/people/ada.md": b"---\ntype: person\ntitle: Ada\n---\n\n# Ada\n\n[[engine]]\n",
    "projects/active/engine.md": b"---\ntype: project\ntitle: Engine\nstatus: active\n---\n\n# Engine\n",
}


def findings(
    files: dict[str, bytes], routes: RouteMap | None = None, index: bool = True, closed: tuple[str, ...] = (),
    only: set[str] | None = None, fast: bool = False,
) -> list[tuple[str, str, str]]:
    """What lint says about TIDY with `files` added, as (check, path, detail)."""
    vault = MemoryVault({**TIDY, **files})
    vault.closed = list(closed)
    catalog = Catalog(vault)
    catalog.refresh()
    lock = AdvisoryLock(vault, CLOCK, "lint", 30, notify=lambda message: None)
    store = IndexStore(vault, lock, CLOCK, catalog.build_index, catalog.complete)
    if index:
        store.update(lambda current: None)
    before = vault.snapshot()
    found = lint(catalog, vault, store, lambda: routes or RouteMap.load(None), CLOCK, only, fast)
    assert vault.snapshot() == before
    assert all(set(row) == {"check", "path", "detail"} and "\n" not in row["detail"] for row in found)
    return [(row["check"], row["path"], row["detail"]) for row in found]


def found_by(check: str, files: dict[str, bytes], **options: object) -> list[str]:
    """The paths of one check's findings."""
    return [path for name, path, _ in findings(files, **options) if name == check]  # type: ignore[arg-type]


def entity(title: str, more: str = "", body: str = "[[ada]]") -> bytes:
    return f"---\ntitle: {title}\n{more}---\n\n# {title}\n\n{body}\n".encode()


def test_a_tidy_vault_has_no_findings() -> None:
    """Everything the layout makes passes every check."""
    assert findings({}) == []


def test_the_checks_are_those_of_the_format() -> None:
    """The names of spec 3.4, `invalid-utf8`, and `unreadable` for what nobody could look at."""
    assert set(CHECKS) == {
        "route-unmatched", "route-retired", "frontmatter-missing", "frontmatter-malformed", "folder-status-mismatch",
        "broken-link", "ambiguous-link", "duplicate-entity", "index-stale", "index-missing", "orphan", "inbox-aging",
        "note-oversized", "bad-name", "invalid-utf8", "secret-suspected", "conflict-copy",
        "unreadable",
    }


def test_notes_outside_the_route_map_are_named_and_whole_folders_together() -> None:
    """A few notes one by one, a person's own folder as one line with its count."""
    files = {f"Diary/2026/{n}.md": b"x" for n in range(40)} | {"Photos/a.md": b"x", "loose.md": b"x"}
    rows = [(path, detail) for check, path, detail in findings(files) if check == "route-unmatched"]
    assert rows == [
        ("Diary/", "40 notes here match no route"), ("Photos/a.md", "matches no route"),
        ("loose.md", "matches no route"),
    ]


def test_a_retired_place_is_named_with_its_successor() -> None:
    """And is not reported as unmatched as well."""
    routes = RouteMap([*RouteMap.load(None).routes, Route("x", "x/*.md", "")], [Retired("old/**", "projects/archived")])
    assert [row for row in findings({"old/a.md": b"x"}, routes) if row[1] == "old/a.md"] == [
        ("route-retired", "old/a.md", "this place is retired; use projects/archived")]


def test_frontmatter_faults_are_told_apart_and_located() -> None:
    """Missing in a note of the layout, malformed with line and column anywhere; a person's plain note is fine."""
    files = {
        "resources/people/bare.md": b"# Bare\n[[ada]]\n",
        "resources/people/bad.md": b"---\ntitle: X\ntags: [#abc, def]\n---\n[[ada]]\n",
        "Diary/bad.md": b"---\na: 1\na: 2\n---\n",
        "Diary/plain.md": b"plain\n",
    }
    rows = findings(files)
    assert [path for check, path, _ in rows if check == "frontmatter-missing"] == ["resources/people/bare.md"]
    malformed = {path: detail for check, path, detail in rows if check == "frontmatter-malformed"}
    assert set(malformed) == {"resources/people/bad.md", "Diary/bad.md"}
    assert malformed["Diary/bad.md"].startswith("line 3, column 1: ")


def test_a_status_or_domain_that_differs_from_the_folder_is_found() -> None:
    """Projects by status, areas by domain; a note that says nothing is no mismatch."""
    assert found_by("folder-status-mismatch", {
        "projects/archived/old.md": entity("Old", "status: active\n"),
        "projects/archived/silent.md": entity("Silent"),
        "areas/personal/health.md": entity("Health", "domain: business\n"),
        "areas/personal/home.md": entity("Home", "domain: personal\n"),
    }) == ["areas/personal/health.md", "projects/archived/old.md"]


def test_links_that_lead_nowhere_or_to_several_are_found() -> None:
    """Attachments, folders, headings, own headings, code and templates are no broken links."""
    files = {
        "Diary/a.md": b"[[nobody]] [[ada#Life]] [[#Here]] ![[pic.png]] `[[code]]` [w](https://x.org/y.md) [[twin]]",
        "Diary/b.md": b"[f](../projects/active) [g](/projects/) [h](./)",
        "Diary/pic.png": b"x", "x/twin.md": b"1", "y/twin.md": b"2",
        "journal/templates/day.md": b"[[{{date}}]]",
    }
    rows = findings(files)
    assert [(path, detail) for check, path, detail in rows if check == "broken-link"] == [
        ("Diary/a.md", "no file is called [[nobody]]")]
    assert [(path, detail) for check, path, detail in rows if check == "ambiguous-link"] == [
        ("Diary/a.md", "[[twin]] may mean x/twin.md, y/twin.md")]


def test_two_entities_of_one_kind_and_name_are_duplicates() -> None:
    """By title or alias in any spelling; another kind, another day or a person's own note is not."""
    assert found_by("duplicate-entity", {
        "resources/people/zz.md": entity("Somebody", "aliases: [ADA]\n"),
        "resources/companies/ada.md": entity("Ada"),
        "Diary/ada2.md": entity("Ada"),
        "resources/meetings/2026-11-29-sync.md": entity("Sync"),
        "resources/meetings/2026-11-30-sync.md": entity("Sync"),
        "resources/meetings/2026-11-30-sync-2.md": entity("Sync"),
    }) == ["resources/meetings/2026-11-30-sync.md", "resources/people/zz.md"]


def test_an_index_that_differs_from_the_notes_is_stale() -> None:
    """A changed title, a note that is gone, an entry outside the layout; each says what differs."""
    index = EntityIndex()
    index.put("ada", Entry([], "person", "resources/people/ada.md", "Countess", ""))
    index.put("engine", Entry([], "project", "projects/active/engine.md", "Engine", ""))
    index.put("gone", Entry([], "person", "resources/people/gone.md", "Gone", ""))
    index.put("own", Entry([], "", "README.md", "Own", ""))
    rows = [row[1:] for row in findings({INDEX: index.to_bytes()}) if row[0] == "index-stale"]
    assert rows == [
        ("README.md", "entity own lies outside the folders of the layout"),
        ("resources/people/ada.md", "entity ada differs from its note in title"),
        ("resources/people/gone.md", "entity gone has no note any more"),
    ]


def test_an_entry_under_an_unreadable_folder_is_not_stale() -> None:
    """Nobody knows whether that note is there; the folder itself is named."""
    index = EntityIndex()
    index.put("ada", Entry([], "person", "resources/people/ada.md", "Ada", ""))
    rows = findings({INDEX: index.to_bytes()}, index=False, closed=("resources/people",))
    assert [row for row in rows if row[0] in ("index-stale", "unreadable")] == [
        ("unreadable", "resources/people", "cannot be read, or is a link that leaves the vault")]


def test_a_missing_or_broken_index_is_one_finding() -> None:
    """Not one for every note; notes without an entry in a good index are named one by one."""
    assert [row for row in findings({}, index=False) if row[0].startswith("index")] == [
        ("index-missing", INDEX, "no index file, but 2 notes belong into it")]
    assert found_by("index-stale", {INDEX: b"{"}, index=False) == [INDEX]
    assert found_by("index-missing", {INDEX: EntityIndex().to_bytes()}, index=False) == [
        "projects/active/engine.md", "resources/people/ada.md"]


def test_an_entity_nobody_links_to_is_an_orphan() -> None:
    """Linking to a note or being linked from any note is enough; a link to itself or to nobody is not."""
    assert found_by("orphan", {
        "resources/people/alone.md": entity("Alone", body="[[alone]] [[nobody]]"),
        "resources/people/linked.md": entity("Linked", body="text"),
        "Diary/a.md": b"[[linked]]",
        "Diary/lonely.md": b"text",
    }) == ["resources/people/alone.md"]


def test_old_inbox_items_are_counted_with_the_oldest() -> None:
    """Older than seven days in the owner's zone; younger, undated and impossible dates are not counted."""
    lines = ["# Inbox", "", "- 2026-11-23: 7 days", "- 2026-11-22: 8", "- 2026-01-01: x", "- 2026-13-45: x", "- y"]
    inbox = "\r\n".join(lines).encode()
    rows = [row[1:] for row in findings({"inbox/captures/inbox.md": inbox}) if row[0] == "inbox-aging"]
    assert rows == [("inbox/captures/inbox.md", "2 items older than 7 days, the oldest of 2026-01-01")]


def test_an_oversized_note_is_found() -> None:
    """Above 256 KiB."""
    files = {"Diary/big.md": b"x" * 300_000, "Diary/ok.md": b"x" * 200_000}
    assert found_by("note-oversized", files) == ["Diary/big.md"]


def test_names_that_break_elsewhere_are_found() -> None:
    """Characters other systems or links cannot hold, and names that differ in case alone."""
    assert found_by("bad-name", {
        "Diary/what?.md": b"x", "Diary/a#b.md": b"x", "Diary/Twin.md": b"x", "Diary/twin.md": b"x",
        "Diary/100% done.md": b"x", "Diary/\U0001f58a \u00fc.md": b"x", "Diary/CON.md": b"x", "Acme Inc./a.md": b"x",
        "Diary/contra.md": b"x",
    }) == ["Acme Inc./a.md", "Diary/CON.md", "Diary/a#b.md", "Diary/twin.md", "Diary/what?.md"]


@pytest.mark.parametrize("fast", [False, True])
def test_a_note_of_bytes_that_are_no_utf8_is_found(fast: bool) -> None:
    """An old code page, UTF-16, half a character; a note of any valid text is not."""
    assert found_by("invalid-utf8", {
        "Diary/latin.md": "# Größe\n".encode("latin-1"), "Diary/utf16.md": "# T\n".encode("utf-16"),
        "resources/people/half.md": entity("Half") + "€".encode()[:2], "Diary/fine.md": "# Größe € 日本\n".encode(),
        "Diary/odd.md": b"---\na: [\n---\n\xff\n",
    }, fast=fast) == ["Diary/latin.md", "Diary/odd.md", "Diary/utf16.md", "resources/people/half.md"]


def test_a_secret_is_named_by_shape_and_never_shown() -> None:
    """Any note of the vault; the value is in no finding."""
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    rows = findings({"Diary/keys.md": f"token: {token}\n".encode()})
    assert [row[1] for row in rows if row[0] == "secret-suspected"] == ["Diary/keys.md"]
    assert token not in str(rows)


@pytest.mark.parametrize("path", [
    "Note.sync-conflict-20261130-140509-ABCDEFG.md",
    "Note (conflicted copy 2026-11-30 140509).md",
    "Note (Ada's conflicted copy 2026-11-30).md",
    "Note (laptop's conflicted copy 2026-11-30) (1).md",
    "Note (Conflicted copy MacBook 202611301405).md",
    "Note (Case Conflict).md",
    "Note (Case Conflict 1).md",
    "a/b/Note (conflict 2026-11-30-14-05-09).md",
])
def test_the_copies_of_every_sync_program_are_recognised(path: str) -> None:
    """Syncthing, Nextcloud, Dropbox, Obsidian Sync and others, by name alone."""
    assert conflict_copy(path)


@pytest.mark.parametrize("path", [
    "Conflict.md", "conflicts/Note.md", "How to solve a conflict.md", "Note 2.md", "Note (2).md",
    "Conflicted copy.md", "2026-11-30 conflict with Bob.md", "sync-conflict.md", "Note (copy).md",
])
def test_notes_about_conflicts_are_not_taken_for_copies(path: str) -> None:
    """Words in a title and numbered notes are ordinary names."""
    assert not conflict_copy(path)


def test_an_icloud_copy_is_told_from_a_numbered_note() -> None:
    """`Note 2` beside `Note` is a copy only while it carries the same title."""
    assert found_by("conflict-copy", {
        "Diary/Trip.md": b"# Trip\n", "Diary/Trip 2.md": b"# Trip\n", "Diary/Trip 3.md": b"# Third trip\n",
        "Diary/Only 2.md": b"# Only\n", "Diary/Note.sync-conflict-20261130-140509-ABCDEFG.md": b"x",
    }) == ["Diary/Note.sync-conflict-20261130-140509-ABCDEFG.md", "Diary/Trip 2.md"]


def test_a_fast_run_over_changed_notes_looks_at_those_alone() -> None:
    """Only the given notes, and none of the checks that read or compare everything."""
    alone = "resources/people/alone.md"
    files = {"Diary/a.md": b"[[nobody]]", "Diary/b.md": b"[[nobody]]", alone: entity("A", body="")}
    rows = findings(files, only={"Diary/a.md", alone}, fast=True)
    assert [(check, path) for check, path, _ in rows] == [
        ("route-unmatched", "Diary/a.md"), ("broken-link", "Diary/a.md")]
