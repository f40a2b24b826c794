"""Texts of ours that somebody wrote over without knowing them, listed until they are back or dismissed (spec 6.1, 6.3).

Every function works inside a transaction of the history's database.
"""
from __future__ import annotations

import re
import sqlite3
from typing import List, NamedTuple, Optional

_CONFLICT_ID = re.compile(r"c([1-9][0-9]{0,17})\Z")
_ALL = """SELECT conflict.id, conflict.path, version.id, conflict.ts FROM conflict
          LEFT JOIN version ON version.id = conflict.version ORDER BY conflict.id"""


class Overwritten(NamedTuple):
    """A text of ours that was written over; `version` of `path` brings it back, "" when it could not be kept.

    ts: when that was noticed.
    """

    id: str
    path: str
    version: str
    ts: str


def enter(connection: sqlite3.Connection, path: str, ts: str, version: int, sha: str) -> None:
    """List a text by its SHA-256; version: the row that keeps it, 0 for none."""
    connection.execute("INSERT INTO conflict (path, ts, version, sha) VALUES (?, ?, ?, ?)", (path, ts, version, sha))


def entered(connection: sqlite3.Connection, path: str, sha: str) -> Optional[int]:
    """The version of a text that is listed already, None when it is not."""
    row = connection.execute("SELECT version FROM conflict WHERE path = ? AND sha = ?", (path, sha)).fetchone()
    return int(row[0]) if row else None


def settle(connection: sqlite3.Connection, path: str, sha: Optional[str] = None) -> None:
    """Take off the list what has just been written again; without `sha` everything of the path."""
    connection.execute("DELETE FROM conflict WHERE path = ? AND sha = coalesce(?, sha)", (path, sha))


def dismiss(connection: sqlite3.Connection, conflict_id: str) -> bool:
    """Take one off the list; its version stays. False when there is none of this id."""
    match = _CONFLICT_ID.match(conflict_id)
    number = int(match.group(1)) if match else 0
    return connection.execute("DELETE FROM conflict WHERE id = ?", (number,)).rowcount > 0


def listed(connection: sqlite3.Connection) -> List[Overwritten]:
    """All that are listed, oldest first."""
    return [Overwritten(f"c{number}", path, f"v{version}" if version else "", ts)
            for number, path, version, ts in connection.execute(_ALL)]
