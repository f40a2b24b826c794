"""The nearest of many names to one that is misspelt or incomplete."""
from __future__ import annotations

import heapq
import threading
from collections import Counter
from difflib import SequenceMatcher
from typing import Callable, Dict, Iterable, List, Set, Tuple

from echo_core.text import fold

SHORTLIST = 60
MIN_LIKENESS = 0.5
"""Below this a name has nothing to do with the wanted one."""


class NearestNames:
    """Finds names by the pairs of letters they share with what is sought. It keeps which names hold which pair, so
    that one of tens of thousands is found in a millisecond. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: Set[str] = set()
        self._room = 0
        self._holders: Dict[str, List[str]] = {}

    def learn(self, names: Iterable[str]) -> bool:
        """Know these folded names too. False when most of what is known may be gone: `learn_all` is due."""
        with self._lock:
            fresh = set(names).difference(self._known)
            for name in fresh:
                for pair in _pairs(name).union(name):
                    self._holders.setdefault(pair, []).append(name)
            self._known |= fresh
            return len(self._known) <= self._room

    def learn_all(self, names: Iterable[str]) -> None:
        """Know these names and no others."""
        with self._lock:
            self._known, self._holders = set(), {}
        self.learn(names)
        self._room = 2 * len(self._known) + 1000

    def find(self, wanted: str, is_name: Callable[[str], bool], n: int) -> List[str]:
        """The at most `n` names most like `wanted`, best first, none when nothing is like it.

        is_name: whether a name that was learnt once still is one.
        """
        wanted = fold(wanted)[:200]
        exact = sorted((-_likeness(wanted, name), name) for name in self.shortlist(wanted, is_name))
        return [name for likeness, name in exact if -likeness >= MIN_LIKENESS][:n]

    def shortlist(self, wanted: str, is_name: Callable[[str], bool]) -> List[str]:
        """The names that share most pairs of letters with `wanted`, at most SHORTLIST: who is alike is among them."""
        wanted = fold(wanted)[:200]
        if not wanted:
            return []
        pairs = _pairs(wanted)
        scored = [
            (-shared / (len(pairs) + abs(len(name) - len(wanted)) / 4), name)
            for name, shared in self._shared(pairs) if is_name(name)
        ]
        return [name for _, name in heapq.nsmallest(SHORTLIST, scored)]

    def _shared(self, pairs: Set[str]) -> List[Tuple[str, int]]:
        """The names that hold at least half of `pairs`, with how many of them."""
        half = (len(pairs) + 1) // 2
        with self._lock:
            rarest = sorted(pairs, key=lambda pair: (len(self._holders.get(pair, ())), pair))
            # Who holds half of all pairs holds one of any larger half: only those names are looked at more closely.
            first, others = rarest[:len(pairs) - half + 1], rarest[len(pairs) - half + 1:]
            counter: Counter[str] = Counter()
            for pair in first:
                counter.update(self._holders.get(pair, ()))
        found: Dict[str, int] = counter
        for left, pair in zip(range(len(others) - 1, -1, -1), others):
            counts = ((name, count + (pair in name)) for name, count in found.items())
            found = {name: count for name, count in counts if count + left >= half}
        return [(name, count) for name, count in found.items() if count >= half]


def _pairs(name: str) -> Set[str]:
    """The pairs of neighbouring letters, or the only letter."""
    return {name[at:at + 2] for at in range(max(1, len(name) - 1))}


def _likeness(wanted: str, name: str) -> float:
    """0 to 1: the common letters in any order of the words, and more when all words of the one stand in the other."""
    sorted_words = (" ".join(sorted(wanted.split())), " ".join(sorted(name.split())))
    ratio = max(_ratio(wanted, name), 0.98 * _ratio(*sorted_words))
    words, others = set(wanted.split()), set(name.split())
    if words and (words <= others or others <= words):
        ratio = max(ratio, 0.6 + 0.3 * min(len(words), len(others)) / max(len(words), len(others)))
    return ratio


def _ratio(wanted: str, name: str) -> float:
    return SequenceMatcher(None, wanted, name, autojunk=False).ratio()
