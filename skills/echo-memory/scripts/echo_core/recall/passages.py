"""A note as passages of 200 to 400 words, the documents of the search index (spec 5.2).

Sections are kept together with their headings: short neighbours share a passage as long as it holds 400 words, long
ones are cut between paragraphs. Every character of the body is in exactly one passage.
"""
from __future__ import annotations

import re
from typing import Iterator, List, NamedTuple, Tuple

from echo_core.markdown import addresses, headings
from echo_core.markdown.lines import body_offset

LONGEST_TEXT = 2 * 1024 * 1024
"""Characters of a note that are searched: a dump of 50 MB must not keep every other note waiting."""
FEWEST_WORDS = 200
MOST_WORDS = 400

_LINE_END = re.compile("\r\n|\r|\n")
_UNSPACED = re.compile("[\u0e01-\u0e4e\u1000-\u109f\u1780-\u17d3\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff]")
_UNSPACED_PER_WORD = 2
_LONGEST_WORD = 10
# Where a long section may be cut, the best places first: between paragraphs, lines, sentences, words; right behind
# what matches. Each begins with one set of characters, for which the interpreter has a quick search.
_CUTS = (
    re.compile("[\n\r](?:(?<=\n)(?=[ \t]*\n)|(?<=\r)(?=[ \t]*\r))"), re.compile("[\n\r](?:(?<=\n)|(?!\n))"),
    re.compile(r"[.!?…。！？；](?:(?<=[。！？；])|(?=\s))"), re.compile(r"\s(?=\S)"),
)
_HARD_CUT = 2000


class Place(NamedTuple):
    """Where in a note something stands: the address of its heading ("" above the first), line from 1."""

    heading: str
    line: int


class Passage(NamedTuple):
    """A stretch of a note. start: offset of `text` in the note; line: of its first character, from 1.

    headings: (offset in `text`, address) of the headings that count from there on; the first has offset 0.
    """

    text: str
    start: int
    line: int
    headings: Tuple[Tuple[int, str], ...]

    def place(self, offset: int) -> Place:
        """Heading and line of the character at `offset` in `text`."""
        heading = ""
        for begins, title in self.headings:
            if begins > offset:
                break
            heading = title
        return Place(heading, self.line + len(_LINE_END.findall(self.text, 0, offset)))


class _Piece(NamedTuple):
    start: int
    end: int
    size: int
    heading: str


class Cut(NamedTuple):
    """A note in passages. chars: of its whole text; cut: whether only its first part is in them."""

    chars: int
    passages: List[Passage]
    cut: bool


def cut_note(text: str) -> Cut:
    """The passages of the first LONGEST_TEXT characters of a note."""
    return Cut(len(text), passages(text[:LONGEST_TEXT]), len(text) > LONGEST_TEXT)


def passages(text: str) -> List[Passage]:
    """The passages of a note's body, in order; one, perhaps empty, when the body holds no word."""
    found: List[Passage] = []
    line, counted = 1, 0
    for pieces in _groups(text):
        start, end = pieces[0].start, pieces[-1].end
        line += len(_LINE_END.findall(text, counted, start))
        counted = start
        marks: List[Tuple[int, str]] = []
        for piece in pieces:
            if not marks or marks[-1][1] != piece.heading:
                marks.append((piece.start - start, piece.heading))
        found.append(Passage(text[start:end], start, line, tuple(marks)))
    return found


def _groups(text: str) -> Iterator[List[_Piece]]:
    """Pieces that share a passage: as many as reach 200 words, never more than 400 together."""
    group: List[_Piece] = []
    size = 0
    for piece in _pieces(text):
        if group and (size >= FEWEST_WORDS or size + piece.size > MOST_WORDS):
            yield group
            group, size = [], 0
        group.append(piece)
        size += piece.size
    if group:
        yield group


def _pieces(text: str) -> Iterator[_Piece]:
    """Sections without their sub-sections, long ones in parts."""
    start, heading = body_offset(text), ""
    known = headings(text)
    starts = [(head.start, address) for head, address in zip(known, addresses(known))]
    for begins, path in [*starts, (len(text), "")]:
        if begins > start or (not starts and begins == len(text)):
            for left, right in _parts(text, start, begins, 0):
                yield _Piece(left, right, count_words(text[left:right]), heading)
        start, heading = max(start, begins), path


def _parts(text: str, start: int, end: int, level: int) -> Iterator[Tuple[int, int]]:
    """`text[start:end]` in parts of at most 400 words, cut at the best places that do."""
    if count_words(text[start:end]) <= MOST_WORDS:
        yield start, end
        return
    if level == len(_CUTS):
        for left in range(start, end, _HARD_CUT):
            yield left, min(left + _HARD_CUT, end)
        return
    begin, size = start, 0
    for left, right in _between(_CUTS[level], text, start, end):
        words = count_words(text[left:right])
        if size and size + words > MOST_WORDS:
            yield begin, left
            begin, size = left, 0
        if words > MOST_WORDS:
            yield from _parts(text, begin, right, level + 1)
            begin, size = right, 0
        else:
            size += words
    if begin < end:
        yield begin, end


def _between(cut: "re.Pattern[str]", text: str, start: int, end: int) -> Iterator[Tuple[int, int]]:
    left = start
    for match in cut.finditer(text, start, end):
        yield left, match.end()
        left = match.end()
    yield left, end


def count_words(text: str) -> int:
    """How many words; two characters of a script without spaces count as one, and so do ten of an endless word."""
    count = max(len(text.split()), len(text) // _LONGEST_WORD)
    return count if text.isascii() else count + len(_UNSPACED.findall(text)) // _UNSPACED_PER_WORD
