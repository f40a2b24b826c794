"""How the server behaves while 60 calls are stuck in a vault that hangs (spec 4.1, 6.7), against the same calls before.

    PYTHONPATH=eval python eval/bench/hung.py

The vault is the double of the REST API, behind it the notes of the bench.
"""
from __future__ import annotations

import math
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fakes.olrapi import Olrapi
from measure import command_line, started
from serverproc import Server
from vault import BenchNote, make_vault
from wire import Wire, mcp, rpc

KEY = "bench-key"
STUCK = 60
TIMEOUT_S = 10
Row = dict[str, Any]


def measured(count: int = 1000) -> Row:
    """p50, p99 and longest in ms of each call that needs no vault, calm and hung, and how the stuck calls ended."""
    with tempfile.TemporaryDirectory(prefix="echo-hung-") as name:
        folder = Path(name)
        vault = folder / "vault"
        vault.mkdir()
        command_line(vault, folder / "cli-state", ["bootstrap"])
        notes = make_vault(vault, count)
        with Olrapi(str(vault), key=KEY) as api, started(
            "echo", vault, folder / "state", ECHO_BASE=api.url, ECHO_KEY=KEY, ECHO_TIMEOUT=str(TIMEOUT_S),
        ) as (server, _):
            wire = Wire(server.port)
            wire.timed(mcp("echo_load", {}))
            calm: dict[str, list[float]] = {}
            for turn in range(60):
                _round(wire, notes, turn, calm)
            api.faults.add("hang")
            hung: dict[str, list[float]] = {}
            with ThreadPoolExecutor(STUCK) as pool:
                calls = [pool.submit(_stuck, server, number) for number in range(STUCK)]
                while _open(server) < STUCK:  # their arrival is not what is measured
                    time.sleep(0.01)
                turn = 0
                while not all(call.done() for call in calls):
                    _round(wire, notes, turn, hung)
                    turn += 1
            wire.close()
            return {
                "notes": count, "timeout_s": TIMEOUT_S, "stuck_calls": STUCK, "calls_meanwhile": len(hung["/health"]),
                "longest_stuck_s": round(max(call.result() for call in calls), 2),
                "calls": [{"call": call, "calm": _told(calm[call]), "hung": _told(hung[call])} for call in calm],
            }


def table(found: Row) -> list[str]:
    """The report for people."""
    lines = ["", f"{found['stuck_calls']} calls stuck in a vault that hangs ({found['notes']} notes): the last of them "
             f"ended after {found['longest_stuck_s']} s of ECHO_TIMEOUT {found['timeout_s']} s; "
             f"{found['calls_meanwhile']} rounds meanwhile",
             f"  {'meanwhile, ms':<16}{'calm p50':>9}{'p99':>8}{'hung p50':>10}{'p99':>8}{'longest':>9}"]
    for row in found["calls"]:
        calm, hung = row["calm"], row["hung"]
        lines.append(f"  {row['call']:<16}{calm['p50']:>9}{calm['p99']:>8}{hung['p50']:>10}{hung['p99']:>8}"
                     f"{hung['longest']:>9}")
    return lines


def _round(wire: Wire, notes: list[BenchNote], turn: int, times: dict[str, list[float]]) -> None:
    """One call of each kind. A load begins to need no vault as soon as it is known to be silent."""
    note = notes[turn * 37 % len(notes)]
    for name, request in (
        ("/health", b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"), ("tools/list", rpc("tools/list", {})),
        ("echo_resolve", mcp("echo_resolve", {"mention": note.title})),
        ("echo_recall", mcp("echo_recall", {"query": note.phrase})), ("echo_load", mcp("echo_load", {})),
    ):
        times.setdefault(name, []).append(wire.timed(request)[0])


def _open(server: Server) -> int:
    """How many calls the server has taken in and not answered."""
    told = server.client.get(f"{server.base}/metrics").text
    return int(next(line.split()[1] for line in told.splitlines() if line.startswith("echo_calls_open ")))


def _stuck(server: Server, number: int) -> float:
    """Seconds that a call which needs the vault took to end."""
    begun = time.monotonic()
    envelope = server.call("echo_get_note", path=f"not/known/{number}.md")
    assert envelope["code"] == "vault-unreachable"
    return time.monotonic() - begun


def _told(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    at = {"p50": 0.5, "p99": 0.99, "longest": 1.0}
    return {name: round(ordered[math.ceil(share * len(ordered)) - 1], 1) for name, share in at.items()}


if __name__ == "__main__":
    print("\n".join(table(measured())))
