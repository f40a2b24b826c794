"""Work behind the server: probe the vault, keep catalog and search index in step with it (spec 5.5).

A walk every `ECHO_MCP_INDEX_TTL` seconds is the floor; where the vault is a folder, a watcher tells at once what
changes (on a container's bind mount or a network share it may never tell, hence the floor).
"""
from __future__ import annotations

import contextlib
import gc
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable

import echo_replay
import watchfiles
from echo_context import OpContext
from echo_core.errors import EchoError, VaultAuth, VaultUnreachable
from echo_core.state.reserve import Reserve
from echo_edits import index_notes

from echo_mcp import logs
from echo_mcp.health import PROBE_S, Health

AWAY_S = 1.0
"""Seconds between two probes of a vault that is away: calls and waiting writes go on soon after it is back."""
KEY_S = 30.0
"""Seconds between two probes of a vault that refuses the key: more would look like an attack."""
LINT_S = 600.0
"""Seconds between two countings of findings, when the notes have changed."""
BREATH = 4.0
"""Rest after a run, in multiples of the processor time it took, so that a busy folder does not take a core."""
WATCH_RETRY_S = 30.0
WAIT_STEP_S = 0.25
"""How soon a call that waits for the first reading notices a vault that does not answer."""
FLUSH_S = 5.0
"""Seconds between two looks at the waiting writes."""
TELL_S = 1.0
"""How often health hears how many writes still wait while they are replayed."""
FREE_BYTES = 1024 * 1024
"""The state folder counts as full below this."""


class Repeated(threading.Thread):
    """A daemon that runs `work` every `period_s` seconds, and sooner when `wake` is called. Starts with a run.

    `work` may set `period_s` anew.
    """

    def __init__(self, name: str, work: Callable[[], None], period_s: float) -> None:
        super().__init__(name=name, daemon=True)
        self._work = work
        self.period_s = period_s
        self._woken = threading.Event()
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.is_set():
            self._woken.clear()
            started = time.thread_time()
            try:
                self._work()
            except Exception as failure:
                logs.LOGGER.error("job-failed", exc_info=failure, extra={"fields": {"job": self.name}})
            rest = min(BREATH * (time.thread_time() - started), self.period_s)
            if not self._ended.wait(rest):
                self._woken.wait(self.period_s - rest)

    def wake(self) -> None:
        """Run again soon."""
        self._woken.set()

    def stop(self) -> None:
        """Run no more; a run that is under way ends by itself."""
        self._ended.set()
        self._woken.set()


class _Reading:
    """One try to bring the catalog up to the vault. failure: how it ended, None when it went well."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.failure: EchoError | None = None

    def end(self, failure: EchoError | None = None) -> None:
        """Let those go on who wait for it."""
        self.failure = failure
        self.ended.set()


class Refresher:
    """Keeps what is derived from the notes fresh, so that calls need not walk the vault.

    refresh: brings the catalog up to the vault and says whether anything changed. index: brings the search index up
    to the catalog. Both raise the vault's errors. count: number of findings. warm: makes, once all notes can be found,
    what the first call of each kind would have to make.
    """

    def __init__(
        self, refresh: Callable[[], bool], index: Callable[[], None], count: Callable[[], int], health: Health,
        ttl_s: float, warm: Callable[[], None] = lambda: None,
    ) -> None:
        self._refresh = refresh
        self._warm = warm
        self._index = index
        self._count = count
        self._health = health
        self._lock = threading.Lock()
        self._reading = _Reading()
        self._counted = 0.0
        self._changed = True
        self.thread = Repeated("refresh", self._run, ttl_s)

    def wait(self, timeout_s: float) -> None:
        """Return once the notes have been read for the first time; later return at once, whatever the vault does.

        timeout_s: how long to wait, 0 to return while they are being read. Raises VaultUnreachable when it takes
        longer or the vault does not answer, and the vault's error when they could never be read.
        """
        if self._health.index_ready:
            return
        reading = self.retry() if timeout_s else self._reading  # an old failure says nothing about a vault of now
        end = time.monotonic() + timeout_s
        while not reading.ended.wait(min(WAIT_STEP_S, max(0.0, end - time.monotonic()))):
            if self._health.vault_silent:
                raise VaultUnreachable("the vault does not answer", hint="Is Obsidian running?", reason="timeout")
            if time.monotonic() < end:
                continue
            if not timeout_s:
                return
            raise VaultUnreachable(
                "the notes are still being read for the first time", hint="Try again in a few seconds.",
                reason="starting",
            )
        if reading.failure is not None:
            raise reading.failure.with_traceback(None)

    def retry(self) -> _Reading:
        """Read the notes now if the last try failed; returns the try that is under way, or that went well."""
        with self._lock:
            if self._reading.failure is not None:
                self._reading = _Reading()
                self.thread.wake()
            return self._reading

    def _begin(self) -> _Reading:
        """The try that a run is now; a waiter may have asked for it already."""
        with self._lock:
            if self._reading.ended.is_set():
                self._reading = _Reading()
            return self._reading

    def _run(self) -> None:
        reading = self._begin()
        try:
            self._changed = self._refresh() or self._changed
            reading.end()  # calls go on from here; recall says how much it can search already
            self._index()
        except EchoError as failure:
            reading.end(failure)
            logs.event("refresh-failed", logging.WARNING, code=failure.code)
            return
        first = not self._health.index_ready
        self._health.refreshed()
        if first:
            logs.event("index-ready")
            with contextlib.suppress(EchoError):  # the call that needs it says what is wrong
                self._warm()
            gc.freeze()  # what is known of the notes stays: going through all of it stops every call for 0.1 s
        if self._changed and (not self._counted or time.monotonic() - self._counted > LINT_S):
            self._counted, self._changed = time.monotonic(), False
            with contextlib.suppress(EchoError):  # a broken route map has its own row in echo_health
                self._health.found(self._count())


def probe(check: Callable[[], None], state_dir: str, health: Health, answered: Callable[[], None]) -> Repeated:
    """The daemon that asks the vault whether it answers, and looks at the state folder and its reserve.

    It asks once each PROBE_S, a vault that is away each AWAY_S, one that refuses the key each KEY_S. check: raises the
    vault's errors. answered: called after each probe that went well.
    """
    trouble = ""
    reserve = Reserve(state_dir)

    def once() -> None:
        nonlocal trouble
        reserve.fill()
        health.probe_begins()
        failure: EchoError | None = None
        try:
            check()
        except EchoError as error:
            failure = error
        health.probed(failure, disk_usable(state_dir))
        before, trouble = trouble, "" if failure is None else failure.code
        job.period_s = {"": PROBE_S, VaultAuth.code: KEY_S}.get(trouble, AWAY_S)
        if trouble and trouble != before:
            logs.event("vault-away", logging.WARNING, code=trouble)
        if failure is None:
            if before:
                logs.event("vault-back")
            answered()

    job = Repeated("probe", once, PROBE_S)
    return job


def flusher(ctx: OpContext, health: Health) -> Repeated:
    """The daemon that replays waiting writes and enters what waits for the index.

    Once each FLUSH_S, and when the vault has just answered.
    """

    def once() -> None:
        if ctx.index.pending:  # their entries met a held lock
            with contextlib.suppress(EchoError):
                index_notes(ctx, [])
        outbox = ctx.outbox
        if outbox is None:
            return
        going_on = True
        while going_on:
            going_on = flushed()
            depth = outbox.depth()
            health.queued(depth.waiting, depth.parked, depth.oldest_s)

    def flushed() -> bool:
        """Replay for a while; whether it helped and there is more to do."""
        try:
            done = echo_replay.flush(ctx, TELL_S)  # asks the file: `echo-mcp queue retry` is another process
        except (EchoError, OSError, sqlite3.Error) as failure:
            logs.event("flush-failed", logging.WARNING, exception=type(failure).__name__)
            return False
        if done.arrived or done.parked:
            logs.event("flushed", arrived=len(done.arrived), parked=len(done.parked), left=done.left)
        return bool(done.left and (done.arrived or done.parked))

    return Repeated("flush", once, FLUSH_S)


def disk_usable(folder: str) -> bool:
    """Whether `folder` is there, writable and not full."""
    try:
        free = os.statvfs(folder) if hasattr(os, "statvfs") else None
    except OSError:
        return False
    return os.access(folder, os.W_OK) and (free is None or free.f_bavail * free.f_frsize >= FREE_BYTES)


def watch(folder: str, on_change: Callable[[list[str]], None], stop: threading.Event) -> None:
    """Start a daemon that calls `on_change` with the changed paths below `folder`, relative and "/"-separated.

    Where watching fails (no such folder, no watches left) it tries again every WATCH_RETRY_S; the walk is the floor.
    """

    def visible(_: watchfiles.Change, path: str) -> bool:
        """Dot folders and temporary files are no notes."""
        return f"{os.sep}." not in path[len(folder):]

    def run() -> None:
        while not stop.is_set():
            try:
                for changes in watchfiles.watch(
                    folder, watch_filter=visible, stop_event=stop, raise_interrupt=False,
                    ignore_permission_denied=True, step=20, debounce=200, rust_timeout=1000,
                ):
                    on_change([os.path.relpath(path, folder).replace(os.sep, "/") for _, path in changes])
            except (OSError, RuntimeError) as failure:
                logs.event("watch-failed", exception=type(failure).__name__)
            stop.wait(WATCH_RETRY_S)

    threading.Thread(target=run, name="watch", daemon=True).start()
