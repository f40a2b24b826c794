"""The score of a passage, whichever engine found it (spec 5.2)."""
from __future__ import annotations

from bisect import bisect_left
from typing import Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from echo_core.bm25 import SATURATION, idf, norms
from echo_core.recall.term_counts import FIELDS, TermCounts, key_of


class Term(NamedTuple):
    """A term of the vault. number: its own in the store; documents: how many hold it, for each of FIELDS."""

    number: int
    documents: Tuple[int, ...]

    @property
    def frequency(self) -> int:
        """How many documents hold it in the field where most do."""
        return max(self.documents)


class Statistics(NamedTuple):
    """What is known of all passages. averages: tokens of each of FIELDS where it is there; terms: those asked for."""

    documents: int
    averages: Tuple[float, ...]
    terms: Mapping[str, Term]

    def frequency(self, term: str) -> int:
        """How many documents hold a term that was asked for, 0 when none does."""
        found = self.terms.get(term)
        return found.frequency if found else 0


class Plan(NamedTuple):
    """One term in one field, and what it adds to a passage: gain · n / (n + fixed + slope · length)."""

    key: int
    field: int
    term: str
    gain: float
    fixed: float
    slope: float


class Share(NamedTuple):
    """How a score comes about. parts: field -> share of it; matched: terms of the query in any field."""

    parts: Dict[str, float]
    matched: FrozenSet[str]


def plans(terms: Iterable[str], weights: Mapping[str, float], known: Statistics) -> List[Plan]:
    """Every term in every field that holds it somewhere. weights: field -> factor."""
    found = []
    for word in dict.fromkeys(terms):
        term = known.terms.get(word)
        for field, documents in enumerate(term.documents if term else ()):
            weight = weights.get(FIELDS[field], 0.0)
            if term and documents and weight:
                gain = weight * idf(known.documents, documents) * (SATURATION + 1)
                found.append(Plan(key_of(term.number, field), field, word, gain, *norms(known.averages[field])))
    return found


def score(asked: Sequence[Plan], held: TermCounts) -> float:
    """BM25 of a passage."""
    total, lengths, keys, counts, last = 0.0, held.lengths, held.keys, held.counts, len(held.keys)
    for key, field, _, gain, fixed, slope in asked:
        place = bisect_left(keys, key)
        if place < last and keys[place] == key:
            count = counts[place]
            total += gain * count / (count + fixed + slope * lengths[field])
    return total


def share(asked: Sequence[Plan], held: TermCounts) -> Share:
    """What a score is made of."""
    parts: Dict[str, float] = {}
    matched = set()
    keys, last = held.keys, len(held.keys)
    for key, field, term, gain, fixed, slope in asked:
        place = bisect_left(keys, key)
        if place < last and keys[place] == key:
            count = held.counts[place]
            added = gain * count / (count + fixed + slope * held.lengths[field])
            parts[FIELDS[field]] = parts.get(FIELDS[field], 0.0) + added
            matched.add(term)
    return Share(parts, frozenset(matched))
