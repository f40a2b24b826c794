"""What the rollup of a week or month is written from: threads, inbox, scope history, sessions, decisions (spec 3.2)."""
from __future__ import annotations

import re
from datetime import date as Day
from typing import Any, Dict, List, Optional, Tuple

from echo_context import Envelope, OpContext, bounded, ok
from echo_core import markdown
from echo_core.catalog.note import NoteFacts, facts
from echo_core.catalog.notebytes import decode, displayable
from echo_core.clock import Period, parse_day, period_of
from echo_core.errors import EchoError, InvalidArgument, InvalidTarget, NotFound
from echo_core.kinds import SCOPE
from echo_core.text import one_line, plural
from echo_edits import notes_in, read_text
from echo_inbox import aging, read_items, shown
from echo_scope import HISTORY, read_scope
from echo_session_logs import instant_of, session_logs

ACTIVE = "projects/active"
DECISIONS = "decisions/by-date"
LIST_ITEMS = 50
"""Most items of each list."""
STATUS_CHARS = 600
TITLE_CHARS = 200
"""Longest `## Status` of one project."""

_HISTORY_LINE = re.compile(r"[-*+][ \t]+(\d{4}-\d{2}-\d{2}(?:[T ][\d:]+(?:Z|[+-]\d{2}:?\d{2})?)?):[ \t]+(.+)")
_DATED_NAME = re.compile(r"(\d{4}-\d{2}-\d{2})-.+\.md")


def rollup_data_op(period: str, date: Optional[str] = "", *, ctx: OpContext) -> Envelope:
    """The material of the week or month that holds `date` (default today); the prose is the caller's.

    `period` (its name), `first` and `last` day, `path` where its rollup belongs and whether it `exists`, and
    `projects, inbox, scope_history, sessions, decisions`, each at most LIST_ITEMS items, cuts flagged. A note that
    cannot be read is named in `warnings`. Raises InvalidArgument and vault errors.
    """
    span = _period(period, parse_day(date, "date") if date else ctx.clock.today())
    path = f"journal/{span.folder}/{span.name}.md"
    warnings: List[str] = []
    lists = {
        "projects": _projects(ctx, warnings),
        "inbox": [shown(item, ctx.clock.today()) for item in aging(read_items(ctx), ctx.clock.today())],
        "scope_history": _scope_history(span, ctx),
        "sessions": _sessions(span, ctx, warnings),
        "decisions": _decisions(span, ctx, warnings),
    }
    answer = ok(
        period=span.name, first=span.first.isoformat(), last=span.last.isoformat(), path=path,
        exists=read_text(ctx, path) is not None, scope=displayable(read_scope(ctx).text),
    )
    for name, items in lists.items():
        answer[name] = items[:LIST_ITEMS]
        if len(items) > LIST_ITEMS:
            answer.update({"truncated": True, f"{name}_total": len(items)})
    if warnings:
        answer["warnings"] = warnings
    return answer


def _period(kind: str, day: Day) -> Period:
    try:
        return period_of(kind, day)
    except OverflowError:
        raise InvalidArgument("date lies in a period that the calendar does not hold whole", field="date") from None


def _projects(ctx: OpContext, warnings: List[str]) -> List[Dict[str, Any]]:
    """Active projects with their `## Status`, the longest untouched first."""
    rows = [_project(path, text) for path, text in _notes(ctx, notes_in(ctx, ACTIVE), warnings)]
    return sorted(rows, key=lambda row: (row["updated"], row["path"]))


def _project(path: str, text: str) -> Dict[str, Any]:
    found = facts(path, text)
    status = bounded("status", displayable(_section(text, "Status")), STATUS_CHARS)
    return {**_named(found), "updated": displayable(found.updated), **status}


def _section(text: str, title: str) -> str:
    """The section's content with its sub-sections, "" when there is no such heading or several."""
    try:
        heading = markdown.find_heading(text, title)
    except InvalidTarget:
        return ""
    return text[heading.content_start:heading.end].strip()


def _scope_history(span: Period, ctx: OpContext) -> List[Dict[str, Any]]:
    """Entries of `## Scope History` in the period, newest first: `{at, scope}`; `at` as written."""
    rows = []
    for line in _section(read_text(ctx, SCOPE) or "", HISTORY).splitlines():
        match = _HISTORY_LINE.fullmatch(line.strip())
        at = instant_of(match.group(1), ctx) if match else None
        if match and at and span.holds(at.date()):
            rows.append({"at": match.group(1), **bounded("scope", displayable(match.group(2)), STATUS_CHARS)})
    return rows


def _sessions(span: Period, ctx: OpContext, warnings: List[str]) -> List[Dict[str, Any]]:
    """Session logs of the period, oldest first: `{path, title, at}`."""
    logs = {log.path: log for log in session_logs(ctx) if span.holds(log.day)}
    return [
        {**_named(facts(path, text)), "at": logs[path].at(ctx).isoformat(timespec="minutes")}
        for path, text in _notes(ctx, list(logs), warnings)
    ]


def _decisions(span: Period, ctx: OpContext, warnings: List[str]) -> List[Dict[str, Any]]:
    """Decisions of the period, oldest first: `{path, title, date}`."""
    days = {path: _day_of(path) for path in notes_in(ctx, DECISIONS)}
    wanted = [path for path, day in days.items() if day is not None and span.holds(day)]
    return [
        {**_named(facts(path, text)), "date": path.rpartition("/")[2][:10]}
        for path, text in _notes(ctx, wanted, warnings)
    ]


def _day_of(path: str) -> Optional[Day]:
    match = _DATED_NAME.fullmatch(path.rpartition("/")[2])
    try:
        return Day.fromisoformat(match.group(1)) if match else None
    except ValueError:
        return None


def _named(found: NoteFacts) -> Dict[str, Any]:
    return {"path": found.path, **bounded("title", displayable(one_line(found.title)), TITLE_CHARS)}


def _notes(ctx: OpContext, paths: List[str], warnings: List[str]) -> List[Tuple[str, str]]:
    """`(path, text)` of each note that can be read; the others are named in `warnings`."""
    found = []
    for path in paths:
        try:
            found.append((path, decode(ctx.vault.read(path))[0]))
        except NotFound:
            continue  # gone since it was listed
        except EchoError as failure:
            ctx.vault.check()
            warnings.append(f"{path} could not be read ({failure.code})")
    if len(warnings) > 10:
        warnings[10:] = [f"and {plural(len(warnings) - 10, 'more note')}"]
    return found
