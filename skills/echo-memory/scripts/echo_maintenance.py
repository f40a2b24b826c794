"""Looking after a vault: lint, sweep, decay, reindex (spec 3.4)."""
from __future__ import annotations

import time
from collections import Counter
from typing import Any, Dict, List, Optional, Sequence, Set

import echo_inbox
from echo_aging import Aging, aging_things
from echo_context import Envelope, OpContext, bounded, ok
from echo_core import kinds
from echo_core.catalog.notebytes import displayable
from echo_core.errors import InvalidArgument
from echo_core.index import EntityIndex, build_index
from echo_core.lint import CHECKS, lint
from echo_core.locks import LockHeld
from echo_health_note import health_path, write_findings
from echo_locking import lock_held

PROPOSALS = {
    "working-memory": "keep it as semantic or episodic memory, or delete it",
    "project": "move it to on-hold or archived",
}
"""What ages -> what to propose to the operator; inbox items are listed one by one."""


def lint_op(checks: Sequence[str] = (), *, ctx: OpContext) -> Envelope:
    """Every finding about the notes: `violations: [{check, path, detail}]` and `counts` by check; writes nothing.

    checks: only these. Raises InvalidArgument for an unknown check, and the vault's errors.
    """
    unknown = [name for name in checks if name not in CHECKS]
    if unknown:
        raise InvalidArgument("there is no check of that name", hint=f"Checks: {', '.join(CHECKS)}.", field="checks")
    ctx.fresh()
    found = [row for row in _findings(ctx) if not checks or row["check"] in checks]
    return ok(violations=found, counts=_counts(found))


def _findings(ctx: OpContext, only: Optional[Set[str]] = None) -> List[Dict[str, str]]:
    return lint(ctx.catalog, ctx.vault, ctx.index, ctx.routes, ctx.clock, only=only, fast=only is not None)


def _counts(findings: Sequence[Dict[str, str]]) -> Dict[str, int]:
    return dict(sorted(Counter(row["check"] for row in findings).items()))


def sweep_op(fast: bool = False, hours: int = 48, *, ctx: OpContext) -> Envelope:
    """Lint, and write the findings into this month's health note, which changes only when they do.

    fast: only the cheap checks, over notes whose file changed in the last `hours`. Returns `violations, counts,
    checked` (notes looked at), `path` of the health note and `action` updated or unchanged. Raises vault errors.
    """
    ctx.fresh()
    only = _changed_notes(hours, ctx) if fast else None
    found = _findings(ctx, only)
    written = write_findings(found, only, ctx)
    return ok("updated" if written else "unchanged", path=health_path(ctx), violations=found, counts=_counts(found),
              checked=len(ctx.catalog.paths()) if only is None else len(only))


def _changed_notes(hours: int, ctx: OpContext) -> Set[str]:
    """Notes whose file is younger than `hours` by this machine's clock, which is what file times go by."""
    oldest = time.time_ns() - hours * 3600 * 1_000_000_000
    changed = {kinds.INBOX}  # its items age without a change
    for path in ctx.catalog.paths():
        record = ctx.catalog.record(path)
        # The catalog states 0 for a file that changed a moment ago and is to be read once more.
        if record is not None and (record.mtime_ns == 0 or record.mtime_ns >= oldest):
            changed.add(path)
    return changed


def decay_op(*, ctx: OpContext) -> Envelope:
    """What has been left alone for long: `proposals: [{path, title, age_days, why, propose}]`, oldest first.

    An inbox item also has `line`, its id. Acts on nothing. Raises vault errors.
    """
    ctx.fresh()
    today = ctx.clock.today()
    rows = [_note_row(thing, ctx) for thing in aging_things(ctx) if thing.what in PROPOSALS]
    for item in echo_inbox.aging(echo_inbox.read_items(ctx), today):
        rows.append({"path": kinds.INBOX, "line": item.id, **bounded("title", displayable(item.text), 120),
                     "age_days": echo_inbox.age_days(item, today) or 0, "why": "inbox", "propose": "triage it"})
    rows.sort(key=lambda row: (-row["age_days"], row["path"], row["title"]))
    return ok(proposals=rows)


def _note_row(thing: Aging, ctx: OpContext) -> Dict[str, Any]:
    found = ctx.catalog.facts(thing.path)
    title = displayable(found.title) if found else thing.path
    return {"path": thing.path, "title": title, "age_days": thing.days, "why": thing.what,
            "propose": PROPOSALS[thing.what]}


def reindex_op(*, ctx: OpContext) -> Envelope:
    """Rebuild the entity index from the notes. An entry goes only when its note is confirmed to be gone.

    Returns `entities` (their number), `added, changed, removed` (slugs) and `action` reindexed or unchanged, or
    the decision lock-held. Raises IndexCorrupt and vault errors.
    """
    ctx.fresh()
    before = dict(ctx.index.load().entries)
    try:
        written = ctx.index.update(lambda index: _rebuild(index, ctx))
    except LockHeld as held:
        return lock_held(held)
    after = ctx.index.load().entries
    return ok(
        "reindexed" if written else "unchanged", path=kinds.INDEX, entities=len(after),
        added=sorted(after.keys() - before.keys()), removed=sorted(before.keys() - after.keys()),
        changed=sorted(slug for slug in after.keys() & before.keys() if after[slug] != before[slug]),
        unreadable=ctx.catalog.unreadable() or None,
    )


def _rebuild(index: EntityIndex, ctx: OpContext) -> None:
    wanted = build_index(ctx.catalog.all(), index, ctx.catalog.is_gone)
    for slug in [slug for slug in index.entries if slug not in wanted.entries]:
        index.remove(slug)
    for slug, entry in wanted.entries.items():
        index.put(slug, entry)
