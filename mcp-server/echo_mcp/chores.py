"""Looking after the vault by itself: the hourly sweep, the weekly look at what has been left alone (spec 6.6).

What is due is read from the table of runs and the owner's clock each time: a restart repeats nothing, and a clock that
jumps costs one run at most. A server that never ran before begins after the first period, so that a vault somebody is
only trying out is left alone.
"""
from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from echo_context import Envelope, OpContext
from echo_core.clock import Clock
from echo_core.errors import EchoError
from echo_maintenance import decay_op, sweep_op
from echo_tools import new_op_id

from echo_mcp import logs
from echo_mcp.health import Health
from echo_mcp.jobs import Repeated
from echo_mcp.runs import Runs

HOUR_S = 3600.0
WEEK_S = 7 * 24 * HOUR_S
LOOK_S = 2.0
"""How soon a server that has read the notes begins."""
ASSESS_S = 60.0
"""Seconds between two looks at the table of runs and the clock."""
OK, FAILED = "ok", "failed"


class Chore(NamedTuple):
    """name: in the table of runs. work: does it and answers an envelope. told: the numbers of it that are kept."""

    name: str
    period_s: float
    work: Callable[[OpContext], Envelope]
    told: Callable[[Envelope], dict[str, Any]]


CHORES = (
    Chore("sweep", HOUR_S, lambda ctx: sweep_op(fast=True, ctx=ctx),
          lambda answer: {"checked": answer["checked"], "findings": len(answer["violations"])}),
    Chore("decay", WEEK_S, lambda ctx: decay_op(ctx=ctx), lambda answer: {"proposals": len(answer["proposals"])}),
)


class Chores:
    """Runs each chore when it is due, one after the other; none while the notes are being read or the vault is away."""

    def __init__(self, ctx: OpContext, runs: Runs, clock: Clock, health: Health) -> None:
        self._ctx = ctx
        self._runs = runs
        self._clock = clock
        self._health = health
        self._began = time.monotonic()
        self._assessed = float("-inf")
        self.thread = Repeated("chores", self.look, LOOK_S)

    def look(self) -> None:
        """Do what is due. Raises nothing of the vault or the disk."""
        now = time.monotonic()
        if now - self._assessed < ASSESS_S or not self._health.index_ready or not self._health.vault_reachable:
            return
        self._assessed = now
        for chore in CHORES:
            try:
                if self._is_due(chore):
                    self._do(chore)
            except EchoError as failure:
                logs.event("chore-failed", logging.WARNING, job=chore.name, code=failure.code)

    def _is_due(self, chore: Chore) -> bool:
        newest = next(iter(self._runs.recent(chore.name, 1)), None)
        if newest is None:
            return time.monotonic() - self._began >= chore.period_s
        age = _seconds(self._clock.instant()) - _seconds(newest.started)
        return not 0 <= age < chore.period_s

    def _do(self, chore: Chore) -> None:
        """Raises what the table of runs and the chore raise; the row says that it failed."""
        run = self._runs.begin(chore.name)
        self._ctx.vault.note_context(chore.name, new_op_id())
        try:
            answer = chore.work(self._ctx)
        except EchoError as failure:
            self._runs.end(run, FAILED, {"code": failure.code})
            raise
        self._runs.end(run, OK, chore.told(answer))


def _seconds(instant: str) -> float:
    return datetime.fromisoformat(instant).timestamp()
