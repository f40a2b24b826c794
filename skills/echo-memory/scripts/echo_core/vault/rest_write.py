"""One PUT or DELETE over the REST API, and finding out what became of it (spec 6.1)."""
from __future__ import annotations

import threading
import time
from typing import Dict, Optional, Tuple

from echo_core.errors import EchoError, VaultBadResponse, VaultUnreachable
from echo_core.vault.base import version_of
from echo_core.vault.refusals import overtaken
from echo_core.vault.rest_client import RestClient
from echo_core.vault.rest_landing import Landing, body_of, landing
from echo_core.vault.rest_paths import Spellings

FRESH_S = 0.25
"""A look this young, with no own write since, is the compare of a write."""
GRACE_S = 0.8
"""Time beyond the deadline for finding out what became of a PUT."""
_NOT_SENT = frozenset({"refused", "dns", "network"})


class RestWrites:
    """Looks and writes of one vault; callers hold its turn while they write. Thread-safe."""

    def __init__(self, client: RestClient, names: Spellings) -> None:
        self._client = client
        self._names = names
        self._lock = threading.Lock()
        self._seen: Dict[str, Tuple[Optional[bytes], float]] = {}
        self.lost_marks = 0
        """How many byte order marks the plugin has stripped from notes we wrote."""

    def look(self, path: str, until: float) -> Optional[bytes]:
        """What the vault holds at exactly `path` now, None when there is no such file."""
        found = self._client.file(self._names.spelled(path), until)
        self._remember(path, found)
        return found

    def compared(self, path: str, until: float) -> Optional[bytes]:
        """Like `look`; a look that is only a moment old serves."""
        with self._lock:
            data, at = self._seen.get(path, (None, 0.0))
        return data if time.monotonic() - at < FRESH_S else self.look(path, until)

    def replace(self, path: str, data: bytes, before: Optional[bytes], until: float) -> None:
        """PUT `data` over what was just compared to be `before`, and return when it is there.

        Raises Overtaken when somebody else's bytes without our edit stand there, VaultBadResponse with reason
        "phantom" when the vault accepted and dropped it, and the failure of the PUT when it had no effect.
        """
        name, body = self._names.spelled(path), body_of(data)
        for attempt in range(2):
            failure = self._put(name, body, until, fresh=attempt > 0)
            now = self._after(path, until, failure)
            outcome = landing(before, data, now)
            if outcome in (Landing.OURS, Landing.BARE):
                self.lost_marks += outcome is Landing.BARE
                return
            if outcome is Landing.THEIRS:
                raise overtaken(path, version_of(now) if now else "")
            if outcome is Landing.DOUBLED:
                before, body = now, data  # this plugin strips no mark
            elif failure is None:
                raise VaultBadResponse(f"The vault accepted {path} and did not keep it", reason="phantom", path=path)
            elif attempt or failure.data.get("reason") == "timeout" or not isinstance(failure, VaultUnreachable):
                raise failure

    def remove(self, path: str, until: float) -> None:
        """DELETE what was just compared, and return when it is gone."""
        name = self._names.spelled(path)
        try:
            self._client.remove(name, until)
        except (VaultUnreachable, VaultBadResponse) as failure:
            if self._after(path, until, failure) is not None:
                raise failure from None
        self._remember(path, None)

    def _put(self, name: str, body: bytes, until: float, fresh: bool) -> Optional[EchoError]:
        """Send a PUT; the failure after which it may have had its effect, None when all seems well."""
        try:
            self._client.put(name, body, until, fresh)
        except (VaultUnreachable, VaultBadResponse) as failure:
            reason = str(failure.data.get("reason"))
            if reason in _NOT_SENT or reason.startswith("http-4"):
                raise
            return failure
        return None

    def _after(self, path: str, until: float, failure: Optional[EchoError]) -> Optional[bytes]:
        """What stands at `path` after a request; when nobody can tell, the request's own failure is raised."""
        try:
            return self.look(path, max(until, time.monotonic() + GRACE_S))
        except EchoError:
            if failure is not None:
                raise failure from None
            raise

    def _remember(self, path: str, data: Optional[bytes]) -> None:
        now = time.monotonic()
        with self._lock:
            for old in [old for old, (_, at) in self._seen.items() if now - at >= FRESH_S]:
                del self._seen[old]
            self._seen[path] = (data, now)
