"""An SQLite file in the state folder: opened when first needed, private to its owner, set aside when it is broken."""
from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import contextmanager
from typing import Callable, Iterator, List, Optional, TypeVar

from echo_core.atomic import private_folder
from echo_core.state.reserve import Reserve

BUSY_S = 10.0
"""Seconds a transaction waits for another process's."""
_INCREMENTAL = 2
_Answer = TypeVar("_Answer")


class StateDatabase:
    """One connection for all threads, which take turns; other processes wait for each other's transactions.

    folder: made when first needed, 0700. name: of the file in it, 0600. prepare: gets every new connection, makes
    tables. stamp: a time for the name of a broken file that is set aside. reserve: makes room for a transaction that
    meets a full disk; None for files that can do without.
    """

    def __init__(
        self, folder: str, name: str, prepare: Callable[[sqlite3.Connection], None], stamp: Callable[[], str],
        reserve: Optional[Reserve] = None,
    ) -> None:
        self.folder = folder
        self.name = name
        self._file = os.path.join(folder, name)
        self._prepare = prepare
        self._stamp = stamp
        self._reserve = reserve
        self._lock = threading.RLock()
        self._connection: Optional[sqlite3.Connection] = None
        self._pid = 0
        self.set_aside: List[str] = []
        """Names (in the folder) of broken files that this process replaced by an empty one."""

    def exists(self) -> bool:
        """Whether there is a file; asking makes none."""
        return self._connection is not None or os.path.exists(self._file)

    def run(self, work: Callable[[sqlite3.Connection], _Answer], durable: bool = True) -> _Answer:
        """`work` in one transaction. Raises sqlite3.Error and OSError when the database cannot do it.

        durable: it is on the disk when this returns; else it survives a kill, and a power cut from the next durable
        one on. A broken database file is renamed, named in `set_aside`, and the work done in a fresh one.
        """
        with self._lock:
            try:
                return self._with_room(work, durable)
            except sqlite3.DatabaseError as error:
                # The subclasses are about locks, space and constraints; the class itself is about a broken file.
                if type(error) is not sqlite3.DatabaseError:
                    raise
                self._replace_broken()
                return self._once(work, durable)

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None and self._pid == os.getpid():
                connection.close()

    def compact(self) -> None:
        """Leave nothing of deleted rows in the files, and give the space back."""
        with self._lock:
            self.run(lambda connection: None)
            if self._connection is not None:
                self._connection.execute("PRAGMA incremental_vacuum").fetchall()
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _with_room(self, work: Callable[[sqlite3.Connection], _Answer], durable: bool) -> _Answer:
        """`_once`, and once more with what the reserve gives when the disk is full."""
        try:
            return self._once(work, durable)
        except (sqlite3.OperationalError, OSError) as error:
            if self._reserve is None or not self._reserve.helps_after(error):
                raise
        return self._once(work, durable)

    def _once(self, work: Callable[[sqlite3.Connection], _Answer], durable: bool) -> _Answer:
        try:
            with self._transaction(durable) as connection:
                return work(connection)
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                self.close()  # after a failed write or sync only a new connection sees what is on the disk
            raise

    @contextmanager
    def _transaction(self, durable: bool) -> Iterator[sqlite3.Connection]:
        connection = self._open()
        connection.execute("PRAGMA synchronous = FULL" if durable else "PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._pid == os.getpid():
            return self._connection
        private_folder(self.folder)
        # SQLite gives its companion files the mode of this one.
        os.close(os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(self._file, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            if connection.execute("PRAGMA auto_vacuum").fetchone() != (_INCREMENTAL,):  # setting it again is a write
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA journal_size_limit = 16777216")
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection, self._pid = connection, os.getpid()
        return connection

    def _replace_broken(self) -> None:
        self.close()
        for number in range(1, 1000):
            name = f"{self.name}.corrupt-{self._stamp()}" + (f"-{number}" if number > 1 else "")
            aside = os.path.join(self.folder, name)
            if not os.path.lexists(aside):
                break
        for suffix in ("-wal", "-shm", ""):
            if os.path.exists(self._file + suffix):
                os.replace(self._file + suffix, aside + suffix)
        self.set_aside.append(name)
