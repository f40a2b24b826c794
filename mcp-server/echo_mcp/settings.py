"""Every setting of the server: one table, checked once at start (spec 4.2).

Only this module reads the server's environment. A fault is one line that names the variable and the cure; no
line ever repeats a value, which may be a secret.
"""
from __future__ import annotations

import dataclasses
import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from echo_core.clock import Clock
from echo_core.errors import Misconfigured
from echo_place import Place, place_of

from echo_mcp.notify import is_webhook

MIN_TOKEN = 32
"""Shortest bearer token in characters."""

EXAMPLE_TOKENS = frozenset({
    "replace-this-with-your-own-long-random-token",
    "0123456789abcdef0123456789abcdef",
    "your-token-here-your-token-here-your-token-here",
    "change-me-change-me-change-me-change-me",
})
"""Tokens that stand in documentation: whoever copies one has an open door."""

TOOLSETS = ("memory",)
"""Every toolset this version has."""


@dataclass(frozen=True)
class Setting:
    """One row: environment variable, default as text, type, what it means.

    type: text, token, folder, choice, port, count, seconds, time, url, flag or hosts. secret: never shown, and
    `NAME_FILE` may name a file that holds it. least, most: bounds of a number.
    """

    name: str
    default: str
    type: str
    help: str
    secret: bool = False
    least: int = 1
    most: int = 1


SETTINGS: tuple[Setting, ...] = (
    Setting("ECHO_BASE", "", "text", "The vault: a folder, as a path or a file:// URL, or the http(s):// address of "
            "Obsidian's Local REST API. Required."),
    Setting("ECHO_KEY", "", "text", "Key of the Local REST API; a folder has none, so it must be empty.", secret=True),
    Setting("ECHO_CA_FILE", "", "text", "PEM file with the CA or the certificate of an https vault; empty means the "
            "system's CAs."),
    Setting("ECHO_OWNER", "Operator", "text", "Name of the person whose memory this is, as notes say it."),
    Setting("ECHO_MCP_TOKEN", "", "token", f"Bearer token of every door, at least {MIN_TOKEN} characters. Required for "
            "HTTP.", secret=True),
    Setting("ECHO_MCP_TOOLS", "full", "choice", "`core`, `full`, or a comma list of toolsets."),
    Setting("ECHO_MCP_HOST", "127.0.0.1", "text", "Address to listen on; 0.0.0.0 for all."),
    Setting("ECHO_MCP_PORT", "8765", "count", "Port to listen on; 0 takes a free one.", least=0, most=65535),
    Setting("ECHO_STATE_DIR", "./data", "folder", "Folder for what is not a note: versions, token, caches."),
    Setting("ECHO_MCP_INDEX_TTL", "60", "seconds", "How long another program's change may go unseen, in seconds.",
            least=1, most=3600),
    Setting("ECHO_TZ", "", "text", "The owner's time zone, such as Europe/Berlin; empty means the machine's."),
    Setting("ECHO_CLOCK", "", "text", "A fixed instant instead of the time, for tests and replays."),
    Setting("ECHO_WORKERS", "16", "count", "Vault calls that run at the same time.", least=1, most=256),
    Setting("ECHO_TIMEOUT", "10", "seconds", "Total time of one call, in seconds.", least=1, most=600),
    Setting("ECHO_MCP_ALLOWED_HOSTS", "", "hosts", "Public host names, comma list; loopback is always allowed."),
    Setting("ECHO_MCP_ALLOWED_ORIGINS", "", "hosts",
            "Web origins that may call, comma list; loopback is always allowed."),
    Setting("ECHO_MCP_READ_ONLY", "off", "flag", "`on`: tools that write do not exist."),
    Setting("ECHO_LOCK_TTL", "30", "seconds", "How long the vault's advisory lock lives without renewal, in seconds.",
            least=1, most=3600),
    Setting("ECHO_ALLOW_SECRETS", "off", "flag", "`on`: text that looks like a credential may be stored."),
    Setting("ECHO_BACKUP_AT", "03:30", "time", "When the vault is backed up each night, in the owner's time zone."),
    Setting("ECHO_BACKUP_KEEP", "30", "count", "How many good backups are kept.", least=1, most=10000),
    Setting("ECHO_ALERT_OUTBOX_H", "2", "count", "Hours a write may wait for the vault before that is told.", most=720),
    Setting("ECHO_ALERT_DOWN_H", "1", "count", "Hours the vault may be away before that is told.", most=720),
    Setting("ECHO_NOTIFY_URL", "", "url", "Webhook that hears what is wrong and when it is over; see backups.",
            secret=True),
    Setting("ECHO_RECALL_ENGINE", "tantivy", "choice", "`tantivy`, or `rank-bm25`: the same answers by an engine in "
            "memory, for machines without tantivy."),
    Setting("ECHO_LOG_LEVEL", "info", "choice", "debug, info, warning or error."),
)
"""The table, in the order of the documentation."""

_ROWS = {row.name: row for row in SETTINGS}
_TRUE = frozenset({"1", "on", "true", "yes"})
_FALSE = frozenset({"", "0", "off", "false", "no"})
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_HOST = re.compile(r"[A-Za-z0-9_.\-]+(:\d{1,5})?|\[[0-9A-Fa-f:.]+\](:\d{1,5})?")
_ORIGIN = re.compile(r"https?://([A-Za-z0-9_.\-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?")
_ENGINES = ("tantivy", "rank-bm25")
_LEVELS = ("debug", "info", "warning", "error")


class SettingsFault(Exception):
    """The environment cannot be served with. lines: one sentence for each fault, naming variable and cure."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(f"{len(lines)} settings at fault")
        self.lines = lines


@dataclass(frozen=True)
class Settings:
    """The checked values. Folders are absolute; times are in seconds; `token` is empty only for stdio.

    place: where the vault is.
    """

    place: Place
    state_dir: str
    clock: Clock
    token: str = field(repr=False, default="")
    owner: str = "Operator"
    core_only: bool = False
    toolsets: tuple[str, ...] = TOOLSETS
    host: str = "127.0.0.1"
    port: int = 8765
    index_ttl_s: int = 60
    workers: int = 16
    timeout_s: int = 10
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    read_only: bool = False
    lock_ttl_s: int = 30
    allow_secrets: bool = False
    backup_at: tuple[int, int] = (3, 30)
    backup_keep: int = 30
    alert_outbox_h: int = 2
    alert_down_h: int = 1
    notify_url: str = field(repr=False, default="")
    recall_engine: str = "tantivy"
    log_level: str = "info"
    embedded: bool = False


def environment() -> Mapping[str, str]:
    """The process's environment."""
    return os.environ


def load(environ: Mapping[str, str], *, http: bool = True, embedded: bool = False) -> Settings:
    """The settings of an environment. Raises SettingsFault with every fault at once.

    http: a token is needed. embedded: vault and token may be missing; they are then the state folder's own `vault`
    and `token`, which wiring makes.
    """
    reader = _Reader(environ)
    state_dir = reader.folder("ECHO_STATE_DIR")
    place = _vault(reader, state_dir, embedded)
    token = _token(reader) if http else ""
    if http and not token and not embedded and not reader.faulty("ECHO_MCP_TOKEN"):
        reader.fault("ECHO_MCP_TOKEN", f"is not set; set it to a random token of at least {MIN_TOKEN} characters")
    core_only, toolsets = _tools(reader)
    values: dict[str, Any] = {
        "place": place, "state_dir": state_dir, "token": token, "core_only": core_only, "toolsets": toolsets,
        "clock": _clock(reader), "owner": reader.text("ECHO_OWNER"), "host": _host(reader),
        "port": reader.number("ECHO_MCP_PORT"), "index_ttl_s": reader.number("ECHO_MCP_INDEX_TTL"),
        "workers": reader.number("ECHO_WORKERS"), "timeout_s": reader.number("ECHO_TIMEOUT"),
        "allowed_hosts": reader.names("ECHO_MCP_ALLOWED_HOSTS", _HOST, "host names such as echo.example.org"),
        "allowed_origins": reader.names("ECHO_MCP_ALLOWED_ORIGINS", _ORIGIN, "origins such as https://claude.ai"),
        "read_only": reader.flag("ECHO_MCP_READ_ONLY"), "lock_ttl_s": reader.number("ECHO_LOCK_TTL"),
        "allow_secrets": reader.flag("ECHO_ALLOW_SECRETS"), "embedded": embedded,
        "backup_at": reader.time("ECHO_BACKUP_AT"), "notify_url": reader.url("ECHO_NOTIFY_URL"),
        "alert_outbox_h": reader.number("ECHO_ALERT_OUTBOX_H"), "alert_down_h": reader.number("ECHO_ALERT_DOWN_H"),
        "backup_keep": reader.number("ECHO_BACKUP_KEEP"),
        "recall_engine": reader.choice("ECHO_RECALL_ENGINE", _ENGINES),
        "log_level": reader.choice("ECHO_LOG_LEVEL", _LEVELS),
    }
    if reader.lines:
        raise SettingsFault(list(reader.lines.values()))
    values["place"] = dataclasses.replace(place, timeout_s=values["timeout_s"])
    return Settings(**values)


class _Reader:
    """Reads rows of the table and collects one fault for each variable."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.lines: dict[str, str] = {}

    def fault(self, name: str, what: str) -> None:
        self.lines.setdefault(name, f"{name} {what}.")

    def faulty(self, name: str) -> bool:
        return name in self.lines

    def text(self, name: str) -> str:
        """The value or the default; a value with stray blanks or control characters is a fault."""
        value = self._environ.get(name, "")
        if value and (value != value.strip() or _CONTROL.search(value)):
            self.fault(name, "has blanks or line breaks at an end, or control characters; write the bare value")
            return _ROWS[name].default
        return value or _ROWS[name].default

    def secret(self, name: str) -> str:
        """The value of a secret, or the content of the file that `NAME_FILE` names."""
        file_name = self._environ.get(f"{name}_FILE", "")
        if not file_name:
            return self.text(name)
        if self._environ.get(name):
            self.fault(name, f"and {name}_FILE are both set; unset one of them")
            return ""
        try:
            value = Path(file_name).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, ValueError):
            self.fault(f"{name}_FILE", "names a file that cannot be read as text; check the path and its permissions")
            return ""
        if not value or value != value.strip() or _CONTROL.search(value):
            self.fault(f"{name}_FILE", "names a file that is empty or holds more than one bare line")
            return ""
        return value

    def number(self, name: str) -> int:
        row, value = _ROWS[name], self.text(name)
        if value.isascii() and value.isdecimal() and len(value) < 10 and row.least <= int(value) <= row.most:
            return int(value)
        self.fault(name, f"is not a whole number from {row.least} to {row.most}; unset it for {row.default}")
        return int(row.default)

    def time(self, name: str) -> tuple[int, int]:
        """(hour, minute) of a time of day."""
        match = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)", self.text(name), re.ASCII)
        if match is None:
            self.fault(name, f"is no time of day; write it as {_ROWS[name].default}")
            return 0, 0
        return int(match[1]), int(match[2])

    def url(self, name: str) -> str:
        """The address of a webhook, "" when there is none."""
        value = self.secret(name)
        if value and not is_webhook(value):
            self.fault(name, "is no http:// or https:// address; unset it to notify nobody")
        return value

    def flag(self, name: str) -> bool:
        word = self.text(name).lower()
        if word not in _TRUE | _FALSE:
            self.fault(name, "is neither on nor off; set it to 1 or unset it")
        return word in _TRUE

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        word = self.text(name).lower()
        if word not in allowed:
            self.fault(name, f"is none of {', '.join(allowed)}")
        return word

    def folder(self, name: str) -> str:
        return str(Path(self.text(name)).expanduser().absolute())

    def names(self, name: str, pattern: re.Pattern[str], example: str) -> tuple[str, ...]:
        found = tuple(part.strip().rstrip("/").lower() for part in self.text(name).split(",") if part.strip())
        if not all(pattern.fullmatch(part) for part in found):
            self.fault(name, f"is not a comma list of {example}")
        return found


def _vault(reader: _Reader, state_dir: str, embedded: bool) -> Place:
    """Where the vault is; a fault when it is not named, cannot be used, or is a folder that holds the state folder."""
    faults = len(reader.lines)
    base, key, ca_file = reader.text("ECHO_BASE"), reader.secret("ECHO_KEY"), reader.text("ECHO_CA_FILE")
    if len(reader.lines) > faults:
        return Place("")
    try:
        place = place_of(base or (str(Path(state_dir) / "vault") if embedded else ""), key, ca_file)
    except Misconfigured as failure:
        reader.lines.setdefault(str(failure.data["variable"]), f"{failure.message}. {failure.hint}")
        return Place("")
    root = Path(place.folder)
    if place.folder and (Path(state_dir) == root or root in Path(state_dir).parents):
        reader.fault("ECHO_STATE_DIR", "lies inside the vault; choose a folder outside it")
    return place


def _token(reader: _Reader) -> str:
    token = reader.secret("ECHO_MCP_TOKEN")
    if not token:
        return ""
    if len(token) < MIN_TOKEN:
        reader.fault("ECHO_MCP_TOKEN", f"is shorter than {MIN_TOKEN} characters; make a longer random one")
    elif token.lower() in EXAMPLE_TOKENS:
        reader.fault("ECHO_MCP_TOKEN", "is an example from the documentation; make your own random one")
    elif not token.isascii() or " " in token:
        reader.fault("ECHO_MCP_TOKEN", "holds blanks or characters that a header cannot carry; use letters and digits")
    return token


def _tools(reader: _Reader) -> tuple[bool, tuple[str, ...]]:
    """(only the core profile, names of the toolsets)."""
    word = reader.text("ECHO_MCP_TOOLS").lower()
    if word in ("core", "full"):
        return word == "core", TOOLSETS
    named = tuple(dict.fromkeys(part.strip() for part in word.split(",")))
    if not all(name in TOOLSETS for name in named):
        reader.fault("ECHO_MCP_TOOLS", f"is neither core nor full nor a comma list of {', '.join(TOOLSETS)}")
    return False, named


def _host(reader: _Reader) -> str:
    host = reader.text("ECHO_MCP_HOST").strip("[]")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        if not re.fullmatch(r"[A-Za-z0-9.\-]+", host) or host.replace(".", "").isdecimal():
            reader.fault("ECHO_MCP_HOST", "is neither an IP address nor a host name")
    return host


def _clock(reader: _Reader) -> Clock:
    zone, fixed = reader.text("ECHO_TZ"), reader.text("ECHO_CLOCK")
    try:
        Clock(zone)
    except Misconfigured:
        reader.fault("ECHO_TZ", "names no time zone; use an IANA name such as Europe/Berlin")
        zone = ""
    try:
        return Clock(zone, fixed)
    except Misconfigured:
        reader.fault("ECHO_CLOCK", "is no ISO instant; write it as 2026-11-30T14:05:09+01:00, or unset it")
        return Clock(zone)
