"""What the operator should hear of: a vault that stays away, writes that wait, old backups, new findings (4.2)."""
from __future__ import annotations

import time

from echo_core.text import plural

from echo_mcp.alerts import Alerts
from echo_mcp.backup.standing import FRESH_S
from echo_mcp.health import Health
from echo_mcp.jobs import Repeated
from echo_mcp.runs import Runs

LOOK_S = 15.0
HOUR_S = 3600.0
_FINDINGS = "findings-told"


class Concerns:
    """outbox_h, down_h: hours until a waiting write, and a vault that cannot be reached, are worth a message."""

    def __init__(self, health: Health, alerts: Alerts, runs: Runs, outbox_h: float, down_h: float) -> None:
        self._health = health
        self._alerts = alerts
        self._runs = runs
        self._outbox_s = outbox_h * HOUR_S
        self._down_s = down_h * HOUR_S
        self._down_since: float | None = None
        self._known: dict[str, bool] = {}
        self.thread = Repeated("concerns", self.look, LOOK_S)

    def look(self) -> None:
        """Compare the facts with the limits. Raises StorageFailed."""
        health, outbox = self._health, self._health.outbox
        now = time.monotonic()
        self._down_since = None if health.vault_reachable else self._down_since or now
        down = self._down_since is not None and now - self._down_since >= self._down_s
        self._say("vault-down", down, f"the vault has not been reachable for {_hours(self._down_s)}.",
                  "the vault can be reached again.")
        self._say("outbox", outbox["outbox_depth"] > 0 and outbox["outbox_oldest_s"] >= self._outbox_s,
                  f"writes have been waiting for the vault for {_hours(self._outbox_s)}; none is lost. "
                  "`echo-mcp queue` lists them.", "no write has been waiting for long any more.")
        self._say("parked", outbox["parked"] > 0, "a write needs your decision: `echo-mcp queue` lists it.",
                  "no write needs a decision any more.")
        # Not left to the nightly run itself, which may be what hangs.
        self._say("backup-old", health.backups.backup_age.seconds > FRESH_S,
                  f"there has been no good backup for more than {_hours(FRESH_S)}.", "there is a fresh backup again.")
        if health.findings is not None:
            self._findings(health.findings)

    def _say(self, name: str, wrong: bool, text: str, over: str) -> None:
        """Tell the alerts when it changes, and once after the start, since a former process may have set it."""
        if self._known.get(name) != wrong:
            if wrong:
                self._alerts.set(name, text)
            else:
                self._alerts.clear(name, over)
            self._known[name] = wrong

    def _findings(self, count: int) -> None:
        """New findings are told once; the first count ever is where it begins."""
        told = self._runs.fact(_FINDINGS)
        if told == count:
            return
        if told is not None and count > told:
            self._alerts.once("findings", f"the check of the notes finds {plural(count, 'thing')} to look at, "
                              f"{count - told} more than before; `echo_health` with `deep` lists them.")
        self._runs.keep(_FINDINGS, count)


def _hours(seconds: float) -> str:
    return plural(max(1, round(seconds / HOUR_S)), "hour")
