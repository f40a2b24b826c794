"""A context over a folder with a fixed clock, and a way to call tools, shared by the tests of the ops."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import echo_tools
from echo_config import build_context
from echo_context import OpContext
from echo_core.clock import Clock
from echo_core.errors import VaultUnreachable
from echo_core.vault.base import Vault

INSTANT = "2026-11-30T14:05:09+01:00"
ZONE = "Europe/Vienna"


def make_ctx(folder: Path, instant: str = INSTANT, zone: str = ZONE, **options: Any) -> OpContext:
    """A context over the vault `folder/vault` (made when missing), versions kept in `folder/state`.

    instant: where the clock stands. options: any further argument of `echo_config.build_context`.
    """
    root = folder / "vault"
    root.mkdir(parents=True, exist_ok=True)
    options.setdefault("notify", lambda message: None)
    return build_context(str(root), Clock(zone, instant), str(folder / "state"), **options)


def call(ctx: OpContext, tool: str, **arguments: Any) -> dict[str, Any]:
    """The envelope of a tool called with `arguments`; its name may leave `echo_` out."""
    name = tool if tool.startswith("echo_") else f"echo_{tool}"
    return echo_tools.run(echo_tools.BY_NAME[name], arguments, ctx)


def put(folder: Path, path: str, text: str) -> None:
    """Write a note of `folder/vault` as somebody outside ECHO would; line ends stay as given."""
    target = folder / "vault" / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text.encode("utf-8"))


def get(folder: Path, path: str) -> str:
    """The text of a note of `folder/vault`, line ends as they are."""
    return (folder / "vault" / path).read_bytes().decode("utf-8")


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file of `folder/vault` by its path, the kernel lock's file left out."""
    root = folder / "vault"
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and path.name != "write.lock"]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


class DyingVault:
    """Forwards to a vault until `writes` writes are done; every write after that finds the vault down.

    Give it to `make_ctx` as `wrap=lambda inner: DyingVault(inner, 3)`.
    """

    def __init__(self, inner: Vault, writes: int) -> None:
        self._inner = inner
        self._left = writes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write(self, path: str, data: bytes, expected: bytes | None) -> None:
        """Write while writes are left, then raise VaultUnreachable."""
        if self._left == 0:
            raise VaultUnreachable("the vault is down")
        self._left -= 1
        self._inner.write(path, data, expected)
