"""What a long queue costs: memory, start, keeping one more write, and the drain when the vault is back (spec 6.2).

    PYTHONPATH=eval python eval/waitingload.py [--items 200000] [--notes 2000] [--bytes 200] [--vault folder|rest]

The waiting writes are appends, spread over the notes in turn. Prints one JSON object.
"""
from __future__ import annotations

import argparse
import contextlib
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from echo_core.vault.rest_address import parse_address
from echo_queue import Outbox
from echo_queue_rows import FILE, Running, as_json, call_of
from serverproc import Server, environment, spawned

KEY = "canary-key-93b1c0"
INSTANT = "2026-11-30T14:05:00+01:00"
SAMPLE_S = 0.2
KEPT_CALLS = 200
"""Writes that are kept behind the others, to time them."""
_INSERT = ("INSERT INTO intent (op_id, vault, tool, arguments, instant, state, call) "
           "VALUES (?, ?, 'echo_append_note', ?, ?, 'waiting', ?)")


def note_name(number: int) -> str:
    """The path of one of the notes."""
    return f"notes/note-{number:05}.md"


def text_of(number: int, size: int) -> str:
    """The line of a waiting write, about `size` characters."""
    words = f"- item {number:07} "
    return words + ("lorem ipsum dolor sit amet " * (size // 27 + 1))[:max(0, size - len(words))].rstrip()


def fill(state: Path, vault_name: str, items: int, notes: int, size: int) -> None:
    """Put `items` waiting appends into the server's outbox, as if each had been kept."""
    outbox = Outbox(str(state), vault_name, "server")
    first = {"path": note_name(0), "line": text_of(0, size)}
    outbox.keep(Running(f"{0:012x}", "echo_append_note", first, INSTANT, call_of("echo_append_note", first)))
    outbox.close()

    def rows() -> Iterator[tuple[str, ...]]:
        for number in range(1, items):
            values = {"path": note_name(number % notes), "line": text_of(number, size)}
            yield (f"{number:012x}", vault_name, as_json(values), INSTANT, call_of("echo_append_note", values))

    with contextlib.closing(sqlite3.connect(state / "server" / FILE)) as database, database:
        database.executemany(_INSERT, rows())


class Memory(threading.Thread):
    """Watches the resident memory of a process; peak: the most that was seen, in MB."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._status = Path(f"/proc/{pid}/status")
        self._ended = threading.Event()
        self.peak = 0.0
        self.start()

    def now(self) -> float:
        """Resident memory in MB."""
        line = next(line for line in self._status.read_text().splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    def run(self) -> None:
        while not self._ended.wait(SAMPLE_S):
            with contextlib.suppress(OSError, StopIteration):  # the process has ended
                self.peak = max(self.peak, self.now())

    def stop(self) -> float:
        """The peak; no more is looked at."""
        self._ended.set()
        self.join()
        return round(self.peak, 1)


class Backend:
    """The vault in `folder`/vault, which can go away: a folder, or a process with the double of the API."""

    def __init__(self, kind: str, folder: Path) -> None:
        self._vault, self._away = folder / "vault", folder / "away"
        self._rest = kind == "rest"
        self._process: subprocess.Popen[str] | None = None
        self._port = 0
        self.settings: dict[str, str] = {}
        self.name = str(self._vault)

    def come(self) -> None:
        """Be there."""
        if self._away.exists():
            self._away.rename(self._vault)
        if not self._rest:
            return
        command = [sys.executable, "-m", "fakes.olrapi", "--root", str(self._vault), "--key", KEY, "--no-race",
                   "--port", str(self._port)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        told = json.loads(self._process.stdout.readline())
        self._port = told["port"]
        self.settings = {"ECHO_BASE": told["url"], "ECHO_KEY": KEY}
        self.name = parse_address(told["url"]).key

    def go(self) -> None:
        """Be away."""
        if self._process is not None:
            self._process.terminate()
            self._process.communicate()
            self._process = None
        elif not self._rest:
            self._vault.rename(self._away)


@contextlib.contextmanager
def started(folder: Path, **env: str) -> Iterator[tuple[Server, float]]:
    """A server, and the seconds until its `/health` answered 200."""
    begun = time.monotonic()
    vault, state = folder / "vault", folder / "state"
    server = spawned([sys.executable, "-m", "echo_mcp", "serve"], environment(vault, state, **env), vault, state)
    try:
        server.wait()
        yield server, round(time.monotonic() - begun, 2)
    finally:
        server.stop()


def health(server: Server) -> dict[str, Any]:
    return dict(server.client.get(f"{server.base}/health").json())


def wait_for(server: Server, field: str, wanted: Any, patience_s: float) -> None:
    """Return when `/health` says so."""
    end = time.monotonic() + patience_s
    while health(server)[field] != wanted:
        assert time.monotonic() < end, health(server)
        time.sleep(0.1)


def measured(folder: Path, kind: str, items: int, notes: int, size: int) -> dict[str, Any]:
    """Everything about one queue. Memory in MB, times in seconds unless the name says otherwise."""
    (folder / "vault/notes").mkdir(parents=True)
    for number in range(notes):
        (folder / "vault" / note_name(number)).write_text(f"# Note {number}\n", encoding="utf-8")
    found: dict[str, Any] = {"vault": kind, "items": items, "notes": notes, "bytes": size}
    backend = Backend(kind, folder)
    backend.come()
    try:
        with started(folder, **backend.settings) as (server, _):
            wait_for(server, "index_ready", True, 120)
            memory = Memory(server.process.pid)
            wait_for(server, "last_backup_ok", True, 120)
            found["rss_empty_mb"] = memory.stop()
        fill(folder / "state", backend.name, items, notes, size)
        backend.go()
        with started(folder, **backend.settings) as (server, found["start_s"]):
            memory = Memory(server.process.pid)
            wait_for(server, "outbox_depth", items, 60)
            found["kept_p50_ms"], found["kept_p95_ms"] = kept(server, size)
            found["rss_waiting_mb"] = round(memory.peak, 1)
            begun = time.monotonic()
            backend.come()
            wait_for(server, "outbox_depth", 0, 60 + items / 20)
            found["drain_s"] = round(time.monotonic() - begun, 1)
            found["drain_per_s"] = round((items + KEPT_CALLS) / found["drain_s"])
            found["parked"] = health(server)["parked"]
            found["rss_peak_mb"] = memory.stop()
        with started(folder, **backend.settings) as (server, _):
            memory = Memory(server.process.pid)
            wait_for(server, "index_ready", True, 120)
            found["rss_after_mb"] = round(memory.now(), 1)
            memory.stop()
        found["missing"], found["doubled"] = looked_for(folder / "vault", items)
    finally:
        backend.go()
    return found


def kept(server: Server, size: int) -> tuple[float, float]:
    """Median and 95th percentile, in ms, of a write that is kept behind the others."""
    times = []
    for number in range(KEPT_CALLS):
        begun = time.monotonic()
        answer = server.call("echo_append_note", path=note_name(0), line=text_of(9_000_000 + number, size))
        times.append((time.monotonic() - begun) * 1000)
        assert answer.get("queued"), answer
    return round(statistics.median(times), 1), round(statistics.quantiles(times, n=20)[-1], 1)


def looked_for(vault: Path, items: int) -> tuple[int, int]:
    """How many of the items stand nowhere, and how many twice."""
    seen = [0] * items
    for note in (vault / "notes").iterdir():
        for line in note.read_text(encoding="utf-8").splitlines():
            if line.startswith("- item ") and int(line[7:14]) < items:
                seen[int(line[7:14])] += 1
    return seen.count(0), sum(count > 1 for count in seen)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=200_000)
    parser.add_argument("--notes", type=int, default=2000)
    parser.add_argument("--bytes", type=int, default=200)
    parser.add_argument("--vault", choices=("folder", "rest"), default="folder")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="echo-waiting-") as name:
        print(json.dumps(measured(Path(name), asked.vault, asked.items, asked.notes, asked.bytes), indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
