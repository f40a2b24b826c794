"""The table of the outbox: its columns, its rows, and rows that an older release wrote (spec 6.2)."""
from __future__ import annotations

import hashlib
import json
import sqlite3
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, NamedTuple, Optional

from echo_core.errors import Misconfigured

FILE = "queue.sqlite3"
FORMAT = 1
"""`user_version` of the file; 0 is the release that only kept writes while the vault was away."""

RUNNING, WAITING, REPLAYING, LATE, PARKED, DONE = "running", "waiting", "replaying", "late", "parked", "done"
"""What a row's write is: under way in `owner`; to be replayed before anything else is written; being replayed by
`owner`; in the vault, only its entry in the entity index is owed, since somebody held the lock; in need of a decision;
in the vault, only its answer is kept for clients that ask again."""

_TABLES = """
CREATE TABLE intent (
    id INTEGER PRIMARY KEY AUTOINCREMENT, op_id TEXT NOT NULL UNIQUE, vault TEXT NOT NULL, tool TEXT NOT NULL,
    arguments TEXT NOT NULL, instant TEXT NOT NULL, state TEXT NOT NULL, owner TEXT NOT NULL DEFAULT '',
    begun TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '', tries INTEGER NOT NULL DEFAULT 0,
    again_at REAL NOT NULL DEFAULT 0, call TEXT NOT NULL, client_key TEXT NOT NULL DEFAULT '',
    answer TEXT NOT NULL DEFAULT '', targets TEXT NOT NULL DEFAULT '', done_at REAL NOT NULL DEFAULT 0
);
CREATE INDEX intent_open ON intent (vault, state, id) WHERE state <> 'done';
CREATE INDEX intent_done ON intent (done_at) WHERE state = 'done';
CREATE INDEX intent_call ON intent (call);
CREATE INDEX intent_key ON intent (client_key) WHERE client_key <> '';
CREATE VIEW open_intent AS
    SELECT op_id, tool, arguments, instant, state, reason, begun, tries, again_at, id, vault, call
    FROM intent WHERE state <> 'done';
"""


class First(NamedTuple):
    """The first write of an op: the path, and the SHA-256 of the bytes it read and of those it leaves ("": no file)."""

    path: str
    before: str
    after: str


class Intent(NamedTuple):
    """One write as the outbox knows it.

    instant: when it was made, with offset. reason: why it is parked, "" when it is not. first: its first write, None
    while the vault was not touched. plan: what the op noted before and between its writes.
    """

    op_id: str
    tool: str
    arguments: Dict[str, Any]
    instant: str
    state: str
    reason: str
    first: Optional[First]
    plan: Dict[str, Any]
    tries: int
    again_at: float
    number: int


@dataclass
class Running:
    """A write that a thread of this process carries out.

    arguments: checked. call: what tells it from other calls; key: the client's own name for it. stored: the outbox has
    a row. first: the first write, as the row says. writes: how many writes may have had an effect. torn: a part of a
    batch broke off between its writes. promised: the caller was told that it is kept. ended: its
    outcome is known. late: its entry in the index is owed. targets: path to version of what it
    wrote, "" for a note that went.
    """

    op_id: str
    tool: str
    arguments: Mapping[str, Any]
    instant: str
    call: str = ""
    key: str = ""
    stored: bool = False
    first: Optional[First] = None
    writes: int = 0
    torn: bool = False
    promised: bool = False
    ended: bool = False
    late: bool = False
    plan: Dict[str, Any] = field(default_factory=dict)
    targets: Dict[str, str] = field(default_factory=dict)

    @property
    def begun(self) -> str:
        """What the row says about how far the write has come, "" while the vault was not touched."""
        return "" if self.first is None else as_json({"first": list(self.first), "plan": self.plan})


def call_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """What is equal for two calls of the same tool with the same checked arguments, and tells nothing of them."""
    return hashlib.sha256(as_json([tool, arguments]).encode("utf-8")).hexdigest()


def as_json(value: Any) -> str:
    """Compact JSON text with sorted keys."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def digest(data: Optional[bytes]) -> str:
    """SHA-256 of a note's bytes in hex, "" for no note."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def intent_of(row: "tuple[Any, ...]") -> Intent:
    """The intent in a row of `open_intent`."""
    op_id, tool, arguments, instant, state, reason, begun, tries, again_at, number = row[:10]
    told = json.loads(begun) if begun else {}
    first = First(*told["first"]) if told.get("first") else None
    return Intent(op_id, tool, json.loads(arguments or "{}"), instant, state, reason, first, told.get("plan", {}),
                  tries, again_at, number)


def prepare(connection: sqlite3.Connection) -> None:
    """Make the table in a new file, take over what an older release queued.

    Raises Misconfigured for a file of a newer release, and leaves it as it is.
    """
    found = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if found == FORMAT:
        return
    if found > FORMAT:
        raise Misconfigured(
            f"the outbox was written by a newer release (format {found})",
            hint="Update ECHO, or name another state folder.", variable="ECHO_STATE_DIR",
        )
    connection.execute("BEGIN IMMEDIATE")
    if int(connection.execute("PRAGMA user_version").fetchone()[0]) == 0:  # no other process was quicker
        for statement in filter(str.strip, _TABLES.split(";")):
            connection.execute(statement)
        _take_over(connection)
        connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("COMMIT")


def _take_over(connection: sqlite3.Connection) -> None:
    """Move the rows of format 0, where every row waited or was parked."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'writes'").fetchone():
        return
    old = connection.execute("SELECT op_id, vault, tool, arguments, instant, reason FROM writes ORDER BY id")
    for op_id, vault, tool, arguments, instant, reason in old:
        connection.execute(
            "INSERT INTO intent (op_id, vault, tool, arguments, instant, state, reason, call) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (op_id, vault, tool, arguments, instant, PARKED if reason else WAITING, reason,
             call_of(tool, json.loads(arguments))),
        )
    connection.execute("DROP TABLE writes")
