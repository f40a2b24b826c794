"""How a call runs that may have to wait: earlier writes first, then the call; what the vault cannot take is queued."""
from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, Mapping

import echo_tools
from echo_arguments import validate
from echo_config import CliSettings, context_of
from echo_context import Envelope, OpContext, ok
from echo_core.errors import EchoError, InvalidArgument, VaultUnreachable
from echo_core.guards import refuse_secrets
from echo_queue import Flushed, Waiting, WriteQueue, summary_of
from echo_tools import Tool


def _applies(values: Mapping[str, Any]) -> bool:
    return bool(values.get("apply"))


def _writes(values: Mapping[str, Any]) -> bool:
    return not values.get("dry_run")


QUEUED: Dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "echo_capture": _writes,
    "echo_append_note": _writes,
    "echo_patch_note": _writes,
    "echo_link": _writes,
    "echo_set_scope": _writes,
    "echo_log_session": _applies,
    "echo_reflect": _applies,
    "echo_triage_inbox": _applies,
}
"""Tools whose writes may wait, and when a call of them is a write. Moves and restores are decided on what the
vault holds now, so they do not wait."""


QUEUE_TOOLS = frozenset({"echo_load", "queue", "flush"})
"""Tools that deal with the queue themselves."""
FULL = "disk-full"
"""The reason of a failed write that waiting does not cure; the caller has to know at once."""


def with_queue(ctx: OpContext, queue: WriteQueue, state_dir: str) -> OpContext:
    """`ctx` with a queue: counts for `load` and `doctor`, and a flush that replays it."""
    ctx.waiting, ctx.queue, ctx.state_dir = queue, queue.counts, state_dir
    ctx.flush = lambda: len(flush(ctx).arrived)
    return ctx


def open_cli(settings: CliSettings) -> OpContext:
    """The context of a CLI call, with the queue of this machine."""
    return with_queue(context_of(settings), WriteQueue(settings.state_dir, settings.root), settings.state_dir)


def run(tool: Tool, arguments: Mapping[str, Any], ctx: OpContext) -> Envelope:
    """Run one call: flush what waits, then answer; queue the call when it is a write and the vault is away.

    While earlier writes still wait, a new one waits behind them, so that all arrive in the order they were made.
    """
    queue = ctx.waiting
    if queue is None or tool.name in QUEUE_TOOLS:
        return echo_tools.run(tool, arguments, ctx)
    try:
        behind, trouble = _still_waiting(queue, ctx), ""
    except (EchoError, OSError, sqlite3.Error) as failure:
        behind, trouble = False, f"writes that waited cannot be read: {failure}"
        ctx.notify(trouble)
    envelope = _run(tool, arguments, behind, ctx)
    if trouble:
        envelope["warnings"] = [*envelope.get("warnings", []), trouble]
    return envelope


def _run(tool: Tool, arguments: Mapping[str, Any], behind: bool, ctx: OpContext) -> Envelope:
    if behind and tool.name in QUEUED:
        return _queued_or(tool, arguments, VaultUnreachable(
            "earlier writes still wait for the vault", hint="Look again when they have arrived; see echo_health."), ctx)
    envelope = echo_tools.run(tool, arguments, ctx)
    if envelope.get("code") != VaultUnreachable.code or envelope.get("reason") == FULL or tool.name not in QUEUED:
        return envelope
    return _queued_or(tool, arguments, _failure(envelope), ctx)


def _still_waiting(queue: WriteQueue, ctx: OpContext) -> bool:
    """Whether earlier writes wait even after a try to replay them. Raises InternalError for a damaged queue."""
    if queue.waits():
        _flush_quietly(ctx)
    return queue.waits()


def _failure(envelope: Envelope) -> VaultUnreachable:
    extra = {key: value for key, value in envelope.items() if key not in ("ok", "code", "error", "hint")}
    return VaultUnreachable(str(envelope["error"]), hint=str(envelope.get("hint", "")), **extra)


def _queued_or(tool: Tool, arguments: Mapping[str, Any], away: VaultUnreachable, ctx: OpContext) -> Envelope:
    """The answer to a call that cannot run now: queued when it writes, `away` when it only looks."""
    try:
        values, warnings = validate(tool.params, arguments)
        if not QUEUED[tool.name](values):
            return away.envelope()
        return _enqueue(tool, values, warnings, away, ctx)
    except EchoError as refused:
        return refused.envelope()


def _enqueue(
    tool: Tool, values: Dict[str, Any], warnings: "list[str]", away: VaultUnreachable, ctx: OpContext
) -> Envelope:
    """Keep the write; when even that fails, answer that the vault is away and nothing was kept."""
    if not ctx.allow_secrets:
        for field, text in _texts(values, ""):
            refuse_secrets(text, field)
    assert ctx.waiting is not None, "only a context with a queue comes here"
    given = {name: value for name, value in values.items() if value not in (None, [], "")}
    try:
        op_id = ctx.waiting.add(tool.name, given, ctx.clock.instant())
    except (OSError, sqlite3.Error) as full:
        away.message += f"; and the write could not be queued ({type(full).__name__})"
        return away.envelope()
    return ok(queued=True, op_id=op_id, provisional=True, warnings=warnings,
              hint="The vault is not reachable now; the write follows as soon as it is.")


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


def flush(ctx: OpContext) -> Flushed:
    """Replay the waiting writes with the time each was made at. Raises InternalError for a damaged queue."""
    assert ctx.waiting is not None, "only a context with a queue comes here"

    def call(write: Waiting) -> Envelope:
        then = replace(ctx, clock=ctx.clock.at(write.instant), queue=None, flush=None, waiting=None)
        return echo_tools.run(echo_tools.BY_NAME[write.tool], write.arguments, then)

    return ctx.waiting.replay(call, lambda: _answers(ctx))


def _answers(ctx: OpContext) -> bool:
    try:
        ctx.vault.check()
        ctx.fresh()
    except EchoError:
        return False
    return True


def _flush_quietly(ctx: OpContext) -> None:
    """Replay before another call; what goes wrong is said, and does not stop that call."""
    try:
        done = flush(ctx)
    except (EchoError, OSError, sqlite3.Error) as failure:
        ctx.notify(f"waiting writes could not be replayed: {failure}")
        return
    if done.arrived or done.parked:
        ctx.notify(f"waiting writes: {len(done.arrived)} arrived, {len(done.parked)} parked, {done.left} left")


def queue_op(retry: str = "", drop: str = "", *, ctx: OpContext) -> Envelope:
    """`writes: [{op_id, tool, what, instant, state, reason?}]`, oldest first; `conflicts: [{id, path, version, ts}]`.

    retry: op id of a parked write that shall be replayed again. drop: op id of one to forget, or id of a conflict.
    Raises NotFound.
    """
    assert ctx.waiting is not None, "only a context with a queue comes here"
    if retry and drop:
        raise InvalidArgument("retry and drop exclude each other", field="drop")
    if retry:
        ctx.waiting.retry(retry)
    if drop and not ctx.history.dismiss(drop):
        ctx.waiting.drop(drop)
    rows = [_row(write) for write in ctx.waiting.rows()]
    counts = ctx.waiting.counts()
    conflicts = [found._asdict() for found in ctx.history.conflicts()]
    return ok("retried" if retry else "dropped" if drop else "", writes=rows, depth=counts["depth"],
              parked=counts["parked"], conflicts=conflicts or None)


def _row(write: Waiting) -> Dict[str, Any]:
    row = {"op_id": write.op_id, "tool": write.tool, "what": summary_of(write), "instant": write.instant,
           "state": "parked" if write.reason else "waiting"}
    if write.reason:
        row["reason"] = write.reason
    return row


def flush_op(*, ctx: OpContext) -> Envelope:
    """Replay the waiting writes now: `arrived` and `parked` (op ids), `left`. Raises the vault's errors."""
    ctx.vault.check()
    done = flush(ctx)
    return ok("flushed" if done.arrived else "unchanged", arrived=done.arrived, parked=done.parked, left=done.left)
