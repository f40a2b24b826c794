"""The window of a passage that says most about a query (spec 5.4)."""
from __future__ import annotations

import re
from typing import Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from echo_core.cutting import shorten
from echo_core.tokens import Word, find_words

_SENTENCE_END = re.compile("[.!?…][\"'”’)\\]]*(?=\\s)|[。！？；][”’」』）]*|[\r\n]+")
_WHOLE = re.compile(r"!?\[\[[^\]\r\n]*\]\]|!?\[[^\]\r\n]*\]\([^)\r\n]*\)|https?://\S+")
_ABBREVIATION = re.compile(r"(?:^|[\s(])(?:[A-Z]|[A-Z]?[a-z]{1,2}|Prof|approx|vgl|usw|bzw|etc)\.$")
_ELLIPSIS = "… "


class Excerpt(NamedTuple):
    """A stretch of a passage as it stands there. start: its offset in the passage.

    text: begins with "… " when it starts inside a sentence. whole: nothing of the passage but white space is missing.
    """

    text: str
    start: int
    whole: bool


class _Unit(NamedTuple):
    """A sentence or line, or a word of an overlong one, and the query words in it."""

    start: int
    end: int
    found: FrozenSet[int]


class _Place(NamedTuple):
    start: int
    end: int
    number: int


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
        if units[last].end - units[first].start > size:
            unit = units[first]
            within = [place for place in self._places if unit.start <= place.start < unit.end]
            return _inside(text, unit, within, self._wanted.worth, size)
        first, last = _widened(units, first, last, size)
        return Excerpt(text[units[first].start:units[last].end], units[first].start, False)


def excerpt(text: str, wanted: Wanted, size: int) -> Excerpt:
    """The best window of at most `size` characters, see `Window.cut`."""
    return Window(text, wanted).cut(size)


def _widened(units: Sequence[_Unit], first: int, last: int, size: int) -> Tuple[int, int]:
    """The run with as many neighbours as fit."""
    while True:
        if last + 1 < len(units) and units[last + 1].end - units[first].start <= size:
            last += 1
        elif first > 0 and units[last].end - units[first - 1].start <= size:
            first -= 1
        else:
            return first, last


def _sentences(text: str, places: Sequence[_Place]) -> List[_Unit]:
    kept = [(match.start(), match.end()) for match in _WHOLE.finditer(text)]
    bounds: List[Tuple[int, int]] = []
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if match.group()[0] not in "\r\n" and _is_inner(text, start, match, kept):
            continue
        bounds.append((start, match.end()))
        start = match.end()
    bounds.append((start, len(text)))
    units: List[_Unit] = []
    for left, right in bounds:
        sentence = text[left:right]
        begin = left + len(sentence) - len(sentence.lstrip())
        end = left + len(sentence.rstrip())
        if begin < end:
            found = frozenset(place.number for place in places if left <= place.start < right)
            units.append(_Unit(begin, end, found))
    return units


def _is_inner(text: str, start: int, match: "re.Match[str]", kept: Sequence[Tuple[int, int]]) -> bool:
    """Whether a full stop ends no sentence: in a table row, in a link, behind an abbreviation or a list number."""
    line = max(text.rfind("\n", 0, match.start()), text.rfind("\r", 0, match.start())) + 1
    before = text[max(line, start):match.start() + 1]
    if text[line:line + 200].lstrip(" \t>").startswith("|") or before.strip("0123456789. \t") == "":
        return True
    if any(left < match.end() < right for left, right in kept):
        return True
    return bool(match.group() == "." and _ABBREVIATION.search(before[-12:]))


def _places(words: Iterable[Word], wanted: Wanted) -> List[_Place]:
    """Where query words stand: (start, end, number of the word), a place for each number."""
    found: List[_Place] = []
    for word in words:
        for number in {wanted.numbers[token] for token in word.tokens if token in wanted.numbers}:
            found.append(_Place(word.start, word.end, number))
    return found


def _best(units: Sequence[_Unit], worth: Sequence[float], size: int) -> Tuple[int, int]:
    """The run of units of most worth: (first, last); a unit that is too long by itself stands alone."""
    best, chosen = (-1.0, 0), (0, 0)
    for first, unit in enumerate(units):
        seen: Set[int] = set()
        for last in range(first, len(units)):
            length = units[last].end - unit.start
            if length > size and last > first:
                break
            seen |= units[last].found
            value = sum(worth[number] for number in seen), -length
            if value > best:
                best, chosen = value, (first, last)
    return chosen


def _inside(text: str, unit: _Unit, places: Sequence[_Place], worth: Sequence[float], size: int) -> Excerpt:
    """A window of one overlong sentence: from a word a little before the best matches, never through a link."""
    sentence = text[unit.start:unit.end]
    kept = [(match.start(), match.end()) for match in _WHOLE.finditer(sentence)]
    offset = 0
    if places and not sentence.lstrip(" \t>").startswith("|"):
        begin = unit.start
        spots = [_Unit(place.start - begin, place.end - begin, frozenset((place.number,))) for place in places]
        first, last = _best(spots, worth, size - len(_ELLIPSIS))
        room = size - len(_ELLIPSIS) - (spots[last].end - spots[first].start)
        offset = _word_start(sentence, max(0, spots[first].start - max(0, room) // 3), spots[first].start, kept)
    lead = _ELLIPSIS if offset else ""
    shown = shorten(sentence[offset:], size - len(lead))[0]
    if len(sentence) - offset > len(shown):
        shown = _to_word_end(sentence[offset:], shown)
    return Excerpt(lead + shown.rstrip(), unit.start + offset, False)


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
    """What to look for when a query's words are `groups` of tokens and worth so much each."""
    numbers: Dict[str, int] = {}
    for number, group in enumerate(groups):
        for token in group:
            numbers.setdefault(token, number)
    return Wanted(numbers, worth)
