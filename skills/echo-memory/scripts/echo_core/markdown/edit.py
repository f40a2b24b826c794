"""Edits of sections that leave everything else as it is, character for character (spec 2.2).

Each edit is one splice. It is tried without a blank line around the new text first, and with one only where Markdown
would otherwise read the old or the new text as something else (a paragraph as a setext heading, text as part of the
list above it). Text that would swallow what follows, such as an open fence, is refused.
"""
from __future__ import annotations

import re
from bisect import bisect_left
from typing import List, NamedTuple, Optional, Sequence, Tuple, cast

from echo_core.errors import InvalidArgument
from echo_core.markdown.headings import Heading, headings
from echo_core.markdown.lines import BLANK, SETEXT, TABLE, TEXT, Line, body_offset, detect_eol, split_lines
from echo_core.markdown.scan import scan, scan_fragment
from echo_core.text import one_line
from echo_core.text.lines import line_start

OPERATIONS = ("append", "prepend", "replace")
RELATED = "Related"

_LONG = 1 << 20  # characters; scanning a note of 50 MB for each line that is added would take seconds
_REACH = 1 << 16

_ENDS_IN_ID = re.compile(r"(?:^|[ \t])\^[A-Za-z0-9-]+[ \t]*\Z")
_EOL = re.compile(r"\r\n|\r|\n")
_LEADING_BLANKS = re.compile(r"(?:[ \t]*(?:\r\n|\r|\n))*")
_TRAILING_BLANKS = re.compile(r"(?:(?:\r\n|\r|\n)[ \t]*)+\Z")


class _Splice(NamedTuple):
    """New lines for text[start:end]: `before`, `after` ask for a blank line around them, `strict` that the new text
    keeps its own structure, `final_eol` that it ends with a line end."""

    start: int
    end: int
    content: str
    before: bool = False
    after: bool = False
    strict: bool = True
    final_eol: bool = True


def edit_section(text: str, heading: Heading, operation: str, content: str) -> str:
    """The text with `content` in the section of `heading`, as it was found in this very text.

    append puts it at the end of the heading's own content, before the first sub-heading; prepend right below the
    heading; replace instead of its own content, sub-sections stay ("" empties it). Blank lines around `content` are
    dropped; for append a line end at its start asks for one blank line. A heading line that repeats the section's
    own is dropped. InvalidArgument for another operation, or when the content would swallow the text below it.
    """
    if operation not in OPERATIONS:
        raise InvalidArgument(f"no such operation; one of {', '.join(OPERATIONS)}", field="operation")
    spaced = bool(_LEADING_BLANKS.match(content).group())  # type: ignore[union-attr]
    content = _without_own_heading(_trimmed(content), heading)
    lead, tail = _own_content(text, heading)
    if not content:
        return text if operation != "replace" else _emptied(text, heading, lead, tail)
    if lead == tail:
        return _splice(text, _into_empty(text, heading, content))
    if operation == "prepend":
        return _splice(text, _Splice(lead, lead, content))
    if operation == "append":
        return _splice(text, _Splice(tail, tail, content, before=spaced))
    closed = tail < len(text) or text.endswith(("\r", "\n"))
    return _splice(text, _Splice(lead, tail, content, final_eol=closed))


def append_text(text: str, line: str, section: Optional[Heading] = None) -> str:
    """The text with the line (or lines) added whole, at the end of the section's own content, else of the note.

    Adds the one line end that is missing before it, never a blank line unless the line would otherwise turn the
    paragraph above into a heading. InvalidArgument when the line would swallow the text below it.
    """
    content = _trimmed(line)
    if not content:
        return text
    if section is None:
        kept = _far_above(text)
        below = text[kept:]
        return text[:kept] + _splice(below, _Splice(len(below), len(below), content, strict=False))
    lead, tail = _own_content(text, section)
    if lead == tail:
        return _splice(text, _into_empty(text, section, content))
    return _splice(text, _Splice(tail, tail, content, strict=False))


def _far_above(text: str) -> int:
    """Where the last lines of a very long text begin; they alone decide how a line is appended. 0 for others."""
    return 0 if len(text) <= _LONG else line_start(text, len(text) - _REACH)


def has_line(text: str, line: str, section: Optional[Heading] = None) -> bool:
    """Whether the line (or lines in a row) stands in the section's own content, else anywhere in the body.

    Trailing spaces do not count, leading ones do.
    """
    start, end = (body_offset(text), len(text)) if section is None else (section.content_start, section.direct_end)
    wanted = [part.rstrip() for part in _EOL.split(_trimmed(line))]
    if text.find(wanted[0], start, end) < 0:
        return False
    there = [part.rstrip() for part in _EOL.split(text[start:end])]
    if len(wanted) == 1:
        return wanted[0] in there
    return any(there[at:at + len(wanted)] == wanted for at in range(len(there) - len(wanted) + 1))


def missing_lines(text: str, lines: Sequence[str], section: Optional[Heading] = None) -> List[str]:
    """Those of the single lines that `has_line` does not find, in order and each once; reads the text once."""
    start, end = (body_offset(text), len(text)) if section is None else (section.content_start, section.direct_end)
    there = {part.rstrip() for part in _EOL.split(text[start:end])}
    new: List[str] = []
    for line in lines:
        if line.rstrip() not in there:
            there.add(line.rstrip())
            new.append(line)
    return new


def insert_heading(text: str, title: str, level: int, content: str = "", parent: Optional[Heading] = None) -> str:
    """The text with a new section at the end of the section `parent`, else of the note; one blank line around it."""
    at = parent.end if parent else len(text)
    return _insert_section(text, at, title, level, content)


def insert_before_related(text: str, title: str, level: int, content: str) -> str:
    """The text with a new section before its last `## Related`, else at its end."""
    related = [heading for heading in headings(text) if heading.level == 2 and heading.title == RELATED]
    return _insert_section(text, related[-1].start if related else len(text), title, level, content)


def _insert_section(text: str, at: int, title: str, level: int, content: str) -> str:
    name = re.sub(r"(?<![^\s])(#+)$", r"\\\1", one_line(title))
    body = _trimmed(content)
    added = f"{'#' * max(1, min(6, level))} {name}" + (f"\n\n{body}" if body else "")
    if text[:at].strip("\ufeff \t\r\n"):
        return _splice(text, _Splice(at, at, added, before=True, after=at < len(text)))
    return text[:at] + _lines(added, detect_eol(text)) + text[at:]


def _trimmed(content: str) -> str:
    """The content without blank lines around it; the indent of its first line stays."""
    content = content[_LEADING_BLANKS.match(content).end():]  # type: ignore[union-attr]
    content = _TRAILING_BLANKS.sub("", content)
    return content if content.strip() else ""


def _without_own_heading(content: str, heading: Heading) -> str:
    first = next(iter(headings(content)), None)
    if first and first.start == 0 and (first.level, first.title) == (heading.level, heading.title):
        return _trimmed(content[first.content_start:])
    return content


def _lines(content: str, eol: str) -> str:
    return _EOL.sub(lambda _: eol, content) + eol


def _own_content(text: str, heading: Heading) -> Tuple[int, int]:
    """Where the heading's own content starts and ends, blank lines around it left out; equal when there is none."""
    lines = scan(text)
    first, last = _first_from(lines, heading.content_start), _first_from(lines, heading.direct_end) - 1
    while first <= last and lines[first].kind == BLANK:
        first += 1
    while first <= last and lines[last].kind == BLANK:
        last -= 1
    return (lines[first].start, lines[last].stop) if first <= last else (heading.content_start, heading.content_start)


def _into_empty(text: str, heading: Heading, content: str) -> _Splice:
    """How content enters a section that holds nothing or blank lines: below its first blank line, if it has one."""
    start, end = heading.content_start, heading.direct_end
    blanks = list(split_lines(text[start:end]))
    if blanks:
        at = start + blanks[0][2]
        return _Splice(at, at, content, after=len(blanks) == 1 and end < len(text))
    return _Splice(start, start, content, before=end == len(text) and _is_airy(text))


def _is_airy(text: str) -> bool:
    """Whether the note keeps a blank line below its headings; so does a note that does not show it."""
    below = [text[head.content_start:head.content_start + 1] in "\r\n" for head in headings(text)
             if head.content_start < len(text)]
    return 2 * sum(below) >= len(below)


def _emptied(text: str, heading: Heading, lead: int, tail: int) -> str:
    """The text without the heading's own content; of the blank lines around it those below stay."""
    keeps_below = tail < heading.direct_end
    start = heading.content_start if keeps_below or heading.direct_end == len(text) else lead
    return text[:start] + text[tail:]


def _splice(text: str, splice: _Splice) -> str:
    """Carries out a splice with as few blank lines as keep the meaning of everything around it."""
    old = scan(text)
    own = scan_fragment(splice.content)
    sound: Optional[str] = None
    for before, after in ((False, False), (True, False), (False, True), (True, True)):
        if splice.before > before or splice.after > after:
            continue
        new = _joined(text, splice, before, after)
        lines = scan(new)
        if not keeps_surroundings(old, lines, splice.start, splice.end) or _takes_id(lines, splice, new):
            continue
        if not splice.strict or _same_inside(lines, own, splice, new):
            return new
        sound = sound or new
    if sound is None:
        raise InvalidArgument("the content would change what the text around it is",
                              "Close every code fence and comment in it.", field="content")
    return sound


def _joined(text: str, splice: _Splice, before: bool, after: bool) -> str:
    eol = detect_eol(text)
    left, right = text[:splice.start], text[splice.end:]
    if left.strip("\ufeff") and not left.endswith(("\r", "\n")):
        left += eol
    if before and _ends_in_text(left.lstrip("\ufeff")):
        left += eol
    piece = _lines(splice.content, eol)
    if after and right and _EOL.split(right, maxsplit=1)[0].strip(" \t"):
        piece += eol
    return left + (piece if splice.final_eol or right else piece[:-len(eol)]) + right


def _first_from(lines: Sequence[Line], start: int) -> int:
    """The index of the first line that starts at `start` or later."""
    probe: Tuple[int, ...] = (start,)
    return bisect_left(cast(Sequence[Tuple[int, ...]], lines), probe)


def _ends_in_text(text: str) -> bool:
    """Whether the last whole line of `text` is not blank."""
    lines = _EOL.split(text)
    return len(lines) > 1 and bool(lines[-2].strip(" \t"))


def _same_shape(one: Sequence[Line], other: Sequence[Line]) -> bool:
    return one == other or _shape(one) == _shape(other)


def _shape(lines: Sequence[Line]) -> List[Tuple[str, int]]:
    return [(line.kind, 0 if line.kind == BLANK else line.depth) for line in lines]


def keeps_surroundings(old: Sequence[Line], new: Sequence[Line], start: int, end: int) -> bool:
    """Whether every line of `old` before `start` and from `end` on is of the same kind in `new`."""
    above, below = _first_from(old, start), old[_first_from(old, end):]
    while above and old[above - 1].kind == BLANK:
        above -= 1  # a line that holds nothing but a byte order mark takes in what is written behind it
    rest = new[len(new) - len(below):]
    if not _same_shape(new[:above], old[:above]) or not _same_shape(rest, below):
        return False
    joined = bool(rest) and rest[0].kind == SETEXT and rest[0].block == new[len(new) - len(rest) - 1].block
    return not joined or len(new) == len(rest)  # a text line above a setext heading would become part of it


def _takes_id(new: Sequence[Line], splice: _Splice, text: str) -> bool:
    """Whether the new text became part of the paragraph above and took its `^id` from the end of the block."""
    added = range(_first_from(new, splice.start), len(new))
    first = next((index for index in added if new[index].kind != BLANK), 0)
    above = new[first - 1] if first else None
    return bool(above and above.block == new[first].block and _ENDS_IN_ID.search(text, above.start, above.end))


def _same_inside(new: Sequence[Line], own: Sequence[Line], splice: _Splice, text: str) -> bool:
    """Whether the new text is what it would be alone; an indented start means to continue what stands above."""
    if splice.content[0] in " \t":
        return True
    start = next(index for index, line in enumerate(new) if line.start >= splice.start and line.kind != BLANK)
    placed = new[start:start + len(own)]
    for line, (kind, depth), (was, alone) in zip(placed, _shape(placed), _shape(own)):
        is_row = kind == TABLE and was == TEXT and "|" in text[line.start:line.end]
        if (kind, depth) != (was, alone) and not is_row:
            return False
    return True
