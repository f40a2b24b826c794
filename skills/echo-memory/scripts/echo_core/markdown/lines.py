"""Lines of a note: what a line can be, and where lines start and end, which is at LF, CRLF or lone CR only."""
from __future__ import annotations

import re
from typing import Iterator, NamedTuple, Tuple

from echo_core.frontmatter.finding import split

_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|$)")

FRONT, BLANK, GAP, TEXT, ATX, SETEXT, UNDERLINE, RULE, TABLE, FENCE, CODE, INDENTED, RAW, HTML = (
    "front", "blank", "gap", "text", "atx", "setext", "underline", "rule", "table", "fence", "code", "indented", "raw",
    "html")
"""Kinds of lines. GAP holds only markers (`>`, `-`), SETEXT is the text of a setext heading and UNDERLINE its last
line, FENCE opens or closes the CODE between, RAW is HTML without Markdown (comments, scripts), HTML the rest of it."""


class Line(NamedTuple):
    """One line: where it starts, where its text ends, where the next line starts (characters); what it is; how many
    quotes and list items hold it; the number of its block, and of the outermost quote or list around it (0: none)."""

    start: int
    end: int
    stop: int
    kind: str
    depth: int
    block: int
    root: int


def split_lines(text: str) -> Iterator[Tuple[int, int, int]]:
    """Each line as (start, end of its text, start of the next line), in characters."""
    if "\r" in text:
        for match in _LINE.finditer(text):
            if match.end() > match.start():
                yield match.start(), match.end(1), match.end()
        return
    start = 0
    for line in text.split("\n"):
        end = start + len(line)
        if end < len(text):
            yield start, end, end + 1
        elif end > start:
            yield start, end, end
        start = end + 1


def body_offset(text: str) -> int:
    """Where the body starts: behind a closed frontmatter block, else at 0, byte order mark included."""
    block = split(text)
    return block.end if block and block.closed else 0


def detect_eol(text: str) -> str:
    """The line end most lines of `text` have; of equals the first of LF, CRLF, CR; LF when there is none."""
    if "\r" not in text:
        return "\n"
    crlf = text.count("\r\n")
    counts = {"\n": text.count("\n") - crlf, "\r\n": crlf, "\r": text.count("\r") - crlf}
    return max(counts, key=lambda eol: counts[eol])
