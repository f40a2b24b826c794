"""Where the Local REST API is, and how a vault path is spelled in its URLs (spec 6.1)."""
from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote, urlsplit

from echo_core.errors import InvalidPath, Misconfigured

TARGET_WORDS = frozenset({"heading", "block", "frontmatter"})
"""Segments the plugin reads as "a part of the note before me" when what stands before them is a file."""

_ROUTES = frozenset({"vault", "active", "periodic", "search", "commands", "open"})
"""First segments of the API's own paths."""
_DEFAULT_PORT = {"http": 80, "https": 443}


class Address(NamedTuple):
    """A parsed `ECHO_BASE`. prefix: path in front of every request, without a closing slash; usually ""."""

    scheme: str
    host: str
    port: int
    prefix: str

    @property
    def host_header(self) -> str:
        """The Host header's value."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == _DEFAULT_PORT[self.scheme] else f"{name}:{self.port}"

    @property
    def key(self) -> str:
        """The same text for the same API: names its lock and its state."""
        return f"{self.scheme}://{self.host_header}{self.prefix}"


def is_address(base: str) -> bool:
    """Whether `ECHO_BASE` names an API rather than a folder."""
    return base.strip().lower().startswith(("http://", "https://"))


def parse_address(base: str) -> Address:
    """The parts of an http(s) address. Raises Misconfigured; its message never repeats the value."""
    try:
        parts = urlsplit(base.strip())
        port = parts.port
    except ValueError:
        raise _unusable("is no usable address") from None
    scheme = parts.scheme.lower()
    if scheme not in _DEFAULT_PORT:
        raise _unusable("is neither http:// nor https://")
    if "@" in parts.netloc:
        raise _unusable("holds a user name or password; the key belongs into ECHO_KEY")
    if parts.query or parts.fragment or "?" in base or "#" in base:
        raise _unusable("holds a query or fragment")
    host = parts.hostname or ""
    if not host or not all(char.isalnum() or char in "-._:" for char in host):
        raise _unusable("names no usable host")
    prefix = parts.path.rstrip("/")
    if not prefix.isascii() or any(char <= " " for char in prefix):
        raise _unusable("holds a path with characters that a URL cannot carry")
    if not _ROUTES.isdisjoint(prefix.lower().split("/")):
        raise _unusable("names a part of the API and not the API itself")
    return Address(scheme, host, port or _DEFAULT_PORT[scheme], prefix)


def file_target(path: str) -> str:
    """The request target of a file: each segment encoded by itself, so that no character can become a separator."""
    return "/vault/" + _encoded(path)


def folder_target(path: str) -> str:
    """The request target of a folder's listing; "" is the root."""
    return f"/vault/{_encoded(path)}/" if path else "/vault/"


def check_addressable(path: str) -> None:
    """Raise InvalidPath when a write to `path` could reach a part of another note instead of a file."""
    if not TARGET_WORDS.isdisjoint(path.split("/")[:-1]):
        raise InvalidPath(
            f"{path} cannot be written over the REST API, which takes a folder called heading, block or frontmatter "
            "for a part of a note", hint="Choose another folder.", field="path",
        )


def _encoded(path: str) -> str:
    return "/".join(quote(segment, safe="") for segment in path.split("/"))


def _unusable(what: str) -> Misconfigured:
    return Misconfigured(
        f"ECHO_BASE {what}", hint="Write it as http://127.0.0.1:27123 or https://127.0.0.1:27124.",
        variable="ECHO_BASE",
    )
