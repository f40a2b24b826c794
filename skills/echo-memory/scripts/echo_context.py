"""What an op works with: the vault and everything derived from it, handed in by whoever runs the op.

The server builds one context with warm parts (`echo_mcp.wiring`), the CLI builds one per call
(`echo_config.open_context`); ops see no difference.
"""
from __future__ import annotations

import sqlite3
import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from echo_core.catalog.catalog import Catalog
from echo_core.clock import Clock
from echo_core.errors import EchoError
from echo_core.history import HistoryStore
from echo_core.index.store import IndexStore
from echo_core.locks import AdvisoryLock
from echo_core.names import Names
from echo_core.names.linker import LinkerCache
from echo_core.recall.feed import SearchFeed
from echo_core.routing import RouteMap
from echo_core.state.batching import Batches
from echo_core.state.note_cache import NoteCache
from echo_core.text import plural, shorten, timespan
from echo_core.vault.base import Vault
from echo_core.vault.known import KnownVault, age_s
from echo_core.vault.reach import Reach
from echo_queue import Outbox
from echo_queue_rows import Running
from echo_resume import Resumed

if TYPE_CHECKING:
    from echo_core.settle.watch import Watch


def say_on_stderr(message: str) -> None:
    """The default for chatter that belongs to no envelope."""
    sys.stderr.write(message + "\n")


class Known(NamedTuple):
    """What still answers while the vault is away.

    notes: bytes of notes as they were met last. names: like the context's, of the last index known. routes: the last
    route map known, or the default one.
    """

    notes: NoteCache
    names: Names
    routes: Callable[[], RouteMap]


@dataclass
class OpContext:
    """One vault and its derived parts.

    vault: the outermost wrapper (history is kept below it). catalog: facts of all notes; ops call `fresh()` once
    before they read it or `names`. index: the entity index. names: joins both for resolution. linker: links
    mentions. feed: the search index,
    kept in step with the catalog. lock: the vault's advisory lock. allow_secrets: only the operator
    sets it (`ECHO_ALLOW_SECRETS`). token_required: whether `apply` of triage and reflect needs the preview's token
    (MCP and REST yes, CLI no). queue: counts of writes that wait, `{"depth", "parked", "conflicts"}`; None when
    there is no queue. flush: replays waiting writes and returns how many arrived. details: more facts for
    `echo_health`. outbox: keeps every write; None when nobody replays. state_dir: the folder for state. refresh: how
    `fresh` is done; None walks the vault (the server keeps it warm). replays_behind: whether somebody else replays
    waiting writes, so that a call that only looks does not. reach: whether the vault answers. known: what answers
    while it does not; offline: set in a context in which only that is asked, and then the same as `vault`. checks:
    further rows of `echo_health`: name -> (whether all is well, one line). running: the write this context is for.
    resumed: what an earlier run of it left, None when this is the first. watch: what was written and is to be looked at
    again; None where the vault loses nothing. day_lines: where calls meet that log in one day note.
    client_key: what the client calls this write, so that it is made once however often it is sent.
    """

    vault: Vault
    clock: Clock
    catalog: Catalog
    index: IndexStore
    names: Names
    routes: Callable[[], RouteMap]
    feed: SearchFeed
    lock: AdvisoryLock
    history: HistoryStore
    known: Known
    owner: str = "Operator"
    allow_secrets: bool = False
    token_required: bool = False
    read_only: bool = False
    notify: Callable[[str], None] = say_on_stderr
    queue: Optional[Callable[[], Dict[str, int]]] = None
    flush: Optional[Callable[[], int]] = None
    details: Optional[Callable[[], Dict[str, Any]]] = None
    refresh: Optional[Callable[[], None]] = None
    outbox: Optional[Outbox] = None
    state_dir: str = ""
    replays_behind: bool = False
    reach: Reach = field(default_factory=Reach)
    watch: Optional[Watch] = None
    checks: Dict[str, Callable[["OpContext"], Tuple[bool, str]]] = field(default_factory=dict)
    running: Optional[Running] = None
    resumed: Optional[Resumed] = None
    offline: Optional[KnownVault] = None
    day_lines: Batches[str] = field(default_factory=Batches)
    client_key: str = ""

    def __post_init__(self) -> None:
        self.linker = LinkerCache(self.catalog)

    def varied(self, **changes: Any) -> OpContext:
        """The context with other values for some fields, sharing everything else."""
        other = replace(self, **changes)
        other.linker = self.linker
        return other

    def keep(self) -> None:
        """Keep what is known of the vault for a run in which it is away."""
        self.known.notes.save()
        self.catalog.store()

    def close(self) -> None:
        """Keep what is known, let go of connections and of the files in the state folder; a next call opens them again.
        """
        self.keep()
        self.vault.close()
        self.feed.close()
        self.history.close()
        if self.outbox is not None:
            self.outbox.close()

    def remember(self, **plan: Any) -> None:
        """Note JSON values that the op needs when it is taken up again after a crash."""
        if self.running is not None and self.outbox is not None:
            self.outbox.remember(self.running, plan)

    def fresh(self) -> None:
        """Bring catalog, names and search up to what the vault holds now; raises what the vault raises."""
        if self.refresh is None:
            self.catalog.refresh()
        else:
            self.refresh()

    def offline_facts(self) -> Dict[str, Any]:
        """`{"offline": True, "age_s"?}` when the answer is of what was known before; `{}` else.

        age_s: seconds since what was read was surely what the vault held; left out when nobody can tell.
        """
        if self.offline is None:
            return {}
        at = self.offline.oldest or self.catalog.as_of()
        return {"offline": True} if at is None else {"offline": True, "age_s": age_s(at)}

    def offline_notice(self) -> str:
        """The same in words, with the writes that are not in it; "" when the vault was asked."""
        if self.offline is None:
            return ""
        known = self.offline_facts().get("age_s")
        age = "" if known is None else f" {timespan(known)} ago"
        waiting = _quietly(self.queue_counts)
        rest = f" Not in it: {plural(waiting, 'write')} waiting for the vault." if waiting else ""
        return f"The vault does not answer; this is what ECHO knew{age}.{rest}"

    def queue_counts(self) -> Dict[str, int]:
        """`{"depth", "parked", "conflicts"}`: writes that wait or need a decision, and texts that were written over."""
        counts = {"depth": 0, "parked": 0}
        counts.update(self.queue() if self.queue else {})
        counts["conflicts"] = counts.get("conflicts", 0) + len(self.history.conflicts())
        return counts


def _quietly(counts: Callable[[], Dict[str, int]]) -> int:
    """How many writes wait; 0 when the queue cannot be read, which has its own place to be said."""
    try:
        return counts()["depth"]
    except (EchoError, OSError, sqlite3.Error):
        return 0


Envelope = Dict[str, Any]
"""What every op returns: `{"ok": bool, "action"?, ...fields, "warnings"?: [str]}` (spec 3.1)."""


def ok(action: str = "", warnings: Optional[List[str]] = None, **fields: Any) -> Envelope:
    """A good answer; `action` and `warnings` are left out when empty, fields that are None too."""
    answer: Envelope = {"ok": True}
    if action:
        answer["action"] = action
    answer.update((key, value) for key, value in fields.items() if value is not None)
    if warnings:
        answer["warnings"] = warnings
    return answer


def preview(would: str, **fields: Any) -> Envelope:
    """A good answer to a call that was only tried: `action: preview`, and in `would` what the real one does."""
    return ok("preview", would=would, **fields)


def bounded(name: str, text: str, limit: int) -> Dict[str, Any]:
    """`{name: text}`; of a longer text the first `limit` characters, with `truncated: true` and `total_chars`."""
    shown, cut = shorten(text, limit)
    return {name: shown, "truncated": True, "total_chars": len(text)} if cut else {name: text}


def decide(action: str, hint: str, **fields: Any) -> Envelope:
    """An answer that is no error but needs a decision first: duplicate-gate, lock-held or stale-preview."""
    answer: Envelope = {"ok": False, "action": action, "hint": hint}
    answer.update(fields)
    return answer
