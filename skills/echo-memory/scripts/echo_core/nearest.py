"""The nearest of many names to one that is misspelt or incomplete."""
from __future__ import annotations

import threading
from collections import Counter
from difflib import SequenceMatcher
from typing import AbstractSet, Dict, List, Set, Tuple

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
        self._holders: Dict[str, List[str]] = {}

    def find(self, wanted: str, names: AbstractSet[str], n: int) -> List[str]:
        """The at most `n` of the folded `names` most like `wanted`, best first, none when nothing is like it."""
        wanted = fold(wanted)[:200]
        if not wanted:
            return []
        pairs = _pairs(wanted)
        scored: List[Tuple[float, str]] = []
        for name, shared in self._shared(pairs, names).items():
            if 2 * shared >= len(pairs) and name in names:
                scored.append((shared / (len(pairs) + abs(len(name) - len(wanted)) / 4), name))
        scored.sort(key=lambda pair: (-pair[0], pair[1]))
        exact = [(_likeness(wanted, name), name) for _, name in scored[:SHORTLIST]]
        exact.sort(key=lambda pair: (-pair[0], pair[1]))
        return [name for likeness, name in exact if likeness >= MIN_LIKENESS][:n]

    def _shared(self, pairs: Set[str], names: AbstractSet[str]) -> "Counter[str]":
        """Names with how many of `pairs` they hold; also some that are no longer among `names`."""
        found: Counter[str] = Counter()
        with self._lock:
            if len(self._known) > 2 * len(names):
                self._known, self._holders = set(), {}
            for name in names - self._known:
                for pair in _pairs(name).union(name):
                    self._holders.setdefault(pair, []).append(name)
            self._known.update(names)
            for pair in pairs:
                found.update(self._holders.get(pair, ()))
        return found


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
