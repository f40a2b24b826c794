"""The health note of a month, `_agent/health/2026-11-vault-health.md`: what the last sweep found (spec 3.4)."""
from __future__ import annotations

import re
from typing import AbstractSet, Dict, List, Optional, Sequence

from echo_context import OpContext
from echo_core import frontmatter, markdown
from echo_core.catalog.note import new_note
from echo_core.errors import InvalidTarget
from echo_core.lint import FAST_CHECKS
from echo_edits import edit_note, read_text

FOLDER = "_agent/health"
HEADING = "Findings"
NOTHING = "Nothing found."
MOST = 500
"""Most findings that the note lists."""

_LINE = re.compile(r"- ([a-z-]+): `([^`]*)`: .*")


def health_path(ctx: OpContext) -> str:
    """The path of this month's health note."""
    return f"{FOLDER}/{ctx.clock.month()}-vault-health.md"


def write_findings(findings: Sequence[Dict[str, str]], looked_at: Optional[AbstractSet[str]], ctx: OpContext) -> bool:
    """Bring the note's list of findings up to date; written only when the list changes. Returns whether it did.

    looked_at: the notes a fast sweep looked at; what earlier sweeps found in other notes, or by other checks,
    stays. None: everything was looked at. A vault without findings gets no note.
    """
    path = health_path(ctx)
    lines = [_line(finding) for finding in findings]
    before = read_text(ctx, path)
    if looked_at is not None:
        lines += [line for line in _lines_of(before) if line not in lines and _stays(line, looked_at, ctx)]
    if before is None and not lines:
        return False
    content = "\n".join(_bounded(sorted(lines))) or NOTHING
    return edit_note(ctx, path, lambda text: _with_findings(text, content, ctx)).changed


def _with_findings(text: Optional[str], content: str, ctx: OpContext) -> str:
    """The note with its findings replaced; what a person wrote under other headings stays."""
    day = ctx.clock.day()
    if text is None:
        title = f"Vault Health {ctx.clock.month()}"
        meta = {"type": "health", "title": title, "created": day, "updated": day, "agent_written": True}
        return new_note(meta, title, f"## {HEADING}\n\n{content}")
    try:
        edited = markdown.edit_section(text, markdown.find_heading(text, HEADING), "replace", content)
    except InvalidTarget:
        edited = markdown.insert_heading(text, HEADING, 2, content)
    if edited == text or frontmatter.parse(edited).malformed:
        return edited
    return frontmatter.set_key(edited, "updated", day)


def _line(finding: Dict[str, str]) -> str:
    """One finding as a bullet. Path and detail stand in code, so that no link in them becomes a link of this note."""
    return f"- {finding['check']}: {_code(finding['path'])}: {_code(finding['detail'])}"


def _code(text: str) -> str:
    return "`" + text.replace("`", "'") + "`"


def _lines_of(text: Optional[str]) -> List[str]:
    return [line for line in (text or "").splitlines() if _LINE.fullmatch(line)]


def _stays(line: str, looked_at: AbstractSet[str], ctx: OpContext) -> bool:
    """Whether a fast sweep leaves an earlier finding as it is: of another check, or of a note it did not look at."""
    match = _LINE.fullmatch(line)
    if not match or ctx.catalog.facts(match.group(2)) is None:
        return False
    return match.group(1) not in FAST_CHECKS or match.group(2) not in looked_at


def _bounded(lines: List[str]) -> List[str]:
    rest = len(lines) - MOST
    return lines if rest <= 0 else [*lines[:MOST], f"- and {rest} more; `echo.py lint` lists them all"]
