"""A REST vault on a double of the API, for tests of everything behind the REST API.

    with serving(tmp_path) as rest:
        rest.vault.write("a.md", b"x", None)
        assert rest.api.log.count("PUT") == 1
"""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from echo_core.vault.rest import RestVault
from echo_core.vault.rest_address import Address, parse_address
from echo_core.vault.rest_transport import Answer, HttpTransport, Transport
from fakes.olrapi import Olrapi

KEY = "canary-key-93b1c0"


@dataclass
class Watched(Transport):
    """The standard transport; `sent` holds (method, target, headers), `after` is called behind each answer."""

    inner: Transport
    sent: list[tuple[str, str, Mapping[str, str]]] = field(default_factory=list)
    after: Callable[[str, str], None] = lambda method, target: None

    def send(self, method: str, target: str, headers: Mapping[str, str], *rest: Any, **named: Any) -> Answer:
        self.sent.append((method, target, dict(headers)))
        answer = self.inner.send(method, target, headers, *rest, **named)
        self.after(method, target)
        return answer

    def close(self) -> None:
        self.inner.close()


@dataclass
class Rest:
    """folder: the vault's files on disk, for playing Obsidian and other programs."""

    api: Olrapi
    vault: RestVault
    transport: Watched
    folder: Path
    address: Address

    def methods(self) -> list[str]:
        """The methods of the requests since the log was cleared."""
        return [entry.method for entry in self.api.log.entries]


@contextlib.contextmanager
def serving(tmp_path: Path, version: str = "5.1.0", timeout_s: float = 5.0, **more: Any) -> Iterator[Rest]:
    """An empty vault behind a running double. more: further arguments of RestVault."""
    folder = tmp_path / "vault"
    folder.mkdir(exist_ok=True)
    with Olrapi(str(folder), version, KEY) as api:
        address = parse_address(api.url)
        transport = Watched(HttpTransport(address))
        vault = RestVault(address, KEY, timeout_s, transport=transport, **more)
        try:
            yield Rest(api, vault, transport, folder, address)
        finally:
            vault.close()
