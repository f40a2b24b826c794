"""One server behind an API that races on purpose, with many clients and the command line beside it (CC-02, CC-03)."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.olrapi import Olrapi, Race
from parallel import clients_at, together
from restvault import KEY
from serverproc import Server, running_server

SCRIPTS = Path(__file__).parent.parent / "skills/echo-memory/scripts"
CLOCK = "2026-11-30T14:05:09+01:00"
LOG = "areas/business/log.md"
MANY_CALLS = """
import json, sys
import echo_config, echo_offline, echo_tools
ctx = echo_offline.open_cli(echo_config.read_settings())
for name, arguments in json.loads(sys.stdin.read()):
    print(json.dumps(echo_offline.run(echo_tools.BY_NAME[name], arguments, ctx)["ok"]), flush=True)
"""
Call = tuple[str, dict[str, Any]]


class Host:
    """A server behind a double that holds the gap between read and write open."""

    def __init__(self, api: Olrapi, server: Server, folder: Path) -> None:
        self.api, self.server, self.folder = api, server, folder

    def put(self, path: str, text: str) -> Path:
        """Write a note as another program does."""
        file = self.folder / "vault" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def command_line(self, calls: list[Call]) -> list[bool]:
        """Whether each call went well, made one after the other by a command line's process on the same host."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ECHO_", "PYTHON"))}
        env = {**kept, "ECHO_BASE": self.api.url, "ECHO_KEY": KEY, "ECHO_STATE_DIR": str(self.folder / "cli"),
               "ECHO_CLOCK": CLOCK, "ECHO_TZ": "Europe/Vienna", "ECHO_TIMEOUT": "60", "PYTHONPATH": str(SCRIPTS)}
        done = subprocess.run([sys.executable, "-S", "-c", MANY_CALLS], env=env, input=json.dumps(calls), check=True,
                              capture_output=True, text=True, timeout=500)
        return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A server with an empty vault."""
    (tmp_path / "vault").mkdir()
    with (
        Olrapi(str(tmp_path / "vault"), key=KEY, race=Race(seconds=0.002)) as api,
        running_server(tmp_path, ECHO_BASE=api.url, ECHO_KEY=KEY, ECHO_TIMEOUT="60", ECHO_CLOCK=CLOCK,
                       ECHO_TZ="Europe/Vienna") as server,
    ):
        yield Host(api, server, tmp_path)


def sizes(few: Any, full: Any) -> Any:
    """A small run for every day, and the full one for `make faults`."""
    return pytest.mark.parametrize("size", [few, pytest.param(full, marks=pytest.mark.slow)], ids=["few", "full"])


@sizes((5, 8), (20, 50))
@pytest.mark.timeout(600)
def test_appends_by_many_clients_lose_no_line(host: Host, size: tuple[int, int]) -> None:
    """20 clients with 50 appends each: 1,000 lines, each once; the API alone loses 36 to 50 of a hundred."""
    clients, turns = size
    note = host.put(LOG, "# Log\n")
    answers = clients_at(host.server, [
        [("echo_append_note", {"path": LOG, "line": f"- mark {client}-{turn} end"}) for turn in range(turns)]
        for client in range(clients)])
    assert [answer for answer in answers if answer.get("action") != "appended"] == []
    assert sorted(note.read_text().splitlines()[1:]) == sorted(
        f"- mark {client}-{turn} end" for client in range(clients) for turn in range(turns))


@sizes(2, 20)
@pytest.mark.timeout(600)
def test_patches_of_ten_headings_keep_the_last_text_of_each(host: Host, size: int) -> None:
    """10 clients, a heading each, 20 rounds: every section holds what was acknowledged last, and nothing else."""
    note = host.put(LOG, "# Plan\n" + "".join(f"\n## Part {part}\n\nold\n" for part in range(10)))
    answers = clients_at(host.server, [
        [("echo_patch_note", {"path": LOG, "operation": "replace", "target_type": "heading", "target": f"Part {part}",
                              "content": f"Round {turn} of {part}."}) for turn in range(size)] for part in range(10)])
    assert [answer for answer in answers if answer.get("action") != "patched"] == []
    assert note.read_text() == "# Plan\n" + "".join(
        f"\n## Part {part}\n\nRound {size - 1} of {part}.\n" for part in range(10))


@sizes((2, 15), (10, 100))
@pytest.mark.timeout(600)
def test_the_server_and_a_command_line_lose_no_line_of_each_other(host: Host, size: tuple[int, int]) -> None:
    """Clients of the server and command lines of the same host at one note: every line once, 2,000 of them in full."""
    clients, turns = size
    note = host.put(LOG, "# Log\n")

    def calls(door: str, number: int) -> list[Call]:
        return [("echo_append_note", {"path": LOG, "line": f"- {door} {number}-{turn} end"}) for turn in range(turns)]

    shells = max(1, clients // 5)  # processes that make as many calls together as the clients do
    works = [lambda: [answer["ok"] for answer in clients_at(host.server, [calls("mcp", n) for n in range(clients)])]]
    for shell in range(shells):
        own = [call for number in range(shell, clients, shells) for call in calls("cli", number)]
        works.append(lambda own=own: host.command_line(own))
    assert all(all(found) for found in together(works))
    assert sorted(note.read_text().splitlines()[1:]) == sorted(
        f"- {door} {number}-{turn} end" for door in ("cli", "mcp") for number in range(clients)
        for turn in range(turns))
