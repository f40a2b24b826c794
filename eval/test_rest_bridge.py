"""Every tool as a POST, the same envelope as by MCP, the status of spec 3.1; OpenAPI, docs page, metrics (spec 4.3)."""
from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from echo_core.errors import DECISIONS, ERRORS
from echo_mcp.outcomes import rest_answer
from serverproc import Server, running_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("rest"), fake=True) as running:
        yield running


@pytest.mark.parametrize("code", sorted(ERRORS))
def test_every_error_code_has_its_status(code: str) -> None:
    """`success: false`, the code and the message outside, the whole envelope in `data`."""
    envelope = {"ok": False, "code": code, "error": "what went wrong", "hint": "what next"}
    status, body = rest_answer(envelope)
    assert status == ERRORS[code].http_status
    assert body == {"success": False, "error": {"code": code, "message": "what went wrong"}, "data": envelope}


@pytest.mark.parametrize("action", sorted(DECISIONS))
def test_every_decision_has_its_status(action: str) -> None:
    """A gate, a lock and a stale preview are no success either; their code is the action."""
    envelope = {"ok": False, "action": action, "hint": "choose"}
    status, body = rest_answer(envelope)
    assert status == DECISIONS[action].http_status
    assert (body["success"], body["error"]["code"], body["data"]) == (False, action, envelope)


def test_a_queued_write_is_accepted() -> None:
    """202: it has not arrived yet."""
    assert rest_answer({"ok": True, "queued": True}) == (202, {"success": True, "data": {"ok": True, "queued": True}})


def test_a_tool_answers_the_envelope_that_mcp_answers(server: Server) -> None:
    """One call path: `data` equals `structuredContent`."""
    by_rest = server.client.post(f"{server.base}/api/tools/fake_noop", json={"text": "ä"}).json()
    assert by_rest == {"success": True, "data": server.tool("fake_noop", text="ä")["structuredContent"]}


@pytest.mark.parametrize(("name", "status", "code"), [
    ("fake_decide", 409, "duplicate-gate"), ("fake_down", 503, "vault-unreachable"), ("fake_crash", 500, "internal"),
    ("fake_nop", 404, "not-found"), ("../health", 404, ""), ("fake_noop/", 404, ""),
])
def test_failures_over_http(server: Server, name: str, status: int, code: str) -> None:
    """Unknown tools are 404 with the nearest name."""
    answer = server.client.post(f"{server.base}/api/tools/{name}", json={})
    assert answer.status_code == status
    if code:
        assert answer.json()["error"]["code"] == code
    if name == "fake_nop":
        assert "fake_noop" in answer.json()["data"]["hint"]


@pytest.mark.parametrize("body", [b"{", b'{"a": NaN}', b"\xff", b'{"a": 1} x', b"[" * 100_000])
def test_a_body_that_is_no_json_is_400(server: Server, body: bytes) -> None:
    """With the shape of every other refusal."""
    answer = server.client.post(f"{server.base}/api/tools/fake_noop", content=body)
    assert (answer.status_code, answer.json()["success"]) == (400, False)


@pytest.mark.parametrize("body", [b"[]", b'"text"', b"null", b"1"])
def test_a_body_that_is_no_object_is_422(server: Server, body: bytes) -> None:
    """Arguments have names."""
    answer = server.client.post(f"{server.base}/api/tools/fake_noop", content=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid-argument")


def test_no_body_means_no_arguments(server: Server) -> None:
    """`curl -X POST` works for tools that need none."""
    assert server.client.post(f"{server.base}/api/tools/fake_noop").json()["data"] == {"ok": True, "arguments": {}}


def test_a_large_answer_is_cut_and_says_so(server: Server) -> None:
    """The bound is the registry's and so the same on every door."""
    data = server.call("fake_big", count=5000)
    assert data["truncated"]
    assert data["full_length"] == {"items": 5000}
    assert len(json.dumps(data)) < 30_000
    assert server.tool("fake_big", count=5000)["structuredContent"] == data


def test_openapi_describes_every_tool(server: Server) -> None:
    """Derived from the registry: paths, arguments, statuses, the token."""
    found = server.client.get(f"{server.base}/api/openapi.json").json()
    listed = server.rpc("tools/list").json()["result"]["tools"]
    assert found["openapi"].startswith("3.1")
    assert list(found["paths"]) == [f"/api/tools/{tool['name']}" for tool in listed]
    for tool in listed:
        operation = found["paths"][f"/api/tools/{tool['name']}"]["post"]
        assert operation["requestBody"]["content"]["application/json"]["schema"] == tool["inputSchema"]
        statuses = {str(outcome.http_status) for outcome in (*ERRORS.values(), *DECISIONS.values())}
        assert set(operation["responses"]) >= {"200", "400", *statuses}


def test_the_docs_page_loads_nothing_from_elsewhere(server: Server) -> None:
    """Every tool on one page, no script, no reference out; the browser is told so too."""
    answer = server.client.get(f"{server.base}/api/docs")
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "fake_noop" in answer.text
    assert not re.search(r"<script|<link|<img|src=|https?://|@import|url\(", answer.text)


def test_metrics_count_calls_by_outcome(server: Server) -> None:
    """Prometheus text: every sample has its type, no label comes from a caller."""
    server.call("fake_decide")
    server.call("canary_name")
    text = server.client.get(f"{server.base}/metrics").text
    assert re.search(r'^echo_calls_total\{tool="fake_decide",outcome="duplicate-gate"\} \d+$', text, re.MULTILINE)
    assert "echo_vault_up 0\n" in text
    assert "canary" not in text
    named = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    for line in text.splitlines():
        assert line.startswith("#") or re.fullmatch(r'[a-z_]+(\{[a-z]+="[^"]+"(,[a-z]+="[^"]+")*\})? -?[0-9.]+', line)
        assert line.startswith("#") or re.sub(r"(_sum|_count)?[{ ].*", "", line) in named
