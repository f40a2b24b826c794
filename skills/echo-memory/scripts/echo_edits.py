"""Steps that several ops share: editing a note as text, the day's agent log, the index step, previews.

Nothing here decides what to write; the ops do. Everything here keeps the derived parts (catalog, index)
in step with what was written.
"""
from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
from typing import Any, Callable, Iterator, List, Optional, Set

from echo_context import Envelope, OpContext, ok, preview
from echo_core.catalog.note import facts, new_note
from echo_core.catalog.notebytes import decode, displayable, encode
from echo_core.errors import Conflict, InvalidPath, InvalidTarget, MalformedNote, NotFound
from echo_core.index import EntityIndex, Entry
from echo_core.kinds import DAY_NOTES, is_entity, kind_of
from echo_core.locks import LockHeld
from echo_core.markdown import append_text, find_heading, has_line, headings, insert_heading
from echo_core.paths import parent, unportable
from echo_core.vault.base import Edited, edit, version_of

AGENT_LOG = "Agent Log"
INBOX = "inbox/captures/inbox.md"


def edit_note(
    ctx: OpContext, path: str, surgery: Callable[[Optional[str]], str], if_match: str = "", repeatable: bool = True
) -> Edited:
    """Edit one note as text, byte-exact outside the edit, and tell the catalog.

    surgery: gets the note's text (None when there is no note), returns the new text or raises to refuse.
    Raises what `edit_bytes` and the surgery raise.
    """
    def on_bytes(before: Optional[bytes]) -> bytes:
        with about(path):
            return encode(surgery(None if before is None else decode(before)[0]))

    return edit_bytes(ctx, path, on_bytes, if_match, repeatable)


def edit_bytes(
    ctx: OpContext, path: str, surgery: Callable[[Optional[bytes]], bytes], if_match: str = "",
    repeatable: bool = True,
) -> Edited:
    """Like `edit_note`, on bytes; an edit that an earlier run of the op has made is not made again.

    if_match: a version the file must have. repeatable: False when the edit, made again on what somebody else wrote
    meanwhile, could undo that. Raises what `echo_core.vault.base.edit` raises.
    """
    # The catalog hears of it before anybody can write again, so it never takes an older text for the newest.
    with ctx.vault.exclusive(path):
        resumed = ctx.resumed if ctx.resumed is not None and ctx.resumed.wrote(path) else None
        made = resumed.edited(path, surgery, read_bytes(ctx, path), repeatable) if resumed else None
        if made is not None:
            return made
        edited = edit(ctx.vault, path, surgery, if_match)
        if edited.changed:
            ctx.catalog.touch(path, edited.after)
    # What the earlier run left counts as changed now: the steps after it are due.
    return Edited(None, edited.after) if resumed and not edited.changed else edited


def move_file(ctx: OpContext, source: str, target: str) -> None:
    """Move a file and tell the catalog; what an earlier run of the op did of it is not done again.

    Raises Conflict when the target is taken, NotFound when the source is not there, and vault errors.
    """
    with ctx.vault.exclusive(source, target):
        here = read_bytes(ctx, source) if ctx.resumed else None
        there = read_bytes(ctx, target) if ctx.resumed else None
        if there is None:
            ctx.vault.move(source, target)
        elif here == there:
            ctx.vault.delete(source, here)  # cut off between the copy and the deletion
        elif here is not None:
            raise Conflict(f"both {source} and {target} are there", hint="Look at both, then retry or drop the write.",
                           path=target, version=version_of(there))
        ctx.catalog.forget(source)
        ctx.catalog.touch(target, ctx.vault.read(target))


@contextlib.contextmanager
def about(path: str) -> Iterator[None]:
    """What is found wrong with a note's text, which knows no path, is answered with the note's path."""
    try:
        yield
    except (InvalidTarget, MalformedNote) as failure:
        failure.data["path"] = failure.data.get("path") or path
        raise


def must_exist(path: str, text: Optional[str], ctx: OpContext) -> str:
    """The text, or NotFound with the nearest notes: edits never create a note by accident."""
    if text is None:
        raise NotFound(
            f"there is no note {path}", hint="Use one of the candidates, or echo_capture to create it.",
            path=path, candidates=ctx.names.candidates(path),
        )
    return text


def refuse_unportable(path: str, field: str, ctx: OpContext) -> None:
    """InvalidPath when a file made at `path` would have a name, or need a folder, that some system cannot hold.

    Folders that are there already are nobody's choice any more. ctx: refreshed.
    """
    folders = ctx.catalog.folders()
    there = parent(path)
    while there and there not in folders:
        there = parent(there)
    why = unportable(path[len(there) + 1:] if there else path)
    if why:
        raise InvalidPath(
            f"{field} {why}", field=field,
            hint='Choose a name without : * ? " < > |, without a dot or space at its end, and none like CON or AUX.',
        )


def read_text(ctx: OpContext, path: str) -> Optional[str]:
    """The note's text, or None when there is no note."""
    data = read_bytes(ctx, path)
    return None if data is None else decode(data)[0]


def read_bytes(ctx: OpContext, path: str) -> Optional[bytes]:
    """The file's bytes, or None when there is none."""
    try:
        return ctx.vault.read(path)
    except NotFound:
        return None


def notes_in(ctx: OpContext, folder: str) -> List[str]:
    """The paths of the notes directly in `folder`, in name order; none when there is no such folder."""
    try:
        names = ctx.vault.list_folder(folder).files
    except NotFound:
        return []
    return [f"{folder}/{name}" for name in names if name.endswith(".md")]


def diff_of(path: str, before: Optional[str], after: str) -> str:
    """Unified diff of a note, `--- a/path` to `+++ b/path`; /dev/null stands for a note that does not exist."""
    source = "/dev/null" if before is None else f"a/{path}"
    lines = difflib.unified_diff(
        displayable(before or "").splitlines(keepends=True), displayable(after).splitlines(keepends=True),
        source, f"b/{path}",
    )
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def tried(would: str, path: str, before: Optional[str], after: str, **fields: Any) -> Envelope:
    """The answer to a dry run of one note: `action` preview with `would`, or unchanged; and the exact diff."""
    shown = ok("unchanged") if after == before else preview(would)
    return {**shown, **ok(path=path, dry_run=True, diff=diff_of(path, before, after), **fields)}


def line_under(text: str, heading: str, line: str, level: int = 2) -> str:
    """`text` with `line` appended under `heading` (made at the end when missing); unchanged when it stands there.

    For sections of ECHO's own: of several with the title, as two devices make them, the last one takes the line.
    """
    own = [found for found in headings(text) if found.title == heading]
    if any(has_line(text, line, section) for section in own):
        return text
    try:
        section = own[-1] if own else find_heading(text, heading)
    except InvalidTarget as failure:
        if failure.data.get("candidates"):
            raise
        return insert_heading(text, heading, level, line)
    return text if has_line(text, line, section) else append_text(text, line, section)


def log_in_day_note(ctx: OpContext, text: str) -> str:
    """Add `- HH:MM text` to today's agent log, making the day note when it is missing. Returns its path.

    Calls that wait for each other here are served by one edit.
    """
    day = ctx.clock.day()
    path = DAY_NOTES.format(day=day)
    line = f"- {ctx.clock.minute()} {text}"

    def write(lines: List[str]) -> None:
        edit_note(ctx, path, lambda before: _with_log_lines(before, day, lines))

    # A lookalike of this vault, for a preview, has a queue of its own.
    ctx.day_lines.serve((ctx.vault, path), line, write)
    return path


def _with_log_lines(text: Optional[str], day: str, lines: List[str]) -> str:
    """The day note with the lines in its agent log."""
    rest = lines
    if text is None:
        meta = {"type": "daily", "title": day, "created": day, "date": day, "agent_written": True}
        text, rest = new_note(meta, day, f"## {AGENT_LOG}\n\n{lines[0]}\n", []), lines[1:]
    for line in rest:
        text = line_under(text, AGENT_LOG, line)
    return text


def index_notes(ctx: OpContext, paths: List[str], gone: Optional[List[str]] = None) -> List[str]:
    """Bring the index entries of `paths` up to date and drop those of `gone`; returns warnings.

    Notes outside the kinds of the layout have no entry. When somebody holds the advisory lock the note stays
    written and the entry follows with the next index write (spec 2.6); resolution does not depend on it. Calls that
    wait for each other are served by one write: whoever comes first enters the notes of all.
    """
    own = {path for path in paths if is_entity(path)}
    pending = ctx.index.pending
    pending.update(own)
    entered: Set[str] = set()

    def change(index: EntityIndex) -> None:
        for path in gone or []:
            index.remove_path(path)
        entered.clear()
        entered.update(pending, own)  # another call may have entered an older state of ours
        for path in sorted(entered):
            _put_entry(ctx, index, path)

    try:
        ctx.index.update(change)
    except LockHeld as held:
        pending.update(own)
        if ctx.running is not None:
            ctx.running.late = True
        return [f"the index is locked by {held.holder} until {held.expires}; its entry follows with the next write"]
    pending.difference_update(entered)
    return []


def _put_entry(ctx: OpContext, index: EntityIndex, path: str) -> None:
    record = ctx.catalog.record(path)
    try:
        # Time 0 marks bytes that we have just written ourselves: behind an API another read is a round trip.
        own = record is not None and record.mtime_ns == 0 and record.version
        found = record.facts if record is not None and own else facts(path, decode(ctx.vault.read(path))[0])
    except NotFound:
        index.remove_path(path)
        return
    index.put_path(path, Entry(
        aliases=list(found.aliases), kind=kind_of(path), path=path, title=found.title, updated=found.updated,
    ))


def preview_token(tool: str, parts: Any) -> str:
    """A token that stands for a preview: it changes when the proposals or the bytes the plan read change."""
    canonical = json.dumps([tool, parts], sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()[:24]
