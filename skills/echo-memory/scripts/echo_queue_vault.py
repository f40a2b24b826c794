"""A vault whose first write of an op waits until the outbox holds the op (spec 6.2).

Reading is free: an op that refuses, meets a gate or finds nothing to do leaves no trace in the outbox.
"""
from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import Dict, Iterator, Optional

from echo_core.errors import (
    Conflict,
    InvalidPath,
    MalformedNote,
    NotFound,
    NotKept,
    VaultAuth,
    VaultBadResponse,
    VaultUnreachable,
)
from echo_core.paths import is_control
from echo_core.vault.base import Vault, version_of
from echo_core.vault.forwarding import ForwardingVault
from echo_core.vault.os_errors import DISK_FULL
from echo_queue import Outbox
from echo_queue_rows import First, digest

_NOTHING_WRITTEN = (Conflict, InvalidPath, MalformedNote, NotFound, VaultAuth)


class OutboxVault(ForwardingVault):
    """Forwards to `inner`. Control files (locks, the derived index) are no part of an op: they can be made anew."""

    def __init__(self, inner: Vault, outbox: Outbox) -> None:
        super().__init__(inner)
        self._outbox = outbox

    def write(self, path: str, data: bytes, expected: Optional[bytes]) -> None:
        with self._step({path: version_of(data)}, First(path, digest(expected), digest(data))):
            try:
                self._inner.write(path, data, expected)
            except VaultUnreachable as failure:
                if failure.data.get("reason") != DISK_FULL or not self._outbox.reserve.helps(len(data)):
                    raise
                if not self._holds(path, data):  # the disk may have refused only the sync that follows a write
                    self._inner.write(path, data, expected)

    def _holds(self, path: str, data: bytes) -> bool:
        try:
            return self._inner.read(path) == data
        except NotFound:
            return False

    def delete(self, path: str, expected: bytes) -> None:
        with self._step({path: ""}, First(path, digest(expected), "")):
            self._inner.delete(path, expected)

    def move(self, source: str, target: str) -> None:
        with self.exclusive(source, target):
            data = self._inner.read(source)
            with self._step({source: "", target: version_of(data)}, First(source, digest(data), "")):
                self._inner.move(source, target)

    @contextmanager
    def _step(self, leaves: Dict[str, str], first: First) -> Iterator[None]:
        """One write of the op of this thread. Raises NotKept, and nothing is written, when the outbox is full."""
        op = self._outbox.current
        if op is None or is_control(first.path):
            yield
            return
        if not op.writes:
            try:
                self._outbox.begin(op, first)
            except (OSError, sqlite3.Error) as full:
                raise NotKept(
                    f"the write could not be kept in the outbox ({type(full).__name__}), so nothing was changed",
                    hint="Free space in the state folder, or make it writable, and call again.",
                ) from full
        try:
            yield
        except _NOTHING_WRITTEN:
            raise
        except VaultBadResponse as refused:
            op.writes += not str(refused.data.get("reason")).startswith("http-4")  # with those nothing was taken
            raise
        except BaseException:
            op.writes += 1  # who knows
            raise
        op.writes += 1
        op.targets.update(leaves)
