"""Where a vault is: a folder of this machine, or an address of Obsidian's Local REST API (spec 4.2).

`echo_config` and the server's settings make a `Place` of what the environment says; whoever builds a context opens it.
"""
from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import Optional
from urllib.parse import unquote, urlsplit

from echo_core.errors import Misconfigured
from echo_core.vault.base import Vault
from echo_core.vault.rest_address import Address, is_address, parse_address

DEFAULT_TIMEOUT_S = 10


@dataclass(frozen=True)
class Place:
    """folder: absolute path, "" for an API. key, ca_file, timeout_s, probes: of an API, see `echo_core.vault.rest`."""

    folder: str
    address: Optional[Address] = None
    key: str = field(default="", repr=False)
    ca_file: str = ""
    timeout_s: float = DEFAULT_TIMEOUT_S
    probes: bool = True

    @property
    def name(self) -> str:
        """The folder or the address: tells this vault from others, and people where it is."""
        return self.folder if self.address is None else self.address.key

    @property
    def identity(self) -> str:
        """12 hex digits for file names; the same for every spelling of a folder."""
        name = os.fsencode(os.path.realpath(self.folder)) if self.address is None else self.address.key.encode()
        return hashlib.sha256(name).hexdigest()[:12]

    def open(self) -> Vault:
        """The vault; asks nothing of it yet. Raises Misconfigured when the CA file cannot be used."""
        if self.address is None:
            from echo_core.vault.folder import FolderVault

            return FolderVault(self.folder)
        from echo_core.vault.rest import RestVault

        return RestVault(self.address, self.key, self.timeout_s, self.ca_file, probes=self.probes)


def place_of(base: str, key: str = "", ca_file: str = "", timeout_s: float = DEFAULT_TIMEOUT_S) -> Place:
    """The place that `ECHO_BASE`, `ECHO_KEY` and `ECHO_CA_FILE` name. Raises Misconfigured, never repeating a value."""
    if not is_address(base):
        if key:
            raise Misconfigured(
                "ECHO_KEY is set, but ECHO_BASE is a folder, which has no key",
                hint="Unset ECHO_KEY, or check that ECHO_BASE is what you meant.", variable="ECHO_KEY",
            )
        return Place(folder_of(base))
    address = parse_address(base)
    if not key:
        raise Misconfigured(
            "ECHO_KEY is not set, but the vault at ECHO_BASE needs one", variable="ECHO_KEY",
            hint="Copy the key from Obsidian's settings of the Local REST API.",
        )
    if not all("!" <= char <= "~" for char in key):
        raise Misconfigured("ECHO_KEY holds characters that a header cannot carry", variable="ECHO_KEY",
                            hint="Copy the bare key from Obsidian's settings of the Local REST API.")
    place = Place("", address, key, os.path.abspath(os.path.expanduser(ca_file)) if ca_file else "", timeout_s)
    place.open()
    return place


def folder_of(base: str) -> str:
    """The absolute folder that `ECHO_BASE` names: a path or a file:// URL. Raises Misconfigured."""
    base = base.strip()
    if not base:
        raise Misconfigured(
            "ECHO_BASE is not set", variable="ECHO_BASE",
            hint="Set ECHO_BASE to the folder of your vault, for example ~/vault, or to the address of Obsidian's "
                 "Local REST API.",
        )
    scheme = base.split("://", 1)[0].lower() if "://" in base else ""
    if scheme not in ("", "file"):
        raise Misconfigured(
            "ECHO_BASE has an address scheme that is not known", hint="Use a path, a file:// or an http(s):// URL.",
            variable="ECHO_BASE",
        )
    path = _path_of_url(base) if scheme else os.path.expanduser(base)
    return os.path.abspath(path)


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
