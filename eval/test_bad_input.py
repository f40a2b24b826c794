"""Whatever is wrong with a call: a coded answer that names it, nothing written, nothing given away.

The same table is tried by MCP, REST and the command line, on a vault with links that lead out of it.
"""
from __future__ import annotations

import contextlib
import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import echo
import echo_tools
import pytest
from echo_core.errors import DECISIONS, ERRORS
from opsfixture import INSTANT, ZONE, call, make_ctx, put, snapshot
from serverproc import TOKEN, Server, running_server
from test_paths import REFUSED

CANARY = "canary-outside-the-vault"
ENGINE = "resources/concepts/engine.md"
ENGINE_TEXT = "---\ntitle: Engine\ntags:\n  - a\n---\n\n# Engine\n\nIt weaves patterns.\n\n## Log\n\n- one ^id\n"
PAYLOADS = [path for path in REFUSED if path and path == path.strip() and len(path) < 5000]
LEAKS = re.compile(r"Traceback|File \"|/tmp/|/home/|/usr/|site-packages|\.py\b|<class|object at 0x")


def tree(folder: Path) -> dict[str, bytes]:
    """Every file and link of a vault but the kernel lock's."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = b"-> " + os.fsencode(os.readlink(path))
        elif path.is_file() and path.name != "write.lock":
            found[name] = path.read_bytes()
    return found


def fill(root: Path, outside: Path) -> None:
    """An ordinary note, links that lead out, and a canary they lead to."""
    for path, text in ((ENGINE, ENGINE_TEXT), ("inbox/captures/inbox.md", "# Inbox\n\n- 2026-11-29: buy brass\n")):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    outside.mkdir(exist_ok=True)
    (outside / "secret.md").write_text(f"# Secret\n\n{CANARY} {CANARY}\n")
    (root / "notes").mkdir()
    os.symlink(outside / "secret.md", root / "notes/link.md")
    os.symlink(outside, root / "linked")
    os.symlink("../../outside/secret.md", root / "resources/concepts/relative.md")
    os.symlink("loop.md", root / "notes/loop.md")
    os.symlink("nowhere.md", root / "notes/dead.md")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("bad")
    (folder / "vault").mkdir()
    fill(folder / "vault", folder / "outside")
    with running_server(folder, ECHO_CLOCK=INSTANT, ECHO_TZ=ZONE) as running:
        yield running
        log = "\n".join(running.lines)
        assert not LEAKS.search(log), LEAKS.search(log)
        assert CANARY not in log
        assert "internal error" not in log
    assert (folder / "outside/secret.md").read_text() == f"# Secret\n\n{CANARY} {CANARY}\n"
    assert [path.name for path in (folder / "outside").iterdir()] == ["secret.md"]


def plain(envelope: dict[str, Any], root: Path) -> dict[str, Any]:
    """The envelope, when it is a coded failure or decision of one line that gives nothing away."""
    text = json.dumps(envelope, ensure_ascii=False)
    assert envelope["ok"] is False, envelope
    assert envelope.get("code") in ERRORS or envelope.get("action") in DECISIONS, envelope
    assert envelope.get("code") != "internal", envelope
    if "error" in envelope:
        assert 0 < len(envelope["error"]) < 400
        assert len(envelope["error"].splitlines()) == 1
    for secret in (str(root), TOKEN, CANARY):
        assert secret not in text
    assert not LEAKS.search(envelope.get("error", "") + envelope.get("hint", "")), envelope
    return envelope


def refused(server: Server, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What both doors of the server answer, which must be the same refusal."""
    answer = server.client.post(f"{server.base}/api/tools/{name}", json=arguments)
    body = answer.json()
    envelope = plain(body["data"], server.vault.parent)
    assert body["success"] is False
    assert answer.status_code == ERRORS[envelope["code"]].http_status
    result = server.tool(name, **arguments)
    assert result["structuredContent"] == envelope
    assert result["isError"] is True
    assert result["content"][0]["text"].startswith(f"{envelope['code']}: ")
    assert not LEAKS.search(result["content"][0]["text"])
    return envelope


@contextlib.contextmanager
def unchanged(root: Path) -> Iterator[None]:
    """The vault afterwards is the vault before, byte for byte."""
    before = tree(root)
    yield
    assert tree(root) == before


# -- paths ----------------------------------------------------------------------------------------------------

PATCH = {"operation": "replace", "target_type": "frontmatter", "target": "x", "content": "y"}
TRIAGE = {"line": "- 2026-11-29: buy brass"}
SESSION = {"slug": "s", "log_body": "b", "agent_log_line": "l"}
PATH_ARGUMENTS: list[tuple[str, str, Any]] = [
    ("echo_get_note", "path", lambda p: {"path": p}),
    ("echo_append_note", "path", lambda p: {"path": p, "line": "- x"}),
    ("echo_patch_note", "path", lambda p: {"path": p, **PATCH}),
    ("echo_move_note", "path", lambda p: {"path": p, "new_path": "notes/new.md", "confirm": True}),
    ("echo_move_note", "new_path", lambda p: {"path": ENGINE, "new_path": p, "confirm": True}),
    ("echo_note_history", "path", lambda p: {"path": p}),
    ("echo_restore_note", "path", lambda p: {"path": p, "version_id": "1", "confirm": True}),
    ("echo_link", "a", lambda p: {"a": p, "b": ENGINE}),
    ("echo_link", "b", lambda p: {"a": ENGINE, "b": p}),
    ("echo_capture", "merge_into", lambda p: {"title": "T", "kind": "concept", "body": "b", "merge_into": p}),
    ("echo_capture", "supersedes", lambda p: {"title": "T", "kind": "concept", "supersedes": p}),
    ("echo_reflect", "proposals[0].path", lambda p: {"proposals": [{"action": "append", "path": p, "line": "- x"}]}),
    ("echo_reflect", "proposals[0].a", lambda p: {"proposals": [{"action": "link", "a": p, "b": ENGINE}]}),
    ("echo_reflect", "proposals[0].merge_into",
     lambda p: {"proposals": [{"action": "capture", "title": "T", "kind": "concept", "merge_into": p}]}),
    ("echo_triage_inbox", "proposals[0].path", lambda p: {"proposals": [{"action": "append", "path": p, **TRIAGE}]}),
    ("echo_log_session", "reflect[0].path",
     lambda p: {**SESSION, "apply": True, "reflect": [{"action": "append", "path": p, "line": "- x"}]}),
]


def test_the_matrix_is_large_enough() -> None:
    """At least 60 payloads for each path argument of every tool that has one."""
    assert len(PAYLOADS) >= 60
    named = {(tool.name, param.name) for tool in echo_tools.TOOLS for param in tool.params
             if param.form in ("path", "note")}
    assert named == {(tool, name) for tool, name, _ in PATH_ARGUMENTS if "[" not in name}


def may_wait_for_a_title(path: str) -> bool:
    """Whether the text could be the title of a note, so that it is looked up before it is refused."""
    return not set("/\\%") & set(path)


@pytest.mark.parametrize(("tool", "field", "arguments"), PATH_ARGUMENTS, ids=[f"{t}-{f}" for t, f, _ in PATH_ARGUMENTS])
def test_no_spelling_of_a_hostile_path_passes_any_door(server: Server, tool: str, field: str, arguments: Any) -> None:
    """`invalid-path` with the argument's name, by MCP and REST; nothing is read or written."""
    with unchanged(server.vault):
        for path in PAYLOADS:
            if any("\ud800" <= char <= "\udfff" for char in path):
                continue  # no JSON client can send half a character; see below
            if "[" in field and may_wait_for_a_title(path):
                continue  # a proposal with an unknown name is planned as refused
            answer = refused(server, tool, arguments(path))
            assert (answer["code"], answer["field"]) == ("invalid-path", field), (path, answer)


def test_a_proposal_about_a_name_that_is_no_path_is_planned_as_refused(tmp_path: Path) -> None:
    """Without a note of that title nothing else is meant."""
    put(tmp_path, ENGINE, ENGINE_TEXT)
    ctx = make_ctx(tmp_path)
    before = snapshot(tmp_path)
    for path in (path for path in PAYLOADS if may_wait_for_a_title(path)):
        answer = call(ctx, "reflect", proposals=[{"action": "append", "path": path, "line": "- x"},
                                                 {"action": "link", "a": path, "b": ENGINE}], apply=False)
        if answer["ok"]:
            assert [(row["would"], row["code"]) for row in answer["plan"]] == [("refuse", "invalid-path")] * 2, path
        else:
            assert answer["code"] == "invalid-path"
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("escape", [r"\ud800.md", r"a/\udc80", r"..\udead/x", r"\u0000", r"a\u0000.md"])
def test_half_characters_and_nul_from_raw_json_are_refused(server: Server, escape: str) -> None:
    """What JSON can spell and no file system holds."""
    body = f'{{"path": "{escape}"}}'.encode()
    with unchanged(server.vault):
        answer = server.client.post(f"{server.base}/api/tools/echo_get_note", content=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid-path")


@pytest.mark.parametrize("prefix", ["echo://note/", "echo://entity/"])
def test_resources_refuse_hostile_paths(server: Server, prefix: str) -> None:
    """Once percent-encoded by the client, once raw: never a note, never a host path."""
    from urllib.parse import quote

    for path in [path for path in PAYLOADS if path.isascii() and path.isprintable() and len(path) < 500]:
        for spelled in (path, quote(path, safe="")):
            answer = server.rpc("resources/read", {"uri": prefix + spelled})
            error = answer.json().get("error")
            assert error, (spelled, answer.text[:300])
            assert error["code"] in (-32602, -32600)
            assert not LEAKS.search(json.dumps(error)), spelled


LINKED = ["notes/link.md", "notes/link", "linked/secret.md", "linked/new.md", "linked/deep/new.md",
          "resources/concepts/relative.md", "notes/loop.md", "notes/dead.md"]


@pytest.mark.parametrize("path", LINKED)
def test_no_link_out_of_the_vault_is_followed(server: Server, path: str) -> None:
    """Reads, writes, new files under a linked folder, moves both ways, history: refused or not there."""
    calls = [(tool, arguments(path)) for tool, field, arguments in PATH_ARGUMENTS
             if "[" not in field and (tool, field) != ("echo_move_note", "new_path")]
    with unchanged(server.vault):
        for tool, arguments in calls:
            if tool == "echo_note_history":
                continue  # history is asked, not the vault
            assert refused(server, tool, arguments)["code"] in ("invalid-path", "not-found"), (tool, path)
        if not path.endswith("dead.md"):
            moved = refused(server, "echo_move_note", {"path": ENGINE, "new_path": path, "confirm": True})
            assert moved["code"] in ("invalid-path", "conflict")


def test_what_lies_behind_a_link_is_in_no_index(server: Server) -> None:
    """Recall, resolve, load and the deep check never show the canary; the check names the links."""
    for name, arguments in (("echo_recall", {"query": CANARY}), ("echo_resolve", {"mention": "Secret"}),
                            ("echo_load", {}),
                            ("echo_health", {"deep": True}), ("echo_recall", {"query": "secret"})):
        answer = server.client.post(f"{server.base}/api/tools/{name}", json=arguments)
        text = answer.text.replace(json.dumps(arguments.get("query", "-"))[1:-1], "")
        assert CANARY not in text
        assert str(server.vault.parent) not in text
    assert server.call("echo_recall", query=CANARY)["primary"] == []
    assert server.call("echo_resolve", mention="Secret")["match"] is False
    assert "notes/link.md" in " ".join(server.call("echo_recall", query="weaves patterns")["warnings"])


# -- arguments ------------------------------------------------------------------------------------------------

BIG = "x" * (2 * 1024 * 1024)
WRONG: list[tuple[str, dict[str, Any], str, str]] = [
    ("echo_get_note", {}, "invalid-argument", "path"), ("echo_get_note", {"path": None}, "invalid-argument", "path"),
    ("echo_get_note", {"path": ""}, "invalid-argument", "path"),
    ("echo_get_note", {"path": ["a"]}, "invalid-argument", "path"),
    ("echo_get_note", {"path": {"a": 1}}, "invalid-argument", "path"),
    ("echo_get_note", {"path": True}, "invalid-argument", "path"),
    ("echo_get_note", {"path": ENGINE, "max_chars": "lots"}, "invalid-argument", "max_chars"),
    ("echo_get_note", {"path": ENGINE, "max_chars": 1.5}, "invalid-argument", "max_chars"),
    ("echo_get_note", {"path": ENGINE, "max_chars": [1]}, "invalid-argument", "max_chars"),
    ("echo_get_note", {"path": ENGINE, "max_chars": True}, "invalid-argument", "max_chars"),
    ("echo_get_note", {"path": ENGINE, "pth": "x"}, "invalid-argument", "pth"),
    ("echo_get_note", {"path": ENGINE, "__class__": "x"}, "invalid-argument", "__class__"),
    ("echo_get_note", {"path": ENGINE, "ctx": {}}, "invalid-argument", "ctx"),
    ("echo_get_note", {"path": ENGINE, "self": 1}, "invalid-argument", "self"),
    ("echo_get_note", {"path": ENGINE, "section": "Nowhere"}, "invalid-target", ""),
    ("echo_get_note", {"path": ENGINE, "section": "a\nb"}, "invalid-argument", "section"),
    ("echo_recall", {"query": "..."}, "invalid-argument", "query"),
    ("echo_recall", {"query": "a\0b"}, "invalid-argument", "query"),
    ("echo_recall", {"query": BIG}, "too-large", "query"),
    ("echo_recall", {"query": "a\nb"}, "invalid-argument", "query"),
    ("echo_recall", {"query": "x", "since": "yesterday"}, "invalid-argument", "since"),
    ("echo_recall", {"query": "x", "until": "2026-02-30"}, "invalid-argument", "until"),
    ("echo_recall", {"query": "x", "since": "2026-13-01"}, "invalid-argument", "since"),
    ("echo_recall", {"query": "x", "since": "0000-01-01"}, "invalid-argument", "since"),
    ("echo_recall", {"query": "x", "since": "٢٠٢٦-٠١-٠١"}, "invalid-argument", "since"),
    ("echo_recall", {"query": "x", "kinds": {"a": 1}}, "invalid-argument", "kinds"),
    ("echo_recall", {"query": "x", "kinds": [["a"]]}, "invalid-argument", "kinds[0]"),
    ("echo_recall", {"query": "x", "kinds": ["a"] * 1001}, "too-large", "kinds"),
    ("echo_recall", {"query": "x", "kinds": ["person", "persona"]}, "invalid-argument", "kinds[1]"),
    ("echo_recall", {"query": "x", "include_linked": "maybe"}, "invalid-argument", "include_linked"),
    ("echo_recall", {"query": "x", "explain": 7}, "invalid-argument", "explain"),
    ("echo_capture", {"title": " "}, "invalid-argument", "title"),
    ("echo_capture", {"title": "a\nb"}, "invalid-argument", "title"),
    ("echo_capture", {"title": "a\u2028b"}, "invalid-argument", "title"),
    ("echo_capture", {"title": "a\0b"}, "invalid-argument", "title"),
    ("echo_capture", {"title": "a\u202eb"}, "invalid-argument", "title"),
    ("echo_capture", {"title": BIG}, "too-large", "title"),
    ("echo_capture", {"title": "x", "kind": "persona"}, "invalid-argument", "kind"),
    ("echo_capture", {"title": "x", "kind": "person", "body": BIG}, "too-large", "body"),
    ("echo_capture", {"title": "x", "kind": "person", "body": "a\0b"}, "invalid-argument", "body"),
    ("echo_capture", {"title": "x", "kind": "meeting", "date": "30.11.2026"}, "invalid-argument", "date"),
    ("echo_capture", {"title": "x", "kind": "meeting", "date": "2026-11-31"}, "invalid-argument", "date"),
    ("echo_capture", {"title": "x", "kind": "area", "domain": "elsewhere"}, "invalid-argument", "domain"),
    ("echo_capture", {"title": "x", "kind": "project", "status": "soon"}, "invalid-argument", "status"),
    ("echo_capture", {"title": "x", "kind": "project", "status": "../active"}, "invalid-argument", "status"),
    ("echo_capture", {"title": "x", "kind": "rollup"}, "invalid-argument", "period"),
    ("echo_capture", {"title": "x", "kind": "rollup", "period": "2026-W54"}, "invalid-argument", "period"),
    ("echo_capture", {"title": "x", "kind": "rollup", "period": "../2026"}, "invalid-argument", "period"),
    ("echo_capture", {"title": "x", "kind": "rollup", "period": "2026-13"}, "invalid-argument", "period"),
    ("echo_capture", {"title": "x", "kind": "person", "period": "2026-11"}, "invalid-argument", "period"),
    ("echo_capture", {"title": "x", "kind": "person", "merge_into": "nobody"}, "not-found", ""),
    ("echo_capture", {"title": "x", "kind": "person", "tags": ["a\nb"]}, "invalid-argument", "tags[0]"),
    ("echo_capture", {"title": "x", "kind": "person", "aliases": ["a\0"]}, "invalid-argument", "aliases[0]"),
    ("echo_append_note", {"path": ENGINE}, "invalid-argument", "line"),
    ("echo_append_note", {"path": ENGINE, "line": "a\nb"}, "invalid-argument", "line"),
    ("echo_append_note", {"path": ENGINE, "line": "a\rb"}, "invalid-argument", "line"),
    ("echo_append_note", {"path": ENGINE, "line": "x" * 16385}, "too-large", "line"),
    ("echo_append_note", {"path": ENGINE, "line": "  "}, "invalid-argument", "line"),
    ("echo_append_note", {"path": ENGINE, "line": "---"}, "invalid-argument", "line"),
    ("echo_append_note", {"path": ENGINE, "line": "x", "section": "Nope"}, "invalid-target", ""),
    ("echo_append_note", {"path": ENGINE, "line": "x", "if_match": "0"}, "conflict", ""),
    ("echo_patch_note",
     {"path": ENGINE, "operation": "delete", "target_type": "heading", "target": "Log", "content": "x"},
     "invalid-argument", "operation"),
    ("echo_patch_note", {"path": ENGINE, "operation": "append", "target_type": "line", "target": "Log", "content": "x"},
     "invalid-argument", "target_type"),
    ("echo_patch_note", {"path": ENGINE, "operation": "append", "target_type": "heading", "target": "", "content": "x"},
     "invalid-argument", "target"),
    ("echo_patch_note",
     {"path": ENGINE, "operation": "append", "target_type": "heading", "target": "Log", "content": BIG},
     "too-large", "content"),
    ("echo_patch_note",
     {"path": ENGINE, "operation": "append", "target_type": "heading", "target": "Log", "content": ["x"]},
     "invalid-argument", "content"),
    ("echo_patch_note",
     {"path": ENGINE, "operation": "replace", "target_type": "heading", "target": "Engine", "content": "```\nx"},
     "invalid-argument", "content"),
    ("echo_patch_note",
     {"path": ENGINE, "operation": "append", "target_type": "heading", "target": "Log", "content": "x\0"},
     "invalid-argument", "content"),
    ("echo_patch_note", {**PATCH, "path": ENGINE, "content": {"a": 1}}, "invalid-argument", "content"),
    ("echo_patch_note", {**PATCH, "path": ENGINE, "content": [[1]]}, "invalid-argument", "content"),
    ("echo_patch_note", {**PATCH, "path": ENGINE, "target": "a\nb: c"}, "invalid-argument", "target"),
    ("echo_patch_note", {**PATCH, "path": ENGINE, "target_type": "block", "target": "zz"}, "invalid-target", ""),
    ("echo_patch_note", {**PATCH, "path": "inbox/captures/inbox.json"}, "not-found", ""),
    ("echo_move_note", {"path": ENGINE}, "invalid-argument", "new_path"),
    ("echo_move_note", {"path": ENGINE, "new_path": ENGINE, "confirm": True}, "invalid-argument", "new_path"),
    ("echo_move_note", {"path": ENGINE, "new_path": "_agent/index/x.md", "confirm": True}, "invalid-path", "new_path"),
    ("echo_move_note", {"path": ENGINE, "new_path": "inbox/captures/inbox.md", "confirm": True}, None, "new_path"),
    ("echo_link", {"a": ENGINE, "b": ENGINE}, "invalid-argument", "b"),
    ("echo_link", {"a": ENGINE}, "invalid-argument", "b"),
    ("echo_link", {"a": ENGINE, "b": "inbox", "relation": "a\nb"}, "invalid-argument", "relation"),
    ("echo_set_scope", {"scope": ""}, "invalid-argument", "scope"),
    ("echo_set_scope", {"scope": "a\nb"}, "invalid-argument", "scope"),
    ("echo_set_scope", {"scope": BIG}, "too-large", "scope"), ("echo_get_scope", {"x": 1}, "invalid-argument", "x"),
    ("echo_resolve", {"mention": ""}, "invalid-argument", "mention"),
    ("echo_resolve", {"mention": "\0"}, "invalid-argument", "mention"),
    ("echo_load", {"brief": "perhaps"}, "invalid-argument", "brief"),
    ("echo_health", {"deep": []}, "invalid-argument", "deep"),
    ("echo_rollup_data", {"period": "year"}, "invalid-argument", "period"),
    ("echo_rollup_data", {"period": "week", "date": "tomorrow"}, "invalid-argument", "date"),
    ("echo_triage_inbox", {"apply": True}, "invalid-argument", "proposals"),
    ("echo_triage_inbox", {"proposals": [{"action": "keep"}]}, "invalid-argument", "proposals[0].line"),
    ("echo_triage_inbox", {"proposals": [{"action": "burn", **TRIAGE}]}, "invalid-argument", "proposals[0].action"),
    ("echo_triage_inbox", {"proposals": [{"action": "keep", **TRIAGE, "x": 1}]}, "invalid-argument", "proposals[0].x"),
    ("echo_triage_inbox", {"proposals": [{"action": "keep", **TRIAGE}] * 101}, "too-large", "proposals"),
    ("echo_triage_inbox", {"proposals": [{"action": "append", **TRIAGE}]}, "invalid-argument", "proposals[0].path"),
    ("echo_reflect", {}, "invalid-argument", "proposals"),
    ("echo_reflect", {"proposals": "["}, "invalid-argument", "proposals"),
    ("echo_reflect", {"proposals": [None]}, "invalid-argument", "proposals[0]"),
    ("echo_reflect", {"proposals": [{"action": "link", "a": ENGINE}]}, "invalid-argument", "proposals[0].b"),
    ("echo_reflect", {"proposals": [{"action": "capture"}]}, "invalid-argument", "proposals[0].title"),
    ("echo_reflect", {"proposals": [{"action": "capture", "title": "t", "date": "x"}]}, "invalid-argument",
     "proposals[0].date"),
    ("echo_log_session", {"slug": "s"}, "invalid-argument", "log_body"),
    ("echo_log_session", {**SESSION, "log_body": BIG}, "too-large", "log_body"),
    ("echo_log_session", {**SESSION, "agent_log_line": "a\nb"}, "invalid-argument", "agent_log_line"),
    ("echo_log_session", {**SESSION, "reflect": [{"action": "discard", "z": 1}]}, "invalid-argument", "reflect[0].z"),
    ("echo_note_history", {"path": "nobody"}, "not-found", ""),
    ("echo_restore_note", {"path": ENGINE}, "invalid-argument", "version_id"),
    ("echo_restore_note", {"path": ENGINE, "version_id": "../../x", "confirm": True}, "not-found", ""),
    ("echo_restore_note", {"path": ENGINE, "version_id": "1 OR 1=1", "confirm": True}, "not-found", ""),
    ("echo_restore_note", {"path": ENGINE, "version_id": "999999999999999999999", "confirm": True}, "not-found", ""),
]


@pytest.mark.parametrize(("tool", "arguments", "code", "field"), WRONG,
                         ids=[f"{row[0]}-{row[3] or row[2]}-{n}" for n, row in enumerate(WRONG)])
def test_a_wrong_argument_is_named_by_every_door(
    server: Server, tool: str, arguments: dict[str, Any], code: str | None, field: str
) -> None:
    """The same refusal by MCP and REST; the vault stays as it is; what was sent is not repeated at length."""
    with unchanged(server.vault):
        answer = refused(server, tool, arguments)
    assert answer["code"] in ((code,) if code else ("conflict", "invalid-path"))
    if field and code:
        assert answer["field"] == field
    assert len(json.dumps(answer)) < 4000


@pytest.mark.parametrize(("tool", "arguments", "word"), [
    ("echo_recall", {"query": "patterns", "limit": 0}, "limit"),
    ("echo_recall", {"query": "patterns", "limit": -5}, "limit"),
    ("echo_recall", {"query": "patterns", "limit": 10**30}, "limit"),
    ("echo_recall", {"query": "patterns", "limit": "21"}, "limit"),
    ("echo_recall", {"query": "patterns", "budget_chars": 1}, "budget_chars"),
    ("echo_get_note", {"path": ENGINE, "max_chars": 0}, "max_chars"),
    ("echo_get_note", {"path": ENGINE, "max_chars": 1e15}, "max_chars"),
])
def test_a_number_out_of_range_is_brought_to_the_bound(server: Server, tool: str, arguments: dict[str, Any],
                                                       word: str) -> None:
    """The answer is fine and a warning names argument and bound."""
    answer = server.call(tool, **arguments)
    assert answer["ok"] is True
    assert any(word in warning and "range" in warning for warning in answer["warnings"])
    assert server.tool(tool, **arguments)["structuredContent"] == answer


@pytest.mark.parametrize("body", [
    b"{", b"[1]", b'"x"', b"null", b"\xff\xfe", b'{"path": NaN}', b"{" * 100_000, b'{"a":' * 5000 + b"1" + b"}" * 5000,
    b'{"path": 1e999}', b'{"path": ' + b"9" * 5000 + b"}", b'{"path": "a", "path": "b"}', b'{"limit": -0}',
])
def test_a_body_that_is_no_call_is_a_client_error(server: Server, body: bytes) -> None:
    """4xx with a coded answer, never a 5xx."""
    answer = server.client.post(f"{server.base}/api/tools/echo_get_note", content=body)
    assert 400 <= answer.status_code < 500, answer.text[:200]
    plain(answer.json()["data"], server.vault.parent)
    mcp = server.client.post(f"{server.base}/mcp", content=body, headers={"accept": "application/json"})
    assert 400 <= mcp.status_code < 500
    assert not LEAKS.search(mcp.text)


# -- the command line -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a vault of its own for the command line."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "vault").mkdir()
    fill(folder / "vault", folder / "outside")
    return folder


def cli(folder: Path, *line: str, **env: str) -> tuple[int, dict[str, Any]]:
    """Exit code and envelope of a command line run in this process; nothing else may be printed."""
    environ = {"ECHO_BASE": str(folder / "vault"), "ECHO_STATE_DIR": str(folder / "state"), "ECHO_CLOCK": INSTANT,
               "ECHO_TZ": ZONE, **env}
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = echo.main([line[0], "--json", *line[1:]], environ)
    assert "Traceback" not in err.getvalue()
    assert "internal error" not in err.getvalue()
    return code, json.loads(out.getvalue())


CLI_PATHS: list[Any] = [
    lambda p: ["get", "--path", p], lambda p: ["map", "--path", p], lambda p: ["put", "--path", p, "--body", "x"],
    lambda p: ["post", "--path", p, "--body", "x"], lambda p: ["append", "--path", p, "--line", "x"],
    lambda p: ["fm", "--path", p, "--key", "a", "--value", "b"], lambda p: ["bump", "--path", p],
    lambda p: ["delete", "--path", p, "--confirm"], lambda p: ["move", "--path", p, "--new-path", "n.md", "--confirm"],
    lambda p: ["move", "--path", ENGINE, "--new-path", p, "--confirm"], lambda p: ["link", "--a", p, "--b", ENGINE],
    lambda p: ["history", "--path", p], lambda p: ["restore", "--path", p, "--version-id", "1"],
    lambda p: ["ls", "--folder", p], lambda p: ["search", "--text", "x", "--folder", p],
    lambda p: ["patch", "--path", p, "--operation", "append", "--target-type", "heading", "--target", "a", "--content",
               "x"],
]


@pytest.mark.parametrize("line", CLI_PATHS, ids=lambda line: " ".join(line("X")[:3:2]))
def test_no_verb_takes_a_hostile_path(desk: Path, line: Any) -> None:
    """Exit 2, `invalid-path`, the vault and what lies beside it unchanged."""
    folders = line("X")[0] in ("ls", "search")
    with unchanged(desk / "vault"), unchanged(desk / "outside"):
        for path in PAYLOADS[::2] + LINKED[:5]:
            if folders and path in ("a/", *LINKED):
                continue
            code, envelope = cli(desk, *line(path))
            if path in LINKED:
                assert (code in (2, 44) and plain(envelope, desk)) or line(path)[0] == "history"
                continue
            assert (code, plain(envelope, desk)["code"]) == (2, "invalid-path"), path


@pytest.mark.parametrize(("line", "code", "name"), [
    (["get"], 2, "invalid-argument"), (["get", "nobody"], 44, "not-found"),
    (["get", ENGINE, "--max-chars", "x"], 2, "invalid-argument"),
    (["nonsense"], 2, "invalid-argument"), (["get", ENGINE, "--nonsense", "1"], 2, "invalid-argument"),
    (["recall", "x", "--since", "soon"], 2, "invalid-argument"), (["capture", ""], 2, "invalid-argument"),
    (["capture", "x", "--kind", "persona"], 2, "invalid-argument"), (["append", ENGINE, "a\nb"], 2, "invalid-argument"),
    (["put", "notes/x.txt", "x"], 2, "invalid-path"), (["put", ENGINE, "x"], 79, "conflict"),
    (["put", "_agent/index/entities.json", "x", "--replace"], 2, "invalid-path"),
    (["fm", ENGINE, "a", "--value-json", "{"], 2, "invalid-argument"),
    (["reflect", "--proposals-json", "["], 2, "invalid-argument"),
    (["restore", ENGINE, "nope"], 44, "not-found"),
    (["append", ENGINE, "x", "--section", "Nope"], 65, "invalid-target"),
    (["ls", "nowhere"], 44, "not-found"), (["get", ENGINE, "again", "and again"], 2, "invalid-argument"),
    (["post", ENGINE, "@/nonexistent/file"], 2, "invalid-argument"),
    (["lint", "--checks", "nonsense"], 2, "invalid-argument"),
    (["append", ENGINE, "x", "--if-match", "0"], 79, "conflict"), (["rollup", "decade"], 2, "invalid-argument"),
])
def test_a_wrong_command_line_ends_with_its_code(desk: Path, line: list[str], code: int, name: str) -> None:
    """The exit code of the table, one JSON object, nothing changed."""
    with unchanged(desk / "vault"):
        ended, envelope = cli(desk, *line)
    assert (ended, plain(envelope, desk)["code"]) == (code, name)
