"""The outbox: every write is kept here before it touches the vault, until its last step is done (spec 6.2).

One SQLite file in the state folder (WAL, `synchronous=FULL` for what is kept, less for what a replay finds out by
itself). A row is `running` while a process carries it out, `waiting` when it has to be replayed (the vault was away,
or the process died), `parked` when a replay needs a decision, and `done` for a while after it, so that a client that
asks again hears the same. The command line and the server each have an outbox of their own in their state folder.
"""
from __future__ import annotations

import json
import os
import re
import secrets
import sqlite3
import threading
import time
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
    TypeVar,
)

from echo_core.errors import NotFound
from echo_core.state.database import StateDatabase
from echo_core.state.kernel_lock import KernelLock
from echo_core.state.reserve import Reserve
from echo_queue_rows import (
    DONE,
    FILE,
    PARKED,
    REPLAYING,
    RUNNING,
    WAITING,
    First,
    Intent,
    Running,
    as_json,
    intent_of,
    prepare,
)

PAGE = 100
"""Rows read at once."""
PAGE_CHARS = 4 * 1024 * 1024
"""Characters of arguments read at once."""
_FINISH = ("UPDATE intent SET state = 'done', owner = '', reason = '', arguments = '', begun = '', answer = ?, "
           "targets = ?, done_at = ? WHERE op_id = ?")
KEYED_S, UNKEYED_S = 24 * 3600.0, 600.0
"""How long the answer to a done write is kept, with a client's key and without one."""
CLOCK_SLACK_S = 60.0
"""A time further in the future than this was written by a clock that was wrong."""
TIDY_S = 60.0
LONGEST_TURN_S = 60.0
"""A call waits no longer for an equal one that is under way."""
_Answer = TypeVar("_Answer")


class Depth(NamedTuple):
    """waiting, parked: writes; one that is being replayed still waits. oldest_s: age in seconds of the oldest
    waiting one."""

    waiting: int
    parked: int
    oldest_s: float


class Answered(NamedTuple):
    """A write of a call that was sent before.

    answer: what was answered, empty while the write waits. targets: path to version of what it wrote, "" for a note
    that went.
    """

    op_id: str
    call: str
    answer: Dict[str, Any]
    targets: Dict[str, str]


class Outbox:
    """The outbox of one vault on this machine.

    state_dir: the folder for state, made when the first write is kept. vault: what tells this vault from others.
    door: "cli" or "server", which keep their outboxes apart. Methods raise sqlite3.Error and OSError when the file
    cannot be used.
    """

    def __init__(self, state_dir: str, vault: str, door: str = "cli") -> None:
        self.folder = os.path.join(state_dir, door)
        self.replaying = KernelLock(os.path.join(self.folder, "replay.lock"))
        """Held by the one process and thread that replays."""
        self._vault = vault
        self.reserve = Reserve(state_dir)
        """What small writes get on a full disk."""
        self._file = StateDatabase(self.folder, FILE, prepare, lambda: time.strftime("%Y-%m-%d-%H%M"), self.reserve)
        self._alive: Optional[KernelLock] = None
        self._guard = threading.Lock()
        self._under_way: Dict[str, Running] = {}
        self._void: Set[str] = set()
        self._thread = threading.local()
        self._seen_empty = False
        self._calls: Dict[str, threading.Lock] = {}
        self._tidied = 0.0
        self.on_wait: Callable[[], None] = lambda: None
        """Called after each write that has to wait."""

    @property
    def current(self) -> Optional[Running]:
        """The write that this thread carries out now."""
        found: Optional[Running] = getattr(self._thread, "running", None)
        return found

    @contextmanager
    def carrying_out(self, op: Running) -> Iterator[None]:
        """Let the vault's writes of this thread belong to `op`."""
        with self._guard:
            self._under_way[op.op_id] = op
        self._thread.running = op
        try:
            yield
        finally:
            self._thread.running = None
            with self._guard:
                self._under_way.pop(op.op_id, None)

    def promise(self, name: str) -> str:
        """The op_id of the write of this key or call that is under way and kept, "" for none.

        From then on it is carried to its end or parked, never forgotten: its caller does not wait for its answer.
        """
        with self._guard:
            for op in self._under_way.values():
                if name == (op.key or op.call) and op.stored and not op.ended:
                    op.promised = True
                    return op.op_id
        return ""

    def end(self, op: Running) -> bool:
        """Nobody may promise the write any more; whether somebody has."""
        with self._guard:
            op.ended = True
            return op.promised

    @contextmanager
    def one_at_a_time(self, name: str) -> Iterator[None]:
        """Let calls of one name, of all threads, run one after the other, at most LONGEST_TURN_S each."""
        with self._guard:
            turn = self._calls.setdefault(name, threading.Lock())
        taken = turn.acquire(timeout=LONGEST_TURN_S)
        try:
            yield
        finally:
            if taken:
                turn.release()
            with self._guard:
                if not turn.locked():
                    self._calls.pop(name, None)

    def answered_key(self, key: str, within_s: float) -> Optional[Answered]:
        """The write that a client called `key`, if it is not done or was done in the last `within_s` seconds."""
        return self._answered("client_key = ? AND (state <> 'done' OR done_at BETWEEN ? AND ?)", key, within_s)

    def answered_call(self, call: str, within_s: float) -> Optional[Answered]:
        """The last write of exactly this call that was done in the last `within_s` seconds."""
        return self._answered("call = ? AND state = 'done' AND done_at BETWEEN ? AND ?", call, within_s)

    def _answered(self, which: str, name: str, within_s: float) -> Optional[Answered]:
        now = time.time()
        rows = self._ask(f"SELECT op_id, call, answer, targets FROM intent WHERE vault = ? AND {which} "  # noqa: S608
                         "ORDER BY id DESC LIMIT 1", (self._vault, name, now - within_s, now + CLOCK_SLACK_S))
        return next((Answered(op_id, call, json.loads(answer or "{}"), json.loads(targets or "{}"))
                     for op_id, call, answer, targets in rows), None)

    def begin(self, op: Running, first: First) -> None:
        """Keep the write before it touches the vault; durable when this returns."""
        again, op.first = op.first is not None, first
        if not op.stored:
            self._void.add(op.op_id)  # a row whose sync failed may be there all the same
            self._insert(op, RUNNING)
            self._void.discard(op.op_id)
        else:
            # The row of a replay is durable already; that a write is about to begin need not survive a power cut,
            # unless an earlier beginning, which came to nothing, stands there.
            self._note(op, durable=again)

    def remember(self, op: Running, plan: Mapping[str, Any]) -> None:
        """Note what the op has to know when it is taken up again after a crash."""
        op.plan.update(plan)
        if op.first is not None:
            self._note(op, durable=False)

    def keep(self, op: Running) -> str:
        """Keep a write that cannot be made now; durable when this returns. Returns its op id.

        The same write as the last one that waits keeps that one's: A, B, A again is three writes, and must end in A.
        """
        last = self._ask(
            "SELECT op_id, call, begun FROM open_intent WHERE vault = ? AND state = 'waiting' ORDER BY id DESC LIMIT 1",
            (self._vault,),
        )
        if last and last[0][1:] == (op.call, ""):
            return str(last[0][0])
        self._insert(op, WAITING)
        self.reserve.fill()
        self._waits_now()
        return op.op_id

    def finish(self, op: Running, answer: Mapping[str, Any]) -> None:
        """The last step is done. A crash before this is on the disk only means that a replay finds nothing to do."""
        self._change(_FINISH, _finished(op, answer), durable=False)
        self._tidy()

    def _tidy(self) -> None:
        """Now and then remove what was done too long ago to be asked for again."""
        if time.monotonic() - self._tidied >= TIDY_S:
            self._tidied = time.monotonic()
            now = time.time()
            self._change(
                "DELETE FROM intent WHERE state = 'done' AND (done_at < ? OR done_at > ? OR "
                "(client_key = '' AND done_at < ?))",
                (now - KEYED_S, now + CLOCK_SLACK_S, now - UNKEYED_S), durable=False)

    def note_answer(self, op: Running, answer: Mapping[str, Any]) -> None:
        """Keep the answer to a keyed call that had nothing to write."""
        self._insert(op, DONE)
        self.finish(op, answer)

    def forget(self, op: Running) -> None:
        """The write had no effect and was answered so: it must never be replayed."""
        self._void.add(op.op_id)
        self._change("DELETE FROM intent WHERE op_id = ?", (op.op_id,), durable=True)
        self._void.discard(op.op_id)
        op.stored, op.first = False, None

    def wait(self, op_id: str, tries: int = 0, again_at: float = 0.0) -> None:
        """What is left of the write is replayed, from the time `again_at` (seconds since the epoch) on."""
        self._change("UPDATE intent SET state = 'waiting', owner = '', tries = ?, again_at = ? WHERE op_id = ?",
                     (tries, again_at, op_id), durable=False)
        self._waits_now()

    def owe(self, op_id: str) -> None:
        """Only the write's entry in the index is owed."""
        self._change("UPDATE intent SET state = 'late', owner = '' WHERE op_id = ?", (op_id,), durable=False)
        self._seen_empty = False

    def park(self, op_id: str, reason: str) -> None:
        """Keep the write until the operator decides."""
        self._change("UPDATE intent SET state = 'parked', owner = '', reason = ? WHERE op_id = ?",
                     (reason[:500], op_id), durable=False)

    def claim(self, op_id: str) -> bool:
        """Take a waiting write for this process; False when it does not wait any more."""
        return self._change(
            "UPDATE intent SET state = CASE state WHEN 'waiting' THEN 'replaying' ELSE 'running' END, owner = ? "
            "WHERE op_id = ? AND state IN ('waiting', 'late')",
            (self._owner(), op_id), durable=False) > 0

    def adopt(self) -> int:
        """Let writes wait whose process or thread died; returns how many there were."""
        rows = self._ask("SELECT op_id, owner FROM intent WHERE vault = ? AND state IN ('running', 'replaying')",
                         (self._vault,))
        mine = self._owner() if rows else ""
        dead = {owner for _, owner in rows if owner != mine and self._is_dead(owner)}
        with self._guard:
            orphans = [op_id for op_id, owner in rows
                       if owner in dead or (owner == mine and op_id not in self._under_way)]
        for op_id in orphans:
            if op_id in self._void:
                self._change("DELETE FROM intent WHERE op_id = ?", (op_id,), durable=True)
            else:
                self.wait(op_id)
        for owner in dead:
            self._remove_owner(owner)
        return len(orphans)

    def claim_all(self, op_ids: Sequence[str]) -> Set[str]:
        """Take waiting writes for this process, all at once; those that still waited."""
        owner = self._owner()
        statement = "UPDATE intent SET state = 'replaying', owner = ? WHERE op_id = ? AND state = 'waiting'"

        def work(connection: sqlite3.Connection) -> Set[str]:
            return {op_id for op_id in op_ids if connection.execute(statement, (owner, op_id)).rowcount}

        return self._file.run(work, durable=False)

    def wait_all(self, op_ids: Iterable[str]) -> None:
        """Let writes that were claimed wait again, as they did before."""
        rows = [(op_id,) for op_id in op_ids]
        self._file.run(lambda connection: connection.executemany(
            "UPDATE intent SET state = 'waiting', owner = '' WHERE op_id = ?", rows), durable=False)
        self._seen_empty = False

    def those(self, op_ids: Sequence[str]) -> List[Intent]:
        """Those of the writes that wait, as they are now, oldest first."""
        def work(connection: sqlite3.Connection) -> List[Tuple[Any, ...]]:
            query = "SELECT * FROM open_intent WHERE op_id = ? AND state = 'waiting'"
            return [row for op_id in op_ids for row in connection.execute(query, (op_id,))]

        found = self._file.run(work, durable=False) if op_ids and self._file.exists() else []
        return sorted(map(intent_of, found), key=lambda intent: intent.number)

    def finish_all(self, done: Sequence[Tuple[Running, Mapping[str, Any]]]) -> None:
        """`finish` for several writes and their answers, all at once."""
        rows = [_finished(op, answer) for op, answer in done]
        self._file.run(lambda connection: connection.executemany(_FINISH, rows), durable=False)
        self._tidy()

    def page(self, after: int, state: str = WAITING, most: int = PAGE) -> List[Intent]:
        """The next waiting (or late) writes after the row number `after`, oldest first.

        At most `most` of them; of more than PAGE only as many as have PAGE_CHARS of arguments.
        """
        def work(connection: sqlite3.Connection) -> List[Intent]:
            found: List[Intent] = []
            chars = 0
            for row in connection.execute(
                    "SELECT * FROM open_intent WHERE vault = ? AND state = ? AND id > ? ORDER BY id LIMIT ?",
                    (self._vault, state, after, most)):
                found.append(intent_of(row))
                chars += len(row[2])
                if chars > PAGE_CHARS and len(found) >= PAGE:
                    break
            return found

        return self._file.run(work, durable=False) if self._file.exists() else []

    def rows(self, limit: int = PAGE) -> List[Intent]:
        """What is not done, oldest first; parked writes before others, since they need somebody."""
        return [intent_of(row) for row in self._ask(
            "SELECT * FROM open_intent WHERE vault = ? ORDER BY state <> 'parked', id LIMIT ?", (self._vault, limit),
        )]

    def look_again(self) -> None:
        """Another process may have changed something: the next `owes` asks the file."""
        self._seen_empty = False

    def owes(self) -> bool:
        """Whether anything has to be replayed; costs nothing once this process has seen that nothing has to be."""
        if not self._seen_empty:
            self.adopt()
            self._seen_empty = not self._ask(
                "SELECT 1 FROM open_intent WHERE vault = ? AND state IN ('waiting', 'late') LIMIT 1", (self._vault,))
        return not self._seen_empty

    def waits(self) -> bool:
        """Whether a write waits, so that others have to wait behind it."""
        return self.owes() and bool(self.page(0, most=1))

    def depth(self) -> Depth:
        """How much waits and is parked; counted by the database, whatever their number."""
        states = dict(self._ask("SELECT state, count(*) FROM open_intent WHERE vault = ? GROUP BY state",
                                (self._vault,)))
        oldest = self._ask("SELECT instant FROM intent WHERE vault = ? AND state IN ('waiting', 'replaying') "
                           "ORDER BY id LIMIT 1", (self._vault,))
        age = time.time() - datetime.fromisoformat(oldest[0][0]).timestamp() if oldest else 0.0
        waiting = states.get(WAITING, 0) + states.get(REPLAYING, 0)
        return Depth(waiting, states.get(PARKED, 0), max(0.0, age))

    def counts(self) -> Dict[str, int]:
        """`{"depth", "parked", "conflicts", "damaged"}`: writes that wait, writes that need a decision, files that
        were set aside."""
        depth = self.depth()
        return {"depth": depth.waiting, "parked": depth.parked, "conflicts": 0, "damaged": len(self.damaged())}

    def damaged(self) -> List[str]:
        """Names of files that were set aside because they could not be read."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        return sorted(name for name in names if re.fullmatch(re.escape(FILE) + r"\.corrupt-[\d-]+", name))

    def retry(self, op_id: str) -> None:
        """Let a parked write be replayed again. Raises NotFound."""
        self._decide("UPDATE intent SET state = 'waiting', reason = '', tries = 0, again_at = 0 "
                     "WHERE op_id = ? AND vault = ? AND state = 'parked'", op_id)
        self._waits_now()

    def drop(self, op_id: str) -> None:
        """Forget a write for good that no process carries out. Raises NotFound."""
        self._decide("DELETE FROM intent WHERE op_id = ? AND vault = ? "
                     "AND state NOT IN ('running', 'replaying', 'done')", op_id)

    def waiting_for(self, path: str) -> List[str]:
        """Op ids of the writes that are not done and name the note `path`, or had begun to write it."""
        return [row[0] for row in self._ask(
            "SELECT op_id, arguments, begun FROM intent WHERE vault = ? AND state <> 'done'", (self._vault,),
        ) if _names(path, row[1:])]

    def purge(self, path: str) -> None:
        """Remove every row that names the note `path`, done or not, and what SQLite keeps of removed rows."""
        rows = self._ask("SELECT op_id, arguments, begun, answer, targets FROM intent WHERE vault = ?", (self._vault,))
        for op_id in [row[0] for row in rows if _names(path, row[1:])]:
            self._change("DELETE FROM intent WHERE op_id = ?", (op_id,), durable=True)
        if self._file.exists():
            self._file.compact()

    def close(self) -> None:
        """Close the file and let go of what says that this process lives."""
        self._file.close()
        with self._guard:
            alive, self._alive = self._alive, None
        if alive is not None:
            _unlink(alive.path)
            alive.release()

    def _note(self, op: Running, durable: bool) -> None:
        self._change("UPDATE intent SET begun = ? WHERE op_id = ?", (op.begun, op.op_id), durable)

    def _insert(self, op: Running, state: str) -> None:
        values = (op.op_id, self._vault, op.tool, as_json(op.arguments), op.instant, state,
                  self._owner() if state == RUNNING else "", op.begun, op.call, op.key)
        self._file.run(lambda connection: connection.execute(
            "INSERT INTO intent (op_id, vault, tool, arguments, instant, state, owner, begun, call, client_key) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values))
        op.stored = True

    def _decide(self, statement: str, op_id: str) -> None:
        if not self._change(statement, (op_id, self._vault), durable=True):
            raise NotFound("there is no such write in the outbox", hint="`queue` lists them.",
                           candidates=[row.op_id for row in self.rows()])

    def _change(self, statement: str, values: "tuple[Any, ...]", durable: bool) -> int:
        """How many rows a statement changed; a file that is not there is not made for it."""
        if not self._file.exists():
            return 0
        return self._file.run(lambda connection: connection.execute(statement, values).rowcount, durable)

    def _ask(self, query: str, values: "tuple[Any, ...]") -> "List[tuple[Any, ...]]":
        if not self._file.exists():
            return []
        return self._file.run(lambda connection: connection.execute(query, values).fetchall(), durable=False)

    def _waits_now(self) -> None:
        self._seen_empty = False
        self.on_wait()

    def _owner(self) -> str:
        """This process's name in the rows; the kernel lock of that name says that it lives."""
        with self._guard:
            while self._alive is None:
                lock = KernelLock(self._owner_file(secrets.token_hex(8)))
                if lock.take() and os.path.exists(lock.path):  # else somebody tidied up before it was locked
                    self._alive = lock
            return os.path.basename(self._alive.path)

    def _owner_file(self, owner: str) -> str:
        return os.path.join(self.folder, "alive", owner)

    def _is_dead(self, owner: str) -> bool:
        return not owner or KernelLock(self._owner_file(owner)).is_free()

    def _remove_owner(self, owner: str) -> None:
        if owner:
            _unlink(self._owner_file(owner))


def _names(path: str, columns: Iterable[str]) -> bool:
    """Whether a path stands in one of the JSON texts."""
    quoted = as_json(path), json.dumps(path)
    return any(text in column for text in quoted for column in columns)


def _finished(op: Running, answer: Mapping[str, Any]) -> Tuple[str, str, float, str]:
    """The values of _FINISH. The members of an answer keep their order: whoever asks again gets the same text."""
    return json.dumps(answer, ensure_ascii=False), as_json(op.targets), time.time(), op.op_id


def _unlink(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)
