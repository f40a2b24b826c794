"""The server as its clients see it: a real process, both protocol eras, REST beside it, stdio (spec 4)."""
from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import echo_tools
import httpx
import pytest
from echo_mcp.toolsets.memory import INSTRUCTIONS, PROMPTS
from jsonschema import Draft202012Validator
from serverproc import LEGACY, MODERN, TOKEN, Server, environment, running_server

CORE = {"echo_load", "echo_recall", "echo_capture", "echo_triage_inbox", "echo_log_session", "echo_health"}
READS = {tool.name for tool in echo_tools.TOOLS if tool.reads}
SUBJECT = "The analytical engine weaves algebraic patterns."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "vault/resources/people").mkdir(parents=True)
    (folder / "vault/resources/people/ada.md").write_text(f"---\ntitle: Ada\n---\n\n# Ada\n\n{SUBJECT}\n")
    with running_server(folder) as running:
        yield running
        assert [line for line in running.lines if "internal error" in line or "failed" in line] == []


def soon(check: Callable[[], bool], within_s: float = 15) -> None:
    """Return as soon as `check` holds; fail when it does not in time."""
    end = time.monotonic() + within_s
    while not check():
        assert time.monotonic() < end, "did not happen in time"
        threading.Event().wait(0.02)


def listed(server: Server, era: str = MODERN) -> list[dict[str, Any]]:
    return list(server.rpc("tools/list", era=era).json()["result"]["tools"])


@pytest.mark.parametrize("era", [MODERN, LEGACY])
def test_both_eras_list_the_tools_of_the_table_in_its_order(server: Server, era: str) -> None:
    """Names, descriptions, schemas and hints are the table's; nothing is declared twice."""
    tools = listed(server, era)
    assert [tool["name"] for tool in tools] == [tool.name for tool in echo_tools.TOOLS]
    for shown, tool in zip(tools, echo_tools.TOOLS):
        assert shown["description"] == tool.description
        assert shown["inputSchema"] == tool.input_schema()
        assert shown["outputSchema"] == tool.output_schema()
        assert shown["annotations"]["readOnlyHint"] == tool.reads
        assert shown["annotations"]["destructiveHint"] == tool.destructive
    assert "$ref" not in json.dumps(tools)
    assert "$defs" not in json.dumps(tools)


def test_the_handshake_carries_the_instructions(server: Server) -> None:
    """Load first, search before creating, close the session, notes are quoted: within 2,048 characters."""
    initialize = {
        "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }
    legacy = server.rpc("initialize", initialize, LEGACY).json()["result"]
    modern = server.rpc("server/discover").json()["result"]
    assert legacy["protocolVersion"] == LEGACY
    assert legacy["instructions"] == modern["instructions"] == INSTRUCTIONS
    assert len(INSTRUCTIONS) <= 2048
    for word in ("echo_load", "echo_recall", "echo_capture", "echo_log_session", "quoted material"):
        assert word in INSTRUCTIONS


def test_an_answer_is_the_same_on_every_door_and_carries_every_fact_twice(server: Server) -> None:
    """`structuredContent` and REST's `data` are one envelope; the text says the same for clients that drop it."""
    modern = server.tool("echo_resolve", mention="ada")
    legacy = server.tool("echo_resolve", era=LEGACY, mention="ada")
    assert modern["structuredContent"] == legacy["structuredContent"] == server.call("echo_resolve", mention="ada")
    assert modern["content"] == legacy["content"]
    text = modern["content"][0]["text"]
    assert "resources/people/ada.md" in text.splitlines()[0]
    for value in ("ada", "Ada", "person"):
        assert value in text
    assert modern["isError"] is False


def test_an_error_says_in_its_text_what_to_do(server: Server) -> None:
    """Claude Code's model sees only the text of an error: code, reason, hint and candidates stand in it."""
    result = server.tool("echo_get_note", path="resources/people/adda.md")
    assert result["isError"] is True
    assert result["structuredContent"]["code"] == "not-found"
    text = result["content"][0]["text"]
    assert text.startswith("not-found: ")
    assert "resources/people/ada.md" in text


def test_a_decision_is_no_error(server: Server) -> None:
    """A duplicate gate waits for the model's word; nothing was written."""
    before = sorted(server.vault.rglob("*.md"))
    result = server.tool("echo_capture", title="Ada", kind="person", body="Somebody else?")
    assert (result["isError"], result["structuredContent"]["action"]) == (False, "duplicate-gate")
    assert "merge_into" in result["content"][0]["text"]
    assert sorted(server.vault.rglob("*.md")) == before


@pytest.mark.parametrize(("name", "arguments", "field"), [
    ("echo_capture", {"titel": "x"}, "titel"), ("echo_capture", {}, "title"),
    ("echo_recall", {"query": ["x"]}, "query"), ("echo_recall", {"query": "x", "limit": "many"}, "limit"),
    ("echo_get_note", {"path": "../secret.md"}, "path"), ("echo_get_note", {"path": "a\0b"}, "path"),
    ("echo_rollup_data", {"period": "decade"}, "period"), ("echo_capture", {"title": "x", "date": "30.11."}, "date"),
    ("echo_reflect", {"proposals": [{"action": "capture", "nmae": "x"}]}, "proposals[0].nmae"),
])
def test_bad_arguments_are_refused_with_the_fields_name(
    server: Server, name: str, arguments: dict[str, Any], field: str
) -> None:
    """The SDK would drop unknown ones silently; the same refusal comes by MCP and by REST."""
    result = server.tool(name, **arguments)
    assert result["isError"] is True
    assert result["structuredContent"]["field"] == field
    assert server.call(name, **arguments) == result["structuredContent"]


def test_clients_that_send_lists_as_text_are_understood(server: Server) -> None:
    """`"tags": "a"` and `"[\\"a\\"]"` are lists, `"3"` is a number; an out-of-range number is used at its bound."""
    tagged = server.tool("echo_capture", title="Punch card", kind="concept", tags='["loom", "card"]', dry_run="true")
    assert "- loom" in tagged["structuredContent"]["diff"]
    answer = server.call("echo_recall", query="engine", limit="300")
    assert "300" in answer["warnings"][0]
    assert "20" in answer["warnings"][0]


def test_an_unknown_tool_is_a_protocol_error_that_names_the_nearest(server: Server) -> None:
    """-32602 by MCP, 404 by REST."""
    answer = server.rpc("tools/call", {"name": "echo_recal", "arguments": {}}).json()
    assert answer["error"]["code"] == -32602
    assert "echo_recall" in answer["error"]["message"]
    assert server.call("echo_recal")["code"] == "not-found"


def test_read_tools_answer_what_their_schema_says_and_write_nothing(server: Server) -> None:
    """MS-05, and every envelope validates against the published output schema."""
    arguments: dict[str, dict[str, Any]] = {
        "echo_recall": {"query": "algebraic patterns"}, "echo_resolve": {"mention": "ada"},
        "echo_get_note": {"path": "resources/people/ada.md"}, "echo_rollup_data": {"period": "week"},
        "echo_note_history": {"path": "resources/people/ada.md"}, "echo_health": {"deep": True},
    }
    before = {path: path.read_bytes() for path in server.vault.rglob("*.md")}
    schemas = {tool["name"]: tool["outputSchema"] for tool in listed(server)}
    for name in sorted(READS):
        envelope = server.tool(name, **arguments.get(name, {}))["structuredContent"]
        assert envelope["ok"], envelope
        Draft202012Validator(schemas[name]).validate(envelope)
    assert {path: path.read_bytes() for path in server.vault.rglob("*.md")} == before


def test_notes_are_resources(server: Server) -> None:
    """By path and by slug, percent-encoded or not; bounded; an unknown one is -32602 with the reason."""
    templates = server.rpc("resources/templates/list").json()["result"]["resourceTemplates"]
    assert [template["uriTemplate"] for template in templates] == ["echo://note/{path}", "echo://entity/{slug}"]
    assert server.rpc("resources/list").json()["result"]["resources"] == []
    for era in (MODERN, LEGACY):
        for uri in ("echo://note/resources/people/ada.md", "echo://note/resources%2Fpeople/ada.md",
                    "echo://entity/ada"):
            contents = server.rpc("resources/read", {"uri": uri}, era).json()["result"]["contents"]
            assert SUBJECT in contents[0]["text"]
        for uri in ("echo://note/none.md", "echo://note/..%2F..%2Fetc%2Fpasswd", "file:///etc/passwd"):
            error = server.rpc("resources/read", {"uri": uri}, era).json()["error"]
            assert error["code"] == -32602
            assert "root:" not in json.dumps(error)


def test_prompts_are_short_and_name_real_tools(server: Server) -> None:
    """load_memory, end_session and triage, each a message that a person could have written."""
    found = server.rpc("prompts/list").json()["result"]["prompts"]
    assert [prompt["name"] for prompt in found] == ["load_memory", "end_session", "triage"]
    for prompt in PROMPTS:
        result = server.rpc("prompts/get", {"name": prompt.name}).json()["result"]
        text = result["messages"][0]["content"]["text"]
        assert len(text) <= 2048
        named = {word.strip("`,.:") for word in text.split() if word.startswith(("echo_", "`echo_"))}
        assert named <= set(echo_tools.BY_NAME)
    assert server.rpc("prompts/get", {"name": "other"}).json()["error"]["code"] == -32602


def test_nobody_can_open_a_stream(server: Server) -> None:
    """An open listen stream would keep the process from leaving on SIGTERM."""
    answer = server.rpc("subscriptions/listen", {"notifications": {}})
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == -32601


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_sdk_client_of_both_eras_lives_with_the_server(server: Server, mode: str) -> None:
    """List, call, read, prompt, through the SDK's own client."""
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async def visit() -> tuple[int, Any, str]:
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(headers=headers, trust_env=False) as web:
            transport = streamable_http_client(f"{server.base}/mcp", http_client=web)
            async with Client(transport, mode=mode) as client:  # type: ignore[arg-type]
                tools = await client.list_tools()
                result = await client.call_tool("echo_resolve", {"mention": "ada"})
                note = await client.read_resource("echo://entity/ada")
                return len(tools.tools), result.structured_content, note.contents[0].text  # type: ignore[union-attr]

    count, envelope, text = asyncio.run(visit())
    assert count == len(echo_tools.TOOLS)
    assert envelope["path"] == "resources/people/ada.md"
    assert SUBJECT in text


def test_a_capture_is_found_in_the_next_call(server: Server) -> None:
    """Read-your-writes: no wait between writing and recalling."""
    created = server.call("echo_capture", title="Difference engine", kind="concept", body="Tabulates polynomials.")
    assert created["action"] == "created"
    found = server.call("echo_recall", query="what tabulates polynomials?")
    assert found["primary"][0]["path"] == created["path"]
    assert server.call("echo_resolve", mention="difference engine")["path"] == created["path"]


def test_another_programs_change_is_found_soon(server: Server) -> None:
    """The watcher asks for a walk; nobody has to call anything."""
    (server.vault / "resources/people/babbage.md").write_text("# Charles Babbage\n\nComplained about street music.\n")
    soon(lambda: bool(server.call("echo_recall", query="street music complaint")["primary"]))
    (server.vault / "resources/people/babbage.md").unlink()
    soon(lambda: not server.call("echo_recall", query="street music complaint")["primary"])


def test_health_says_little_and_only_what_is_known(server: Server) -> None:
    """HT-25: booleans and numbers, no more than the list, at most 512 bytes."""
    answer = server.client.get(f"{server.base}/health", headers={"authorization": ""})
    facts = answer.json()
    assert answer.status_code == 200
    assert set(facts) == {"ok", "vault_reachable", "vault_auth_ok", "outbox_depth", "outbox_oldest_s", "parked",
                          "index_age_s", "index_ready", "last_backup_age_s", "last_backup_ok", "last_drill_age_s",
                          "findings"}
    assert all(isinstance(value, (bool, int)) for value in facts.values())
    assert (facts["ok"], facts["vault_reachable"], facts["index_ready"]) == (True, True, True)
    assert len(answer.content) <= 512


def test_parallel_captures_lose_nothing(server: Server) -> None:
    """CC-01 in small: 12 clients, 10 inbox lines each."""
    from concurrent.futures import ThreadPoolExecutor

    marks = [f"parallel mark {number:03d}" for number in range(120)]
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda mark: server.call("echo_capture", title=mark), marks))
    assert {answer["action"] for answer in answers} == {"inbox"}
    inbox = (server.vault / "inbox/captures/inbox.md").read_text()
    assert [inbox.count(mark) for mark in marks] == [1] * 120


def test_calls_are_logged_without_what_they_said(server: Server) -> None:
    """Tool, milliseconds, outcome, bytes; no body, title, query, path or token (PV-01)."""
    server.call("echo_recall", query="canary-query-881")
    server.call("echo_get_note", path="canary/path-881.md")
    server.call("echo_capture", title="Canary title 881", kind="concept", body="canary body 881")
    server.client.get(f"{server.base}/health")
    text = "\n".join(server.lines)
    assert "anary" not in text
    assert TOKEN not in text
    assert str(server.vault) not in text
    assert {"ts", "level", "event", "tool", "ms", "outcome", "bytes"} == set(server.events("call")[-1])


def test_the_core_profile_has_six_tools_on_every_door(tmp_path: Path) -> None:
    """MS-06: what is not in the profile does not exist, by MCP and by REST."""
    with running_server(tmp_path, ECHO_MCP_TOOLS="core") as core:
        assert {tool["name"] for tool in listed(core)} == CORE
        assert core.rpc("tools/call", {"name": "echo_set_scope", "arguments": {"scope": "x"}}).json()["error"]
        assert core.client.post(f"{core.base}/api/tools/echo_set_scope", json={"scope": "x"}).status_code == 404
        paths = core.client.get(f"{core.base}/api/openapi.json").json()["paths"]
        assert {path.rsplit("/", 1)[1] for path in paths} == CORE
        assert not list(core.vault.rglob("*.md"))


def test_read_only_has_no_tool_that_writes(tmp_path: Path) -> None:
    """Listed are the readers and echo_load, which then says that it only reads."""
    with running_server(tmp_path, ECHO_MCP_READ_ONLY="on") as reader:
        tools = listed(reader)
        assert {tool["name"] for tool in tools} == READS | {"echo_load"}
        assert all(tool["annotations"]["readOnlyHint"] for tool in tools)
        assert reader.call("echo_capture", title="x")["code"] == "not-found"
        reader.call("echo_load")
        assert not list(reader.vault.rglob("*.md"))


def test_a_vault_that_is_away_is_an_error_and_not_an_empty_memory(tmp_path: Path) -> None:
    """Calls say vault-unreachable, health says so, the process lives, and heals by itself."""
    with running_server(tmp_path, ready=False, ECHO_BASE=str(tmp_path / "away"), ECHO_TIMEOUT="2") as away:
        for name, arguments in (("echo_recall", {"query": "x"}), ("echo_get_note", {"path": "a.md"}),
                                ("echo_resolve", {"mention": "x"})):
            answer = away.tool(name, **arguments)
            assert answer["structuredContent"]["code"] == "vault-unreachable", answer
            assert str(tmp_path) not in json.dumps(answer)
        facts = away.client.get(f"{away.base}/health").json()
        assert (facts["ok"], facts["vault_reachable"], facts["index_ready"]) == (True, False, False)
        (tmp_path / "away").mkdir()
        (tmp_path / "away/note.md").write_text("# Back again\n\nThe mount returned.\n")
        soon(lambda: away.client.get(f"{away.base}/health").json()["index_ready"])
        assert away.call("echo_recall", query="mount returned")["primary"]


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_with_exit_0_and_nothing_lost(tmp_path: Path, sig: signal.Signals) -> None:
    """RS-04: under load; every capture that was answered ok stands in the vault."""
    done: list[str] = []
    with running_server(tmp_path) as loaded:
        def client(number: int) -> None:
            for turn in range(500):
                mark = f"mark-{number}-{turn}-end"
                try:
                    if loaded.call("echo_capture", title=mark).get("ok"):
                        done.append(mark)
                except httpx.TransportError:  # the server is gone
                    return

        clients = [threading.Thread(target=client, args=(number,)) for number in range(4)]
        for each in clients:
            each.start()
        soon(lambda: len(done) > 20)
        started = time.monotonic()
        loaded.process.send_signal(sig)
        code = loaded.process.wait(12)
        assert time.monotonic() - started < 10
        for each in clients:
            each.join()
        inbox = (loaded.vault / "inbox/captures/inbox.md").read_text()
    assert code == 0
    assert [mark for mark in done if inbox.count(mark) != 1] == []


def test_run_makes_a_vault_and_a_token_and_prints_the_line_to_paste(tmp_path: Path) -> None:
    """`make run`: the printed command carries the address and the token; both survive a restart."""
    (tmp_path / "state").mkdir(mode=0o700)
    tokens = []
    for _ in range(2):
        with running_server(tmp_path, "run", ECHO_BASE="", ECHO_MCP_TOKEN="", ready=False) as own:
            token = (own.state / "token").read_text().strip()
            tokens.append(token)
            line = f'claude mcp add --transport http echo {own.base}/mcp --header "Authorization: Bearer {token}"'
            assert line in "\n".join(own.lines)
            own.client.headers["authorization"] = f"Bearer {token}"
            assert "schema_version" in own.call("echo_load")["sections"]["marker"]
    assert tokens[0] == tokens[1]
    assert len(tokens[0]) >= 32
    assert (tmp_path / "state/vault/_agent/echo-vault.md").is_file()
    if os.name != "nt":
        assert (tmp_path / "state/token").stat().st_mode & 0o777 == 0o600


def test_run_on_a_vault_that_cannot_be_set_up_is_one_line(tmp_path: Path) -> None:
    """A newer vault, for example, is not touched by an older program."""
    (tmp_path / "vault/_agent").mkdir(parents=True)
    (tmp_path / "vault/_agent/echo-vault.md").write_text("---\nschema_version: 99\n---\n")
    env = environment(tmp_path / "vault", tmp_path / "state")
    done = subprocess.run([sys.executable, "-m", "echo_mcp", "run"], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (64, "")
    assert "schema version 99" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_start_that_fails_says_where_and_is_no_success(tmp_path: Path) -> None:
    """A defect of the installation, for example: the log has type and place, and no text that may hold a secret."""
    (tmp_path / "vault").mkdir()
    broken = (
        "import sys, echo_mcp.wiring as wiring, echo_mcp.__main__ as main\n"
        "def start(self): raise EOFError('secret text')\n"
        "wiring.Background.start = start\n"
        "sys.exit(main.main(['serve']))\n"
    )
    done = subprocess.run([sys.executable, "-c", broken], env=environment(tmp_path / "vault", tmp_path / "state"),
                          capture_output=True, text=True)
    assert done.returncode not in (0, 64, 69)
    (told,) = [line for line in map(json.loads, done.stdout.splitlines()) if line["event"] == "lifespan-failed"]
    assert (told["exception"], told["where"]) == ("EOFError", "<string>:2")
    assert "secret text" not in done.stdout + done.stderr


def test_stdio_speaks_only_json_rpc_on_stdout(tmp_path: Path) -> None:
    """The same registry in both eras; logs go to stderr; the end of stdin is the end."""
    (tmp_path / "vault").mkdir()
    env = environment(tmp_path / "vault", tmp_path / "state", ECHO_MCP_TOKEN="")
    hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call",
         "params": {"name": "echo_capture", "arguments": {"title": "From stdio"}}},
        {"jsonrpc": "2.0", "id": 4, "method": "nonsense/list"},
        {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": 3}},
    ]
    process = subprocess.Popen([sys.executable, "-m", "echo_mcp", "stdio"], env=env, text=True, encoding="utf-8",
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    for line in lines:
        process.stdin.write(json.dumps(line) + "\n")
        process.stdin.flush()
    answers = {message["id"]: message for message in (json.loads(process.stdout.readline()) for _ in range(5))}
    rest, logged = process.communicate(timeout=15)
    assert (process.returncode, rest) == (0, "")
    assert [tool["name"] for tool in answers[2]["result"]["tools"]] == [tool.name for tool in echo_tools.TOOLS]
    assert answers[3]["result"]["structuredContent"]["action"] == "inbox"
    assert [answers[number]["error"]["data"]["code"] for number in (4, 5)] == ["not-found", "invalid-argument"]
    assert "From stdio" in (tmp_path / "vault/inbox/captures/inbox.md").read_text()
    assert '"tool": "echo_capture"' in logged
    assert "From stdio" not in logged


def test_the_schemas_stay_within_their_budget() -> None:
    """core at most 2,500 tokens, full at most 8,000, counted as characters / 4 over what tools/list shows a model."""
    def tokens(core: bool) -> float:
        shown = [
            {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema()}
            for tool in echo_tools.TOOLS if tool.core or not core
        ]
        return len(json.dumps(shown, ensure_ascii=False, separators=(",", ":"))) / 4

    assert tokens(core=True) <= 2500
    assert tokens(core=False) <= 8000
