"""What `/health` and `/metrics` say: facts in memory that background threads keep up to date (spec 4.3).

`ok` is about this process and its disk. A vault that is down does not make it false, so no supervisor restarts a
server that still has work it can do.
"""
from __future__ import annotations

import threading
import time
from typing import Any

from echo_core.errors import EchoError, VaultAuth
from echo_core.vault.reach import Reach

from echo_mcp.backup.standing import Standing
from echo_mcp.runs import Run

PROBE_S = 5.0
"""Seconds between two probes of the vault."""
PROBE_PATIENCE_S = 8.0
"""A probe that has not come back after this many seconds counts as unreachable."""


class Health:
    """The facts. All methods return at once and may be called from any thread.

    reach: what the calls find out about the vault between two probes.
    """

    def __init__(self, reach: Reach | None = None) -> None:
        self._reach = reach or Reach()
        self._lock = threading.Lock()
        self._serving = False
        self._disk_ok = True
        self._reachable = False
        self._auth_ok = True
        self._probing_since: float | None = None
        self._refreshed: float | None = None
        self._findings: int | None = None
        self._waiting = self._parked = 0
        self._oldest: float | None = None
        self.backups = Standing()
        self.runs: list[Run] = []
        """The newest run of each job, as far as has been looked."""

    def serve(self, serving: bool) -> None:
        """Requests are served from now on, or no longer."""
        self._serving = serving

    def probe_begins(self) -> None:
        """The vault is being asked."""
        self._probing_since = time.monotonic()

    def probed(self, failure: EchoError | None, disk_ok: bool) -> None:
        """The vault has answered, or failed with `failure`; disk_ok: whether the state folder can be written."""
        with self._lock:
            self._probing_since = None
            self._disk_ok = disk_ok
            self._auth_ok = not isinstance(failure, VaultAuth) or failure.data.get("reason") == "key"
            self._reachable = failure is None or isinstance(failure, VaultAuth)

    def refreshed(self) -> None:
        """Catalog and search index have just been brought up to the vault."""
        self._refreshed = time.monotonic()

    def found(self, findings: int) -> None:
        """Number of findings of the last check of the notes."""
        self._findings = findings

    def queued(self, waiting: int, parked: int, oldest_s: float) -> None:
        """Writes that wait for the vault, those that need a decision, and the age of the oldest waiting one."""
        with self._lock:
            self._waiting, self._parked = waiting, parked
            self._oldest = time.monotonic() - oldest_s if waiting else None

    @property
    def outbox(self) -> dict[str, int]:
        """`outbox_depth`, `outbox_oldest_s` (0 when empty) and `parked`."""
        with self._lock:
            age = 0 if self._oldest is None else max(0, int(time.monotonic() - self._oldest))
            return {"outbox_depth": self._waiting, "outbox_oldest_s": age, "parked": self._parked}

    @property
    def findings(self) -> int | None:
        """Number of findings of the last check of the notes, None before the first."""
        return self._findings

    @property
    def index_ready(self) -> bool:
        """Whether the notes have been read once."""
        return self._refreshed is not None

    @property
    def index_age_s(self) -> int:
        """Whole seconds since the notes were last compared with the vault; 0 before the first time."""
        return 0 if self._refreshed is None else int(time.monotonic() - self._refreshed)

    @property
    def vault_reachable(self) -> bool:
        """Whether the last probe and the last call were answered and no probe has hung since."""
        since = self._probing_since
        answers = self._reachable and self._reach.away() is None
        return answers and (since is None or time.monotonic() - since < PROBE_PATIENCE_S)

    @property
    def vault_silent(self) -> bool:
        """Whether somebody waits for the vault in vain."""
        return self._reach.silent()

    def snapshot(self) -> tuple[int, dict[str, Any]]:
        """(HTTP status, body): 200 while serving, 503 while starting or stopping."""
        facts = {
            "ok": self._serving and self._disk_ok and self.backups.restorable,
            "vault_reachable": self.vault_reachable,
            "vault_auth_ok": self._auth_ok and not self._reach.key_refused,
            **self.outbox,
            "index_age_s": self.index_age_s,
            "index_ready": self.index_ready,
            **self.backups.facts(),
            "findings": self._findings or 0,
        }
        return (200 if self._serving else 503), facts
