"""What is wrong now, told once to the webhook and again when it is over, whatever is restarted in between (spec 4.2).

Conditions are kept in the table of runs until they have been told, so a receiver that is down hears of them later.
"""
from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

from echo_core.clock import Clock
from echo_core.errors import EchoError

from echo_mcp import logs
from echo_mcp.notify import NotTold, Webhook
from echo_mcp.runs import Runs

FIRST_RETRY_S, LONGEST_RETRY_S = 15.0, 900.0
_PREFIX = "alert:"
_BEAT = "alert-beat"


class Alerts:
    """Conditions by name. webhook: None keeps and shows them without telling anybody. Thread-safe."""

    def __init__(self, runs: Runs, clock: Clock, webhook: Webhook | None) -> None:
        self._runs = runs
        self._clock = clock
        self._webhook = webhook
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._tell_all, name="alerts", daemon=True)

    def start(self) -> None:
        """Begin to tell."""
        if self._webhook is not None:
            self._thread.start()

    def stop(self) -> None:
        """Tell no more; what has not been told is told after the next start."""
        self._ended.set()
        self._wake.set()

    def ended(self, patience_s: float) -> None:
        """Wait for a message that is under way to be noted as told, at most `patience_s` seconds."""
        if self._thread.is_alive():
            self._thread.join(patience_s)

    def set(self, name: str, text: str) -> None:
        """Something is wrong: `text` says what to a person. Told once, and again when the text changes."""
        with self._lock:
            known = self._runs.fact(_PREFIX + name)
            if known is None or known["over"] or known["text"] != text:
                since = self._clock.instant() if known is None or known["over"] else known["since"]
                self._keep(name, {"text": text, "since": since, "told": False, "over": False})

    def clear(self, name: str, text: str) -> None:
        """It is over, as `text` says; nobody hears of the end who has not heard of the beginning."""
        with self._lock:
            known = self._runs.fact(_PREFIX + name)
            if known is not None and not known["over"]:
                heard = known["told"] and self._webhook is not None
                self._keep(name, {**known, "text": text, "told": False, "over": True} if heard else None)

    def once(self, name: str, text: str) -> None:
        """Something to look at that is no lasting condition: told and forgotten."""
        if self._webhook is not None:
            with self._lock:
                self._keep(name, {"text": text, "since": self._clock.instant(), "told": False, "over": True,
                                  "title": "ECHO found something"})

    def beat(self, text: str) -> None:
        """All is well, for a monitor that misses such messages when they stop."""
        if self._webhook is not None and self._webhook.is_monitor:
            self._runs.keep(_BEAT, text)
            self._wake.set()

    def open(self) -> list[dict[str, str]]:
        """What is wrong now: `{"name", "since", "text"}`, the oldest first."""
        rows = self._runs.facts(_PREFIX)
        found = [{"name": name, "since": row["since"], "text": row["text"]}
                 for name, row in rows.items() if not row["over"]]
        return sorted(found, key=lambda row: row["since"])

    def _keep(self, name: str, row: Mapping[str, Any] | None) -> None:
        self._runs.keep(_PREFIX + name, row)
        self._wake.set()

    def _tell_all(self) -> None:
        pause = FIRST_RETRY_S
        while not self._ended.is_set():
            self._wake.clear()
            try:
                done = self._round()
            except EchoError as failure:
                logs.event("alerts-failed", logging.WARNING, code=failure.code)
                done = False
            pause = FIRST_RETRY_S if done else min(2 * pause, LONGEST_RETRY_S)
            if done:
                self._wake.wait()
            else:
                self._ended.wait(pause)

    def _round(self) -> bool:
        """Tell what has not been told; whether all of it has arrived."""
        rows = self._runs.facts(_PREFIX)
        well = all(row["over"] for row in rows.values())
        for name, row in rows.items():
            if not row["told"] and not self._told(name, row, well):
                return False
        beat = self._runs.fact(_BEAT)
        if beat is not None and well and self._sent("beat", "ECHO", beat, True):
            self._runs.keep(_BEAT, None)
        return True

    def _told(self, name: str, row: Mapping[str, Any], well: bool) -> bool:
        title = row.get("title") or ("ECHO: that is over" if row["over"] else "ECHO needs you")
        if not self._sent(name, title, row["text"], well if self._is_monitor() else row["over"]):
            return False
        with self._lock:
            if self._runs.fact(_PREFIX + name) == row:  # else it has changed meanwhile and is told again
                self._runs.keep(_PREFIX + name, None if row["over"] else {**row, "told": True})
        return True

    def _is_monitor(self) -> bool:
        return self._webhook is not None and self._webhook.is_monitor

    def _sent(self, event: str, title: str, text: str, well: bool) -> bool:
        if self._webhook is None or self._ended.is_set():
            return False
        try:
            self._webhook.send(event, title, f"ECHO: {text}", well)
        except NotTold as failure:
            logs.event("notify-failed", logging.WARNING, reason=str(failure))
            return False
        logs.event("notified", about=event)
        return True
