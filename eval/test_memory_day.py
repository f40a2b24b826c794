"""One whole memory day (spec 1.4) through every door; afterwards the vaults are the same, byte for byte.

The day is a generator of calls: it yields `(tool, arguments)` and gets the envelope, so that each door only has to
know how to make one call.
"""
from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from echo_core.vault.folder import LOCK_FILE
from fakes.olrapi import Olrapi, Race
from serverproc import TOKEN, Server, running_server

SCRIPTS = Path(__file__).parent.parent / "skills/echo-memory/scripts"
CLOCK = "2026-11-30T14:05:09+01:00"
ZONE = "Europe/Vienna"
Envelope = dict[str, Any]
Day = Generator[tuple[str, dict[str, Any]], Envelope, None]
CommandLine = Callable[[list[str]], Envelope]

VERBS = {
    "echo_load": ["load"], "echo_recall": ["recall"], "echo_resolve": ["resolve"], "echo_get_note": ["get"],
    "echo_get_scope": ["scope"], "echo_set_scope": ["scope"], "echo_capture": ["capture"], "echo_link": ["link"],
    "echo_append_note": ["append"], "echo_patch_note": ["patch"], "echo_move_note": ["move"],
    "echo_triage_inbox": ["triage"], "echo_reflect": ["reflect"], "echo_log_session": ["session-end"],
    "echo_rollup_data": ["rollup"], "echo_note_history": ["history"], "echo_restore_note": ["restore"],
    "echo_health": ["doctor"],
}


def memory_day() -> Day:
    """Load, recall, resolve, capture, gate, merge, append, patch, undo, triage, reflect, scope, log, load, rollup."""
    loaded = yield "echo_load", {}
    assert loaded["ok"] and loaded["sections"]["inbox_count"] == 0
    nothing = yield "echo_recall", {"query": "who is Ada Lovelace"}
    assert nothing["primary"] == []
    unknown = yield "echo_resolve", {"mention": "Ada Lovelace"}
    assert unknown["match"] is False and unknown["suggest_slug"] == "ada-lovelace"

    yield from capturing()
    yield from editing()
    yield from curating()
    yield from closing()


def capturing() -> Day:
    made = yield "echo_capture", {
        "title": "Ada Lovelace", "kind": "person", "aliases": ["Ada King"], "tags": ["math"],
        "body": "Mathematician who wrote the first program.",
    }
    assert (made["action"], made["path"]) == ("created", "resources/people/ada-lovelace.md")
    again = yield "echo_capture", {"title": "Ada King", "kind": "person", "body": "Countess of Lovelace."}
    assert again["ok"] is False and again["action"] == "duplicate-gate"
    assert again["candidates"][0]["slug"] == "ada-lovelace"
    merged = yield "echo_capture", {
        "title": "Ada King", "kind": "person", "body": "Countess of Lovelace.", "merge_into": "ada-lovelace",
    }
    assert (merged["action"], merged["path"]) == ("updated", "resources/people/ada-lovelace.md")
    project = yield "echo_capture", {
        "title": "Analytical Engine", "kind": "project",
        "body": "A machine that Ada Lovelace wrote for.\n\n## Status\n\nDrawing.\n\n## Log\n\n- begun",
    }
    assert project["action"] == "created" and project["links_added"] == ["resources/people/ada-lovelace.md"]
    repeated = yield "echo_capture", {
        "title": "Ada Lovelace", "kind": "person", "body": "Mathematician who wrote the first program.",
    }
    assert repeated["action"] == "unchanged"


def editing() -> Day:
    engine = "projects/active/analytical-engine.md"
    appended = yield "echo_append_note", {"path": engine, "line": "- ordered brass", "section": "Log"}
    assert appended["action"] == "appended"
    appended = yield "echo_append_note", {"path": engine, "line": "- ordered brass", "section": "Log"}
    assert appended["action"] == "unchanged"
    patch = {"path": engine, "operation": "replace", "target_type": "heading", "target": "Status",
             "content": "Cutting brass."}
    before = yield "echo_get_note", {"path": engine}
    patched = yield "echo_patch_note", patch
    assert patched["action"] == "patched"
    history = yield "echo_note_history", {"path": engine}
    newest = history["versions"][0]["id"]
    preview = yield "echo_restore_note", {"path": engine, "version_id": newest}
    assert preview["action"] == "preview" and "-Cutting brass." in preview["diff"]
    yield "echo_restore_note", {"path": engine, "version_id": newest, "confirm": True}
    restored = yield "echo_get_note", {"path": engine}
    assert restored["version"] == before["version"]
    redone = yield "echo_patch_note", patch
    assert redone["action"] == "patched"
    read = yield "echo_get_note", {"path": engine, "section": "Status"}
    assert "Cutting brass." in read["content"] and "ordered brass" not in read["content"]
    linked = yield "echo_link", {"a": "Ada King", "b": "Analytical Engine"}
    assert linked.get("a_changed") and linked.get("b_changed"), linked


def curating() -> Day:
    for text in ("Charles Babbage likes mechanical organs", "buy more brass"):
        line = yield "echo_capture", {"title": text}
        assert line["action"] == "inbox"
    listing = yield "echo_triage_inbox", {}
    assert [item["text"] for item in listing["items"]] == [
        "Charles Babbage likes mechanical organs", "buy more brass"]
    proposals = [
        {"line": listing["items"][0]["id"], "action": "capture", "title": "Charles Babbage", "kind": "person",
         "body": "Likes mechanical organs."},
        {"line": listing["items"][1]["id"], "action": "append", "path": "projects/active/analytical-engine.md"},
    ]
    preview = yield "echo_triage_inbox", {"proposals": proposals}
    assert len(preview["plan"]) == 2 and preview["preview_token"]
    applied = yield "echo_triage_inbox", {
        "proposals": proposals, "apply": True, "preview_token": preview["preview_token"]}
    assert [result["ok"] for result in applied["results"]] == [True, True]
    emptied = yield "echo_triage_inbox", {}
    assert emptied["items"] == []
    learned = [
        {"action": "capture", "title": "Use brass", "kind": "decision", "body": "Iron rusts."},
        {"action": "append", "path": "resources/people/charles-babbage.md", "line": "- prefers brass"},
    ]
    shown = yield "echo_reflect", {"proposals": learned}
    stored = yield "echo_reflect", {"proposals": learned, "apply": True, "preview_token": shown["preview_token"]}
    assert [result["ok"] for result in stored["results"]] == [True, True]


def closing() -> Day:
    scope = yield "echo_set_scope", {"scope": "Building the Analytical Engine"}
    assert scope["ok"]
    same = yield "echo_set_scope", {"scope": "Building the Analytical Engine"}
    assert same["action"] == "unchanged"
    session = {"slug": "brass day", "log_body": "Chose brass and ordered it.", "agent_log_line": "chose brass"}
    plan = yield "echo_log_session", session
    assert plan["plan"]
    logged = yield "echo_log_session", {**session, "apply": True, "preview_token": plan["preview_token"]}
    assert logged["ok"] and logged["path"] == "_agent/sessions/2026-11-30-1405-brass-day.md"
    loaded = yield "echo_load", {}
    assert "brass" in json.dumps(loaded["sections"]["last_session"])
    assert "Analytical Engine" in json.dumps(loaded["sections"]["scope"])
    assert loaded["sections"]["inbox_count"] == 0
    found = yield "echo_recall", {"query": "which metal did we decide to use?"}
    assert any(hit["path"].startswith("decisions/") or "brass" in hit["excerpt"] for hit in found["primary"])
    week = yield "echo_rollup_data", {"period": "week"}
    assert [row["path"] for row in week["projects"]] == ["projects/active/analytical-engine.md"]
    written = yield "echo_capture", {"title": "Week 49", "kind": "rollup", "period": "2026-W49", "body": "Brass."}
    assert written["path"] == "journal/weekly/2026-W49.md"
    moved = yield "echo_move_note", {
        "path": "analytical-engine", "new_path": "projects/archived/analytical-engine.md", "confirm": True}
    assert moved["action"] == "moved"
    person = yield "echo_get_note", {"path": "ada-lovelace"}
    assert "[[projects/archived/analytical-engine|Analytical Engine]]" in person["content"]


def live(day: Day, call: Any) -> None:
    """Run the day through a door with synchronous calls."""
    step = next(day)
    while True:
        try:
            step = day.send(call(*step))
        except StopIteration:
            return


def live_by_rest(server: Server) -> None:
    live(memory_day(), lambda tool, arguments: server.call(tool, **arguments))


def live_by_mcp(server: Server, mode: str) -> None:
    # The SDK takes seconds to import; not every process that collects the tests lives a day.
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async def run() -> None:
        http = httpx2.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"}, trust_env=False)
        async with http, Client(streamable_http_client(f"{server.base}/mcp", http_client=http), mode=mode) as client:
            await client.list_tools()  # the client checks every answer against the published output schema
            day = memory_day()
            step = next(day)
            while True:
                result = await client.call_tool(*step)
                assert result.structured_content is not None, result.content
                try:
                    step = day.send(result.structured_content)
                except StopIteration:
                    return

    asyncio.run(run())


def words_of(tool: str, arguments: dict[str, Any]) -> list[str]:
    """The command line of a call."""
    if tool == "echo_set_scope":
        return ["scope", arguments["scope"], "--json"]
    words = [*VERBS[tool], "--json"]
    for name, value in arguments.items():
        option = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            words.append(option if value else option.replace("--", "--no-", 1))
        else:
            words.append(f"{option}={value if isinstance(value, str) else json.dumps(value)}")
    return words


@contextlib.contextmanager
def one_process_a_call(env: dict[str, str]) -> Iterator[CommandLine]:
    """The command line as a shell runs it."""
    def call(words: list[str]) -> Envelope:
        command = [sys.executable, "-S", str(SCRIPTS / "echo.py"), *words]
        done = subprocess.run(command, env=env, capture_output=True, text=True, encoding="utf-8", check=False)
        assert done.stdout, done.stderr
        return dict(json.loads(done.stdout))

    yield call


MANY_LINES = """
import json, sys
import echo
for line in sys.stdin:
    echo.main(json.loads(line))
    print(chr(0), flush=True)
"""


@contextlib.contextmanager
def one_process(env: dict[str, str]) -> Iterator[CommandLine]:
    """The command line's entry point, called again and again: most of a short process is its start."""
    command = [sys.executable, "-S", "-c", MANY_LINES]
    env = {**env, "PYTHONPATH": str(SCRIPTS), "PYTHONIOENCODING": "utf-8"}
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as running:
        assert running.stdin is not None and running.stdout is not None
        to, out = running.stdin, running.stdout

        def call(words: list[str]) -> Envelope:
            to.write(json.dumps(words) + "\n")
            to.flush()
            return dict(json.loads("".join(iter(out.readline, "\0\n"))))

        yield call
        to.close()


def tree(vault: Path) -> dict[str, bytes]:
    """Every file of a vault by its path, without the folder's kernel lock; empty folders hold nothing."""
    files = {path.relative_to(vault).as_posix(): path.read_bytes() for path in sorted(vault.rglob("*"))
             if path.is_file()}
    files.pop(LOCK_FILE, None)
    return files


@contextlib.contextmanager
def on_folder(vault: Path) -> Iterator[dict[str, str]]:
    """The vault as a folder; yields the variables that name it."""
    yield {"ECHO_BASE": str(vault)}


@contextlib.contextmanager
def on_rest(vault: Path) -> Iterator[dict[str, str]]:
    """The same vault behind Obsidian's REST API, racy and with a wide gap in each write."""
    vault.mkdir(exist_ok=True)
    with Olrapi(str(vault), key="canary-key-93b1c0", race=Race(seconds=0.001)) as api:
        yield {"ECHO_BASE": api.url, "ECHO_KEY": "canary-key-93b1c0"}


SERVER_DOORS: dict[str, Callable[[Server], None]] = {
    "modern": lambda server: live_by_mcp(server, "2026-07-28"),
    "legacy": lambda server: live_by_mcp(server, "legacy"),
    "rest": live_by_rest,
}
COMMAND_LINES = {"command line": one_process_a_call, "one process": one_process}


def lived(folder: Path, door: str, backend: Callable[[Path], Any]) -> dict[str, bytes]:
    """Live the day in a new vault by one door; returns the vault's files."""
    vault = folder / "vault"
    with backend(vault) as place:
        owner = {"ECHO_CLOCK": CLOCK, "ECHO_TZ": ZONE, **place}
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ECHO_", "PYTHON"))}
        env = {**kept, **owner, "ECHO_STATE_DIR": str(folder / "cli-state")}
        with one_process_a_call(env) as call:
            assert call(["bootstrap", "--json"])["action"] == "created"
        if door in COMMAND_LINES:
            with COMMAND_LINES[door](env) as call:
                live(memory_day(), lambda tool, arguments: call(words_of(tool, arguments)))
        else:
            with running_server(folder, **owner) as server:
                SERVER_DOORS[door](server)
    return tree(vault)


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a vault in which the day was lived by REST on a folder."""
    return lived(tmp_path_factory.mktemp("rest"), "rest", on_folder)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("door", "backend"), [
    ("modern", on_folder), ("legacy", on_folder), ("command line", on_folder),
    ("modern", on_rest), ("rest", on_rest), ("one process", on_rest),
    pytest.param("legacy", on_rest, marks=pytest.mark.slow),
], ids=lambda value: getattr(value, "__name__", value))
def test_every_door_and_backend_writes_the_same_bytes(
    tmp_path: Path, day: dict[str, bytes], door: str, backend: Callable[[Path], Any]
) -> None:
    """The same day by MCP of both eras, by REST and by the command line, on a folder and behind Obsidian's API."""
    files = lived(tmp_path, door, backend)
    assert sorted(files) == sorted(day)
    assert {path: data for path, data in files.items() if data != day[path]} == {}
