"""When a hit has earned its place, and when the honest answer is none (spec 5.4).

A hit is judged by coverage: the share of what the query's telling words are worth (their idf) that its passage holds.
From that goes what chance alone would cover; a query all of whose names are unknown to the vault counts less.
The numbers were calibrated on questions with and without an answer in several languages and lengths of text.
"""
from __future__ import annotations

from typing import AbstractSet, Callable, FrozenSet, List, NamedTuple, Sequence, Tuple

from echo_core.bm25 import idf
from echo_core.names.ordinary_words import STOP_WORDS
from echo_core.recall.ranking import Statistics
from echo_core.recall.stemming import stem
from echo_core.recall.tokens import PREFIX, Word, is_paired, query_words, words

LEAST_FIT = 0.2
LEAST_SHARE = 0.4
"""A hit whose score is less than this share of the best one's adds length, not answers."""

_UNSEEN = 50  # notes every vault is taken to have besides its own: in a small one nothing is rare yet
_SPREAD = 1.5
_SCORE_SHARE = 0.15
_UNKNOWN_NAMES = 0.4
_CLOSE_ENOUGH = 0.6
_TELLING_LETTERS = 5
_MOST_CHANCE = 0.9
# In scripts without spaces a pair of characters often lies across two words: with a grammar word in it tells little,
# and that the vault has never seen it tells less than of a word.
_GRAMMAR_CHARACTERS = frozenset(
    "的是什么在了和有哪谁何吗呢为与及对从到把被给向由也这那之其而且于以个些多少几怎样时候叫"
    "はがをにのともでへや"
)
_ACROSS_WORDS = 0.3
_UNSEEN_PAIR = 0.75
_STOP_STEMS = frozenset(stem(word) for word in STOP_WORDS) | STOP_WORDS


class Query(NamedTuple):
    """A query as search understands it.

    groups: one tuple of tokens a word, the main one first. worth: of each word, its idf, 0 for grammar words.
    terms: all tokens. chance: coverage that a passage reaches by chance. known: whether the vault has any of the
    names in it (True when it has none). statistics: of these terms.
    """

    groups: Sequence[Tuple[str, ...]]
    worth: Sequence[float]
    terms: Sequence[str]
    chance: float
    known: bool
    statistics: Statistics

    @classmethod
    def of(cls, text: str, look_up: Callable[[Sequence[str]], Statistics]) -> "Query":
        """The query that `text` is. look_up: gives the statistics of terms."""
        groups = query_words(text)
        telling = {group for group in groups if group[0] not in _STOP_STEMS} or set(groups)
        terms = list(dict.fromkeys(token for group in groups for token in group))
        known = look_up(terms)
        size = known.documents + _UNSEEN
        counts = [known.frequency(group[0]) for group in groups]
        worth = [_worth(group[0], count, size) if group in telling else 0.0 for group, count in zip(groups, counts)]
        names = _names(text)
        found = [count > 0 for group, count in zip(groups, counts) if group[0] in names]
        return cls(groups, worth, terms, _chance(worth, counts, size), any(found) or not found, known)


def _worth(token: str, count: int, size: int) -> float:
    """What finding this word tells."""
    value = idf(size, count)
    if is_paired(token):
        value *= _UNSEEN_PAIR if count == 0 else 1.0
        value *= 1.0 if _GRAMMAR_CHARACTERS.isdisjoint(token) else _ACROSS_WORDS
    return value


def coverage(query: Query, matched: AbstractSet[str], there: Sequence[Word]) -> float:
    """The share, 0 to 1, of the query's worth that a passage covers.

    matched: the query's tokens it holds, in any field; there: the words of its text that have one, to see how near
    a word with the same first letters comes.
    """
    total = sum(query.worth)
    if not total:
        return 0.0
    loose = {group[0]: group[-1] for group in query.groups if group[-1] in matched and _is_loose(group, matched)}
    near = _nearness(loose, there) if loose else {}
    found = 0.0
    for group, worth in zip(query.groups, query.worth):
        if worth and not matched.isdisjoint(group):
            found += worth * (near.get(group[0], 0.0) if group[0] in loose else 1.0)
    return found / total


def fit(query: Query, covered: float, score: float) -> float:
    """How well a hit fits: about 0 for chance, 1 for a passage that holds every telling word."""
    total = sum(query.worth) or 1.0
    value = (covered - query.chance) / (1 - query.chance) + _SCORE_SHARE * score / total
    return value if query.known else value * _UNKNOWN_NAMES


def _is_loose(group: Sequence[str], matched: AbstractSet[str]) -> bool:
    """Whether only the first letters of a word were found."""
    return all(token.startswith(PREFIX) for token in group if token in matched)


def _nearness(loose: "dict[str, str]", there: Sequence[Word]) -> "dict[str, float]":
    """For each main token the likeness, 0 to 1, of the nearest word that is there with the same first letters."""
    near = dict.fromkeys(loose, 0.0)
    for word in there:
        for main, prefix in loose.items():
            if prefix in word.tokens:
                near[main] = max(near[main], _likeness(main, word.tokens[0]))
    return near


def _likeness(one: str, other: str) -> float:
    """The share of letters two words have in common at their start; 0 when it is too little to be the same word.

    Words of four common letters that both go on differently are two words: bread and break.
    """
    shared = 0
    for left, right in zip(one, other):
        if left != right:
            break
        shared += 1
    share = shared / max(len(one), len(other))
    related = shared >= _TELLING_LETTERS or shared == min(len(one), len(other))
    return share if related and share >= _CLOSE_ENOUGH else 0.0


def _names(text: str) -> FrozenSet[str]:
    """Main tokens of capitalised words that do not open the query."""
    found: List[str] = []
    for place, word in enumerate(words(text)):
        if place and word.tokens and text[word.start].isupper() and word.tokens[0] not in _STOP_STEMS:
            found.append(word.tokens[0])
    return frozenset(found)


def _chance(worth: Sequence[float], counts: Sequence[int], size: int) -> float:
    """Mean coverage of a random passage and some of its spread, kept below 1 so that full coverage always counts."""
    total = sum(worth)
    if not total:
        return 0.0
    rates = [count / size for count in counts]
    mean = sum(value * rate for value, rate in zip(worth, rates)) / total
    variance = sum(value * value * rate * (1 - rate) for value, rate in zip(worth, rates))
    return float(min(mean + _SPREAD * variance ** 0.5 / total, _MOST_CHANCE))
