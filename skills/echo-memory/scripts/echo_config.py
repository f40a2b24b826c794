"""Where the CLI's settings come from, and the one place that assembles a vault with its derived parts.

The server reads its own settings (`echo_mcp.settings`) and calls `build_context` with them; the CLI calls
`open_context` with its environment. On this side nothing else reads the environment.
"""
from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Mapping, Optional
from urllib.parse import unquote, urlsplit

from echo_context import OpContext, say_on_stderr
from echo_core.catalog import Catalog
from echo_core.clock import Clock
from echo_core.errors import Misconfigured, NotFound
from echo_core.history import HistoryStore
from echo_core.index_store import IndexStore
from echo_core.kinds import ROUTES
from echo_core.locks import AdvisoryLock
from echo_core.names import Names
from echo_core.routing import RouteMap
from echo_core.search_feed import SearchFeed
from echo_core.vault.base import Vault
from echo_core.vault.folder import FolderVault
from echo_core.vault.journaled import JournaledVault

if TYPE_CHECKING:
    from echo_core.bm25 import Engine
    from echo_core.search import SearchIndex

DEFAULT_OWNER = "Operator"
DEFAULT_LOCK_TTL_S = 30
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"", "0", "false", "no", "off"})


@dataclass(frozen=True)
class CliSettings:
    """What the environment says. root: absolute path of the vault's folder. state_dir: absolute path."""

    root: str
    clock: Clock
    owner: str
    state_dir: str
    lock_ttl_s: int
    allow_secrets: bool


def read_settings(environ: Optional[Mapping[str, str]] = None) -> CliSettings:
    """The CLI's settings. environ: this process's by default. Raises Misconfigured naming variable and cure."""
    environ = os.environ if environ is None else environ
    root = vault_root(environ.get("ECHO_BASE", ""))
    if environ.get("ECHO_KEY", "").strip():
        raise Misconfigured(
            "ECHO_KEY is set, but ECHO_BASE is a folder, which has no key",
            hint="Unset ECHO_KEY, or check that ECHO_BASE is what you meant.", variable="ECHO_KEY",
        )
    state_dir = _state_dir(environ, root)
    _refuse_inside(state_dir, root)
    return CliSettings(
        root=root,
        clock=Clock(environ.get("ECHO_TZ", "").strip(), environ.get("ECHO_CLOCK", "").strip()),
        owner=environ.get("ECHO_OWNER", "").strip() or DEFAULT_OWNER,
        state_dir=state_dir,
        lock_ttl_s=_lock_ttl(environ.get("ECHO_LOCK_TTL", "").strip()),
        allow_secrets=_switch(environ, "ECHO_ALLOW_SECRETS"),
    )


def vault_root(base: str) -> str:
    """The absolute folder that `ECHO_BASE` names: a path or a file:// URL. Raises Misconfigured."""
    base = base.strip()
    if not base:
        raise Misconfigured(
            "ECHO_BASE is not set", hint="Set ECHO_BASE to the folder of your vault, for example ~/vault.",
            variable="ECHO_BASE",
        )
    scheme = base.split("://", 1)[0].lower() if "://" in base else ""
    if scheme in ("http", "https"):
        raise Misconfigured(
            "ECHO_BASE is an http(s) address; the Obsidian REST API is not in this version yet",
            hint="Set ECHO_BASE to the folder of the vault, or to a file:// URL.", variable="ECHO_BASE",
        )
    if scheme not in ("", "file"):
        raise Misconfigured(
            "ECHO_BASE has an address scheme that is not known", hint="Use a path or a file:// URL.",
            variable="ECHO_BASE",
        )
    path = _path_of_url(base) if scheme else os.path.expanduser(base)
    return os.path.abspath(path)


def open_context(environ: Optional[Mapping[str, str]] = None) -> OpContext:
    """The context of one CLI call. Touches neither the vault nor the state folder. Raises Misconfigured."""
    return context_of(read_settings(environ))


def context_of(settings: CliSettings) -> OpContext:
    """The context that goes with settings; facts of the notes are cached between calls in the state folder."""
    cache = os.path.join(settings.state_dir, f"catalog-{_identity(settings.root)}.sqlite3")
    return build_context(
        settings.root, settings.clock, settings.state_dir, owner=settings.owner, lock_ttl_s=settings.lock_ttl_s,
        allow_secrets=settings.allow_secrets, facts_cache=cache,
    )


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
    engine: Optional[Engine] = None,
    facts_cache: str = "",
) -> OpContext:
    """One vault with everything derived from it.

    state_dir: holds the versions of replaced notes; made when first needed. holder: name in the advisory lock,
    by default this host and process. backend: another vault than the folder `vault_root`, for example a fake.
    wrap: puts further wrappers around the journaled vault. engine: recall's engine; by default the built-in one.
    facts_cache: file outside the vault that keeps the catalog between processes; "" keeps nothing.
    """
    history = HistoryStore(state_dir, clock)
    vault = wrap(JournaledVault(backend or FolderVault(vault_root), history))
    lock = AdvisoryLock(vault, clock, holder or _holder(), lock_ttl_s, notify)
    catalog = Catalog(vault, facts_cache)
    index = IndexStore(vault, lock, clock, catalog.build_index, catalog.complete)
    feed = SearchFeed(lambda: _search_index(engine, clock), catalog, vault)
    return OpContext(
        vault=vault, clock=clock, catalog=catalog, index=index, names=Names(index, catalog),
        routes=lambda: load_routes(vault), feed=feed, lock=lock, history=history, owner=owner,
        allow_secrets=allow_secrets, token_required=token_required, read_only=read_only, notify=notify,
    )


def _search_index(engine: Optional[Engine], clock: Clock) -> SearchIndex:
    """An empty search index; its modules are loaded only now, since most calls search nothing."""
    from echo_core.search import SearchIndex

    return SearchIndex(engine, clock.day)


def load_routes(vault: Vault) -> RouteMap:
    """The vault's route map, or the default one. Raises InvalidArgument when the file is broken."""
    try:
        return RouteMap.load(vault.read(ROUTES))
    except NotFound:
        return RouteMap.load(None)


def _path_of_url(url: str) -> str:
    """The path of a file:// URL; `file:///C:/x` and a host of localhost are understood."""
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise Misconfigured(
            "ECHO_BASE is a file:// URL of another host", hint="Write it as file:///folder.", variable="ECHO_BASE"
        )
    path = unquote(parts.path)
    if os.name == "nt" and path[:1] == "/" and path[2:3] == ":":
        return path[1:]
    return path


def _state_dir(environ: Mapping[str, str], root: str) -> str:
    """`ECHO_STATE_DIR`, one for each vault, or else this vault's own folder in the user's state folder."""
    named = environ.get("ECHO_STATE_DIR", "").strip()
    if named:
        return os.path.abspath(os.path.expanduser(named))
    return str(_user_state(environ) / "echo-memory" / _identity(root))


def _identity(root: str) -> str:
    """What tells this vault's files from another vault's: 12 hex of the SHA-256 of its real path."""
    return hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:12]


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


def _lock_ttl(text: str) -> int:
    if not text:
        return DEFAULT_LOCK_TTL_S
    if not text.isdecimal() or not 1 <= int(text) <= 3600:
        raise Misconfigured(
            "ECHO_LOCK_TTL is not a number of seconds from 1 to 3600", hint="Unset it for 30 seconds.",
            variable="ECHO_LOCK_TTL",
        )
    return int(text)


def _switch(environ: Mapping[str, str], name: str) -> bool:
    word = environ.get(name, "").strip().lower()
    if word not in _TRUE | _FALSE:
        raise Misconfigured(f"{name} is neither on nor off", hint=f"Set {name}=1 or unset it.", variable=name)
    return word in _TRUE


def _holder() -> str:
    node = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    return f"{node or 'host'}:{os.getpid()}"
