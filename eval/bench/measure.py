"""What the bench measures of one vault: start, memory, calls side by side with the bare route, tokens."""
from __future__ import annotations

import contextlib
import json
import os
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from serverproc import Server, environment, spawned
from vault import BenchNote
from wire import Wire, mcp, post, rest, rpc

HERE = Path(__file__).parent
SCRIPTS = HERE.parent.parent / "skills/echo-memory/scripts"
SKILL = SCRIPTS.parent / "SKILL.md"
Row = dict[str, Any]
WARM_UP = 10
BACKUP_S = 300.0
CHARS_PER_TOKEN = 4


@contextlib.contextmanager
def started(which: str, vault: Path, state: Path, **env: str) -> Iterator[tuple[Server, Row]]:
    """A server of `servers.py`, and in seconds how long it took to serve and to know all notes."""
    begun = time.monotonic()
    server = spawned([sys.executable, str(HERE / "servers.py"), which], environment(vault, state, **env), vault, state)
    try:
        while not server.port and server.process.poll() is None:
            time.sleep(0.005)
        times = {"serving_s": round(time.monotonic() - begun, 2)}
        if which == "echo":
            while not server.client.get(f"{server.base}/health").json()["index_ready"]:
                time.sleep(0.02)
            times["all_findable_s"] = round(time.monotonic() - begun, 2)
            times["rss_mb"] = resident_mb(server)
        yield server, times
    finally:
        server.stop()


def backed_up(server: Server) -> None:
    """Return when the backup that a first start makes is done: it takes time from the calls beside it, once a night."""
    end = time.monotonic() + BACKUP_S
    while not any('"event": "backup"' in line for line in server.lines):
        assert time.monotonic() < end, "the first backup does not end"
        time.sleep(0.1)


def resident_mb(server: Server) -> int:
    """Resident memory of a server in MB, 0 where the system does not tell."""
    status = Path(f"/proc/{server.process.pid}/status")
    if not status.exists():
        return 0
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) // 1024


def calls(notes: list[BenchNote], turn: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """One call of each kind that is measured, other ones each turn.

    The first recall takes in what the turn before has written, the second finds nothing new.
    """
    note = notes[turn * 37 % len(notes)]
    return {
        "no-op": ("bench_noop", {}),
        "resolve": ("echo_resolve", {"mention": note.title}),
        "get_note": ("echo_get_note", {"path": note.path}),
        "recall": ("echo_recall", {"query": note.phrase}),
        "recall again": ("echo_recall", {"query": notes[turn * 53 % len(notes)].phrase}),
        "append_note": ("echo_append_note", {"path": note.path, "line": f"- line of the bench, number {turn}."}),
        "capture": ("echo_capture", {
            # Nothing like any title so far, else the duplicate gate is what is measured.
            "title": " ".join(f"x{os.urandom(4).hex()}" for _ in range(3)), "kind": "concept",
            "body": f"What is known about {notes[turn * 91 % len(notes)].title}: {note.phrase}."}),
        "capture a line": ("echo_capture", {"title": f"thought {os.urandom(4).hex()}x."}),
    }


def latencies(server: Server, bare: Server, notes: list[BenchNote], rounds: int) -> list[Row]:
    """p50 and p95 in ms of every call by MCP and by REST, and as ratios to the bare route in the same rounds."""
    echo, plain = Wire(server.port), Wire(bare.port)
    times: dict[tuple[str, str], list[float]] = {}
    for turn in range(-WARM_UP, rounds):
        measured = {("bare route", "HTTP"): plain.timed(post("/bare", {"query": "one two three"}))[0]}
        for number, (door, request) in enumerate((("MCP", mcp), ("REST", rest))):
            for kind, (tool, arguments) in calls(notes, 2 * (turn + WARM_UP) + number).items():
                ms, answer = echo.timed(request(tool, arguments))
                envelope = answer["result"]["structuredContent"] if door == "MCP" else answer["data"]
                assert envelope["ok"], (tool, envelope)
                measured[kind, door] = ms
        for key, ms in measured.items() if turn >= 0 else ():
            times.setdefault(key, []).append(ms)
    echo.close()
    plain.close()
    base = _quantiles(times["bare route", "HTTP"])
    rows = []
    for (kind, door), found in times.items():
        p50, p95 = _quantiles(found)
        rows.append({"call": kind, "door": door, "p50_ms": round(p50, 2), "p95_ms": round(p95, 2),
                     "p50_ratio": round(p50 / base[0], 1), "p95_ratio": round(p95 / base[1], 1)})
    return rows


def _quantiles(times: list[float]) -> tuple[float, float]:
    cuts = statistics.quantiles(times, n=20)
    return cuts[9], cuts[18]


def schema_tokens(server: Server) -> int:
    """Tokens of tools/list as a model gets it: name, description and input schema of each tool."""
    wire = Wire(server.port)
    listed = wire.timed(rpc("tools/list", {}))[1]["result"]["tools"]
    wire.close()
    shown = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in listed
             if tool["name"] != "bench_noop"]
    return tokens(json.dumps(shown, ensure_ascii=False, separators=(",", ":")))


def tokens(text: str) -> int:
    """Tokens of a text, counted as characters divided by four."""
    return round(len(text) / CHARS_PER_TOKEN)


def session(notes: list[BenchNote], mark: str) -> list[tuple[str, dict[str, Any], list[str]]]:
    """Load, capture, recall: tool, arguments, and the words of the same command line. mark: makes the title new."""
    body = "Runs the workshop in Graz since 2019.\nPrefers calls in the morning."
    return [
        ("echo_load", {}, ["load"]),
        ("echo_capture", {"title": f"Marta Weiss {mark}", "kind": "person", "body": body},
         ["capture", f"Marta Weiss {mark}", "--kind", "person", "--body", body]),
        ("echo_recall", {"query": notes[5].phrase}, ["recall", notes[5].phrase]),
    ]


def tokens_by_tool(server: Server, notes: list[BenchNote]) -> Row:
    """Tokens a model spends on load, capture and recall by tool: the calls it writes, the structure it reads."""
    wire, spent = Wire(server.port), {}
    for tool, arguments, _ in session(notes, "Tool"):
        result = wire.timed(mcp(tool, arguments))[1]["result"]
        written = json.dumps({"name": tool, "arguments": arguments}, ensure_ascii=False)
        structure = json.dumps(result["structuredContent"], ensure_ascii=False, separators=(",", ":"))
        spent[tool] = {"written": tokens(written), "read_structure": tokens(structure),
                       "read_text": tokens(result["content"][0]["text"])}
    wire.close()
    return spent


def tokens_by_shell(vault: Path, state: Path, notes: list[BenchNote]) -> Row:
    """The same by command line: the shell calls a model writes and what they print; CPU seconds of each call."""
    spent = {}
    for tool, _, words in session(notes, "Shell"):
        command = shlex.join(["python3", "skills/echo-memory/scripts/echo.py", *words])
        written = json.dumps({"name": "Bash", "arguments": {"command": command}}, ensure_ascii=False)
        printed, cpu_s = command_line(vault, state, words)
        spent[tool] = {"written": tokens(written), "read_text": tokens(printed), "cpu_s": cpu_s}
    return spent


def command_line(vault: Path, state: Path, words: list[str]) -> tuple[str, float]:
    """(what a command line prints, processor seconds it took)."""
    env = {**environment(vault, state), "PYTHONPATH": ""}
    before = os.times()
    done = subprocess.run([sys.executable, "-S", str(SCRIPTS / "echo.py"), *words], env=env, capture_output=True,
                          text=True, encoding="utf-8", check=True)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return done.stdout, round(spent, 2)
