"""What the operator is working on now: reading the scope and switching it (spec 2.1, 2.7, 3.2)."""
from __future__ import annotations

from typing import Any, List, NamedTuple, Optional

from echo_context import Envelope, OpContext, bounded, ok
from echo_core import frontmatter, markdown
from echo_core.catalog.notebytes import displayable
from echo_core.errors import InvalidArgument, InvalidTarget, MalformedNote
from echo_core.guards import refuse_active_content, refuse_secrets
from echo_core.kinds import SCOPE
from echo_core.markdown.lines import TEXT
from echo_core.markdown.scan import scan_fragment
from echo_core.text import one_line
from echo_core.vault.base import version_of
from echo_edits import edit_note, read_text
from echo_session_logs import SessionLog, count_after, instant_of, session_logs
from echo_starters import starter_text

SECTION = "Scope"
HISTORY = "Scope History"
SHOWN_CHARS = 2000
"""Longest scope an answer shows."""


class Scope(NamedTuple):
    """The scope as the vault states it. updated: its instant as written, "" for none. warnings: for the caller."""

    text: str
    updated: str
    warnings: List[str]


def scope_show_op(*, ctx: OpContext) -> Envelope:
    """`scope`, `scope_updated` and `sessions_since`, the session logs that are younger than the scope.

    Without a readable `scope_updated` all logs count. A note whose frontmatter does not parse is answered from its
    `## Scope` section, with a warning. Raises vault errors.
    """
    scope = read_scope(ctx)
    hint = None if scope.text else "No scope is set. Ask the operator what they work on, then call echo_set_scope."
    since = sessions_since(scope, session_logs(ctx), ctx)
    return ok(
        **bounded("scope", displayable(scope.text), SHOWN_CHARS), scope_updated=displayable(scope.updated),
        sessions_since=since, hint=hint, warnings=scope.warnings,
    )


def scope_set_op(scope: str, *, ctx: OpContext) -> Envelope:
    """Make `scope` the current one; the old one moves to the top of the scope history.

    One edit of one note: frontmatter, `## Scope` and `## Scope History` change together or not at all. `action`
    updated, or unchanged when it is the scope already. Raises InvalidArgument, SecretSuspected, ActiveContent,
    InvalidTarget (two such headings), MalformedNote, Conflict and vault errors.
    """
    wanted = checked_scope(scope, ctx)
    previous: Optional[Scope] = None

    def surgery(before: Optional[str]) -> str:
        nonlocal previous
        text = starter_text(SCOPE, ctx.clock, ctx.owner) if before is None else before
        block = frontmatter.parse(text)
        if block.malformed:
            raise MalformedNote(
                f"the frontmatter of {SCOPE} does not parse", hint="Repair the note by hand, then set the scope again.",
                path=SCOPE, line=block.malformed.line, column=block.malformed.column,
            )
        previous = _scope_of(text)
        return text if _stated(text) == wanted else _switched(text, wanted, ctx)

    edited = edit_note(ctx, SCOPE, surgery, repeatable=False)
    assert previous is not None
    old = bounded("previous", displayable(previous.text), SHOWN_CHARS) if edited.changed else {}
    return ok(
        "updated" if edited.changed else "unchanged", path=SCOPE, scope=wanted,
        scope_updated=ctx.clock.instant() if edited.changed else previous.updated,
        version=version_of(edited.after), **old,
    )


def checked_scope(scope: str, ctx: OpContext, name: str = "scope") -> str:
    """The scope as one line. Raises InvalidArgument, SecretSuspected and ActiveContent naming `name`."""
    wanted = one_line(scope)
    if not wanted:
        raise InvalidArgument(f"{name} is empty", hint="Say in one line what the operator works on.", field=name)
    if not ctx.allow_secrets:
        refuse_secrets(wanted, name)
    refuse_active_content(wanted, name)
    return wanted


def read_scope(ctx: OpContext) -> Scope:
    """The current scope, empty when no note or no scope is there. Raises vault errors."""
    text = read_text(ctx, SCOPE)
    return Scope("", "", []) if text is None else _scope_of(text)


def sessions_since(scope: Scope, logs: List[SessionLog], ctx: OpContext) -> int:
    """How many of the session logs are later than the scope."""
    since = instant_of(scope.updated, ctx) if scope.updated else None
    return len(logs) if since is None else count_after(logs, since, ctx)


def _scope_of(text: str) -> Scope:
    block = frontmatter.parse(text)
    warnings = []
    if block.malformed:
        where = f"line {block.malformed.line}, column {block.malformed.column}"
        warnings.append(f"the frontmatter of {SCOPE} does not parse at {where}; the scope is read from its section")
    return Scope(
        _stated(text) or one_line(_section(text)), _scalar(block.values.get("scope_updated")), warnings,
    )


def _stated(text: str) -> str:
    """The scope that the frontmatter states, "" for none."""
    return _scalar(frontmatter.parse(text).values.get("scope"))


def _scalar(value: Any) -> str:
    return "" if value is None or isinstance(value, (list, dict)) else one_line(str(value))


def _section(text: str) -> str:
    """The own content of `## Scope`, "" when there is no such heading or several."""
    try:
        heading = markdown.find_heading(text, SECTION)
    except InvalidTarget:
        return ""
    return text[heading.content_start:heading.direct_end].strip()


def _switched(text: str, wanted: str, ctx: OpContext) -> str:
    """The note with the new scope in all its places; what stood there before goes to the history."""
    old = _stated(text)
    by_hand = one_line(_section(text))
    text = frontmatter.set_key(text, "scope", wanted)
    text = frontmatter.set_key(text, "scope_updated", ctx.clock.instant())
    text = _with_section(text, SECTION, "replace", _as_paragraph(wanted))
    # What somebody wrote into the section by hand goes to the history too: it would be lost otherwise.
    for past in (old, "" if by_hand in (_as_paragraph(old), _as_paragraph(wanted)) else by_hand):
        text = _with_history(text, past, ctx) if past else text
    return text


def _with_history(text: str, past: str, ctx: OpContext) -> str:
    line = f"- {ctx.clock.instant()}: {past}"
    try:
        if markdown.has_line(text, line, markdown.find_heading(text, HISTORY)):
            return text
    except InvalidTarget as failure:
        if failure.data.get("candidates"):
            raise
    return _with_section(text, HISTORY, "prepend", line)


def _with_section(text: str, title: str, operation: str, content: str) -> str:
    """`content` in the section `title`, which is made at the end when it is missing."""
    try:
        heading = markdown.find_heading(text, title)
    except InvalidTarget as failure:
        if failure.data.get("candidates"):
            raise
        return markdown.insert_heading(text, title, 2, content)
    return markdown.edit_section(text, heading, operation, content)


def _as_paragraph(scope: str) -> str:
    """The scope as a line of text, escaped where Markdown would read a heading, fence, rule or HTML."""
    lines = scan_fragment(scope)
    return scope if lines and lines[0].kind == TEXT else f"\\{scope}"
