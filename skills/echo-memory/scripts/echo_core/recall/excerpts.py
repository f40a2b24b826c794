"""The window of a passage that says most about a query (spec 5.4)."""
from __future__ import annotations

import re
from typing import Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from echo_core.recall.tokens import Word, find_words
from echo_core.text.cutting import shorten

# Each begins with one set of characters, for which the interpreter has a quick search.
_SENTENCE_END = re.compile(
    "[.!?…。！？；\r\n](?:(?<=[.!?…])[\"'”’)\\]]*(?=\\s)|(?<=[。！？；])[”’」』）]*|(?<=[\r\n])[\r\n]*)"
)
_LINK = re.compile(r"\[(?:\[[^\]\r\n]*\]\]|[^\]\r\n]*\]\([^)\r\n]*\))")
_ADDRESS = re.compile(r"https?://\S+")
_ABBREVIATION = re.compile(r"(?:^|[\s(])(?:[A-Z]|[A-Z]?[a-z]{1,2}|Prof|approx|vgl|usw|bzw|etc)\.$")
_LONG_ABBREVIATIONS = ("Prof.", "approx.", "vgl.", "usw.", "bzw.", "etc.")
_LONGEST_NUMBER = 16
_ELLIPSIS = "… "
_NOTHING: FrozenSet[int] = frozenset()


class Excerpt(NamedTuple):
    """A stretch of a passage as it stands there. start: its offset in the passage.

    text: begins with "… " when it starts inside a sentence. whole: nothing of the passage but white space is missing.
    """

    text: str
    start: int
    whole: bool


_Unit = Tuple[int, int, FrozenSet[int]]
"""Start and end of a sentence or line, or of a word of an overlong one, and the numbers of the query words in it."""

_Place = Tuple[int, int, int]
"""Start and end of a query word in the text, and its number."""


class Wanted(NamedTuple):
    """What an excerpt should show: token -> number of the query word it stands for, and what each word is worth."""

    numbers: Mapping[str, int]
    worth: Sequence[float]


class Window:
    """One passage read for one query: windows of any size can be cut from it.

    words: the words of `text` that have a token of the query; looked for when not given.
    """

    def __init__(self, text: str, wanted: Wanted, words: Optional[Sequence[Word]] = None) -> None:
        self._text = text
        self._wanted = wanted
        self._words = words
        self._places: List[_Place] = []
        self._units: List[_Unit] = []

    def cut(self, size: int) -> Excerpt:
        """The window of at most `size` characters with the most worth of different query words, on sentence bounds.

        Of equal windows the shortest, then the first; what room is left is filled with what follows, then with what
        stands before. A sentence longer than `size` is cut between words. Links, table rows and letters stay whole.
        """
        text = self._text
        stripped = text.strip()
        if len(stripped) <= size:
            return Excerpt(stripped, text.find(stripped) if stripped else 0, True)
        if not self._units:
            words = find_words(text, self._wanted.numbers.keys()) if self._words is None else self._words
            self._places = _places(words, self._wanted)
            self._units = _sentences(text, self._places)
        units = self._units
        first, last = _best(units, self._wanted.worth, size)
        (start, _, _), (_, end, _) = units[first], units[last]
        if end - start > size:
            within = [place for place in self._places if start <= place[0] < end]
            return _inside(text, start, end, within, self._wanted.worth, size)
        start, end = _widened(units, first, last, size)
        return Excerpt(text[start:end], start, False)


def excerpt(text: str, wanted: Wanted, size: int) -> Excerpt:
    """The best window of at most `size` characters, see `Window.cut`."""
    return Window(text, wanted).cut(size)


def _widened(units: Sequence[_Unit], first: int, last: int, size: int) -> Tuple[int, int]:
    """Start and end of the run with as many neighbours as fit."""
    start, end = units[first][0], units[last][1]
    while True:
        if last + 1 < len(units) and units[last + 1][1] - start <= size:
            last += 1
            end = units[last][1]
        elif first > 0 and end - units[first - 1][0] <= size:
            first -= 1
            start = units[first][0]
        else:
            return start, end


def _sentences(text: str, places: Sequence[_Place]) -> List[_Unit]:
    """The sentences and lines of a text with the query words in them; places: in order."""
    kept = _whole(text)
    rows = "|" in text
    units: List[_Unit] = []
    start = line = number = 0
    for end, mark in [*((match.end(), match.group()) for match in _SENTENCE_END.finditer(text)), (len(text), "\n")]:
        if mark[0] not in "\r\n" and _is_inner(text, line, start, end, mark, kept, rows):
            continue
        sentence = text[start:end].rstrip()
        if sentence:
            found = _NOTHING
            while number < len(places) and places[number][0] < end:
                found |= {places[number][2]}
                number += 1
            units.append((start + len(sentence) - len(sentence.lstrip()), start + len(sentence), found))
        start = end
        if mark[0] in "\r\n":
            line = end
    return units


def _whole(text: str) -> List[Tuple[int, int]]:
    """Start and end of the links and addresses, which are never cut."""
    links = [(start - (text[start - 1:start] == "!"), end) for start, end in map(re.Match.span, _LINK.finditer(text))]
    return sorted(links + [match.span() for match in _ADDRESS.finditer(text)])


def _is_inner(
    text: str, line: int, start: int, end: int, mark: str, kept: Sequence[Tuple[int, int]], rows: bool,
) -> bool:
    """Whether a full stop ends no sentence: in a table row, in a link, behind an abbreviation or a list number.

    line, start: where its line and its sentence begin; end: behind it. rows: whether there may be a table.
    """
    if rows and text[line:line + 200].lstrip(" \t>").startswith("|"):
        return True
    before = text[max(line, start):end - len(mark) + 1]
    if len(before) <= _LONGEST_NUMBER and not before.strip("0123456789. \t"):
        return True
    for left, right in kept:
        if left < end < right:
            return True
    # Most sentences end in a word of three letters or more; the pattern need not look at those.
    return mark == "." and (not before[-4:-1].isalpha() or before.endswith(_LONG_ABBREVIATIONS)) and bool(
        _ABBREVIATION.search(before[-12:]))


def _places(words: Iterable[Word], wanted: Wanted) -> List[_Place]:
    """Where query words stand: (start, end, number of the word), a place for each number."""
    found: List[_Place] = []
    numbers = wanted.numbers
    for start, end, tokens in words:
        for number in {numbers[token] for token in tokens if token in numbers}:
            found.append((start, end, number))
    return found


def _best(units: Sequence[_Unit], worth: Sequence[float], size: int) -> Tuple[int, int]:
    """The run of units of most worth: (first, last); a unit that is too long by itself stands alone."""
    telling = [place for place, unit in enumerate(units) if unit[2]]
    best, chosen = (0.0, 0), (0, 0)
    for nth, first in enumerate(telling):
        begin = units[first][0]
        seen: FrozenSet[int] = _NOTHING
        value = 0.0
        for last in telling[nth:]:
            _, end, found = units[last]
            length = end - begin
            if length > size and last > first:
                break
            if not found <= seen:
                value += sum(worth[number] for number in found - seen)
                seen |= found
            if (value, -length) > best:
                best, chosen = (value, -length), (first, last)
    return chosen


def _inside(
    text: str, start: int, end: int, places: Sequence[_Place], worth: Sequence[float], size: int,
) -> Excerpt:
    """A window of one overlong sentence: from a word a little before the best matches, never through a link."""
    sentence = text[start:end]
    kept = _whole(sentence)
    offset = 0
    if places and not sentence.lstrip(" \t>").startswith("|"):
        spots = [(left - start, right - start, frozenset((number,))) for left, right, number in places]
        first, last = _best(spots, worth, size - len(_ELLIPSIS))
        begin, room = spots[first][0], size - len(_ELLIPSIS) - (spots[last][1] - spots[first][0])
        offset = _word_start(sentence, max(0, begin - max(0, room) // 3), begin, kept)
    lead = _ELLIPSIS if offset else ""
    shown = shorten(sentence[offset:], size - len(lead))[0]
    if len(sentence) - offset > len(shown):
        shown = _to_word_end(sentence[offset:], shown)
    return Excerpt(lead + shown.rstrip(), start + offset, False)


def _word_start(text: str, wish: int, latest: int, kept: Sequence[Tuple[int, int]]) -> int:
    """The first start of a word from `wish` on that is in no link, at most `latest`, or the start of its link."""
    if wish == 0:
        return 0
    for left, right in kept:
        if left < wish < right:
            wish = right if right <= latest else left
    while wish < latest and not (text[wish - 1].isspace() or ord(text[wish]) > 0x2E7F):
        wish += 1
    for left, right in kept:
        if left < wish < right:
            return left
    return wish


def _to_word_end(text: str, shown: str) -> str:
    """`shown` without the piece of a word at its end, unless that is most of it."""
    following = text[len(shown)]
    if following.isspace() or not shown or shown[-1].isspace() or ord(following) > 0x2E7F:
        return shown
    cut = max(shown.rfind(" "), shown.rfind("\t"))
    return shown[:cut] if cut > len(shown) // 2 else shown


def wanted_words(groups: Sequence[Tuple[str, ...]], worth: Sequence[float]) -> Wanted:
    """What to look for when a query's words are `groups` of tokens and worth so much each; what is worth nothing is
    not looked for."""
    numbers: Dict[str, int] = {}
    for number, group in enumerate(groups):
        for token in group if worth[number] else ():
            numbers.setdefault(token, number)
    return Wanted(numbers, worth)
