"""A write that is sent again is not made again; one that is meant again is (spec 6.2)."""
from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from parallel import together
from serverproc import LEGACY, MODERN, Server, running_server
from test_rest_server import until


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a note of a status and a log for each test."""
    folder = tmp_path_factory.mktemp("repeats")
    (folder / "vault").mkdir()
    with running_server(folder) as running:
        yield running


@pytest.fixture
def path(server: Server, request: pytest.FixtureRequest) -> str:
    """A note of this test."""
    name = "".join(letter for letter in request.node.name if letter.isalnum())[:60] + ".md"
    (server.vault / name).write_text("# Engine\n\n## Status\n\nold\n\n## Log\n\n- start\n", encoding="utf-8")
    until(lambda: server.call("echo_get_note", path=name)["ok"])
    return name


def text_of(server: Server, path: str) -> str:
    return (server.vault / path).read_text(encoding="utf-8")


def keyed(server: Server, key: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """The answer by REST to a call with the client's own key."""
    answer = server.client.post(f"{server.base}/api/tools/{tool}", json=arguments, headers={"Idempotency-Key": key})
    return dict(answer.json()["data"])


def status(server: Server, path: str, value: str) -> dict[str, Any]:
    return server.call("echo_patch_note", path=path, operation="replace", target_type="heading", target="Status",
                       content=value)


def test_the_same_call_again_gets_the_first_answer_on_every_door(server: Server, path: str) -> None:
    """Also when others have written elsewhere in the note meanwhile."""
    first = server.call("echo_append_note", path=path, line="- met Ada", section="Log")
    assert server.call("echo_append_note", path=path, line="- between", section="Log")["op_id"] != first["op_id"]
    again = server.call("echo_append_note", path=path, line="- met Ada", section="Log")
    now = server.call("echo_get_note", path=path)["version"]
    assert again == {**first, "action": "unchanged", "version": now}
    for era in (MODERN, LEGACY):
        answer = server.tool("echo_append_note", era, path=path, line="- met Ada", section="Log")
        assert answer["structuredContent"] == again
    assert text_of(server, path).count("- met Ada") == 1


def test_a_line_of_the_inbox_that_is_sent_again_stands_once(server: Server) -> None:
    """Its stamp would be another one a minute later."""
    first = server.call("echo_capture", title="buy a narwhal")
    assert server.call("echo_capture", title="buy a walrus")["ok"]
    again = server.call("echo_capture", title="buy a narwhal")
    assert (again["action"], again["op_id"], again["path"]) == ("unchanged", first["op_id"], first["path"])
    assert text_of(server, "inbox/captures/inbox.md").count("buy a narwhal") == 1


def test_what_is_meant_again_is_done_again(server: Server, path: str) -> None:
    """A, B, undo, A, B; and A, B, A: the note ends as the last call says."""
    for value in ("A", "B"):
        assert status(server, path, value)["ok"]
    version = server.call("echo_note_history", path=path)["versions"][0]["id"]
    assert server.call("echo_restore_note", path=path, version_id=version, confirm=True)["ok"]
    assert "\nA\n" in text_of(server, path)
    for value in ("A", "B", "A"):
        assert status(server, path, value)["ok"]
        assert f"\n{value}\n" in text_of(server, path)


def test_a_line_that_a_person_took_out_is_written_when_it_is_sent_again(server: Server, path: str) -> None:
    """The first answer is only given while it is true."""
    first = server.call("echo_append_note", path=path, line="- met Ada", section="Log")
    (server.vault / path).write_text(text_of(server, path).replace("- met Ada\n", ""), encoding="utf-8")
    again = server.call("echo_append_note", path=path, line="- met Ada", section="Log")
    assert again["op_id"] != first["op_id"]
    assert text_of(server, path).count("- met Ada") == 1


def test_equal_calls_at_the_same_time_are_one_write(server: Server, path: str) -> None:
    """Twenty of them: one line, one op id."""
    found = together([
        lambda: server.call("echo_append_note", path=path, line="- all at once", section="Log") for _ in range(20)])
    assert len({answer["op_id"] for answer in found}) == 1
    assert text_of(server, path).count("- all at once") == 1


def test_a_clients_own_key_names_one_write(server: Server, path: str) -> None:
    """By header or by `_meta`, whatever became of the text; another call with it is refused."""
    call = {"path": path, "line": "- by key", "section": "Log"}
    first = keyed(server, "k-1", "echo_append_note", **call)
    (server.vault / path).write_text("# Engine\n\n## Log\n", encoding="utf-8")
    assert keyed(server, "k-1", "echo_append_note", **call) == first
    for era in (MODERN, LEGACY):
        params = {"name": "echo_append_note", "arguments": call, "_meta": {"echo/idempotency-key": "k-1"}}
        answer = server.rpc("tools/call", params, era).json()["result"]
        assert answer["structuredContent"] == first
    assert "- by key" not in text_of(server, path)
    other = keyed(server, "k-1", "echo_append_note", **{**call, "line": "- another"})
    assert (other["ok"], other["code"], other["field"]) == (False, "invalid-argument", "idempotency-key")
    assert keyed(server, "k-2", "echo_append_note", **{**call, "line": "- another"})["ok"]
    assert "- another" in text_of(server, path)


def test_a_key_also_names_a_call_that_had_nothing_to_write(server: Server, path: str) -> None:
    """Its answer stays the same when the note has changed."""
    call = {"path": path, "line": "- start", "section": "Log"}
    first = keyed(server, "nothing", "echo_append_note", **call)
    assert first["action"] == "unchanged"
    (server.vault / path).write_text("# Engine\n\n## Log\n", encoding="utf-8")
    assert keyed(server, "nothing", "echo_append_note", **call) == first


def test_two_keys_are_two_writes_and_a_refused_call_leaves_its_key_free(server: Server, path: str) -> None:
    """What was refused may be corrected and sent under the same key."""
    bad = keyed(server, "free", "echo_append_note", path="nowhere/at-all.md", line="- x")
    assert bad["ok"] is False
    assert keyed(server, "free", "echo_append_note", path=path, line="- now", section="Log")["ok"]
    assert text_of(server, path).count("- now") == 1


@pytest.mark.parametrize("key", ["x" * 256, "tab\there", "", 7, None, ["a"]])
def test_a_key_that_is_none_is_refused_and_nothing_written(server: Server, path: str, key: Any) -> None:
    """Nobody is left believing that a retry is safe."""
    params = {"name": "echo_append_note", "arguments": {"path": path, "line": "- odd"},
              "_meta": {"echo/idempotency-key": key}}
    answer = server.rpc("tools/call", params).json()
    if key is None:  # as if it was not there
        assert answer["result"]["structuredContent"]["ok"]
        return
    assert answer["result"]["structuredContent"]["code"] == "invalid-argument"
    assert "- odd" not in text_of(server, path)


def test_reads_and_previews_are_made_each_time(server: Server, path: str) -> None:
    """A key makes nobody see an old answer."""
    before = keyed(server, "look", "echo_get_note", path=path)["content"]
    assert server.call("echo_append_note", path=path, line="- new", section="Log")["ok"]
    assert keyed(server, "look", "echo_get_note", path=path)["content"] != before
    assert keyed(server, "try", "echo_capture", title="Maybe", kind="concept", dry_run=True)["action"] == "preview"
    assert keyed(server, "try", "echo_capture", title="Maybe", kind="concept")["action"] == "created"


def test_keys_outlive_the_server_and_its_vault_being_away(tmp_path: Path) -> None:
    """A queued write answers the same until it has arrived, and then as it arrived; the key itself is not kept."""
    vault = tmp_path / "vault"
    vault.mkdir()
    call = {"title": "buy bread"}
    with running_server(tmp_path) as server:
        assert server.call("echo_load")["ok"]
        vault.rename(tmp_path / "away")
        first = keyed(server, "my-secret-key", "echo_capture", **call)
        assert first["queued"]
        assert keyed(server, "my-secret-key", "echo_capture", **call)["op_id"] == first["op_id"]
        (tmp_path / "away").rename(vault)
        inbox = vault / "inbox/captures/inbox.md"
        until(lambda: inbox.exists() and "buy bread" in inbox.read_text())
        until(lambda: not keyed(server, "my-secret-key", "echo_capture", **call).get("queued"))
    with running_server(tmp_path) as server:
        again = keyed(server, "my-secret-key", "echo_capture", **call)
        assert (again["ok"], again["op_id"]) == (True, first["op_id"])
        assert inbox.read_text().count("buy bread") == 1
    assert not [path for path in (tmp_path / "state").rglob("*")
                if path.is_file() and b"my-secret-key" in path.read_bytes()]


def test_answers_are_not_kept_longer_than_they_are_asked_for(tmp_path: Path) -> None:
    """After ten minutes, with a key after a day; also when the clock was ahead."""
    (tmp_path / "vault").mkdir()
    ages = {"old": 700, "keyed": 3600, "keyed-old": 90_000, "ahead": -100_000, "fresh": 10}
    with running_server(tmp_path) as server:
        for name in ages:
            assert keyed(server, name if "keyed" in name else "", "echo_capture", title=f"thing {name}")["ok"]
    database = sqlite3.connect(tmp_path / "state/server/queue.sqlite3")
    with database:
        rows = database.execute("SELECT id FROM intent ORDER BY id").fetchall()
        for (number,), age in zip(rows, ages.values(), strict=True):
            database.execute("UPDATE intent SET done_at = strftime('%s', 'now') - ? WHERE id = ?", (age, number))
    database.close()
    with running_server(tmp_path) as server:
        assert server.call("echo_capture", title="one more")["ok"]
    database = sqlite3.connect(tmp_path / "state/server/queue.sqlite3")
    kept = [row[0] for row in database.execute("SELECT id FROM intent ORDER BY id")]
    database.close()
    assert kept == [2, 5, 6]


def test_a_batch_that_is_sent_again_is_answered_to_the_letter(server: Server, path: str) -> None:
    """Text and structured content do not differ by a character, and what it wrote stands once."""
    call = {"proposals": [{"action": "capture", "title": "Often told", "kind": "concept", "body": "once more"}]}
    token = server.call("echo_reflect", **call)["preview_token"]
    found = [server.tool("echo_reflect", **call, apply=True, preview_token=token) for _ in range(2)]
    assert found[0]["structuredContent"]["ok"]
    assert text_of(server, "resources/concepts/often-told.md").count("once more") == 1
    assert json.dumps(found[0], sort_keys=True) == json.dumps(found[1], sort_keys=True)
