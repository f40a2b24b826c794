"""A vault whose writes are put on watch: they are looked at again a moment after they were acknowledged (spec 6.1)."""
from __future__ import annotations

import time
from typing import Optional

from echo_core.kinds import INDEX
from echo_core.paths import is_control, is_note
from echo_core.settle.watch import Watch
from echo_core.vault.base import Vault
from echo_core.vault.forwarding import ForwardingVault


class SettledVault(ForwardingVault):
    """Forwards to `inner`; what was written to a note or to the entity index is put on `watch`."""

    def __init__(self, inner: Vault, watch: Watch) -> None:
        super().__init__(inner)
        self._watch = watch

    def write(self, path: str, data: bytes, expected: Optional[bytes]) -> None:
        began = time.monotonic()
        self._inner.write(path, data, expected)
        if path == INDEX or (is_note(path) and not is_control(path)):
            self._watch.wrote(path, expected, data, self._context(), time.monotonic() - began)

    def delete(self, path: str, expected: bytes) -> None:
        self._inner.delete(path, expected)
        self._watch.release(path, self._watch.take(path))

    def move(self, source: str, target: str) -> None:
        self._inner.move(source, target)
        self._watch.release(source, self._watch.take(source))
