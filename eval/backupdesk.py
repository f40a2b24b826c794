"""A vault folder with backups, for tests: the parts in this process, and `echo-mcp backup` as a process."""
from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from echo_core.clock import Clock
from echo_mcp.backup import space
from echo_mcp.backup.desk import Desk
from echo_mcp.backup.folder_source import FolderSource
from echo_mcp.backup.shelf import Shelf
from echo_mcp.backup.watch import Watch
from echo_mcp.runs import Runs
from serverproc import environment

WATCH = Watch()


def make_desk(tmp_path: Path, clock: Clock | None = None, keep: int = 30) -> Desk:
    """The backups of `tmp_path`/vault in `tmp_path`/state; both folders are made."""
    vault, state = tmp_path / "vault", tmp_path / "state"
    vault.mkdir(exist_ok=True)
    state.mkdir(exist_ok=True)
    shelf, clock = Shelf(str(state)), clock or Clock("UTC")
    return Desk(shelf, lambda: FolderSource(str(vault), shelf.folder), clock, keep, Runs(str(state), clock))


def fill_disk(patch: pytest.MonkeyPatch) -> None:
    """Let it look as if no disk had room for anything."""
    patch.setattr(space, "RESERVE", 1 << 60)
    patch.setattr(space, "RESERVE_SHARE", 2.0)


def zips(tmp_path: Path) -> list[str]:
    """Names of the finished backups, oldest first."""
    return sorted(path.name for path in (tmp_path / "state/backups").glob("echo-*.zip"))


def tree(folder: Path, modes: bool = True) -> dict[str, Any]:
    """Everything in a folder by exact name: (SHA-256, mode) of a file, mode of a folder; dot names left out."""
    found: dict[str, Any] = {}
    for above, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in folders + [name for name in files if not name.startswith(".")]:
            path = Path(above) / name
            mode = stat.S_IMODE(path.stat().st_mode) if modes else 0
            relative = str(path.relative_to(folder))
            if path.is_dir():
                if modes:
                    found[relative] = mode
            else:
                found[relative] = (hashlib.sha256(path.read_bytes()).hexdigest(), mode)
    return found


def command(tmp_path: Path, *words: str, before: Callable[[], None] | None = None, **env: str) -> tuple[int, Any]:
    """(exit code, parsed answer or None) of `echo-mcp backup --json WORDS`. before: runs in the child first."""
    done = subprocess.run(
        [sys.executable, "-m", "echo_mcp", "backup", "--json", *words], capture_output=True, text=True,
        check=False,
        env=environment(tmp_path / "vault", tmp_path / "state", **{"ECHO_MCP_TOKEN": "", **env}), preexec_fn=before,
    )
    return done.returncode, json.loads(done.stdout) if done.stdout else None
