"""Each kind of memory has one place, and each place one kind (spec 2.1)."""
from __future__ import annotations

import pytest
from echo_core import kinds
from echo_core.errors import InvalidArgument

PLACES = {
    "person": "resources/people/x.md",
    "company": "resources/companies/x.md",
    "concept": "resources/concepts/x.md",
    "reference": "resources/references/x.md",
    "meeting": "resources/meetings/2026-11-30-x.md",
    "project": "projects/active/x.md",
    "area": "areas/business/x.md",
    "semantic": "_agent/memory/semantic/x.md",
    "episodic": "_agent/memory/episodic/x.md",
    "working": "_agent/memory/working/x.md",
    "skill": "_agent/skills/active/x.md",
    "decision": "decisions/by-date/2026-11-30-x.md",
}


@pytest.mark.parametrize(("kind", "path"), PLACES.items())
def test_a_kind_goes_to_its_place_and_the_place_tells_the_kind(kind: str, path: str) -> None:
    """`place` and `kind_of` are each other's inverse for all twelve kinds of the layout."""
    assert kinds.place(kind, "x", day="2026-11-30") == path
    assert kinds.kind_of(path) == kind
    assert set(PLACES) == set(kinds.KINDS)


def test_a_project_lies_in_the_folder_of_its_status() -> None:
    """The four statuses are the four folders, read back from the path."""
    for status in ("active", "incubating", "on-hold", "archived"):
        path = kinds.place("project", "engine", status=status)
        assert path == f"projects/{status}/engine.md"
        assert (kinds.kind_of(path), kinds.status_of(path), kinds.domain_of(path)) == ("project", status, "")


def test_an_area_lies_in_the_folder_of_its_domain() -> None:
    """The four domains are the four folders, read back from the path."""
    for domain in ("business", "personal", "learning", "systems"):
        path = kinds.place("area", "health", domain=domain)
        assert path == f"areas/{domain}/health.md"
        assert (kinds.domain_of(path), kinds.status_of(path)) == (domain, "")


@pytest.mark.parametrize(("arguments", "field"), [
    ({"kind": "persona"}, "kind"),
    ({"kind": ""}, "kind"),
    ({"kind": "project", "status": "done"}, "status"),
    ({"kind": "area", "domain": "../x"}, "domain"),
    ({"kind": "meeting"}, "date"),
])
def test_what_does_not_fit_is_refused_by_name(arguments: dict[str, str], field: str) -> None:
    """A wrong kind, status, domain or a missing day names the field it came in."""
    with pytest.raises(InvalidArgument) as refused:
        kinds.place(slug="x", **arguments)
    assert refused.value.data["field"] == field


@pytest.mark.parametrize("path", [
    "x.md", "projects/x.md", "projects/done/x.md", "projects/active/deep/x.md", "resources/people/x.txt",
    "resources/people", "Resources/People/x.md", "journal/daily/2026-11-30.md", "_agent/memory/x.md", "",
])
def test_a_path_outside_the_layout_has_no_kind(path: str) -> None:
    """Only a Markdown file directly in a folder of the layout has a kind."""
    assert kinds.kind_of(path) == ""
    assert not kinds.is_entity(path)


def test_the_notes_the_format_needs_are_system_notes_and_no_entities() -> None:
    """Marker, scope, preferences and inbox stand for themselves; the preferences lie among semantic memory."""
    for path in ("_agent/echo-vault.md", "_agent/context/current-context.md", "inbox/captures/inbox.md",
                 "_agent/memory/semantic/operator-preferences.md"):
        assert kinds.is_system(path)
        assert not kinds.is_entity(path)
    assert kinds.kind_of("_agent/memory/semantic/operator-preferences.md") == "semantic"


def test_own_files_are_told_from_memory_and_from_a_persons_notes() -> None:
    """Journal, sessions and control files are ECHO's own; memory and notes elsewhere are not."""
    for path in ("README.md", "journal/daily/2026-11-30.md", "_agent/sessions/a.md", "_agent/routing.json"):
        assert kinds.is_system(path)
    for path in ("_agent/memory/working/a.md", "_agent/skills/active/a.md", "resources/people/a.md", "Diary/a.md",
                 "docs/README.md"):
        assert not kinds.is_system(path)


def test_an_unreadable_place_counts_when_an_entity_could_lie_there() -> None:
    """Above, at or below a folder of the layout; a person's own folder hides no entity."""
    for place in ("", "resources", "resources/people", "resources/people/ada.md", "_agent"):
        assert kinds.may_hold_entities(place)
    for place in ("Photos", "journal", "resources/people/ada.pdf", "res"):
        assert not kinds.may_hold_entities(place)
