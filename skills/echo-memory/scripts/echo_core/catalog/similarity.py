"""How alike two notes are, for the duplicate gate (spec 3.2).

Similar letters are no proof: "Plan 2025" and "Plan 2026", "Call with Anna" and "Call with Anne" are different things.
`differs_in_detail` says so, and whoever gates on similarity asks it first.
"""
from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import lru_cache
from typing import FrozenSet, List, Sequence, Tuple

from echo_core.names.ordinary_words import ORDINARY
from echo_core.recall.stemming import stem
from echo_core.recall.tokens import PREFIX, Word, words
from echo_core.text import fold, name_keys
from echo_core.text.boundaries import SPACELESS

SHINGLE = 5

# Texts whose lengths allow no higher ratio of shared letters are not compared letter by letter.
_LIKE_LENGTH = 0.7
_WORD = re.compile(r"[^\W_]+[+#]*")
_DETAIL_WORDS = """
monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
october november december jan feb mar apr jun jul aug sep sept oct nov dec montag dienstag mittwoch donnerstag freitag
samstag sonntag januar februar marz maerz mai juni juli oktober dezember spring summer autumn winter today tomorrow
yesterday morning evening zero one two three four five six seven eight nine ten eleven twelve first second third fourth
fifth last next previous null eins zwei drei vier funf fuenf sechs sieben acht neun zehn erste zweite dritte
i ii iii iv v vi vii viii ix x xi xii not no without before after old new
"""
_Words = Sequence[Tuple[str, FrozenSet[str]]]
_DATE_AND_NUMBER = frozenset(_DETAIL_WORDS.split())
# May differ between two titles of one thing written in a script without spaces.
_PARTICLES = frozenset("的之の・·")


def title_similarity(one: str, other: str) -> float:
    """How alike two titles are, 0 to 1, whatever the order of their words: the better of words and letters shared.

    Case, diacritics, punctuation and inflection do not count. A title that only contains the other is not the same.
    """
    first, second = _title_words(one), _title_words(other)
    if not first or not second:
        return float(fold(one) == fold(other))
    if first == second:
        return 1.0
    shared = 2 * len(first & second) / (len(first) + len(second))
    if _title_tokens(one).isdisjoint(_title_tokens(other)):
        return shared  # not even the first letters of one word: no need to compare letter by letter
    return max(shared, *(_letters_shared(left, right) for left in name_keys(one) for right in name_keys(other)))


def body_similarity(one: str, other: str) -> float:
    """Jaccard similarity, 0 to 1, of the runs of 5 neighbouring words in two texts; 0 when one of them has no word."""
    first, second = shingles(one), shingles(other)
    if not first or not second:
        return 0.0
    return len(first & second) / len(first | second)


def shingles(text: str) -> FrozenSet[Tuple[str, ...]]:
    """All runs of 5 neighbouring words (character pairs in spaceless scripts); one run when the text is shorter."""
    tokens = [_plain(word) for word in words(text) if word.tokens]
    if not tokens:
        return frozenset()
    last = max(1, len(tokens) - SHINGLE + 1)
    return frozenset(tuple(tokens[place:place + SHINGLE]) for place in range(last))


def differs_in_detail(one: str, other: str) -> bool:
    """Whether two titles differ in a number, a date or a proper name, and so mean two things however alike they look.

    A word that only one title has counts as a proper name when it is capitalised inside the title and no everyday
    word; in scripts without capitals every differing word does. Single letters count as numbers: plan A, plan B.
    """
    if not _title_keys(one).isdisjoint(_title_keys(other)):
        return False
    if SPACELESS.search(one) or SPACELESS.search(other):
        return _spaceless_letters(one) != _spaceless_letters(other)
    first, second = _detail_words(one), _detail_words(other)
    return any(map(_is_detail, _missing(first, second))) or any(map(_is_detail, _missing(second, first)))


_title_keys = lru_cache(maxsize=1 << 14)(name_keys)


@lru_cache(maxsize=1 << 14)
def _title_tokens(title: str) -> FrozenSet[str]:
    return frozenset(token for word in words(title) for token in word.tokens)


@lru_cache(maxsize=1 << 14)
def _title_words(title: str) -> FrozenSet[str]:
    return frozenset(_plain(word) for word in words(title) if word.tokens)


def _plain(word: Word) -> str:
    """One word for comparing: its parts and spellings without the prefix that search adds."""
    return " ".join(token for token in word.tokens if not token.startswith(PREFIX))


def _letters_shared(one: str, other: str) -> float:
    left, right = (" ".join(sorted(title.split())) for title in (one, other))
    if 2 * min(len(left), len(right)) < _LIKE_LENGTH * (len(left) + len(right)):
        return 0.0
    # The matcher is greedy and finds more from one side than from the other.
    return max(SequenceMatcher(None, first, second, autojunk=False).ratio()
               for first, second in ((left, right), (right, left)))


def _spaceless_letters(title: str) -> str:
    return "".join(char for char in fold(title) if char != " " and char not in _PARTICLES)


@lru_cache(maxsize=1 << 14)
def _detail_words(title: str) -> Tuple[Tuple[str, FrozenSet[str]], ...]:
    """The words of a title, each with its spellings and without its inflection."""
    found = ((word, frozenset(map(stem, name_keys(word)))) for word in _WORD.findall(title))
    return tuple((word, keys) for word, keys in found if keys)


def _missing(words_of_one: _Words, words_of_other: _Words) -> List[str]:
    """Words of the first title that the second has in no spelling and no inflection."""
    known = frozenset().union(*(keys for _, keys in words_of_other))
    return [word for word, keys in words_of_one if known.isdisjoint(keys)]


@lru_cache(maxsize=1 << 14)
def _is_detail(word: str) -> bool:
    key = fold(word)
    if any(map(str.isdigit, word)) or len(key) == 1 or key in _DATE_AND_NUMBER:
        return True
    if key in ORDINARY:
        return False
    return word[0].isupper() or word.lower() == word.upper()
