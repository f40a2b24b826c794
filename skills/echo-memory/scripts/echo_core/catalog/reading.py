"""Reading notes for the catalog so that a bad one degrades alone: named, kept findable, and tried again later."""
from __future__ import annotations

import dataclasses
import threading
import time
from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

from echo_core.catalog.names import file_stem
from echo_core.catalog.note import NoteFacts, facts
from echo_core.catalog.notebytes import decode
from echo_core.errors import EchoError, NotFound, VaultError
from echo_core.vault.base import Stat, Vault, version_of

MAX_BYTES = 64 * 1024 * 1024
"""A larger note is known by its file name only."""

FIRST_WAIT_S = 5.0
LONGEST_WAIT_S = 600.0


class Reading(NamedTuple):
    """What one read of a note gave. text: "" when failed. failed: the vault did not give the bytes."""

    facts: NoteFacts
    text: str
    version: str
    failed: bool


class Reader:
    """Reads and parses; remembers which notes make trouble and when to try them again."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._lock = threading.Lock()
        self._problems: Dict[str, str] = {}
        self._waits: Dict[str, Tuple[float, float]] = {}

    def problems(self) -> Dict[str, str]:
        """Path -> reason, of each note that could not be read or parsed the last time."""
        with self._lock:
            return dict(self._problems)

    def may_try(self, path: str, now: float) -> bool:
        """Whether a note that failed has waited long enough; now: monotonic seconds."""
        return self._waits.get(path, (0.0, 0.0))[0] <= now

    def forget(self, paths: Sequence[str]) -> None:
        """Drop what is remembered of notes that are no longer there."""
        with self._lock:
            for path in paths:
                self._problems.pop(path, None)
                self._waits.pop(path, None)

    def read(self, batch: Sequence[Stat]) -> Iterator[Tuple[Stat, Reading]]:
        """Each note of `batch` that is still there. Raises when the vault as a whole cannot be read."""
        wanted = {stat.path: stat for stat in batch if stat.size <= MAX_BYTES}
        for stat in batch:
            if stat.size > MAX_BYTES:
                yield stat, self._nameless(stat.path, f"larger than {MAX_BYTES // 1024 ** 2} MiB")
        try:
            for path, data in self._vault.read_many(list(wanted)):
                yield wanted.pop(path), self.parse(path, data)
            return
        except EchoError:
            self._vault.check()
        yield from self._read_each(list(wanted.values()))

    def _read_each(self, stats: List[Stat]) -> Iterator[Tuple[Stat, Reading]]:
        """One by one, after one of them made the quick way fail."""
        for stat in stats:
            try:
                yield stat, self.parse(stat.path, self._vault.read(stat.path))
            except NotFound:
                continue
            except EchoError as problem:
                if isinstance(problem, VaultError):
                    self._vault.check()
                self._put_off(stat.path)
                yield stat, self._nameless(stat.path, problem.message)

    def parse(self, path: str, data: bytes) -> Reading:
        """The facts of these bytes. Never raises: what the parser cannot do leaves the file name as the title."""
        text, valid = decode(data)
        version = version_of(data)
        try:
            found = facts(path, text)
        except Exception as problem:  # whatever is wrong with one note must not hide all the others
            bare = self._nameless(path, f"cannot be parsed: {type(problem).__name__}")
            return Reading(dataclasses.replace(bare.facts, valid_utf8=valid), text, version, False)
        with self._lock:
            self._problems.pop(path, None)
            self._waits.pop(path, None)
        return Reading(found if valid else dataclasses.replace(found, valid_utf8=False), text, version, False)

    def _nameless(self, path: str, reason: str) -> Reading:
        """A note of which only the file name is known."""
        with self._lock:
            self._problems[path] = reason
        return Reading(NoteFacts(path=path, title=file_stem(path)), "", "", True)

    def _put_off(self, path: str) -> None:
        with self._lock:
            last = self._waits.get(path, (0.0, FIRST_WAIT_S / 2))[1]
            wait = min(LONGEST_WAIT_S, last * 2)
            self._waits[path] = (time.monotonic() + wait, wait)
