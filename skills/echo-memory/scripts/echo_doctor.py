"""Whether the memory works: the checks of `echo_health` and `doctor` (spec 3.2). Nothing here raises."""
from __future__ import annotations

import sys
from collections import Counter
from typing import Any, Callable, Dict, List, Tuple

from echo_bootstrap import schema_version
from echo_context import Envelope, OpContext, ok
from echo_core.errors import EchoError, NotFound
from echo_core.index import EntityIndex
from echo_core.kinds import INDEX
from echo_core.lint import lint
from echo_core.text import one_line, plural, shorten
from echo_starters import SCHEMA_VERSION

MOST_VIOLATIONS = 100
"""Most findings in one answer; `counts` always covers all of them."""
MOST_NAMES = 5
"""How many paths a check's detail names."""

Verdict = Tuple[bool, str]
"""Whether a check is well, and one line about it."""


def health_op(deep: bool = False, *, ctx: OpContext) -> Envelope:
    """Whether the memory works; reports whatever is wrong instead of raising it.

    `checks: [{name, ok, detail}]`, `healthy` (all checks are well), `violations: [{check, path, detail}]`, which
    only `deep` fills, with `counts` by check; more than 100 are cut, with `truncated` and `violations_total`.
    """
    checks = [_row(name, check, ctx) for name, check in {**CHECKS, **ctx.checks}.items()]
    answer = ok(healthy=True, checks=checks, violations=[])
    if deep:
        row, found = _deep(ctx)
        checks.append(row)
        answer["violations"] = found[:MOST_VIOLATIONS]
        answer["counts"] = dict(sorted(Counter(each["check"] for each in found).items()))
        if len(found) > MOST_VIOLATIONS:
            answer.update(truncated=True, violations_total=len(found))
    answer["healthy"] = all(row["ok"] for row in checks)
    answer.update(_details(ctx))
    return answer


def doctor_op(deep: bool = False, *, ctx: OpContext) -> Envelope:
    """`health_op` for the command line, with the versions of format and Python beside it."""
    answer = health_op(deep, ctx=ctx)
    answer["schema"] = SCHEMA_VERSION
    answer["python"] = ".".join(map(str, sys.version_info[:3]))
    return answer


def _row(name: str, check: Callable[[OpContext], Verdict], ctx: OpContext) -> Dict[str, Any]:
    """One check as a row; whatever it raises is its finding."""
    try:
        well, detail = check(ctx)
    except EchoError as failure:
        well, detail = False, f"{failure.code}: {failure.message}"
    except Exception as failure:  # a check that breaks must not take the others with it
        well, detail = False, f"the check itself failed ({type(failure).__name__})"
    return {"name": name, "ok": well, "detail": shorten(one_line(detail), 300)[0]}


def _vault(ctx: OpContext) -> Verdict:
    ctx.vault.check()
    return True, ", ".join(f"{name}: {value}" for name, value in ctx.vault.describe().items())


def _marker(ctx: OpContext) -> Verdict:
    version = schema_version(ctx)
    if version is None:
        return False, "the vault has no marker; run bootstrap"
    if version > SCHEMA_VERSION:
        return False, f"schema version {version} is newer than this program knows; update ECHO"
    if version < SCHEMA_VERSION:
        return False, f"schema version {version or 'unknown'}; run migrate"
    return True, f"schema version {version}"


def _notes(ctx: OpContext) -> Verdict:
    ctx.fresh()
    trouble = [*ctx.catalog.unreadable(), *ctx.catalog.problems()]
    counted = plural(len(ctx.catalog.paths()), "note")
    if not trouble:
        return True, counted
    named = ", ".join(sorted(trouble)[:MOST_NAMES])
    return False, f"{counted}; {plural(len(trouble), 'place')} cannot be read: {named}"


def _index(ctx: OpContext) -> Verdict:
    try:
        stored = EntityIndex.from_bytes(ctx.vault.read(INDEX))
    except NotFound:
        return True, "not written yet; names come from the notes"
    return True, f"{len(stored.entries)} entities"


def _routes(ctx: OpContext) -> Verdict:
    return True, plural(len(ctx.routes().routes), "route")


def _lock(ctx: OpContext) -> Verdict:
    if ctx.offline is not None:  # locks are notes of the vault, and nobody keeps them
        return True, "not looked at, since the vault does not answer"
    held = ctx.lock.status("index")
    return True, "free" if held is None else f"held by {held.holder} until {held.expires}"


def _history(ctx: OpContext) -> Verdict:
    ctx.history.versions(INDEX)
    problems = ctx.history.problems()
    return not problems, ", ".join(problems) or "versions can be read"


def _conflicts(ctx: OpContext) -> Verdict:
    found = ctx.history.conflicts()
    if not found:
        return True, "none"
    named = ", ".join(f"{one.path} (version {one.version or 'not kept'})" for one in found[:MOST_NAMES])
    return False, f"{plural(len(found), 'text')} written over by somebody else, restore or drop them: {named}"


def _queue(ctx: OpContext) -> Verdict:
    if ctx.queue is None:
        return True, "none here"
    counts = ctx.queue_counts()
    detail = f"{counts['depth']} waiting, {counts['parked']} parked"
    damaged = counts.get("damaged", 0)
    if damaged:
        detail += f"; {plural(damaged, 'damaged queue file')} kept in the state folder"
    return not (counts["parked"] or damaged), detail


def _clock(ctx: OpContext) -> Verdict:
    return True, f"{ctx.clock.instant()}, zone {ctx.clock.zone_name or 'of this machine'}"


CHECKS: Dict[str, Callable[[OpContext], Verdict]] = {
    "vault": _vault, "marker": _marker, "notes": _notes, "index": _index, "routes": _routes, "lock": _lock,
    "history": _history, "conflicts": _conflicts, "queue": _queue, "clock": _clock,
}
"""Check name -> check, in the order they are reported."""


def _deep(ctx: OpContext) -> Tuple[Dict[str, Any], List[Dict[str, str]]]:
    """The row of the deep check and every finding about the notes."""
    found: List[Dict[str, str]] = []

    def check(ctx: OpContext) -> Verdict:
        ctx.fresh()
        found.extend(lint(ctx.catalog, ctx.vault, ctx.index, ctx.routes, ctx.clock))
        return True, plural(len(found), "finding")

    return _row("lint", check, ctx), found


def _details(ctx: OpContext) -> Dict[str, Any]:
    """What whoever runs the op adds, for example the server's version and jobs."""
    if ctx.details is None:
        return {}
    try:
        return {"details": ctx.details()}
    except Exception as failure:  # as above: a report must not fail
        return {"warnings": [f"the details could not be collected ({type(failure).__name__})"]}
