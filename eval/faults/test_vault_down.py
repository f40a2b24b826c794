"""The vault behind the API refuses, fails, hangs, forgets and comes back: no acknowledged write is lost or doubled.

Each test says that its fault fired. Everything goes through a real server and a double that breaks on purpose.
"""
from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.olrapi import Olrapi
from restvault import KEY

from faults.hosts import Host, rest_host
from faults.until import until

LOG = "areas/business/n0.md"
pytestmark = pytest.mark.timeout(240)
slow = pytest.mark.slow


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A server behind a double with three notes."""
    with rest_host(tmp_path) as made:
        yield made


def away(host: Host) -> None:
    """Obsidian is closed: nothing listens."""
    host.api.refuse()
    host.api.drop_connections()


@slow
def test_reads_say_that_the_vault_is_away_and_go_on_when_it_is_back(host: Host) -> None:
    """VD-01: no host, port, path or class in the text; what is known is answered and marked."""
    assert host.server.call("echo_capture", title="Ada", kind="person", body="x")["ok"]
    away(host)
    port = str(host.api.port)
    for tool, arguments in (("echo_load", {}), ("echo_recall", {"query": "nobody"}),
                            ("echo_resolve", {"mention": "Ada"}), ("echo_get_note", {"path": "unknown.md"}),
                            ("echo_get_scope", {})):
        started = time.monotonic()
        result = host.server.tool(tool, **arguments)
        assert time.monotonic() - started < 30  # each call ends by itself
        envelope = result["structuredContent"]
        assert envelope.get("offline") or envelope["code"] == "vault-unreachable", envelope
        assert result.get("isError", False) == (not envelope["ok"])
        text = json.dumps(result)
        assert not any(word in text for word in (port, "127.0.0.1", str(host.folder), "Error(", "Traceback", KEY))
    host.api.accept()
    until(lambda: "offline" not in host.server.call("echo_get_note", path=LOG))


@pytest.mark.parametrize("turns", [6, pytest.param(100, marks=slow)])
def test_writes_wait_while_nothing_listens_and_arrive_by_themselves(host: Host, turns: int) -> None:
    """VD-02, OB-01: appends and inbox lines of four clients; once each, in each client's order, no call needed."""
    away(host)
    host.mixed(4, turns, wanted="queued")
    assert host.api.log.count("PUT") == 0
    until(lambda: host.health()["outbox_depth"] == 4 * turns)
    host.api.accept()
    until(lambda: host.health()["outbox_depth"] == 0)
    host.settled()


@slow
@pytest.mark.parametrize(("kind", "status"), [
    ("error_before", 500), ("error_before", 503), ("error_after", 500), ("error_after", 504), ("reset_request", 0),
    ("reset_response", 0), ("half", 0), ("phantom", 0),
])
@pytest.mark.parametrize("turns", [3, pytest.param(25, marks=slow)])
def test_a_vault_that_answers_wrongly_for_a_while_gets_each_write_once(
    tmp_path: Path, kind: str, status: int, turns: int
) -> None:
    """VD-05, VD-06, VD-08, OB-04: before or after the effect, in the request or in the answer."""
    with rest_host(tmp_path) as host:
        for after in ((0, 1, -1) if kind == "reset_request" else (10,)):
            fault = host.api.faults.add(kind, method="PUT", after=after, **({"status": status} if status else {}))
            answers = host.mixed(2, turns)
            assert all(answer["ok"] or answer["code"].startswith("vault-") for answer in answers), answers
            assert fault.fired >= 2
            host.api.faults.remove(fault)
            host.settled()


@slow
@pytest.mark.timeout(60)
def test_a_failing_vault_is_not_hammered(host: Host) -> None:
    """VD-05: while it answers 503 to everything, what waits costs few attempts and not one each."""
    host.api.faults.add("error_before", method="PUT", status=503)
    host.mixed(2, 10)
    end = time.monotonic() + 4
    while time.monotonic() < end:
        host.health()
    assert 0 < host.api.log.count("PUT") <= 5 * 20
    host.api.faults.clear()
    host.settled()


@slow
def test_a_changed_key_loses_no_write_and_is_told(host: Host) -> None:
    """VD-11: refused or kept, `/health` says which it is, and few requests are made with the wrong key."""
    fault = host.api.faults.add("wrong_key")
    answers = host.mixed(2, 10)
    assert all(answer["ok"] or answer["code"] == "vault-auth" for answer in answers), answers[:2]
    until(lambda: not host.health()["vault_auth_ok"], 20)
    assert fault.fired > 0
    assert KEY not in json.dumps(answers)
    host.api.faults.remove(fault)
    until(lambda: host.health()["vault_auth_ok"], 60)
    host.settled()


@slow
def test_a_vault_that_answers_404_to_everything_takes_nothing_for_done(host: Host) -> None:
    """VD-12: what waits goes on waiting or needs a decision; it is never dropped, and arrives when asked to."""
    away(host)
    host.mixed(2, 6, wanted="queued")
    fault = host.api.faults.add("error_before", path="/vault/", status=404)
    host.api.accept()
    until(lambda: fault.fired > 3)
    host.mixed(1, 4)
    host.api.faults.remove(fault)
    until(lambda: host.health()["outbox_depth"] == 0)
    assert host.health()["parked"] == 0
    host.settled()


@slow
def test_a_redirect_to_another_host_gets_no_key_and_loses_no_write(host: Host, tmp_path: Path) -> None:
    """VD-18: the other listener hears nothing; writes wait or are refused."""
    (tmp_path / "other").mkdir()
    with Olrapi(str(tmp_path / "other"), key=KEY) as other:
        for status in (302, 307, 308):
            fault = host.api.faults.add("redirect", status=status, location=f"{other.url}/vault/x.md")
            answers = host.mixed(1, 4)
            assert all(answer["ok"] or answer["code"] == "vault-bad-response" for answer in answers), answers
            assert fault.fired > 0
            host.api.faults.remove(fault)
        assert other.log.entries == []
    host.settled()


@slow
def test_a_hung_vault_ends_each_call_and_health_answers_throughout(host: Host) -> None:
    """VD-03: reads and writes at a vault that accepts and says nothing."""
    fault = host.api.faults.add("hang")
    slowest: list[float] = []

    def work(client: int, call: Any) -> None:
        started = time.monotonic()
        if client % 2:
            host.append(call, client, LOG)
        else:
            call("echo_get_note", path=f"none{client}.md")
        slowest.append(time.monotonic() - started)

    host.clients(20, work)
    assert fault.fired > 0
    assert max(slowest) < 20  # a hung call would never end
    host.mixed(1, 4)
    host.api.faults.clear()
    host.settled()


@slow
@pytest.mark.parametrize("seconds", [6, pytest.param(120, marks=slow)])
def test_a_vault_that_comes_and_goes_gets_each_write_once_in_order(host: Host, seconds: int) -> None:
    """VD-14: up for two seconds, down for two; five writers."""
    end = time.monotonic() + seconds
    downs: list[int] = []

    def work(client: int, call: Any) -> None:
        if client == 5:
            while time.monotonic() < end:
                away(host)
                downs.append(1)
                time.sleep(1 if seconds < 10 else 2)
                host.api.accept()
                time.sleep(1 if seconds < 10 else 2)
            return
        while time.monotonic() < end:
            answer = host.append(call, client, f"areas/business/n{client % 3}.md")
            assert answer["ok"] or answer.get("outcome") == "unknown", answer
            time.sleep(0.1)

    host.clients(6, work)
    assert len(downs) > 1
    host.settled()
    print(f"acknowledged {host.ledger.acked}, times down {len(downs)}, requests {len(host.api.log.entries)}")


@slow
def test_notes_that_a_loading_vault_hides_lose_no_line(tmp_path: Path) -> None:
    """VD-16: a server starts while the API answers 404 to every note; what is written stands below the old text."""
    with rest_host(tmp_path) as host:
        assert host.server.call("echo_append_note", path=LOG, line="- known")["ok"]
    before = {path: (tmp_path / "vault" / path).read_text() for path in (LOG, "areas/business/n1.md")}
    with rest_host(tmp_path, count=0, ready=False) as host:
        fault = host.api.faults.add("cold")
        host.mixed(2, 8, paths=2)
        assert fault.fired > 0
        host.api.faults.remove(fault)
        until(lambda: host.health()["outbox_depth"] == 0)
        host.settled()
    for path, text in before.items():
        assert (tmp_path / "vault" / path).read_text().startswith(text)


@slow
def test_a_client_that_hangs_up_leaves_whole_writes(host: Host) -> None:
    """OB-20: the connection is closed right after the request; each write is made whole or not at all."""
    import random
    import socket

    from serverproc import TOKEN

    chance = random.Random(1)
    for turn in range(30):
        write = host.ledger.begin(turn, "")
        write.path = f"resources/people/person-{write.marker}.md"
        body = json.dumps({"title": f"Person {write.marker}", "kind": "person", "body": f"I am {write.marker}.",
                           "force": True}).encode()
        with socket.create_connection(("127.0.0.1", host.server.port)) as connection:
            connection.sendall(
                b"POST /api/tools/echo_capture HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s" % (TOKEN.encode(), len(body), body))
            time.sleep(chance.uniform(0, 0.05))
    until(lambda: host.server.call("echo_load")["ok"])
    host.settled()
    people = host.vault / "resources/people"

    def unindexed() -> set[str]:
        entries = json.loads((host.vault / "_agent/index/entities.json").read_text())["entities"].values()
        there = {str(path.relative_to(host.vault)) for path in people.glob("*.md")}
        return there ^ {entry["path"] for entry in entries if entry["path"].startswith("resources/people/")}

    assert len(list(people.glob("*.md"))) > 0
    until(lambda: not unindexed(), 30)
