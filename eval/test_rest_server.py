"""The server on a vault behind Obsidian's REST API that is off, hangs, and comes back (spec 4.1, 6.1)."""
from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fakes.olrapi import Olrapi
from restvault import KEY
from serverproc import running_server


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
def test_sixty_calls_in_a_hung_vault_hold_up_nothing_else(tmp_path: Path) -> None:
    """Health, the tool list and what memory can answer come at once; every call ends in time; then all is well."""
    (tmp_path / "vault").mkdir()
    with (
        Olrapi(str(tmp_path / "vault"), key=KEY) as api,
        running_server(tmp_path, ECHO_BASE=api.url, ECHO_KEY=KEY, ECHO_TIMEOUT="2") as server,
    ):
        assert server.call("echo_capture", title="Ada", kind="person", body="x")["ok"]
        api.faults.add("hang")

        def stuck(number: int) -> float:
            started = time.monotonic()
            answer = server.call("echo_get_note", path="ada")
            assert answer["code"] == "vault-unreachable"
            return time.monotonic() - started

        with ThreadPoolExecutor(60) as pool:
            calls = [pool.submit(stuck, number) for number in range(60)]
            time.sleep(0.3)  # all of them are in
            answered = 0
            while not all(call.done() for call in calls):
                for ask in (
                    lambda: server.client.get(f"{server.base}/health"), lambda: server.rpc("tools/list"),
                    lambda: server.call("echo_resolve", mention="Ada"),
                ):
                    ask()
                    answered += 1
            assert max(call.result() for call in calls) < 20  # every call ended by itself
        assert answered > 9  # while the calls hung, these went on
        assert server.client.get(f"{server.base}/health").json()["vault_reachable"] is False
        api.faults.clear()
        until(lambda: server.call("echo_get_note", path="ada")["ok"])
