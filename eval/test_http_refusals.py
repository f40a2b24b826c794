"""Whatever HTTP refuses by itself carries a code for machines, in the one envelope or in JSON-RPC (spec 3.1, 4.1)."""
from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from echo_mcp import settings
from echo_mcp.health import Health
from echo_mcp.http import build_app
from echo_mcp.registry import Registry
from serverproc import LEGACY, MODERN, TOKEN, Server, environment, running_server

GOOD = f"Authorization: Bearer {TOKEN}\r\n".encode()
HOST = b"Host: localhost\r\n"
LONG = b"Content-Length: 67108864\r\n"
JUNK = b"X: " + b"a" * 40_000 + b"\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("refusals"), fake=True, FAKE_READ_DEADLINE="0.3") as running:
        yield running


def asked(server: Server, request: bytes) -> tuple[int, dict[str, Any], bytes]:
    """(status, JSON body, whole answer) of raw bytes."""
    answer = server.raw(request)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head, answer[:300]
    return int(head.split()[1]), json.loads(body), answer


REST = [
    (b"GET /nowhere HTTP/1.1\r\n" + HOST + GOOD, 404, "not-found"),
    (b"POST /api/tools/none HTTP/1.1\r\n" + HOST + GOOD, 404, "not-found"),
    (b"GET /api/tools/fake_noop HTTP/1.1\r\n" + HOST + GOOD, 405, "method-not-allowed"),
    (b"DELETE /metrics HTTP/1.1\r\n" + HOST + GOOD, 405, "method-not-allowed"),
    (b"FOO /api/docs HTTP/1.1\r\n" + HOST + GOOD, 405, "method-not-allowed"),
    (b"GET /mcp HTTP/1.1\r\n" + HOST + GOOD, 405, "method-not-allowed"),
    (b"DELETE / HTTP/1.1\r\n" + HOST + GOOD, 405, "method-not-allowed"),
    (b"GET /metrics HTTP/1.1\r\n" + HOST, 401, "unauthorized"),
    (b"POST /mcp HTTP/1.1\r\n" + HOST, 401, "unauthorized"),
    (b"GET /register HTTP/1.1\r\n" + HOST, 404, "not-found"),
    (b"GET /health HTTP/1.1\r\nHost: evil.example\r\n", 421, "host-refused"),
    (b"GET /health HTTP/1.1\r\n" + HOST + b"Origin: https://evil.example\r\n", 403, "origin-refused"),
    (b"GET /health HTTP/1.0\r\n", 400, "bad-request"),
    (b"POST /api/tools/fake_noop HTTP/1.1\r\n" + HOST + GOOD + LONG, 413, "too-large"),
    (b"GET /health HTTP/1.1\r\n" + HOST + b"X: y\r\n" * 200, 431, "too-large"),
    (b"nonsense\r\n", 400, "bad-request"),
    (b"POST /api/tools/fake_noop HTTP/1.1\r\n" + HOST + GOOD + b"Content-Length: 9\r\n", 408, "timeout"),
]


@pytest.mark.parametrize(("request_", "status", "code"), REST, ids=[f"{row[1]}-{n}" for n, row in enumerate(REST)])
def test_a_refusal_outside_mcp_is_the_envelope_of_every_failure(
    server: Server, request_: bytes, status: int, code: str
) -> None:
    """Code, one line of what is wrong, what to do next; nothing of what was sent."""
    answered, body, whole = asked(server, request_ + b"Connection: close\r\n\r\n")
    data = body["data"]
    assert (answered, body["success"], body["error"]["code"]) == (status, False, code)
    assert (data["ok"], data["code"], data["error"]) == (False, code, body["error"]["message"])
    assert data["hint"]
    assert b"evil" not in whole
    assert TOKEN.encode() not in whole
    if code == "not-found" and b"/api/tools/" not in request_:
        assert "/mcp" in data["hint"], "a connector with a wrong address learns the right one"
    if status in (413, 431):
        assert data["limit"] > 0
    if status == 405:
        assert set(data["allowed"]) & {"GET", "POST"}


MCP = [
    (b"Host: evil.example\r\n", 421, "host-refused"),
    (HOST + b"Origin: https://evil.example\r\n", 403, "origin-refused"),
    (b"", 400, "bad-request"), (HOST + GOOD + LONG, 413, "too-large"), (HOST + b"X: y\r\n" * 200, 431, "too-large"),
]


@pytest.mark.parametrize(("headers", "status", "code"), MCP)
def test_a_refusal_of_an_mcp_call_is_a_json_rpc_error_with_the_code_in_its_data(
    server: Server, headers: bytes, status: int, code: str
) -> None:
    """Clients of MCP read nothing else; the message holds what to do next."""
    version = b"1.1" if headers else b"1.0"
    request = b"POST /mcp HTTP/" + version + b"\r\n" + headers + b"Connection: close\r\n\r\n"
    answered, body, _ = asked(server, request)
    assert answered == status
    assert set(body) == {"jsonrpc", "id", "error"}
    assert (body["error"]["code"], body["error"]["data"]["code"]) == (-32600, code)
    assert body["error"]["data"]["hint"] in body["error"]["message"]


def rpc(method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).encode()


RPC = {
    "no json": (b"{", "invalid-argument"), "batch": (b"[]", "invalid-argument"), "no rpc": (b"{}", "invalid-argument"),
    "no such method": (rpc("nonsense/list"), "not-found"),
    "no such tool": (rpc("tools/call", name="fake_nop", arguments={}), "not-found"),
    "no such prompt": (rpc("prompts/get", name="none"), "not-found"),
    "no such resource": (rpc("resources/read", uri="echo://none/x"), "not-found"),
    "bad params": (rpc("tools/call", name=3), "invalid-argument"),
}


@pytest.mark.parametrize("era", [LEGACY, MODERN])
@pytest.mark.parametrize("case", RPC)
def test_every_json_rpc_error_has_a_code_for_machines(server: Server, case: str, era: str) -> None:
    """Those of the SDK too; the id of the call comes back where the call had one."""
    body, code = RPC[case]
    message = json.loads(body) if body != b"{" else None
    headers = {"accept": "application/json", "content-type": "application/json", "mcp-protocol-version": era}
    if era == MODERN and isinstance(message, dict) and "method" in message:
        message["params"]["_meta"] = {"io.modelcontextprotocol/protocolVersion": era,
                                      "io.modelcontextprotocol/clientCapabilities": {}}
        headers["mcp-method"] = message["method"]
        headers.update({"mcp-name": message["params"][name] for name in ("name", "uri")
                        if isinstance(message["params"].get(name), str)})
        body = json.dumps(message).encode()
    answer = server.client.post(f"{server.base}/mcp", content=body, headers=headers).json()
    assert answer["error"]["data"]["code"] == code, answer
    assert answer.get("id") in ((7, None) if case == "bad params" else (7,) if isinstance(message, dict) and message
                                else (None, ""))


@pytest.mark.parametrize(("headers", "status", "code"), [
    ({"content-type": "text/plain"}, 415, "unsupported-media-type"),
    ({"content-type": ""}, 415, "unsupported-media-type"),
    ({"accept": "text/html"}, 406, "invalid-argument"),
    ({"mcp-protocol-version": "1999-01-01"}, 400, "invalid-argument"),
    ({"content-type": "Application/JSON; charset=utf-8"}, 200, ""),
])
def test_a_header_that_mcp_does_not_take_is_refused_with_a_code(
    server: Server, headers: dict[str, str], status: int, code: str
) -> None:
    """Another media type in or out, and a version of no date."""
    sent = {"accept": "application/json", "content-type": "application/json", **headers}
    answer = server.client.post(f"{server.base}/mcp", content=rpc("tools/list"), headers=sent)
    assert answer.status_code == status, answer.text
    assert status == 200 or answer.json()["error"]["data"]["code"] == code


def test_a_fault_of_our_own_is_a_500_with_an_error_id(tmp_path: Path) -> None:
    """And nothing of the exception; an answer that has begun is not begun twice."""
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("canary-in-exception")

    found = replace(settings.load(environment(tmp_path / "vault", tmp_path / "state")), token=TOKEN)
    app = build_app(Registry(), broken, Health(), found, lambda _: None)  # type: ignore[arg-type,return-value]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"),
               (b"authorization", f"Bearer {TOKEN}".encode())]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "raw_path": b"/mcp", "query_string": b"",
             "headers": headers, "root_path": ""}
    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    assert sent[0]["status"] == 500
    data = json.loads(sent[1]["body"])["error"]["data"]
    assert (data["code"], len(data["error_id"])) == ("internal", 12)
    assert b"canary" not in sent[1]["body"]
