"""What each line of a note is (spec 2.2).

A scan answers the one question that every edit asks first: is this `# line` a heading, or only a line of a fence,
of indented code, of an HTML comment, of a table, of the frontmatter?
"""
from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple, Optional, Tuple

from echo_core.markdown.lines import FRONT, Line, body_offset, split_lines
from echo_core.markdown.scanner import Scanner

_CACHED = 1 << 17  # longer texts are not kept: a note of 50 MB must not stay in memory
_KEPT = 24  # more than one batch of a refresh


class _Scan(NamedTuple):
    """body: offset of the body. scanner: as it stood behind the last line."""

    body: int
    lines: Tuple[Line, ...]
    scanner: Scanner


_scans: "OrderedDict[str, _Scan]" = OrderedDict()
_guard = threading.Lock()


def scan(text: str) -> Tuple[Line, ...]:
    """The lines of a whole note, frontmatter included."""
    if len(text) > _CACHED:
        return _scanned(text, body_offset(text), 0, Scanner()).lines
    with _guard:
        known = _scans.get(text)
        if known is not None:
            _scans.move_to_end(text)
            return known.lines
        shorter = next((other for other in reversed(_scans) if other.endswith("\n") and text.startswith(other)), "")
        begun = _scans.get(shorter)
    found = _continued(text, len(shorter), begun)
    with _guard:
        _scans[text] = found
        if len(_scans) > _KEPT:
            _scans.popitem(last=False)
    return found.lines


def scan_fragment(text: str) -> Tuple[Line, ...]:
    """The lines of Markdown that stands in no note: a leading `---` is a rule there, not frontmatter."""
    return _scanned(text, 0, 0, Scanner()).lines


def _continued(text: str, start: int, begun: Optional[_Scan]) -> _Scan:
    """The scan of `text`, whose part up to `start` is scanned already: a log that grows is not read anew each time."""
    body = body_offset(text)
    if begun is None or begun.body != body:
        return _scanned(text, body, 0, Scanner())
    return _scanned(text, body, start, begun.scanner.copy(begun.lines))


def _scanned(text: str, body: int, at: int, scanner: Scanner) -> _Scan:
    """Scan `text` from `at` on, where `scanner` stands."""
    for left, right, below in split_lines(text[at:] if at else text):
        start, end, stop = at + left, at + right, at + below
        if start < body:
            scanner.lines.append((start, end, stop, FRONT, 0, 0, 0))
        else:
            scanner.feed(text[start + (start == 0 and text[0] == "\ufeff"):end], start, end, stop)
    lines = tuple(line if type(line) is Line else Line._make(line) for line in scanner.lines)
    scanner.lines = []
    return _Scan(body, lines, scanner)
