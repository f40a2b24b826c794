"""Looking at and bringing back former versions of a note (spec 3.2, 6.3)."""
from __future__ import annotations

from typing import Optional, Tuple

from echo_context import Envelope, OpContext, bounded, ok, preview
from echo_core.catalog.notebytes import decode
from echo_core.errors import NotFound
from echo_core.kinds import TRASH, is_entity
from echo_core.paths import check_path
from echo_core.vault.base import version_of
from echo_edits import diff_of, edit_bytes, index_notes, move_file, read_bytes
from echo_notes import resolve_note

DIFF_CHARS = 8000
"""Longest diff of a preview."""


def note_history_op(path: str, *, ctx: OpContext) -> Envelope:
    """`path, versions`: newest first, each the state before a write: id, ts, bytes, summary_line, tool, op_id.

    `absent: true` marks the state before a creation. Works for a deleted note by its old path. Raises NotFound
    and Ambiguous.
    """
    found = _with_history(path, ctx)
    return ok(path=found, versions=[_shown(version) for version in ctx.history.versions(found)])


def restore_note_op(path: str, version_id: str, confirm: bool = False, *, ctx: OpContext) -> Envelope:
    """Bring back the exact bytes of one version; without `confirm` only the diff.

    Restoring the state before a creation moves the note to `_agent/trash/`. The restore keeps the current state
    as a version first, so it can be undone. `action` preview, restored, trashed or unchanged. Raises NotFound
    (no such note or version), Ambiguous, Conflict, NoUndo and vault errors.
    """
    found = _with_history(path, ctx)
    wanted = ctx.history.content(found, version_id)
    current = read_bytes(ctx, found)
    if wanted == current and not (ctx.resumed and ctx.resumed.wrote(found)):
        return ok("unchanged", path=found, version=version_of(current) if current is not None else None)
    if not confirm:
        return preview("trash" if wanted is None else "restore", path=found,
                       hint="Call again with confirm: true after the operator agreed.",
                       **bounded("diff", _diff(found, current, wanted), DIFF_CHARS))
    if wanted is None:
        return _trash(found, ctx)
    if_match = "" if current is None or ctx.resumed else version_of(current)
    edited = edit_bytes(ctx, found, lambda _before: wanted, if_match, repeatable=False)
    warnings = index_notes(ctx, [found]) if is_entity(found) else []
    return ok("restored", path=found, version=version_of(edited.after), warnings=warnings)


def _with_history(ref: str, ctx: OpContext) -> str:
    """The path `ref` means: a note that is there, or one that history still knows."""
    ctx.fresh()
    try:
        return resolve_note(ref, ctx)
    except NotFound:
        wanted = check_path(ref)
        for candidate in (wanted, f"{wanted}.md"):
            if ctx.history.versions(candidate):
                return candidate
        raise


def _diff(path: str, current: Optional[bytes], wanted: Optional[bytes]) -> str:
    before = None if current is None else decode(current)[0]
    return diff_of(path, before, "" if wanted is None else decode(wanted)[0])


def _trash(path: str, ctx: OpContext) -> Envelope:
    target = str(ctx.resumed.plan["moved_to"]) if ctx.resumed else _free_trash_path(path, ctx)
    ctx.remember(moved_to=target)
    move_file(ctx, path, target)
    warnings = index_notes(ctx, [], gone=[path])
    return ok("trashed", path=path, moved_to=target, warnings=warnings)


def _free_trash_path(path: str, ctx: OpContext) -> str:
    stem = f"{TRASH}{ctx.clock.file_stamp()}-{path.rpartition('/')[2][:-3]}"
    candidates: Tuple[str, ...] = (f"{stem}.md",) + tuple(f"{stem}-{n}.md" for n in range(2, 100))
    return next(candidate for candidate in candidates if read_bytes(ctx, candidate) is None)


def _shown(version: object) -> "dict[str, object]":
    row = {name: getattr(version, name) for name in ("id", "ts", "bytes", "summary_line", "tool", "op_id")}
    if getattr(version, "absent", False):
        row["absent"] = True
    return row


