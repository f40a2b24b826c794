"""What has been left alone for long and waits for a decision of the operator (spec 3.4: decay proposes, never acts)."""
from __future__ import annotations

from datetime import date
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from echo_context import OpContext
from echo_core import frontmatter
from echo_core.catalog.notebytes import decode
from echo_core.kinds import INBOX
from echo_edits import notes_in
from echo_inbox import Item, age_days, aging, read_items
from echo_session_logs import instant_of

LIMITS: Tuple[Tuple[str, str, int], ...] = (
    ("working-memory", "_agent/memory/working", 14),
    ("project", "projects/active", 60),
)
"""What ages, its folder, and after how many days without an update it counts."""


class Aging(NamedTuple):
    """One thing past its limit. what: working-memory, project or inbox. days: since its last update."""

    what: str
    path: str
    days: int


def aging_things(ctx: OpContext, items: Optional[Sequence[Item]] = None) -> List[Aging]:
    """Everything past its limit, notes first, then inbox items. A note without a readable date does not age.

    items: the inbox, when the caller has read it. Lists two folders and reads the notes there that the catalog has not
    met. Raises vault errors.
    """
    today = ctx.clock.today()
    found = [
        Aging(what, path, days)
        for what, folder, limit in LIMITS
        for path, days in _ages(ctx, folder, today)
        if days > limit
    ]
    inbox = read_items(ctx) if items is None else items
    return found + [Aging("inbox", INBOX, age_days(item, today) or 0) for item in aging(inbox, today)]


def _ages(ctx: OpContext, folder: str, today: date) -> List[Tuple[str, int]]:
    """Each note directly in `folder` that says when it was updated, with the days since."""
    said: Dict[str, Tuple[Any, Any]] = {}
    paths = notes_in(ctx, folder)
    for path in paths:
        note = ctx.catalog.facts(path)
        if note is not None:
            said[path] = note.updated, note.created
    for path, data in ctx.vault.read_many([path for path in paths if path not in said]):
        values = frontmatter.parse(decode(data)[0]).values
        said[path] = values.get("updated"), values.get("created")
    days = ((path, _day(updated, ctx) or _day(created, ctx)) for path, (updated, created) in sorted(said.items()))
    return [(path, (today - day).days) for path, day in days if day is not None]


def _day(value: Any, ctx: OpContext) -> Optional[date]:
    at = instant_of(value, ctx) if isinstance(value, str) else None
    return None if at is None else at.date()
