"""Writes made while the vault was not reachable, replayed in order when it is (spec 3.1, 3.3).

One SQLite file in the state folder (WAL, `synchronous=FULL`): a write that was answered `queued: true` survives the
end of the process and of the machine. It is replayed with the time it was made at. One that meets a gate or a
refusal then is parked with the reason, until the operator retries or drops it. The command line and the server each
have a queue of their own in their state folder.
"""
from __future__ import annotations

import json
import os
import re
import sqlite3
import time
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from echo_core.errors import InternalError, NotFound

FILE = "queue.sqlite3"
WAIT_S = 10.0
"""How long adding a write waits for another process that is replaying one."""

_SCHEMA = """
create table if not exists writes (
    id integer primary key autoincrement, op_id text not null unique, vault text not null, tool text not null,
    arguments text not null, instant text not null, reason text not null default ''
)
"""

RETRY_LATER = frozenset({"vault-unreachable", "vault-auth", "vault-tls", "vault-bad-response", "lock-held"})
"""Answers after which a write keeps waiting instead of being parked."""


class Waiting(NamedTuple):
    """One queued write. instant: when it was made, with offset. reason: why it is parked, "" when it is not."""

    op_id: str
    tool: str
    arguments: Dict[str, Any]
    instant: str
    reason: str


class Flushed(NamedTuple):
    """What a replay did, as op ids; `left` is the number that still waits."""

    arrived: List[str]
    parked: List[str]
    left: int


class WriteQueue:
    """The queued writes of one vault on this machine.

    state_dir: the folder for state, made when the first write is queued. vault: what tells this vault from others.
    door: "cli" or "server", which keep their queues apart.
    """

    def __init__(self, state_dir: str, vault: str, door: str = "cli") -> None:
        self.folder = os.path.join(state_dir, door)
        self._path = os.path.join(self.folder, FILE)
        self._vault = vault
        self._seen_empty = False
        self.on_add: Callable[[], None] = lambda: None
        """Called after each write that was kept."""

    def add(self, tool: str, arguments: Mapping[str, Any], instant: str) -> str:
        """Keep one write; durable when this returns. Returns its op id; the same write as the last one keeps its own.

        Raises OSError or sqlite3.Error when it could not be kept.
        """
        text = json.dumps(arguments, ensure_ascii=False, sort_keys=True)
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        self._seen_empty = False
        op_id = self._kept(tool, text, instant)
        self.on_add()
        return op_id

    def _kept(self, tool: str, text: str, instant: str) -> str:
        with self._open(create=True) as database, _transaction(database):
            # Only the last one: A, B, A again is three writes, and must end in A.
            last = database.execute(
                "select op_id, tool, arguments from writes where vault = ? and reason = '' order by id desc limit 1",
                (self._vault,),
            ).fetchone()
            if last and last[1:] == (tool, text):
                return str(last[0])
            op_id = os.urandom(6).hex()
            database.execute(
                "insert into writes (op_id, vault, tool, arguments, instant) values (?, ?, ?, ?, ?)",
                (op_id, self._vault, tool, text, instant),
            )
            return op_id

    def rows(self) -> List[Waiting]:
        """Everything queued, oldest first, parked writes included. Raises InternalError for a damaged file."""
        if not os.path.exists(self._path):
            return []
        with self._open() as database:
            return self._select(database)

    def waits(self) -> bool:
        """Whether a write waits; costs nothing once this process has seen that none does and added none."""
        if not self._seen_empty:
            self._seen_empty = not any(not row.reason for row in self.rows())
        return not self._seen_empty

    def counts(self) -> Dict[str, int]:
        """`{"depth", "parked", "conflicts", "damaged"}`: writes that wait, writes that need a decision, queue files
        that were set aside."""
        rows = self.rows()
        parked = sum(1 for row in rows if row.reason)
        return {"depth": len(rows) - parked, "parked": parked, "conflicts": 0, "damaged": len(self.damaged())}

    def depth(self) -> Tuple[int, int, float]:
        """(writes that wait, writes that are parked, age in seconds of the oldest waiting one)."""
        rows = self.rows()
        waiting = [row for row in rows if not row.reason]
        age = time.time() - datetime.fromisoformat(waiting[0].instant).timestamp() if waiting else 0.0
        return len(waiting), len(rows) - len(waiting), max(0.0, age)

    def damaged(self) -> List[str]:
        """Names of queue files that were set aside because they could not be read."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        return sorted(name for name in names if re.fullmatch(re.escape(FILE) + r"\.corrupt-\d+", name))

    def replay(
        self, call: Callable[[Waiting], Mapping[str, Any]], vault_answers: Callable[[], bool] = lambda: False
    ) -> Flushed:
        """Replay the waiting writes in order until one has to wait longer.

        call: runs one write and returns its envelope. vault_answers: whether a write that failed as if the vault were
        away failed for a reason of its own (one unreadable note); that one is parked and holds up no other. Each
        write leaves the queue in the same step that saw it arrive; a crash in between replays it once more, which
        the ops answer with `unchanged`. While another process replays, nothing is done.
        """
        arrived: List[str] = []
        parked: List[str] = []
        if not any(not row.reason for row in self.rows()):
            return Flushed(arrived, parked, 0)
        with self._open(wait_s=0.2) as database:
            try:
                while self._replay_one(database, call, vault_answers, arrived, parked):
                    continue
            except sqlite3.OperationalError as busy:
                if "locked" not in str(busy):
                    raise
            left = sum(1 for row in self._select(database) if not row.reason)
        return Flushed(arrived, parked, left)

    def _replay_one(
        self, database: sqlite3.Connection, call: Callable[[Waiting], Mapping[str, Any]],
        vault_answers: Callable[[], bool], arrived: List[str], parked: List[str],
    ) -> bool:
        """Replay the oldest waiting write; False when none waits or it has to wait longer."""
        with _transaction(database):
            write = next((row for row in self._select(database) if not row.reason), None)
            if write is None:
                return False
            envelope = _tried(write, call, vault_answers)
            if envelope is None:
                return False
            verdict = _verdict(envelope)
            if envelope.get("ok") and verdict != "partial":
                database.execute("delete from writes where op_id = ?", (write.op_id,))
                arrived.append(write.op_id)
            else:
                why = envelope.get("error") or " ".join(envelope.get("warnings", [])) or envelope.get("hint", "")
                reason = f"{verdict}: {why}"[:500]
                database.execute("update writes set reason = ? where op_id = ?", (reason, write.op_id))
                parked.append(write.op_id)
        return True

    def retry(self, op_id: str) -> None:
        """Let a parked write be replayed again. Raises NotFound."""
        self._seen_empty = False
        self._change("update writes set reason = '' where op_id = ? and vault = ?", op_id)

    def drop(self, op_id: str) -> None:
        """Forget a write for good. Raises NotFound."""
        self._change("delete from writes where op_id = ? and vault = ?", op_id)

    def _change(self, statement: str, op_id: str) -> None:
        changed = 0
        if os.path.exists(self._path):
            with self._open() as database, _transaction(database):
                changed = database.execute(statement, (op_id, self._vault)).rowcount
        if not changed:
            known = [row.op_id for row in self.rows()]
            raise NotFound("there is no queued write of this id", hint="`queue` lists them.", candidates=known)

    def _select(self, database: sqlite3.Connection) -> List[Waiting]:
        rows = database.execute(
            "select op_id, tool, arguments, instant, reason from writes where vault = ? order by id", (self._vault,)
        )
        return [Waiting(row[0], row[1], json.loads(row[2]), row[3], row[4]) for row in rows]

    @contextmanager
    def _open(self, create: bool = False, wait_s: float = WAIT_S) -> Iterator[sqlite3.Connection]:
        if create and not os.path.exists(self._path):
            os.close(os.open(self._path, os.O_CREAT | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(self._path, timeout=wait_s, isolation_level=None)) as database:
            try:
                database.execute("pragma journal_mode = wal")
                database.execute("pragma synchronous = full")
                database.execute("pragma secure_delete = on")
                database.execute(_SCHEMA)
                yield database
            except sqlite3.OperationalError:
                raise  # locked, full or read-only: the file itself is sound
            except sqlite3.DatabaseError as damage:
                database.close()
                raise self._set_aside(damage) from damage

    def _set_aside(self, damage: sqlite3.DatabaseError) -> InternalError:
        """Keep the damaged file under another name, so that it is never replaced by an empty one unseen."""
        number = len(self.damaged()) + 1
        name = f"{FILE}.corrupt-{number}"
        os.replace(self._path, os.path.join(self.folder, name))
        for suffix in ("-wal", "-shm"):
            if os.path.exists(self._path + suffix):
                os.replace(self._path + suffix, os.path.join(self.folder, name + suffix))
        return InternalError(
            f"the queue of waiting writes cannot be read ({type(damage).__name__}); it was kept as {name}",
            hint="Writes queued before may be missing from the vault; `doctor` shows the file.",
        )


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    """One write transaction, taken at once so that two processes never replay the same write."""
    database.execute("begin immediate")
    try:
        yield
    except BaseException:
        database.execute("rollback")
        raise
    database.execute("commit")


def _tried(
    write: Waiting, call: Callable[[Waiting], Mapping[str, Any]], vault_answers: Callable[[], bool]
) -> Optional[Mapping[str, Any]]:
    """The envelope that decides about a write, None while it has to wait longer.

    A vault that answers right after a write failed for want of it may have come back in between, so only the second
    such failure is the write's own.
    """
    for _ in range(2):
        envelope = call(write)
        verdict = _verdict(envelope)
        if verdict not in RETRY_LATER:
            return envelope
        if verdict == "lock-held" or not vault_answers():
            return None
    return envelope


def _verdict(envelope: Mapping[str, Any]) -> str:
    return str(envelope.get("code") or envelope.get("action") or "")


def summary_of(write: Waiting) -> Optional[str]:
    """A few words that tell which write this is: its title, path or names."""
    for key in ("title", "path", "scope", "slug", "a"):
        if write.arguments.get(key):
            return str(write.arguments[key])[:80]
    return None
