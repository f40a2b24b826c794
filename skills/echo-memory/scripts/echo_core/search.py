"""Search over the notes of a vault: the seam between the ops and an engine (spec 5.2, 5.4).

`SearchIndex` knows notes, passages, priors and when to answer nothing; an `Engine` knows documents and tokens.
"""
from __future__ import annotations

import datetime
import threading
from typing import Callable, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from echo_core.bm25 import Bm25Index, Engine, Scored, weights_for
from echo_core.excerpts import Wanted, wanted_words
from echo_core.fitting import LEAST_FIT, LEAST_SHARE, Query, coverage, fit
from echo_core.note import NoteFacts
from echo_core.passages import Passage, passages
from echo_core.tokens import index_tokens

STALE_FACTOR = 0.5
"""Archived and superseded notes count half, still findable."""

RECENT_DAYS = 30
OLD_DAYS = 730
AGE_PRIOR = 0.05
STATUS_PRIOR = 0.05

LONGEST_TEXT = 2 * 1024 * 1024
"""Characters of a note that are searched: a dump of 50 MB must not keep every other note waiting."""

JUDGED = 5
"""How many of the best hits may show that the vault has an answer."""

_SEPARATOR = "\x1f"
_OVERFETCH = 4


class Hit(NamedTuple):
    """One note found, by its best passage.

    score: comparable within one answer only. parts: field -> share of the BM25 score, and `prior`, the factor on it.
    coverage: share, 0 to 1, of what the query's telling words are worth that the passage holds; fit: the same beyond
    chance, what the threshold is about. matched: tokens of the query it holds.
    """

    path: str
    heading: str
    line: int
    score: float
    parts: Dict[str, float]
    coverage: float
    fit: float
    matched: FrozenSet[str]
    passage: Passage


class _Note(NamedTuple):
    facts: NoteFacts
    kind: str
    passages: Tuple[Passage, ...]
    chars: int
    cut: bool


class SearchIndex:
    """All notes of one vault, searchable as soon as `upsert` returns; every thread may use it.

    engine: made of nothing when not given. today: the owner's day as YYYY-MM-DD, for the prior of age.
    """

    def __init__(self, engine: Optional[Engine] = None, today: Callable[[], str] = lambda: "") -> None:
        self._engine: Engine = Bm25Index() if engine is None else engine
        self._today = today
        self._notes: Dict[str, _Note] = {}
        self._lock = threading.RLock()
        self._changed = False

    def __len__(self) -> int:
        return len(self._notes)

    def upsert(self, facts: NoteFacts, text: str, kind: str = "") -> None:
        """Add or replace the note `facts.path`. text: all of it. kind: "" is that of facts."""
        found = tuple(passages(text[:LONGEST_TEXT]))
        known = self._notes.get(facts.path)
        fixed = {
            "title": index_tokens(facts.title), "alias": index_tokens(" ".join(facts.aliases)),
            "tag": index_tokens(" ".join(facts.tags)),
        }
        documents = {
            number: {**fixed, **_own_fields(found[number])} for number in _changed_passages(known, facts, found)
        }
        with self._lock:
            if self._notes.get(facts.path) is not known:
                self.upsert(facts, text, kind)  # another thread was quicker: compare with what it left
                return
            for number in range(len(found), len(known.passages) if known else 0):
                self._engine.delete(_document(facts.path, number))
            for number, fields in documents.items():
                self._engine.upsert(_document(facts.path, number), fields)
            chars = sum(len(passage.text) for passage in found) + max(0, len(text) - LONGEST_TEXT)
            self._notes[facts.path] = _Note(facts, kind or facts.kind, found, chars, len(text) > LONGEST_TEXT)
            self._changed = True

    def delete(self, path: str) -> None:
        """Forget a note; nothing happens when it is not known."""
        with self._lock:
            known = self._notes.pop(path, None)
            for number in range(len(known.passages) if known else 0):
                self._engine.delete(_document(path, number))
            self._changed = True

    def chars(self, path: str) -> int:
        """Length of a note's body in characters, 0 when it is not known."""
        known = self._notes.get(path)
        return known.chars if known else 0

    def kinds(self) -> Set[str]:
        """The kinds that some note has."""
        with self._lock:
            return {note.kind for note in self._notes.values() if note.kind}

    def cut(self) -> List[str]:
        """The notes of which only the first LONGEST_TEXT characters are searched."""
        with self._lock:
            return sorted(path for path, note in self._notes.items() if note.cut)

    def search(
        self, query: str, limit: int = 10, kinds: Sequence[str] = (), since: str = "", until: str = "",
        everything: bool = False,
    ) -> List[Hit]:
        """At most `limit` notes that fit the query, best first; none when nothing fits.

        query: data, never syntax; without a letter or digit it finds nothing. kinds: only these, () is any.
        since, until: only notes updated then, both days included, "" is open. everything: also what fits badly.
        """
        with self._lock:
            if self._changed:
                self._engine.commit()
                self._changed = False
            asked = Query.of(query, self._engine)
            hits = self._best(asked, limit, _filter(kinds, since, until))
        return hits if everything else _fitting(hits)

    def wanted(self, query: str) -> Wanted:
        """What excerpts for this query should show, and what each word is worth in this vault."""
        with self._lock:
            asked = Query.of(query, self._engine)
        return wanted_words(asked.groups, asked.worth)

    def _best(self, asked: Query, limit: int, wanted: Callable[[_Note], bool]) -> List[Hit]:
        """The best passage of each of the best notes; asks the engine for more until there are enough."""
        count = limit * _OVERFETCH
        while True:
            scored = self._engine.search(asked.terms, count, weights_for(len(asked.groups)))
            best: Dict[str, Hit] = {}
            for hit in self._hits(asked, scored, wanted):
                if hit.path not in best or hit.score > best[hit.path].score:
                    best[hit.path] = hit
            if len(best) >= limit or len(scored) < count:
                chosen = sorted(best.values(), key=lambda hit: (-hit.score, hit.path))[:limit]
                return [_judged(hit, asked) for hit in chosen]
            count *= _OVERFETCH

    def _hits(self, asked: Query, scored: Sequence[Scored], wanted: Callable[[_Note], bool]) -> Iterator[Hit]:
        today = self._today()
        for found in scored:
            path, _, number = found.doc.rpartition(_SEPARATOR)
            note = self._notes[path]
            if not wanted(note):
                continue
            passage, prior = note.passages[int(number)], _prior(note.facts, today)
            place = passage.place(0)
            yield Hit(path, place.heading, place.line, found.score * prior, {**found.parts, "prior": prior},
                      0.0, 0.0, found.matched, passage)


def _judged(hit: Hit, asked: Query) -> Hit:
    covered = coverage(asked, hit.matched, hit.passage.text)
    raw = sum(share for field, share in hit.parts.items() if field != "prior")
    return hit._replace(coverage=covered, fit=fit(asked, covered, raw))


def _fitting(hits: Sequence[Hit]) -> List[Hit]:
    """The hits without those far below the best; none when not one of the first five fits."""
    if not any(hit.fit >= LEAST_FIT for hit in hits[:JUDGED]):
        return []
    return [hit for hit in hits if hit.score >= LEAST_SHARE * hits[0].score]


def _changed_passages(known: Optional[_Note], facts: NoteFacts, found: Sequence[Passage]) -> List[int]:
    """Numbers of the passages that the engine does not hold as they are now: one more line changes one passage."""
    names = ("title", "aliases", "tags")
    if known is None or any(getattr(known.facts, name) != getattr(facts, name) for name in names):
        return list(range(len(found)))
    old = known.passages
    return [
        number for number, passage in enumerate(found)
        if number >= len(old) or (old[number].text, old[number].headings) != (passage.text, passage.headings)
    ]


def _own_fields(passage: Passage) -> Dict[str, List[str]]:
    """The fields of a document that are the passage's own, not its note's."""
    titles = " ".join(title.replace("::", " ") for _, title in passage.headings)
    return {"body": index_tokens(passage.text), "heading": index_tokens(titles)}


def _document(path: str, number: int) -> str:
    return f"{path}{_SEPARATOR}{number}"


def _filter(kinds: Sequence[str], since: str, until: str) -> Callable[[_Note], bool]:
    def wanted(note: _Note) -> bool:
        day = (note.facts.updated or note.facts.created)[:10]
        if (since and day < since) or (until and not "" < day <= until):
            return False
        return not kinds or note.kind in kinds
    return wanted


def _prior(facts: NoteFacts, today: str) -> float:
    """The factor on a note's score: at most 10 % either way for age and status, half for what is out of date."""
    if facts.superseded_by or facts.status in ("archived", "superseded"):
        return STALE_FACTOR
    factor = 1 + AGE_PRIOR * _freshness(facts.updated, today)
    if facts.status == "active":
        factor += STATUS_PRIOR
    elif facts.status in ("on-hold", "incubating"):
        factor -= STATUS_PRIOR
    return factor


def _freshness(updated: str, today: str) -> float:
    """1 for the last 30 days, falling to -1 at two years; 0 when either day is unknown."""
    try:
        age = (datetime.date.fromisoformat(today[:10]) - datetime.date.fromisoformat(updated[:10])).days
    except ValueError:
        return 0.0
    span = OLD_DAYS - RECENT_DAYS
    return 1 - 2 * min(max(age - RECENT_DAYS, 0), span) / span
