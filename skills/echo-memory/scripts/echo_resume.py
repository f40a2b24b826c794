"""What an interrupted run of an op left behind, so that the next run does the rest and nothing twice (spec 6.2).

History notes each write of an op, with the bytes before and after, before it is made. An edit of the next run finds
itself there: the same surgery on the bytes before gives the bytes after. Whether that write arrived is told by what
the note says now.
"""
from __future__ import annotations

from functools import cached_property
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from echo_core.errors import Conflict, EchoError, NotFound
from echo_core.history import HistoryStore
from echo_core.vault.base import Edited, version_of
from echo_queue_rows import First, Intent, digest

OnBytes = Callable[[Optional[bytes]], bytes]


class Step(NamedTuple):
    """One write of the earlier run. before, after: the note's bytes, None for no note.

    found_later: SHA-256 of what the path's next write found, None when there was none.
    """

    path: str
    before: Optional[bytes]
    after: Optional[bytes]
    found_later: Optional[str]


class Resumed:
    """The earlier run of one op. plan: what it noted by `OpContext.remember`."""

    def __init__(self, intent: Intent, history: HistoryStore) -> None:
        self.plan: Dict[str, Any] = intent.plan
        self._op_id = intent.op_id
        self._first: Optional[First] = intent.first
        self._history = history

    def wrote(self, path: str) -> bool:
        """Whether the earlier run wrote the note, or was about to."""
        return bool(self.steps(path))

    def steps(self, path: str) -> List[Step]:
        """The earlier run's writes of one note, in order; the last one may not have been made."""
        return [step for step in self._steps if step.path == path]

    def created(self) -> List[str]:
        """The notes it created, or was about to, in order; the first is known even when history lost it."""
        paths = [step.path for step in self._steps if step.before is None and step.after is not None]
        if self._first is not None and not self._first.before:
            paths.insert(0, self._first.path)
        return list(dict.fromkeys(paths))

    def edited(self, path: str, on_bytes: OnBytes, current: Optional[bytes], repeatable: bool) -> Optional[Edited]:
        """The edit as the earlier run made it; None when it has to be made now.

        on_bytes: the edit. current: the note now. repeatable: whether the edit may be made on whatever the note says.
        Raises Conflict when somebody changed the note meanwhile, and making the edit now could undo that.
        """
        step = next((step for step in reversed(self.steps(path)) if is_made_by(on_bytes, step)), None)
        if step is None:
            return None
        arrived = has_arrived(step, current)
        if arrived is None and current is not None and not repeatable:
            raise Conflict(
                f"{path} was changed by somebody else while this write was interrupted",
                hint="Look at the note, then retry or drop the write.", path=path, version=version_of(current),
            )
        if not arrived:
            return None
        return Edited(step.before, step.after or b"" if current is None else current)

    @cached_property
    def _steps(self) -> List[Step]:
        steps = []
        for wrote in self._history.writes_of(self._op_id):
            try:
                before = self._history.content(wrote.path, wrote.version_id)
                after = self._history.outcome(wrote.path, wrote.version_id)
            except NotFound:  # dropped for want of room: then only the note itself can tell
                continue
            steps.append(Step(wrote.path, before, after, wrote.found_later))
        return steps


def resumed_run(intent: Intent, history: HistoryStore) -> Optional[Resumed]:
    """What an earlier run of the intent left, None when it did not touch the vault.

    Asks history even when the outbox knows of no beginning: an outbox that came back from a copy is older than it.
    """
    return Resumed(intent, history) if intent.first or history.writes_of(intent.op_id) else None


def has_arrived(step: Step, current: Optional[bytes]) -> Optional[bool]:
    """Whether a write that was noted was also made; None when others changed the note so that nobody can tell."""
    if current == step.after:
        return True
    if current == step.before:
        return False
    for found, verdict in ((step.after, True), (step.before, False)):
        if step.found_later is not None and step.found_later == digest(found):
            return verdict
    if current is None or step.after is None:
        return None
    before, after = step.before or b"", step.after
    start, stop = _common(before, after)
    if start + stop == len(before):
        added = after[start:len(after) - stop]
        return current.count(added) >= after.count(added)
    if start + stop == len(after):
        removed = before[start:len(before) - stop]
        return current.count(removed) < before.count(removed)
    return None


def is_made_by(on_bytes: OnBytes, step: Step) -> bool:
    """Whether the step is the write of this edit."""
    try:
        return step.after is not None and on_bytes(step.before) == step.after
    except EchoError:
        return False


def _common(before: bytes, after: bytes) -> "tuple[int, int]":
    """Lengths of what both begin with and of what both end with, not overlapping."""
    most = min(len(before), len(after))
    start = _equal(before, after, most)
    return start, _equal(before[start:][::-1], after[start:][::-1], most - start)


def _equal(one: bytes, other: bytes, most: int) -> int:
    """How many of the first `most` bytes are the same."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
