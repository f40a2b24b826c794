"""A backup killed at any step leaves the older ones as they were and nothing that looks finished (fault BK-01)."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from backupdesk import WATCH, make_desk, tree, zips
from echo_core.state.database import StateDatabase
from echo_mcp.backup.restoring import restore_folder
from fakes.forked import dying_at
from serverproc import environment

# Test runners have threads of their own; the forked children use nothing of them.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
STEPS: list[tuple[Any, str]] = [(os, "rename"), (os, "unlink"), (os, "fsync"), (os, "mkdir"), (StateDatabase, "run")]


def contents(tmp_path: Path) -> dict[str, bytes]:
    """Every finished backup by name."""
    return {name: (tmp_path / "state/backups" / name).read_bytes() for name in zips(tmp_path)}


def test_a_backup_killed_at_any_step_is_there_and_whole_or_not_there(tmp_path: Path) -> None:
    """Before each change of a name, each sync and each row: the next run clears up and goes on, rotation included."""
    desk = make_desk(tmp_path, keep=2)
    (tmp_path / "vault/sub").mkdir()
    (tmp_path / "vault/sub/a.md").write_text("first")
    desk.back_up(WATCH)
    step, died = 0, True
    while died:
        step += 1
        (tmp_path / "vault/sub/a.md").write_text(f"text {step}")
        before = contents(tmp_path)
        died = dying_at(step, STEPS, lambda: desk.back_up(WATCH))
        after = contents(tmp_path)
        for name in after:
            assert after[name] == before.get(name, after[name]), step
            desk.verify(name, WATCH)
        assert set(list(before)[-1:]) <= set(after), f"the newest one went at step {step}"
        newest = desk.back_up(WATCH).name
        assert zips(tmp_path)[-1] == newest
        assert sorted(os.listdir(tmp_path / "state/backups")) == [".lock", *zips(tmp_path)]
        with desk.open(newest) as archive:
            assert b"".join(archive.blocks(next(archive.files()))) == f"text {step}".encode()
    assert step > 8


def test_a_restore_killed_at_any_step_can_be_repeated(tmp_path: Path) -> None:
    """The target is empty to a reader, or complete: never a part of the vault without a word."""
    desk = make_desk(tmp_path)
    (tmp_path / "vault/sub").mkdir()
    for name in ("sub/a.md", "sub/b.md", "c.md"):
        (tmp_path / "vault" / name).write_text(name)
    backup, target = desk.back_up(WATCH).name, tmp_path / "target"

    def restore() -> None:
        with desk.open(backup) as archive:
            restore_folder(archive, str(target), WATCH)

    steps: list[tuple[Any, str]] = [(os, "mkdir"), (os, "utime"), (os, "sync"), (os, "fchmod")]
    step, died = 0, True
    while died:
        step += 1
        died = dying_at(step, steps, restore)
        found = tree(target) if target.exists() else {}
        assert found in ({}, tree(tmp_path / "vault")), step
        if died:
            restore()
            assert tree(target) == tree(tmp_path / "vault")
        for path in sorted(target.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    assert step > 8


def test_a_process_killed_in_the_middle_leaves_nothing_that_looks_finished(tmp_path: Path) -> None:
    """The real command and a real SIGKILL; its row of the table says that it was interrupted."""
    desk = make_desk(tmp_path)
    (tmp_path / "vault/a.md").write_text("first")
    desk.back_up(WATCH)
    before = contents(tmp_path)
    for number in range(40):
        (tmp_path / f"vault/{number}.md").write_bytes(os.urandom(500_000))
    process = subprocess.Popen([sys.executable, "-m", "echo_mcp", "backup", "now"],
                               env=environment(tmp_path / "vault", tmp_path / "state"), stdout=subprocess.DEVNULL)
    shelf, end = tmp_path / "state/backups", time.monotonic() + 30
    while not list(shelf.glob("*.part")) and time.monotonic() < end:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert contents(tmp_path) == before
    assert list(shelf.glob("*.part"))
    second = desk.back_up(WATCH)
    assert zips(tmp_path) == [*before, second.name]
    assert not list(shelf.glob("*.part"))
    assert [row.result for row in desk.runs.recent("backup")] == ["ok", "interrupted", "ok"]
