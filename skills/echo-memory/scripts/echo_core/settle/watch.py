"""Which of our writes are still to be looked at again, and when (spec 6.1)."""
from __future__ import annotations

import hashlib
import random
import threading
import time
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from echo_core.settle.pieces import Piece, pieces_of, stands
from echo_core.settle.settling import Held, seen
from echo_core.settle.unsettled import Unsettled

SETTLE_S = 1.0
"""A write that still stands after so long stays: whoever read the note before it has written by now."""
SLOW = 4.0
"""Where the vault is slow, others are as slow: the wait is this many times the duration of our own slowest write."""
LONGEST_S = 15.0
KEPT_BYTES = 256 * 1024
"""Largest note of which a replacement keeps its own bytes; those of larger ones are in the history."""
MOST_SETTLED = 200
"""Pieces of a note that are remembered for the order, while others are on watch."""
_SOON_S = (0.05, 0.3)


class _Note(NamedTuple):
    """held: oldest first. due: when to look, monotonic seconds."""

    held: List[Held]
    due: float


class Watch:
    """The pieces on watch, by note. One look serves all writes of a burst, and our own next write is a look as well.

    Calls about one note come one at a time, since callers hold `vault.exclusive`. kept: where the pieces outlive the
    process.
    """

    def __init__(self, kept: Unsettled) -> None:
        self._kept = kept
        self._changed = threading.Condition()
        self._notes: Dict[str, _Note] = {}
        self._again: Dict[str, Sequence[Held]] = {}
        self._settled: Dict[str, List[Held]] = {}
        self._writes = 0
        self._slowest_s = 0.0
        self.wrote_at = 0.0
        """When we last wrote, monotonic seconds."""
        self._woken = False

    @property
    def settle_s(self) -> float:
        """How old a write must be to count as settled when it is found."""
        return min(max(SETTLE_S, SLOW * self._slowest_s), LONGEST_S)

    def wrote(
        self, path: str, before: Optional[bytes], after: bytes, call: Tuple[str, str] = ("", ""), took_s: float = 0.0,
    ) -> None:
        """Our write of `after` on `before` was acknowledged. call: tool and op id. took_s: its duration, seconds."""
        now = time.monotonic()
        with self._changed:
            self._slowest_s = max(took_s, 0.95 * self._slowest_s)
            self._writes += 1
            self.wrote_at = now
            number, again = self._writes, self._again.pop(path, ())
            held, due = self._notes.pop(path, _Note([], now + self.settle_s))
        fresh = [one._replace(write=number, at=now, tries=one.tries + 1, later=frozenset()) for one in again]
        fresh = fresh or _fresh(before, after, number, now, call)
        old = _looked(held, before or b"", after, number, now - self.settle_s)
        left = {id(one.piece) for one in old}
        gone = [one for one in held if id(one.piece) not in left]
        fresh = self._kept.swap(path, fresh, [*again, *gone])
        self._remember(path, gone)
        if any(number not in one.later for one in old):
            wait_s = min(due - now, random.uniform(*_SOON_S))  # noqa: S311
        else:
            # Two servers that put back at the same moment would meet again and again.
            wait_s = self.settle_s * random.uniform(1, 1 + max((one.tries for one in fresh), default=0))  # noqa: S311
        self.hold(path, [*old, *fresh], wait_s)

    def puts_back(self, path: str, again: Sequence[Held]) -> None:
        """The next write of the note puts these pieces back, and has none of its own."""
        with self._changed:
            if again:
                self._again[path] = again
            else:
                self._again.pop(path, None)

    def take(self, path: str) -> List[Held]:
        """What is on watch of a note, oldest first; it is on watch no more until it is held again."""
        with self._changed:
            return self._notes.pop(path, _Note([], 0.0)).held

    def release(self, path: str, done: Sequence[Held]) -> None:
        """These pieces need no watch any more, not even by another process."""
        self._kept.swap(path, (), done)
        self._remember(path, done)
        with self._changed:
            if path not in self._notes:
                self._settled.pop(path, None)

    def settled(self, path: str) -> List[Held]:
        """What is on watch no more, while something else of the note is: its place tells the order of our writes."""
        with self._changed:
            return list(self._settled.get(path, ()))

    def _remember(self, path: str, done: Sequence[Held]) -> None:
        with self._changed:
            if done:
                self._settled[path] = [*self._settled.get(path, ()), *done][-MOST_SETTLED:]

    def hold(self, path: str, held: Sequence[Held], wait_s: float) -> None:
        """Put pieces on watch, before those that are, and look at the note in `wait_s` seconds or sooner."""
        if not held:
            return
        due = time.monotonic() + wait_s
        with self._changed:
            known = self._notes.get(path)
            self._notes[path] = _Note([*held, *known.held], min(due, known.due)) if known else _Note([*held], due)
            self._changed.notify_all()

    def postpone(self, path: str, wait_s: float) -> None:
        """Look at the note in `wait_s` seconds, not sooner."""
        with self._changed:
            note = self._notes.get(path)
            if note is not None:
                self._notes[path] = note._replace(due=time.monotonic() + wait_s)

    def resume(self, older_than_s: float = 0.0) -> List[str]:
        """Put on watch what earlier processes have left there, for a look at once. Raises NoUndo.

        older_than_s: the paths that come back are those of a piece of that age. The younger ones count as well: what
        our next write takes out of a note must not look like somebody else's doing later.
        """
        now = time.monotonic()
        found = self._kept.load()
        with self._changed:
            self._writes = max([self._writes, *(held.write for _, held in found)])
        for path, held in found:
            self.hold(path, [held], 0.0)
        return sorted({path for path, held in found if now - held.at >= older_than_s})

    def next(self, wait_s: float) -> str:
        """The note to look at now, waited for; "" when there is none within `wait_s` seconds, or after `wake`."""
        end = time.monotonic() + wait_s
        with self._changed:
            while not self._woken:
                path, note = min(self._notes.items(), key=lambda item: item[1].due, default=("", _Note([], end)))
                left = min(note.due, end) - time.monotonic()
                if left <= 0:
                    return path if note.due <= end else ""
                self._changed.wait(left)
            self._woken = False
            return ""

    def wake(self) -> None:
        """Let whoever waits in `next` go on."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def paths(self) -> List[str]:
        """The notes with something on watch."""
        with self._changed:
            return sorted(self._notes)


def _fresh(before: Optional[bytes], after: bytes, number: int, now: float, call: Tuple[str, str]) -> List[Held]:
    pieces = pieces_of(before, after)
    if not pieces:
        return []
    sha = hashlib.sha256(after).hexdigest()
    own = after if len(after) <= KEPT_BYTES and any(_may_conflict(piece) for piece in pieces) else None
    return [Held(piece, number, now, first=number, tool=call[0], op_id=call[1], sha=sha, own=own) for piece in pieces]


def _may_conflict(piece: Piece) -> bool:
    return piece.created or not piece.only_adds


def _looked(held: Sequence[Held], before: bytes, after: bytes, number: int, settled_at: float) -> List[Held]:
    """What is left to watch after a write of ours: not what stood there long enough, nor what it took out itself.

    settled_at: what was written before it counts as settled when it stood in `before`.
    """
    found = seen(held, before, number)
    return [one for one in found if number not in one.later or (one.at > settled_at and stands(one.piece, after))]
