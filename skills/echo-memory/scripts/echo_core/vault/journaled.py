"""A vault that keeps what it replaces: no replacement without a version to go back to (spec 6.3)."""
from __future__ import annotations

from typing import Dict, List, Optional

from echo_core.errors import Conflict, InvalidPath, NotFound, NoUndo, Overtaken, VaultAuth
from echo_core.history import HistoryStore
from echo_core.paths import is_control
from echo_core.vault.base import Vault
from echo_core.vault.forwarding import ForwardingVault

# After these the write surely did not happen, an Overtaken aside; after others (a timeout, say) it may have, and its
# version stays.
_NOTHING_WRITTEN = (Conflict, InvalidPath, NotFound, VaultAuth)


class JournaledVault(ForwardingVault):
    """Forwards to `inner`; versions of what is about to go are in `history` before it goes.

    Control files (locks, the derived index) have no history. When no version can be kept, what loses bytes is refused
    with NoUndo; what only adds (a creation, an append, a move) goes on, and `describe` counts it.
    """

    def __init__(self, inner: Vault, history: HistoryStore) -> None:
        super().__init__(inner)
        self._history = history
        self._unkept = 0

    def write(self, path: str, data: bytes, expected: Optional[bytes]) -> None:
        kept = self._keep(path, expected, data)
        try:
            self._inner.write(path, data, expected)
        except _NOTHING_WRITTEN as failure:
            if not isinstance(failure, Overtaken):
                self._withdraw(kept)
            raise

    def delete(self, path: str, expected: bytes) -> None:
        kept = self._keep(path, expected, None)
        try:
            self._inner.delete(path, expected)
        except _NOTHING_WRITTEN:
            self._withdraw(kept)
            raise

    def move(self, source: str, target: str) -> None:
        with self.exclusive(source, target):
            kept: List[str] = []
            try:
                kept = self._history.moved(source, target, self._inner.read(source), *self._context())
            except NoUndo:
                self._unkept += 1
            try:
                self._inner.move(source, target)
            except _NOTHING_WRITTEN:
                self._withdraw(kept)
                raise

    def _keep(self, path: str, before: Optional[bytes], after: Optional[bytes]) -> List[str]:
        """Ids of the versions that were kept for a write; NoUndo when one is needed and cannot be."""
        if is_control(path):
            return []
        try:
            return [self._history.record(path, before, *self._context(), after=after)]
        except NoUndo:
            if before is None or (after is not None and after.startswith(before)):
                self._unkept += 1
                return []
            raise

    def _withdraw(self, kept: List[str]) -> None:
        try:
            if kept:
                self._history.withdraw(kept)
        except NoUndo:
            # A version too many is harmless; the caller must hear why the write failed.
            self._unkept += 1

    def describe(self) -> Dict[str, object]:
        facts = dict(self._inner.describe())
        facts["history_gaps"] = self._unkept
        facts["history_problems"] = self._history.problems()
        return facts
