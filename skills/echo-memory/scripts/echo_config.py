"""Where the CLI's settings come from, and the one place that assembles a vault with its derived parts.

The server reads its own settings (`echo_mcp.settings`) and calls `build_context` with them; the CLI calls
`open_context` with its environment. On this side nothing else reads the environment.
"""
from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Mapping, Optional, Tuple

from echo_context import Known, OpContext, say_on_stderr
from echo_core.catalog.catalog import Catalog
from echo_core.clock import Clock
from echo_core.errors import Misconfigured
from echo_core.history import HistoryStore
from echo_core.index.known import KnownIndex
from echo_core.index.store import IndexStore
from echo_core.locks import AdvisoryLock
from echo_core.names import Names
from echo_core.recall.feed import SearchFeed
from echo_core.routing.store import RouteStore
from echo_core.state.note_cache import NoteCache
from echo_core.vault.base import Vault
from echo_core.vault.cached import CachedVault
from echo_core.vault.folder import FolderVault
from echo_core.vault.journaled import JournaledVault
from echo_core.vault.known import KnownFirstVault, KnownVault
from echo_core.vault.reach import ReachedVault
from echo_place import DEFAULT_TIMEOUT_S, Place, place_of

if TYPE_CHECKING:
    from echo_core.recall.search import SearchIndex
    from echo_core.settle.watch import Watch

DEFAULT_OWNER = "Operator"
DEFAULT_LOCK_TTL_S = 30
TRUST_S = 10.0
"""How long a CLI call on an API takes index and route map for current."""
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"", "0", "false", "no", "off"})


@dataclass(frozen=True)
class CliSettings:
    """What the environment says. place: where the vault is. state_dir: absolute path."""

    place: Place
    clock: Clock
    owner: str
    state_dir: str
    lock_ttl_s: int
    allow_secrets: bool

    @property
    def root(self) -> str:
        """The vault's folder or address, which tells it from others."""
        return self.place.name


def read_settings(environ: Optional[Mapping[str, str]] = None) -> CliSettings:
    """The CLI's settings. environ: this process's by default. Raises Misconfigured naming variable and cure."""
    environ = os.environ if environ is None else environ
    place = place_of(environ.get("ECHO_BASE", ""), _key(environ), environ.get("ECHO_CA_FILE", "").strip(),
                     _seconds(environ, "ECHO_TIMEOUT", DEFAULT_TIMEOUT_S, 600))
    state_dir = _state_dir(environ, place)
    if place.folder:
        _refuse_inside(state_dir, place.folder)
    return CliSettings(
        place=place,
        clock=Clock(environ.get("ECHO_TZ", "").strip(), environ.get("ECHO_CLOCK", "").strip()),
        owner=environ.get("ECHO_OWNER", "").strip() or DEFAULT_OWNER,
        state_dir=state_dir,
        lock_ttl_s=_seconds(environ, "ECHO_LOCK_TTL", DEFAULT_LOCK_TTL_S, 3600),
        allow_secrets=_switch(environ, "ECHO_ALLOW_SECRETS"),
    )


def open_context(environ: Optional[Mapping[str, str]] = None) -> OpContext:
    """The context of one CLI call. Touches neither the vault nor the state folder. Raises Misconfigured."""
    return context_of(read_settings(environ))


def context_of(settings: CliSettings, wrap: Callable[[Vault], Vault] = lambda vault: vault) -> OpContext:
    """The context that goes with settings; facts of the notes are cached between calls in the state folder.

    wrap: as in `build_context`.
    """
    facts_cache, notes_cache = cache_files(settings.state_dir, settings.place)
    return build_context(
        "", settings.clock, settings.state_dir, owner=settings.owner, lock_ttl_s=settings.lock_ttl_s,
        allow_secrets=settings.allow_secrets, facts_cache=facts_cache, notes_cache=notes_cache,
        backend=settings.place.open(), wrap=wrap, keep_all=not settings.place.folder,
        trust_s=0.0 if settings.place.folder else TRUST_S, second_look="" if settings.place.folder else "cli",
        search=lambda losses: _kept_search(settings, losses),
    )


def cache_files(state_dir: str, place: Place) -> Tuple[str, str]:
    """The files that keep facts and bytes of a vault's notes; server and command line on one state folder share them.
    """
    facts, notes = (os.path.join(state_dir, f"{what}-{place.identity}.sqlite3") for what in ("catalog", "notes"))
    return facts, notes


def make_vault_folder(root: str) -> None:
    """Make the vault's folder when only it is missing; what stands in the way is the vault's error later."""
    if os.path.isdir(os.path.dirname(root)) and not os.path.lexists(root):
        with contextlib.suppress(OSError):
            os.mkdir(root)


def build_context(
    vault_root: str,
    clock: Clock,
    state_dir: str,
    *,
    owner: str = DEFAULT_OWNER,
    holder: str = "",
    lock_ttl_s: int = DEFAULT_LOCK_TTL_S,
    allow_secrets: bool = False,
    token_required: bool = False,
    read_only: bool = False,
    notify: Callable[[str], None] = say_on_stderr,
    backend: Optional[Vault] = None,
    wrap: Callable[[Vault], Vault] = lambda vault: vault,
    search: Optional[Callable[[int], SearchIndex]] = None,
    facts_cache: str = "",
    notes_cache: str = "",
    keep_all: bool = False,
    trust_s: float = 0.0,
    second_look: str = "",
) -> OpContext:
    """One vault with everything derived from it.

    state_dir: holds the versions of replaced notes; made when first needed. holder: name in the advisory lock,
    by default this host and process. backend: another vault than the folder `vault_root`, for example a fake.
    wrap: puts further wrappers around the journaled vault. search: opens the search index, see SearchFeed; by default
    one in memory. facts_cache: file outside the vault that keeps the catalog between processes; "" keeps nothing.
    notes_cache: the same for the bytes of notes; keep_all: also of those that are only read for the catalog. trust_s:
    how long index and route map count as current without asking the vault; 0 for a folder, where asking costs nothing.
    second_look: the door, "server" or "cli", that looks again at what was written; "" where the vault loses nothing.
    """
    history = HistoryStore(state_dir, clock)
    inner = ReachedVault(backend or FolderVault(vault_root))
    notes = NoteCache(notes_cache)
    watched, watch = _watched(JournaledVault(inner, history), history, second_look)
    vault = CachedVault(wrap(watched), notes, keep_all)
    lock = AdvisoryLock(vault, clock, holder or _holder(), lock_ttl_s, notify)
    catalog = Catalog(vault, facts_cache)
    index = IndexStore(vault, lock, clock, catalog.build_index, catalog.complete, trust_s)
    inner.expect(lambda path: _is_indexed(path, index), lambda: _knows_notes(catalog))
    reading = KnownFirstVault(vault, catalog, notes) if keep_all else vault
    feed = SearchFeed(search or (lambda losses: _search_index(clock)), catalog, reading)
    catalog.subscribe(lambda changes: notes.drop(changes.removed))
    known = KnownVault(catalog, notes)
    return OpContext(
        vault=vault, clock=clock, catalog=catalog, index=index, names=Names(index, catalog),
        routes=RouteStore(vault, trust_s).load, feed=feed, lock=lock, history=history, owner=owner,
        allow_secrets=allow_secrets, token_required=token_required, read_only=read_only, notify=notify,
        reach=inner.reach, watch=watch,
        known=Known(notes, Names(KnownIndex(index, known, catalog), catalog), RouteStore(known).load),
    )


def _watched(vault: Vault, history: HistoryStore, door: str) -> Tuple[Vault, Optional[Watch]]:
    """The vault with its writes on watch, where a door wants that."""
    if not door:
        return vault, None
    from echo_core.settle.unsettled import Unsettled  # a vault in a folder needs none of these
    from echo_core.settle.watch import Watch
    from echo_core.vault.settled import SettledVault

    watch = Watch(Unsettled(history.database, door))
    return SettledVault(vault, watch), watch


def _knows_notes(catalog: Catalog) -> bool:
    """Whether any note is known, from this run or an earlier one."""
    catalog.seed()
    return bool(catalog.paths())


def _is_indexed(path: str, index: IndexStore) -> bool:
    """Whether the entity index, as far as it has been loaded, knows a note at `path`."""
    known = index.known()
    return known is not None and known.get(path) is not None


def _kept_search(settings: CliSettings, losses: int) -> SearchIndex:
    """The command line's search index, kept from one call to the next where SQLite can search."""
    from echo_core.recall.fts_engine import FtsEngine, has_fts5
    from echo_core.recall.opening import opener

    if not has_fts5():
        return _search_index(settings.clock)
    folder = os.path.join(settings.state_dir, f"cli-recall-{settings.place.identity}")
    return opener(folder, FtsEngine, settings.clock.day, say_on_stderr)(losses)


def _search_index(clock: Clock) -> SearchIndex:
    """An empty search index; its modules are loaded only now, since most calls search nothing."""
    from echo_core.recall.search import SearchIndex

    return SearchIndex(today=clock.day)


def _state_dir(environ: Mapping[str, str], place: Place) -> str:
    """`ECHO_STATE_DIR`, one for each vault, or else this vault's own folder in the user's state folder."""
    named = environ.get("ECHO_STATE_DIR", "").strip()
    if named:
        return os.path.abspath(os.path.expanduser(named))
    return str(_user_state(environ) / "echo-memory" / place.identity)


def _refuse_inside(state_dir: str, root: str) -> None:
    """Raise Misconfigured when the state folder would be part of the vault; a dot folder is none of its parts."""
    state, vault = Path(os.path.realpath(state_dir)), Path(os.path.realpath(root))
    inside = state == vault or vault in state.parents
    if inside and not any(part.startswith(".") for part in state.relative_to(vault).parts):
        raise Misconfigured(
            "ECHO_STATE_DIR lies inside the vault", hint="Choose a folder outside it, or unset ECHO_STATE_DIR.",
            variable="ECHO_STATE_DIR",
        )


def _user_state(environ: Mapping[str, str]) -> Path:
    if os.name == "nt":
        return Path(environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local"))
    if sys.platform == "darwin":
        return Path(os.path.expanduser("~/Library/Application Support"))
    return Path(environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"))


def _key(environ: Mapping[str, str]) -> str:
    """`ECHO_KEY`, or the content of the file that `ECHO_KEY_FILE` names."""
    key, file_name = environ.get("ECHO_KEY", "").strip(), environ.get("ECHO_KEY_FILE", "").strip()
    if not file_name:
        return key
    if key:
        raise Misconfigured("ECHO_KEY and ECHO_KEY_FILE are both set", hint="Unset one of them.", variable="ECHO_KEY")
    try:
        return Path(file_name).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        raise Misconfigured(
            "ECHO_KEY_FILE names a file that cannot be read as text", hint="Check the path and its permissions.",
            variable="ECHO_KEY_FILE",
        ) from None


def _seconds(environ: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = environ.get(name, "").strip()
    if not text:
        return default
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise Misconfigured(f"{name} is not a number of seconds from 1 to {most}",
                            hint=f"Unset it for {default} seconds.", variable=name)
    return int(text)


def _switch(environ: Mapping[str, str], name: str) -> bool:
    word = environ.get(name, "").strip().lower()
    if word not in _TRUE | _FALSE:
        raise Misconfigured(f"{name} is neither on nor off", hint=f"Set {name}=1 or unset it.", variable=name)
    return word in _TRUE


def _holder() -> str:
    node = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    return f"{node or 'host'}:{os.getpid()}"
