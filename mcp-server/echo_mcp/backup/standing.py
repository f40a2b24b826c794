"""How the backups stand, as facts in memory that `/health`, `/metrics` and `echo_health` read at any time."""
from __future__ import annotations

import time
from datetime import datetime
from typing import Any

FRESH_S = 26 * 3600
"""A night and two hours; a backup that is older is reported."""
NEVER = -1


class Age:
    """Seconds since something that a row of the table dates; counts on steadily when the clock jumps."""

    def __init__(self) -> None:
        self._id = 0
        self._since: float | None = None

    def dated(self, row_id: int, at: str, now: datetime) -> None:
        """The newest row says so. A date that lies ahead says nothing about the age: it counts from now."""
        if row_id != self._id:
            age_s = (now - datetime.fromisoformat(at)).total_seconds()
            self._id, self._since = row_id, time.monotonic() - max(0.0, age_s)

    @property
    def seconds(self) -> int:
        """Whole seconds, NEVER before the first time."""
        return NEVER if self._since is None else int(time.monotonic() - self._since)


class Standing:
    """What is known now. Written by one thread, read by all."""

    def __init__(self) -> None:
        self.backup_age = Age()
        self.drill_age = Age()
        self.last_result = ""
        self.restorable = True
        """False once the newest backup did not restore to what was saved."""
        self.damaged = 0
        self.kept = 0

    @property
    def ok(self) -> bool:
        """Whether the last night's backup is whole, not too old, and none of those kept is known to be damaged."""
        fresh = 0 <= self.backup_age.seconds <= FRESH_S
        return fresh and self.restorable and not self.damaged and self.last_result in ("ok", "unchanged")

    def facts(self) -> dict[str, Any]:
        """The fields of `/health`."""
        return {"last_backup_age_s": self.backup_age.seconds, "last_backup_ok": self.ok,
                "last_drill_age_s": self.drill_age.seconds}
