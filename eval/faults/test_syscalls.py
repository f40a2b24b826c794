"""Killed at each system call, and with syncs that fail: what was acknowledged is there, once, after the next start.

kill -9 is no power cut, so the order of writes, syncs and renames is read from an strace log as well.
"""
from __future__ import annotations

import re
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from opsfixture import snapshot

from faults.strace import cli, needs_strace, points, traced

pytestmark = [needs_strace, pytest.mark.timeout(540)]
slow = pytest.mark.slow
LIST = "# List\n\n## Status\n\nold\n\n## Log\n\n- start\n"
WRITES = {
    "append": ("append", "list.md", "- mk1x1z"),
    "patch": ("patch", "list.md", "replace", "heading", "Status", "mk1x1z"),
    "capture": ("capture", "Ada mk1x1z", "--kind", "person", "--body", "Wrote programs."),
    "inbox": ("capture", "thought mk1x1z"),
}


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """A vault with one list and the state of a command line that has used it."""
    folder = tmp_path / "used"  # the queue belongs to the path of the vault, so every run takes place here
    (folder / "vault").mkdir(parents=True)
    (folder / "vault/list.md").write_text(LIST)
    assert cli(folder, "append", "list.md", "- first").answer["ok"]
    return folder


def marks(folder: Path) -> int:
    """How many bodies, lines or titles hold the marker; a person's note repeats its title twice."""
    notes = {path: data.decode() for path, data in snapshot(folder).items() if path.endswith(".md")}
    lines = [line for path, text in notes.items() if not path.startswith("journal/") for line in text.splitlines()]
    return sum("mk1x1z" in line and not line.startswith("title:") for line in lines)


def away(folder: Path) -> None:
    (folder / "vault").rename(folder / "away")


def back(folder: Path) -> None:
    if (folder / "away").exists():
        (folder / "away").rename(folder / "vault")


def each_point(used: Path, tmp_path: Path, begin: Callable[[Path], None], words: tuple[str, ...]) -> int:
    """Kill the command line at each changing system call; afterwards a flush leaves the marker once, or not at all
    when it was not acknowledged. Returns how many calls there were."""
    template = tmp_path / "template"
    shutil.copytree(used, template)
    begin(used)
    undisturbed = cli(used, *words)
    assert undisturbed.answer["ok"], undisturbed.answer
    back(used)
    cli(used, "flush")
    assert marks(used) == 1
    final, kills = kept(used), 0
    for name, number in dict.fromkeys(points(undisturbed.log)):
        shutil.rmtree(used)
        shutil.copytree(template, used)
        begin(used)
        done = cli(used, *words, inject=f"{name}:signal=SIGKILL:when={number}")
        kills += done.killed
        back(used)
        (used / "vault/_agent/locks/index.json").unlink(missing_ok=True)  # as when its time is over
        flushed = cli(used, "flush").answer
        assert flushed is not None and flushed["ok"], (name, number, flushed)
        assert (flushed["left"], flushed["parked"]) == (0, []), (name, number, flushed)
        count = marks(used)
        assert count == 1 or (count == 0 and done.answer is None and words != ("flush",)), (name, number, count)
        assert not count or kept(used) == final, (name, number)
    shutil.rmtree(used)
    template.rename(used)
    assert kills > 10
    return kills


def kept(folder: Path) -> dict[str, bytes]:
    """The vault's files without locks and what a killed writer left."""
    return {path: data for path, data in snapshot(folder).items() if "/locks/" not in path and ".echo-" not in path}


@slow
@pytest.mark.parametrize("name", WRITES)
def test_a_write_killed_at_each_of_its_system_calls_is_whole(
    name: str, template: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """OB-03, HU-06: with the vault there, and, for an append and an inbox line, with the vault away."""
    found = each_point(template, tmp_path, lambda folder: None, WRITES[name])
    if name in ("append", "inbox"):
        found += each_point(template, tmp_path, away, WRITES[name])
    record_property("system calls", found)


@slow
@pytest.mark.parametrize("name", ["append", "patch", "capture"])
def test_a_replay_killed_at_each_of_its_system_calls_arrives_once(
    name: str, template: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """OB-04: a write that waited, killed anywhere between the first look at the queue and the end of its row."""
    away(template)
    assert cli(template, *WRITES[name]).answer["queued"]
    back(template)
    record_property("system calls", each_point(template, tmp_path, lambda folder: None, ("flush",)))


@slow
@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
@pytest.mark.parametrize("gone", [True, False])
def test_a_write_whose_sync_fails_is_not_acknowledged_or_is_there(
    error: str, gone: bool, template: Path, tmp_path: Path
) -> None:
    """OB-09: the n-th sync of the queue or of the vault fails; `ok: true` only for what is there after a restart."""
    fired, refused, used = 0, 0, tmp_path / "template"
    shutil.copytree(template, used)
    for call in ("fsync", "fdatasync"):
        for number in range(1, 11):
            shutil.rmtree(template)
            shutil.copytree(used, template)
            if gone:
                away(template)
            done = cli(template, *WRITES["append"], inject=f"{call}:error={error}:when={number}")
            hit = any("INJECTED" in line for line in done.log)
            assert done.answer is not None, "it must go on living"
            back(template)
            fired, refused = fired + hit, refused + (not done.answer["ok"])
            assert cli(template, "flush").answer["ok"]
            assert marks(template) == 1 if done.answer["ok"] else marks(template) <= 1, (call, number, done.answer)
            if not hit:
                break
    assert fired > 0
    assert refused > 0


def test_the_order_of_syncs_on_the_disk_survives_a_power_cut(template: Path, tmp_path: Path) -> None:
    """BK-02, INV1: the queue is synced before the vault is touched; each new name follows the sync of its bytes, and
    is followed by the sync of its folder; for notes and for backups."""
    log = cli(template, *WRITES["patch"]).log
    queue = first(log, r"f(data)?sync\(\d+<[^>]*queue\.sqlite3-wal>")
    named = first(log, r'rename\w*\([^"]*"[^"]*\.echo-\w+\.tmp", [^"]*"list\.md"')
    temp = re.search(r'"([^"]*\.echo-\w+\.tmp)"', log[named])
    synced = first(log, rf"f(data)?sync\(\d+<[^>]*{re.escape(Path(temp[1]).name)}>")
    folder = first(log, r"f(data)?sync\(\d+<[^>]*/vault>", named)
    assert queue < synced < named < folder
    backup = traced(template, [sys.executable, "-m", "echo_mcp", "backup", "--json", "now"], ECHO_MCP_TOKEN="").log
    named = first(backup, r'rename\w*\(.*\.zip\.part".*\.zip"')
    synced = first(backup, r"f(data)?sync\(\d+<[^>]*\.zip\.part>")
    assert synced < named < first(backup, r"f(data)?sync\(\d+<[^>]*/backups>", named)


def first(log: list[str], pattern: str, after: int = -1) -> int:
    """The number of the first line behind `after` that holds the pattern."""
    found = next((number for number, line in enumerate(log) if number > after and re.search(pattern, line)), None)
    assert found is not None, f"no {pattern} in\n" + "\n".join(log)
    return found


@slow
def test_a_backup_killed_at_each_of_its_syncs_and_renames(tmp_path: Path) -> None:
    """BK-01: nothing under a final name fails its test, older ones stay byte for byte, the next run clears up."""
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault/a.md").write_text("first")
    command = [sys.executable, "-m", "echo_mcp", "backup", "--json", "now"]
    assert traced(tmp_path, command, ECHO_MCP_TOKEN="").answer["ok"]
    shelf, kills = tmp_path / "state/backups", 0
    for call in ("fsync", "rename", "fdatasync"):
        for number in range(1, 8):
            before = {path.name: path.read_bytes() for path in shelf.glob("*.zip")}
            (tmp_path / "vault/a.md").write_text(f"{call} {number}")
            done = traced(tmp_path, command, f"{call}:signal=SIGKILL:when={number}", ECHO_MCP_TOKEN="")
            kills += done.killed
            for path in shelf.glob("*.zip"):
                assert path.read_bytes() == before.get(path.name, path.read_bytes())
                assert zipfile.ZipFile(path).testzip() is None
            assert set(before) <= {path.name for path in shelf.glob("*.zip")}
            if not done.killed:
                break
    assert kills > 3
    assert traced(tmp_path, command, ECHO_MCP_TOKEN="").answer["ok"]
    assert not list(shelf.glob("*.part"))
