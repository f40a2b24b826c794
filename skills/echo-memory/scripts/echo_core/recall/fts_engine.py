"""Which passages hold a term, by SQLite's FTS5 in the file of the passages: kept and committed with them (spec 5.1).

FTS5 only lists who holds a term. What those passages are worth is our own formula over the counts that the store keeps
of them, so the order is exact. The words of the index are the numbers that the store has given to our tokens.
"""
from __future__ import annotations

import heapq
import sqlite3
from typing import Collection, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from echo_core.bm25 import Asked, Scored
from echo_core.recall.database import guarded
from echo_core.recall.ranking import Plan, plans, score
from echo_core.recall.store import PassageStore
from echo_core.recall.term_counts import TermCounts, split_key

_TABLE = "CREATE VIRTUAL TABLE found USING fts5(terms, content = '', detail = none, tokenize = ascii)"


def has_fts5() -> bool:
    """Whether this Python's SQLite has FTS5."""
    try:
        database = sqlite3.connect(":memory:")
        try:
            database.execute(_TABLE)
        finally:
            database.close()
    except sqlite3.Error:
        return False
    return True


class FtsEngine:
    """The engine of the command line. store: the passages, whose transactions are the engine's as well.

    A document is added after its passage and deleted before it.
    """

    at_once = True

    def __init__(self, store: PassageStore) -> None:
        self._store = store
        self._database = store.database
        with guarded():
            if not self._database.rows("SELECT 1 FROM sqlite_master WHERE name = 'found'"):
                self._database.run(_TABLE)

    def __len__(self) -> int:
        with guarded():
            return int(self._database.rows("SELECT count(*) FROM found_docsize")[0][0])

    def upsert(self, doc: int, fields: Mapping[str, Sequence[str]]) -> None:
        """Add a document, whose number is new or deleted."""
        with guarded():
            for terms in self._terms(doc):
                self._database.run("INSERT INTO found (rowid, terms) VALUES (?, ?)", (doc, terms))

    def delete(self, doc: int) -> None:
        """Forget one document; nothing happens when there is none of that number."""
        with guarded():
            if self._database.rows("SELECT 1 FROM found_docsize WHERE id = ?", (doc,)):
                for terms in self._terms(doc):
                    self._database.run("INSERT INTO found (found, rowid, terms) VALUES ('delete', ?, ?)", (doc, terms))

    def _terms(self, doc: int) -> Iterator[str]:
        """The text of a document as FTS5 gets it, none when there is no such passage."""
        for (counts,) in self._database.rows("SELECT counts FROM passage WHERE id = ?", (doc,)):
            yield " ".join(map(str, sorted({split_key(key)[0] for key in TermCounts(counts).keys})))

    def clear(self) -> None:
        """Forget every document."""
        with guarded():
            self._database.run("INSERT INTO found (found) VALUES ('delete-all')")

    def commit(self) -> None:
        """Nothing to do: the passages' commit is this one's."""

    def search(self, asked: Sequence[Asked], limit: int, only: Optional[Collection[int]] = None) -> List[Scored]:
        """The best `limit` documents, best first, ties by number."""
        known = self._store.statistics([term for _, term, _ in asked])
        weights = {field: weight for field, _, weight in asked}
        formula = plans((term for _, term, _ in asked), weights, known)
        chosen = None if only is None else frozenset(only)
        scores: Dict[int, float] = {}
        for number, rest in _by_gain(formula):
            # Who holds none of the terms so far cannot be worth more than all that is left.
            if len(scores) >= limit and heapq.nlargest(limit, scores.values())[-1] > rest:
                break
            for doc, counts in self._holders(number):
                if doc not in scores and (chosen is None or doc in chosen):
                    scores[doc] = score(formula, TermCounts(counts))
        best = heapq.nsmallest(limit, scores.items(), key=lambda item: (-item[1], item[0]))
        return [Scored(doc, value) for doc, value in best]

    def _holders(self, number: int) -> List[Tuple[int, bytes]]:
        with guarded():
            return self._database.rows(
                "SELECT passage.id, counts FROM found JOIN passage ON passage.id = found.rowid WHERE found MATCH ?",
                (f'"{number}"',))

    def close(self, lost: bool = False) -> None:
        """Nothing to do: the file is that of the passages."""


def _by_gain(formula: Sequence[Plan]) -> List[Tuple[int, float]]:
    """(number, what it and all that follow can add at most) of every term, the most telling first."""
    gains: Dict[int, float] = {}
    for plan in formula:
        number = split_key(plan.key)[0]
        gains[number] = gains.get(number, 0.0) + plan.gain
    ordered = sorted(gains, key=lambda number: (-gains[number], number))
    return [(number, sum(gains[other] for other in ordered[place:])) for place, number in enumerate(ordered)]
