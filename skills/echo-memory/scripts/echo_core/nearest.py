"""The nearest of many names to one that is misspelt or incomplete."""
from __future__ import annotations

from difflib import SequenceMatcher
from typing import Iterable, List, Tuple

from echo_core.text import fold

SHORTLIST = 60
MIN_LIKENESS = 0.5
"""Below this a name has nothing to do with the wanted one."""


def nearest(wanted: str, names: Iterable[str], n: int) -> List[str]:
    """The at most `n` of the folded `names` most like `wanted`, best first, none when nothing is like it.

    A cheap count of shared letter pairs makes a shortlist, which is then compared exactly: fine for tens of
    thousands of names.
    """
    wanted = fold(wanted)[:200]
    pairs = {wanted[at:at + 2] for at in range(max(1, len(wanted) - 1))}
    if not wanted:
        return []
    scored: List[Tuple[float, str]] = []
    for name in names:
        shared = sum([pair in name for pair in pairs])
        if 2 * shared >= len(pairs):
            scored.append((shared / (len(pairs) + abs(len(name) - len(wanted)) / 4), name))
    scored.sort(key=lambda pair: (-pair[0], pair[1]))
    exact = [(_likeness(wanted, name), name) for _, name in scored[:SHORTLIST]]
    exact.sort(key=lambda pair: (-pair[0], pair[1]))
    return [name for likeness, name in exact if likeness >= MIN_LIKENESS][:n]


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
