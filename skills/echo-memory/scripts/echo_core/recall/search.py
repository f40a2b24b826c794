"""Search over the notes of a vault: the seam between the ops and an engine (spec 5.2, 5.4).

An `Engine` only names likely passages. What is scored, judged and shown comes from the `PassageStore`, so that every
engine gives the same answer.
"""
from __future__ import annotations

from typing import Callable, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from echo_core.bm25 import Asked, Engine, weights_for
from echo_core.recall.excerpts import Wanted, wanted_words
from echo_core.recall.faults import IndexLost
from echo_core.recall.fitting import LEAST_FIT, LEAST_SHARE, Query, coverage, fit
from echo_core.recall.kept_index import MOST_RECENT, KeptIndex
from echo_core.recall.passages import Passage
from echo_core.recall.priors import prior
from echo_core.recall.ranking import Plan, plans, score, share
from echo_core.recall.store import Candidate, PassageStore, StoredNote
from echo_core.recall.term_counts import FIELDS
from echo_core.recall.tokens import Word, find_words

JUDGED = 5
"""How many of the best hits may show that the vault has an answer."""

LEAST_CANDIDATES = 24
"""Passages an engine is asked for at least: it ranks by a formula a little different from ours."""

FEW_PASSAGES = 2000
"""When a filter leaves no more than these, the engine chooses among them; else what it finds is filtered."""

_OVERFETCH = 4


class Hit(NamedTuple):
    """One note found, by its best passage.

    score: comparable within one answer only. parts: field -> share of the BM25 score, and `prior`, the factor on it.
    coverage: share, 0 to 1, of what the query's telling words are worth that the passage holds; fit: the same beyond
    chance, what the threshold is about. matched: tokens of the query it holds. words: where those worth anything stand.
    """

    note: StoredNote
    heading: str
    line: int
    score: float
    parts: Dict[str, float]
    coverage: float
    fit: float
    matched: FrozenSet[str]
    passage: Passage
    words: List[Word]

    @property
    def path(self) -> str:
        """Where the note lies."""
        return self.note.path


class Found(NamedTuple):
    """An answer: the hits, and what excerpts of them should show."""

    hits: List[Hit]
    wanted: Wanted


class SearchIndex(KeptIndex):
    """All notes of one vault, searchable as soon as `upsert` returns; every thread may use it.

    engine, store: as in KeptIndex. today: the owner's day as YYYY-MM-DD, for the prior of age.
    """

    def __init__(
        self, engine: Optional[Engine] = None, today: Callable[[], str] = lambda: "",
        store: Optional[PassageStore] = None,
    ) -> None:
        super().__init__(engine, store)
        self._today = today

    def search(
        self, query: str, limit: int = 10, kinds: Sequence[str] = (), since: str = "", until: str = "",
        everything: bool = False,
    ) -> List[Hit]:
        """The hits that `find` gives."""
        return self.find(query, limit, kinds, since, until, everything).hits

    def find(
        self, query: str, limit: int = 10, kinds: Sequence[str] = (), since: str = "", until: str = "",
        everything: bool = False,
    ) -> Found:
        """At most `limit` notes that fit the query, best first; none when nothing fits.

        query: data, never syntax; without a letter or digit it finds nothing. kinds: only these, () is any.
        since, until: only notes updated then, both days included, "" is open. everything: also what fits badly.
        """
        if self._engine.at_once or len(self._recent) > MOST_RECENT:
            self.commit()
        with self._lock:
            self._store.commit()
            asked = Query.of(query, self._store.statistics)
            wanted = wanted_words(asked.groups, asked.worth)
            ranked, formula = self._ranked(asked, limit, kinds, since, until)
            texts = self._store.shown([candidate.doc for _, candidate in ranked])
        hits = (_hit(asked, wanted, formula, candidate, value, *texts[candidate.doc])
                for value, candidate in ranked if candidate.doc in texts)
        return Found(list(hits) if everything else _fitting(hits), wanted)

    def _ranked(
        self, asked: Query, limit: int, kinds: Sequence[str], since: str, until: str,
    ) -> Tuple[List[Tuple[float, Candidate]], List[Plan]]:
        """The best passage of each of the best notes with its score, and the formula of that.

        Asks the engine for more until there are enough.
        """
        only = self._store.filtered(kinds, since, until, FEW_PASSAGES) if kinds or since or until else None
        wanted = _filter(kinds, since, until)
        weights = weights_for(len(asked.groups))
        formula = plans(asked.terms, weights, asked.statistics)
        today = self._today()
        sought = [Asked(FIELDS[plan.field], plan.term, weights[FIELDS[plan.field]]) for plan in formula]
        count = max(limit * _OVERFETCH, LEAST_CANDIDATES)
        while True:
            known, recent = (part.search(sought, count, only) for part in (self._engine, self._recent))
            docs = list({found.doc: None for found in (*known, *recent)})
            best: Dict[str, Tuple[float, int, Candidate]] = {}
            for found in self._candidates(docs):
                if wanted(found):
                    factor = prior(found.status, found.updated, found.superseded_by, today)
                    rank = (score(formula, found.counts) * factor, -found.doc, found)
                    if found.path not in best or rank[:2] > best[found.path][:2]:
                        best[found.path] = rank
            if len(best) >= limit or max(len(known), len(recent)) < count:
                break
            count *= _OVERFETCH
        chosen = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))[:limit]
        return [(value, candidate) for _, (value, _, candidate) in chosen], formula

    def _candidates(self, docs: Sequence[int]) -> List[Candidate]:
        """Raises IndexLost when the engine names passages that never were: it is that of another store."""
        found = self._store.candidates(docs)
        if len(found) < len(docs):
            unknown: Set[int] = set(docs) - {candidate.doc for candidate in found}
            if not unknown <= set(self._gone):
                raise IndexLost("the engine's index does not belong to the stored passages")
        return found


def _hit(
    asked: Query, wanted: Wanted, formula: Sequence[Plan], candidate: Candidate, value: float, note: StoredNote,
    passage: Passage,
) -> Hit:
    words = find_words(passage.text, wanted.numbers.keys())
    parts, matched = share(formula, candidate.counts)
    raw = sum(parts.values())
    parts["prior"] = value / raw if raw else 1.0
    covered = coverage(asked, matched, words)
    place = passage.place(0)
    return Hit(note, place.heading, place.line, value, parts, covered, fit(asked, covered, raw), matched, passage,
               words)


def _fitting(hits: Iterator[Hit]) -> List[Hit]:
    """The hits without those far below the best; none when not one of the first five fits."""
    near: List[Hit] = []
    fits = False
    for place, hit in enumerate(hits):
        if near and hit.score < LEAST_SHARE * near[0].score and (fits or place >= JUDGED):
            break  # the others are further below, and need not be looked at
        fits = fits or (place < JUDGED and hit.fit >= LEAST_FIT)
        if not near or hit.score >= LEAST_SHARE * near[0].score:
            near.append(hit)
    return near if fits else []


def _filter(kinds: Sequence[str], since: str, until: str) -> Callable[[Candidate], bool]:
    def wanted(note: Candidate) -> bool:
        if (since and note.day < since) or (until and not "" < note.day <= until):
            return False
        return not kinds or note.kind in kinds
    return wanted
