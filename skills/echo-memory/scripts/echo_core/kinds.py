"""Which kind of memory lives where in the vault (spec 2.1), in both directions.

`place` answers "where does a note of this kind go", `kind_of` answers "what kind is the note at this path". A note
whose path belongs to a kind is an *entity* and stands in the entity index; the few notes that the format itself
needs (marker, scope, preferences, inbox) are *system notes* and never do.
"""
from __future__ import annotations

from typing import Dict, NamedTuple, Tuple

from echo_core.errors import InvalidArgument

PROJECT_STATUSES: Tuple[str, ...] = ("active", "incubating", "on-hold", "archived")
DOMAINS: Tuple[str, ...] = ("business", "personal", "learning", "systems")

README = "README.md"
INBOX = "inbox/captures/inbox.md"
MARKER = "_agent/echo-vault.md"
SCOPE = "_agent/context/current-context.md"
PREFERENCES = "_agent/memory/semantic/operator-preferences.md"
HEARTBEAT = "_agent/sessions/heartbeat.json"
INDEX = "_agent/index/entities.json"
ROUTES = "_agent/routing.json"
TRASH = "_agent/trash/"
INDEX_LOCK = "_agent/locks/index.json"
DAY_NOTES = "journal/daily/{day}.md"

SYSTEM_NOTES: Dict[str, str] = {
    INBOX: "Inbox",
    MARKER: "ECHO Vault",
    SCOPE: "Current Context",
    PREFERENCES: "Operator Preferences",
}
"""The notes the format itself needs, and the title each of them owns: no captured note can shadow these."""

SYSTEM_FOLDERS: Tuple[str, ...] = ("inbox/", "journal/", "_agent/")
"""Folders ECHO keeps for itself, except where a kind of `KINDS` lives inside one of them."""


class Kind(NamedTuple):
    """One kind of memory.

    folder: where its notes live, `{status}` or `{domain}` standing for one of `choices`. dated: the file name
    begins with the day. choices: the allowed sub-folders, the default first; empty when there are none.
    """

    name: str
    folder: str
    dated: bool = False
    choices: Tuple[str, ...] = ()


KINDS: Dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("person", "resources/people"),
        Kind("company", "resources/companies"),
        Kind("concept", "resources/concepts"),
        Kind("reference", "resources/references"),
        Kind("meeting", "resources/meetings", dated=True),
        Kind("project", "projects/{status}", choices=PROJECT_STATUSES),
        Kind("area", "areas/{domain}", choices=DOMAINS),
        Kind("semantic", "_agent/memory/semantic"),
        Kind("episodic", "_agent/memory/episodic"),
        Kind("working", "_agent/memory/working"),
        Kind("skill", "_agent/skills/active"),
        Kind("decision", "decisions/by-date", dated=True),
    )
}
"""Every kind by its name, in the order the layout lists them."""

OWN_TYPES: Tuple[str, ...] = ("daily", "rollup", "session")
"""The `type` of searchable notes that ECHO writes by itself, beside those of `KINDS`."""


def _folders() -> Dict[str, Tuple[str, str]]:
    """Each concrete folder of the layout -> (kind name, the choice it stands for or "")."""
    table: Dict[str, Tuple[str, str]] = {}
    for kind in KINDS.values():
        for choice in kind.choices or ("",):
            table[kind.folder.format(status=choice, domain=choice)] = (kind.name, choice)
    return table


FOLDERS: Dict[str, Tuple[str, str]] = _folders()


def place(kind: str, slug: str, status: str = "", domain: str = "", day: str = "") -> str:
    """The path of a note of `kind`.

    status: for projects, default active. domain: for areas, default business. day: `2026-11-30`, needed by the
    dated kinds and ignored by the others. Raises InvalidArgument naming the field that does not fit.
    """
    if kind not in KINDS:
        raise _refused("kind", kind, tuple(KINDS))
    entry = KINDS[kind]
    folder = entry.folder
    if entry.choices:
        field = "status" if kind == "project" else "domain"
        choice = (status if kind == "project" else domain) or entry.choices[0]
        if choice not in entry.choices:
            raise _refused(field, choice, entry.choices)
        folder = folder.format(status=choice, domain=choice)
    if not entry.dated:
        return f"{folder}/{slug}.md"
    if not day:
        raise InvalidArgument(f"a {kind} needs a date", hint="Give date as YYYY-MM-DD.", field="date")
    return f"{folder}/{day}-{slug}.md"


def kind_of(path: str) -> str:
    """The kind whose folder holds the note at `path`, "" when the path belongs to none."""
    return _placed(path)[0]


def status_of(path: str) -> str:
    """The project status the folder of `path` stands for, "" for anything that is no project."""
    kind, choice = _placed(path)
    return choice if kind == "project" else ""


def domain_of(path: str) -> str:
    """The domain the folder of `path` stands for, "" for anything that is no area."""
    kind, choice = _placed(path)
    return choice if kind == "area" else ""


def is_entity(path: str) -> bool:
    """Whether the note at `path` belongs into the entity index: it has a kind and is no system note."""
    return path not in SYSTEM_NOTES and bool(kind_of(path))


def may_hold_entities(place: str) -> bool:
    """Whether an entity could lie at or below `place`, a file or folder that nobody could look at ("" is the root)."""
    return place == "" or is_entity(place) or any((folder + "/").startswith(place + "/") for folder in FOLDERS)


def is_system(path: str) -> bool:
    """Whether `path` is one of ECHO's own files: the README, inbox, journal, sessions, context, control files."""
    if path in SYSTEM_NOTES or path == README:
        return True
    return path.startswith(SYSTEM_FOLDERS) and not kind_of(path)


NOT_SEARCHED: Tuple[str, ...] = ("_agent/health/", "inbox/processing-log/", "journal/templates/")
"""Folders whose notes speak about the vault and not about the operator's life."""


def is_searchable(path: str) -> bool:
    """Whether recall looks into the note at `path`."""
    return path not in (README, MARKER) and not path.startswith(NOT_SEARCHED)


def _placed(path: str) -> Tuple[str, str]:
    """(kind, choice) of `path`, both "" when it is no Markdown file directly inside a folder of the layout."""
    folder, _, name = path.rpartition("/")
    if not name.endswith(".md"):
        return "", ""
    return FOLDERS.get(folder, ("", ""))


def _refused(field: str, value: str, allowed: Tuple[str, ...]) -> InvalidArgument:
    shown = value[:40]
    return InvalidArgument(
        f"{field} {shown!r} is not one of: {', '.join(allowed)}", hint=f"Use one of: {', '.join(allowed)}.",
        field=field, allowed=list(allowed),
    )
