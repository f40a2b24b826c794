"""How a call of the CLI runs: waiting writes first, then the call; a write the vault cannot take now is queued."""
from __future__ import annotations

import sqlite3
from dataclasses import dataclass, fields, replace
from typing import Any, Callable, Dict, Iterator, Mapping, Optional

import echo_tools
from echo_arguments import validate
from echo_config import CliSettings, context_of
from echo_context import Envelope, OpContext, ok
from echo_core.errors import EchoError, InvalidArgument, VaultUnreachable
from echo_core.guards import refuse_secrets
from echo_queue import CliQueue, Flushed, Waiting, summary_of
from echo_tools import Tool


@dataclass
class CliContext(OpContext):
    """The context of one CLI call: an OpContext with the queue of this machine and the state folder."""

    state_dir: str = ""
    waiting: Optional[CliQueue] = None


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


def open_cli(settings: CliSettings) -> CliContext:
    """The context of a CLI call: counts of the queue for `load` and `doctor`, and a flush that replays it."""
    queue = CliQueue(settings.state_dir, settings.root)
    plain = context_of(settings)
    ctx = CliContext(**{field.name: getattr(plain, field.name) for field in fields(OpContext)})
    ctx.state_dir, ctx.waiting, ctx.queue = settings.state_dir, queue, queue.counts
    ctx.flush = lambda: len(flush(ctx).arrived)
    return ctx


def run(tool: Tool, arguments: Mapping[str, Any], ctx: CliContext) -> Envelope:
    """Run one call: flush what waits, then answer; queue the call when it is a write and the vault is away."""
    away = _away(ctx)
    if away is None:
        if tool.name not in ("echo_load", "queue", "flush"):  # these deal with the queue themselves
            _flush_quietly(ctx)
        return echo_tools.run(tool, arguments, ctx)
    if tool.name not in QUEUED:
        return echo_tools.run(tool, arguments, ctx)
    try:
        values, warnings = validate(tool.params, arguments)
        if not QUEUED[tool.name](values):
            return away.envelope()
        return _enqueue(tool, values, warnings, away, ctx)
    except EchoError as refused:
        return refused.envelope()


def _away(ctx: OpContext) -> Optional[VaultUnreachable]:
    """Why the vault cannot be reached, None when it answers (or refuses us, which waiting does not cure)."""
    try:
        ctx.vault.check()
    except VaultUnreachable as failure:
        return failure
    except EchoError:
        return None
    return None


def _enqueue(
    tool: Tool, values: Dict[str, Any], warnings: "list[str]", away: VaultUnreachable, ctx: CliContext
) -> Envelope:
    """Keep the write; when even that fails, answer that the vault is away and nothing was kept."""
    if not ctx.allow_secrets:
        for field, text in _texts(values, ""):
            refuse_secrets(text, field)
    assert ctx.waiting is not None, "open_cli made this context"
    given = {name: value for name, value in values.items() if value not in (None, [], "")}
    try:
        op_id = ctx.waiting.add(tool.name, given, ctx.clock.instant())
    except (OSError, sqlite3.Error) as full:
        away.message += f"; and the write could not be queued ({type(full).__name__})"
        return away.envelope()
    return ok(queued=True, op_id=op_id, provisional=True, warnings=warnings,
              hint="The vault is not reachable now; the write follows with the next call that reaches it.")


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


def flush(ctx: CliContext) -> Flushed:
    """Replay the waiting writes with the time each was made at. Raises InternalError for a damaged queue."""
    assert ctx.waiting is not None, "open_cli made this context"

    def call(write: Waiting) -> Envelope:
        then = replace(ctx, clock=ctx.clock.at(write.instant), queue=None, flush=None)
        return echo_tools.run(echo_tools.BY_NAME[write.tool], write.arguments, then)

    return ctx.waiting.replay(call)


def _flush_quietly(ctx: CliContext) -> None:
    """Replay before another call; what goes wrong is said, and does not stop that call."""
    try:
        done = flush(ctx)
    except (EchoError, OSError, sqlite3.Error) as failure:
        ctx.notify(f"waiting writes could not be replayed: {failure}")
        return
    if done.arrived or done.parked:
        ctx.notify(f"waiting writes: {len(done.arrived)} arrived, {len(done.parked)} parked, {done.left} left")


def queue_op(retry: str = "", drop: str = "", *, ctx: CliContext) -> Envelope:
    """`writes: [{op_id, tool, what, instant, state, reason?}]`, oldest first.

    retry: op id of a parked write that shall be replayed again. drop: op id of one to forget. Raises NotFound.
    """
    assert ctx.waiting is not None, "open_cli made this context"
    if retry and drop:
        raise InvalidArgument("retry and drop exclude each other", field="drop")
    if retry:
        ctx.waiting.retry(retry)
    if drop:
        ctx.waiting.drop(drop)
    rows = [_row(write) for write in ctx.waiting.rows()]
    counts = ctx.waiting.counts()
    return ok("retried" if retry else "dropped" if drop else "", writes=rows, depth=counts["depth"],
              parked=counts["parked"])


def _row(write: Waiting) -> Dict[str, Any]:
    row = {"op_id": write.op_id, "tool": write.tool, "what": summary_of(write), "instant": write.instant,
           "state": "parked" if write.reason else "waiting"}
    if write.reason:
        row["reason"] = write.reason
    return row


def flush_op(*, ctx: CliContext) -> Envelope:
    """Replay the waiting writes now: `arrived` and `parked` (op ids), `left`. Raises the vault's errors."""
    ctx.vault.check()
    done = flush(ctx)
    return ok("flushed" if done.arrived else "unchanged", arrived=done.arrived, parked=done.parked, left=done.left)
