"""Hostile requests by the thousand, and what the open route says in every fault."""
from __future__ import annotations

import asyncio
import hmac
import json
import random
import re
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from echo_mcp import logs, settings
from echo_mcp.auth import TokenGuard
from echo_mcp.health import Health
from echo_mcp.http import build_app
from echo_mcp.registry import Registry
from restvault import KEY
from serverproc import LEGACY, MODERN, TOKEN, Server, environment, running_server

from faults.hosts import rest_host
from faults.until import until

slow = pytest.mark.slow
GOOD = f"Authorization: Bearer {TOKEN}\r\n".encode()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("doors"), fake=True, FAKE_READ_DEADLINE="1") as running:
        yield running


def test_the_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """HT-03: every wrong token, of whatever length and first byte, goes whole through `hmac.compare_digest`."""
    compared: list[tuple[bytes, bytes]] = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append((a, b)) or real(a, b))

    async def never(*_: Any) -> None:
        raise AssertionError("a wrong token came in")

    guard = TokenGuard(never, never, TOKEN)
    wrong = [b"", b"x" * len(TOKEN), TOKEN[:-1].encode() + b"!", b"!" + TOKEN[1:].encode(), TOKEN.encode() + b"x"]
    for token in wrong:
        sent: list[Any] = []

        async def send(message: Any, sent: list[Any] = sent) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": "/metrics", "raw_path": b"/metrics", "query_string": b"",
                 "headers": [(b"authorization", b"Bearer " + token)]}
        asyncio.run(guard(scope, never, send))
        assert sent[0]["status"] == 401
    assert compared == [(b"Bearer " + token, b"Bearer " + TOKEN.encode()) for token in wrong]


def test_an_exception_is_logged_without_what_it_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """PV-01: its message may hold a body, its type and place do not; from a bug below the guards, and from a start."""
    events: list[dict[str, Any]] = []
    monkeypatch.setattr(logs, "event", lambda name, level=0, **fields: events.append({"event": name, **fields}))

    async def broken(*_: Any) -> None:
        raise RuntimeError("canary body of a note")

    async def drop(_: Any) -> None:
        """Take the answer."""

    found = replace(settings.load(environment(tmp_path / "vault", tmp_path / "state")), token=TOKEN)
    app = build_app(Registry(), broken, Health(), found, broken)  # type: ignore[arg-type]
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"),
               (b"authorization", f"Bearer {TOKEN}".encode())]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    asyncio.run(app({"type": "http", "method": "POST", "path": "/mcp", "raw_path": b"/mcp", "query_string": b"",
                     "headers": headers, "root_path": ""}, receive, drop))  # type: ignore[arg-type]
    assert [event["event"] for event in events] == ["request-failed"]
    assert events[0]["exception"] == "RuntimeError" and events[0]["where"].startswith("test_doors.py:")
    assert "canary" not in json.dumps(events)


def mutated(seed: bytes, chance: random.Random) -> bytes:
    """The bytes with a few of them changed, cut, doubled or replaced by odd ones."""
    data = bytearray(seed)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        what = chance.randrange(5)
        if what == 0:
            data[at:at] = chance.choice([b"\x00", b"\xff", b"{", b"]", b"\"", b"\\u0000", b"9" * 400, b"null", b"\r\n"])
        elif what == 1:
            del data[at:at + chance.randint(1, 8)]
        elif what == 2 and at < len(data):
            data[at] = chance.randrange(256)
        elif what == 3:
            data[at:at] = data[at:at + chance.randint(1, 20)]
        else:
            del data[at:]
            data += chance.choice([b"", b"}", b"[" * 50])
    return bytes(data)


BODIES = [
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
    {"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "fake_noop", "arguments": {"text": "x"}}},
    {"jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": {"uri": "echo://note/a.md"}},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]
HEADS = [b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n" + GOOD
         + b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
         b"POST /api/tools/fake_noop HTTP/1.1\r\nHost: localhost\r\n" + GOOD
         + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
         b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"]


@pytest.mark.timeout(500)
@pytest.mark.parametrize("size", [200, pytest.param(12_000, marks=slow)])
def test_mutated_requests_are_never_a_server_error(
    server: Server, size: int, record_property: Callable[[str, object], None]
) -> None:
    """HT-11: mutated bodies of both eras and of REST, and mutated heads, from a fixed seed; others are served on."""
    chance, answered, wrong = random.Random(11), 0, []
    lines = len(server.lines)
    for turn in range(size * 5 // 6):
        body = mutated(json.dumps(chance.choice(BODIES)).encode(), chance)
        path = "/mcp" if turn % 3 else "/api/tools/fake_noop"
        headers = {"content-type": "application/json", "accept": "application/json",
                   "mcp-protocol-version": (LEGACY, MODERN)[turn % 2]}
        answer = server.client.post(server.base + path, content=body, headers=headers)
        answered += 1
        if answer.status_code >= 500:
            wrong.append((answer.status_code, body))
    for _ in range(size - size * 5 // 6):
        with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
            connection.sendall(mutated(chance.choice(HEADS), chance))
            connection.shutdown(socket.SHUT_WR)
            received = b""
            while chunk := connection.recv(65536):
                received += chunk
        answered += 1
        if re.match(rb"HTTP/1\.1 5", received):
            wrong.append((0, received[:200]))
    assert wrong == []
    assert server.call("fake_noop")["ok"]
    assert not [line for line in server.lines[lines:] if "exception" in line and "echo_mcp" in line]
    record_property("malformed requests", answered)


def test_a_doubled_key_has_one_effect_at_most(server: Server) -> None:
    """HT-31: two methods, two names, two ids in one body."""
    before = int(server.call("fake_effect")["count"])
    for body in (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{"name":"fake_effect"}}',
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"fake_effect","name":"fake_effect"}}',
        b'{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"fake_effect"}}',
    ):
        answer = server.client.post(f"{server.base}/mcp", content=body, headers={
            "content-type": "application/json", "accept": "application/json", "mcp-protocol-version": LEGACY})
        assert answer.status_code < 500
    assert int(server.call("fake_effect")["count"]) - before - 1 <= 3


KEYS = {"ok", "vault_reachable", "vault_auth_ok", "outbox_depth", "outbox_oldest_s", "parked", "index_age_s",
        "index_ready", "last_backup_age_s", "last_backup_ok", "last_drill_age_s", "findings"}


@pytest.mark.timeout(200)
@slow
def test_health_says_the_same_few_things_in_every_fault(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """HT-25, HT-26, PV-01: numbers and booleans only, true within 15 seconds both ways, no probe for each question."""
    with rest_host(tmp_path) as host:
        assert host.server.call("echo_capture", title="Canary Title", kind="person", body="canary body")["ok"]
        times: list[float] = []

        def asked() -> dict[str, Any]:
            started = time.monotonic()
            answer = host.server.client.get(f"{host.server.base}/health", headers={"authorization": ""})
            times.append((time.monotonic() - started) * 1000)
            assert set(answer.json()) == KEYS
            assert all(isinstance(value, (bool, int)) for value in answer.json().values())
            assert len(answer.content) <= 512
            return dict(answer.json())

        for kind, wanted in (("refuse", "vault_reachable"), ("error_before", "vault_reachable"),
                             ("wrong_key", "vault_auth_ok"), ("hang", "vault_reachable"),
                             ("garbage", "vault_reachable")):
            fault = host.api.faults.add(kind)
            host.api.settle()
            host.server.call("echo_append_note", path="areas/business/n0.md", line=f"- canary {kind}")
            until(lambda wanted=wanted: asked()[wanted] is False, 15, kind)
            host.api.log.clear()
            for _ in range(200):
                asked()
            assert len(host.api.log.entries) < 50, "a question is no probe"
            host.api.faults.remove(fault)
            host.api.settle()
            until(lambda: asked()["vault_reachable"] and asked()["vault_auth_ok"], 40, kind)
        until(lambda: asked()["outbox_depth"] == 0)
        text = "\n".join(host.server.lines)
        assert not [word for word in ("anary", TOKEN, KEY, str(host.vault)) if word in text]
        record_property("health p99 ms", sorted(times)[int(len(times) * 0.99)])
