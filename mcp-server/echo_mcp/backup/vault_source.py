"""The vault behind Obsidian's API as what is backed up (spec 6.1, 6.4).

It has no modes and shows no empty folders. Obsidian tells size and time of notes only; other files are compared by
what they hold.
"""
from __future__ import annotations

import io
from collections.abc import Iterable, Iterator

from echo_core.errors import EchoError, NotFound
from echo_core.paths import is_note
from echo_core.vault.rest import RestVault

from echo_mcp.backup.source import UNKNOWN, Found, LeftOut, Reading, Snapshot, Unsaved
from echo_mcp.backup.watch import Watch

BATCH_FILES = 64
BATCH_BYTES = 16 * 1024 * 1024
"""Notes read at a time; files of unknown size are read one by one."""
PAUSE_S = 0.3
TRIES = 5


class VaultSource:
    """The files of `vault`."""

    kind = "rest"
    loading_s = 30.0

    def __init__(self, vault: RestVault) -> None:
        self._vault = vault
        self.left_out: list[LeftOut] = []
        self.unreadable: list[LeftOut] = []

    def close(self) -> None:
        """Let go of the connections."""
        self._vault.close()

    def walk(self) -> Iterator[Found]:
        """Every file in path order. Raises the vault's errors."""
        for stat in self._vault.walk():
            known = is_note(stat.path) and stat.mtime_ns > 0
            yield Found(stat.path, False, stat.size if known else UNKNOWN, stat.mtime_ns if known else UNKNOWN)
        self.left_out = [LeftOut(".obsidian", "hidden, as every name that begins with a dot")]
        self.unreadable = [LeftOut(path, "it cannot be read") for path in self._vault.unreadable()]

    def read(self, files: Iterable[Found], watch: Watch, patient: bool) -> Iterator[Reading]:
        """Notes in batches, files of unknown size one by one."""
        for batch in _batches(files):
            watch.look()
            at_once = self._at_once(batch)
            for found in batch:
                data = at_once.pop(found.path, None)
                if data is None or len(data) != found.size:
                    yield from self._alone(found, watch, patient)
                else:
                    yield found, _snapshot(found, data)

    def _at_once(self, batch: list[Found]) -> dict[str, bytes]:
        """The bytes of a batch by path, nothing when there is trouble with one of them."""
        if len(batch) == 1:
            return {}
        try:
            return dict(self._vault.read_many([found.path for found in batch]))
        except EchoError:
            return {}

    def _alone(self, found: Found, watch: Watch, patient: bool) -> Iterator[Reading]:
        """One file; a note is read until it is as long as the vault says or two readings agree.

        One that never rests is taken as it was read last: the vault answers a note in one piece, and a backup without
        a note that is written to all night would never be a good one.
        """
        before = b""
        for attempt in range(TRIES if patient else 2):
            if attempt:
                watch.pause(PAUSE_S)
            try:
                data = self._vault.read(found.path)
            except NotFound:
                if not self._vault.is_gone(found.path):
                    yield found, Unsaved("the vault does not show it now")
                return
            except EchoError as failure:
                self._vault.check()
                yield found, Unsaved(f"the vault cannot read it ({failure.data.get('reason') or failure.code})")
                return
            if found.size in (UNKNOWN, len(data)) or (attempt and data == before):
                yield found, _snapshot(found, data)
                return
            before = data
        if patient and before:
            yield found, _snapshot(found, before)
        else:
            yield found, Unsaved("it changes all the time", busy=True)


def _snapshot(found: Found, data: bytes) -> Snapshot:
    return Snapshot(io.BytesIO(data), len(data), found.mtime_ns, UNKNOWN)


def _batches(files: Iterable[Found]) -> Iterator[list[Found]]:
    """Files of known size together as long as they are few and small."""
    batch: list[Found] = []
    size = 0
    for found in files:
        if found.size == UNKNOWN:
            yield [found]
            continue
        if batch and (len(batch) == BATCH_FILES or size + found.size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(found)
        size += found.size
    if batch:
        yield batch
