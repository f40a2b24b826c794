"""Writes while the server's vault is away: kept, visible, and in the vault once when it is back (spec 3.1, 6.2)."""
from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from serverproc import Server, environment, running_server


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for something a background job does; fail when it does not happen."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)


def health(server: Server, field: str) -> object:
    return server.client.get(f"{server.base}/health").json()[field]


def go_away(server: Server) -> None:
    server.vault.rename(server.vault.with_name("away"))


def come_back(server: Server) -> None:
    server.vault.with_name("away").rename(server.vault)


def note(server: Server, path: str) -> str:
    return (server.vault / path).read_text(encoding="utf-8")


def queue_command(server: Server, *words: str) -> str:
    """What `echo-mcp queue` prints beside the running server."""
    command = [sys.executable, "-m", "echo_mcp", "queue", *words]
    env = environment(server.vault, server.state)
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False).stdout


@pytest.mark.timeout(180)
def test_writes_wait_for_the_vault_and_arrive_once_in_order(tmp_path: Path) -> None:
    """Captures, appends and a patch are answered `queued: true` and stand in the vault once after it returns."""
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "list.md").write_text("# List\n\n## Status\n\nold\n\n## Log\n\n- start\n", encoding="utf-8")
    with running_server(tmp_path) as server:
        go_away(server)
        for number in range(5):
            answer = server.call("echo_append_note", path="list.md", line=f"- item {number}", section="Log")
            assert (answer["ok"], answer["queued"]) == (True, True)
            assert answer["op_id"]
        for state in ("B", "A", "B"):
            assert server.call("echo_patch_note", path="list.md", operation="replace", target_type="heading",
                               target="Status", content=state)["queued"]
        assert server.call("echo_capture", title="Ada", kind="person", body="Wrote programs.")["queued"]
        sent = server.client.post(f"{server.base}/api/tools/echo_capture", json={"title": "buy milk"})
        assert (sent.status_code, sent.json()["success"]) == (202, True)
        read = server.call("echo_get_note", path="list.md")
        assert (read["ok"], read["offline"]) == (True, True)
        assert "- item" not in read["content"]  # as it was before, and the hint names the waiting writes
        assert "Not in it: 10 writes waiting" in read["hint"]
        until(lambda: health(server, "outbox_depth") == 10)
        come_back(server)
        until(lambda: health(server, "outbox_depth") == 0)
        assert note(server, "list.md") == (
            "# List\n\n## Status\n\nB\n\n## Log\n\n- start\n" + "".join(f"- item {n}\n" for n in range(5)))
        assert note(server, "inbox/captures/inbox.md").count("buy milk") == 1
        assert server.call("echo_resolve", mention="ada")["path"] == "resources/people/ada.md"


@pytest.mark.timeout(180)
def test_a_queued_write_survives_the_end_of_the_server(tmp_path: Path) -> None:
    """The server is stopped while the write waits; the next one brings it to the vault."""
    with running_server(tmp_path) as server:
        go_away(server)
        assert server.call("echo_capture", title="remember me")["queued"]
        assert server.stop() == 0
        come_back(server)
    with running_server(tmp_path) as server:
        until(lambda: (server.vault / "inbox/captures/inbox.md").exists())
        assert note(server, "inbox/captures/inbox.md").count("remember me") == 1


@pytest.mark.timeout(180)
def test_a_write_that_meets_a_gate_on_arrival_is_parked_and_shown(tmp_path: Path) -> None:
    """It holds up no other write, `echo_load` counts it, and nothing is written twice."""
    with running_server(tmp_path) as server:
        server.call("echo_capture", title="Ada Lovelace", kind="person", body="First.")
        go_away(server)
        assert server.call("echo_capture", title="Ada Lovelace", kind="person", body="Something else.")["queued"]
        assert server.call("echo_capture", title="after it")["queued"]
        come_back(server)
        until(lambda: health(server, "parked") == 1)
        assert "after it" in note(server, "inbox/captures/inbox.md")
        assert server.call("echo_load")["parked"] == 1
        assert len(list((server.vault / "resources/people").iterdir())) == 1
        listed = queue_command(server)
        assert "duplicate-gate" in listed
        op_id = re.findall(r"op_id: ([0-9a-f]{12})", listed)[0]
        assert "dropped" in queue_command(server, "drop", op_id)
        until(lambda: health(server, "parked") == 0)
        assert "not-found" in queue_command(server, "retry", op_id)


@pytest.mark.timeout(180)
def test_a_bad_call_is_refused_and_not_queued(tmp_path: Path) -> None:
    """What the vault would refuse when it is back is refused now: bad arguments, credentials, dry runs."""
    key = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    with running_server(tmp_path) as server:
        go_away(server)
        assert server.call("echo_capture", titel="x")["code"] == "invalid-argument"
        assert server.call("echo_capture", title="token", body=key)["code"] == "secret-suspected"
        assert server.call("echo_append_note", path="../x.md", line="- x")["code"] == "invalid-path"
        assert server.call("echo_capture", title="x", kind="person", dry_run=True)["code"] == "vault-unreachable"
        assert server.call("echo_move_note", path="a.md", new_path="b.md", confirm=True)["code"] == "vault-unreachable"
        come_back(server)


def test_a_second_server_on_the_state_folder_leaves_before_it_touches_anything(tmp_path: Path) -> None:
    """It says why and what to do; a server that was killed holds nothing; each kind of server counts."""
    (tmp_path / "vault").mkdir()
    with running_server(tmp_path) as server:
        assert server.call("echo_capture", title="buy milk")["ok"]
        for words in (["serve"], ["stdio"], ["run"]):
            env = environment(server.vault, server.state)
            second = subprocess.run([sys.executable, "-m", "echo_mcp", *words], env=env, capture_output=True, text=True,
                                    stdin=subprocess.DEVNULL, check=False, timeout=30)
            assert (second.returncode, second.stdout) == (75, "")
            assert "ECHO_STATE_DIR" in second.stderr
            assert second.stderr.count("\n") == 1
        assert "depth: 0" in queue_command(server)
        assert server.call("echo_capture", title="buy bread")["ok"]
        server.process.kill()
    with running_server(tmp_path) as server:
        assert "buy bread" in note(server, "inbox/captures/inbox.md")
