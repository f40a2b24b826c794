"""Replaying the outbox: writes that waited or were cut off, in order and with the time each was made at (spec 6.2).

A write that the vault as a whole cannot take yet stops the replay. One that fails alone is tried again a few times,
later and later, while others pass it; then it is parked. One that meets a gate or a refusal is parked at once.
"""
from __future__ import annotations

import random
import time
from typing import Any, Dict, List, NamedTuple, Set

import echo_tools
from echo_arguments import validate
from echo_context import Envelope, OpContext, ok
from echo_core.errors import EchoError, InvalidArgument, NotFound, VaultError
from echo_order import notes_of
from echo_queue import Outbox
from echo_queue_rows import LATE, WAITING, Intent, Running, call_of
from echo_replay_lines import Part, parts_of, write_together
from echo_resume import resumed_run

INLINE_S = 5.0
"""How long a call that comes in replays before it goes on by itself."""
RETRY_LATER = frozenset({"vault-unreachable", "vault-auth", "vault-tls", "vault-bad-response", "lock-held"})
"""Answers after which a write keeps waiting instead of being parked."""
MOST_TRIES = 10
"""How often a write is tried that fails although the vault answers."""
LONGEST_PAUSE_S = 20.0
LOOKED_AT = 500
"""A new write is compared with so many waiting ones; behind more of them it waits."""
AHEAD = 8000
"""Waiting writes that are looked at together."""
INDEXED_TOGETHER = 1000
"""After so many the search index takes in what was written: until then it holds every word of it in memory."""


class Flushed(NamedTuple):
    """What a replay did, as op ids; `left` is the number that still waits."""

    arrived: List[str]
    parked: List[str]
    left: int


def must_wait(op: Running, ctx: OpContext) -> bool:
    """Whether a new write has to wait behind earlier ones.

    All wait while the vault is away. While it answers, writes of other notes pass those that wait, so that clients who
    go on writing do not keep the queue from ending.
    """
    assert ctx.outbox is not None, "only a context with an outbox comes here"
    if not ctx.outbox.owes():
        return False
    page = ctx.outbox.page(0, most=LOOKED_AT)
    if len(page) == LOOKED_AT or ctx.reach.away() is not None:
        return bool(page)
    own = notes_of(op.tool, op.arguments, ctx)
    return any(not own.isdisjoint(notes_of(intent.tool, intent.arguments, ctx, intent.first)) for intent in page)


def flush(ctx: OpContext, budget_s: float = float("inf")) -> Flushed:
    """Replay what waits until all is done, the vault is away, or `budget_s` seconds have passed.

    While another thread or process replays, nothing is done. Raises sqlite3.Error and OSError for an outbox that
    cannot be used.
    """
    assert ctx.outbox is not None, "only a context with an outbox comes here"
    outbox = ctx.outbox
    outbox.look_again()
    if not outbox.owes():
        return Flushed([], [], 0)
    if not outbox.replaying.take():
        return Flushed([], [], outbox.depth().waiting)
    try:
        run = _Run(outbox, ctx, time.monotonic() + budget_s)
        run.all()
    finally:
        outbox.replaying.release()
    return Flushed(run.arrived, run.parked, outbox.depth().waiting)


class _Run:
    """One replay from the oldest write on."""

    def __init__(self, outbox: Outbox, ctx: OpContext, until: float) -> None:
        self._outbox = outbox
        self._ctx = ctx
        self._until = until
        self._held: Set[str] = set()
        self._settled = 0
        self.arrived: List[str] = []
        self.parked: List[str] = []

    def all(self) -> None:
        """Replay what waits, then what is late; page by page, so that memory does not grow with what waits."""
        for state in (WAITING, LATE):
            page = self._outbox.page(0, state, 1)  # alone, since it may tell that the vault is still away
            while page:
                for part in parts_of(page, time.time()):
                    if time.monotonic() > self._until or not self._part(part):
                        return
                    if len(self.arrived) - self._settled >= INDEXED_TOGETHER:
                        self._settled = len(self.arrived)
                        self._ctx.feed.settle()
                page = self._outbox.page(page[-1].number, state, AHEAD)

    def _part(self, part: Part) -> bool:
        """Replay one write, or several lines of one note together; False as `_one`."""
        if isinstance(part, Intent):
            return self._one(part)
        if self._is_held(part[0]):
            return all(self._one(intent) for intent in part)
        done = write_together(part, self._outbox, self._ctx)
        self.arrived += done
        # What is left is read again: the rows may say now that a write was begun.
        rest = {intent.op_id for intent in part} - set(done)
        return all(self._one(intent) for intent in self._outbox.those(list(rest)))

    def _one(self, intent: Intent) -> bool:
        """Replay one write; False when the vault as a whole is away and the others would fail as well."""
        now = time.time()
        if is_later(intent, now) or self._is_held(intent):
            self._hold(intent)
            return True
        if not self._outbox.claim(intent.op_id):
            return True
        op = running(intent)
        with self._outbox.carrying_out(op):
            envelope = self._carried_out(intent, op)
            verdict = str(envelope.get("code") or envelope.get("action") or "")
            if envelope.get("ok") and op.late:
                self._outbox.owe(op.op_id)
            elif envelope.get("ok") and verdict != "partial" and not op.torn:
                self._outbox.finish(op, {**envelope, "op_id": op.op_id})
                self.arrived.append(op.op_id)
            elif verdict not in RETRY_LATER and not (verdict == NotFound.code and self._may_be_hidden(intent)):
                self._park(op, envelope)
            elif verdict == "lock-held" or not _answers(self._ctx):
                self._outbox.wait(op.op_id, intent.tries)
                return False
            elif intent.tries + 1 >= MOST_TRIES:
                self._park(op, envelope)
            else:
                pause = min(2.0 ** (intent.tries + 1), LONGEST_PAUSE_S) * random.uniform(0.75, 1.0)  # noqa: S311
                self._outbox.wait(op.op_id, intent.tries + 1, now + pause)
                self._hold(intent)
        return True

    def _is_held(self, intent: Intent) -> bool:
        """Whether an earlier write of the same notes has still to come."""
        return bool(self._held) and not self._held.isdisjoint(
            notes_of(intent.tool, intent.arguments, self._ctx, intent.first))

    def _hold(self, intent: Intent) -> None:
        """Later writes of the same notes have to come after this one, whose time has not come."""
        self._held |= notes_of(intent.tool, intent.arguments, self._ctx, intent.first)

    def _carried_out(self, intent: Intent, op: Running) -> Envelope:
        tool = echo_tools.BY_NAME.get(intent.tool)
        if tool is None:
            return InvalidArgument("this release has no such tool", hint="Drop the write, or update ECHO.").envelope()
        try:
            values, warnings = validate(tool.params, intent.arguments)
        except EchoError as refused:
            return refused.envelope()
        then = self._ctx.varied(
            clock=self._ctx.clock.at(intent.instant), running=op, queue=None, flush=None,
            resumed=resumed_run(intent, self._ctx.history),
        )
        return echo_tools.carry_out(tool, values, warnings, then, op.op_id)

    def _may_be_hidden(self, intent: Intent) -> bool:
        """Whether a note that the write names may be there, though a loading Obsidian does not show it yet."""
        paths = [str(intent.arguments.get(key, "")) for key in ("path", "a", "b", "merge_into")]
        try:
            return any(path.endswith(".md") and not self._ctx.vault.is_gone(path) for path in paths)
        except VaultError:
            return True
        except EchoError:
            return False

    def _park(self, op: Running, envelope: Envelope) -> None:
        self._outbox.park(op.op_id, reason_of(envelope))
        self.parked.append(op.op_id)


def is_later(intent: Intent, now: float) -> bool:
    """Whether a write that has failed alone rests until its next try. now: seconds since the epoch."""
    return now < intent.again_at < now + 2 * LONGEST_PAUSE_S  # later than that is a clock that jumped


def running(intent: Intent) -> Running:
    """The write of a row, to be carried out by this thread."""
    return Running(intent.op_id, intent.tool, intent.arguments, intent.instant, call_of(intent.tool, intent.arguments),
                   stored=True, first=intent.first, plan=dict(intent.plan))


def reason_of(envelope: Envelope) -> str:
    """Why an answer means that somebody has to decide, in one line."""
    verdict = str(envelope.get("code") or envelope.get("action") or "")
    why = envelope.get("error") or " ".join(envelope.get("warnings", [])) or envelope.get("hint", "")
    return f"{verdict}: {why}"


def _answers(ctx: OpContext) -> bool:
    try:
        ctx.vault.check()
        ctx.fresh()
    except EchoError:
        return False
    return True


def queue_op(do: str = "list", id: str = "", *, ctx: OpContext) -> Envelope:
    """`writes: [{op_id, tool, what, instant, state, reason?}]`, those that need a decision first; `conflicts: [{id,
    path, version, ts}]`.

    do: "list"; "retry" replays the parked write with op id `id` again; "drop" forgets the write, or conflict, `id`.
    Raises NotFound, and InvalidArgument for an id too many or too few.
    """
    assert ctx.outbox is not None, "only a context with an outbox comes here"
    if bool(id) != (do != "list"):
        raise InvalidArgument(f"{do} takes {'an id' if not id else 'no id'}", field="id",
                              hint="`queue list` shows the ids; `queue retry ID`, `queue drop ID`.")
    if do == "retry":
        ctx.outbox.retry(id)
    if do == "drop" and not ctx.history.dismiss(id):
        ctx.outbox.drop(id)
    rows = [_row(write) for write in ctx.outbox.rows()]
    counts = ctx.outbox.counts()
    conflicts = [found._asdict() for found in ctx.history.conflicts()]
    return ok({"retry": "retried", "drop": "dropped"}.get(do, ""), writes=rows, depth=counts["depth"],
              parked=counts["parked"], conflicts=conflicts or None)


def _row(write: Intent) -> Dict[str, Any]:
    row = {"op_id": write.op_id, "tool": write.tool, "what": summary_of(write), "instant": write.instant,
           "state": write.state}
    if write.reason:
        row["reason"] = write.reason
    return row


def summary_of(write: Intent) -> str:
    """A few words that tell which write this is: its title, path or names."""
    named = (str(write.arguments[key]) for key in ("title", "path", "scope", "slug", "a") if write.arguments.get(key))
    return next(named, "")[:80]


def flush_op(*, ctx: OpContext) -> Envelope:
    """Replay the waiting writes now: `arrived` and `parked` (op ids), `left`. Raises the vault's errors."""
    ctx.vault.check()
    done = flush(ctx)
    return ok("flushed" if done.arrived else "unchanged", arrived=done.arrived, parked=done.parked, left=done.left)
