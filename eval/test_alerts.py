"""What is wrong is told once, in words for people, to the one address and with nothing secret in it (spec 4.2, 6.4)."""
from __future__ import annotations

import socket
import threading
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from backupdesk import make_desk
from echo_core.clock import Clock
from echo_mcp import alerts as alerts_module
from echo_mcp import notify
from echo_mcp.alerts import Alerts
from echo_mcp.notify import NotTold, Webhook, is_webhook
from serverproc import running_server
from webhook import Receiver


def alerts_for(tmp_path: Path, url: str) -> Alerts:
    clock = Clock("UTC", "2026-11-30T04:00:00Z")
    made = Alerts(make_desk(tmp_path, clock).runs, clock, Webhook(url))
    made.start()
    return made


def test_a_condition_is_told_once_and_again_when_it_is_over(tmp_path: Path) -> None:
    """Across restarts; a message that says the same is not repeated."""
    with Receiver() as receiver:
        alerts = alerts_for(tmp_path, receiver.url)
        for _ in range(3):
            alerts.set("backup", "the backup failed.")
        receiver.wait_for(1)
        alerts.stop()
        alerts.ended(30)
        alerts = alerts_for(tmp_path, receiver.url)
        alerts.set("backup", "the backup failed.")
        assert [row["name"] for row in alerts.open()] == ["backup"]
        alerts.clear("backup", "the backup works again.")
        alerts.clear("backup", "the backup works again.")
        alerts.set("other", "another thing.")
        receiver.wait_for(3)
        alerts.stop()
    texts = [(message["text"], message["status"]) for message in receiver.messages]
    assert texts[0] == ("ECHO: the backup failed.", "down")
    assert sorted(texts[1:]) == [("ECHO: another thing.", "down"), ("ECHO: the backup works again.", "up")]
    assert receiver.messages[0]["message"] == receiver.messages[0]["text"]
    assert receiver.messages[0]["title"]


def test_a_receiver_that_is_down_hears_of_it_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The condition is kept until it has arrived."""
    monkeypatch.setattr(alerts_module, "FIRST_RETRY_S", 0.01)
    with Receiver(status=503) as receiver:
        alerts = alerts_for(tmp_path, receiver.url)
        alerts.set("backup", "the backup failed.")
        receiver.wait_for(2)
        receiver.status = 204
        receiver.wait_for(len(receiver.messages) + 1)
        alerts.stop()
        alerts.ended(30)
        heard = len(receiver.messages)
        alerts = alerts_for(tmp_path, receiver.url)
        alerts.clear("backup", "the backup works again.")
        receiver.wait_for(heard + 1)
        assert receiver.messages[-1]["status"] == "up"
        alerts.stop()


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    """Nobody but the operator decides who hears it."""
    with Receiver() as other, Receiver(status=307, location=other.url) as receiver:
        with pytest.raises(NotTold, match="status 307"):
            Webhook(receiver.url).send("backup", "t", "x", False)
        assert len(receiver.messages) == 1
    assert other.messages == []


def test_a_receiver_that_drips_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then keeps the connection alive, but not for longer than one try may take."""
    monkeypatch.setattr(notify, "TIMEOUT_S", 0.5)
    stop = threading.Event()

    def drip(server: socket.socket) -> None:
        peer, _ = server.accept()
        with peer:
            while not stop.wait(0.05):
                try:
                    peer.sendall(b"H")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,))
        thread.start()
        with pytest.raises(NotTold):
            Webhook(f"http://127.0.0.1:{server.getsockname()[1]}/x").send("backup", "t", "x", False)
        stop.set()
        thread.join()


def test_a_push_monitor_gets_its_status_in_the_query(tmp_path: Path) -> None:
    """Uptime Kuma reads the query only; it also hears of good nights, and misses them when they stop."""
    with Receiver(path="/api/push/s3cr3t?status=up&msg=OK&ping=") as receiver:
        alerts = alerts_for(tmp_path, receiver.url)
        alerts.beat("all is saved.")
        receiver.wait_for(1)
        alerts.set("backup", "the backup failed.")
        alerts.set("backup-drill", "the drill failed.")
        receiver.wait_for(3)
        alerts.clear("backup", "the backup works again.")
        receiver.wait_for(4)
        alerts.clear("backup-drill", "the drill works again.")
        receiver.wait_for(5)
        alerts.stop()
    queries = [parse_qs(urlsplit(target).query) for target in receiver.targets]
    assert [query["status"] for query in queries] == [["up"], ["down"], ["down"], ["down"], ["up"]]
    assert queries[1]["msg"][0].startswith("ECHO: the")


def test_a_password_in_the_address_becomes_a_header() -> None:
    """And stands in no target."""
    with Receiver() as receiver:
        Webhook(receiver.url.replace("http://", "http://me:pass%20word@")).send("e", "t", "x", True)
    assert receiver.heads[0]["Authorization"] == "Basic bWU6cGFzcyB3b3Jk"
    assert receiver.targets == ["/hook"]


@pytest.mark.parametrize(("url", "fine"), [
    ("https://ntfy.sh/topic?tpl=1&m={{.text}}", True), ("http://[::1]:80/x", True), ("ftp://x/y", False), ("x", False),
    ("https://", False), ("https://a b/", False), ("https://x:99999/", False), ("https://ü/", False),
])
def test_only_http_addresses_are_webhooks(url: str, fine: bool) -> None:
    """Everything else stops the start."""
    assert is_webhook(url) is fine


def test_a_server_tells_of_a_backup_that_fails_and_says_nothing_of_the_notes(tmp_path: Path) -> None:
    """No title, path, key, token or folder of the host is in the message or in the log, nor is the address."""
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "canary-title\\x.md").write_text("canary-body")
    with Receiver(path="/canary-hook") as receiver, running_server(tmp_path, ECHO_NOTIFY_URL=receiver.url) as server:
        receiver.wait_for(1)
        answer = server.call("echo_health")
        assert "canary-title" in next(row["detail"] for row in answer["checks"] if row["name"] == "backup")
        assert [row["name"] for row in answer["details"]["alerts"]] == ["backup"]
    message = receiver.messages[0]
    assert "misses 1 file" in message["text"]
    for said in (str(message), "\n".join(server.lines)):
        assert "canary" not in said
        assert str(tmp_path) not in said
