"""How a call runs: earlier writes first, then the call; what the vault cannot take now is kept and follows (spec 6.2).

A write is in the outbox from before its first change of the vault until its last. One that refuses, meets a gate or
changes nothing leaves nothing there. One that breaks off half-way stays there, and its rest is replayed.
"""
from __future__ import annotations

import sqlite3
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

import echo_known
import echo_tools
from echo_arguments import given, validate
from echo_config import CliSettings, context_of
from echo_context import Envelope, OpContext, ok
from echo_core.errors import EchoError, InternalError, NotKept, VaultError, VaultUnreachable
from echo_core.guards import refuse_secrets
from echo_core.vault.os_errors import DISK_FULL
from echo_queue import Outbox
from echo_queue_rows import Running, call_of
from echo_queue_vault import OutboxVault
from echo_repeats import FOLLOWS, first_answer, key_of
from echo_replay import INLINE_S, flush, must_wait, reason_of
from echo_tools import Tool


def _applies(values: Mapping[str, Any]) -> bool:
    return bool(values.get("apply"))


def _confirms(values: Mapping[str, Any]) -> bool:
    return bool(values.get("confirm"))


def _writes(values: Mapping[str, Any]) -> bool:
    return not values.get("dry_run")


WRITES: Dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "echo_capture": _writes,
    "echo_append_note": _writes,
    "echo_patch_note": _writes,
    "echo_link": _writes,
    "echo_set_scope": _writes,
    "echo_move_note": _confirms,
    "echo_restore_note": _confirms,
    "echo_log_session": _applies,
    "echo_reflect": _applies,
    "echo_triage_inbox": _applies,
}
"""Tools that write, and when a call of them is a write."""

AT_ONCE = frozenset({"echo_move_note", "echo_restore_note"})
"""Writes that are decided on what the vault holds now, so they do not wait; once begun they are carried to the end."""
QUEUE_TOOLS = frozenset({"echo_load", "queue", "flush"})
"""Tools that deal with the outbox themselves."""
REFUSED = "The vault refuses this write now; it is tried again, and parked for the operator if that does not help."
TURN_S = 1.0
"""How long a write waits for earlier ones of its notes, while the vault answers, before it is kept behind them."""
_STEP_S = 0.02
OWED = "A part of it is in the vault. The rest is tried again; tell the operator what stands in its way."
SLOW = "The vault is slow. The write is kept and under way: do not repeat it. echo_health shows it if it fails."
_OUTAGES = frozenset(kind.code for kind in VaultError.__subclasses__())


def with_outbox(ctx: OpContext, outbox: Outbox, state_dir: str) -> OpContext:
    """`ctx` with an outbox: counts for `load` and `doctor`, and a flush that replays it.

    The vault of `ctx` has to be an `OutboxVault` on the same outbox.
    """
    ctx.outbox, ctx.queue, ctx.state_dir = outbox, outbox.counts, state_dir
    ctx.flush = lambda: len(flush(ctx, INLINE_S).arrived)
    return ctx


def open_cli(settings: CliSettings) -> OpContext:
    """The context of a CLI call, with the outbox of this machine."""
    outbox = Outbox(settings.state_dir, settings.root)
    ctx = context_of(settings, wrap=lambda vault: OutboxVault(vault, outbox))
    return with_outbox(ctx, outbox, settings.state_dir)


def run(tool: Tool, arguments: Mapping[str, Any], ctx: OpContext) -> Envelope:
    """Run one call: flush what waits, then answer; keep the call when it is a write and the vault is away.

    While earlier writes still wait, a new one waits behind them, see `must_wait`.
    """
    outbox = ctx.outbox
    if outbox is None or tool.name in QUEUE_TOOLS or (tool.reads and ctx.replays_behind):
        return echo_known.run(tool, arguments, ctx)
    known = len(outbox.damaged())
    try:
        trouble = ""
        if outbox.owes():
            _flush_quietly(ctx)
    except (EchoError, OSError, sqlite3.Error) as failure:
        trouble = f"writes that waited cannot be read: {failure}"
        ctx.notify(trouble)
    if tool.name in WRITES:
        envelope = _write(tool, arguments, outbox, ctx)
    else:
        envelope = echo_known.run(tool, arguments, ctx)
    trouble = trouble or _set_aside(outbox.damaged()[known:])
    if trouble:
        envelope["warnings"] = [*envelope.get("warnings", []), trouble]
    return envelope


def promised(tool: Tool, arguments: Mapping[str, Any], ctx: OpContext) -> Optional[Envelope]:
    """The answer to a write that its caller cannot wait for any longer; None when the outbox does not hold it yet."""
    if ctx.outbox is None or tool.name not in WRITES:
        return None
    try:
        values, warnings = validate(tool.params, arguments)
        name = key_of(ctx.client_key) or call_of(tool.name, given(tool.params, values))
    except EchoError:
        return None
    op_id = ctx.outbox.promise(name)
    return ok(queued=True, op_id=op_id, warnings=warnings, hint=SLOW) if op_id else None


def _set_aside(names: List[str]) -> str:
    return f"the outbox could not be read; it was kept as {', '.join(names)} and may hold writes" if names else ""


def _flush_quietly(ctx: OpContext) -> None:
    """Replay before another call; what goes wrong is said, and does not stop that call."""
    try:
        done = flush(ctx, INLINE_S)
    except (EchoError, OSError, sqlite3.Error) as failure:
        ctx.notify(f"waiting writes could not be replayed: {failure}")
        return
    if done.arrived or done.parked:
        ctx.notify(f"waiting writes: {len(done.arrived)} arrived, {len(done.parked)} parked, {done.left} left")


def _write(tool: Tool, arguments: Mapping[str, Any], outbox: Outbox, ctx: OpContext) -> Envelope:
    """A call of a tool that writes."""
    try:
        values, warnings = validate(tool.params, arguments)
    except EchoError as refused:
        return refused.envelope()
    op_id = echo_tools.new_op_id()
    if not WRITES[tool.name](values):
        return echo_tools.carry_out(tool, values, warnings, ctx, op_id)
    checked = given(tool.params, values)
    op = Running(op_id, tool.name, checked, ctx.clock.instant(), call_of(tool.name, checked))
    try:
        op.key = key_of(ctx.client_key)
        with outbox.one_at_a_time(op.key or op.call):
            return _asked_before(op, outbox, ctx) or _begun(op, tool, values, warnings, outbox, ctx)
    except EchoError as refused:
        return refused.envelope()


def _must_wait(op: Running, ctx: OpContext) -> bool:
    """Whether earlier writes of the same notes still wait, also after a moment in which somebody else replays them."""
    end = time.monotonic() + TURN_S
    try:
        while must_wait(op, ctx):
            if not ctx.replays_behind or ctx.reach.away() is not None or time.monotonic() > end:
                return True
            time.sleep(_STEP_S)
    except (OSError, sqlite3.Error):  # has been said already; a broken outbox refuses what depends on it
        return False
    return False


def _asked_before(op: Running, outbox: Outbox, ctx: OpContext) -> Optional[Envelope]:
    """The first answer, when the call was sent before and that still counts."""
    try:
        return first_answer(op, outbox, ctx)
    except (OSError, sqlite3.Error):  # a broken outbox is said where a write depends on it
        return None


def _begun(
    op: Running, tool: Tool, values: Mapping[str, Any], warnings: List[str], outbox: Outbox, ctx: OpContext,
) -> Envelope:
    if _must_wait(op, ctx):
        away = VaultUnreachable("earlier writes still wait for the vault",
                                hint="Look again when they have arrived; see echo_health.")
        return _kept(op, warnings, away.envelope(), outbox, ctx)
    with outbox.carrying_out(op):
        # The time stands still for the call: a replay after a crash has to write the same lines.
        here = ctx.varied(clock=ctx.clock.at(op.instant), running=op)
        envelope = echo_tools.carry_out(tool, values, warnings, here, op.op_id)
        try:
            return _settled(op, envelope, warnings, outbox, ctx)
        except (OSError, sqlite3.Error) as trouble:
            # The row stays as it is: a replay finds out that nothing is left to do.
            ctx.notify(f"the outbox could not note the end of a write ({type(trouble).__name__})")
            return envelope


def _settled(op: Running, envelope: Envelope, warnings: List[str], outbox: Outbox, ctx: OpContext) -> Envelope:
    """What the outbox makes of an op that has ended, and the answer."""
    promised = outbox.end(op)
    if envelope["ok"]:
        envelope["op_id"] = op.op_id
        if op.torn:
            return _owed(op, {**envelope, "error": "a part was begun and could not be finished"}, outbox)
        if op.late:
            outbox.owe(op.op_id)
        elif op.stored:
            outbox.finish(op, envelope)
        elif op.key:
            outbox.note_answer(op, envelope)
        return envelope
    full = envelope.get("reason") == DISK_FULL  # waiting does not cure that; the caller has to know at once
    if op.writes and not (full and not op.targets):
        return _owed(op, envelope, outbox)
    if promised:
        if envelope.get("code") in _OUTAGES:
            outbox.wait(op.op_id)
        else:
            outbox.park(op.op_id, reason_of(envelope))
        return envelope
    if op.stored:
        outbox.forget(op)
    if envelope.get("code") == VaultUnreachable.code and not full:
        return _kept(op, warnings, envelope, outbox, ctx)
    return envelope


def _owed(op: Running, envelope: Envelope, outbox: Outbox) -> Envelope:
    """The answer to a write that was begun: the rest follows, or waits for the operator when a bug is in its way."""
    if envelope.get("code") == InternalError.code:
        outbox.park(op.op_id, reason_of(envelope))
        envelope.update(op_id=op.op_id, hint="A part of it is in the vault; the rest is parked in the outbox, "
                        "see echo_health. " + str(envelope.get("hint", "")))
        return envelope
    outbox.wait(op.op_id)
    why = str(envelope.get("error") or envelope.get("hint") or "")
    answer = {name: value for name, value in envelope.items() if name not in ("ok", "code", "error", "hint", "reason")}
    answer.pop("warnings", None)
    return ok(warnings=[*envelope.get("warnings", []), f"begun, the rest follows: {why}"], queued=True,
              **{**answer, "op_id": op.op_id}, hint=FOLLOWS if envelope.get("code") in _OUTAGES else OWED)


def _kept(op: Running, warnings: List[str], away: Envelope, outbox: Outbox, ctx: OpContext) -> Envelope:
    """Keep a write that cannot be made now; when even that fails, answer that the vault is away, nothing was kept."""
    if op.tool in AT_ONCE:
        return away
    try:
        if not ctx.allow_secrets:
            for field, text in _texts(op.arguments, ""):
                refuse_secrets(text, field)
        op_id = outbox.keep(op)
    except EchoError as refused:
        return refused.envelope()
    except (OSError, sqlite3.Error) as full:
        return NotKept(
            f"{away['error']}; and the write could not be queued ({type(full).__name__}), so nothing was changed",
            hint="Free space in the state folder, or make it writable, and call again.",
        ).envelope()
    alone = str(away.get("reason", "")).startswith("http-")
    return ok(queued=True, op_id=op_id, provisional=True, warnings=warnings, hint=REFUSED if alone else FOLLOWS)


def _texts(value: Any, at: str) -> Iterator["tuple[str, str]"]:
    """Every text inside `value` with the name of its field."""
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, Mapping):
        for name in value:
            yield from _texts(value[name], f"{at}.{name}" if at else str(name))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(item, f"{at}[{number}]")
