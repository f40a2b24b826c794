"""Whether this session has been logged: what the Stop hook asks (spec 3.3)."""
from __future__ import annotations

import os
from typing import Optional

from echo_context import Envelope, OpContext, ok
from echo_core.clock import Clock
from echo_core.errors import EchoError, InvalidArgument
from echo_session_logs import session_logs

FILE = "last-load"
REMINDER = "ECHO: this session has no log yet. Before it ends, write one with echo_log_session or `session-end`."


def record_load(state_dir: str, clock: Clock) -> None:
    """Remember when the memory was loaded. Raises OSError when the state folder cannot be written."""
    folder = os.path.join(state_dir, "cli")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, FILE)
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        file.write(clock.instant() + "\n")
    os.replace(f"{path}.part", path)


def check_session_op(*, ctx: OpContext) -> Envelope:
    """`action: logged` when a session log newer than the load exists, else `reminder` with the line to show.

    Without a load on this machine, a log of today counts. A vault that cannot be reached answers `unknown`:
    nothing could be logged now anyway.
    """
    since = _loaded(ctx.state_dir, ctx.clock) or f"{ctx.clock.day()}-0000"
    try:
        logs = session_logs(ctx)
    except EchoError:
        return ok("unknown")
    newest = logs[-1].stamp if logs else ""
    if newest >= since:
        return ok("logged", newest=newest)
    return ok("reminder", reminder=REMINDER)


def _loaded(state_dir: str, clock: Clock) -> Optional[str]:
    """When the memory was last loaded, as session logs are stamped; None when never or unreadable."""
    try:
        with open(os.path.join(state_dir, "cli", FILE), encoding="utf-8") as file:
            return clock.at(file.read().strip()).file_stamp()
    except (OSError, ValueError, InvalidArgument):
        return None
