"""Bringing an older or unmarked vault to the current layout: a plan first, then exactly that plan (spec 2.1).

What is done is what can be done without guessing:

* starter notes and control files that are missing are created, as `bootstrap` does;
* a project whose `status` names another folder than its own moves there, and every link to it is rewritten;
* a note inside a folder of the layout gets the `type` that the folder stands for (a project also `status`, an area
  also `domain`) when its frontmatter parses and lacks it;
* the entity index is rebuilt, and the marker is brought to the current schema version last.

Nothing else of a note changes, notes outside the layout's folders are never touched, and a note whose frontmatter
does not parse is left alone and named.
"""
from __future__ import annotations

from typing import Any, Dict, List, Optional

from echo_bootstrap import create_one, has_file, refuse_newer, schema_version, set_schema_version
from echo_context import Envelope, OpContext, ok
from echo_core import frontmatter
from echo_core.catalog.note import NoteFacts
from echo_core.errors import EchoError
from echo_core.kinds import INDEX, MARKER, PROJECT_STATUSES, ROUTES, domain_of, is_entity, kind_of, place, status_of
from echo_core.paths import stem
from echo_edits import edit_note, must_exist, read_text
from echo_maintenance import reindex_op
from echo_move import move_op
from echo_starters import SCHEMA_VERSION, STARTERS

Step = Dict[str, Any]
"""`{"action", "path", "why"}`, and `to` for a move or `keys` for frontmatter."""


def migrate_op(apply: bool = False, *, ctx: OpContext) -> Envelope:
    """What the vault needs to have the current layout.

    Without `apply`: `action: preview` with `plan: [{action, path, why, to?, keys?}]`, nothing written. With it:
    `results`, the same rows with `ok` (and `code`, `error`); a step that fails leaves the others alone, and the
    marker is only brought up when none failed. `left_alone`: notes that need a person. Raises Misconfigured
    when the vault is newer than this program, and the vault's errors.
    """
    version = schema_version(ctx)
    refuse_newer(version)
    ctx.vault.check()
    ctx.fresh()
    plan, left_alone = _plan(version, ctx)
    facts: Dict[str, Any] = {"schema_version": version, "left_alone": left_alone or None}
    if not plan:
        return ok("unchanged", plan=[], **facts)
    if not apply:
        return ok("preview", plan=plan, hint="Run migrate --apply to do this; back the vault up first.", **facts)
    results = [_done(step, ctx) for step in plan if step["action"] != "marker"]
    failed = sum(1 for row in results if not row["ok"])
    marker = [step for step in plan if step["action"] == "marker"]
    if not failed:
        results += [_done(step, ctx) for step in marker]
    warnings = [f"{failed} of {len(plan)} steps failed; the marker stays as it was"] if failed else []
    return ok("migrated", results=results, warnings=warnings, **facts)


def _plan(version: Optional[int], ctx: OpContext) -> "tuple[List[Step], List[str]]":
    """The steps in the order they are done, and the notes that are left alone."""
    steps: List[Step] = [_missing(path) for path in (*STARTERS, ROUTES) if not has_file(path, ctx)]
    left_alone: List[str] = []
    for found in ctx.catalog.all(is_entity):
        if found.malformed:
            left_alone.append(found.path)
        else:
            steps += _steps_of(found, ctx)
    was = "there is no marker" if version is None else f"the schema version is {version or 'unknown'}"
    if steps or version != SCHEMA_VERSION or not has_file(INDEX, ctx):
        steps.append({"action": "reindex", "path": INDEX, "why": "so that the index agrees"})
    if version != SCHEMA_VERSION:
        steps.append({"action": "marker", "path": MARKER, "why": f"{was}; becomes {SCHEMA_VERSION}"})
    return steps, left_alone


def _missing(path: str) -> Step:
    return {"action": "create", "path": path, "why": "missing"}


def _steps_of(found: NoteFacts, ctx: OpContext) -> List[Step]:
    """What one note needs: frontmatter keys first, under its old path, then its move."""
    steps: List[Step] = []
    block = frontmatter.parse(read_text(ctx, found.path) or "")
    keys = {key: value for key, value in _keys_of(found.path).items() if block.values.get(key) in (None, "")}
    if keys:
        steps.append({"action": "frontmatter", "path": found.path, "keys": keys, "why": "stated by its folder"})
    folder = status_of(found.path)
    if folder and found.status in PROJECT_STATUSES and found.status != folder:
        to = place("project", stem(found.path), status=found.status)
        if ctx.catalog.facts(to) is None:
            steps.append({"action": "move", "path": found.path, "to": to, "why": f"its status is {found.status}"})
    return steps


def _keys_of(path: str) -> Dict[str, str]:
    """What the folder of a note says about it."""
    stated = {"type": kind_of(path), "status": status_of(path), "domain": domain_of(path)}
    return {key: value for key, value in stated.items() if value}


def _done(step: Step, ctx: OpContext) -> Step:
    """One step carried out: the step with `ok`, and with `code` and `error` when it failed."""
    try:
        _do(step, ctx)
    except EchoError as failure:
        return {**step, "ok": False, "code": failure.code, "error": failure.message}
    return {**step, "ok": True}


def _do(step: Step, ctx: OpContext) -> None:
    if step["action"] == "create":
        create_one(step["path"], ctx)
    elif step["action"] == "frontmatter":
        edit_note(ctx, step["path"], lambda text: _with_keys(step, text, ctx))
    elif step["action"] == "move":
        move_op(step["path"], step["to"], confirm=True, ctx=ctx)
    elif step["action"] == "reindex":
        reindex_op(ctx=ctx)
    else:
        set_schema_version(ctx)


def _with_keys(step: Step, text: Optional[str], ctx: OpContext) -> str:
    note = must_exist(step["path"], text, ctx)
    for key, value in step["keys"].items():
        if frontmatter.parse(note).values.get(key) in (None, ""):
            note = frontmatter.set_key(note, key, value)
    return note
