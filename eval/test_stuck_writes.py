"""One note that the vault refuses holds up no other; its own writes keep their order (spec 6.2)."""
from __future__ import annotations

from pathlib import Path

import pytest
from fakes.olrapi import Olrapi
from restvault import KEY
from serverproc import running_server
from test_rest_server import until


@pytest.mark.timeout(120)
def test_a_note_that_the_vault_refuses_holds_up_only_its_own_writes(tmp_path: Path) -> None:
    """The API answers 500 for writes of one note: others arrive at once, those of that note later and in order."""
    vault = tmp_path / "vault"
    vault.mkdir()
    for name in ("stuck", "other"):
        (vault / f"{name}.md").write_text(f"# {name}\n\n- start\n", encoding="utf-8")
    with Olrapi(str(vault), key=KEY) as api, running_server(tmp_path, ECHO_BASE=api.url, ECHO_KEY=KEY) as server:
        fault = api.faults.add("error_before", path="stuck.md", method="PUT", status=500)
        assert server.call("echo_append_note", path="stuck.md", line="- one")["queued"]
        until(lambda: api.faults.fired("error_before") >= 2)  # it has been tried again by itself
        for number in range(5):
            answer = server.call("echo_append_note", path="other", line=f"- quick {number}")
            assert answer["action"] == "appended"
            assert "queued" not in answer
        assert server.call("echo_capture", title="Ada", kind="person", body="x")["action"] == "created"
        assert server.call("echo_move_note", path="other.md", new_path="moved.md", confirm=True)["ok"]
        second = server.call("echo_append_note", path="Stuck", line="- two")
        assert second["queued"]
        api.faults.remove(fault)
        until(lambda: "- two" in (vault / "stuck.md").read_text())
        assert (vault / "stuck.md").read_text().endswith("- start\n- one\n- two\n")
        until(lambda: server.client.get(f"{server.base}/health").json()["outbox_depth"] == 0)


@pytest.mark.timeout(120)
def test_good_writes_that_waited_pass_one_that_is_refused(tmp_path: Path) -> None:
    """A hundred of them, with a bad one in their middle and another write of its note behind it."""
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "bad.md").write_text("# bad\n", encoding="utf-8")
    (vault / "good.md").write_text("# good\n", encoding="utf-8")
    with Olrapi(str(vault), key=KEY) as api, running_server(tmp_path, ECHO_BASE=api.url, ECHO_KEY=KEY) as server:
        assert server.call("echo_load")["ok"]
        api.refuse()
        api.drop_connections()
        for number in range(100):
            path = "bad.md" if number in (50, 60) else "good.md"
            assert server.call("echo_append_note", path=path, line=f"- line {number}")["queued"]
        api.faults.add("error_before", path="bad.md", method="PUT", status=500)
        api.accept()
        until(lambda: "- line 99" in (vault / "good.md").read_text(), 60)
        lines = (vault / "good.md").read_text().splitlines()[1:]
        assert lines == [f"- line {number}" for number in range(100) if number not in (50, 60)]
        assert "- line" not in (vault / "bad.md").read_text()
        api.faults.clear()
        until(lambda: (vault / "bad.md").read_text() == "# bad\n- line 50\n- line 60\n", 60)


def test_what_the_vault_cannot_take_is_said_at_once_and_not_kept(tmp_path: Path) -> None:
    """A note that is no UTF-8 behind the API, and a write the API refuses for good: coded, nothing waits."""
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "latin.md").write_bytes(b"# Latin\n\ncaf\xe9\n")
    (vault / "plain.md").write_bytes(b"# Plain\n")
    with Olrapi(str(vault), key=KEY) as api, running_server(tmp_path, ECHO_BASE=api.url, ECHO_KEY=KEY) as server:
        refused = server.call("echo_append_note", path="latin.md", line="- x")
        assert (refused["ok"], refused["code"], refused.get("queued")) == (False, "malformed-note", None)
        for status in (400, 405, 413):
            fault = api.faults.add("error_before", path="plain.md", method="PUT", status=status)
            refused = server.call("echo_append_note", path="plain.md", line=f"- {status}")
            assert (refused["ok"], refused["code"], refused.get("queued")) == (False, "vault-bad-response", None)
            api.faults.remove(fault)
        health = server.client.get(f"{server.base}/health").json()
        assert (health["outbox_depth"], health["parked"]) == (0, 0)
        assert (vault / "latin.md").read_bytes() == b"# Latin\n\ncaf\xe9\n"
        assert server.call("echo_append_note", path="plain.md", line="- y")["action"] == "appended"
        assert (vault / "plain.md").read_bytes() == b"# Plain\n- y\n"


def test_health_follows_the_key_at_once(tmp_path: Path) -> None:
    """A refused key shows with the first call that meets it, and a right one with the first that goes through."""
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault/a.md").write_text("# A\n", encoding="utf-8")
    with Olrapi(str(tmp_path / "vault"), key=KEY) as api, running_server(
        tmp_path, ECHO_BASE=api.url, ECHO_KEY=KEY,
    ) as server:
        def auth_ok() -> bool:
            return bool(server.client.get(f"{server.base}/health").json()["vault_auth_ok"])

        assert auth_ok()
        fault = api.faults.add("wrong_key")
        assert server.call("echo_get_note", path="a.md")["code"] == "vault-auth"
        assert not auth_ok()
        api.faults.remove(fault)
        assert server.call("echo_get_note", path="a.md")["ok"]
        assert auth_ok()
