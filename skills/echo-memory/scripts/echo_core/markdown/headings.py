"""The headings of a note, and which one a caller means (spec 2.2, 3.2).

Only headings outside quotes and lists count: these are the ones that open sections, in Obsidian's outline as here.
"""
from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Iterator, List, NamedTuple, Sequence, Tuple

from echo_core.catalog.notebytes import displayable
from echo_core.errors import InvalidTarget
from echo_core.markdown.lines import ATX, BLANK, SETEXT, TEXT, UNDERLINE, Line
from echo_core.markdown.scan import scan

LONGEST_TITLE = 500
"""Characters of a heading that its title holds: a paragraph of a megabyte above a `---` is one as well."""

_ATX_MARKS = re.compile(r"\ufeff? {0,3}#{1,6}(?=[ \t]|$)")
_CLOSING_MARKS = re.compile(r"(?:^|[ \t]+)#+[ \t]*$")
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f]")
_SPACED = re.compile(r"  |:: | ::|\A | \Z")
_LEAST_START = 40
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


def addresses(known: Sequence[Heading]) -> List[str]:
    """What each of a note's headings is called so that `find_heading` finds it and no other, in their order.

    The full path on one line of visible characters; headings of one path are numbered from the top: `A::X#1`,
    `A::X#2`. An empty title needs a number as well.
    """
    paths = [_exact(full_path(head)) for head in known]
    counts = Counter(paths)
    taken = set(paths)
    seen: Counter[str] = Counter()
    names = []
    for path in paths:
        name = path
        if not path or counts[path] > 1:
            seen[path] += 1
            mark = "#"
            while (name := f"{path}{mark}{seen[path]}") in taken:
                mark += "#"
            taken.add(name)
        names.append(name)
    return names


def find_heading(text: str, target: str) -> Heading:
    """The one heading that `target` names.

    target: an address of `addresses`, a full `::` path from the top heading, the last part of either, or a title
    alone; each with or without leading `#`s. A full path goes before a part, exact letters before a comparison
    without case; NFC and NFD are equal. An address that an answer cut at `…` counts while it fits one heading.
    InvalidTarget when none or several fit, with `headings` (all addresses) and `candidates` (the several).
    """
    known = headings(text)
    named = list(zip(known, addresses(known)))
    spelled = {key: [(head, {key(address), key(full_path(head))}) for head, address in named]
               for key in (_exact, _caseless)}
    for name, level in _readings(target):
        for key, rows in spelled.items():
            wanted = key(name)
            for fits in (_is_whole, _is_part, _is_start):
                matches = [head for head, names in rows if any(fits(wanted, each) for each in names)]
                fitting = [head for head in matches if head.level == level] or matches
                if len(fitting) == 1:
                    return fitting[0]
                if fitting:
                    raise _invalid(target, named, fitting)
    raise _invalid(target, named, [])


def _readings(target: str) -> Iterator[Tuple[str, int]]:
    """The target as it stands, then without its hash marks; with the level these state (0: none)."""
    parts = [part.strip() for part in target.strip().split("::")]
    bare = [_TARGET_MARKS.sub("", part, count=1) if part.startswith("#") else part for part in parts]
    last = parts[-1]
    yield "::".join(parts), 0
    if bare != parts:
        yield "::".join(bare), len(last) - len(last.lstrip("#"))


def _exact(name: str) -> str:
    """A name as an argument can carry it: NFC, one line, what is no character shown as U+FFFD."""
    if name.isascii() and name.isprintable() and not _SPACED.search(name):
        return name
    shown = _UNPRINTABLE.sub("\ufffd", "::".join(" ".join(part.split()) for part in name.split("::")))
    return unicodedata.normalize("NFC", displayable(shown))


def _caseless(name: str) -> str:
    return unicodedata.normalize("NFC", _exact(name).casefold())


def _is_whole(name: str, address: str) -> bool:
    return name == address


def _is_part(name: str, address: str) -> bool:
    return bool(name) and f"::{address}".endswith(f"::{name}")


def _is_start(name: str, address: str) -> bool:
    return len(name) > _LEAST_START and name.endswith("…") and address.startswith(name[:-1])


def _invalid(target: str, named: Sequence[Tuple[Heading, str]], fitting: Sequence[Heading]) -> InvalidTarget:
    paths = [address for _, address in named]
    shown = printable(target)
    if not fitting:
        hint = "Use one of `headings`." if paths else "The note has no headings."
        return InvalidTarget(f"no heading {shown!r} in the note", hint, headings=paths)
    candidates = [{"heading": address, "line": head.line} for head, address in named if head in fitting]
    return InvalidTarget(f"{len(fitting)} headings are called {shown!r}", "Use the `heading` of one of `candidates`.",
                         headings=paths, candidates=candidates)


def printable(target: str) -> str:
    """At most 80 characters of a caller's text, without control characters, for a message."""
    return "".join(char if char.isprintable() else "?" for char in target[:80])
