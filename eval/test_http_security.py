"""Who gets in and what a hostile or clumsy client can do: nothing (spec 4.1; fault group http).

The server is a real process with fake tools. A refusal never reaches a tool, and every test leaves a server that
still answers.
"""
from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from echo_mcp.auth import OPEN_PATHS
from echo_mcp.health import Health
from echo_mcp.http import routes
from echo_mcp.registry import Registry
from serverproc import EVAL, LEGACY, MODERN, TOKEN, Server, environment, running_server, spawned

GOOD = f"Authorization: Bearer {TOKEN}".encode()
METHODS = (b"GET", b"POST", b"PUT", b"PATCH", b"DELETE", b"HEAD", b"OPTIONS")
BAD_CREDENTIALS = {
    "none": b"",
    "empty": b"Authorization: \r\n",
    "basic": b"Authorization: Basic dXNlcjpwdw==\r\n",
    "wrong": b"Authorization: Bearer " + b"x" * len(TOKEN) + b"\r\n",
    "prefix": f"Authorization: Bearer {TOKEN[:-1]}\r\n".encode(),
    "longer": f"Authorization: Bearer {TOKEN}x\r\n".encode(),
    "two spaces": f"Authorization: Bearer  {TOKEN}\r\n".encode(),
    "cookie": f"Cookie: token={TOKEN}\r\n".encode(),
    "other header": f"X-Api-Key: {TOKEN}\r\n".encode(),
    "comma list": f"Authorization: Bearer {TOKEN}, Bearer {TOKEN}\r\n".encode(),
    "8 kB": b"Authorization: Bearer " + b"a" * 8192 + b"\r\n",
    "non-ascii": "Authorization: Bearer tökén\r\n".encode(),
    "lower-case scheme": f"Authorization: bearer {TOKEN}\r\n".encode(),
    "bare token": f"Authorization: {TOKEN}\r\n".encode(),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("http"), fake=True, FAKE_READ_DEADLINE="1") as running:
        yield running


@pytest.fixture(scope="module")
def public_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with public names, bound to every address."""
    with running_server(
        tmp_path_factory.mktemp("hosts"), fake=True, ECHO_MCP_HOST="0.0.0.0",
        ECHO_MCP_ALLOWED_HOSTS="Echo.Example.org, lan.example:8765", ECHO_MCP_ALLOWED_ORIGINS="https://claude.ai/",
    ) as running:
        yield running


@pytest.fixture(autouse=True)
def still_answers(server: Server) -> Iterator[None]:
    """Whatever a test did to the server, the next good request is served."""
    yield
    assert server.call("fake_noop", text="alive")["ok"]


def send(server: Server, method: bytes, path: bytes, headers: bytes = b"", body: bytes = b"") -> tuple[int, bytes]:
    """(status, whole answer) of one raw request that asks to be the last on its connection."""
    head = method + b" " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" + headers
    if body:
        head += b"Content-Type: application/json\r\nContent-Length: " + str(len(body)).encode() + b"\r\n"
    answer = server.raw(head + b"\r\n" + body)
    return status_of(answer), answer


def status_of(answer: bytes) -> int:
    """The status of the first response in `answer`, 0 when there is none."""
    found = re.match(rb"HTTP/1\.1 (\d{3})", answer)
    return int(found[1]) if found else 0


def effects(server: Server) -> int:
    """How often the tool with an effect has run, this call not counted."""
    return int(server.call("fake_effect")["count"]) - 1


def all_paths() -> list[str]:
    """Every path of the app, a name put in for the placeholder."""
    found = routes(Registry(), lambda *_: None, Health())  # type: ignore[arg-type,return-value]
    return [route.path.replace("{name}", "fake_effect") for route in found]


@pytest.mark.parametrize("credential", BAD_CREDENTIALS)
def test_without_the_token_every_route_answers_one_constant_401(server: Server, credential: str) -> None:
    """HT-01: all routes, all methods, one body, and no tool runs."""
    before = effects(server)
    bodies = set()
    for path in [*all_paths(), "/nowhere", f"/mcp?token={TOKEN}"]:
        for method in METHODS:
            if path.encode() in OPEN_PATHS and method in (b"GET", b"HEAD"):
                continue
            status, answer = send(server, method, path.encode(), BAD_CREDENTIALS[credential], b'{"mark": "x"}')
            assert status == 401, (method, path)
            assert b'www-authenticate: Bearer realm="echo"' in answer
            assert len(answer) <= 1024
            bodies.add(answer.partition(b"\r\n\r\n")[2])
    (body,) = bodies - {b""}
    assert json.loads(body)["error"]["code"] == "unauthorized"
    assert effects(server) == before + 1


@pytest.mark.parametrize("pair", ["good bad", "bad good", "good good"])
def test_two_authorization_headers_are_refused(server: Server, pair: str) -> None:
    """HT-02: a proxy and the server must never choose different ones."""
    words = {"good": GOOD, "bad": b"Authorization: Bearer wrong"}
    headers = b"".join(words[word] + b"\r\n" for word in pair.split())
    assert send(server, b"GET", b"/metrics", headers)[0] == 401


def test_health_is_the_only_open_route(server: Server) -> None:
    """HT-05: a new route fails here until it is behind the token or listed."""
    opened = {path for path in all_paths() if send(server, b"GET", path.encode())[0] < 400}
    assert opened == {"/health"} == {path.decode() for path in OPEN_PATHS}


@pytest.mark.parametrize("path", [
    b"//mcp", b"/mcp/", b"/%6dcp", b"/MCP", b"/mcp;a", b"/health/../mcp", b"/mcp/../health", b"/health/",
    b"/%68ealth", b"/health%2f..%2fmcp", b"http://127.0.0.1/mcp", b"http://127.0.0.1/health", b"/health?x=/../mcp",
    b"/.well-known/../mcp", b"/register/../mcp", b"/health#/mcp",
])
def test_no_spelling_of_a_path_avoids_the_token(server: Server, path: bytes) -> None:
    """HT-06: tools/list without a token never answers with tools."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    status, answer = send(server, b"POST", path, b"Accept: application/json\r\n", body)
    assert status in (400, 401, 404)
    assert b"fake_noop" not in answer


@pytest.mark.parametrize("headers", [b"", GOOD + b"\r\n"])
@pytest.mark.parametrize("path", [
    b"/.well-known/oauth-protected-resource", b"/.well-known/oauth-authorization-server/mcp", b"/register",
])
def test_where_clients_look_for_oauth_there_is_nothing(server: Server, path: bytes, headers: bytes) -> None:
    """A 401 there would make Claude Code believe in an OAuth server."""
    assert send(server, b"GET", path, headers)[0] == 404
    assert send(server, b"POST", path, headers, b"{}")[0] == 404


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/"])
def test_mcp_answers_where_connectors_look_for_it(server: Server, path: str) -> None:
    """Some connectors post to the bare address or add a slash."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    answer = server.client.post(server.base + path, json=body, headers={"accept": "application/json"})
    assert answer.status_code == 200
    assert answer.json()["result"]["tools"][0]["name"] == "fake_noop"


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD", "TRACE", "FOO"])
def test_other_methods_are_not_allowed_on_mcp(server: Server, method: str) -> None:
    """HT-21: 405 with the allowed ones, no body echoed, no CORS grant; an open stream would block SIGTERM."""
    for path in (b"/mcp", b"/"):
        headers = GOOD + b"\r\nOrigin: http://localhost\r\n"
        status, answer = send(server, method.encode(), path, headers, b'{"canary": 1}')
        assert status == 405
        assert b"allow:" in answer
        assert b"canary" not in answer
        assert b"access-control" not in answer.lower()


@pytest.mark.parametrize(("host", "status"), [
    (b"evil.example", 421), (b"10.2.0.35:8765", 421), (b"127.0.0.1.evil.example", 421), (b"localhost", 200),
    (b"LocalHost:1234", 200), (b"[::1]:8765", 200), (b"127.0.0.1", 200), (b"ECHO.example.org", 200),
    (b"echo.example.org:443", 200), (b"lan.example:8765", 200), (b"lan.example:9999", 421), (b"", 421),
])
def test_only_known_host_names_are_served(public_server: Server, host: bytes, status: int) -> None:
    """HT-09: DNS rebinding; the refusal names the setting, letter case and port do not matter."""
    answer = public_server.raw(b"GET /health HTTP/1.1\r\nConnection: close\r\nHost: " + host + b"\r\n\r\n")
    assert status_of(answer) == status
    assert status == 200 or b"ECHO_MCP_ALLOWED_HOSTS" in answer


@pytest.mark.parametrize("heads", [b"", b"Host: localhost\r\nHost: localhost\r\n"])
def test_a_request_needs_exactly_one_host(server: Server, heads: bytes) -> None:
    """HT-09: none, also in HTTP/1.0, or two: 400."""
    for version in (b"1.1", b"1.0"):
        answer = server.raw(b"GET /health HTTP/" + version + b"\r\nConnection: close\r\n" + heads + b"\r\n")
        assert status_of(answer) == 400


@pytest.mark.parametrize(("origin", "allowed"), [
    (b"https://evil.example", False), (b"null", False), (b"https://claude.ai.evil.example", False),
    (b"https://claude.ai", True), (b"HTTPS://Claude.AI", True), (b"https://claude.ai:443", True), (b"", False),
    (b"http://localhost:6274", True), (b"http://127.0.0.1", True), (b"file://", False),
])
@pytest.mark.parametrize("path", [b"/mcp", b"/api/tools/fake_noop", b"/health"])
def test_foreign_web_pages_are_refused(public_server: Server, origin: bytes, allowed: bool, path: bytes) -> None:
    """HT-08: on every door, and no answer ever grants CORS."""
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
    headers = GOOD + b"\r\nAccept: application/json\r\nOrigin: " + origin + b"\r\n"
    method = b"GET" if path == b"/health" else b"POST"
    status, answer = send(public_server, method, path, headers, b"" if method == b"GET" else body)
    assert status == (200 if allowed else 403)
    assert allowed or b"ECHO_MCP_ALLOWED_ORIGINS" in answer
    assert b"access-control-allow-origin" not in answer.lower()


def test_a_declared_body_over_the_limit_is_refused_before_it_is_read(server: Server) -> None:
    """HT-16: 413 with the token; 401 without it, both at once."""
    head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 67108864\r\n"
    assert status_of(server.raw(head + GOOD + b"\r\n\r\n")) == 413
    assert status_of(server.raw(head + b"\r\n")) == 401


def test_a_chunked_body_over_the_limit_is_refused(server: Server) -> None:
    """HT-16: the count is of what arrives, not of what was announced."""
    head = b"POST /api/tools/fake_noop HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
    head += GOOD + b"\r\n\r\n"
    chunk = b"10000\r\n" + b"a" * 65536 + b"\r\n"
    assert status_of(server.raw(head, *([chunk] * 70))) == 413


def test_a_body_that_never_comes_is_given_up(server: Server) -> None:
    """HT-18: a read deadline for bodies, with and without the token, and for heads; others are served meanwhile."""
    body = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
    slow = [body + GOOD + b"\r\n\r\n{", body + b"\r\n{", b"POST /mcp HTTP/1.1\r\nHost: loc", b""]
    started = time.monotonic()
    with ThreadPoolExecutor(len(slow)) as pool:
        answers = list(pool.map(server.raw, slow))
        assert server.call("fake_noop")["ok"]
    assert time.monotonic() - started < 25  # far below the 30 s of a client without a deadline
    assert [status_of(answer) for answer in answers] == [408, 401, 408, 408]


@pytest.mark.parametrize("parts", [
    b"X: " + b"a" * 131072, b"\r\n".join(b"X-%d: y" % number for number in range(2000)),
], ids=["one long header", "many headers"])
def test_oversized_heads_are_refused(server: Server, parts: bytes) -> None:
    """HT-24: 128 kB of header, 2,000 headers, a path of 64 kB."""
    assert send(server, b"GET", b"/health", parts + b"\r\n")[0] in (0, 400, 431)
    assert send(server, b"GET", b"/health?" + b"a" * 65536)[0] in (0, 400, 414, 431)


_EFFECT = b"POST /api/tools/fake_effect HTTP/1.1\r\nHost: localhost\r\n" + GOOD + b"\r\n"
SMUGGLING = {
    "length and chunked": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 2\r\nContent-Length: 50\r\n\r\n{}",
    "plus length": b"Content-Length: +2\r\n\r\n{}",
    "negative length": b"Content-Length: -1\r\n\r\n{}",
    "chunk extension junk": b"Transfer-Encoding: chunked\r\n\r\n2;\x00=\n\r\n{}\r\n0\r\n\r\n",
    "folded header": b"X: a\r\n b\r\nContent-Length: 2\r\n\r\n{}",
    "space before colon": b"Content-Length : 2\r\n\r\n{}",
    "nul in value": b"X: a\x00b\r\nContent-Length: 2\r\n\r\n{}",
    "unknown coding": b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "chunked twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("shape", SMUGGLING)
def test_a_second_request_cannot_be_smuggled(server: Server, shape: str) -> None:
    """HT-22: at most one request of a send is handled, never the hidden one without a token."""
    before = effects(server)
    hidden = b"POST /api/tools/fake_effect HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"
    answer = server.raw(_EFFECT + SMUGGLING[shape] + hidden, timeout_s=2)
    assert status_of(answer) < 500
    assert effects(server) - before - 1 <= 1


@pytest.mark.parametrize("noise", [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x11" * 200, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    bytes(range(256)) * 4096, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\nHost: localhost\r\nConnection: close\r\n\r\n",
], ids=["tls", "http2", "proxy", "binary", "no target", "version"])
def test_another_protocol_on_the_port_is_turned_away(server: Server, noise: bytes) -> None:
    """HT-23: 400 and close, soon."""
    started = time.monotonic()
    assert status_of(server.raw(noise)) in (0, 400, 401, 505)
    assert time.monotonic() - started < 5


MALFORMED = {
    "not json": b"{", "empty": b"", "latin-1": b'{"a": "\xe9"}', "utf-16": '{"jsonrpc": "2.0"}'.encode("utf-16"),
    "deep": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fake_effect","arguments":{"a":'
            + b"[" * 100_000,
    "deep and closed": b"[" * 100_000 + b"]" * 100_000,
    "batch": b'[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fake_effect","arguments":{}}}]',
    "empty batch": b"[]", "string": b'"x"', "null": b"null", "number": b"1e400",
    "odd casing": b'{"jsonrpc":"2.0","id":1,"Method":"tools/call","Params":{"name":"fake_effect"}}',
    "object id": b'{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{"name":"fake_effect"}}',
    "wrong version": b'{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"fake_effect"}}',
    "params list": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["fake_effect"]}',
}


@pytest.mark.parametrize("era", [LEGACY, MODERN])
@pytest.mark.parametrize("shape", MALFORMED)
def test_malformed_json_rpc_is_refused_without_effect(server: Server, shape: str, era: str) -> None:
    """HT-10, HT-13, HT-15, HT-31: 400, at once, in both eras."""
    before = effects(server)
    headers = (f"Mcp-Protocol-Version: {era}\r\nMcp-Method: tools/call\r\nMcp-Name: fake_effect\r\n"
               "Accept: application/json\r\nContent-Type: application/json\r\n").encode()
    body = MALFORMED[shape]
    head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + GOOD + b"\r\n" + headers
    answer = server.raw(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    # An object as id makes it a notification for the legacy era: accepted and dropped.
    assert status_of(answer) == (202 if (shape, era) == ("object id", LEGACY) else 400), answer[:300]
    assert effects(server) == before + 1


@pytest.mark.parametrize("number", ["1" * 5000, "1e400", "NaN", "-Infinity", "-0"])
def test_huge_numbers_are_no_server_error(server: Server, number: str) -> None:
    """HT-14: 400 or a normal answer, in both eras and by REST."""
    arguments = f'{{"text": {number}}}'
    rest = send(server, b"POST", b"/api/tools/fake_noop", GOOD + b"\r\n", arguments.encode())[0]
    assert rest in (200, 400)
    for era in (LEGACY, MODERN):
        body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fake_noop","arguments":%s,"_meta":' \
            '{"io.modelcontextprotocol/protocolVersion":"%s","io.modelcontextprotocol/clientCapabilities":{}}}}'
        headers = f"Mcp-Protocol-Version: {era}\r\nMcp-Method: tools/call\r\nMcp-Name: fake_noop\r\nAccept: */*\r\n"
        status, answer = send(
            server, b"POST", b"/mcp", GOOD + b"\r\n" + headers.encode(), (body % (arguments, era)).encode()
        )
        assert status in (200, 400), answer
        assert b"NaN" not in answer.partition(b"\r\n\r\n")[2] or b'"NaN"' in answer


@pytest.mark.parametrize(("version", "status"), [
    ("", 200), ("2024-11-05", 200), ("2025-03-26", 200), ("2025-06-18", 200), ("2025-11-25", 200), ("1999-01-01", 400),
])
def test_protocol_versions_are_told_apart(server: Server, version: str, status: int) -> None:
    """HT-30: known dates work, none is assumed, an unknown one is refused."""
    headers = {"accept": "application/json", **({"mcp-protocol-version": version} if version else {})}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    assert server.client.post(f"{server.base}/mcp", json=body, headers=headers).status_code == status


def test_the_same_id_in_flight_many_times_gets_its_own_answers(server: Server) -> None:
    """HT-32: requests of different clients do not share a number space."""
    def ask(mark: str) -> str:
        era = MODERN if int(mark) % 2 else LEGACY
        return str(server.tool("fake_noop", era=era, text=mark)["structuredContent"]["arguments"]["text"])

    marks = [str(number) for number in range(50)]
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(ask, marks)) == marks


@pytest.mark.parametrize("session", ["0" * 32, "a" * 10_000, "../../etc"])
def test_a_forged_session_id_opens_nothing(server: Server, session: str) -> None:
    """HT-33: there are no sessions."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"accept": "application/json", "mcp-session-id": session}
    answer = server.client.post(f"{server.base}/mcp", json=body, headers=headers)
    assert answer.status_code in (200, 400, 404)
    assert "mcp-session-id" not in answer.headers


def test_guessing_tokens_fills_no_log_and_locks_nobody_out(server: Server) -> None:
    """HT-27: 401 each time, at most one line a second, the good token goes on working."""
    before, started = len(server.events("unauthorized")), time.monotonic()
    for guess in range(300):
        headers = {"authorization": f"Bearer guess-{guess}"}
        assert server.client.get(f"{server.base}/metrics", headers=headers).status_code == 401
    assert server.client.get(f"{server.base}/metrics").status_code == 200
    assert len(server.events("unauthorized")) - before <= time.monotonic() - started + 2


def test_nothing_a_client_sends_comes_back_in_the_log(server: Server) -> None:
    """PV-01, PV-04, PV-06: arguments, paths, tokens, exceptions; one physical line of JSON for each event."""
    canary = "canary-7713\nforged\x1b[31m"
    server.call("fake_noop", text=canary)
    crashed = server.call("fake_crash", text=canary)
    server.tool("fake_crash", text=canary)
    server.client.get(f"{server.base}/canary-7713?token={TOKEN}")
    send(server, b"POST", b"/mcp", GOOD + b"\r\nMcp-Protocol-Version: canary-7713\r\n", b'{"canary-7713"')
    server.raw(b"canary-7713 \x1b[31m\r\n\r\n")
    server.call("fake_noop")
    assert crashed["code"] == "internal"
    assert "canary" not in json.dumps(crashed)
    assert "Error" not in crashed["error"]
    assert not [line for line in server.lines if "canary" in line or TOKEN in line]
    assert all(json.loads(line) for line in server.lines)


def test_a_flood_of_idle_connections_leaves_room(tmp_path: Path) -> None:
    """HT-19: with a small file limit the oldest idle connections give way; the process stays alive."""
    state = tmp_path / "state"
    env = environment(tmp_path / "vault", state)
    command = ["prlimit", "--nofile=320:320", sys.executable, str(EVAL / "fakeserver.py"), "0"]
    flooded = spawned(command, env, tmp_path, state)
    try:
        flooded.wait()
        idle = [socket.create_connection(("127.0.0.1", flooded.port), timeout=5) for _ in range(400)]
        assert flooded.call("fake_noop")["ok"]
        for connection in idle:
            connection.close()
        assert flooded.call("fake_noop")["ok"]
    finally:
        assert flooded.stop() == 0


def test_a_request_in_flight_is_answered_before_the_end(tmp_path: Path) -> None:
    """SIGTERM: no new connections, health says 503, the running write gets its answer, exit 0."""
    with running_server(tmp_path, fake=True) as ending, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ending.call, "fake_effect", sleep_s=1)
        while "echo_calls_open 1\n" not in ending.client.get(f"{ending.base}/metrics").text:
            pass
        ending.process.terminate()
        assert answer.result(10) == {"ok": True, "action": "created", "count": 1}
        assert ending.process.wait(10) == 0


def test_an_address_in_use_is_one_line(tmp_path: Path, server: Server) -> None:
    """A second server on the same port says which settings to change and leaves."""
    env = environment(tmp_path / "vault", tmp_path / "state", ECHO_MCP_PORT=str(server.port))
    done = subprocess.run([sys.executable, "-m", "echo_mcp", "serve"], env=env, capture_output=True, text=True)
    assert done.returncode == 69
    assert done.stderr.count("\n") == 1
    assert "ECHO_MCP_PORT" in done.stderr
