"""An inverted index in memory, a BM25 of its own for each field, standard library only (spec 5.2).

It is the engine of the CLI and the fallback of the server; any engine with the methods of `Engine` takes its place.
Documents are named by strings; fields hold tokens as `echo_core.tokens` makes them.
"""
from __future__ import annotations

import heapq
import math
from collections import Counter
from typing import Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Protocol, Sequence, Tuple

FIELD_WEIGHTS: Dict[str, float] = {"body": 1.0, "title": 1.0, "alias": 0.5, "tag": 0.5, "heading": 0.3}
LONG_QUERY = 10
LONG_QUERY_TITLE_WEIGHT = 0.5

# Measured on questions over encyclopedia paragraphs and chat turns: best over both (usual defaults 1.2 and 0.75).
SATURATION = 0.9
LENGTH_PENALTY = 0.4

_FEW = 256
"""Posting lists up to this length are scored without asking whether that can still change the answer."""


class Scored(NamedTuple):
    """One document found. parts: field -> share of the score; matched: terms of the query in any field of it."""

    doc: str
    score: float
    parts: Dict[str, float]
    matched: FrozenSet[str]


class Engine(Protocol):
    """What search needs of an engine. Calls come from one thread at a time."""

    def upsert(self, doc: str, fields: Mapping[str, Sequence[str]]) -> None:
        """Add or replace one document; found after the next `commit`."""

    def delete(self, doc: str) -> None:
        """Forget one document; nothing happens when there is none of that name."""

    def commit(self) -> None:
        """Make what was changed so far visible to `search`."""

    def search(self, terms: Iterable[str], limit: int, weights: Mapping[str, float]) -> List[Scored]:
        """The best `limit` documents for the terms, best first, ties by name. weights: field -> factor."""

    def frequency(self, term: str) -> int:
        """How many documents hold the term in the field where most do."""

    def __len__(self) -> int:
        """How many documents there are."""


def weights_for(words: int) -> Dict[str, float]:
    """Field weights for a query of that many words: titles say less about a long question."""
    weights = dict(FIELD_WEIGHTS)
    if words > LONG_QUERY:
        weights["title"] = LONG_QUERY_TITLE_WEIGHT
    return weights


def idf(documents: int, frequency: int) -> float:
    """Inverse document frequency, never negative: how much a term that `frequency` documents hold tells."""
    return math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5))


class _Field:
    """Postings of one field: term -> {document: count}, and document -> length in tokens."""

    def __init__(self) -> None:
        self.postings: Dict[str, Dict[str, int]] = {}
        self.lengths: Dict[str, int] = {}
        self.total = 0

    def add(self, doc: str, tokens: Sequence[str]) -> None:
        for term, count in Counter(tokens).items():
            self.postings.setdefault(term, {})[doc] = count
        self.lengths[doc] = len(tokens)
        self.total += len(tokens)

    def remove(self, doc: str, terms: Iterable[str]) -> None:
        for term in terms:
            holders = self.postings[term]
            del holders[doc]
            if not holders:
                del self.postings[term]
        self.total -= self.lengths.pop(doc)

    def norms(self) -> Tuple[float, float]:
        """(a, b) with which a document of length n has the norm a + b·n."""
        average = self.total / len(self.lengths) if self.total else 1.0
        return SATURATION * (1 - LENGTH_PENALTY), SATURATION * LENGTH_PENALTY / average


class _Plan(NamedTuple):
    """One term in one field: what it can add to a document at most, and what is needed to tell how much it adds."""

    bound: float
    field: str
    term: str
    gain: float


class Bm25Index:
    """The engine: exact top documents, changed in place, no rebuild."""

    def __init__(self) -> None:
        self._fields: Dict[str, _Field] = {}
        self._terms: Dict[str, Dict[str, Tuple[str, ...]]] = {}

    def __len__(self) -> int:
        return len(self._terms)

    def upsert(self, doc: str, fields: Mapping[str, Sequence[str]]) -> None:
        """Add or replace one document. fields: name -> tokens; empty fields count as absent."""
        self.delete(doc)
        held = {}
        for name, tokens in fields.items():
            if tokens:
                self._fields.setdefault(name, _Field()).add(doc, tokens)
                held[name] = tuple(dict.fromkeys(tokens))
        self._terms[doc] = held

    def delete(self, doc: str) -> None:
        """Forget one document; nothing happens when there is none of that name."""
        for name, terms in self._terms.pop(doc, {}).items():
            self._fields[name].remove(doc, terms)

    def commit(self) -> None:
        """Nothing to do: a change is visible at once."""

    def frequency(self, term: str) -> int:
        """How many documents hold the term in the field where most do."""
        return max((len(field.postings.get(term, ())) for field in self._fields.values()), default=0)

    def search(self, terms: Iterable[str], limit: int, weights: Mapping[str, float]) -> List[Scored]:
        """The best `limit` documents, best first, ties by name; a term that is given twice counts once."""
        plans = self._plans(terms, weights)
        scores = self._scores(plans, limit)
        best = heapq.nsmallest(limit, scores.items(), key=lambda item: (-item[1], item[0]))
        return [self._explained(doc, plans) for doc, _ in best]

    def _plans(self, terms: Iterable[str], weights: Mapping[str, float]) -> List[_Plan]:
        """Every term and field that can add something, the most telling first."""
        plans = []
        for term in dict.fromkeys(terms):
            for name, weight in weights.items():
                holders = self._fields[name].postings.get(term) if name in self._fields else None
                if holders:
                    gain = weight * idf(len(self._terms), len(holders)) * (SATURATION + 1)
                    plans.append(_Plan(gain, name, term, gain))
        return sorted(plans, key=lambda plan: (-plan.bound, plan.field, plan.term))

    def _scores(self, plans: Sequence[_Plan], limit: int) -> Dict[str, float]:
        """Scores of all documents that can be among the best `limit`; of others perhaps less than their due.

        Frequent terms come last. As soon as all that is left to add could not lift a new document to the place
        of the worst one kept, a term is only looked up for those that are still in the race.
        """
        scores: Dict[str, float] = {}
        rest = sum(plan.bound for plan in plans)
        closed = False
        for plan in plans:
            field = self._fields[plan.field]
            holders = field.postings[plan.term]
            if len(holders) > _FEW and len(scores) >= limit:
                floor = heapq.nlargest(limit, scores.values())[-1]
                closed = closed or rest < floor
                if closed:
                    scores = {doc: score for doc, score in scores.items() if score + rest >= floor}
            if closed and len(scores) < len(holders):
                _add_known(scores, field, holders, plan.gain)
            else:
                _add_all(scores, field, holders, plan.gain)
            rest -= plan.bound
        return scores

    def _explained(self, doc: str, plans: Sequence[_Plan]) -> Scored:
        parts: Dict[str, float] = {}
        matched = set()
        for plan in plans:
            field = self._fields[plan.field]
            count = field.postings[plan.term].get(doc)
            if count:
                fixed, slope = field.norms()
                gain = plan.gain * count / (count + fixed + slope * field.lengths[doc])
                parts[plan.field] = parts.get(plan.field, 0.0) + gain
                matched.add(plan.term)
        return Scored(doc, sum(parts.values()), parts, frozenset(matched))


def _add_all(scores: Dict[str, float], field: _Field, holders: Dict[str, int], gain: float) -> None:
    fixed, slope = field.norms()
    lengths, known = field.lengths, scores.get
    for doc, count in holders.items():
        scores[doc] = known(doc, 0.0) + gain * count / (count + fixed + slope * lengths[doc])


def _add_known(scores: Dict[str, float], field: _Field, holders: Dict[str, int], gain: float) -> None:
    fixed, slope = field.norms()
    for doc in scores:
        count = holders.get(doc)
        if count:
            scores[doc] += gain * count / (count + fixed + slope * field.lengths[doc])
