"""A full disk: small writes are still taken, what is beyond is refused before anything changed (spec 6.2)."""
from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from echo_core.state import reserve
from echo_core.state.database import StateDatabase
from echo_core.state.reserve import BYTES, PIECE, Reserve
from echo_offline import run
from echo_replay import flush
from echo_tools import BY_NAME
from opsfixture import get, put
from serverproc import running_server
from test_queue import outbox_ctx
from test_server_queue import come_back, go_away, health, until

ROOM = 48 * 1024 * 1024
"""Size of the disks that are really full."""
SMALL = 512 * 1024
NOTES = 40
"""Notes that share the large lines."""


def used(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_reserve_is_real_room_private_and_made_whole_again(tmp_path: Path) -> None:
    """Its blocks are allocated, each write gets one piece, and it comes back when there is room."""
    kept = Reserve(str(tmp_path / "state"))
    assert (kept.left(), kept.give()) == (0, False)
    assert kept.fill()
    facts = os.stat(tmp_path / "state" / reserve.FILE)
    assert (facts.st_size, facts.st_mode & 0o777) == (BYTES, 0o600)
    assert facts.st_blocks * 512 >= BYTES
    for number in range(1, BYTES // PIECE + 1):
        assert kept.give()
        assert kept.left() == BYTES - number * PIECE
    assert not kept.give()
    assert kept.state()[0] is False
    assert kept.fill()
    assert kept.state()[0] is True


def test_a_reserve_is_not_made_of_the_last_free_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As much again has to stay free."""
    monkeypatch.setattr(Reserve, "_free", lambda self: 2 * BYTES - 1)
    assert not Reserve(str(tmp_path)).fill()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("error", "gives"), [
    (OSError(errno.ENOSPC, "no space"), True), (OSError(errno.EDQUOT, "quota"), True),
    (OSError(errno.EACCES, "no"), False), (ValueError("full"), False),
])
def test_only_a_full_disk_opens_the_reserve(tmp_path: Path, error: Exception, gives: bool) -> None:
    """Nothing else is cured by room."""
    kept = Reserve(str(tmp_path))
    kept.fill()
    assert kept.helps_after(error) is gives
    assert kept.left() == BYTES - PIECE * gives


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A state folder whose disk is full: its databases grow only by what the reserve, 512 KiB here, gives back."""
    monkeypatch.setattr(reserve, "BYTES", SMALL)
    monkeypatch.setattr(reserve, "PIECE", SMALL // 8)
    state = tmp_path / "state"
    real = StateDatabase._once
    Reserve(str(state)).fill()
    room = used(state) + SMALL // 32

    def once(self: StateDatabase, work: Any, durable: bool) -> Any:
        if used(state) > room:
            self.close()
            raise OSError(errno.ENOSPC, "no space left on this disk")
        return real(self, work, durable)

    monkeypatch.setattr(StateDatabase, "_once", once)
    monkeypatch.setattr(Reserve, "_free", lambda self: 0)
    return monkeypatch


def test_writes_are_kept_in_the_reserve_and_refused_beyond_it(
    tmp_path: Path, small_disk: pytest.MonkeyPatch,
) -> None:
    """Each acknowledged line arrives once when the vault is back; the refused one has changed nothing."""
    ctx = outbox_ctx(tmp_path)
    put(tmp_path, "list.md", "# List\n\n## Log\n\n")
    (tmp_path / "vault").rename(tmp_path / "away")
    before = Reserve(str(tmp_path / "state")).left()
    answers = []
    while (not answers or answers[-1]["ok"]) and len(answers) < 3000:
        text = f"marker {len(answers)} {os.urandom(2500).hex()}"
        answers.append(run(BY_NAME["echo_patch_note"], {"path": "list.md", "operation": "append", "content": text,
                                                        "target_type": "heading", "target": "Log"}, ctx))
    assert (answers[-1]["ok"], answers[-1]["code"]) == (False, "no-undo")
    assert before == SMALL
    assert Reserve(str(tmp_path / "state")).left() == 0
    assert len(answers) > 20
    small_disk.undo()
    assert ctx.outbox is not None
    assert ctx.outbox.depth().waiting == len(answers) - 1
    (tmp_path / "away").rename(tmp_path / "vault")
    assert len(flush(ctx).arrived) == len(answers) - 1
    text = get(tmp_path, "list.md")
    assert [text.count(f"marker {number} ") for number in range(len(answers))] == [1] * (len(answers) - 1) + [0]
    ctx.close()


@contextlib.contextmanager
def tmpfs(folder: Path) -> Iterator[Path]:
    """A disk of ROOM bytes at `folder`; the test is skipped where that cannot be mounted."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "none", str(folder)], capture_output=True,
                             check=False)
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root and CAP_SYS_ADMIN")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill_up(folder: Path) -> Path:
    """Leave not one free block; the file that takes them."""
    filler = folder / "filler"
    with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    return filler


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("away", [True, False], ids=["vault away", "vault there"])
def test_a_really_full_disk_still_takes_small_writes(tmp_path: Path, away: bool) -> None:
    """Vault and state on one full disk: what is acknowledged is there in the end, once; what is refused is not."""
    with tmpfs(tmp_path / "disk") as disk:
        (disk / "vault").mkdir()
        for name in ("list.md", *(f"big-{number}.md" for number in range(NOTES))):
            (disk / "vault" / name).write_text("# List\n", encoding="utf-8")
        with running_server(disk) as server:
            until(lambda: (server.state / reserve.FILE).exists())
            if away:
                go_away(server)
            filler = fill_up(disk)
            answers = [server.call("echo_append_note", path="list.md", line=f"- marker {number:04} " + "x" * 200)
                       for number in range(40)]
            assert [answer["ok"] for answer in answers] == [True] * 40
            assert all(bool(answer.get("queued")) is away for answer in answers)
            big = []
            while (not big or big[-1]["ok"]) and len(big) < 1200:
                big.append(server.call("echo_append_note", path=f"big-{len(big) % NOTES}.md",
                                       line=f"- big {len(big):04} " + "x" * 15000))
            assert not big[-1]["ok"]
            assert big[-1]["code"] in ("no-undo", "vault-unreachable"), big[-1]
            assert (server.state / reserve.FILE).stat().st_size < PIECE
            filler.unlink()
            if away:
                come_back(server)
            until(lambda: health(server, "outbox_depth") == 0)
            text = "".join(path.read_text(encoding="utf-8") for path in server.vault.glob("*.md"))
            for number in range(40):
                assert text.count(f"- marker {number:04} ") == 1
            for number, answer in enumerate(big):
                assert text.count(f"- big {number:04} ") == (1 if answer["ok"] else 0), number
            until(lambda: (server.state / reserve.FILE).stat().st_size == BYTES)
