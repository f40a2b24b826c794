"""The server on a vault behind Obsidian's REST API that is off, hangs, and comes back (spec 4.1, 6.1)."""
from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from echo_core.catalog.records import RecordCache
from echo_core.kinds import SCOPE
from echo_core.state.note_cache import NoteCache
from fakes.olrapi import Olrapi
from restvault import KEY
from serverproc import running_server

KEPT_SOON_S = 15.0
"""Half of what would lose a conversation: keeping takes 2 s, a busy machine a little longer."""


def until(wanted: Any, patience_s: float = 30.0) -> None:
    """Return when `wanted()` is true."""
    end = time.monotonic() + patience_s
    while not wanted():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.timeout(90)
def test_a_vault_that_is_off_at_the_start_is_found_when_it_comes(tmp_path: Path) -> None:
    """The server runs, says that the vault is away, keeps a write, and brings it in by itself."""
    (tmp_path / "vault").mkdir()
    with Olrapi(str(tmp_path / "vault"), key=KEY) as api:
        api.refuse()
        with running_server(tmp_path, ready=False, ECHO_BASE=api.url, ECHO_KEY=KEY) as server:
            health = server.client.get(f"{server.base}/health").json()
            assert (health["ok"], health["vault_reachable"]) == (True, False)
            assert server.call("echo_capture", title="Ada Lovelace", kind="person", body="x")["queued"]
            api.accept()
            note = tmp_path / "vault/resources/people/ada-lovelace.md"
            until(note.exists)
            until(lambda: server.client.get(f"{server.base}/health").json()["outbox_depth"] == 0)
            until(lambda: server.client.get(f"{server.base}/health").json()["vault_reachable"])
            assert server.client.get(f"{server.base}/health").json()["parked"] == 0
            assert server.call("echo_get_note", path="ada-lovelace")["ok"]
        assert KEY not in "\n".join(server.lines)


@pytest.mark.timeout(90)
def test_a_vault_that_goes_away_is_answered_for_also_by_the_next_server(tmp_path: Path) -> None:
    """What was known is answered and marked, on every door; the rest fails with advice; all is well again by itself."""
    (tmp_path / "vault").mkdir()
    with Olrapi(str(tmp_path / "vault"), key=KEY) as api:
        settings = {"ECHO_BASE": api.url, "ECHO_KEY": KEY}
        with running_server(tmp_path, **settings) as server:
            assert server.call("echo_capture", title="Ada Lovelace", kind="person", body="First program.")["ok"]
            assert server.call("echo_set_scope", scope="looms")["ok"]
            api.refuse()
            api.drop_connections()
            assert server.call("echo_get_note", path="Ada Lovelace")["offline"] is True
            assert server.call("echo_get_note", path="Nobody")["code"] == "vault-unreachable"
            assert server.call("echo_capture", title="Bob", kind="person")["queued"]
        with running_server(tmp_path, ready=False, **settings) as server:
            until(lambda: server.call("echo_load").get("offline"))  # its caches are being read
            assert server.call("echo_load")["sections"]["scope"] == "looms"
            assert server.call("echo_resolve", mention="ada lovelace")["offline"] is True
            assert server.call("echo_recall", query="first program")["primary"][0]["title"] == "Ada Lovelace"
            answer = server.tool("echo_get_note", path="ada-lovelace")
            assert answer["content"][0]["text"].startswith("OFFLINE, as of ")
            assert "Not in it: 1 write waiting" in answer["structuredContent"]["hint"]
            resource = server.rpc("resources/read", {"uri": "echo://entity/ada-lovelace"}).json()["result"]
            assert resource["contents"][0]["text"].startswith("> OFFLINE. ")
            api.accept()
            until(lambda: "offline" not in server.call("echo_get_note", path="bob"))
            until(lambda: "offline" not in server.call("echo_recall", query="first program"))
            until(lambda: server.events("vault-back"))
        assert len(server.events("vault-away")) == len(server.events("vault-back")) == 1


def kept(state: Path, path: str) -> bytes:
    """What a next run would show of a note while the vault is away, b"" for nothing."""
    notes, facts = (next(state.glob(f"{what}-*.sqlite3"), None) for what in ("notes", "catalog"))
    text = NoteCache(str(notes)).get(path) if notes else None
    versions = {record.path: record.version for record in RecordCache(str(facts)).load()} if facts else {}
    return text.data if text and text.version == versions.get(path) else b""


@pytest.mark.timeout(90)
def test_what_was_met_a_few_seconds_before_a_kill_is_known_to_the_next_server(tmp_path: Path) -> None:
    """A killed server keeps nothing at its end: notes read, edited and loaded are in the state folder soon after."""
    note = tmp_path / "vault/k1.md"
    note.parent.mkdir()
    note.write_text("# K\n", encoding="utf-8")
    with Olrapi(str(tmp_path / "vault"), key=KEY) as api:
        settings = {"ECHO_BASE": api.url, "ECHO_KEY": KEY}
        with running_server(tmp_path, **settings) as server:
            assert server.call("echo_set_scope", scope="looms")["ok"]
            assert server.call("echo_load")["ok"]
            assert server.call("echo_append_note", path="k1.md", line="- a")["ok"]
            assert server.call("echo_get_note", path="k1.md")["ok"]
            until(lambda: b"- a" in kept(server.state, "k1.md") and b"looms" in kept(server.state, SCOPE), KEPT_SOON_S)
            server.process.kill()
        api.refuse()
        with running_server(tmp_path, ready=False, **settings) as server:
            until(lambda: server.call("echo_load").get("offline"))  # its caches are being read
            assert server.call("echo_load")["sections"]["scope"] == "looms"
            assert server.call("echo_get_scope")["scope"] == "looms"
            assert server.call("echo_get_note", path="k1.md")["content"] == "# K\n- a\n"


@pytest.mark.timeout(90)
def test_sixty_calls_in_a_hung_vault_hold_up_nothing_else(tmp_path: Path) -> None:
    """Health, the tool list and what memory can answer come at once; every call ends in time; then all is well."""
    (tmp_path / "vault").mkdir()
    with (
        Olrapi(str(tmp_path / "vault"), key=KEY) as api,
        running_server(tmp_path, ECHO_BASE=api.url, ECHO_KEY=KEY, ECHO_TIMEOUT="2") as server,
    ):
        assert server.call("echo_capture", title="Ada", kind="person", body="x")["ok"]
        assert server.call("echo_load")["ok"]
        api.faults.add("hang")

        def stuck(number: int) -> float:
            started = time.monotonic()
            answer = server.call("echo_get_note", path=f"note-{number}.md")
            assert answer["code"] == "vault-unreachable"
            return time.monotonic() - started

        with ThreadPoolExecutor(60) as pool:
            calls = [pool.submit(stuck, number) for number in range(60)]
            time.sleep(0.3)  # all of them are in
            answered = 0
            while not all(call.done() for call in calls):
                for ask in (
                    lambda: server.client.get(f"{server.base}/health"), lambda: server.rpc("tools/list"),
                    lambda: server.call("echo_resolve", mention="Ada"), lambda: server.call("echo_recall", query="x"),
                ):
                    ask()
                    answered += 1
            assert max(call.result() for call in calls) < 20  # every call ended by itself
            assert server.call("echo_load")["offline"] is True
        assert answered > 9  # while the calls hung, these went on
        assert server.client.get(f"{server.base}/health").json()["vault_reachable"] is False
        api.faults.clear()
        until(lambda: server.call("echo_get_note", path="ada")["ok"])
