"""The passages of every note in a store and in an engine, kept in step through every change and every kill (spec 5.1).

The order is: the store takes a change in, the engine takes it in, the store notes that the engine has. Whatever end a
process takes, the next one finds in the store what the engine lacks.
"""
from __future__ import annotations

import threading
from typing import Collection, Dict, List, Optional, Sequence, Set

from echo_core.bm25 import Bm25Index, Engine
from echo_core.catalog.note import NoteFacts
from echo_core.catalog.notebytes import displayable
from echo_core.recall.passages import LONGEST_TEXT, Cut, Passage, cut_note
from echo_core.recall.recent import Fields, Recent
from echo_core.recall.store import PassageStore, StoredNote, StoredPassage, digest
from echo_core.recall.tokens import index_tokens

MOST_RECENT = 256
"""Passages that are searched beside the engine; when there are more, it is quicker to have it take them in first."""

REFILLED_TOGETHER = 1000
"""Passages that become searchable together when the engine has lost them."""


class KeptIndex:
    """Every note of one vault as passages; every thread may use it.

    engine, store: new ones in memory when not given. Every method may raise IndexLost, or IndexBusy when another
    process changes the same store. A change is found at once. An engine that is not `at_once` takes it in with the next
    `commit`, which holds up neither changes nor searches; until then it is searched beside it.
    """

    def __init__(self, engine: Optional[Engine] = None, store: Optional[PassageStore] = None) -> None:
        self._engine: Engine = Bm25Index() if engine is None else engine
        self._store = PassageStore() if store is None else store
        # Taken in this order. The first two keep changes of the store and of the engine in one order each.
        self._writing = threading.RLock()
        self._committing = threading.RLock()
        self._lock = threading.RLock()
        self._recent = Recent()  # what the store marks as fresh; without fields where the engine has them already
        self._owed, self._gone = self._store.unfinished()
        if len(self._owed) <= MOST_RECENT:  # what was written last before a kill is found from the start
            self._take_back(self._owed)
            self._owed = []
        self._notes = len(self._store)
        self._cut = set(self._store.cut())

    def __len__(self) -> int:
        return self._notes

    def close(self, lost: bool = False) -> None:
        """Let go of files; what was not committed has to be indexed again. lost: all of it has, the files go too."""
        with self._writing, self._committing, self._lock:
            self._recent, self._gone = Recent(), []
            self._engine.close(lost)
            self._store.close(lost)

    def versions(self) -> Dict[str, str]:
        """Path -> version of every note as it was indexed."""
        with self._lock:
            return dict(self._store.versions())

    def kinds(self) -> Set[str]:
        """The kinds that some note has."""
        with self._lock:
            return self._store.kinds()

    def cut(self) -> List[str]:
        """The notes of which only the first LONGEST_TEXT characters are searched."""
        return sorted(self._cut) if self._cut else []

    def restored(self) -> float:
        """Share, 0 to 1, of the stored passages that can be found."""
        with self._lock:
            stored = self._store.statistics(()).documents
            return min(1.0, (len(self._engine) + len(self._recent)) / stored) if stored else 1.0

    def upsert(self, facts: NoteFacts, text: str, kind: str = "", version: str = "") -> None:
        """Add or replace the note `facts.path`. text: all of it. kind: "" is that of facts. version: of its bytes."""
        self.put(facts, cut_note(text), kind, version)

    def put(self, facts: NoteFacts, text: Cut, kind: str = "", version: str = "") -> None:
        """As `upsert`, of a note that has been cut already."""
        found = text.passages
        note = _stored(facts, text, kind, version)
        with self._writing:
            with self._lock:
                row, known, held = self._store.note(note.path) or (0, None, [])
            if version and known == note:
                return
            kept = _kept(known, note, held, found)
            fixed = _fixed_fields(note)
            added = [(number, passage, {**fixed, **_own_fields(passage)})
                     for number, passage in enumerate(found) if number not in kept]
            with self._lock:
                self._store.begin()
                self._notes += not row
                (self._cut.add if note.cut else self._cut.discard)(note.path)
                row = self._store.put_note(row, note)
                self._drop([old.doc for old in held if old.number not in kept])
                for number, old in kept.items():
                    if (old.line, old.start) != (found[number].line, found[number].start):
                        self._store.move_passage(old.doc, found[number].line, found[number].start)
                for number, passage, fields in added:
                    self._give(self._store.add_passage(row, number, passage, fields), fields)

    def _give(self, doc: int, fields: Fields) -> None:
        """Have a stored passage found."""
        if self._engine.at_once:
            self._engine.upsert(doc, fields)
        self._recent.add(doc, {} if self._engine.at_once else fields)

    def delete(self, path: str) -> None:
        """Forget a note; nothing happens when it is not known."""
        with self._writing, self._lock:
            known = self._store.note(path)
            if known is None:
                return
            self._store.begin()
            self._notes -= 1
            self._cut.discard(path)
            self._drop([passage.doc for passage in known[2]])
            self._store.drop_note(known[0])

    def _drop(self, docs: Sequence[int]) -> None:
        for doc in docs:
            if self._engine.at_once:
                self._engine.delete(doc)
            self._store.drop_passage(doc)
        self._recent.drop(docs)
        self._gone += docs

    def waiting(self) -> int:
        """How many changes of passages the engine has still to take in."""
        return len(self._recent) + len(self._gone)

    def keep(self) -> None:
        """Keep what was changed so far; the engine takes it in later."""
        with self._lock:
            self._store.commit()

    def commit(self) -> None:
        """Keep what was changed so far, and have the engine take it in; changes and searches go on meanwhile."""
        with self._committing:
            with self._lock:
                fresh, gone = self._recent.all(), list(self._gone)
                if self._engine.at_once:
                    self._finish(fresh, gone)
                self._store.commit()
            if self._engine.at_once or not (fresh or gone):
                return
            for doc in gone:
                with self._lock:
                    self._engine.delete(doc)
            for doc, fields in fresh.items():
                with self._lock:
                    self._engine.upsert(doc, fields)
            self._engine.commit()
            with self._lock:
                self._finish(fresh, gone)
                self._store.commit()

    def _finish(self, fresh: Collection[int], gone: Sequence[int]) -> None:
        """The engine has these now."""
        if fresh or gone:
            self._store.finish(fresh, gone)
            self._recent.drop(fresh)
            del self._gone[:len(gone)]

    def restore(self) -> None:
        """Give the engine what it should hold and does not: after a kill, or when its own files are gone."""
        self._refill()
        with self._writing, self._committing:
            self.commit()
            with self._lock:
                if len(self._engine) != self._store.statistics(()).documents:
                    self._engine.clear()
                    self._store.all_fresh()
                    self._store.commit()
                    self._owed, self._gone = self._store.unfinished()
        self._refill()

    def _refill(self) -> None:
        """Give the engine what is owed to it, in parts, so that writes can come between."""
        while self._owed:
            with self._writing, self._committing:
                self._take_back(self._owed[:REFILLED_TOGETHER])
                self._owed = self._owed[REFILLED_TOGETHER:]
                self.commit()

    def _take_back(self, docs: Sequence[int]) -> None:
        """Search these stored passages beside the engine; the next commit gives them to it."""
        for doc in docs:
            with self._lock:
                self._store.begin()
                self._engine.delete(doc)  # a kill may have come just after the engine's commit
                for note, passage in self._store.shown([doc]).values():
                    self._give(doc, {**_fixed_fields(note), **_own_fields(passage)})


def _stored(facts: NoteFacts, text: Cut, kind: str, version: str) -> StoredNote:
    """What to keep of a note; its path excepted, text that is no valid UTF-8 is kept as it is shown."""
    show = displayable
    return StoredNote(
        facts.path, version, show(kind or facts.kind), show((facts.updated or facts.created)[:10]), show(facts.title),
        [show(alias) for alias in facts.aliases], [show(tag) for tag in facts.tags], show(facts.status),
        show(facts.updated), show(facts.superseded_by),
        sum(len(passage.text) for passage in text.passages) + max(0, text.chars - LONGEST_TEXT), text.cut,
    )


def _kept(
    known: Optional[StoredNote], note: StoredNote, held: Sequence[StoredPassage], found: Sequence[Passage],
) -> Dict[int, StoredPassage]:
    """The passages that are as they were, by their number: one more line changes one passage."""
    if known is None or any(getattr(known, name) != getattr(note, name) for name in ("title", "aliases", "tags")):
        return {}
    return {old.number: old for old in held if old.number < len(found) and digest(found[old.number]) == old.digest}


def _fixed_fields(note: StoredNote) -> Dict[str, List[str]]:
    """The fields of a document that are its note's."""
    return {"title": index_tokens(note.title), "alias": index_tokens(" ".join(note.aliases)),
            "tag": index_tokens(" ".join(note.tags))}


def _own_fields(passage: Passage) -> Dict[str, List[str]]:
    """The fields of a document that are the passage's own."""
    titles = " ".join(title.replace("::", " ") for _, title in passage.headings)
    return {"body": index_tokens(passage.text), "heading": index_tokens(titles)}
