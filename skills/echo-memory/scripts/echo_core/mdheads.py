"""The headings of a note, and which one a caller means (spec 2.2, 3.2).

Only headings outside quotes and lists count: these are the ones that open sections, in Obsidian's outline as here.
"""
from __future__ import annotations

import re
import unicodedata
from typing import Callable, Iterator, List, NamedTuple, Sequence, Tuple

from echo_core.errors import InvalidTarget
from echo_core.mdlines import ATX, BLANK, SETEXT, TEXT, UNDERLINE, Line
from echo_core.mdscan import scan

LONGEST_TITLE = 500
"""Characters of a heading that its title holds: a paragraph of a megabyte above a `---` is one as well."""

_ATX_MARKS = re.compile(r"\ufeff? {0,3}#{1,6}(?=[ \t]|$)")
_CLOSING_MARKS = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_TARGET_MARKS = re.compile(r"#{1,6}(?=\s|[^\s#])\s*")


class Heading(NamedTuple):
    """One heading and its section, offsets in characters.

    `start` is the heading's first character, `content_start` the first one below it, `direct_end` the start of the
    next heading of any level, `end` the start of the next one of the same or a higher level (or the text's end);
    `line` counts from 1; `path` holds the titles from the top heading down to this one.
    """

    level: int
    title: str
    start: int
    content_start: int
    direct_end: int
    end: int
    line: int
    path: Tuple[str, ...]


class _Found(NamedTuple):
    level: int
    title: str
    start: int
    content_start: int
    line: int


def headings(text: str) -> List[Heading]:
    """All headings of a note, in order."""
    found = list(_found(text, scan(text)))
    result: List[Heading] = []
    ends = _section_ends([head.level for head in found])
    parents: List[Tuple[int, str]] = []
    starts = [head.start for head in found] + [len(text)]
    for number, head in enumerate(found):
        while parents and parents[-1][0] >= head.level:
            parents.pop()
        parents.append((head.level, head.title))
        path = tuple(title for _, title in parents)
        result.append(Heading(head.level, head.title, head.start, head.content_start, starts[number + 1],
                              starts[ends[number]], head.line, path))
    return result


def _section_ends(levels: Sequence[int]) -> List[int]:
    """For each heading the number of the heading that ends its section (the count of headings: none does)."""
    ends = [len(levels)] * len(levels)
    open_ones: List[int] = []
    for number, level in enumerate(levels):
        while open_ones and levels[open_ones[-1]] >= level:
            ends[open_ones.pop()] = number
        open_ones.append(number)
    return ends


def _found(text: str, lines: Sequence[Line]) -> Iterator[_Found]:
    first = -1  # index of the first line of a setext heading that is being read
    for index, line in enumerate(lines):
        kind = line.kind
        if kind in (TEXT, BLANK) or line.depth:
            continue
        if kind == ATX:
            level, title = _atx(text[line.start:line.end])
            yield _Found(level, title[:LONGEST_TITLE], line.start, line.stop, index + 1)
        elif kind == SETEXT:
            if first < 0:
                first = index
        elif kind == UNDERLINE:
            title = " ".join(text[above.start:above.end].strip(" \t\ufeff") for above in lines[first:index])
            level = 1 if text[line.start:line.end].lstrip()[0] == "=" else 2
            yield _Found(level, title[:LONGEST_TITLE], lines[first].start, line.stop, first + 1)
            first = -1


def _atx(line: str) -> Tuple[int, str]:
    marks = _ATX_MARKS.match(line)
    size = marks.end() if marks else 0
    title = line[size:].strip(" \t")
    if title.endswith("#"):
        title = _CLOSING_MARKS.sub("", title).strip(" \t")
    return line.count("#", 0, size), title


def section_text(text: str, heading: Heading) -> str:
    """The whole section: heading line, content and sub-sections."""
    return text[heading.start:heading.end]


def full_path(heading: Heading) -> str:
    """The heading's address: titles from the top heading down, joined by `::`."""
    return "::".join(heading.path)


def find_heading(text: str, target: str) -> Heading:
    """The one heading that `target` names.

    target: a full `::` path from the top heading, the last part of one, or a title alone; each with or without
    leading `#`s. A full path goes before a part, exact letters before a comparison without case; NFC and NFD are
    equal. InvalidTarget when none or several fit, with `headings` (all full paths) and `candidates` (the several).
    """
    known = headings(text)
    for name, level in _readings(target):
        for key in (_exact, _caseless):
            for matches in (_by_path(known, name, key), _by_suffix(known, name, key)):
                fitting = [head for head in matches if head.level == level] or matches
                if len(fitting) == 1:
                    return fitting[0]
                if fitting:
                    raise _invalid(target, known, fitting)
    raise _invalid(target, known, [])


def _readings(target: str) -> Iterator[Tuple[str, int]]:
    """The target as it stands, then without its hash marks; with the level these state (0: none)."""
    parts = [part.strip() for part in target.strip().split("::")]
    bare = [_TARGET_MARKS.sub("", part, count=1) if part.startswith("#") else part for part in parts]
    last = parts[-1]
    yield "::".join(parts), 0
    if bare != parts:
        yield "::".join(bare), len(last) - len(last.lstrip("#"))


def _exact(name: str) -> str:
    return unicodedata.normalize("NFC", "::".join(" ".join(part.split()) for part in name.split("::")))


def _caseless(name: str) -> str:
    return unicodedata.normalize("NFC", _exact(name).casefold())


def _by_path(known: List[Heading], name: str, key: Callable[[str], str]) -> List[Heading]:
    return [head for head in known if key(full_path(head)) == key(name)]


def _by_suffix(known: List[Heading], name: str, key: Callable[[str], str]) -> List[Heading]:
    wanted = "::" + key(name)
    return [head for head in known if ("::" + key(full_path(head))).endswith(wanted)] if key(name) else []


def _invalid(target: str, known: List[Heading], fitting: List[Heading]) -> InvalidTarget:
    paths = [full_path(head) for head in known]
    shown = printable(target)
    if not fitting:
        hint = "Use one of `headings`." if paths else "The note has no headings."
        return InvalidTarget(f"no heading {shown!r} in the note", hint, headings=paths)
    candidates = [{"heading": full_path(head), "line": head.line} for head in fitting]
    return InvalidTarget(f"{len(fitting)} headings are called {shown!r}", "Name the heading by its full `::` path.",
                         headings=paths, candidates=candidates)


def printable(target: str) -> str:
    """At most 80 characters of a caller's text, without control characters, for a message."""
    return "".join(char if char.isprintable() else "?" for char in target[:80])
