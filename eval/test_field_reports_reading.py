"""What people reported about clients, paths, search, time and size of other products comes out right here."""
from __future__ import annotations

import json
import os
import unicodedata
from pathlib import Path
from typing import Any

import echo_tools
import pytest
from echo_core import frontmatter
from jsonschema import Draft202012Validator
from notedesk import desk, server
from opsfixture import call, get, make_ctx, put
from serverproc import LEGACY, MODERN, TOKEN, Server, running_server

__all__ = ["desk", "server"]


# -- clients --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tags", ["some-tag", '["some-tag"]', ["some-tag"], ' [ "some-tag" ] '])
@pytest.mark.parametrize("era", [MODERN, LEGACY])
def test_lists_sent_as_text_are_lists(server: Server, tags: Any, era: str) -> None:
    """A bare string and JSON text are understood on both doors."""
    for answer in (server.tool("echo_capture", era, title="Listy", kind="concept", tags=tags,
                               dry_run=True)["structuredContent"],
                   server.call("echo_capture", title="Listy", kind="concept", tags=tags, dry_run=True)):
        assert "+tags:\n+  - some-tag\n" in answer["diff"]


@pytest.mark.parametrize("proposals", [
    '[{"action": "capture", "title": "P", "kind": "concept"}]',
    '{"action": "capture", "title": "P", "kind": "concept"}',
    ['{"action": "capture", "title": "P", "kind": "concept", "tags": "a"}'],
])
def test_objects_sent_as_text_are_objects(server: Server, proposals: Any) -> None:
    """One proposal, a list of them as JSON text, and JSON text inside the list."""
    assert server.call("echo_reflect", proposals=proposals)["plan"][0]["path"] == "resources/concepts/p.md"


@pytest.mark.parametrize(("tool", "arguments", "field"), [
    ("echo_capture", {"title": "x", "tags": 3}, "tags"), ("echo_capture", {"title": "x", "tags": {"a": 1}}, "tags"),
    ("echo_capture", {"title": "x", "tags": ["a", ["b"]]}, "tags[1]"),
    ("echo_reflect", {"proposals": "nonsense"}, "proposals"),
    ("echo_reflect", {"proposals": "[1]"}, "proposals[0]"), ("echo_recall", {"query": "x", "kinds": False}, "kinds"),
    ("echo_capture", {"title": "x", "tags": [None]}, "tags[0]"),
])
def test_real_nonsense_is_refused_by_field(server: Server, tool: str, arguments: dict[str, Any], field: str) -> None:
    """What is neither a list nor the text of one names the argument."""
    assert server.call(tool, **arguments)["field"] == field


def test_every_answer_fits_its_output_schema_and_no_schema_needs_references(server: Server, desk: Any) -> None:
    """Good edits, refusals and gates of the editing tools validate against what tools/list publishes."""
    note = desk("# N\n\n## A\n\na ^id\n")
    listed = server.rpc("tools/list").json()["result"]["tools"]
    assert "$ref" not in json.dumps(listed)
    assert "$defs" not in json.dumps(listed)
    schemas = {tool["name"]: tool["outputSchema"] for tool in listed}
    base = {"path": note.path, "operation": "append", "content": "x"}
    calls = [
        ("echo_patch_note", {**base, "target_type": "heading", "target": "A"}),
        ("echo_patch_note", {**base, "target_type": "block", "target": "id"}),
        ("echo_patch_note", {**base, "target_type": "frontmatter", "target": "tags"}),
        ("echo_patch_note", {**base, "target_type": "heading", "target": "None"}),
        ("echo_append_note", {"path": note.path, "line": "- l"}), ("echo_append_note", {"path": "none", "line": "- l"}),
        ("echo_get_note", {"path": note.path}), ("echo_note_history", {"path": note.path}),
        ("echo_move_note", {"path": note.path, "new_path": "notes/moved.md"}),
        ("echo_capture", {"title": "Fits"}), ("echo_triage_inbox", {}), ("echo_set_scope", {"scope": "s"}),
        ("echo_get_scope", {}), ("echo_load", {}), ("echo_rollup_data", {"period": "month"}),
    ]
    for name, arguments in calls:
        Draft202012Validator(schemas[name]).validate(server.tool(name, **arguments)["structuredContent"])
    assert note.text == "---\ntags:\n  - x\n---\n\n# N\n\n## A\n\na x ^id\n\nx\n- l\n"


@pytest.mark.parametrize("path", ["/", "/mcp", "/mcp/"])
def test_a_connector_url_without_path_reaches_the_tools(server: Server, path: str) -> None:
    """Behind the same token; another path names the right one."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": LEGACY}
    answer = server.client.post(server.base + path, json=body, headers=headers)
    assert answer.json()["result"]["tools"]
    assert server.client.post(server.base + path, json=body,
                              headers={**headers, "authorization": "x"}).status_code == 401


def test_a_foreign_host_name_is_refused_with_the_setting_and_served_once_it_is_set(tmp_path: Path,
                                                                                   server: Server) -> None:
    """Loopback is always served; a LAN, proxy or service name needs ECHO_MCP_ALLOWED_HOSTS."""
    def ask(running: Server, host: str) -> bytes:
        body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}'
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return running.raw(head.encode() + body)

    refused = ask(server, "hal2000:8002")
    assert b" 421 " in refused.splitlines()[0]
    assert b"ECHO_MCP_ALLOWED_HOSTS" in refused
    assert b"hal2000" not in refused
    assert b" 200 " in ask(server, "127.0.0.1:9").splitlines()[0]
    with running_server(tmp_path, ECHO_MCP_ALLOWED_HOSTS="hal2000,Echo.example.org") as open_server:
        for host in ("hal2000:8002", "HAL2000", "echo.example.org", "ECHO.example.org:443", "localhost"):
            assert b" 200 " in ask(open_server, host).splitlines()[0], host
        assert b" 421 " in ask(open_server, "hal2000.evil.org").splitlines()[0]


# -- paths ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name",
                         ["🖊️ journal/2026.md", "Детали/файл.md", "日本語/メモ.md", "a b/c & d + e.md", "100% done.md",
                                  "it's [x] (1).md", "Café/naïve.md", "עברית/א.md"])
def test_a_path_of_any_script_is_read_written_moved_and_found(server: Server, desk: Any, name: str) -> None:
    """By every door, also when another client names it in the other normal form."""
    note = desk("# T\n\nx\n", name)
    other = unicodedata.normalize("NFD", note.path)
    for path in (note.path, other):
        assert server.call("echo_get_note", path=path)["path"] == note.path
        assert server.tool("echo_get_note", path=path)["structuredContent"]["path"] == note.path
        assert server.call("echo_append_note", path=path, line="- y")["path"] == note.path
    assert note.text == "# T\n\nx\n- y\n"
    moved = note.path.replace(".md", " zwei.md")
    assert server.call("echo_move_note", path=note.path, new_path=moved, confirm=True)["ok"]
    assert (server.vault / moved).read_text() == "# T\n\nx\n- y\n"


# -- search ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "query"), [
    ("他说即适者生存的道理", "适者生存"), ("下跌时要止损离场", "止损"), ("使用Kubernetes部署", "kubernetes"),
    ("今日は東京都へ行く", "東京"),
    ("오늘 회의록을 작성했다", "회의"), ("コーヒーが好き", "コーヒー"), ("版本v2发布", "v2"), ("ＫＵＢＥ全角", "kube"),
    ("项目預算討論", "預算"),
])
def test_words_inside_runs_of_cjk_are_found(tmp_path: Path, text: str, query: str) -> None:
    """Two-letter words, mid-run phrases and Latin terms stuck to CJK."""
    put(tmp_path, "notes/hit.md", f"# Note\n\n{text}\n")
    put(tmp_path, "notes/miss.md", "# Andere\n\n完全不同的内容 nothing alike\n")
    found = call(make_ctx(tmp_path), "recall", query=query)["primary"]
    assert [hit["path"] for hit in found] == ["notes/hit.md"]


@pytest.mark.parametrize("query", [
    "how to bake sourdough bread", "best pizza in Naples", "What is the capital of Mongolia?", "如何烤面包",
    "who am I married to",
])
def test_an_off_topic_question_gets_nothing(tmp_path: Path, query: str) -> None:
    """No overlap, no hits: in a vault about work, nothing is dressed as an answer."""
    for number, text in enumerate([
        "How we deploy the billing service to production in three steps.", "The best way to review a pull request.",
        "What the quarterly roadmap is about: invoices, exports, audit log.", "Capital expenditure of the data centre.",
        "Who to call when the pager rings.",
    ]):
        put(tmp_path, f"projects/active/p{number}.md", f"# Project {number}\n\n{text}\n")
    ctx = make_ctx(tmp_path)
    assert call(ctx, "recall", query=query)["primary"] == []
    assert call(ctx, "recall", query="how do we deploy the billing service")["primary"][0]["path"].endswith("p0.md")


@pytest.mark.parametrize(("written", "asked"), [
    ("Schlüter", "schlueter"), ("Schlüter", "schluter"), ("Schlueter", "schlüter"), ("Straße", "strasse"),
    ("Strasse", "straße"),
    ("Café", "cafe"), ("Cafe", "café"), ("Ångström", "angstrom"), ("Łódź", "lodz"), ("Jörg", "joerg"),
    ("SCHLÜTER", "Schlueter"),
    ("Ærø", "aero"), ("Dvořák", "dvorak"),
])
def test_diacritics_are_forgiven_both_ways(tmp_path: Path, written: str, asked: str) -> None:
    """In search and in names, in either normal form."""
    for form in ("NFC", "NFD"):
        folder = tmp_path / form
        put(folder, "resources/people/p1.md",
            unicodedata.normalize(form, f"---\ntitle: {written}\n---\n\n# {written}\n\nBuilds things.\n"))
        put(folder, "resources/people/p2.md", "# Somebody Else\n\nOther matters.\n")
        ctx = make_ctx(folder)
        assert call(ctx, "resolve", mention=asked).get("path") == "resources/people/p1.md"
        assert [hit["path"] for hit in call(ctx, "recall", query=asked)["primary"]] == ["resources/people/p1.md"]


@pytest.mark.parametrize("query", [
    "what's the budget, roughly?", 'the "budget', "budget AND NOT (", "budget NEAR/3 x", "budget*", "-budget^2",
    "budget; --",
    "budget's \\ %_", "(budget OR", "budget +-!{}[]~:/", "BUDGET?!", "what is *the* `budget`",
])
def test_a_question_is_data_and_never_query_syntax(tmp_path: Path, query: str) -> None:
    """Quotes, operators and punctuation neither fail nor change what is found."""
    put(tmp_path, "notes/money.md", "# Money\n\nThe budget is roughly 5,000.\n")
    put(tmp_path, "notes/other.md", "# Other\n\nNothing here.\n")
    answer = call(make_ctx(tmp_path), "recall", query=query)
    assert answer["ok"]
    assert [hit["path"] for hit in answer["primary"]] == ["notes/money.md"]


# -- memory growth, time, staleness ---------------------------------------------------------------------------


def test_the_newer_of_two_facts_wins_and_the_older_is_marked(tmp_path: Path) -> None:
    """After a change of job, recall names the current note first and says what replaced the old one."""
    ctx = make_ctx(tmp_path)
    old = call(ctx, "capture", title="Maria works at Acme", kind="semantic", body="Maria works at Acme as an engineer.")
    new = call(ctx, "capture", title="Maria works at Brightside", kind="semantic", supersedes=old["slug"],
               body="Maria works at Brightside as an engineer.")
    assert new["action"] == "created"
    hits = call(ctx, "recall", query="where does Maria work?")["primary"]
    assert hits[0]["path"] == new["path"]
    older = [hit for hit in hits if hit["path"] == old["path"]]
    assert all("superseded_by" in hit for hit in older)
    assert frontmatter.parse(get(tmp_path, old["path"])).values["superseded_by"] == (
        f"[[{new['path'][:-3]}|Maria works at Brightside]]")
    assert frontmatter.parse(get(tmp_path, new["path"])).values["supersedes"] == (
        f"[[{old['path'][:-3]}|Maria works at Acme]]")
    assert "Maria works at Acme as an engineer." in get(tmp_path, old["path"])


@pytest.mark.parametrize(("zone", "instant", "day", "stamp"), [
    ("America/Chicago", "2026-12-01T03:30:00+00:00", "2026-11-30", "2026-11-30T21:30:00-06:00"),
    ("Pacific/Tongatapu", "2026-11-30T12:30:00+00:00", "2026-12-01", "2026-12-01T01:30:00+13:00"),
    ("UTC", "2026-12-01T00:30:00+01:00", "2026-11-30", "2026-11-30T23:30:00+00:00"),
    ("Asia/Kathmandu", "2026-11-30T18:20:00Z", "2026-12-01", "2026-12-01T00:05:00+05:45"),
    ("Europe/Vienna", "2026-10-25T00:30:00+00:00", "2026-10-25", "2026-10-25T02:30:00+02:00"),
    ("Europe/Vienna", "2026-10-25T01:30:00+00:00", "2026-10-25", "2026-10-25T02:30:00+01:00"),
])
def test_one_owner_time_zone_decides_every_day_and_stamp(
    tmp_path: Path, zone: str, instant: str, day: str, stamp: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server on UTC names day notes, inbox lines, ages and rollups in the operator's zone."""
    monkeypatch.setenv("TZ", "UTC")
    ctx = make_ctx(tmp_path, instant, zone)
    inbox = call(ctx, "capture", title="an evening thought")
    assert inbox["line"] == f"- {day}: an evening thought"
    note = call(ctx, "capture", title="Evening", kind="concept", body="written in the evening")
    assert f"created: {day}\nupdated: {day}\n" in get(tmp_path, note["path"])
    assert f"- {stamp[11:16]} captured concept" in get(tmp_path, f"journal/daily/{day}.md")
    assert call(ctx, "set_scope", scope="evening")["scope_updated"] == stamp
    assert call(ctx, "recall", query="evening thought written", since=day)["primary"]
    listed = call(ctx, "triage_inbox")["items"]
    assert (listed[0]["date"], listed[0]["age_days"]) == (day, 0)


def test_a_server_uses_the_owners_zone_whatever_the_containers(tmp_path: Path) -> None:
    """TZ of the process does not matter, ECHO_TZ does."""
    with running_server(tmp_path, TZ="UTC", ECHO_TZ="America/Chicago", ECHO_CLOCK="2026-12-01T03:30:00Z") as far:
        assert far.call("echo_capture", title="late")["line"] == "- 2026-11-30: late"


def test_a_change_made_beside_the_server_is_seen_by_every_read(server: Server, desk: Any) -> None:
    """get_note is always fresh: no watcher event and no cache stands between."""
    note = desk("# N\n\none\n")
    size = note.file.stat()
    for text in ("# N\n\ntwo\n", "# N\n\nsix\n"):
        note.file.write_text(text)
        os.utime(note.file, ns=(size.st_atime_ns, size.st_mtime_ns))
        assert server.call("echo_get_note", path=note.path)["content"] == text
    assert note.append("- x")["ok"]
    assert note.text == "# N\n\nsix\n- x\n"
    note.file.unlink()
    assert server.call("echo_get_note", path=note.path)["code"] == "not-found"


def test_what_is_gone_is_gone_from_every_index(tmp_path: Path) -> None:
    """A note removed or renamed beside ECHO leaves no row in recall, names, backlinks or the rebuilt index."""
    ctx = make_ctx(tmp_path)
    path = call(ctx, "capture", title="Zeppelin", kind="concept", body="airship lore")["path"]
    other = call(ctx, "capture", title="Kite", kind="concept", body="See [[resources/concepts/zeppelin]].")["path"]
    assert call(ctx, "recall", query="airship lore")["primary"]
    (tmp_path / "vault" / path).unlink()
    assert call(ctx, "recall", query="airship lore")["primary"] == []
    assert call(ctx, "resolve", mention="Zeppelin")["match"] is False
    from echo_maintenance import reindex_op

    assert reindex_op(ctx=ctx)["ok"]
    assert [entry["path"] for entry in json.loads(get(tmp_path,
                                                      "_agent/index/entities.json"))["entities"].values()] == [other]
    again = make_ctx(tmp_path)
    assert call(again, "recall", query="airship lore")["primary"] == []


def test_a_vault_that_is_gone_is_not_an_empty_one(tmp_path: Path) -> None:
    """No call answers `nothing found`; when it is back, everything is there again."""
    ctx = make_ctx(tmp_path)
    path = call(ctx, "capture", title="Zeppelin", kind="concept", body="airship lore")["path"]
    assert call(ctx, "recall", query="airship lore")["primary"]
    (tmp_path / "vault").rename(tmp_path / "away")
    for tool, arguments in (("recall", {"query": "airship lore"}), ("resolve", {"mention": "Zeppelin"}),
                            ("get_note", {"path": path}), ("append_note", {"path": path, "line": "- x"}),
                            ("capture", {"title": "New", "kind": "concept"}), ("load", {})):
        answer = call(ctx, tool, **arguments)
        assert not answer["ok"] or answer.get("offline"), (tool, answer)
        assert answer.get("code", "vault-unreachable") == "vault-unreachable"
    assert not (tmp_path / "vault").exists()
    (tmp_path / "away").rename(tmp_path / "vault")
    assert call(ctx, "recall", query="airship lore")["primary"][0]["path"] == path
    assert "zeppelin" in json.loads(get(tmp_path, "_agent/index/entities.json"))["entities"]


# -- size -----------------------------------------------------------------------------------------------------


def test_orientation_does_not_grow_with_the_vault(tmp_path: Path) -> None:
    """150 entities with long notes, a full inbox and a long day: load stays within 6,000 characters."""
    for number in range(150):
        put(tmp_path, f"resources/concepts/c{number}.md",
            f"# Concept {number}\n\n" + f"fact {number} about things. " * 60)
    put(tmp_path, "inbox/captures/inbox.md",
        "".join(f"- 2026-11-01: item {number} {'x' * 200}\n" for number in range(300)))
    put(tmp_path, "journal/daily/2026-11-30.md",
        "# Day\n\n## Agent Log\n\n" + "".join(f"- 10:{n % 60:02d} did {n}\n" for n in range(500)))
    put(tmp_path, "_agent/memory/semantic/operator-preferences.md", "# Preferences\n\n" + "- likes tea\n" * 2000)
    ctx = make_ctx(tmp_path)
    answer = call(ctx, "load")
    assert len(json.dumps(answer["sections"], ensure_ascii=False)) <= 6000
    recall = call(ctx, "recall", query="fact about things", limit=20)
    assert len(json.dumps(recall, ensure_ascii=False)) <= 4000 * 1.1 + 300
    assert len(echo_tools.TOOLS) <= 20


@pytest.mark.parametrize("unit", ["word ", "👩‍👩‍👧", "é", "[[some/long/link|alias text]] ", "日本", "🇦🇹"])
@pytest.mark.parametrize("limit", [200, 333, 1000])
def test_a_cut_is_flagged_with_the_full_length_and_splits_nothing(desk: Any, unit: str, limit: int) -> None:
    """4,425 bytes come back marked; no half character, family, flag or link at the cut."""
    text = "# T\n\n" + unit * (4420 // len(unit.encode()))
    note = desk(text)
    answer = note.server.call("echo_get_note", path=note.path, max_chars=limit)
    assert answer["truncated"] is True
    assert answer["total_chars"] == len(text)
    shown = answer["content"]
    kept = shown.rstrip("…").rstrip()
    assert len(shown) <= limit
    assert text.startswith(kept)
    rest = kept[len("# T\n\n"):]
    # A word may be cut, a character that a reader sees and a link may not.
    whole = [""] + ([unit[:size] for size in range(1, len(unit))] if unit in ("word ", "日本") else [])
    assert rest.replace(unit.strip(), "").strip() in whole
    all_of_it = note.server.call("echo_get_note", path=note.path, max_chars=5000)
    assert (all_of_it["content"], "truncated" in all_of_it) == (text, False)


def test_a_cut_keeps_table_rows_whole(desk: Any) -> None:
    """The last row shown is a whole one."""
    row = "| cell one | cell two | [x](y.md) |\n"
    note = desk("# T\n\n| a | b | c |\n|---|---|---|\n" + row * 200)
    for limit in range(200, 280, 7):
        shown = note.server.call("echo_get_note", path=note.path, max_chars=limit)["content"]
        lines = shown.rstrip("…\n").splitlines()
        assert lines[-1].strip() in ("", row.strip(), "|---|---|---|"), (limit, lines[-1])
