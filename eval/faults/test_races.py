"""Races of full size, and caches and locks that another process invalidates."""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from echo_core.errors import EchoError
from echo_core.vault import folder_write, open_folder
from echo_core.vault.folder import FolderVault
from serverproc import environment, running_server
from test_concurrency import by_command_line, put, text_of

from faults.until import until

slow = pytest.mark.slow
pytestmark = pytest.mark.timeout(400)
Property = Callable[[str, object], None]


LOCK = "_agent/locks/index.json"


@slow
def test_a_killed_holder_of_the_lock_holds_nobody_up(tmp_path: Path) -> None:
    """CC-08: a command line is killed while it holds the index lock; the server goes on, its entry is in the index."""
    (tmp_path / "vault").mkdir()
    with running_server(tmp_path, ECHO_LOCK_TTL="5") as server:
        assert server.call("echo_capture", title="Ada", kind="person", body="x")["ok"]
        with holder(tmp_path) as process:
            until(lambda: (server.vault / LOCK).exists(), 30)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        held = json.loads((server.vault / LOCK).read_text())
        assert held["ttl_s"] == 5
        made = server.call("echo_capture", title="Grace", kind="person", body="y")
        assert made["ok"], made
        until(lambda: "Grace" in text_of(server, "_agent/index/entities.json"), 30)
        until(lambda: not (server.vault / LOCK).exists())
        assert "Ada" in text_of(server, "_agent/index/entities.json")
        assert [path.name for path in (server.vault / "_agent/locks").glob("*.json")] == []


HOLD = """
import sys, time
import echo_config, echo_offline
ctx = echo_offline.open_cli(echo_config.read_settings())
with ctx.index._lock.held():
    time.sleep(60)
"""


@contextlib.contextmanager
def holder(folder: Path) -> Any:
    """A process of its own that takes the index lock and goes to sleep."""
    env = environment(folder / "vault", folder / "cli-state", ECHO_LOCK_TTL="5",
                      ECHO_MCP_TOKEN="")
    scripts = Path(__file__).parent.parent.parent / "skills/echo-memory/scripts"
    process = subprocess.Popen([sys.executable, "-c", HOLD], env={**env, "PYTHONPATH": str(scripts)})
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@slow
def test_no_cache_is_the_base_of_a_write(tmp_path: Path) -> None:
    """CC-11, CC-12: read through the server, changed by the command line, written by the server at once: both stand."""
    path = "resources/people/ada.md"
    with running_server(tmp_path, ECHO_MCP_INDEX_TTL="600", ECHO_CLOCK="2026-11-30T14:05:09+01:00") as server:
        put(server, path, "---\ntype: person\ntitle: Ada\n---\n\n# Ada\n\n## Log\n\n- start\n\n## State\n\nold\n")
        for turn in range(5):
            assert server.call("echo_get_note", path=path)["ok"]
            by_command_line(server, [
                ("echo_append_note", {"path": path, "line": f"- by hand {turn}", "section": "Log"}),
                ("echo_capture", {"title": f"Shell {turn}", "kind": "concept", "body": f"Body {turn} of it."})])
            for tool, arguments in (
                ("echo_append_note", {"path": path, "line": f"- server {turn}", "section": "Log"}),
                ("echo_patch_note", {"path": path, "operation": "replace", "target_type": "heading",
                                     "target": "State", "content": f"state {turn}"}),
                ("echo_capture", {"title": "Ada", "kind": "person", "body": f"Fact {turn}.", "merge_into": path}),
                ("echo_capture", {"title": f"Server {turn}", "kind": "concept", "body": f"Other {turn} thing."}),
            ):
                assert server.call(tool, **arguments)["ok"]
            text = text_of(server, path)
            for word in (f"- by hand {turn}", f"- server {turn}", f"state {turn}", f"Fact {turn}."):
                assert text.count(word) == 1, (turn, word)
            titles = {entry["title"] for entry in json.loads(text_of(server, "_agent/index/entities.json"))[
                "entities"].values()}
            assert {f"{who} {n}" for who in ("Shell", "Server") for n in range(turn + 1)} <= titles


@slow
def test_readers_of_a_large_note_meet_whole_versions_only(tmp_path: Path) -> None:
    """CC-14: two versions of a megabyte in turn, five readers with a thousand reads each; no temp file is listed."""
    (tmp_path / "vault").mkdir()
    vault = FolderVault(str(tmp_path / "vault"))
    versions = [b"a" * 1_000_000, b"b" * 1_000_000]
    wanted = {hashlib.sha256(version).hexdigest() for version in versions}
    vault.write("big.md", versions[0], None)
    seen: set[str] = set()
    listed: set[str] = set()
    done = threading.Event()

    def read() -> None:
        for turn in range(1000):
            seen.add(hashlib.sha256(vault.read("big.md")).hexdigest())
            if turn % 50 == 0:
                listed.update(vault.list_folder("").files)
                listed.update(stat.path for stat in vault.walk())

    readers = [threading.Thread(target=read) for _ in range(5)]
    for reader in readers:
        reader.start()
    turn = 0
    while any(reader.is_alive() for reader in readers):
        vault.write("big.md", versions[(turn + 1) % 2], versions[turn % 2])
        turn += 1
    done.set()
    assert turn > 20
    assert seen == wanted
    assert {name for name in listed if not name.startswith("_agent/")} == {"big.md"}


@slow
def test_ten_thousand_writes_into_a_folder_that_is_swapped_for_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CR-13: the folder is a link to outside every other moment; no byte lands there."""
    monkeypatch.setattr(folder_write, "sync", lambda fd: None)  # the links are on trial here, not the disk
    monkeypatch.setattr(open_folder.OpenFolder, "sync", lambda self: None)
    root, outside = tmp_path / "vault", tmp_path / "outside"
    (root / "notes").mkdir(parents=True)
    outside.mkdir()
    (outside / "1.md").write_text("canary")
    vault, done, swaps = FolderVault(str(root)), threading.Event(), 0

    def swap() -> None:
        nonlocal swaps
        while not done.is_set():
            for step in (lambda: os.rename(root / "notes", root / f"aside{swaps % 2}"),
                         lambda: os.symlink(outside, root / "notes"), lambda: os.unlink(root / "notes"),
                         lambda: os.rename(root / f"aside{swaps % 2}", root / "notes")):
                with contextlib.suppress(OSError):
                    step()
            swaps += 1
            time.sleep(0.0005)  # else this thread keeps the interpreter to itself

    swapper = threading.Thread(target=swap)
    swapper.start()
    fine = 0
    for number in range(10_000):
        with contextlib.suppress(EchoError):
            vault.write(f"notes/{number}.md", b"x", None)
            fine += 1
    done.set()
    swapper.join()
    assert swaps > 100
    assert fine > 0
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"1.md": "canary"}
