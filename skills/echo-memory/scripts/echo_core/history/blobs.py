"""Contents of the history: each stored once, compressed, a grown file only as what was added to it."""
from __future__ import annotations

import hashlib
import sqlite3
import zlib
from typing import Iterable, NamedTuple, Optional

from echo_core.errors import NoUndo

_TAIL_FROM = 4096
_QUICK_FROM = 1 << 18


class _Base(NamedTuple):
    sha: str
    size: int


def keep(connection: sqlite3.Connection, data: bytes, like: Optional[str]) -> str:
    """Store the bytes unless they are there; returns their SHA-256 (hex). like: hash of a probably shorter state."""
    base = _base(connection, like) if len(data) >= _TAIL_FROM else None
    digest = hashlib.sha256()
    start = 0
    if base is not None and base.size <= len(data) <= 2 * base.size:
        digest.update(memoryview(data)[:base.size])
        start = base.size if digest.hexdigest() == base.sha else 0
        digest.update(memoryview(data)[base.size:])
    else:
        digest.update(data)
    sha = digest.hexdigest()
    if not has(connection, sha):
        packed = zlib.compress(memoryview(data)[start:], 1 if len(data) - start >= _QUICK_FROM else 6)
        connection.execute(
            "INSERT INTO blob (sha, size, stored, base, data) VALUES (?, ?, ?, ?, ?)",
            (sha, len(data), len(packed), base.sha if start and base else None, packed),
        )
    return sha


def has(connection: sqlite3.Connection, sha: str) -> bool:
    """Whether the bytes with this hash are kept."""
    return connection.execute("SELECT 1 FROM blob WHERE sha = ?", (sha,)).fetchone() is not None


def load(connection: sqlite3.Connection, sha: str) -> bytes:
    """The bytes with this hash; NoUndo when they are gone or damaged."""
    row = connection.execute("SELECT base, data FROM blob WHERE sha = ?", (sha,)).fetchone()
    try:
        if row is not None:
            data = (load(connection, row[0]) if row[0] else b"") + zlib.decompress(row[1])
            if hashlib.sha256(data).hexdigest() == sha:
                return data
    except zlib.error:
        row = None
    raise NoUndo("The kept version is damaged", hint="Take another version or a backup.")


def drop_unused(connection: sqlite3.Connection, shas: Iterable[Optional[str]]) -> None:
    """Remove those of the contents that no version and no tail needs any more."""
    waiting = {sha for sha in shas if sha}
    while waiting:
        sha = waiting.pop()
        used = connection.execute(
            "SELECT EXISTS (SELECT 1 FROM version WHERE sha = :sha) OR EXISTS (SELECT 1 FROM version WHERE "
            "after_sha = :sha) OR EXISTS (SELECT 1 FROM blob WHERE base = :sha)", {"sha": sha},
        ).fetchone()[0]
        row = None if used else connection.execute("SELECT base FROM blob WHERE sha = ?", (sha,)).fetchone()
        if row is not None:
            connection.execute("DELETE FROM blob WHERE sha = ?", (sha,))
            if row[0]:
                waiting.add(row[0])


def _base(connection: sqlite3.Connection, sha: Optional[str]) -> Optional[_Base]:
    """The whole content that `sha` is or continues; tails never build on tails."""
    if sha is None:
        return None
    row = connection.execute(
        "SELECT whole.sha, whole.size FROM blob JOIN blob AS whole ON whole.sha = coalesce(blob.base, blob.sha) "
        "WHERE blob.sha = ?", (sha,),
    ).fetchone()
    return None if row is None else _Base(row[0], row[1])
