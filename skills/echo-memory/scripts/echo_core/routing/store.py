"""The route map on its vault, read again when it may have changed (spec 2.5)."""
from __future__ import annotations

import time
from typing import Optional

from echo_core.errors import NotFound
from echo_core.kinds import ROUTES
from echo_core.routing import RouteMap
from echo_core.vault.base import Vault


class RouteStore:
    """trust_s: how long a map that was read counts as the current one; 0 reads the file each time."""

    def __init__(self, vault: Vault, trust_s: float = 0.0) -> None:
        self._vault = vault
        self._trust_s = trust_s
        self._loaded: Optional[RouteMap] = None
        self._read_at = 0.0

    def load(self) -> RouteMap:
        """The vault's route map, or the default one. Raises InvalidArgument when the file is broken."""
        known = self._loaded
        if known is not None and time.monotonic() - self._read_at < self._trust_s:
            return known
        try:
            found = RouteMap.load(self._vault.read(ROUTES))
        except NotFound:
            found = RouteMap.load(None)
        self._loaded, self._read_at = found, time.monotonic()
        return found
