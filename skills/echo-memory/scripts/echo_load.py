"""Orientation at the start of a conversation: who the operator is, what they are on, what happened last (spec 3.2)."""
from __future__ import annotations

import json
import sqlite3
from typing import Any, Callable, Dict, List, NamedTuple

from echo_aging import aging_things
from echo_context import Envelope, OpContext, ok
from echo_core import frontmatter, markdown
from echo_core.catalog.notebytes import decode, displayable
from echo_core.errors import EchoError, NotFound, VaultUnreachable
from echo_core.kinds import DAY_NOTES, INBOX, MARKER, PREFERENCES, SCOPE
from echo_core.text import one_line, shorten
from echo_inbox import Item, age_days, read_items
from echo_scope import Scope, read_scope, sessions_since
from echo_session_logs import SessionLog, session_logs

BRIEF_CHARS = 2900
"""Longest brief envelope as JSON. Its text repeats its facts, and both together stay below 6,000 (spec 3.2)."""
WHOLE_CHARS = 8000
"""Longest section of a whole answer."""
SHARES = {"marker": 1, "preferences": 8, "scope": 4, "last_session": 7, "today": 5}
"""How the room of a brief answer is shared out among its texts; what one leaves the others may use."""


class Part(NamedTuple):
    """One text of the answer. path: its note, "" when there is none. tail: its end matters more than its start."""

    text: str
    path: str = ""
    tail: bool = False


def load_op(brief: bool = True, *, ctx: OpContext) -> Envelope:
    """The operator's memory in one answer: `sections`, counts of what waits, and a hint about what to do.

    brief: at most BRIEF_CHARS of JSON whatever the vault's size; otherwise whole notes up to WHOLE_CHARS each.
    A cut is flagged: `truncated`, and `full_chars` with the real length of each cut section. Waiting writes are
    flushed first, unless the context is read-only. A note that cannot be read is named in `warnings`. Raises the
    vault's errors when the vault as a whole cannot be read.
    """
    ctx.vault.check()
    _read_notes(ctx)
    reading = _Reading(ctx)
    parts = reading.brief_parts() if brief else reading.whole_parts()
    if ctx.offline and not any(part.text for part in parts.values()):
        raise VaultUnreachable("the vault is away, and nothing of a load is known", reason="not-kept")
    counts = reading.attempt("the queue", ctx.queue_counts, {"parked": 0, "conflicts": 0})
    answer = ok(
        sections={**dict.fromkeys(parts, ""), **reading.numbers()}, queued_flushed=reading.flushed, offline=False,
        parked=counts["parked"], conflicts=counts["conflicts"], aging=reading.aging(),
    )
    answer.update(ctx.offline_facts())
    hints = reading.hints(answer)
    if hints:
        answer["hint"] = " ".join(hints)
    if reading.warnings:
        answer["warnings"] = reading.warnings[:5]
    _fill(answer, parts, brief)
    return answer


def _read_notes(ctx: OpContext) -> None:
    """Notice a vault that cannot be read as a whole; notes that are still being read hold up no start."""
    try:
        ctx.fresh()
    except VaultUnreachable as failure:
        if failure.data.get("reason") != "starting":
            raise


def _flush(ctx: OpContext) -> int:
    return 0 if ctx.read_only or ctx.flush is None else ctx.flush()


class _Reading:
    """Reads the notes of the answer; one that fails is named in `warnings` and left empty."""

    def __init__(self, ctx: OpContext) -> None:
        self._ctx = ctx
        self.warnings: List[str] = []
        self.bootstrapped = True
        self._scope = Scope("", "", [])
        self.flushed = int(self.attempt("waiting writes", lambda: _flush(ctx), 0))  # before anything is read
        self._items: List[Item] = self.attempt(INBOX, lambda: read_items(ctx), [])
        self._logs: List[SessionLog] = self.attempt("session logs", lambda: session_logs(ctx), [])

    def attempt(self, what: str, read: Callable[[], Any], otherwise: Any) -> Any:
        """What `read` answers, or `otherwise` and a warning. The vault as a whole being down is raised."""
        try:
            return read()
        except (EchoError, OSError, sqlite3.Error) as failure:  # the last two: a queue that is broken
            if isinstance(failure, VaultUnreachable) and failure.data.get("reason") == "loading":
                raise  # no note can be read now, and what is known answers instead
            self._ctx.vault.check()
            self.warnings.append(f"{what}: not available ({getattr(failure, 'code', 'broken')})")
            return otherwise

    def _text(self, path: str) -> str:
        """The note's text, "" when there is none."""
        def read() -> str:
            try:
                return displayable(decode(self._ctx.vault.read(path))[0])
            except NotFound:
                return ""

        return str(self.attempt(path, read, ""))

    def _body(self, path: str) -> str:
        """The note without frontmatter and without its first heading."""
        text = self._text(path)
        block = frontmatter.parse(text)
        if block.malformed:
            self.warnings.append(f"{path}: the frontmatter does not parse at line {block.malformed.line}")
        body = text[block.body_offset:].strip("\ufeff \t\r\n")
        first = next(iter(markdown.headings(body)), None)
        return body[first.content_start:].strip() if first and first.level == 1 and not first.start else body

    def brief_parts(self) -> Dict[str, Part]:
        """The texts of a brief answer in order."""
        self._scope = self.attempt(SCOPE, lambda: read_scope(self._ctx), self._scope)
        self.warnings += self._scope.warnings
        last = self._last_session()
        day = DAY_NOTES.format(day=self._ctx.clock.day())
        return {
            "marker": Part(self._marker()),
            "preferences": Part(self._body(PREFERENCES), PREFERENCES),
            "scope": Part(displayable(self._scope.text), SCOPE),
            "last_session": Part(f"{_stem(last)}\n{self._body(last)}".strip() if last else "", last),
            "today": Part(self._body(day), day, tail=True),
        }

    def whole_parts(self) -> Dict[str, Part]:
        """The texts of a whole answer in order: notes as they are."""
        parts = self.brief_parts()
        for name in ("preferences", "last_session", "today"):
            parts[name] = parts[name]._replace(text=self._text(parts[name].path) if parts[name].path else "")
        parts["marker"] = Part(self._text(MARKER) or parts["marker"].text, MARKER)
        parts["context"] = Part(self._text(SCOPE), SCOPE)
        parts["inbox"] = Part(self._text(INBOX), INBOX)
        return parts

    def _marker(self) -> str:
        text = self._text(MARKER)
        values = frontmatter.parse(text).values
        self.bootstrapped = bool(text) or self._ctx.offline is not None  # away, nobody can tell
        if not text:
            return "" if self.bootstrapped else "not bootstrapped"
        version, since = (one_line(str(values.get(key) or "?")) for key in ("schema_version", "bootstrapped"))
        return f"schema_version {version}, bootstrapped {since}"

    def _last_session(self) -> str:
        return self._logs[-1].path if self._logs else ""

    def numbers(self) -> Dict[str, Any]:
        """The sections that are no text."""
        today = self._ctx.clock.today()
        ages = [age_days(item, today) or 0 for item in self._items]
        return {
            "inbox_count": len(ages), "inbox_oldest_days": max(ages, default=0),
            "scope_updated": shorten(displayable(self._scope.updated), 40)[0],
            "sessions_since": sessions_since(self._scope, self._logs, self._ctx),
        }

    def aging(self) -> int:
        """How many notes and inbox items have been left alone for too long."""
        return int(self.attempt("aging items", lambda: len(aging_things(self._ctx, self._items)), 0))

    def hints(self, answer: Envelope) -> List[str]:
        """What to do about what waits."""
        hints = [self._ctx.offline_notice()] if self._ctx.offline else []
        if not self.bootstrapped:
            hints.append("This vault was never set up: the operator runs `echo.py bootstrap` once.")
        if answer["parked"] or answer["conflicts"]:
            hints.append("Parked writes or conflicts wait for the operator: `echo-mcp queue` (server) or "
                         "`echo.py queue` (command line) lists them.")
        if answer["aging"]:
            hints.append("Aging items: offer the operator to sort the inbox and to review them.")
        if answer["sections"]["sessions_since"] >= 3:
            hints.append("The scope is several sessions old: ask whether it still holds.")
        return hints


def _fill(answer: Envelope, parts: Dict[str, Part], brief: bool) -> None:
    """Put the texts into `sections`, cut to their room; cuts are flagged with the full length and the note."""
    limits = dict.fromkeys(parts, WHOLE_CHARS)
    if brief:
        limits = _rooms(parts, BRIEF_CHARS - _size(answer) - _size(_cut_notice(parts)))
    cut: Dict[str, Part] = {}
    for name, part in parts.items():
        text, truncated = _fitted(part, limits[name], brief)
        answer["sections"][name] = text
        if truncated:
            cut[name] = part
    if cut:
        answer.update(_cut_notice(cut))


def _cut_notice(cut: Dict[str, Part]) -> Envelope:
    return {
        "truncated": True,
        "full_chars": {name: len(part.text) for name, part in cut.items()},
        "read_more": {name: part.path for name, part in cut.items() if part.path},
    }


def _rooms(parts: Dict[str, Part], room: int) -> Dict[str, int]:
    """How many characters of JSON each text may take: its share, and what the shorter ones leave over."""
    rooms: Dict[str, int] = {}
    open_ones = sorted(parts, key=lambda name: _size(parts[name].text) / SHARES[name])
    for place, name in enumerate(open_ones):
        shares = sum(SHARES[other] for other in open_ones[place:])
        rooms[name] = min(_size(parts[name].text), max(0, room) * SHARES[name] // shares)
        room -= rooms[name]
    return rooms


def _fitted(part: Part, limit: int, as_json: bool) -> "tuple[str, bool]":
    """The text cut to `limit` characters (of its JSON, when `as_json`), at its start when the tail matters."""
    size: Callable[[str], int] = _size if as_json else len
    if size(part.text) <= limit:
        return part.text, False
    text = _tail(part.text, limit, size) if part.tail and as_json else part.text
    length = limit
    while True:
        shown, _cut = shorten(text, length)
        if size(shown) <= limit or not shown:
            return shown, True
        length = min(length - 1, length * limit // size(shown))


def _tail(text: str, limit: int, size: Callable[[str], int]) -> str:
    """The last whole lines that fit, at least the last one."""
    lines = text.splitlines(keepends=True)
    start = len(lines) - 1
    while start > 0 and size("".join(lines[start - 1:])) <= limit:
        start -= 1
    return "".join(lines[start:])


def _size(value: Any) -> int:
    """Characters of a value as JSON."""
    return len(json.dumps(value, ensure_ascii=False))


def _stem(path: str) -> str:
    return path.rpartition("/")[2][:-3]
