"""The CLI's plain verbs, which are no tools: map, ls, search, put, post, fm, bump, delete (spec 3.3).

They exist for the operator and for scripts. No model gets them: whole-file overwrite and deletion stay with the
person at the keyboard. Every write goes through the same guarded edit as the tools' writes.
"""
from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Tuple

from echo_context import Envelope, OpContext, bounded, ok, preview
from echo_core import frontmatter, markdown
from echo_core.catalog.notebytes import decode, displayable
from echo_core.errors import Conflict, InvalidArgument, InvalidPath, NotFound, VaultError
from echo_core.guards import refuse_active_content, refuse_secrets
from echo_core.kinds import is_entity
from echo_core.paths import check_folder, is_note
from echo_core.text import one_line, plural
from echo_core.vault.base import version_of
from echo_edits import diff_of, edit_note, index_notes, must_exist, read_text, refuse_unportable
from echo_note_edits import DIFF_CHARS
from echo_notes import resolve_note, writable_note

LINE_CHARS = 300
"""Longest line that `search` shows whole."""


def map_op(path: str, *, ctx: OpContext) -> Envelope:
    """What a patch of a note can aim at: `headings` (`A::B`), `blocks` (ids) and `frontmatter` (keys)."""
    ctx.fresh()
    found = resolve_note(path, ctx)
    data = ctx.vault.read(found)
    text = decode(data)[0]
    block = frontmatter.parse(text)
    warnings = []
    if block.malformed:
        warnings.append(f"the frontmatter does not parse at line {block.malformed.line}: {block.malformed.reason}")
    return ok(
        path=found, version=version_of(data), headings=markdown.addresses(markdown.headings(text)),
        blocks=list(markdown.blocks_by_id(text)), frontmatter=list(block.values), warnings=warnings,
    )


def ls_op(folder: str = "", *, ctx: OpContext) -> Envelope:
    """`folders` and `files` directly inside a folder, "" for the vault itself. Raises NotFound."""
    listing = ctx.vault.list_folder(check_folder(folder, "folder"))
    return ok(folder=folder, folders=listing.folders, files=listing.files)


def search_op(text: str, folder: str = "", limit: int = 50, *, ctx: OpContext) -> Envelope:
    """Lines of notes that hold `text`, case ignored, in path order: `hits: [{path, line, text}]`.

    limit: most hits; more are counted in `total`, with `truncated`. `unreadable`: notes that could not be read.
    """
    under = f"{check_folder(folder, 'folder')}/" if folder else ""
    hits: List[Dict[str, Any]] = []
    unreadable: List[str] = []
    total = 0
    for path, line, found in _matching_lines(text.casefold(), under, unreadable, ctx):
        total += 1
        if len(hits) < limit:
            hits.append({"path": path, "line": line, **bounded("text", one_line(displayable(found)), LINE_CHARS)})
    return ok(text=text, hits=hits, total=total, truncated=True if total > len(hits) else None,
              unreadable=unreadable or None)


def _matching_lines(wanted: str, under: str, unreadable: List[str], ctx: OpContext) -> Iterator[Tuple[str, int, str]]:
    for stat in ctx.vault.walk():
        if not is_note(stat.path) or not stat.path.startswith(under):
            continue
        try:
            text = decode(ctx.vault.read(stat.path))[0]
        except NotFound:
            continue
        except VaultError:
            unreadable.append(stat.path)
            continue
        for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
            if wanted in line.casefold():
                yield stat.path, number, line


def put_op(path: str, body: str, replace: bool = False, if_match: str = "", *, ctx: OpContext) -> Envelope:
    """Write a whole note. `body`: its full text, frontmatter included.

    A note that is there is only replaced with `replace`, or with `if_match` naming its version (else Conflict);
    history keeps what it was. Returns `path, version` and `action` created, replaced or unchanged.
    """
    if not is_note(path):
        raise InvalidPath(f"{path} is not a Markdown note", hint="Only .md notes are written.", field="path")
    _refuse(body, "body", ctx)
    ctx.fresh()

    def surgery(before: Optional[str]) -> str:
        if before is None:
            refuse_unportable(path, "path", ctx)
        if before is not None and before != body and not (replace or if_match):
            raise Conflict(
                f"there is already a note {path}", hint="Add --replace to overwrite it, or use append or patch.",
                path=path, version=version_of(ctx.vault.read(path)),
            )
        return body

    edited = edit_note(ctx, path, surgery, if_match)
    warnings = _indexed(path, ctx)
    action = "created" if edited.before is None else "replaced" if edited.changed else "unchanged"
    return ok(action, path=path, version=version_of(edited.after), warnings=warnings)


def post_op(path: str, body: str, section: str = "", *, ctx: OpContext) -> Envelope:
    """Add a block of Markdown at the end of an existing note, or of one section, once.

    Returns `path, version` and `action` appended or unchanged. Raises NotFound, Ambiguous, InvalidTarget.
    """
    if not body.strip():
        raise InvalidArgument("body is empty", field="body")
    _refuse(body, "body", ctx)
    ctx.fresh()
    found = writable_note(path, ctx)

    def surgery(text: Optional[str]) -> str:
        return _with_block(must_exist(found, text, ctx), body, section)

    edited = edit_note(ctx, found, surgery)
    return ok("appended" if edited.changed else "unchanged", path=found, version=version_of(edited.after))


def _with_block(text: str, body: str, section: str) -> str:
    """`text` with the block at its end; unchanged when exactly this block stands there already."""
    if section:
        heading = markdown.find_heading(text, section)
        own = markdown.section_text(text, heading)
        return text if _holds(own, body) else markdown.edit_section(text, heading, "append", body)
    if _holds(text, body):
        return text
    eol = markdown.detect_eol(text)
    block = eol.join(body.replace("\r\n", "\n").replace("\r", "\n").strip("\n").split("\n")) + eol
    if not text:
        return block
    return (text if text.endswith(("\n", "\r")) else text + eol) + block


def _holds(text: str, body: str) -> bool:
    lines, wanted = text.splitlines(), body.strip("\r\n").splitlines()
    return lines[-len(wanted):] == wanted


def fm_op(path: str, key: str = "", value: Any = None, remove: bool = False, *, ctx: OpContext) -> Envelope:
    """Without `key`: the `frontmatter` of a note. With `key`: set it to `value`, or `remove` it.

    Returns `path, version, diff` and `action` patched or unchanged. Raises MalformedNote, NotFound, Ambiguous.
    """
    ctx.fresh()
    if not key:
        found = resolve_note(path, ctx)
        data = ctx.vault.read(found)
        block = frontmatter.parse(decode(data)[0])
        problem = block.malformed
        warnings = [f"the frontmatter does not parse at line {problem.line}: {problem.reason}"] if problem else []
        return ok(path=found, version=version_of(data), frontmatter=block.values, warnings=warnings)
    if value is None and not remove:
        raise InvalidArgument("value is missing", hint="Give a value, or --remove.", field="value")
    if isinstance(value, str):
        _refuse(value, "value", ctx)
    return _set_key(writable_note(path, ctx), key, None if remove else value, ctx)


def bump_op(path: str, *, ctx: OpContext) -> Envelope:
    """Stamp `updated` with today. Returns `path, version, diff` and `action` patched or unchanged."""
    ctx.fresh()
    return _set_key(writable_note(path, ctx), "updated", ctx.clock.day(), ctx)


def _set_key(path: str, key: str, value: Any, ctx: OpContext) -> Envelope:
    edited = edit_note(
        ctx, path, lambda text: frontmatter.set_key(must_exist(path, text, ctx), key, value)
    )
    warnings = _indexed(path, ctx) if edited.changed else []
    old, new = decode(edited.before or b"")[0], decode(edited.after)[0]
    return ok("patched" if edited.changed else "unchanged", path=path, version=version_of(edited.after),
              warnings=warnings, **bounded("diff", diff_of(path, old, new), DIFF_CHARS))


def delete_op(path: str, confirm: bool = False, *, ctx: OpContext) -> Envelope:
    """Delete a note; history keeps its bytes, so `restore` can bring it back.

    Without `confirm`: `action: preview` with `backlinks`, nothing deleted. Raises NotFound, Ambiguous, NoUndo.
    """
    ctx.fresh()
    found = writable_note(path, ctx)
    backlinks = ctx.catalog.backlinks(found)
    warnings = [f"{plural(len(backlinks), 'note')} link to it"] if backlinks else []
    if not confirm:
        must_exist(found, read_text(ctx, found), ctx)
        return preview("delete", path=found, backlinks=backlinks, warnings=warnings,
                       hint="Add --confirm to delete it.")
    with ctx.vault.exclusive(found):
        ctx.vault.delete(found, ctx.vault.read(found))
    ctx.catalog.forget(found)
    warnings += index_notes(ctx, [], gone=[found])
    return ok("deleted", path=found, backlinks=backlinks, warnings=warnings,
              hint="`history` and `restore` with this path bring it back.")


def _refuse(text: str, field: str, ctx: OpContext) -> None:
    if not ctx.allow_secrets:
        refuse_secrets(text, field)
    refuse_active_content(text, field)


def _indexed(path: str, ctx: OpContext) -> List[str]:
    return index_notes(ctx, [path]) if is_entity(path) else []
