"""Editing one note: append a line, patch a section, frontmatter key or block (spec 3.2)."""
from __future__ import annotations

import json
from typing import Any, List, Optional, Tuple

from echo_context import Envelope, OpContext, bounded, ok
from echo_core import frontmatter, markdown
from echo_core.catalog.note import facts
from echo_core.catalog.notebytes import decode
from echo_core.errors import InvalidArgument, InvalidTarget
from echo_core.guards import refuse_secrets
from echo_core.kinds import is_entity
from echo_core.vault.base import require_version, version_of
from echo_edits import about, diff_of, edit_note, index_notes, must_exist, tried
from echo_notes import route_warnings, writable_note

DIFF_CHARS = 4000
"""Longest diff of an edit that was made; that of a dry run is as long as it is."""


def append_op(path: str, line: str, section: str = "", if_match: str = "", *, ctx: OpContext) -> Envelope:
    """Add one line at the end of a note or of one section, once.

    Returns `path, version, line` (1-based number of the line) and `action` appended or unchanged. Creates
    nothing. Raises NotFound, Ambiguous, InvalidTarget, Conflict, SecretSuspected and vault errors.
    """
    _refuse_structure(line)
    if not ctx.allow_secrets:
        refuse_secrets(line, "line")
    ctx.fresh()
    found = writable_note(path, ctx)

    def surgery(text: Optional[str]) -> str:
        note = must_exist(found, text, ctx)
        place = markdown.find_heading(note, section) if section else None
        return note if markdown.has_line(note, line, place) else markdown.append_text(note, line, place)

    edited = edit_note(ctx, found, surgery, if_match)
    return ok(
        "appended" if edited.changed else "unchanged", path=found, version=version_of(edited.after),
        line=_line_number(decode(edited.after)[0], line),
        warnings=route_warnings(found, ctx),
    )


def patch_op(
    path: str, operation: str, target_type: str, target: str, content: Any, create: bool = False,
    if_match: str = "", dry_run: bool = False, *, ctx: OpContext,
) -> Envelope:
    """Change one section, frontmatter key or block of a note; every other byte stays.

    operation: append, prepend or replace. target_type: heading, frontmatter or block. content: text, for
    frontmatter also number, boolean, list or null (removes the key). create: add a missing heading.
    Returns `path, version, diff` and `action` patched or unchanged; with `dry_run` preview or unchanged, and nothing
    is written. Raises NotFound, Ambiguous,
    InvalidTarget (with the real headings), MalformedNote, Conflict, InvalidArgument and vault errors.
    """
    _check_content(operation, target_type, content)
    if not ctx.allow_secrets:
        refuse_secrets(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False), "content")
    ctx.fresh()
    found = writable_note(path, ctx)

    def surgery(text: Optional[str]) -> str:
        return _patched(must_exist(found, text, ctx), operation, target_type, target, content, create)

    warnings = route_warnings(found, ctx)
    if dry_run:
        before = ctx.vault.read(found)
        require_version(found, before, if_match) if if_match else None
        old = decode(before)[0]
        with about(found):
            return tried("patch", found, old, surgery(old), version=version_of(before), warnings=warnings)
    edited = edit_note(ctx, found, surgery, if_match, repeatable=operation != "replace")
    old, new = decode(edited.before or b"")[0], decode(edited.after)[0]
    if edited.changed and is_entity(found) and _names_changed(found, old, new):
        warnings += index_notes(ctx, [found])
    return ok("patched" if edited.changed else "unchanged", path=found, version=version_of(edited.after),
              warnings=warnings, **bounded("diff", diff_of(found, old, new), DIFF_CHARS))


def _patched(text: str, operation: str, target_type: str, target: str, content: Any, create: bool) -> str:
    if target_type == "frontmatter":
        return _patched_key(text, operation, target, content)
    if target_type == "block":
        return markdown.edit_block(text, target, operation, content)
    try:
        heading = markdown.find_heading(text, target)
    except InvalidTarget as failure:
        if not create or failure.data.get("candidates"):
            raise
        return _with_new_heading(text, target, content)
    if operation == "append" and _stands_there(text, heading, content):
        return text
    return markdown.edit_section(text, heading, operation, content)


def _patched_key(text: str, operation: str, key: str, content: Any) -> str:
    _check_shape(text, operation, key, content)
    if operation == "replace":
        return frontmatter.set_key(text, key, content)
    items = content if isinstance(content, list) else [content]
    if operation == "append":
        return frontmatter.add_items(text, key, items)
    old = frontmatter.parse(text).values.get(key, [])
    kept = old if isinstance(old, list) else [old]
    return frontmatter.set_key(text, key, [item for item in items if item not in kept] + kept)


TEXT_KEYS = frozenset({"type", "title", "status", "created", "updated", "date", "domain", "agent_written"})
"""Keys of the format that hold one value (spec 2.2)."""


def _check_shape(text: str, operation: str, key: str, content: Any) -> None:
    """Refuse a list where one value stands, and one value in place of a list, naming the wanted shape (spec 2.2)."""
    old = frontmatter.parse(text).values.get(key)
    if key in TEXT_KEYS and (isinstance(content, list) or operation != "replace"):
        raise InvalidArgument(f"{key} holds one value, not a list", hint="Use replace with text.", field="content",
                              wanted="text")
    if operation == "replace" and isinstance(old, list) and content is not None and not isinstance(content, list):
        raise InvalidArgument(f"{key} holds a list", field="content", wanted="list",
                              hint="Replace it with a list, or append one item.")


def _with_new_heading(text: str, target: str, content: str) -> str:
    """A new section: at the end of the section that `A::B::New` names before it, else at the end of the note."""
    above, _, name = target.rpartition("::")
    parent = markdown.find_heading(text, above) if above.strip() else None
    level, title = _new_heading(target)
    if parent is not None and "#" not in name:
        level = min(6, parent.level + 1)
    return markdown.insert_heading(text, title, level, content, parent)


def _new_heading(target: str) -> Tuple[int, str]:
    """Level and title for a heading that is made: `### A` gives 3, `A::B::C` its depth, a plain name 2."""
    parts = [part.strip() for part in target.split("::")]
    hashes = len(parts[-1]) - len(parts[-1].lstrip("#"))
    title = parts[-1].lstrip("#").strip()
    if not title:
        raise InvalidArgument("target names no heading", hint="Give the heading's text.", field="target")
    return min(6, hashes or max(2, len(parts))), title


def _stands_there(text: str, heading: markdown.Heading, content: str) -> bool:
    """Whether the section's last own lines are `content` already: the same append twice is one append."""
    own = _lines(text[heading.content_start:heading.end])
    wanted = _lines(content)
    return any(own[at:at + len(wanted)] == wanted for at in range(len(own) - len(wanted) + 1)) if wanted else True


def _lines(text: str) -> List[str]:
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return lines


def _check_content(operation: str, target_type: str, content: Any) -> None:
    if target_type == "frontmatter":
        if operation != "replace" and content in (None, ""):
            raise InvalidArgument(f"{operation} needs content", hint="null removes a key with replace.",
                                  field="content")
        return
    if not isinstance(content, str):
        raise InvalidArgument(f"content for a {target_type} must be text", hint="Send Markdown.", field="content")
    if not content.strip() and operation != "replace":
        raise InvalidArgument(f"{operation} needs content", hint="Only replace may empty a section.",
                              field="content")


def _refuse_structure(line: str) -> None:
    """A line of only dashes or equals signs would turn the line above it into a heading."""
    if set(line.strip()) <= {"-"} or set(line.strip()) <= {"="}:
        raise InvalidArgument("line is a rule, which can turn the line above into a heading",
                              hint="Use echo_patch_note for structure.", field="line")


def _line_number(text: str, line: str) -> Optional[int]:
    wanted = line.strip()
    numbered = enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1)
    return next((number for number, found in numbered if found.strip() == wanted), None)


def _names_changed(path: str, old: str, new: str) -> bool:
    before, after = facts(path, old), facts(path, new)
    return (before.title, before.aliases, before.updated) != (after.title, after.aliases, after.updated)
