"""A server behind Obsidian's API looks again at what it wrote: what a stale writer overwrote comes back (spec 6.1).

The stale writer is the test itself, which writes to the double's folder what it would have written without knowing of
the server's text.
"""
from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.olrapi import Olrapi
from restvault import KEY
from serverproc import Server, environment, running_server

SCRIPTS = Path(__file__).parent.parent / "skills/echo-memory/scripts"
INDEX = "_agent/index/entities.json"


class Host:
    """A server behind a double; `notes` is the vault's folder."""

    def __init__(self, api: Olrapi, server: Server, notes: Path) -> None:
        self.api, self.server, self.notes = api, server, notes

    def put(self, path: str, text: str) -> Path:
        """Write as another program does."""
        file = self.notes / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        return file

    def settled(self, path: str) -> None:
        """Return when the server has looked at the note once more than until now."""
        before = self.api.log.count("GET", path)
        until(lambda: self.api.log.count("GET", path) > before)

    def health(self, name: str) -> dict[str, Any]:
        """One row of echo_health."""
        return next(row for row in self.server.call("echo_health")["checks"] if row["name"] == name)


def until(wanted: Callable[[], Any], patience_s: float = 30.0) -> None:
    """Return when `wanted()` is true."""
    end = time.monotonic() + patience_s
    while not wanted():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """One server for all tests, each with a note of its own."""
    folder = tmp_path_factory.mktemp("settle")
    (folder / "vault").mkdir()
    with (
        Olrapi(str(folder / "vault"), key=KEY) as api,
        running_server(folder, ECHO_BASE=api.url, ECHO_KEY=KEY) as server,
    ):
        yield Host(api, server, folder / "vault")


def test_an_overwritten_append_comes_back_beside_the_other_text(host: Host) -> None:
    """Another writer's line, made from the note before ours, stays too; each stands once."""
    file = host.put("notes/append.md", "# A\n\n## S\n\n- one\n\n## T\n")
    assert host.server.call("echo_append_note", path="notes/append.md", line="- ours", section="S")["ok"]
    file.write_text("# A\n\n## S\n\n- one\n- theirs\n\n## T\n")
    until(lambda: "- ours" in file.read_text())
    assert file.read_text() == "# A\n\n## S\n\n- one\n- ours\n- theirs\n\n## T\n"


def test_an_overwritten_capture_comes_back_into_the_inbox(host: Host) -> None:
    """The note shows exactly what it said before."""
    host.server.call("echo_capture", title="first thought")
    file = host.notes / "inbox/captures/inbox.md"
    before = file.read_text()
    host.settled("inbox.md")
    assert host.server.call("echo_capture", title="second thought")["action"] == "inbox"
    file.write_text(before)
    until(lambda: "second thought" in file.read_text())


def test_what_somebody_took_out_who_had_seen_it_stays_out(host: Host) -> None:
    """Our second line, made on a text with the first one, is there and the first is not: that was no accident."""
    file = host.put("notes/removed.md", "# R\n\n- one\n")
    for line in ("- wrong", "- right"):
        assert host.server.call("echo_append_note", path="notes/removed.md", line=line)["ok"]
    file.write_text("# R\n\n- one\n- right\n")
    host.settled("removed.md")
    assert host.server.call("echo_append_note", path="notes/removed.md", line="- last")["ok"]
    host.settled("removed.md")
    assert file.read_text() == "# R\n\n- one\n- right\n- last\n"


def test_what_the_server_itself_took_out_stays_out(host: Host) -> None:
    """A replacement by the same server is no loss."""
    file = host.put("notes/own.md", "# O\n\n## S\n\n- one\n")
    assert host.server.call("echo_append_note", path="notes/own.md", line="- two")["ok"]
    assert host.server.call("echo_patch_note", path="notes/own.md", operation="replace", target_type="heading",
                            target="S", content="- three")["ok"]
    host.settled("own.md")
    assert file.read_text() == "# O\n\n## S\n\n- three\n"
    assert "own.md" not in host.health("conflicts")["detail"]


def test_an_overwritten_replacement_becomes_a_conflict_that_can_be_restored(host: Host) -> None:
    """The other text stays; load and health name the version that brings ours back."""
    file = host.put("notes/replace.md", "# P\n\n## S\n\nold\n")

    assert host.server.call("echo_patch_note", path="notes/replace.md", operation="replace", target_type="heading",
                            target="S", content="ours")["ok"]
    file.write_text("# P\n\n## S\n\ntheirs\n")
    until(lambda: not host.health("conflicts")["ok"])
    assert file.read_text() == "# P\n\n## S\n\ntheirs\n"
    assert host.server.call("echo_load")["conflicts"] == 1
    detail = host.health("conflicts")["detail"]
    version = detail.partition("notes/replace.md (version ")[2].partition(")")[0]
    restored = host.server.call("echo_restore_note", path="notes/replace.md", version_id=version, confirm=True)
    assert restored["action"] == "restored"
    assert file.read_text() == "# P\n\n## S\n\nours\n"
    assert host.health("conflicts")["ok"]


def test_a_burst_of_appends_costs_one_look(host: Host) -> None:
    """Three requests each, and one for all of them."""
    host.put("notes/burst.md", "# B\n")
    for number in range(10):
        assert host.server.call("echo_append_note", path="notes/burst.md", line=f"- line {number}")["ok"]
    wrote = host.api.log.count("", "burst.md")
    host.settled("burst.md")
    assert host.server.call("echo_append_note", path="notes/burst.md", line="- last")["ok"]
    host.settled("burst.md")
    assert host.api.log.count("", "burst.md") == wrote + 1 + 3 + 1


def test_an_overwritten_index_gets_its_entry_again(host: Host) -> None:
    """The other server's entries stay, ours is entered once more."""
    host.server.call("echo_capture", title="Charles Babbage", kind="person", body="Engines.")
    host.settled(INDEX)
    before = (host.notes / INDEX).read_bytes()
    host.server.call("echo_capture", title="Mary Somerville", kind="person", body="Mathematics and astronomy.")
    (host.notes / INDEX).write_bytes(before)
    until(lambda: "mary-somerville" in (host.notes / INDEX).read_text())
    assert set(json.loads((host.notes / INDEX).read_bytes())["entities"]) >= {"charles-babbage", "mary-somerville"}


def test_a_vault_that_was_away_for_the_second_look_is_looked_at_later(host: Host) -> None:
    """Trouble postpones the look."""
    file = host.put("notes/away.md", "# W\n")
    assert host.server.call("echo_append_note", path="notes/away.md", line="- ours")["ok"]
    file.write_text("# W\n- theirs\n")
    host.api.refuse()
    try:
        until(lambda: host.server.events("settle-failed"))
    finally:
        host.api.accept()
    until(lambda: file.read_text() == "# W\n- ours\n- theirs\n")


def test_a_server_that_is_stopped_looks_before_it_ends(tmp_path: Path) -> None:
    """SIGTERM right after the loss: the line is back when the process is gone."""
    (tmp_path / "vault").mkdir()
    note = tmp_path / "vault/a.md"
    note.write_text("# A\n")
    with (
        Olrapi(str(tmp_path / "vault"), key=KEY) as api,
        running_server(tmp_path, ECHO_BASE=api.url, ECHO_KEY=KEY) as server,
    ):
        assert server.call("echo_append_note", path="a.md", line="- ours")["ok"]
        note.write_text("# A\n- theirs\n")
        assert server.stop() == 0
        assert note.read_text() == "# A\n- ours\n- theirs\n"


def test_a_server_that_was_killed_is_followed_by_one_that_looks(tmp_path: Path) -> None:
    """What was on watch outlives the process: the next one puts it back."""
    (tmp_path / "vault").mkdir()
    note = tmp_path / "vault/a.md"
    note.write_text("# A\n")
    with Olrapi(str(tmp_path / "vault"), key=KEY) as api:
        settings = {"ECHO_BASE": api.url, "ECHO_KEY": KEY}
        with running_server(tmp_path, **settings) as server:
            assert server.call("echo_append_note", path="a.md", line="- ours")["ok"]
            server.process.kill()
            server.process.wait(10)
        note.write_text("# A\n- theirs\n")
        with running_server(tmp_path, **settings) as server:
            until(lambda: note.read_text() == "# A\n- ours\n- theirs\n")
            assert server.call("echo_health")["ok"]


def test_the_command_line_looks_at_its_next_call(tmp_path: Path) -> None:
    """It does not wait for a second after each write; a call that has nothing to look at asks nothing more."""
    (tmp_path / "vault").mkdir()
    note = tmp_path / "vault/a.md"
    note.write_text("# A\n")
    with Olrapi(str(tmp_path / "vault"), key=KEY) as api:
        env = environment(tmp_path / "vault", tmp_path / "state", ECHO_BASE=api.url, ECHO_KEY=KEY)
        said = []

        def command(*words: str) -> int:
            """Run a command line; how many requests it cost."""
            api.log.clear()
            done = subprocess.run([sys.executable, "-S", str(SCRIPTS / "echo.py"), *words], env=env, check=True,
                                  capture_output=True, text=True, timeout=60)
            said.append(done.stderr)
            return api.log.count()

        command("get", "a.md")
        usual = command("get", "a.md")
        command("append", "a.md", "- ours")
        note.write_text("# A\n- theirs\n")
        until(lambda: command("get", "a.md") and note.read_text() == "# A\n- ours\n- theirs\n")
        assert "a.md had been written over: 1 place put back" in said[-1]
        until(lambda: command("get", "a.md") == usual)
