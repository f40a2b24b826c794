"""Session logs by their names, `_agent/sessions/2026-11-30-1405-<slug>.md`, and the heartbeat (spec 2.1, 2.7)."""
from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from typing import Dict, List, NamedTuple, Optional

from echo_context import OpContext
from echo_core.errors import EchoError, NotFound
from echo_core.kinds import HEARTBEAT

FOLDER = "_agent/sessions"
_NAME = re.compile(r"(\d{4}-\d{2}-\d{2})-([01]\d|2[0-3])([0-5]\d)-(.+)\.md")


class SessionLog(NamedTuple):
    """One session log. at: the minute its name says, in the owner's zone. slug: the rest of the name."""

    path: str
    at: datetime
    slug: str

    @property
    def stamp(self) -> str:
        """The stamp in its name, `2026-11-30-1405`; sorts by wall time."""
        return self.path[len(FOLDER) + 1:][:15]


def session_logs(ctx: OpContext) -> List[SessionLog]:
    """All session logs, oldest first; files with other names are left out. Raises vault errors."""
    try:
        names = ctx.vault.list_folder(FOLDER).files
    except NotFound:
        return []
    logs = [_log(name, ctx) for name in sorted(names)]
    return [log for log in logs if log is not None]


def count_after(logs: List[SessionLog], instant: datetime) -> int:
    """How many logs have a stamp later than `instant` (aware). Compared in UTC: wall times repeat in autumn."""
    limit = instant.astimezone(timezone.utc)
    return sum(1 for log in logs if log.at.astimezone(timezone.utc) > limit)


def instant_of(text: str, ctx: OpContext) -> Optional[datetime]:
    """The moment that an ISO instant or a plain day of the vault means in the owner's zone; None for neither."""
    try:
        return ctx.clock.at(text).now()
    except EchoError:
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


def _log(name: str, ctx: OpContext) -> Optional[SessionLog]:
    match = _NAME.fullmatch(name)
    if not match:
        return None
    day, hour, minute, slug = match.groups()
    at = instant_of(f"{day}T{hour}:{minute}", ctx)
    return None if at is None else SessionLog(f"{FOLDER}/{name}", at, slug)
