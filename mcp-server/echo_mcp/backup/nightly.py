"""The nightly run: back up, restore for trial, check older backups, and say what is wrong (spec 6.4, 6.6).

Whether a night's run is due is read from the table of runs and the owner's clock each time, so a night that was missed
is caught up with, and a clock that jumps neither skips nor repeats more than one.
"""
from __future__ import annotations

import logging
import threading
import time
from datetime import datetime, timedelta
from typing import Any

from echo_core.clock import Clock
from echo_core.errors import BadBackup, EchoError
from echo_core.text import plural

from echo_mcp import logs
from echo_mcp.alerts import Alerts
from echo_mcp.backup.desk import BACKUP, DRILL, FAILED, GOOD, OK, PARTIAL, Desk
from echo_mcp.backup.shelf import Busy
from echo_mcp.backup.standing import Standing
from echo_mcp.backup.watch import Stopped, Watch
from echo_mcp.health import Health
from echo_mcp.jobs import Repeated
from echo_mcp.runs import Run

LOOK_S = 2.0
"""Seconds between two looks at the clock."""
SETTLE_S = 60.0
"""How long the first run waits for the notes to be read; a vault that is down then is a failure like any other."""
ASSESS_S = 60.0
"""Longest time between two readings of the table."""
BUSY_S = 60.0
"""Seconds until the next try after somebody else held the backups."""
RETRY_S = 3600.0
"""Seconds until a night that failed is tried again."""
LIMIT_S = 6 * 3600.0
"""A night's work that takes longer is ended and reported."""
LARGE = 1 << 30
LARGE_DRILL = timedelta(days=7)
"""A backup of more bytes is restored for trial only so often."""
CHECK_BYTES = 1 << 30
"""How much of the older backups is read each night, at least one of them."""


class Nightly:
    """at: (hour, minute) in the owner's zone. health: is told how the backups stand and what the jobs did."""

    def __init__(self, desk: Desk, clock: Clock, at: tuple[int, int], health: Health, alerts: Alerts) -> None:
        self._desk = desk
        self._clock = clock
        self._at = at
        self._health = health
        self._standing = health.backups
        self._alerts = alerts
        self._began = self._assessed = time.monotonic()
        self._seen: tuple[int, ...] | None = None
        self._done: Run | None = None
        self._last_id, self._failed_after = 0, -1
        self._tried = -RETRY_S
        self._stop = threading.Event()
        self._watch = Watch(lambda line: logs.event("backup-progress", line=line), self._stop,
                            gentle=True, limit_s=LIMIT_S)
        self._thread = Repeated("backup", self.look, LOOK_S)

    def start(self) -> None:
        """Begin to look at the clock."""
        self._thread.start()

    def stop(self) -> None:
        """Ask a run that is under way to end; it leaves nothing behind."""
        self._stop.set()
        self._thread.stop()

    def ended(self, patience_s: float) -> None:
        """Wait for the run to end, at most `patience_s` seconds."""
        if self._thread.is_alive():
            self._thread.join(patience_s)

    def look(self) -> None:
        """Do what is due now, and bring facts and alerts up to the table. Raises nothing of the vault or the disk."""
        try:
            if self._has_news():
                self._assess()
            if (self._health.index_ready or time.monotonic() - self._began > SETTLE_S) and self._is_due():
                self._night()
                self._assess()
        except EchoError as failure:
            logs.event("backup-state-failed", logging.WARNING, code=failure.code)
        except Stopped:
            logs.event("backup-stopped")
        except Busy:
            self._tried = time.monotonic() - RETRY_S + BUSY_S
            logs.event("backup-busy")

    def _has_news(self) -> bool:
        """Whether somebody has written to the table or the shelf since the last look, or it is a while ago."""
        seen = self._desk.traces()
        if seen == self._seen and time.monotonic() - self._assessed < ASSESS_S:
            return False
        self._seen, self._assessed = seen, time.monotonic()
        return True

    def _is_due(self) -> bool:
        """Whether this night's run has not been done, and not failed a moment ago."""
        if time.monotonic() - self._tried < RETRY_S:
            return False
        return not self._covers(self._done, self._last_due()) or not self._standing.restorable

    def _night(self) -> None:
        self._tried = time.monotonic()
        self._watch.begin()
        if not self._backed_up():
            return
        self._tried = -RETRY_S
        if self._drill_is_due() and not self._drilled() and self._backed_up():
            # What did not restore counts for nothing, so there is a new one now, which has to show that it does.
            self._tried = time.monotonic()
            self._drilled()
        self._check_others()

    def _backed_up(self) -> bool:
        started = time.monotonic()
        try:
            made = self._desk.back_up(self._watch)
        except EchoError as failure:
            self._failed_after = self._last_id
            logs.event("backup", logging.ERROR, result=FAILED, code=failure.code)
            return False
        last = self._desk.runs.last(BACKUP)
        logs.event("backup", result=last.result if last else OK, files=made.summary.files, bytes=made.size,
                   seconds=round(time.monotonic() - started, 1), removed=len(made.removed))
        if not made.summary.partial:
            self._alerts.beat(f"the backup of {plural(made.summary.files, 'file')} is there and has been verified.")
        return True

    def _drill_is_due(self) -> bool:
        newest = self._desk.newest_good()
        if newest is None:
            return False
        with self._desk.open(newest.name) as archive:
            large = archive.summary.bytes > LARGE
        since = self._clock.now() - LARGE_DRILL if large else self._last_due()
        last = self._desk.runs.last(DRILL, OK)
        fresh = last is not None and last.detail.get("name") == newest.name
        return not self._covers(last, since) or (not fresh and not large)

    def _drilled(self) -> bool:
        """Whether the newest good backup has just been restored for trial, or could not be tried at all."""
        newest = self._desk.newest_good()
        if newest is None:
            return False
        try:
            files = self._desk.drill(newest.name, self._watch)
        except BadBackup:
            logs.event("drill", logging.ERROR, result=FAILED)
            return False
        except EchoError as failure:
            logs.event("drill", logging.WARNING, result=FAILED, code=failure.code)
            return True
        logs.event("drill", result=OK, files=files)
        return True

    def _check_others(self) -> None:
        """Read the backups that have not been checked for longest, so that rot is noticed."""
        checked, bad = self._desk.check_oldest(CHECK_BYTES, self._watch)
        if checked:
            logs.event("backup-check", logging.ERROR if bad else logging.INFO, checked=checked, damaged=bad)

    def _last_due(self) -> datetime:
        """The last moment a night's run should have begun."""
        now = self._clock.now()
        due = now.replace(hour=self._at[0], minute=self._at[1], second=0, fold=0)
        # Two times of one zone are compared by what the clock shows; in the hour that comes twice that is not enough.
        return due if due.timestamp() <= now.timestamp() else due - timedelta(days=1)

    def _covers(self, run: Run | None, since: datetime) -> bool:
        """Whether a run began since then; one that lies ahead of the clock proves nothing."""
        if run is None:
            return False
        return since.timestamp() <= datetime.fromisoformat(run.started).timestamp() <= self._clock.now().timestamp()

    def _assess(self) -> None:
        """Bring the facts in memory up to the table, and alerts up to the facts."""
        desk, standing, now = self._desk, self._standing, self._clock.now()
        runs = desk.runs
        good, drilled, last = runs.last(BACKUP, *GOOD), runs.last(DRILL, OK), runs.last(BACKUP, *GOOD, PARTIAL, FAILED)
        self._done = runs.last(BACKUP, *GOOD, PARTIAL)
        if good is not None:
            standing.backup_age.dated(good.id, good.ended, now)
        if drilled is not None:
            standing.drill_age.dated(drilled.id, drilled.ended, now)
        self._last_id = last.id if last is not None else 0
        standing.last_result = last.result if last is not None else ""
        if self._failed_after == self._last_id:
            standing.last_result = FAILED  # the table could not even take the row
        kept = desk.shelf.kept()
        damaged = desk.damaged()
        standing.kept = sum(1 for one in kept if not one.partial and one.name not in damaged)
        standing.damaged = len(damaged)
        standing.restorable = not kept or kept[-1].name not in damaged
        self._health.runs = runs.latest()
        self._alert(last, runs.last(DRILL, OK, FAILED))

    def _alert(self, last: Run | None, drilled: Run | None) -> None:
        standing = self._standing
        said = _of_backup(last)
        self._say("backup", said and f"{said} {_newest(standing)}", "the backup of the vault works again.")
        self._say("backup-damaged", f"{plural(standing.damaged, 'kept backup')} can no longer be read as saved: the "
                  "disk may be failing. `echo-mcp backup list` names them." if standing.damaged else "",
                  "no kept backup is damaged any more.")
        self._say("backup-drill", _of_drill(drilled), "the newest backup has been restored for trial and compared.")

    def _say(self, name: str, text: str, over: str) -> None:
        if text:
            self._alerts.set(name, text)
        else:
            self._alerts.clear(name, over)


_REASONS = {
    "storage-failed": "the disk of the state folder is full or refuses to be written",
    "vault-unreachable": "the vault could not be reached",
    "vault-auth": "the vault does not let ECHO read it",
    "vault-tls": "the vault's certificate was not accepted",
    "vault-bad-response": "the vault answered with something that it never should",
    "bad-backup": "what was written could not be read back; the disk may be failing",
}
"""Error code -> why a backup failed, in words that name nothing of the vault."""


def _of_backup(last: Run | None) -> str:
    """What is wrong with the last night's backup, "" when nothing is."""
    detail: dict[str, Any] = last.detail if last is not None else {}
    if last is None:
        return ""
    if last.result == FAILED:
        if detail.get("reason") == "overrun":
            return "the backup of the vault took longer than six hours and was ended."
        return f"the backup of the vault failed: {_REASONS.get(str(detail.get('code')), 'an internal error')}."
    if last.result == PARTIAL:
        return (f"the backup misses {plural(detail.get('unreadable', 0), 'file')} that could not be read; "
                "`echo_health` names them.")
    if detail.get("before", 0) > 2 * detail.get("files", 0):
        return (f"the vault has shrunk: its backup holds {plural(detail.get('files', 0), 'file')}, the one before "
                f"{detail['before']:,}.")
    return ""


def _of_drill(last: Run | None) -> str:
    if last is None or last.result == OK:
        return ""
    if last.detail.get("code") == "bad-backup":
        return "the newest backup did not restore to what was saved. Another one is being made; check the disk."
    return "the newest backup could not be restored for trial: there is no room for it in the state folder."


def _newest(standing: Standing) -> str:
    age = standing.backup_age.seconds
    if age < 0:
        return "There is no good backup yet."
    return f"{plural(standing.kept, 'good backup')} kept."
