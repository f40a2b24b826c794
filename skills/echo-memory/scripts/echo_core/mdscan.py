"""What each line of a note is (spec 2.2).

A scan answers the one question that every edit asks first: is this `# line` a heading, or only a line of a fence,
of indented code, of an HTML comment, of a table, of the frontmatter?
"""
from __future__ import annotations

from functools import lru_cache
from typing import Tuple

from echo_core.mdlines import FRONT, Line, body_offset, split_lines
from echo_core.mdscanner import Scanner

_CACHED = 1 << 17  # longer texts are not kept: a note of 50 MB must not stay in memory


def scan(text: str) -> Tuple[Line, ...]:
    """The lines of a whole note, frontmatter included."""
    return _kept(text) if len(text) <= _CACHED else _scan(text, body_offset(text))


def scan_fragment(text: str) -> Tuple[Line, ...]:
    """The lines of Markdown that stands in no note: a leading `---` is a rule there, not frontmatter."""
    return _scan(text, 0)


@lru_cache(maxsize=24)  # more than one batch of a refresh
def _kept(text: str) -> Tuple[Line, ...]:
    return _scan(text, body_offset(text))


def _scan(text: str, body: int) -> Tuple[Line, ...]:
    scanner = Scanner()
    for start, end, stop in split_lines(text):
        if start < body:
            scanner.lines.append((start, end, stop, FRONT, 0, 0, 0))
        else:
            scanner.feed(text[start + (start == 0 and text[0] == "\ufeff"):end], start, end, stop)
    return tuple(map(Line._make, scanner.lines))
