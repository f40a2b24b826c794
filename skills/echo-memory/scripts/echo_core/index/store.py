"""The entity index on its vault: loaded, rebuilt when missing or broken, and written under the lock (spec 2.4, 2.6)."""
from __future__ import annotations

import threading
import time
from typing import Callable, NamedTuple, Optional, Set, Tuple

from echo_core.clock import Clock
from echo_core.errors import Conflict, EchoError, IndexCorrupt, NotFound
from echo_core.index import EntityIndex
from echo_core.kinds import INDEX, INDEX_LOCK
from echo_core.locks import AdvisoryLock, LockHeld
from echo_core.vault.base import MAX_RACES, Vault

SETTLED_NS = 100_000_000
"""A file whose time stamp is younger than this when it is read may change again without its stamp moving."""

class _Loaded(NamedTuple):
    """signature: (size, mtime_ns) of the file, None when there is none. data: its bytes. broken: it did not parse.

    settled: the file can no longer change without its signature changing too.
    """

    signature: Optional[Tuple[int, int]]
    settled: bool
    data: Optional[bytes]
    entities: EntityIndex
    broken: bool


class IndexStore:
    """The entity index of one vault, shared between threads.

    rebuild: makes an index from the notes. complete: whether all notes can be seen now; while they cannot, a broken
    file is never replaced. trust_s: how long a loaded index counts as the current one without asking the vault, for
    backends where asking costs as much as reading; 0 asks for the file's size and time each time. pending: paths whose
    entries wait for the next write, because the lock was held when their notes were written.
    """

    def __init__(
        self, vault: Vault, lock: AdvisoryLock, clock: Clock, rebuild: Callable[[], EntityIndex],
        complete: Callable[[], bool] = lambda: True, trust_s: float = 0.0,
    ) -> None:
        self._vault = vault
        self._lock = lock
        self._clock = clock
        self._rebuild = rebuild
        self._complete = complete
        self._trust_s = trust_s
        self._asked_at = 0.0
        self._loading = threading.RLock()
        self._writing = threading.RLock()
        self._loaded: Optional[_Loaded] = None
        self.pending: Set[str] = set()

    def load(self) -> EntityIndex:
        """The index as it stands now; shared, so callers must not change it.

        A missing or broken file is answered with an index rebuilt from the notes; nothing is written. Raises
        IndexCorrupt when the file is broken and the rebuild fails, and the vault's errors.
        """
        return self._current().entities

    def known(self) -> Optional[EntityIndex]:
        """The index as of the last load or update, None before the first; asks nothing of the vault."""
        return self._loaded.entities if self._loaded else None

    def look_again(self) -> None:
        """Take what was loaded for outdated: another server may have written the file. Raises the vault's errors."""
        self._current(fresh=True)

    def broken(self) -> bool:
        """Whether the file is there but cannot be read as an index."""
        return self._current().broken

    def update(self, change: Callable[[EntityIndex], None]) -> bool:
        """Apply `change` to the index and write the file if its bytes differ. Returns whether it was written.

        change: may be called several times, each time with a fresh copy. A broken file is first copied aside as
        `entities.json.corrupt-<stamp>`. Raises LockHeld when somebody holds the lock, IndexCorrupt when a broken
        file cannot be replaced now, Conflict after too many lost races, and what `change` raises.
        """
        with self._writing:
            if not self._needs_write(change):
                return False
            try:  # nearly always it is free: then taking it, writing and giving it back is one turn at the vault
                with self._vault.exclusive(INDEX, INDEX_LOCK), self._lock.held("index", wait_s=0):
                    return self._write_again(change)
            except LockHeld:
                with self._lock.held("index"):
                    return self._write_again(change)

    def _needs_write(self, change: Callable[[EntityIndex], None]) -> bool:
        """Whether `change` changes anything: taking the lock for nothing would churn people's sync."""
        # What was known last may tell that it does; that it does not, only the file can tell.
        known = self._loaded
        return (known is not None and self._differs(known, change)) or self._differs(self._current(), change)

    def _differs(self, loaded: _Loaded, change: Callable[[EntityIndex], None]) -> bool:
        if loaded.broken:
            return True
        index, known = loaded.entities.copy(), loaded.entities
        change(index)
        if loaded.data is None or index.stamp == known.stamp:
            return loaded.data is None
        return index.entries != known.entries or index.to_bytes() != loaded.data

    def _write_again(self, change: Callable[[EntityIndex], None]) -> bool:
        """`_write`, from the start when somebody without a lock was quicker."""
        for attempt in range(MAX_RACES):
            try:
                with self._vault.exclusive(INDEX):
                    return self._write(change)
            except Conflict:
                if attempt == MAX_RACES - 1:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _write(self, change: Callable[[EntityIndex], None]) -> bool:
        loaded = self._current(fresh=True)
        index = loaded.entities.copy()
        change(index)
        data = index.to_bytes()
        if data == loaded.data:
            return False
        if loaded.broken and loaded.data is not None:
            self._refuse_partial()
            self._set_aside(loaded.data)
        self._vault.write(INDEX, data, loaded.data)
        self._loaded = _Loaded(self._signature(), False, data, index, False)
        self._asked_at = time.monotonic()
        return True

    def _current(self, fresh: bool = False) -> _Loaded:
        """What is in the file now; the parsed index of last time when the file is the same.

        fresh: compare bytes, not only the time stamp.
        """
        with self._loading:
            known = self._loaded
            if known and self._is_trusted(known) and not fresh:
                return known
            now = time.time_ns()
            signature = self._signature()
            if known and signature is not None and known.signature == signature and known.settled and not fresh:
                return known
            settled = signature is not None and now - signature[1] > SETTLED_NS
            data = self._read()
            if known and data is not None and known.data == data and not known.broken:
                loaded = known._replace(signature=signature, settled=settled)
            else:
                loaded = self._parse(signature, settled, data)
            self._loaded = loaded
            self._asked_at = time.monotonic()
            return loaded

    def _is_trusted(self, known: _Loaded) -> bool:
        good = known.data is not None and not known.broken
        return good and time.monotonic() - self._asked_at < self._trust_s

    def _parse(self, signature: Optional[Tuple[int, int]], settled: bool, data: Optional[bytes]) -> _Loaded:
        if data is None:
            return _Loaded(None, False, None, self._rebuild(), False)
        try:
            return _Loaded(signature, settled, data, EntityIndex.from_bytes(data), False)
        except IndexCorrupt as broken:
            return _Loaded(signature, False, data, self._rebuilt(broken), True)

    def _rebuilt(self, broken: IndexCorrupt) -> EntityIndex:
        try:
            return self._rebuild()
        except EchoError as problem:
            raise _stuck(f"{broken.message}; and it cannot be rebuilt now: {problem.message}") from problem

    def _refuse_partial(self) -> None:
        """Raise IndexCorrupt when replacing the broken file now could lose entities."""
        if not self._complete():
            raise _stuck(f"{INDEX} is broken, and some notes cannot be read to rebuild it")

    def _set_aside(self, data: bytes) -> None:
        """Keep the broken bytes in a file of their own before the good index replaces them."""
        base = f"{INDEX}.corrupt-{self._clock.file_stamp()}"
        for number in range(1, 100):
            path = base if number == 1 else f"{base}-{number}"
            try:
                self._vault.write(path, data, None)
                return
            except Conflict:
                if self._vault.read(path) == data:
                    return
        raise IndexCorrupt(f"{base} and its numbered siblings are all taken", path=INDEX)

    def _signature(self) -> Optional[Tuple[int, int]]:
        if self._trust_s:
            return None
        try:
            stat = self._vault.stat(INDEX)
        except NotFound:
            return None
        return stat.size, stat.mtime_ns

    def _read(self) -> Optional[bytes]:
        try:
            return self._vault.read(INDEX)
        except NotFound:
            return None


def _stuck(message: str) -> IndexCorrupt:
    return IndexCorrupt(
        message, hint="Make every folder of the vault readable, then run `echo.py reindex`.", path=INDEX,
    )
