"""An op of a vault killed before each of its steps in turn, and what a restart makes of it (spec 6.2).

The op runs in a child process that dies without a farewell before its n-th step: a transaction of a state database, or
a system call that changes the vault's folder. Then a new context, as after a restart, replays the outbox. The vault
must be as it was before the op, or as the op leaves it when nothing interrupts it: byte for byte, the index included.
"""
from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import echo_offline
from echo_config import build_context
from echo_context import OpContext
from echo_core.clock import Clock
from echo_core.state.database import StateDatabase
from echo_offline import with_outbox
from echo_queue import Outbox
from echo_queue_vault import OutboxVault
from echo_replay import flush
from echo_tools import BY_NAME
from fakes.forked import dying_at
from opsfixture import INSTANT, ZONE, snapshot

SYSTEM_CALLS = [(os, "rename"), (os, "link"), (os, "unlink"), (os, "fsync"), (os, "write")]
DATABASE = [(StateDatabase, "run")]
STEPS = DATABASE + SYSTEM_CALLS[:3]
"""Where an op can have got to: between its transactions and the calls that change what a name means."""


class Op(NamedTuple):
    """One call that is killed. arguments: may be a function of the context, for what only the vault knows."""

    tool: str
    arguments: dict[str, Any] | Callable[[OpContext], dict[str, Any]]


def context(folder: Path, instant: str = INSTANT, holder: str = "test") -> OpContext:
    """A context with an outbox over `folder/vault`; holder: who holds the index lock, the same after a restart."""
    state = str(folder / "state")
    outbox = Outbox(state, "vault", "server")
    ctx = build_context(str(folder / "vault"), Clock(ZONE, instant), state, holder=holder, notify=lambda message: None,
                        wrap=lambda vault: OutboxVault(vault, outbox))
    return with_outbox(ctx, outbox, state)


def call(ctx: OpContext, op: Op) -> dict[str, Any]:
    """The envelope of the op."""
    arguments = op.arguments(ctx) if callable(op.arguments) else op.arguments
    return echo_offline.run(BY_NAME[op.tool], arguments, ctx)


def notes(folder: Path) -> dict[str, bytes]:
    """The vault's files without what a kill may leave: temporary files, and the lock of the index."""
    return {path: data for path, data in snapshot(folder).items()
            if not path.rpartition("/")[2].startswith(".echo-") and path != "_agent/locks/index.json"}


class Crash(NamedTuple):
    """One kill and the restart after it. before, undisturbed, after: the vault's files; open: what the outbox holds."""

    step: int
    before: dict[str, bytes]
    undisturbed: dict[str, bytes]
    after: dict[str, bytes]
    open: list[str]


def crashes(
    template: Path, folder: Path, op: Op, steps: list[tuple[Any, str]] = STEPS,
    meanwhile: Callable[[Path], None] = lambda folder: None,
) -> Iterator[Crash]:
    """Kill `op` before each of its steps, each time on a fresh copy of `template`; ends when it survives.

    steps: functions whose calls count as steps. meanwhile: what happens to the copy before the restart.
    """
    undisturbed = folder / "undisturbed"
    shutil.copytree(template, undisturbed)
    before = notes(undisturbed)
    ctx = context(undisturbed)
    answer = call(ctx, op)
    assert answer["ok"], answer
    ctx.close()
    whole = notes(undisturbed)
    step, died = 0, True
    while died:
        step += 1
        copy = folder / f"{step}"
        shutil.copytree(template, copy)
        died = dying_at(step, steps, lambda copy=copy: call(context(copy), op))
        meanwhile(copy)
        ctx = context(copy, "2026-12-01T09:00:00+01:00")
        flush(ctx)
        held = [f"{row.state} {row.tool}: {row.reason}" for row in ctx.outbox.rows()] if ctx.outbox else []
        ctx.close()
        yield Crash(step, before, whole, notes(copy), held)
        shutil.rmtree(copy)
