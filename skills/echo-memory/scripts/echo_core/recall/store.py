"""The passages of every note with what search needs to score, judge and show them, kept between two runs (spec 5.1).

A row a passage holds its text, the digest of it and its term counts; a row a note its version, so that a start reads
only notes that have changed. An engine's index lies beside it: `fresh` passages are not in that yet, `gone` ones still
are, so that a kill at any moment leaves what has to be done.
"""
from __future__ import annotations

import hashlib
import json
from typing import Any, Collection, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from echo_core.recall.database import SearchDatabase, guarded
from echo_core.recall.passages import Passage
from echo_core.recall.ranking import Statistics
from echo_core.recall.term_counts import TermCounts, packed
from echo_core.recall.term_table import TermTable

_NOTE = ("path", "version", "kind", "day", "title", "aliases", "tags", "status", "updated", "superseded_by", "chars",
         "cut")
_COLUMNS = ", ".join(_NOTE)


class StoredNote(NamedTuple):
    """What the store knows of a note. day: of its last update, or else its making, YYYY-MM-DD or "".

    chars: length of its body. cut: whether only its first part is searched.
    """

    path: str
    version: str
    kind: str
    day: str
    title: str
    aliases: Sequence[str]
    tags: Sequence[str]
    status: str
    updated: str
    superseded_by: str
    chars: int
    cut: bool


class StoredPassage(NamedTuple):
    """One passage as it is known from before. digest: of its text and headings."""

    doc: int
    number: int
    digest: bytes
    line: int
    start: int


class Candidate(NamedTuple):
    """A passage to be scored, with what of its note matters for that: see StoredNote."""

    doc: int
    path: str
    kind: str
    day: str
    status: str
    updated: str
    superseded_by: str
    counts: TermCounts


class PassageStore:
    """The passages of one vault. Who uses it takes turns; every method may raise IndexLost or IndexBusy.

    path: of the SQLite file; "" keeps nothing. alone: no other process may use it while it is open.
    """

    def __init__(self, path: str = "", alone: bool = False) -> None:
        self.database = SearchDatabase(path, alone)
        self._terms = TermTable(self.database)

    def close(self, lost: bool = False) -> None:
        """Close the file; what was not committed is gone. lost: the file goes too."""
        self.database.close(lost)

    def __len__(self) -> int:
        with guarded():
            return int(self.database.rows("SELECT count(*) FROM note")[0][0])

    def begin(self) -> None:
        """Start to change things, unless that is so already."""
        with guarded():
            if not self.database.changing:
                self.database.run("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Keep all changes; nothing happens when there is none."""
        with guarded():
            if self.database.changing:
                self._terms.write()
                self.database.run("COMMIT")

    def versions(self) -> Iterator[Tuple[str, str]]:
        """(path, version) of every note."""
        with guarded():
            rows = self.database.rows("SELECT path, version FROM note")
        return ((_text(path), version) for path, version in rows)

    def kinds(self) -> Set[str]:
        """The kinds that some note has."""
        with guarded():
            return {row[0] for row in self.database.rows("SELECT DISTINCT kind FROM note WHERE kind <> ''")}

    def cut(self) -> List[str]:
        """The paths of notes of which only the first part is searched, in order."""
        with guarded():
            return sorted(_text(row[0]) for row in self.database.rows("SELECT path FROM note WHERE cut = 1"))

    def note(self, path: str) -> Optional[Tuple[int, StoredNote, List[StoredPassage]]]:
        """(row, note, its passages in order), None when it is not known."""
        with guarded():
            for row, *columns in self.database.rows(f"SELECT id, {_COLUMNS} FROM note WHERE path = ?", (_bytes(path),)):
                held = self.database.rows(
                    "SELECT id, number, digest, line, start FROM passage WHERE note = ? ORDER BY number", (row,))
                return row, _note(columns), [StoredPassage(*values) for values in held]
        return None

    def put_note(self, row: int, note: StoredNote) -> int:
        """Add a note (row 0) or change the one of that row. Returns its row."""
        values = note._replace(aliases=json.dumps(note.aliases), tags=json.dumps(note.tags))
        with guarded():
            if row:
                self.database.run(f"UPDATE note SET {', '.join(f'{name} = ?' for name in _NOTE)} WHERE id = ?",
                                  (_bytes(note.path), *values[1:], row))
                return row
            return self.database.run(f"INSERT INTO note ({_COLUMNS}) VALUES ({', '.join('?' * len(_NOTE))})",
                                     (_bytes(note.path), *values[1:]))

    def drop_note(self, row: int) -> None:
        """Forget a note whose passages were dropped."""
        with guarded():
            self.database.run("DELETE FROM note WHERE id = ?", (row,))

    def add_passage(self, row: int, number: int, passage: Passage, fields: Mapping[str, Sequence[str]]) -> int:
        """Add passage `number` of the note in `row`. fields: its tokens. Returns its number as a document."""
        with guarded():
            counts = packed(fields, self._terms.numbers({token for tokens in fields.values() for token in tokens}))
            self._terms.add(TermCounts(counts))
            return self.database.run(
                "INSERT INTO passage (note, number, fresh, counts, digest, line, start, headings, text)"
                " VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?)",
                (row, number, counts, digest(passage), passage.line, passage.start, json.dumps(passage.headings),
                 _bytes(passage.text)))

    def move_passage(self, doc: int, line: int, start: int) -> None:
        """Something before an unchanged passage became longer or shorter."""
        with guarded():
            self.database.run("UPDATE passage SET line = ?, start = ? WHERE id = ?", (line, start, doc))

    def drop_passage(self, doc: int) -> None:
        """Forget a passage; the engine has to forget it too."""
        with guarded():
            for (counts,) in self.database.rows("SELECT counts FROM passage WHERE id = ?", (doc,)):
                self._terms.remove(TermCounts(counts))
            self.database.run("DELETE FROM passage WHERE id = ?", (doc,))
            self.database.run("INSERT OR IGNORE INTO gone VALUES (?)", (doc,))

    def statistics(self, words: Sequence[str]) -> Statistics:
        """What is known of all passages and of these words, as of the last commit."""
        with guarded():
            return self._terms.statistics(words)

    def candidates(self, docs: Sequence[int]) -> List[Candidate]:
        """Those of the passages that are still there, in no order."""
        with guarded():
            rows = self.database.where(
                "SELECT passage.id, path, kind, day, status, updated, superseded_by, counts FROM passage"
                " JOIN note ON note.id = passage.note WHERE passage.id IN", docs)
            return [Candidate(doc, _text(path), kind, day, status, updated, superseded_by, TermCounts(counts))
                    for doc, path, kind, day, status, updated, superseded_by, counts in rows]

    def shown(self, docs: Sequence[int]) -> Dict[int, Tuple[StoredNote, Passage]]:
        """Passages with their notes; who is gone is left out. Raises IndexLost when one is damaged."""
        found = {}
        with guarded():
            rows = self.database.where(f"SELECT passage.id, digest, line, start, headings, text, {_COLUMNS} FROM"
                                       " passage JOIN note ON note.id = passage.note WHERE passage.id IN", docs)
            for doc, held, line, start, headings, text, *columns in rows:
                if _digest(headings, text) != held:
                    raise ValueError("damaged")
                marks = tuple((offset, title) for offset, title in json.loads(headings))
                found[doc] = _note(columns), Passage(_text(text), start, line, marks)
        return found

    def filtered(self, kinds: Sequence[str], since: str, until: str, most: int) -> Optional[List[int]]:
        """The passages of notes of these kinds and days ("" is open), None when they are more than `most`."""
        tests, values = ["day >= ?"], [since]  # type: List[str], List[Any]
        if until:
            tests.append("day <= ? AND day <> ''")
            values.append(until)
        if kinds:
            tests.append(f"kind IN ({', '.join('?' * len(kinds))})")
            values.extend(kinds)
        with guarded():
            rows = self.database.rows("SELECT passage.id FROM note JOIN passage ON passage.note = note.id WHERE "
                                      f"{' AND '.join(tests)} LIMIT ?", (*values, most + 1))
        return None if len(rows) > most else [row[0] for row in rows]

    def unfinished(self) -> Tuple[List[int], List[int]]:
        """(passages the engine does not hold yet, those it holds still) as of the last `finish`."""
        with guarded():
            fresh = self.database.rows("SELECT id FROM passage WHERE fresh = 1 ORDER BY id")
            gone = self.database.rows("SELECT id FROM gone ORDER BY id")
        return [row[0] for row in fresh], [row[0] for row in gone]

    def finish(self, fresh: Collection[int], gone: Collection[int]) -> None:
        """The engine has kept these."""
        self.begin()
        with guarded():
            self.database.run_many("UPDATE passage SET fresh = 0 WHERE id = ?", [(doc,) for doc in fresh])
            self.database.run_many("DELETE FROM gone WHERE id = ?", [(doc,) for doc in gone])

    def all_fresh(self) -> None:
        """The engine holds nothing: every passage has to be given to it."""
        self.begin()
        with guarded():
            self.database.run("UPDATE passage SET fresh = 1 WHERE fresh = 0")
            self.database.run("DELETE FROM gone")


def digest(passage: Passage) -> bytes:
    """What tells a passage from another: its text and headings, not its place in the note."""
    return _digest(json.dumps(passage.headings), _bytes(passage.text))


def _digest(headings: str, text: bytes) -> bytes:
    return hashlib.blake2b(headings.encode("ascii") + b"\0" + text, digest_size=12).digest()


def _note(columns: Sequence[Any]) -> StoredNote:
    found = StoredNote(*columns)
    return found._replace(path=_text(columns[0]), aliases=json.loads(columns[5]), tags=json.loads(columns[6]),
                          cut=bool(found.cut))


def _bytes(text: str) -> bytes:
    """Bytes for a column: text of a vault may hold what is no valid UTF-8."""
    return text.encode("utf-8", "surrogatepass")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
