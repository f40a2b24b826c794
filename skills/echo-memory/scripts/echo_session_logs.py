"""Session logs by their names, `_agent/sessions/2026-11-30-1405-<slug>.md`, and the heartbeat (spec 2.1, 2.7)."""
from __future__ import annotations

import json
import re
from datetime import date, datetime
from typing import Dict, List, NamedTuple, Optional, Tuple

from echo_context import OpContext
from echo_core.errors import EchoError, NotFound
from echo_core.kinds import HEARTBEAT

FOLDER = "_agent/sessions"
_NAME = re.compile(r"(?P<stamp>\d{4}-\d{2}-\d{2}-(?:[01]\d|2[0-3])[0-5]\d)-(?P<slug>.+)\.md", re.ASCII)


class SessionLog(NamedTuple):
    """One session log. stamp: the minute its name says, as the wall clock showed it. slug: the rest of the name."""

    path: str
    stamp: str
    slug: str

    def at(self, ctx: OpContext) -> datetime:
        """The minute of the stamp as a moment in the owner's zone; of an hour that came twice the first."""
        return ctx.clock.at(f"{self.stamp[:10]}T{self.stamp[11:13]}:{self.stamp[13:]}").now()

    @property
    def day(self) -> date:
        """The owner's calendar day of the stamp."""
        return date.fromisoformat(self.stamp[:10])


def session_logs(ctx: OpContext) -> List[SessionLog]:
    """All session logs, oldest first; files with other names are left out. Raises vault errors."""
    try:
        names = ctx.vault.list_folder(FOLDER).files
    except NotFound:
        return []
    matches = map(_NAME.fullmatch, names)
    logs = [
        SessionLog(f"{FOLDER}/{match.group()}", match.group("stamp"), match.group("slug"))
        for match in matches if match and _is_day(match.group("stamp")[:10])
    ]
    return sorted(logs, key=_order)


def stamp_of(path: str) -> str:
    """The stamp in the name of a session log, "" for any other path."""
    match = _NAME.fullmatch(path.rpartition("/")[2])
    return match.group("stamp") if match else ""


def count_after(logs: List[SessionLog], instant: datetime, ctx: OpContext) -> int:
    """How many logs have a stamp later than `instant` (aware). Compared as moments: wall times repeat in autumn."""
    limit, day = instant.timestamp(), instant.date().toordinal()

    def is_later(log: SessionLog) -> bool:
        days = log.day.toordinal() - day
        # Only stamps around the limit need the zone; there can be thousands of others.
        return days > 2 or (days >= -2 and log.at(ctx).timestamp() > limit)

    return sum(1 for log in logs if is_later(log))


def instant_of(text: str, ctx: OpContext) -> Optional[datetime]:
    """The moment that an ISO instant or a plain day of the vault means in the owner's zone; None for neither."""
    try:
        return ctx.clock.at(text).now()
    except (EchoError, OverflowError):
        return None


def heartbeat(ctx: OpContext) -> Dict[str, str]:
    """`{"session", "at", "agent"}` of the last committed session; empty when there is none or it is broken."""
    try:
        found = json.loads(ctx.vault.read(HEARTBEAT).decode("utf-8"))
    except (NotFound, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: str(found.get(name, "")) for name in ("session", "at", "agent")}


def _order(log: SessionLog) -> Tuple[str, str, int]:
    """By minute; of one name in one minute the plain one first, then -2, -3 ... as numbers."""
    name, _, number = log.slug.rpartition("-")
    return (log.stamp, name, int(number)) if name and number.isdecimal() else (log.stamp, log.slug, 1)


def _is_day(text: str) -> bool:
    try:
        return bool(date.fromisoformat(text))
    except ValueError:
        return False
