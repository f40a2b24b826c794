"""The operator hears of a vault that stays away, of writes that wait long, and of new findings (spec 4.2)."""
from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from backupdesk import make_desk
from echo_core.clock import Clock
from echo_core.errors import VaultUnreachable
from echo_mcp.alerts import Alerts
from echo_mcp.concerns import Concerns
from echo_mcp.health import Health
from echo_mcp.notify import Webhook
from webhook import Receiver


class Desk:
    """Concerns with limits of two hours for waiting writes and `down_h` for the vault; `names` are the open alerts."""

    def __init__(self, tmp_path: Path, down_h: float = 1, webhook: Webhook | None = None) -> None:
        runs = make_desk(tmp_path).runs
        self.health = Health()
        self.health.probed(None, True)
        self.alerts = Alerts(runs, Clock("UTC"), webhook)
        self.concerns = Concerns(self.health, self.alerts, runs, 2, down_h)

    def names(self) -> list[str]:
        self.concerns.look()
        return [row["name"] for row in self.alerts.open()]


def test_writes_that_wait_too_long_are_told(tmp_path: Path) -> None:
    """By the age of the oldest one, until nothing waits so long."""
    desk = Desk(tmp_path)
    desk.health.queued(3, 0, 2 * 3600 - 60)
    assert desk.names() == []
    desk.health.queued(3, 0, 2 * 3600 + 1)
    assert desk.names() == ["outbox"]
    assert Desk(tmp_path).names() == []
    desk.health.queued(0, 1, 0)
    assert desk.names() == ["parked"]


def test_a_backup_that_is_too_old_is_told(tmp_path: Path) -> None:
    """Also when the job that should have made a new one hangs."""
    desk = Desk(tmp_path)
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    desk.health.backups.backup_age.dated(1, "2026-11-29T10:30:00+00:00", now)
    assert desk.names() == []
    desk.health.backups.backup_age.dated(2, "2026-11-29T09:30:00+00:00", now)
    assert desk.names() == ["backup-old"]


@pytest.mark.parametrize(("down_h", "told"), [(0, ["vault-down"]), (1, [])])
def test_a_vault_that_stays_away_is_told(tmp_path: Path, down_h: float, told: list[str]) -> None:
    """Only after the named time, and no longer when it is back."""
    desk = Desk(tmp_path, down_h)
    desk.health.probed(VaultUnreachable("down"), True)
    assert desk.names() == told
    desk.health.probed(None, True)
    assert desk.names() == []


def test_new_findings_are_told_once(tmp_path: Path) -> None:
    """The first count is where it begins, also after a restart; fewer findings are no news."""
    with Receiver() as receiver:
        desk = Desk(tmp_path, webhook=Webhook(receiver.url))
        desk.names()
        for count in (4, 4, 2, 3, 3):
            desk.health.found(count)
            desk.names()
        again = Desk(tmp_path, webhook=Webhook(receiver.url))
        again.names()
        again.health.found(3)
        again.names()
        again.alerts.start()
        receiver.wait_for(1)
        again.alerts.stop()
        again.alerts.ended(30)
    assert [message["title"] for message in receiver.messages] == ["ECHO found something"]
    assert "3 things to look at, 1 more" in receiver.messages[0]["text"]
    assert again.alerts.open() == []
