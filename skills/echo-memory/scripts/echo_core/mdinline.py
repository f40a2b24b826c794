"""Inline spans of a note: code, links, tags, addresses, comments, math; and the prose that is left (spec 3.2).

One pass over each block, left to right, as CommonMark reads it: what starts first wins, so a link inside a code span
is code and a backtick inside a link target is the target's.
"""
from __future__ import annotations

import re
from typing import Dict, Iterator, List, NamedTuple, Tuple

from echo_core.mdlines import ATX, HTML, SETEXT, TABLE, TEXT, Line
from echo_core.mdscan import scan

CODE_SPAN, WIKI, INLINE_LINK, MARKUP, ADDRESS, MATH, TAG, BRACKETS = (
    "code", "wiki", "link", "markup", "address", "math", "tag", "brackets")

_MARKDOWN = frozenset((TEXT, TABLE, ATX, SETEXT, HTML))

_TOKEN = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<ticks>`+)"
    r"|(?P<wiki>!?\[\[(?:\\[^\r\n]|(?!\]\]|\[\[)[^\r\n\\])+?\]\])"
    r"|(?P<markup><!--[\s\S]*?-->|<%[\s\S]*?%>|</?[A-Za-z][^<>]*>|<[A-Za-z][A-Za-z0-9+.-]+:[^<>\s]*>"
    r"|<[^<>@\s]+@[^<>\s]+>|\{\{[^{}]*\}\})"
    r"|(?P<comment>%%)"
    r"|(?P<display>\$\$)"
    r"|(?P<math>\$(?=[^\s$])(?:\\[^\r\n]|[^\\$\r\n])*?(?<=[^\s\\])\$(?!\d))"
    r"|(?P<open>!?\[)"
    r"|(?P<close>\])"
    r"|(?P<address>(?<![\w])(?:[A-Za-z][A-Za-z0-9+.-]*://|www\.|mailto:)[^\s<>\]]+|[\w.+-]+@[\w-]+\.[\w.-]+)"
    r"|(?P<tag>(?<![^\s(\[])#[^\s#,;.:!?()\[\]{}'\"]+)"
)
_INTERESTING = re.compile(r"[\\`\[<%$\]@#{]|://|www\.|mailto:")
_DESTINATION = re.compile(
    r"\([ \t]*(?P<dest><(?:\\[^\r\n]|[^<>\\\r\n])*>|(?:\\[!-/:-@\[-`{-~]|[^\s()\\<]|\\(?![!-/:-@\[-`{-~])"
    r"|\((?:\\.|[^\s()\\])*\))(?:\\[!-/:-@\[-`{-~]|[^\s()\\]|\\(?![!-/:-@\[-`{-~])|\((?:\\.|[^\s()\\])*\))*|)"
    r"(?:\s+(?:\"(?:\\[\s\S]|[^\"\\])*\"|'(?:\\[\s\S]|[^'\\])*'|\((?:\\[\s\S]|[^()\\])*\)))?\s*\)")
_REFERENCE = re.compile(r"\[[^\[\]]*\]")


class Span(NamedTuple):
    """One inline construct: what it is, where it starts and ends, where a link's destination does (0, 0: none)."""

    kind: str
    start: int
    end: int
    inner_start: int = 0
    inner_end: int = 0


def spans(text: str) -> List[Span]:
    """All inline constructs of the body, by the order in which they end; never inside code blocks or comments."""
    result: List[Span] = []
    carried = _Carried()
    for start, end, _ in blocks(text):
        if _INTERESTING.search(text, start, end):
            result.extend(_Reader(text, start, end, carried).read())
    return result + carried.spans


def blocks(text: str) -> Iterator[Tuple[int, int, str]]:
    """Each block that may hold inline markup as (start, end, kind of its first line)."""
    current: List[Line] = []
    for line in scan(text):
        if line.kind in _MARKDOWN:
            if current and line.block != current[-1].block:
                yield current[0].start, current[-1].end, current[0].kind
                current = []
            current.append(line)
    if current:
        yield current[0].start, current[-1].end, current[0].kind


def prose_spans(text: str) -> List[Tuple[int, int]]:
    """Where ordinary prose stands: not code, links, addresses, tags, headings, tables, HTML, comments or math."""
    taken = sorted((span.start, span.end) for span in spans(text))
    result: List[Tuple[int, int]] = []
    first = 0
    for start, end, kind in blocks(text):
        if kind != TEXT:
            continue
        while first < len(taken) and taken[first][1] <= start:
            first += 1
        pos = start
        for left, right in taken[first:]:
            if left >= end:
                break
            if left > pos:
                result.append((pos, left))
            pos = max(pos, right)
        if pos < end:
            result.append((pos, end))
    return result


class _Carried:
    """What may run over block borders: `%%` comments and `$$` math; an unclosed one is plain text."""

    def __init__(self) -> None:
        self.open: Dict[str, int] = {}
        self.spans: List[Span] = []

    def toggle(self, mark: str, start: int, end: int) -> None:
        """Opens or closes a span at a mark; the other kind of mark means nothing inside it."""
        if mark in self.open:
            self.spans.append(Span(MATH if mark == "$$" else MARKUP, self.open.pop(mark), end))
        else:
            self.open[mark] = start


class _Reader:
    """Reads one block from `start` to `end`."""

    def __init__(self, text: str, start: int, end: int, carried: _Carried) -> None:
        self.text, self.start, self.end, self.carried = text, start, end, carried
        self.found: List[Span] = []
        self.brackets: List[int] = []
        self.unclosed_ticks: Dict[int, bool] = {}

    def read(self) -> List[Span]:
        """The block's constructs."""
        pos = self.start
        while True:
            match = _TOKEN.search(self.text, pos, self.end)
            if not match:
                return self.found
            pos = match.end()
            kind = match.lastgroup
            if kind == "ticks":
                pos = self.code(match.start(), pos)
            elif kind == "wiki":
                self.found.append(Span(WIKI, match.start(), pos))
            elif kind in ("comment", "display"):
                self.carried.toggle(match.group(), match.start(), pos)
            elif kind == "open":
                self.brackets.append(match.start())
            elif kind == "close":
                pos = self.close(pos)
            elif kind != "escape":
                name = {"markup": MARKUP, "math": MATH, "address": ADDRESS, "tag": TAG}[str(kind)]
                self.found.append(Span(name, match.start(), pos))

    def code(self, start: int, pos: int) -> int:
        """Notes a code span that opens at `start`; returns where to read on."""
        size = pos - start
        if size in self.unclosed_ticks:
            return pos
        closing = re.compile(r"(?<!`)`{%d}(?!`)" % size).search(self.text, pos, self.end)
        if not closing:
            self.unclosed_ticks[size] = True
            return pos
        self.found.append(Span(CODE_SPAN, start, closing.end()))
        return closing.end()

    def close(self, pos: int) -> int:
        """Notes what a closing bracket before `pos` ends; returns where to read on."""
        if not self.brackets:
            return pos
        start = self.brackets.pop()
        link = _DESTINATION.match(self.text, pos, self.end)
        if link:
            self.found.append(Span(INLINE_LINK, start, link.end(), link.start("dest"), link.end("dest")))
            return link.end()
        reference = _REFERENCE.match(self.text, pos, self.end)
        end = reference.end() if reference else pos
        self.found.append(Span(BRACKETS, start, end))
        return end
