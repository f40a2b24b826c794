"""Whether a file may be created behind the REST API, which knows no create-only write (spec 2.3, 6.1)."""
from __future__ import annotations

import time
from typing import Callable, Optional

from echo_core.errors import InvalidPath, VaultUnreachable
from echo_core.paths import is_inside, is_note
from echo_core.vault.base import version_of
from echo_core.vault.refusals import conflict
from echo_core.vault.rest_paths import Spellings, nfc
from echo_core.vault.rest_scan import RestScan
from echo_core.vault.rest_write import RestWrites

HOLD_S = 2.0
"""How long a creation waits for a note that is known but answers 404: a loading Obsidian answers like that."""
LOCKS = "_agent/locks"
"""Files of our own making: nobody spells them otherwise, and they come and go."""
_PAUSE_S = 0.2


class Claims:
    """Claims on places of one vault. known: whether somebody, such as the entity index, knows a note at a path."""

    def __init__(self, writes: RestWrites, names: Spellings, scan: RestScan) -> None:
        self._writes = writes
        self._names = names
        self._scan = scan
        self.known: Callable[[str], bool] = lambda path: False

    def refuse_taken(self, path: str, now: Optional[bytes], until: float, besides: str = "") -> None:
        """Raise unless a file can be created: the place is free, no other spelling of it is taken, none is hidden."""
        if now is not None:
            raise conflict(path, "is not what you read", version_of(now))
        if is_inside(path, LOCKS):
            return
        found = self._names.matches(path, until)
        if found.below_file:
            raise InvalidPath(f"{path} would lie below a file", field="path")
        if path in map(nfc, found.folders):
            raise conflict(path, "is taken by something that is no readable file")
        others = [name for name in found.files if nfc(name) not in (besides, path)]
        if others:
            raise conflict(path, "exists already in another spelling", "", others)
        listed = path in map(nfc, found.files) and path != besides
        if listed or path in self._scan.notes or (is_note(path) and self.known(path)):
            self._hold(path, until)

    def _hold(self, path: str, until: float) -> None:
        """A 404 is no licence to create what is known: look again for a while, then give up."""
        end = time.monotonic() + min(HOLD_S, (until - time.monotonic()) / 2)
        while time.monotonic() < end:
            now = self._writes.look(path, until)
            if now is not None:
                raise conflict(path, "is not what you read", version_of(now))
            time.sleep(_PAUSE_S)
        raise VaultUnreachable(f"{path} is known, but the vault does not show it; Obsidian may still be loading",
                               hint="Try again in half a minute.", reason="loading", path=path)
