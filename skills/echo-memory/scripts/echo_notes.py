"""Which note a reference means, and reading that note: get_note (spec 3.2)."""
from __future__ import annotations

import json
import unicodedata
from typing import Any, Dict, List

from echo_context import Envelope, OpContext, ok
from echo_core import frontmatter, markdown
from echo_core.catalog.note import facts
from echo_core.catalog.notebytes import decode, displayable
from echo_core.errors import InvalidArgument, InvalidPath, NotFound
from echo_core.names import Match
from echo_core.paths import check_path, check_reference, is_note
from echo_core.text import shorten, suspicious_unicode
from echo_core.vault.base import version_of
from echo_edits import about

FRONTMATTER_CHARS = 4000
"""Longest frontmatter, as JSON, that get_note answers with."""
SLACK = 10_000
"""Characters behind `max_chars` that are looked at to choose where to cut."""
LIST_ITEMS = 100
"""Most headings, links and backlinks that get_note answers with, each."""


def get_note_op(path: str, section: str = "", max_chars: int = 8000, *, ctx: OpContext) -> Envelope:
    """One note, always from one fresh read of the vault.

    section: a heading (leaf name when unique, or `A::B`); then only that section with its sub-sections.
    max_chars: longest `content` in characters. Raises NotFound, Ambiguous, InvalidTarget and vault errors.
    """
    ctx.fresh()
    found = resolve_note(path, ctx)
    data = ctx.vault.read(found)
    text, valid = decode(data)
    block = frontmatter.parse(text)
    content = text
    if section:
        with about(found):
            content = markdown.section_text(text, markdown.find_heading(text, section))
    shown, truncated = shorten(displayable(content[:max_chars + SLACK]), max_chars)
    answer = ok(
        path=found, content=shown, quoted=True, version=version_of(data), section=section or None,
        truncated=truncated or None, total_chars=len(content),
        valid_utf8=None if valid else False, suspicious_unicode=suspicious_unicode(content) or None,
    )
    answer.update(_surroundings(found, text, str(answer["version"]), ctx))
    answer.update(_bounded_frontmatter(block))
    _add_warnings(answer, _reading_warnings(found, block, valid, ctx))
    return answer


def resolve_note(ref: str, ctx: OpContext, field: str = "path") -> str:
    """The path of the one note that `ref` means exactly: path, slug, title or declared alias.

    A path the catalog does not know yet is looked up in the vault. field: the argument `ref` came in. Raises
    NotFound or Ambiguous with candidates, and InvalidPath for what is neither a name here nor a path.
    """
    ref = check_reference(ref, field)
    try:
        wanted = check_path(ref, field)
    except InvalidPath:
        if not _is_title(ref, ctx):
            raise
        return ctx.names.exact(ref)
    try:
        return ctx.names.exact(wanted)
    except NotFound:
        for candidate in (wanted, f"{wanted}.md"):
            if is_note(candidate) and _is_there(candidate, ctx):
                return candidate
        raise


def _is_title(ref: str, ctx: OpContext) -> bool:
    """Whether some note declares exactly this name; what is no path gets no forgiveness beyond case."""
    meant = ctx.names.resolve(ref)
    if isinstance(meant, Match):
        titles = [meant.title, *meant.aliases]
    else:
        titles = [row["title"] for row in meant.candidates] if meant else []
    return ref.casefold() in {unicodedata.normalize("NFC", title).casefold() for title in titles}


def _is_there(path: str, ctx: OpContext) -> bool:
    """Whether the vault holds a note of exactly this path; a look-alike in other case is not enough."""
    try:
        return ctx.vault.stat(path).path == path
    except NotFound:
        return False


def writable_note(ref: str, ctx: OpContext, field: str = "path") -> str:
    """Like `resolve_note`, for a write: the path must be a Markdown note. Raises InvalidPath otherwise."""
    found = resolve_note(ref, ctx, field)
    if not is_note(found):
        raise InvalidPath(f"{found} is not a Markdown note", hint="Only .md notes are edited.", field=field)
    return found


def _surroundings(path: str, text: str, version: str, ctx: OpContext) -> Dict[str, Any]:
    record = ctx.catalog.record(path)
    found = record.facts if record is not None and record.version == version else facts(path, text)
    lists = {
        "headings": found.headings,
        "links": list(dict.fromkeys(found.links)),
        "backlinks": sorted(ctx.catalog.backlinks(path)),
    }
    answer: Dict[str, Any] = {}
    for name, items in lists.items():
        shown = [shorten(displayable(item), 200) for item in items[:LIST_ITEMS]]
        answer[name] = [text for text, _ in shown]
        if len(items) > LIST_ITEMS:
            answer[f"{name}_total"] = len(items)
        if len(items) > LIST_ITEMS or any(cut for _, cut in shown):
            answer["truncated"] = True
    return answer


def _bounded_frontmatter(block: frontmatter.Frontmatter) -> Dict[str, Any]:
    """`frontmatter` with long values cut and marked, so that one huge value cannot blow the answer up."""
    answer: Dict[str, Any] = {}
    room = FRONTMATTER_CHARS
    for key, value in block.values.items():
        size = len(json.dumps([key, value], ensure_ascii=False, default=str))
        if size > room:
            return {"frontmatter": answer, "frontmatter_truncated": True}
        answer[displayable(key)] = json.loads(displayable(json.dumps(value, ensure_ascii=False, default=str)))
        room -= size
    return {"frontmatter": answer}


def _reading_warnings(
    path: str, block: frontmatter.Frontmatter, valid: bool, ctx: OpContext
) -> List[str]:
    warnings = route_warnings(path, ctx)
    if block.malformed:
        problem = block.malformed
        warnings.append(f"the frontmatter does not parse at line {problem.line}, column {problem.column}")
    if not valid:
        warnings.append("the note is not valid UTF-8; odd bytes are shown as replacement characters")
    return warnings


def route_warnings(path: str, ctx: OpContext) -> List[str]:
    """What the route map says against this place; a map that is broken says so and stops nothing."""
    try:
        routes = ctx.routes()
    except InvalidArgument as broken:  # a broken map is somebody's to repair, and no reason to leave work undone
        return [f"the route map could not be asked: {broken.message}"]
    retired = routes.retired(path)
    if retired:
        return [f"{path} lies in a retired place; use {retired.instead}"]
    return [] if routes.match(path) else [f"{path} lies outside the route map"]


def _add_warnings(answer: Envelope, warnings: List[str]) -> None:
    if warnings:
        answer["warnings"] = list(answer.get("warnings", [])) + warnings
