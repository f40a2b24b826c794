"""Pieces on watch, kept beside the history, so that the end of a process does not end the watch (spec 6.1).

A row is written after each write was acknowledged and goes when the piece is settled, about a second later. Rows
survive a kill; a power cut may take the last ones.
"""
from __future__ import annotations

import json
import sqlite3
import time
from typing import Callable, Iterable, List, Sequence, Tuple

from echo_core.errors import NoUndo
from echo_core.history.database import HistoryDatabase
from echo_core.settle.pieces import Piece
from echo_core.settle.settling import Held

_INSERT = "INSERT INTO unsettled (door, path, at, held) VALUES (?, ?, ?, ?)"


class Unsettled:
    """The pieces on watch of one door, "server" or "cli"; their times are seconds since the epoch in the file."""

    def __init__(self, database: HistoryDatabase, door: str, timer: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._door = door
        self._timer = timer
        self.failed = 0
        """How often a row could not be written: those pieces are watched by this process alone."""

    def swap(self, path: str, fresh: Sequence[Held], gone: Iterable[Held]) -> List[Held]:
        """Keep `fresh`, which come back with their rows, and drop `gone`; a full disk keeps nothing."""
        rows = [(held.row,) for held in gone if held.row]
        if not fresh and not rows:
            return list(fresh)
        ahead = time.time() - self._timer()

        def work(connection: sqlite3.Connection) -> List[Held]:
            connection.executemany("DELETE FROM unsettled WHERE id = ?", rows)
            return [held._replace(row=connection.execute(_INSERT, (self._door, path, held.at + ahead, _text(held)))
                                  .lastrowid or 0) for held in fresh]

        try:
            return self._database.run(work, durable=False)
        except NoUndo:
            self.failed += 1
            return list(fresh)

    def load(self) -> List[Tuple[str, Held]]:
        """Paths and pieces that are left from earlier, oldest first. Raises NoUndo."""
        if not self._database.exists():
            return []
        ahead = time.time() - self._timer()
        rows = self._database.run(lambda connection: connection.execute(
            "SELECT id, path, at, held FROM unsettled WHERE door = ? ORDER BY id", (self._door,)).fetchall(),
            durable=False)
        return [(path, _held(row, at - ahead, text)) for row, path, at, text in rows]


def _text(held: Held) -> str:
    piece = {name: value.decode("latin-1") if isinstance(value, bytes) else value
             for name, value in held.piece._replace(marks=())._asdict().items()}
    marks = [mark.decode("latin-1") for mark in held.piece.marks]
    rest = {name: getattr(held, name) for name in ("write", "first", "tries", "tool", "op_id", "sha")}
    return json.dumps({**piece, "marks": marks, **rest})


def _held(row: int, at: float, text: str) -> Held:
    found = json.loads(text)
    added, removed, above, below = (found[name].encode("latin-1") for name in ("added", "removed", "above", "below"))
    marks = tuple(mark.encode("latin-1") for mark in found["marks"])
    piece = Piece(added, removed, above, below, found["offset"], found["times"], marks, found["created"],
                  found["mixed"])
    return Held(piece, found["write"], at, found["tries"], tool=found["tool"], op_id=found["op_id"], sha=found["sha"],
                row=row, first=found["first"])
