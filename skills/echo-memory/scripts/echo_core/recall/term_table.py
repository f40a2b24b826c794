"""The words of the vault, each with a number and how many passages hold it; exact after every change (spec 5.1)."""
from __future__ import annotations

from collections import Counter
from typing import Collection, Dict, Iterator, List, Sequence, Tuple
from typing import Counter as Counts

from echo_core.recall.database import SearchDatabase
from echo_core.recall.ranking import Statistics, Term
from echo_core.recall.term_counts import FIELDS, TermCounts, split_key

_REMEMBERED = 1 << 16
_NAMES = ("documents", *(f"{name}_{what}" for name in FIELDS for what in ("holders", "tokens")))


class TermTable:
    """Word -> number and counts. Changes are gathered and written by `write`, which its owner calls at a commit."""

    def __init__(self, database: SearchDatabase) -> None:
        self._database = database
        self._numbers: Dict[str, int] = {}
        self._added: Counts[int] = Counter()
        self._totals = [0] * len(_NAMES)

    def numbers(self, words: Collection[str]) -> Dict[str, int]:
        """Word -> number of these words and perhaps of others; a new word gets a number."""
        known = self._numbers
        unknown = [word for word in words if word not in known]
        if unknown:
            if len(known) > _REMEMBERED:
                known = self._numbers = {}
                unknown = list(words)
            known.update(self._database.where("SELECT word, id FROM term WHERE word IN", unknown))
            for word in sorted(word for word in unknown if word not in known):
                known[word] = self._database.run("INSERT INTO term (word) VALUES (?)", (word,))
        return known

    def add(self, held: TermCounts) -> None:
        """There is a passage more."""
        self._added.update(held.keys.tolist())
        self._count(held, 1)

    def remove(self, held: TermCounts) -> None:
        """There is a passage less."""
        self._added.subtract(held.keys.tolist())
        self._count(held, -1)

    def write(self) -> None:
        """Bring the table up to the passages."""
        changes: List[List[Tuple[int, int]]] = [[] for _ in FIELDS]
        for key, change in sorted(self._added.items()):
            term, field = split_key(key)
            changes[field].append((change, term))
        for name, values in zip(FIELDS, changes):
            self._database.run_many(f"UPDATE term SET {name} = {name} + ? WHERE id = ?", values)
        self._database.run(f"UPDATE totals SET {', '.join(f'{name} = {name} + ?' for name in _NAMES)}", self._totals)
        self._added = Counter()
        self._totals = [0] * len(_NAMES)

    def statistics(self, words: Sequence[str]) -> Statistics:
        """What is known of all passages and of these words, as of the last `write`."""
        documents, *totals = self._database.rows(f"SELECT {', '.join(_NAMES)} FROM totals")[0]
        averages = tuple(tokens / holders if holders else 0.0 for holders, tokens in _pairs(totals))
        rows = self._database.where(f"SELECT word, id, {', '.join(FIELDS)} FROM term WHERE word IN", words)
        return Statistics(documents, averages, {word: Term(number, tuple(counts)) for word, number, *counts in rows})

    def _count(self, held: TermCounts, sign: int) -> None:
        self._totals[0] += sign
        for field, length in enumerate(held.lengths):
            self._totals[1 + 2 * field] += sign * (length > 0)
            self._totals[2 + 2 * field] += sign * length


def _pairs(values: Sequence[int]) -> Iterator[Tuple[int, int]]:
    return zip(values[::2], values[1::2])
