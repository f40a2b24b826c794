"""Hits within a budget of characters: fewer hits rather than useless ones, every cut marked (spec 5.4)."""
from __future__ import annotations

import json
import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from echo_core.recall.excerpts import Wanted, Window
from echo_core.recall.passages import Passage
from echo_core.recall.tokens import Word
from echo_core.text.cutting import shorten

SHORTEST = 160
LONGEST = 320
DENSE_SHARE = 0.375
"""Characters that say as much in Chinese or Japanese as one in a script with letters: windows of 60 to 120 there."""

_DENSE = re.compile("[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff]")
_SAMPLE = 1000
_SHORTEST_TITLE = 8
_MORE_FIELDS = len(',"heading":"","line":1,"excerpt":"","truncated":true')


class Candidate(NamedTuple):
    """One hit before packing. fields: all of it but `heading`, `line`, `excerpt`, `truncated` and `total_chars`.

    score: its share of the budget. chars: length of the whole body the passage is from. words: where words of the
    query stand in the passage; None when nobody has looked yet.
    """

    fields: Dict[str, Any]
    passage: Passage
    score: float
    chars: int
    words: Optional[Sequence[Word]] = None


def json_size(value: Any) -> int:
    """Characters of `value` as compact JSON, not escaped beyond need; the measure of every budget."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def pack(candidates: Sequence[Candidate], wanted: Wanted, budget_chars: int) -> List[Dict[str, Any]]:
    """The best hits with their excerpts, in the given order, together at most `budget_chars` as compact JSON.

    As many hits as can show 160 characters each (or all they have); at least one while the budget holds its fields,
    with a shorter title and `title_truncated: true` if need be. What room is left makes excerpts longer, by score and
    up to 320 characters. A cut excerpt has `truncated: true` and the length of the whole note as `total_chars`.
    """
    drafts = [_Draft(candidate, wanted) for candidate in candidates]
    while len(drafts) > 1 and _least(drafts) > budget_chars:
        drafts.pop()
    room = max(0, budget_chars - _least(drafts))
    total = sum(draft.score for draft in drafts) or 1.0
    hits = [draft.hit(draft.shortest + int(room * draft.score / total)) for draft in drafts]
    sizes = [json_size(hit) for hit in hits]
    for place in reversed(range(len(hits))):  # what is known of an excerpt before it is cut is not exact
        if _together(sizes) > budget_chars:
            hits[place] = drafts[place].hit(drafts[place].shortest)
            sizes[place] = json_size(hits[place])
    while len(hits) > 1 and _together(sizes) > budget_chars:
        hits.pop()
        sizes.pop()
    return _one_that_fits(drafts[0], budget_chars) if hits and _together(sizes) > budget_chars else hits


def _together(sizes: Sequence[int]) -> int:
    """The size of a list of values of these sizes."""
    return sum(sizes) + max(0, len(sizes) - 1) + 2


def _least(drafts: Sequence[_Draft]) -> int:
    """About the size of the hits with the shortest excerpts, rather too little."""
    return _together([draft.fixed + draft.shortest for draft in drafts])


class _Draft:
    """One hit, with an excerpt as long as is asked for."""

    def __init__(self, candidate: Candidate, wanted: Wanted) -> None:
        text = candidate.passage.text
        density = _density(text)
        self._candidate = candidate
        self._window = Window(text, wanted, candidate.words)
        self.score = candidate.score
        self.fixed = json_size(candidate.fields) + _MORE_FIELDS
        self.shortest = min(len(text), int(SHORTEST * density))
        self.longest = int(LONGEST * density)

    def hit(self, size: int) -> Dict[str, Any]:
        """All fields of the hit, the excerpt at most `size` characters and never more than the longest."""
        candidate = self._candidate
        found = self._window.cut(min(size, self.longest))
        place = candidate.passage.place(found.start)
        hit = dict(candidate.fields, heading=place.heading, line=place.line, excerpt=found.text)
        hit["truncated"] = not found.whole or len(candidate.passage.text) < candidate.chars
        if hit["truncated"]:
            hit["total_chars"] = candidate.chars
        return hit


def _one_that_fits(draft: _Draft, budget: int) -> List[Dict[str, Any]]:
    """The best hit alone, its excerpt and then its title as short as it takes; none when even that is too long."""
    size = draft.shortest
    hit = draft.hit(size)
    while size > 0 and json_size([hit]) > budget:
        size = size * 2 // 3
        hit = draft.hit(size)
    title = str(hit.get("title", ""))
    keep = len(title)
    while json_size([hit]) > budget:
        keep -= max(1, json_size([hit]) - budget) if keep == len(title) else 1
        if keep < _SHORTEST_TITLE:
            return []
        hit.update(title=shorten(title, keep)[0], title_truncated=True)
    return [hit]


def _density(text: str) -> float:
    """1 for scripts with letters, less for scripts whose characters say more."""
    sample = text[:_SAMPLE]
    return DENSE_SHARE if not sample.isascii() and len(_DENSE.findall(sample)) * 3 > len(sample) else 1.0
