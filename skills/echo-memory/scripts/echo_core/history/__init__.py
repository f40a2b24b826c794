"""What notes were before ECHO changed them (spec 6.3).

Each version is the state before one write, in a database below the state folder: a row (path, time, tool, op id,
hash, size, first line) and the bytes. What a write left behind is kept too, so that text which a sync tool takes away
can be brought back. Kept for each path: the newest versions, the newest of each day, and the last one that somebody
else wrote; nothing depends on what time it is now.
"""
from __future__ import annotations

import hashlib
import re
import sqlite3
from typing import List, NamedTuple, Optional, Set, Tuple

from echo_core.clock import Clock
from echo_core.errors import NotFound
from echo_core.history import conflicts as history_conflicts
from echo_core.history.blobs import drop_unused, has, keep, load
from echo_core.history.conflicts import Overwritten
from echo_core.history.database import HistoryDatabase

KEEP_VERSIONS = 20
KEEP_DAYS = 30
MAX_BYTES = 1 << 30
_SUMMARY_CHARS = 120
_VERSION_ID = re.compile(r"v([1-9][0-9]{0,17})\Z")
_ROWS = """SELECT id, ts, size, summary, tool, op_id, sha IS NULL, by_others, sha, after_sha
           FROM version WHERE path = ? ORDER BY id DESC"""
_COPY = """INSERT INTO version (path, ts, tool, op_id, sha, size, summary, after_sha, by_others)
           SELECT :target, ts, tool, op_id, sha, size, summary, after_sha, by_others FROM version AS old
           WHERE path = :source AND id <> :but AND NOT EXISTS (
               SELECT 1 FROM version AS had WHERE had.path = :target AND had.ts = old.ts AND had.op_id = old.op_id
               AND had.sha IS old.sha AND had.after_sha IS old.after_sha)
           ORDER BY id"""
_OLDEST_WITH_SUCCESSOR = """SELECT id FROM version AS old
           WHERE EXISTS (SELECT 1 FROM version WHERE path = old.path AND id > old.id) ORDER BY id LIMIT 1"""
_BY_OP = """SELECT path, id, sha, after_sha, (SELECT coalesce(sha, '') FROM version WHERE path = own.path
           AND id > own.id ORDER BY id LIMIT 1) FROM version AS own WHERE op_id = ? ORDER BY id"""
_Row = Tuple[int, str, int, str, str, str, int, int, Optional[str], Optional[str]]


class Version(NamedTuple):
    """One kept state of a note; `absent`: there was no file. bytes: its size. by_others: not written by ECHO."""

    id: str
    ts: str
    bytes: int
    summary_line: str
    tool: str
    op_id: str
    absent: bool
    by_others: bool


class Wrote(NamedTuple):
    """One write of an op, noted before it was made.

    version_id: of the state before it. before, after: SHA-256 in hex, None for no file. found_later: what the next
    write of the path found there, "" for no file; None when there was no next one.
    """

    path: str
    version_id: str
    before: Optional[str]
    after: Optional[str]
    found_later: Optional[str]


class HistoryStore:
    """The history below `state_dir` (a host path). max_bytes: what all contents together may take, compressed."""

    def __init__(self, state_dir: str, clock: Clock, max_bytes: int = MAX_BYTES) -> None:
        self._clock = clock
        self._max_bytes = max_bytes
        self.database = HistoryDatabase(state_dir, clock.file_stamp)
        """The file itself, for what is kept beside the versions."""

    def record(
        self, path: str, before: Optional[bytes], tool: str = "", op_id: str = "", after: Optional[bytes] = None,
    ) -> str:
        """Keep the state before a write; returns the version's id. Raises NoUndo.

        before: the bytes now, None when there is no file. after: what the write will leave, None for a deletion.
        Durable before this returns whenever the write loses bytes; what only adds is still in the note itself.
        """
        adds = before is None or (after is not None and after.startswith(before))
        return self.database.run(
            lambda connection: self._record(connection, path, before, tool, op_id, after), durable=not adds,
        )

    def moved(self, source: str, target: str, data: bytes, tool: str = "", op_id: str = "") -> List[str]:
        """Let the history follow a file; returns the ids of all versions this made. Raises NoUndo.

        The target gets copies of the source's versions and then an absent one, the source one with the bytes.
        """
        def work(connection: sqlite3.Connection) -> List[str]:
            left = self._record(connection, source, data, tool, op_id, None)
            connection.execute(_COPY, {"source": source, "target": target, "but": _row_id(left)})
            self._record(connection, target, None, tool, op_id, data)
            rows = connection.execute("SELECT id FROM version WHERE id >= ?", (_row_id(left),)).fetchall()
            return [f"v{row[0]}" for row in rows]

        return self.database.run(work)

    def withdraw(self, version_ids: List[str]) -> None:
        """Forget versions whose write did not happen after all. Raises NoUndo."""
        self.database.run(lambda connection: _delete(connection, [_row_id(found) for found in version_ids]))

    def versions(self, path: str) -> List[Version]:
        """All kept states of the path, newest first."""
        return [_version(row) for row in self._rows(path)]

    def content(self, path: str, version_id: str) -> Optional[bytes]:
        """The bytes of a version, None for an absent one. NotFound when the path has no such version."""
        return self._bytes(path, version_id, after=False)

    def outcome(self, path: str, version_id: str) -> Optional[bytes]:
        """The bytes that the write after this version left, None when it left no file. NotFound as `content`."""
        return self._bytes(path, version_id, after=True)

    def set_back(self, path: str, data: bytes) -> Optional[Version]:
        """When somebody put back an older state that we know: the version whose `outcome` is ours; else None."""
        found = hashlib.sha256(data).hexdigest()
        rows = self._rows(path)
        if not rows or rows[0][-1] in (None, found):
            return None
        known = {sha for row in rows for sha in row[-2:]}
        return _version(rows[0]) if found in known else None

    def overwritten(self, path: str, ours: Optional[bytes], sha: str, now: bytes, tool: str = "", op_id: str = "",
                    ) -> str:
        """List a text of ours that somebody wrote over, once; returns the version that brings it back, "" for none.

        ours: its bytes, None when the history may have them under `sha`, their SHA-256. now: what stands there
        instead. Raises NoUndo.
        """
        def work(connection: sqlite3.Connection) -> int:
            known = history_conflicts.entered(connection, path, sha)
            if known is not None:
                return known
            data = load(connection, sha) if ours is None and has(connection, sha) else ours
            version = 0 if data is None else _row_id(
                self._record(connection, path, data, tool, op_id, now, own=True))
            history_conflicts.enter(connection, path, self._clock.instant(), version, sha)
            return version

        number = self.database.run(work)
        return f"v{number}" if number else ""

    def conflicts(self) -> List[Overwritten]:
        """The texts of ours that were written over and neither brought back nor dismissed, oldest first."""
        return self.database.run(history_conflicts.listed, durable=False) if self.database.exists() else []

    def dismiss(self, conflict_id: str) -> bool:
        """Take a conflict off the list; its version stays. False when there is none of this id."""
        if not self.database.exists():
            return False
        return self.database.run(lambda connection: history_conflicts.dismiss(connection, conflict_id))

    def knows(self, path: str) -> bool:
        """Whether any version of the path is kept."""
        return bool(self.versions(path))

    def writes_of(self, op_id: str) -> List[Wrote]:
        """What an op wrote or was about to write, in order."""
        if not self.database.exists():
            return []
        rows = self.database.run(lambda connection: connection.execute(_BY_OP, (op_id,)).fetchall(), durable=False)
        return [Wrote(row[0], f"v{row[1]}", *row[2:]) for row in rows]

    def forget(self, path: str) -> List[str]:
        """Remove the path's history without a trace; returns other paths that held some of the same contents."""
        def work(connection: sqlite3.Connection) -> List[str]:
            others = connection.execute(
                "SELECT DISTINCT path FROM version WHERE path <> :path AND sha IN (SELECT sha FROM version WHERE "
                "path = :path UNION SELECT after_sha FROM version WHERE path = :path) ORDER BY path", {"path": path},
            ).fetchall()
            rows = connection.execute("SELECT id FROM version WHERE path = ?", (path,)).fetchall()
            history_conflicts.settle(connection, path)
            connection.execute("DELETE FROM unsettled WHERE path = ?", (path,))
            _delete(connection, [row[0] for row in rows])
            return [row[0] for row in others]

        if not self.database.exists():
            return []
        others = self.database.run(work)
        self.database.compact()
        return others

    def problems(self) -> List[str]:
        """What the operator should know, one line each."""
        return [f"a broken history database was set aside as {name}" for name in self.database.set_aside]

    def close(self) -> None:
        """Close the database; the next call opens it again."""
        self.database.close()

    def _record(
        self, connection: sqlite3.Connection, path: str, before: Optional[bytes], tool: str, op_id: str,
        after: Optional[bytes], own: bool = False,
    ) -> str:
        last = connection.execute(
            "SELECT after_sha, coalesce(after_sha, sha) FROM version WHERE path = ? ORDER BY id DESC LIMIT 1", (path,),
        ).fetchone() or (None, None)
        sha = None if before is None else keep(connection, before, last[1])
        after_sha = None if after is None else keep(connection, after, sha)
        row_id = connection.execute(
            "INSERT INTO version (path, ts, tool, op_id, sha, size, summary, after_sha, by_others) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (path, self._clock.instant(), tool, op_id, sha, len(before or b""), _summary(before), after_sha,
             sha is not None and sha != last[0] and not own),
        ).lastrowid or 0
        if after_sha is not None:
            history_conflicts.settle(connection, path, after_sha)
        _delete(connection, _surplus(connection, path))
        self._make_room(connection, row_id)
        return f"v{row_id}"

    def _make_room(self, connection: sqlite3.Connection, newest: int) -> None:
        """Drop the oldest versions of all paths while the contents take too much; a path's last one goes last."""
        while connection.execute("SELECT bytes FROM total").fetchone()[0] > self._max_bytes:
            oldest = connection.execute(_OLDEST_WITH_SUCCESSOR).fetchone() or connection.execute(
                "SELECT id FROM version WHERE id <> ? ORDER BY id LIMIT 1", (newest,),
            ).fetchone()
            if oldest is None:
                return
            _delete(connection, [oldest[0]])

    def _rows(self, path: str) -> List[_Row]:
        """The path's rows, newest first; a history that was never begun is not begun by asking."""
        if not self.database.exists():
            return []
        return self.database.run(lambda connection: connection.execute(_ROWS, (path,)).fetchall(),
                                  durable=False)

    def _bytes(self, path: str, version_id: str, after: bool) -> Optional[bytes]:
        def work(connection: sqlite3.Connection) -> Tuple[bool, Optional[bytes]]:
            row = connection.execute(
                "SELECT sha, after_sha FROM version WHERE id = ? AND path = ?", (_row_id(version_id), path),
            ).fetchone() or ()
            sha = row[after] if row else None
            return bool(row), load(connection, sha) if sha else None

        found, data = self.database.run(work) if _row_id(version_id) and self.database.exists() else (False, None)
        if not found:
            # One answer for made-up ids and for those of other notes: it tells nothing about them.
            raise NotFound(f"There is no such version of {path}", "Use an `id` of echo_note_history.", path=path,
                       candidates=[])
        return data


def _row_id(version_id: str) -> int:
    """The row of a version id, 0 for anything that is none."""
    match = _VERSION_ID.match(version_id) if isinstance(version_id, str) else None
    return int(match.group(1)) if match else 0


def _version(row: _Row) -> Version:
    number, ts, size, summary, tool, op_id, absent, by_others = row[:8]
    return Version(f"v{number}", ts, size, summary, tool, op_id, bool(absent), bool(by_others))


def _surplus(connection: sqlite3.Connection, path: str) -> List[int]:
    """Rows of the path that nothing asks to keep."""
    rows = connection.execute(
        "SELECT id, substr(ts, 1, 10), by_others FROM version WHERE path = ? ORDER BY id DESC", (path,),
    ).fetchall()
    kept: Set[int] = {row[0] for row in rows[:KEEP_VERSIONS]}
    kept.update([row[0] for row in rows if row[2]][:1])
    kept.update(row[0] for row in connection.execute("SELECT version FROM conflict WHERE path = ?", (path,)))
    days: List[str] = []
    for number, day, _ in rows:
        if day not in days and len(days) < KEEP_DAYS:
            days.append(day)
            kept.add(number)
    return [row[0] for row in rows if row[0] not in kept]


def _delete(connection: sqlite3.Connection, numbers: List[int]) -> None:
    """Remove rows, and the contents that only they named."""
    for number in numbers:
        shas = connection.execute("SELECT sha, after_sha FROM version WHERE id = ?", (number,)).fetchone()
        if shas is not None:
            connection.execute("DELETE FROM version WHERE id = ?", (number,))
            drop_unused(connection, shas)


def _summary(data: Optional[bytes]) -> str:
    """The first line that says something, without a heading's marks; "" for none."""
    text = (data or b"")[:4096].decode("utf-8", "replace").lstrip("\ufeff")
    if text.startswith("---"):
        text = re.sub(r"\A---.*?^(?:---|\.\.\.)\s*$", "", text, flags=re.DOTALL | re.MULTILINE)
    for line in text.splitlines():
        said = " ".join(line.strip("#> \t").split())
        if said:
            return said[:_SUMMARY_CHARS]
    return ""
