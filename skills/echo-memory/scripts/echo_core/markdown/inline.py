"""Inline spans of a note: code, links, tags, addresses, comments, math; and the prose that is left (spec 3.2).

One pass over each block, left to right, as CommonMark reads it: what starts first wins, so a link inside a code span
is code and a backtick inside a link target is the target's.
"""
from __future__ import annotations

import re
from bisect import bisect_left
from typing import Dict, Iterator, List, NamedTuple, Set, Tuple

from echo_core.markdown.lines import ATX, HTML, SETEXT, TABLE, TEXT
from echo_core.markdown.scan import scan

CODE_SPAN, WIKI, INLINE_LINK, MARKUP, ADDRESS, MATH, TAG, BRACKETS = (
    "code", "wiki", "link", "markup", "address", "math", "tag", "brackets")

CARRIED = ("%%", "$$")
"""Marks of comments and math that may run over block borders."""
_MARKDOWN = frozenset((TEXT, TABLE, ATX, SETEXT, HTML))

_START = re.compile(r"[\\`\[\]<{%$:@#]")  # one set of characters: the search passes over plain text at full speed
_BRACKET = re.compile(r"\[")
_TOKEN = re.compile(
    r"\\(?P<escape>[!-/:-@\[-`{-~])"
    r"|(?P<ticks>`+)"
    r"|(?P<wiki>\[\[(?:\\[^\r\n]|(?!\]\]|\[\[)[^\r\n\\])+?\]\])"
    r"|(?P<open>\[)"
    r"|(?P<close>\])"
    r"|(?P<until><!--|<%)"
    r"|(?P<markup></?[A-Za-z][^<>]*>|\{\{[^{}]*\}\})"
    r"|(?P<toggle>%%|\$\$)"
    r"|(?P<math>\$(?=[^\s$])(?:\\[^\r\n]|[^\\$\r\n])*(?<=[^\s\\])\$(?!\d))"
    r"|(?P<address>://[^\s<>\]]+|@[\w-]+\.[\w.-]+)"
    r"|(?P<tag>#[^\s#,;.:!?()\[\]{}'\"]+)"
)
_WWW = re.compile(r"\bwww\.[^\s<>\]]+")
_BEFORE_ADDRESS = re.compile(r"[\w.+-]*\Z")
_TICKS = re.compile("`+")
_UNTIL = {"<!--": "-->", "<%": "%>"}
_DESTINATION = re.compile(
    r"\(\s{0,9}(?P<dest><(?:\\[^\r\n]|[^<>\\\r\n])*>|(?:\\[!-/:-@\[-`{-~]|[^\s()\\<]|\\(?![!-/:-@\[-`{-~])"
    r"|\((?:\\.|[^\s()\\])*\))(?:\\[!-/:-@\[-`{-~]|[^\s()\\]|\\(?![!-/:-@\[-`{-~])|\((?:\\.|[^\s()\\])*\))*|)"
    r"(?:\s{1,9}(?:\"(?:\\[\s\S]|[^\"\\]){0,1000}\"|'(?:\\[\s\S]|[^'\\]){0,1000}'|\((?:\\[\s\S]|[^()\\]){0,1000}\)))?\s{0,9}\)")
_REFERENCE = re.compile(r"\[[^\[\]]{0,1000}\]")


class Span(NamedTuple):
    """One inline construct: what it is, where it starts and ends, where a link's destination does (0, 0: none)."""

    kind: str
    start: int
    end: int
    inner_start: int = 0
    inner_end: int = 0


def spans(text: str, links_only: bool = False) -> List[Span]:
    """All inline constructs of the body, in no particular order; never inside code blocks or comments.

    links_only: blocks without a bracket may be passed over, which is quicker.
    """
    result: List[Span] = []
    carried = _Carried()
    start_of = _BRACKET if links_only and "$$" not in text else _START
    for start, end, _ in blocks(text):
        if start_of.search(text, start, end):
            result.extend(_Reader(text, start, end, carried).read())
    return result + carried.spans


def block_spans(block: str) -> List[Span]:
    """All inline constructs of one block on its own, in no particular order; it holds no mark of `CARRIED`."""
    return _Reader(block, 0, len(block), _Carried()).read()


def blocks(text: str) -> Iterator[Tuple[int, int, str]]:
    """Each block that may hold inline markup as (start, end, kind of its first line)."""
    first = (0, 0, "", 0)  # start, end, kind and number of the block that is being read
    for start, end, _, kind, _, block, _ in scan(text):
        if kind not in _MARKDOWN:
            continue
        if block == first[3] and first[2]:
            first = (first[0], end, first[2], block)
            continue
        if first[2]:
            yield first[:3]
        first = (start, end, kind, block)
    if first[2]:
        yield first[:3]


def prose_spans(text: str) -> List[Tuple[int, int]]:
    """Where ordinary prose stands: not code, links, addresses, tags, headings, tables, HTML, comments or math."""
    taken = sorted([(span.start, span.end) for span in spans(text)] + [found.span() for found in _WWW.finditer(text)])
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
        self.runs: Dict[int, List[int]] = {}  # backtick runs of the block: length -> where they start
        self.unclosed: Set[str] = set()  # marks that have no end in the rest of the block: not to be sought again

    def read(self) -> List[Span]:
        """The block's constructs."""
        pos = self.start
        while True:
            start = _START.search(self.text, pos, self.end)
            if not start:
                return self.found
            match = _TOKEN.match(self.text, start.start(), self.end)
            if not match:
                pos = start.end()
                continue
            pos = match.end()
            kind = match.lastgroup or ""
            if kind == "ticks":
                pos = self.code(match.start(), pos)
            elif kind == "until":
                pos = self.until(match.group(), match.start(), pos)
            elif kind == "toggle":
                self.carried.toggle(match.group(), match.start(), pos)
            elif kind == "open":
                self.brackets.append(self.with_bang(match.start()))
            elif kind == "wiki":
                self.found.append(Span(WIKI, self.with_bang(match.start()), pos))
            elif kind == "close":
                pos = self.close(pos)
            elif kind == "address":
                self.address(match.start(), pos)
            elif kind == "tag":
                before = self.text[match.start() - 1] if match.start() > self.start else " "
                if before.isspace() or before in "([":
                    self.found.append(Span(TAG, match.start(), pos))
            elif kind != "escape":
                self.found.append(Span(kind, match.start(), pos))

    def with_bang(self, start: int) -> int:
        """Where a link that opens at `start` begins: one before, when an unescaped `!` makes it an embed."""
        bang = start > self.start and self.text[start - 1] == "!"
        return start - 1 if bang and (start - 1 == self.start or self.text[start - 2] != "\\") else start

    def code(self, start: int, pos: int) -> int:
        """Notes a code span that opens at `start`, when it is closed in this block; returns where to read on."""
        if not self.runs:
            for run in _TICKS.finditer(self.text, self.start, self.end):
                self.runs.setdefault(run.end() - run.start(), []).append(run.start())
        size = pos - start
        same = self.runs.get(size, [])  # empty after an escaped backtick, which shortens its run
        at = bisect_left(same, pos)
        if at == len(same):
            return pos
        self.found.append(Span(CODE_SPAN, start, same[at] + size))
        return same[at] + size

    def until(self, mark: str, start: int, pos: int) -> int:
        """Notes a comment or template that opens at `start`, if this block closes it; returns where to read on."""
        end = -1 if mark in self.unclosed else self.text.find(_UNTIL[mark], pos, self.end)
        if end < 0:
            self.unclosed.add(mark)
            return pos
        self.found.append(Span(MARKUP, start, end + len(_UNTIL[mark])))
        return end + len(_UNTIL[mark])

    def address(self, start: int, end: int) -> None:
        """Notes a web or mail address, with the scheme or the name before what was found from `start` on."""
        head = _BEFORE_ADDRESS.search(self.text[max(self.start, start - 64):start])
        size = len(head.group()) if head else 0
        if size:
            self.found.append(Span(ADDRESS, start - size, end))

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
