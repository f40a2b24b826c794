"""The notes every vault starts with, byte for byte (spec 2.1).

`bootstrap` writes all of them; an op that needs one that a person has deleted makes it again with the same text.
"""
from __future__ import annotations

from typing import Any, Callable, Dict

from echo_core.catalog.note import new_note
from echo_core.clock import Clock
from echo_core.kinds import INBOX, PREFERENCES, README, SCOPE

SCHEMA_VERSION = 3
"""The version of the vault format that this program reads and writes."""


def starter_text(path: str, clock: Clock, owner: str) -> str:
    """The text of the starter note at `path`, one of `STARTERS`. KeyError for any other path."""
    return STARTERS[path](clock, owner)


def marker_text(clock: Clock) -> str:
    """The marker `_agent/echo-vault.md`: which version of the format the vault has, and since when."""
    body = (
        "This folder is an ECHO memory. `schema_version` says which layout it has.\n"
        "ECHO writes this note last when it sets a vault up; leave it in place."
    )
    special = {"schema_version": SCHEMA_VERSION, "bootstrapped": clock.instant()}
    return new_note({**_meta("marker", "ECHO Vault", clock), **special}, "ECHO Vault", body)


def _readme(clock: Clock, owner: str) -> str:
    return README_TEXT.format(owner=owner)


def _inbox(clock: Clock, owner: str) -> str:
    return new_note(_meta("inbox", "Inbox", clock), "Inbox", "")


def _context(clock: Clock, owner: str) -> str:
    return new_note(_meta("context", "Current Context", clock), "Current Context", "## Scope\n\n## Scope History")


def _preferences(clock: Clock, owner: str) -> str:
    body = f"How {owner} likes to work and what an assistant should know. One line each; edit freely."
    return new_note(_meta("semantic", "Operator Preferences", clock), "Operator Preferences", body)


def _meta(kind: str, title: str, clock: Clock) -> Dict[str, Any]:
    day = clock.day()
    return {"type": kind, "title": title, "created": day, "updated": day, "agent_written": True}


STARTERS: Dict[str, Callable[[Clock, str], str]] = {
    README: _readme,
    INBOX: _inbox,
    SCOPE: _context,
    PREFERENCES: _preferences,
}
"""Path -> the text of its note, in the order they are made; the marker is made after all of them."""

README_TEXT = """\
# The memory of {owner}

This folder is a long-term memory in plain Markdown. Assistants read it and add to it through ECHO; you can open,
edit, move and delete everything here by hand, for example in Obsidian.

| folder | holds |
|---|---|
| `inbox/captures/inbox.md` | quick captures, one line each, until they are sorted |
| `journal/` | day notes, and weekly, monthly, quarterly and annual rollups |
| `projects/` | one note a project, in the folder of its status |
| `areas/` | lasting responsibilities |
| `resources/` | people, companies, concepts, references and meetings |
| `decisions/by-date/` | what was decided, and when |
| `_agent/` | ECHO's own notes: preferences, current scope, session logs, index |

What you prefer stands in `_agent/memory/semantic/operator-preferences.md`: that is the note to edit first.
"""
