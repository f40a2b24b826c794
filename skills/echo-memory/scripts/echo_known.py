"""Answers while the vault is away: what index and kept notes can say, marked as such (spec 3.2, 6.1).

A call that only looks is asked of the vault first. When that is not reachable, or something else answers in
its place, it runs once more on what is known. An answer of that kind says `offline: true` and how old it is; what
cannot be answered fails as the vault did. A wrong key fails too, since only the operator can mend it; what is answered
from memory anyway is marked then and names it.
"""
from __future__ import annotations

from typing import Any, Mapping, Optional

import echo_tools
from echo_context import Envelope, OpContext
from echo_core.errors import VaultBadResponse, VaultTls, VaultUnreachable
from echo_core.vault.known import KnownVault
from echo_tools import Tool

FROM_MEMORY = frozenset({"echo_recall", "echo_resolve"})
"""Tools that answer from memory anyway; they learn from others that the vault is away."""
NOT_AWAY = frozenset({"starting", "busy"})
"""Reasons that say nothing about whether the vault answers."""
ASTRAY = frozenset({VaultBadResponse.code, VaultTls.code})
"""Failures of something at the vault's address that is not the vault."""
LATE = f"{VaultUnreachable.code}: it does not answer in time; the other checks are of what is known"
TELLING = frozenset({"ambiguous", "invalid-target"})
"""Refusals that are worth as much offline: they list what there is."""


def run(tool: Tool, arguments: Mapping[str, Any], ctx: OpContext) -> Envelope:
    """`echo_tools.run`, with what is known as the answer when the vault is away and the call only looks."""
    if not tool.looks:
        return echo_tools.run(tool, arguments, ctx)
    envelope = echo_tools.run(tool, arguments, ctx)
    if envelope.get("code") == VaultUnreachable.code and envelope.get("reason") not in NOT_AWAY:
        return known(tool, arguments, ctx) or _advised(envelope, ctx)
    if envelope.get("code") in ASTRAY:
        answer = known(tool, arguments, ctx)
        return _advised(envelope, ctx) if answer is None else _because(answer, envelope["code"], envelope["error"])
    unheard = ctx.reach.unheard()
    if envelope.get("ok") and tool.name in FROM_MEMORY and unheard is not None:
        answer = _marked(envelope, _offline(ctx))
        return answer if unheard is ctx.reach.away() else _because(answer, unheard.code, unheard.message)
    return envelope


def known(tool: Tool, arguments: Mapping[str, Any], ctx: OpContext) -> Optional[Envelope]:
    """The answer of what is known, None when it cannot tell."""
    offline = _offline(ctx)
    if not offline.catalog.paths():
        return None
    answer = echo_tools.run(tool, arguments, offline)
    return _marked(answer, offline) if answer.get("ok") or answer.get("code") in TELLING else None


def health(tool: Tool, arguments: Mapping[str, Any], ctx: OpContext) -> Envelope:
    """The checks that need no vault, for an `echo_health` that waits for one which does not answer in time."""
    answer = echo_tools.run(tool, {**arguments, "deep": False}, _offline(ctx))
    if not answer.get("ok"):
        return answer
    rows = [{**row, "ok": False, "detail": LATE} if row["name"] == "vault" else row for row in answer["checks"]]
    return {**answer, "checks": rows, "healthy": False}


def _offline(ctx: OpContext) -> OpContext:
    """A context in which nothing asks the vault."""
    ctx.catalog.seed()
    vault = KnownVault(ctx.catalog, ctx.known.notes)
    return ctx.varied(
        vault=vault, offline=vault, names=ctx.known.names, routes=ctx.known.routes, refresh=lambda: None, flush=None,
    )


def _marked(envelope: Envelope, ctx: OpContext) -> Envelope:
    """The answer with what a reader has to know about it; a load has said it already."""
    if envelope.get("offline"):
        return envelope
    hint = " ".join(filter(None, [ctx.offline_notice(), str(envelope.get("hint") or "")]))
    return {**envelope, **ctx.offline_facts(), "hint": hint}


def _because(answer: Envelope, code: str, message: str) -> Envelope:
    """The answer with why the vault was not heard, where that is more than an absence."""
    return {**answer, "warnings": [*answer.get("warnings", []), f"{code}: {message}"]}


def _advised(envelope: Envelope, ctx: OpContext) -> Envelope:
    """The failure with what to do about it, for a model that has to go on."""
    kept = "" if ctx.read_only or ctx.outbox is None else "; writes are kept and follow when it is back"
    hint = str(envelope.get("hint") or "").strip()
    return {**envelope, "hint": f"{hint} Proceed without memory{kept}.".strip()}
