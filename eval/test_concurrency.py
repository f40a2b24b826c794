"""Many clients at one vault lose nothing, double nothing and wait for nobody for ever (faults CC-01 to CC-15).

Everything runs through a real server process; part of it with command lines and a foreign editor on the same folder.
"""
from __future__ import annotations

import collections
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from parallel import RestClient, clients_at, together
from serverproc import Server, running_server

SCRIPTS = Path(__file__).parent.parent / "skills/echo-memory/scripts"
CLOCK = "2026-11-30T14:05:09+01:00"
INBOX = "inbox/captures/inbox.md"
INDEX = "_agent/index/entities.json"
Envelope = dict[str, Any]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server with an empty vault."""
    with running_server(tmp_path, ECHO_TIMEOUT="60", ECHO_CLOCK=CLOCK, ECHO_TZ="Europe/Vienna") as running:
        yield running


def text_of(server: Server, path: str) -> str:
    return (server.vault / path).read_text(encoding="utf-8")


def entities(server: Server) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text_of(server, INDEX))["entities"]
    return found


def put(server: Server, path: str, text: str) -> None:
    """Write a note as an editor would."""
    (server.vault / path).parent.mkdir(parents=True, exist_ok=True)
    (server.vault / path).write_text(text, encoding="utf-8")


def actions(envelopes: list[Envelope]) -> collections.Counter[str]:
    """How often each action or code was answered."""
    return collections.Counter(str(found.get("action") or found.get("code")) for found in envelopes)


def command_line(server: Server, script: str, *words: str) -> subprocess.Popen[str]:
    """A process of its own that runs Python code beside the command line's modules, on the server's vault."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ECHO_", "PYTHON"))}
    state = server.state.parent / "cli-state"
    env = {**kept, "ECHO_BASE": str(server.vault), "ECHO_STATE_DIR": str(state), "ECHO_CLOCK": CLOCK,
           "ECHO_TZ": "Europe/Vienna", "PYTHONPATH": str(SCRIPTS)}
    command = [sys.executable, "-S", "-c", script, *words]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


# The way of `echo.py` for many calls in one process: settings and context as there, one envelope a line.
MANY_CALLS = """
import json, sys
import echo_config, echo_offline, echo_tools
ctx = echo_offline.open_cli(echo_config.read_settings())
for name, arguments in json.loads(sys.argv[1]):
    print(json.dumps(echo_offline.run(echo_tools.BY_NAME[name], arguments, ctx)), flush=True)
"""


def by_command_line(server: Server, calls: list[tuple[str, dict[str, Any]]]) -> list[Envelope]:
    """The envelopes of calls that one process of the command line makes."""
    process = command_line(server, MANY_CALLS, json.dumps(calls))
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    return [json.loads(line) for line in out.splitlines()]


def test_captures_to_the_inbox_by_many_clients_lose_no_line(server: Server) -> None:
    """50 clients with 20 captures each: 1,000 lines, each once."""
    batches = [[("echo_capture", {"title": f"thought {client}-{turn}."}) for turn in range(20)] for client in range(50)]
    answers = clients_at(server, batches)
    assert actions(answers) == {"inbox": 1000}
    lines = [line for line in text_of(server, INBOX).splitlines() if "thought" in line]
    wanted = [f"- 2026-11-30: thought {client}-{turn}." for client in range(50) for turn in range(20)]
    assert sorted(lines) == sorted(wanted)


def test_appends_to_one_note_by_many_clients_lose_no_line(server: Server) -> None:
    """20 clients with 50 appends each, some of them in the middle: 1,000 lines, each once and in its place."""
    put(server, "areas/business/log.md", "# Log\n\n## First\n\n## Second\n")
    batches = [
        [("echo_append_note", {"path": "areas/business/log.md", "line": f"- {client}-{turn}.",
                               "section": "Second" if turn % 10 else "First"}) for turn in range(50)]
        for client in range(20)
    ]
    answers = clients_at(server, batches)
    assert actions(answers) == {"appended": 1000}
    first, second = text_of(server, "areas/business/log.md").split("## Second")
    assert sorted(line for line in first.splitlines() if line.startswith("- ")) == sorted(
        f"- {client}-{turn}." for client in range(20) for turn in range(0, 50, 10))
    assert sorted(line for line in second.splitlines() if line.startswith("- ")) == sorted(
        f"- {client}-{turn}." for client in range(20) for turn in range(50) if turn % 10)


def test_many_titles_at_once_all_stand_in_the_index(server: Server) -> None:
    """200 captures in parallel: 200 entries that name existing notes, and every read of the index is whole."""
    stop, sizes = threading.Event(), []

    def read_index() -> None:
        while not stop.wait(0.01):  # leaves the processor to the clients
            if (server.vault / INDEX).exists():
                sizes.append(len(entities(server)))

    reader = threading.Thread(target=read_index)
    reader.start()
    titles = [f"Person {number:03} {name}" for number in range(40) for name in ("Ames", "Bird", "Cole", "Dunn", "Ekes")]
    batches = [[("echo_capture", {"title": title, "kind": "person", "body": f"Known as {title}."})] for title in titles]
    try:
        answers = clients_at(server, batches)
    finally:
        stop.set()
        reader.join()
    assert actions(answers) == {"created": 200}
    found = entities(server)
    assert sorted(entry["title"] for entry in found.values()) == sorted(titles)
    assert all((server.vault / entry["path"]).is_file() for entry in found.values())
    assert sizes == sorted(sizes)
    for title in titles[::20]:
        assert server.call("echo_resolve", mention=title)["title"] == title
    day = text_of(server, "journal/daily/2026-11-30.md")
    assert day.count("captured person") == 200


def test_one_title_captured_at_once_makes_one_note(server: Server) -> None:
    """20 clients with 20 bodies: one writes, the others are asked; what they then merge is all there."""
    bodies = [f"Statement number {number} stands alone." for number in range(20)]
    request = {"title": "Ada Lovelace", "kind": "person"}
    for attempt in range(3):
        wanted = {**request, "title": f"Ada Lovelace {'IVX'[attempt]}"}
        answers = clients_at(server, [[("echo_capture", {**wanted, "body": body})] for body in bodies])
        assert actions(answers) == {"created": 1, "duplicate-gate": 19}
        path = next(found["path"] for found in answers if found["ok"])
        merges = [("echo_capture", {**wanted, "body": body, "merge_into": path}) for body in bodies]
        merged = clients_at(server, [[call] for call in merges])
        assert actions(merged) == {"updated": 19, "unchanged": 1}
        assert all(text_of(server, path).count(body) == 1 for body in bodies)
    assert len(list((server.vault / "resources/people").iterdir())) == 3
    assert len(entities(server)) == 3


def test_patches_of_different_headings_keep_the_last_text_of_each(server: Server) -> None:
    """10 clients, a heading each, 20 rounds: every section holds what was acknowledged last, and nothing else."""
    path = "projects/active/plan.md"
    put(server, path, "# Plan\n" + "".join(f"\n## Part {part}\n\nold\n" for part in range(10)))
    batches = [
        [("echo_patch_note", {"path": path, "operation": "replace", "target_type": "heading",
                              "target": f"Part {part}", "content": f"Round {turn} of {part}."}) for turn in range(20)]
        for part in range(10)
    ]
    assert actions(clients_at(server, batches)) == {"patched": 200}
    assert text_of(server, path) == "# Plan\n" + "".join(
        f"\n## Part {part}\n\nRound 19 of {part}.\n" for part in range(10))


def test_links_in_opposite_order_never_wait_for_each_other(server: Server) -> None:
    """link(A, B), link(B, A) and captures that merge into both: all end, and both links stand once."""
    for name in ("a", "b"):
        put(server, f"resources/concepts/{name}.md", f"# Note {name}\n")
    works = []
    for turn in range(40):
        pair = ("a", "b") if turn % 2 else ("b", "a")
        works.append([("echo_link", {"a": f"resources/concepts/{pair[0]}.md", "b": f"resources/concepts/{pair[1]}.md"}),
                      ("echo_capture", {"title": f"Aside {turn}", "kind": "concept", "body": f"Aside {turn} it is.",
                                        "merge_into": f"resources/concepts/{pair[0]}.md"})])
    answers = clients_at(server, works)
    assert set(actions(answers)) == {"linked", "unchanged", "updated"} and actions(answers)["updated"] == 40
    for name, other in (("a", "b"), ("b", "a")):
        text = text_of(server, f"resources/concepts/{name}.md")
        assert text.count(f"- [[resources/concepts/{other}|Note {other}]]") == 1
        assert sum(text.count(f"Aside {turn} it is.") for turn in range(40)) == 20


def test_a_reader_meets_whole_versions_only(server: Server) -> None:
    """While one section is written over and over, every answer and every read of the file is one of its versions."""
    path = "areas/business/log.md"
    versions = {word: f"# Log\n\n## Text\n\n{f'{word} ' * 2000}{word}\n" for word in ("black", "white")}
    put(server, path, versions["white"])
    stop = threading.Event()

    def write() -> int:
        client = RestClient(server)
        for turn in range(20):
            word = ("black", "white")[turn % 2]
            client.call("echo_patch_note", path=path, operation="replace", target_type="heading", target="Text",
                        content=f"{word} " * 2000 + word)
        client.close()
        stop.set()
        return 0

    def read_answers() -> int:
        client = RestClient(server)
        torn = 0
        while not stop.is_set():
            found = client.call("echo_get_note", path=path, max_chars=50_000)
            torn += found.get("content") not in versions.values()
        client.close()
        return torn

    def read_file() -> int:
        torn = 0
        while not stop.is_set():
            torn += text_of(server, path) not in versions.values()
        return torn

    assert together([write, read_answers, read_answers, read_file]) == [0, 0, 0, 0]


def test_server_command_lines_and_an_editor_share_a_note(server: Server) -> None:
    """Appends by clients of the server, by processes of the command line and by hand: all lines stand once."""
    path = "areas/business/log.md"
    put(server, path, "# Log\n\n- begun\n")

    def by_server(client: int) -> list[Envelope]:
        calls = [("echo_append_note", {"path": path, "line": f"- server {client}-{turn}."}) for turn in range(30)]
        return clients_at(server, [calls])

    def by_process(worker: int) -> list[Envelope]:
        return by_command_line(server, [
            ("echo_append_note", {"path": path, "line": f"- process {worker}-{turn}."}) for turn in range(30)])

    def by_hand() -> list[Envelope]:
        for turn in range(30):  # a small O_APPEND write, as a script or a sync client may do it
            with open(server.vault / path, "a", encoding="utf-8") as note:
                note.write(f"- hand {turn}.\n")
            threading.Event().wait(0.02)
        return []

    works = [*(lambda client=client: by_server(client) for client in range(4)),
             *(lambda worker=worker: by_process(worker) for worker in range(3)), by_hand]
    answers = [envelope for envelopes in together(works) for envelope in envelopes]
    assert actions(answers) == {"appended": 210}
    found = collections.Counter(text_of(server, path).splitlines())
    wanted = [f"- server {client}-{turn}." for client in range(4) for turn in range(30)]
    wanted += [f"- process {worker}-{turn}." for worker in range(3) for turn in range(30)]
    assert {line: found[line] for line in wanted} == dict.fromkeys(wanted, 1)


def test_server_and_command_lines_fill_one_index(server: Server) -> None:
    """Captures and inbox lines from both sides at once: every note has its entry, no line is lost, no lock is left."""
    def calls(who: str, count: int) -> list[tuple[str, dict[str, Any]]]:
        return [
            call for turn in range(count) for call in (
                ("echo_capture", {"title": f"{who} thing {turn}", "kind": "concept", "body": f"Said by {who} {turn}."}),
                ("echo_capture", {"title": f"{who} line {turn}."}))
        ]

    names = [f"client {chr(65 + number)}" for number in range(4)]
    workers = [f"process {chr(75 + number)}" for number in range(3)]
    works = [*(lambda name=name: clients_at(server, [calls(name, 10)]) for name in names),
             *(lambda name=name: by_command_line(server, calls(name, 10)) for name in workers)]
    answers = [envelope for envelopes in together(works) for envelope in envelopes]
    assert actions(answers) == {"created": 70, "inbox": 70}
    lines = text_of(server, INBOX).splitlines()
    found = entities(server)
    for name in names + workers:
        for turn in range(10):
            assert lines.count(f"- 2026-11-30: {name} line {turn}.") == 1
            assert [entry for entry in found.values() if entry["title"] == f"{name} thing {turn}"]
    assert all((server.vault / entry["path"]).is_file() for entry in found.values())
    assert not (server.vault / "_agent/locks/index.json").exists()


def test_server_and_command_lines_with_one_title_make_one_note(server: Server) -> None:
    """The same title from both sides at once is written once; whoever comes later is asked."""
    request = {"title": "Analytical Engine", "kind": "concept"}
    works = [*(lambda n=n: clients_at(server, [[("echo_capture", {**request, "body": f"Body {n}."})]])
               for n in range(6)),
             *(lambda n=n: by_command_line(server, [("echo_capture", {**request, "body": f"Body {n}."})])
               for n in range(6, 10))]
    answers = [envelope for envelopes in together(works) for envelope in envelopes]
    assert actions(answers) == {"created": 1, "duplicate-gate": 9}
    assert [note.name for note in (server.vault / "resources/concepts").iterdir()] == ["analytical-engine.md"]
