"""What the nightly job and the commands do with backups, each run noted in the table of runs (spec 6.4, 6.6)."""
from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from echo_core.clock import Clock
from echo_core.errors import BadBackup, EchoError, NotFound, StorageFailed

from echo_mcp.backup import space
from echo_mcp.backup.archive import Archive, open_archive
from echo_mcp.backup.drill import drill
from echo_mcp.backup.making import Made, make
from echo_mcp.backup.shelf import Kept, Shelf
from echo_mcp.backup.source import Source
from echo_mcp.backup.watch import Stopped, Watch
from echo_mcp.runs import Runs

BACKUP, DRILL, VERIFY = "backup", "drill", "backup-check"
"""Names of the jobs."""
OK, UNCHANGED, PARTIAL, FAILED, STOPPED = "ok", "unchanged", "partial", "failed", "stopped"
GOOD = (OK, UNCHANGED)
MOST_SHOWN = 5
"""Most unreadable files that a run's row names."""
_CHECKED = "backup-checked:"


@dataclass(frozen=True)
class Verdict:
    """What the last check of a backup said. at: when, as an instant."""

    ok: bool
    at: str


@dataclass
class _Run:
    """What is noted about a run that is under way."""

    result: str = OK
    detail: dict[str, Any] = field(default_factory=dict)


class Desk:
    """The backups of one vault. source: opens the vault as something to read; keep: how many good ones stay."""

    def __init__(self, shelf: Shelf, source: Callable[[], Source], clock: Clock, keep: int, runs: Runs) -> None:
        self.shelf = shelf
        self.runs = runs
        self._source = source
        self._clock = clock
        self._keep = keep

    def back_up(self, watch: Watch) -> Made:
        """Make a backup, or find that the newest one still holds the vault. Raises Busy, and what `make` raises."""
        with self._run(BACKUP) as run:
            made = make(self._source, self.shelf, self._clock, self._keep, self.damaged(), watch)
            run.result = PARTIAL if made.summary.partial else UNCHANGED if made.unchanged else OK
            run.detail = {"name": made.name, "files": made.summary.files, "bytes": made.summary.bytes,
                          "size": made.size, "before": made.before, "unreadable": made.summary.unreadable_total,
                          "named": [row["path"] for row in made.summary.unreadable[:MOST_SHOWN]]}
            if run.result == OK:
                self._note(made.name, True)
            self._forget_gone()
        return made

    def drill(self, name: str, watch: Watch) -> int:
        """Restore a backup for trial; the number of files compared. Raises Busy, and what `drill.drill` raises."""
        with self._run(DRILL) as run:
            run.detail = {"name": name}
            try:
                files = drill(self.shelf, name, watch)
            except BadBackup:
                self._note(name, False)
                raise
            self._note(name, True)
            run.detail["files"] = files
        return files

    def verify(self, name: str, watch: Watch) -> None:
        """Read a whole backup and compare it with its manifest. Raises BadBackup, NotFound, and Stopped."""
        try:
            with self.open(name) as archive:
                archive.check(watch)
        except BadBackup:
            self._note(name, False)
            raise
        self._note(name, True)

    def check_oldest(self, most_bytes: int, watch: Watch) -> tuple[int, int]:
        """Verify the backups that were not checked for longest, about `most_bytes` of them but at least one.

        Returns how many were checked and how many of those are damaged. Raises Busy, StorageFailed, and Stopped.
        """
        verdicts = self.verdicts()
        never = Verdict(True, "")
        waiting = sorted(self.shelf.kept()[:-1], key=lambda kept: verdicts.get(kept.name, never).at)
        if not waiting:
            return 0, 0
        with self._run(VERIFY) as run:
            checked = bad = size = 0
            for kept in waiting:
                if checked and size > most_bytes:
                    break
                size += os.path.getsize(self.shelf.path(kept.name))
                checked += 1
                try:
                    self.verify(kept.name, watch)
                except BadBackup:
                    bad += 1
            run.result, run.detail = FAILED if bad else OK, {"checked": checked, "damaged": bad}
        return checked, bad

    def open(self, name: str) -> Archive:
        """A backup of the shelf. Raises NotFound, BadBackup."""
        with space.writing():
            try:
                return open_archive(self.shelf.path(name))
            except FileNotFoundError:
                names = [kept.name for kept in self.shelf.kept()]
                raise NotFound("there is no such backup", hint="`echo-mcp backup list` shows them.",
                               candidates=names[-5:]) from None

    def newest_good(self) -> Kept | None:
        """The backup to restore: the newest that misses nothing and is not known to be damaged."""
        damaged = self.damaged()
        good = [kept for kept in self.shelf.kept() if not kept.partial and kept.name not in damaged]
        return good[-1] if good else None

    def verdicts(self) -> dict[str, Verdict]:
        """The last check of each backup by its name."""
        return {name: Verdict(**said) for name, said in self.runs.facts(_CHECKED).items()}

    def damaged(self) -> set[str]:
        """Names of the backups whose last check failed."""
        kept = {one.name for one in self.shelf.kept()}
        return {name for name, verdict in self.verdicts().items() if not verdict.ok and name in kept}

    def traces(self) -> tuple[int, ...]:
        """Changes whenever anybody has noted a run or touched the shelf."""
        return self.runs.trace(), self.shelf.trace()

    def listing(self) -> list[dict[str, Any]]:
        """Every backup, newest first: `{"name", "state", "size", "made", "files", "checked"}`."""
        verdicts = self.verdicts()
        return [self._row(kept, verdicts.get(kept.name)) for kept in reversed(self.shelf.kept())]

    def _row(self, kept: Kept, verdict: Verdict | None) -> dict[str, Any]:
        row: dict[str, Any] = {"name": kept.name, "state": "partial" if kept.partial else "good"}
        try:
            with self.open(kept.name) as archive:
                row.update(size=archive.size, made=archive.summary.made, files=archive.summary.files)
        except (BadBackup, NotFound):
            row["state"] = "damaged"
        if verdict is not None:
            row["state"] = row["state"] if verdict.ok else "damaged"
            row["checked"] = verdict.at
        return row

    @contextlib.contextmanager
    def _run(self, job: str) -> Iterator[_Run]:
        """Hold the shelf and note the run with its result, whatever that is."""
        with self.shelf.locked():
            self.shelf.clean()
            number, run = self.runs.begin(job), _Run()
            try:
                yield run
            except BaseException as failure:
                with contextlib.suppress(StorageFailed):  # what failed first is what has to be told
                    self.runs.end(number, *_outcome(failure, run.detail))
                raise
            self.runs.end(number, run.result, run.detail)

    def _note(self, name: str, ok: bool) -> None:
        self.runs.keep(_CHECKED + name, {"ok": ok, "at": self._clock.instant()})

    def _forget_gone(self) -> None:
        """Drop the verdicts about backups that are no longer there."""
        for name in self.verdicts():
            if not os.path.lexists(self.shelf.path(name)):
                self.runs.keep(_CHECKED + name, None)


def _outcome(failure: BaseException, detail: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """(result, detail) of a run that ended in `failure`."""
    if isinstance(failure, EchoError):
        reason = failure.data.get("reason", "")
        return FAILED, {**detail, "code": failure.code, "reason": reason, "error": failure.message}
    if isinstance(failure, (Stopped, KeyboardInterrupt)):
        return STOPPED, detail
    return FAILED, {**detail, "code": "internal", "error": type(failure).__name__}
