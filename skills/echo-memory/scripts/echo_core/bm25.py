"""BM25 for each field of its own, summed by weight: the formula, and an engine in memory (spec 5.2).

An `Engine` names the documents that may be among the best; `echo_core.recall.ranking` scores those by the formula
here, so every engine gives the same answer. Documents are numbers; fields hold tokens as `echo_core.recall.tokens`
makes them.
"""
from __future__ import annotations

import heapq
import math
from collections import Counter
from typing import Collection, Dict, Iterable, List, Mapping, NamedTuple, Optional, Protocol, Sequence, Tuple

FIELD_WEIGHTS: Dict[str, float] = {"body": 1.0, "title": 1.0, "alias": 0.5, "tag": 0.5, "heading": 0.3}
LONG_QUERY = 10
LONG_QUERY_TITLE_WEIGHT = 0.5

# Measured on questions over encyclopedia paragraphs and chat turns: best over both (usual defaults 1.2 and 0.75).
SATURATION = 0.9
LENGTH_PENALTY = 0.4

_FEW = 256
"""Posting lists up to this length are scored without asking whether that can still change the answer."""


class Scored(NamedTuple):
    """A document that an engine found, and how good by its own measure."""

    doc: int
    score: float


class Asked(NamedTuple):
    """A term that is looked for in a field, and the factor on what finding it there is worth."""

    field: str
    term: str
    weight: float


class Engine(Protocol):
    """What search needs of an engine. Changes come from one thread at a time, searches from any.

    at_once: whether a change is found as soon as it is made and `commit` costs nothing; what the engine keeps it then
    keeps in the passages' own transactions. Everything but `__len__` may raise IndexLost: what the engine keeps is gone
    or broken.
    """

    at_once: bool

    def upsert(self, doc: int, fields: Mapping[str, Sequence[str]]) -> None:
        """Add a document, whose number is new or deleted; found after the next `commit` at the latest."""

    def delete(self, doc: int) -> None:
        """Forget one document with the next `commit`; nothing happens when there is none of that number."""

    def commit(self) -> None:
        """Make what was changed so far visible to `search`, and keep it."""

    def search(
        self, asked: Sequence[Asked], limit: int, only: Optional[Collection[int]] = None,
    ) -> List[Scored]:
        """The documents most likely among the best `limit`, best first. only: those to choose from, None is all."""

    def __len__(self) -> int:
        """How many documents there are."""

    def clear(self) -> None:
        """Forget every document."""

    def close(self, lost: bool = False) -> None:
        """Let go of files; what was committed stays, unless it is lost: then the files go too."""


def weights_for(words: int) -> Dict[str, float]:
    """Field weights for a query of that many words: titles say less about a long question."""
    weights = dict(FIELD_WEIGHTS)
    if words > LONG_QUERY:
        weights["title"] = LONG_QUERY_TITLE_WEIGHT
    return weights


def idf(documents: int, frequency: int) -> float:
    """Inverse document frequency, never negative: how much a term that `frequency` documents hold tells."""
    return math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5))


def norms(average: float) -> Tuple[float, float]:
    """(a, b) with which a field of n tokens has the norm a + b·n. average: tokens of that field where it is there."""
    return SATURATION * (1 - LENGTH_PENALTY), SATURATION * LENGTH_PENALTY / (average or 1.0)


class _Field:
    """Postings of one field: term -> {document: count}, and document -> length in tokens."""

    def __init__(self) -> None:
        self.postings: Dict[str, Dict[int, int]] = {}
        self.lengths: Dict[int, int] = {}
        self.total = 0

    def add(self, doc: int, tokens: Sequence[str]) -> None:
        for term, count in Counter(tokens).items():
            self.postings.setdefault(term, {})[doc] = count
        self.lengths[doc] = len(tokens)
        self.total += len(tokens)

    def remove(self, doc: int, terms: Iterable[str]) -> None:
        for term in terms:
            holders = self.postings[term]
            del holders[doc]
            if not holders:
                del self.postings[term]
        self.total -= self.lengths.pop(doc)

    def norms(self) -> Tuple[float, float]:
        return norms(self.total / len(self.lengths) if self.lengths else 0.0)


class _Plan(NamedTuple):
    """One term in one field, and what it can add to a document at most."""

    field: str
    term: str
    gain: float


class Bm25Index:
    """The engine of the standard library: exact top documents, changed in place, no rebuild; kept by nothing."""

    at_once = True

    def __init__(self) -> None:
        self._fields: Dict[str, _Field] = {}
        self._terms: Dict[int, Dict[str, Tuple[str, ...]]] = {}

    def __len__(self) -> int:
        return len(self._terms)

    def clear(self) -> None:
        """Forget every document."""
        self._fields.clear()
        self._terms.clear()

    def close(self, lost: bool = False) -> None:
        """Nothing to do: there are no files."""

    def upsert(self, doc: int, fields: Mapping[str, Sequence[str]]) -> None:
        """Add or replace one document. fields: name -> tokens; empty fields count as absent."""
        self.delete(doc)
        held = {}
        for name, tokens in fields.items():
            if tokens:
                self._fields.setdefault(name, _Field()).add(doc, tokens)
                held[name] = tuple(dict.fromkeys(tokens))
        self._terms[doc] = held

    def delete(self, doc: int) -> None:
        """Forget one document; nothing happens when there is none of that number."""
        for name, terms in self._terms.pop(doc, {}).items():
            self._fields[name].remove(doc, terms)

    def commit(self) -> None:
        """Nothing to do: a change is visible at once."""

    def search(
        self, asked: Sequence[Asked], limit: int, only: Optional[Collection[int]] = None,
    ) -> List[Scored]:
        """The best `limit` documents, best first, ties by number."""
        plans = self._plans(asked)
        scores = self._scores(plans, limit) if only is None else self._scores_of(plans, frozenset(only))
        best = heapq.nsmallest(limit, scores.items(), key=lambda item: (-item[1], item[0]))
        return [Scored(doc, score) for doc, score in best]

    def _plans(self, asked: Sequence[Asked]) -> List[_Plan]:
        """Every term and field that can add something, the most telling first."""
        plans = []
        for name, term, weight in asked:
            holders = self._fields[name].postings.get(term) if name in self._fields else None
            if holders:
                plans.append(_Plan(name, term, weight * idf(len(self._terms), len(holders)) * (SATURATION + 1)))
        return sorted(plans, key=lambda plan: (-plan.gain, plan.field, plan.term))

    def _scores(self, plans: Sequence[_Plan], limit: int) -> Dict[int, float]:
        """Scores of all documents that can be among the best `limit`; of others perhaps less than their due.

        Frequent terms come last. As soon as all that is left to add could not lift a new document to the place
        of the worst one kept, a term is only looked up for those that are still in the race.
        """
        scores: Dict[int, float] = {}
        rest = sum(plan.gain for plan in plans)
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
            rest -= plan.gain
        return scores

    def _scores_of(self, plans: Sequence[_Plan], only: Collection[int]) -> Dict[int, float]:
        scores = dict.fromkeys(only, 0.0)
        for plan in plans:
            _add_known(scores, self._fields[plan.field], self._fields[plan.field].postings[plan.term], plan.gain)
        return {doc: score for doc, score in scores.items() if score}


def _add_all(scores: Dict[int, float], field: _Field, holders: Dict[int, int], gain: float) -> None:
    fixed, slope = field.norms()
    lengths, known = field.lengths, scores.get
    for doc, count in holders.items():
        scores[doc] = known(doc, 0.0) + gain * count / (count + fixed + slope * lengths[doc])


def _add_known(scores: Dict[int, float], field: _Field, holders: Dict[int, int], gain: float) -> None:
    fixed, slope = field.norms()
    for doc in scores:
        count = holders.get(doc)
        if count:
            scores[doc] += gain * count / (count + fixed + slope * field.lengths[doc])
