"""Whether this session has been logged: what the Stop hook asks (spec 3.3)."""
from __future__ import annotations

import os
import re
from typing import Optional

from echo_context import Envelope, OpContext, ok
from echo_core.clock import Clock
from echo_core.errors import EchoError, InvalidArgument, NotFound
from echo_offline import CliContext

SESSIONS = "_agent/sessions"
FILE = "last-load"
REMINDER = "ECHO: this session has no log yet. Before it ends, write one with echo_log_session or `session-end`."

_STAMP = re.compile(r"(\d{4}-\d\d-\d\d-\d{4})-.+\.md")


def record_load(state_dir: str, clock: Clock) -> None:
    """Remember when the memory was loaded. Raises OSError when the state folder cannot be written."""
    folder = os.path.join(state_dir, "cli")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, FILE)
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        file.write(clock.instant() + "\n")
    os.replace(f"{path}.part", path)


def check_session_op(*, ctx: CliContext) -> Envelope:
    """`action: logged` when a session log newer than the load exists, else `reminder` with the line to show.

    Without a load on this machine, a log of today counts. A vault that cannot be reached answers `unknown`:
    nothing could be logged now anyway.
    """
    since = _loaded(ctx.state_dir, ctx.clock) or f"{ctx.clock.day()}-0000"
    try:
        newest = max(_stamps(ctx), default="")
    except EchoError:
        return ok("unknown")
    if newest >= since:
        return ok("logged", newest=newest)
    return ok("reminder", reminder=REMINDER)


def _stamps(ctx: OpContext) -> "list[str]":
    """The time stamps in the names of all session logs."""
    try:
        names = ctx.vault.list_folder(SESSIONS).files
    except NotFound:
        return []
    return [match.group(1) for match in map(_STAMP.fullmatch, names) if match]


def _loaded(state_dir: str, clock: Clock) -> Optional[str]:
    """When the memory was last loaded, as session logs are stamped; None when never or unreadable."""
    try:
        with open(os.path.join(state_dir, "cli", FILE), encoding="utf-8") as file:
            return clock.at(file.read().strip()).file_stamp()
    except (OSError, ValueError, InvalidArgument):
        return None
