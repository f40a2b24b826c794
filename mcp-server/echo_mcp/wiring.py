"""The composition root: builds every part of the server from the settings, and nothing else does (spec 1.1)."""
from __future__ import annotations

import contextlib
import dataclasses
import gc
import logging
import os
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from echo_bootstrap import bootstrap_op
from echo_config import build_context, cache_files
from echo_context import OpContext
from echo_core.errors import EchoError, IndexCorrupt, Misconfigured, VaultUnreachable
from echo_core.lint import lint
from echo_core.recall.search import SearchIndex
from echo_offline import with_outbox
from echo_place import Place
from echo_queue import Outbox
from echo_queue_vault import OutboxVault
from echo_replay import queue_op

from echo_mcp import __version__, follow, forgetting, http, jobs, logs
from echo_mcp.alerts import Alerts
from echo_mcp.asgi import App
from echo_mcp.backup import opening, report
from echo_mcp.backup.nightly import Nightly
from echo_mcp.chores import Chores
from echo_mcp.concerns import Concerns
from echo_mcp.health import Health
from echo_mcp.notify import Webhook
from echo_mcp.recall import engines
from echo_mcp.registry import Registry
from echo_mcp.sdk import McpDoor
from echo_mcp.settings import Settings, SettingsFault
from echo_mcp.settler import Settler
from echo_mcp.statedir import kept_token
from echo_mcp.toolsets import Toolset
from echo_mcp.toolsets.memory import MemoryToolset

STOP_S = 8.5
"""Seconds from SIGTERM until running calls are left behind."""
BACKUP_END_S = 1.0
"""Seconds that a backup gets to remove its unfinished file, and a message to arrive; else the next start sees to it."""

GC_THRESHOLDS = (20_000, 20, 20)
"""When Python looks for cycles. Its usual (700, 10, 10) cost a tenth of a first reading's time, which makes none."""

KEEP_S = 2.0
"""Seconds between two storings of what is known of the notes: a server that is killed loses no more of it."""

VAULT_SHARE = 0.85
"""Share of a call's time that one request of the vault, or the wait for the first reading, may take."""


@dataclass
class Parts:
    """A built server. `app` serves HTTP; `door.serve_stdio()` serves stdio."""

    settings: Settings
    ctx: OpContext
    registry: Registry
    health: Health
    door: McpDoor
    toolsets: list[Toolset]
    background: Background
    stopping_since: float = 0.0

    def app(self) -> App:
        """The ASGI app; its lifespan starts and stops the background work."""
        return http.build_app(self.registry, self.door.app, self.health, self.settings, self._lifespan)

    def stopping(self) -> None:
        """The end begins: health says so, running calls have STOP_S seconds from now."""
        if not self.stopping_since:
            self.stopping_since = time.monotonic()
            self.health.serve(False)
            logs.event("stopping")

    def close(self) -> None:
        """Wait for running calls and let go of everything."""
        self.stopping()
        self.background.stop()
        done = self.registry.drain(self.stopping_since + STOP_S)
        for toolset in self.toolsets:
            toolset.shutdown()
        self.background.settle(self.stopping_since + STOP_S)
        self.background.ended()
        self.ctx.keep()
        if done:
            self._remember()
            self.ctx.close()
        logs.event("stopped", drained=done)

    def _remember(self) -> None:
        """Keep what is known of a folder's notes: the next start is quicker, and knows an empty mount point."""
        if self.settings.place.folder and self.health.index_ready:
            with contextlib.suppress(EchoError):
                self.ctx.catalog.refresh()

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Any) -> AsyncIterator[None]:
        async with self.door.running():
            self.background.start()
            self.health.serve(True)
            yield


class Background:
    """The threads behind the server."""

    def __init__(self, ctx: OpContext, settings: Settings, health: Health) -> None:
        self._ctx = ctx
        self.settler = Settler(ctx)
        self._folder = settings.place.folder
        self._stop = threading.Event()
        self.refresher = jobs.Refresher(
            lambda: _refresh(ctx), lambda: _index(ctx), lambda: _findings(ctx), health, settings.index_ttl_s,
            lambda: _warm(ctx),
        )
        self._flusher = jobs.flusher(ctx, health)
        self._keeper = jobs.Repeated("keep", ctx.keep, KEEP_S)
        self._committer = jobs.Repeated("commit", ctx.feed.settle, settings.index_ttl_s)
        ctx.feed.behind, ctx.feed.changed = self.refresher.thread.wake, self._committer.wake
        self._forgetter = jobs.Repeated(
            "forget", forgetting.follower(ctx, settings, lambda: logs.event("forgotten")), forgetting.POLL_S)
        self._probe = jobs.probe(ctx.reach.probe, settings.state_dir, health, self._vault_answers)
        desk = opening.desk(settings)
        self.alerts = Alerts(desk.runs, settings.clock, Webhook(settings.notify_url) if settings.notify_url else None)
        self._concerns = Concerns(health, self.alerts, desk.runs, settings.alert_outbox_h, settings.alert_down_h)
        self._chores = None if settings.read_only else Chores(ctx, desk.runs, settings.clock, health)
        self._nightly = Nightly(desk, settings.clock, settings.backup_at, health, self.alerts)

    def start(self) -> None:
        """Start all threads; the notes are read behind, calls that need them wait."""
        gc.set_threshold(*GC_THRESHOLDS)
        self._probe.start()
        self.refresher.thread.start()
        self._flusher.start()
        self.settler.start()
        self.alerts.start()
        self._nightly.start()
        self._keeper.start()
        self._committer.start()
        self._forgetter.start()
        if self._chores is not None:
            self._chores.thread.start()
        self._concerns.thread.start()
        if self._folder:
            jobs.watch(self._folder, self._changed, self._stop)

    def _vault_answers(self) -> None:
        self.refresher.retry()
        if self._ctx.outbox is not None and self._ctx.outbox.waits():
            self._flusher.wake()

    def look_at_queue(self) -> None:
        """A write has just been kept: count it now, and begin to look for the vault."""
        self._flusher.wake()
        self._probe.wake()

    def _changed(self, paths: list[str]) -> None:
        if not follow.take_in(paths, self._ctx):
            self.refresher.thread.wake()

    def settle(self, until: float) -> None:
        """Look once more at what was just written; until: monotonic seconds."""
        self.settler.finish(until)

    def stop(self) -> None:
        """Ask all threads to end."""
        self._stop.set()
        self.refresher.thread.stop()
        self._flusher.stop()
        self._keeper.stop()
        self._committer.stop()
        self._forgetter.stop()
        if self._chores is not None:
            self._chores.thread.stop()
        self._probe.stop()
        self._nightly.stop()
        self._concerns.thread.stop()
        self.alerts.stop()

    def ended(self) -> None:
        """Let what was under way come to its end."""
        self._nightly.ended(BACKUP_END_S)
        self.alerts.ended(BACKUP_END_S)


def _require_known_format(outbox: Outbox) -> None:
    """Raise SettingsFault, before anything is touched, for an outbox of a newer release."""
    try:
        outbox.depth()
    except Misconfigured as newer:
        raise SettingsFault([f"ECHO_STATE_DIR cannot be used: {newer}. {newer.hint}"]) from newer
    except (OSError, sqlite3.Error) as trouble:  # each call that needs it says so
        logs.event("outbox-trouble", logging.ERROR, exception=type(trouble).__name__)


def build(settings: Settings) -> Parts:
    """A server that is ready to serve. The state folder exists; the vault is not touched.

    Raises SettingsFault when an outbox of a newer release is in it.
    """
    facts_cache, notes_cache = cache_files(settings.state_dir, settings.place)
    outbox = Outbox(settings.state_dir, settings.place.name, "server")
    _require_known_format(outbox)
    ctx = build_context(
        "", settings.clock, settings.state_dir, owner=settings.owner, lock_ttl_s=settings.lock_ttl_s,
        wrap=lambda vault: OutboxVault(vault, outbox), second_look="" if settings.place.folder else "server",
        allow_secrets=settings.allow_secrets, token_required=True, read_only=settings.read_only, notify=logs.notice,
        facts_cache=facts_cache, notes_cache=notes_cache, keep_all=True, backend=_patient(settings).open(),
        trust_s=0.0 if settings.place.folder else settings.index_ttl_s, search=_search(settings),
    )
    with_outbox(ctx, outbox, settings.state_dir)
    ctx.replays_behind = True
    health = Health(ctx.reach)
    background = Background(ctx, settings, health)
    outbox.on_wait = background.look_at_queue
    # Calls wait for the first reading, a little shorter than a call may take; later the threads above keep it fresh.
    ctx.refresh = lambda: background.refresher.wait(VAULT_SHARE * settings.timeout_s)
    registry = Registry(settings.workers, settings.timeout_s)
    ctx.details = lambda: {
        "version": __version__, "tools": len(registry.tools()), "read_only": settings.read_only,
        "index_ready": health.index_ready, "index_age_s": health.index_age_s, "jobs": report.jobs(health.runs),
        "put_back": background.settler.put_back, "overwritten": background.settler.lost,
        "alerts": background.alerts.open(),
    }
    ctx.checks["disk"] = lambda _: outbox.reserve.state()
    ctx.checks["backup"] = lambda _: report.verdict(health.backups, health.runs)
    toolsets: list[Toolset] = []
    if "memory" in settings.toolsets:
        # These two never ask the vault: the refresher keeps their index. Recall does not even wait for the first
        # reading; it answers from what has been read so far and says how much that is.
        resolving = ctx.varied(names=ctx.known.names)
        recalling = resolving.varied(refresh=lambda: background.refresher.wait(0))
        own = {"echo_resolve": resolving, "echo_recall": recalling}
        toolsets.append(MemoryToolset(ctx, own, settings.core_only, settings.read_only))
    for toolset in toolsets:
        toolset.register_tools(registry)
    return Parts(settings, ctx, registry, health, McpDoor(registry), toolsets, background)


def _patient(settings: Settings) -> Place:
    """The vault's place; an API gives up a little before the call does, so that a write can still be kept for later."""
    return dataclasses.replace(
        settings.place, timeout_s=VAULT_SHARE * settings.timeout_s, probes=not settings.read_only)


def _search(settings: Settings) -> Callable[[int], SearchIndex]:
    """What opens recall's index, one for each vault. Raises SettingsFault when its engine is not installed."""
    if settings.recall_engine == engines.TANTIVY and not engines.has_tantivy():
        raise SettingsFault([
            "ECHO_RECALL_ENGINE is tantivy, which cannot be loaded on this machine; install it, or set "
            "ECHO_RECALL_ENGINE=rank-bm25, which needs nothing and is slower in large vaults."
        ])
    folder = os.path.join(settings.state_dir, f"recall-{settings.place.identity}")
    return engines.opener(settings.recall_engine, folder, settings.clock.day, logs.notice)


def _refuse_vanished(settings: Settings) -> None:
    """A folder that is missing or empty although its notes are known is more likely unmounted than new."""
    folder = settings.place.folder
    facts_cache, _ = cache_files(settings.state_dir, settings.place)
    if os.path.exists(facts_cache) and not (os.path.isdir(folder) and os.listdir(folder)):
        raise SettingsFault([
            "The vault's folder (ECHO_BASE) is missing or empty, but ECHO_STATE_DIR knows its notes; mount it again, "
            "or remove the catalog file from ECHO_STATE_DIR to start a new vault there."
        ])


def embed(settings: Settings) -> Settings:
    """The settings with a token and a vault that exist: both are made in the state folder when they are missing.

    An API that does not answer yet is set up by nobody; the server says that it is not reachable. Raises SettingsFault
    when the vault cannot be set up.
    """
    ctx = build_context("", settings.clock, settings.state_dir, owner=settings.owner, notify=logs.notice,
                        backend=settings.place.open())
    try:
        if settings.place.folder:
            _refuse_vanished(settings)
            os.makedirs(settings.place.folder, exist_ok=True)
        bootstrap_op(ctx=ctx)
    except OSError as failure:
        why = os.strerror(failure.errno or 0)
        raise SettingsFault([f"The vault's folder cannot be made ({why}); check ECHO_BASE."]) from failure
    except EchoError as failure:
        if isinstance(failure, VaultUnreachable) and not settings.place.folder:
            logs.notice(f"the vault could not be set up: {failure.message}")
            return _with_token(settings)
        raise SettingsFault([f"The vault cannot be set up: {failure.message}. {failure.hint}".strip()]) from failure
    finally:
        ctx.history.close()
    return _with_token(settings)


def _with_token(settings: Settings) -> Settings:
    return settings if settings.token else dataclasses.replace(settings, token=kept_token(settings.state_dir))


def forget(settings: Settings, path: str, drop_waiting: bool) -> dict[str, Any]:
    """What `forgetting.forget` answers. Raises what it raises."""
    ctx = build_context("", settings.clock, settings.state_dir, backend=settings.place.open())
    try:
        return forgetting.forget(ctx, settings, path, drop_waiting)
    finally:
        ctx.close()


def queue(settings: Settings, do: str, item: str) -> dict[str, Any]:
    """The server's waiting writes as an envelope, see `queue_op`. Raises NotFound and InvalidArgument."""
    ctx = build_context("", settings.clock, settings.state_dir, backend=settings.place.open())
    with_outbox(ctx, Outbox(settings.state_dir, settings.place.name, "server"), settings.state_dir)
    try:
        return queue_op(do, item, ctx=ctx)
    finally:
        ctx.close()


def _refresh(ctx: OpContext) -> bool:
    """Bring catalog and entity index up to the vault; whether any note changed."""
    ctx.feed.listen()
    changes = ctx.catalog.refresh()
    with contextlib.suppress(IndexCorrupt):  # echo_health says so
        ctx.index.load()
    return bool(changes.added or changes.changed or changes.removed)


def _index(ctx: OpContext) -> None:
    """Bring the search index up to the catalog."""
    ctx.feed.catch_up(everything=True)


def _warm(ctx: OpContext) -> None:
    """Make the tables of names and likenesses, which the first capture would wait a second for in 10,000 notes."""
    ctx.linker.current()
    ctx.catalog.with_body_like([])
    for names in (ctx.names, ctx.known.names):
        names.candidates("a name")


def _findings(ctx: OpContext) -> int:
    """How many findings the cheap checks have over all notes."""
    return len(lint(ctx.catalog, ctx.vault, ctx.index, ctx.routes, ctx.clock, fast=True))
