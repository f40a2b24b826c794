"""The nightly run: due once a night, drilled, and honest about itself (spec 6.4, 6.6; faults BK-11 to BK-14)."""
from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backupdesk import WATCH, fill_disk, make_desk, zips
from echo_core.clock import Clock
from echo_core.errors import StorageFailed
from echo_mcp.alerts import Alerts
from echo_mcp.backup import making
from echo_mcp.backup.nightly import Nightly
from echo_mcp.health import Health
from echo_mcp.runs import Runs
from serverproc import Server, running_server


class Nights:
    """The nightly job of `tmp_path`/vault as a server started at `instant` has it."""

    def __init__(self, tmp_path: Path, instant: str, at: tuple[int, int] = (3, 30)) -> None:
        clock = Clock("Europe/Berlin", instant)
        self.desk = make_desk(tmp_path, clock)
        self.health = Health()
        self.health.refreshed()
        self.alerts = Alerts(self.desk.runs, clock, None)
        self.job = Nightly(self.desk, clock, at, self.health, self.alerts)
        self.job.look()

    def results(self, job: str = "backup") -> list[str]:
        return [run.result for run in reversed(self.desk.runs.recent(job))]

    def facts(self) -> dict[str, Any]:
        return self.health.snapshot()[1]

    def alarms(self) -> list[str]:
        return [row["name"] for row in self.alerts.open()]


def vault_with(tmp_path: Path, text: str = "one") -> Path:
    (tmp_path / "vault").mkdir(exist_ok=True)
    (tmp_path / "vault/a.md").write_text(text)
    return tmp_path / "vault/a.md"


@pytest.mark.parametrize(("first", "then", "due"), [
    ("2026-11-30T12:00:00", "2026-11-30T13:00:00", False),
    ("2026-11-30T12:00:00", "2026-12-01T03:29:59", False),
    ("2026-11-30T12:00:00", "2026-12-01T03:30:00", True),
    ("2026-11-30T03:29:00", "2026-11-30T03:31:00", True),
    ("2026-11-30T12:00:00", "2026-12-24T00:00:00", True),
    ("2036-11-30T12:00:00", "2026-11-30T12:00:00", True),  # the clock was ten years ahead
    ("2026-10-25T02:15:00+02:00", "2026-10-25T02:20:00+01:00", True),  # the hour that comes twice
    ("2026-10-25T02:35:00+02:00", "2026-10-25T02:35:00+01:00", False),
    ("2026-03-29T01:59:00+01:00", "2026-03-29T03:31:00+02:00", True),  # the hour that never comes
])
def test_each_night_has_one_run_and_a_missed_one_is_caught_up_with(
    tmp_path: Path, first: str, then: str, due: bool
) -> None:
    """Whatever the clock does; a run of the same night is not repeated by a restart."""
    vault_with(tmp_path)
    at = (2, 30) if first.startswith(("2026-10", "2026-03")) else (3, 30)
    assert Nights(tmp_path, first, at).results() == ["ok"]
    again = Nights(tmp_path, then, at)
    assert again.results() == (["ok", "unchanged"] if due else ["ok"])
    again.job.look()
    assert len(again.results()) == 1 + due
    assert again.facts()["last_backup_ok"] is True
    assert len(zips(tmp_path)) == 1


def test_age_counts_from_the_last_night_that_found_everything_saved(tmp_path: Path) -> None:
    """An unchanged vault is fresh although its zip is old; a server that slept says how old the last good one is."""
    vault_with(tmp_path)
    assert Nights(tmp_path, "2026-11-28T04:00:00").facts()["last_backup_age_s"] == 0
    Nights(tmp_path, "2026-11-29T04:00:00")
    shutil.move(tmp_path / "vault", tmp_path / "away")
    late = Nights(tmp_path, "2026-11-30T07:00:00")
    facts = late.facts()
    assert 27 * 3600 <= facts["last_backup_age_s"] < 27 * 3600 + 60
    assert facts["last_backup_ok"] is False
    assert late.results() == ["ok", "unchanged", "failed"]
    late.job.look()
    assert late.results()[-1] == "failed" and len(late.results()) == 3
    assert late.alarms() == ["backup"]
    shutil.move(tmp_path / "away", tmp_path / "vault")
    back = Nights(tmp_path, "2026-11-30T08:00:00")
    assert back.facts()["last_backup_ok"] is True
    assert back.alarms() == []


def test_every_night_the_newest_backup_is_restored_for_trial(tmp_path: Path) -> None:
    """Also when the vault has not changed; the scratch folder is gone afterwards."""
    note = vault_with(tmp_path)
    Nights(tmp_path, "2026-11-28T04:00:00")
    Nights(tmp_path, "2026-11-29T04:00:00")
    note.write_text("two")
    nights = Nights(tmp_path, "2026-11-30T04:00:00")
    assert nights.results("drill") == ["ok", "ok", "ok"]
    assert nights.desk.runs.recent("drill")[0].detail["name"] == zips(tmp_path)[-1]
    assert nights.facts()["last_drill_age_s"] == 0
    assert sorted(os.listdir(tmp_path / "state/backups")) == [".lock", *zips(tmp_path)]


def spoil(path: Path) -> None:
    """Flip a bit of the first file's content."""
    data = bytearray(path.read_bytes())
    data[data.index(b"vault/a.md") + 12] ^= 1
    path.write_bytes(data)


def test_a_backup_that_does_not_restore_is_replaced_at_once(tmp_path: Path) -> None:
    """The drill finds it; `/health` and the alert stay until the damaged file is gone."""
    vault_with(tmp_path)
    Nights(tmp_path, "2026-11-29T04:00:00")
    bad = tmp_path / "state/backups" / zips(tmp_path)[0]
    spoil(bad)
    nights = Nights(tmp_path, "2026-11-30T04:00:00")
    assert nights.results() == ["ok", "unchanged", "ok"]
    assert nights.results("drill") == ["ok", "failed", "ok"]
    assert nights.facts()["last_backup_ok"] is False
    assert nights.alarms() == ["backup-damaged"]
    assert "echo_backup_damaged 1" in metrics(nights.health)
    bad.unlink()
    nights.job.look()
    assert nights.facts()["last_backup_ok"] is True
    assert nights.alarms() == []


def test_a_drill_that_fails_turns_health_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the disk holds cannot be restored: `ok` is about this process and its disk."""
    vault_with(tmp_path)
    nights = Nights(tmp_path, "2026-11-29T04:00:00")
    nights.health.serve(True)
    assert nights.facts()["ok"] is True
    spoil(tmp_path / "state/backups" / zips(tmp_path)[0])
    monkeypatch.setattr(making, "_estimate", lambda *_: 1 << 60)  # there is no room for another one
    again = Nights(tmp_path, "2026-11-30T04:00:00")
    again.health.serve(True)
    assert again.facts()["ok"] is False
    assert again.facts()["last_backup_ok"] is False


def test_rot_in_an_older_backup_is_found_within_a_night(tmp_path: Path) -> None:
    """The older ones are read again, those first that were not read for longest (fault BK-13)."""
    for day in (27, 28, 29):
        vault_with(tmp_path, f"text of day {day}")
        Nights(tmp_path, f"2026-11-{day}T04:00:00")
    spoil(tmp_path / "state/backups" / zips(tmp_path)[0])
    nights = Nights(tmp_path, "2026-11-30T04:00:00")
    assert nights.results("backup-check")[-1] == "failed"
    assert nights.facts()["last_backup_ok"] is False
    assert nights.alarms() == ["backup-damaged"]
    newest = nights.desk.newest_good()
    assert newest is not None and newest.name == zips(tmp_path)[-1]


def test_a_partial_night_and_a_shrunken_vault_raise_an_alarm(tmp_path: Path) -> None:
    """Neither is hidden behind a backup that was made."""
    vault_with(tmp_path)
    (tmp_path / "vault/b\\c.md").write_text("cannot be kept")
    nights = Nights(tmp_path, "2026-11-29T04:00:00")
    assert (nights.results(), nights.alarms(), nights.facts()["last_backup_ok"]) == (["partial"], ["backup"], False)
    nights.job.look()
    assert nights.results() == ["partial"]
    (tmp_path / "vault/b\\c.md").unlink()
    for number in range(9):
        (tmp_path / f"vault/{number}.md").write_text("x")
    assert Nights(tmp_path, "2026-11-30T04:00:00").alarms() == []
    for number in range(9):
        (tmp_path / f"vault/{number}.md").unlink()
    nights = Nights(tmp_path, "2026-12-01T04:00:00")
    assert "shrunk" in nights.alerts.open()[0]["text"]


def metrics(health: Health) -> str:
    from echo_mcp.metrics import prometheus
    from echo_mcp.registry import Registry

    return prometheus(Registry(), health)


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for something a background job does; fail when it does not happen."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def facts_of(server: Server) -> dict[str, Any]:
    return dict(server.client.get(f"{server.base}/health").json())


def test_a_new_server_backs_up_and_drills_by_itself(tmp_path: Path) -> None:
    """And says so in `/health`, `/metrics` and `echo_health`; a restart in the same night repeats nothing."""
    vault_with(tmp_path)
    with running_server(tmp_path) as server:
        until(lambda: facts_of(server)["last_drill_age_s"] >= 0)
        facts = facts_of(server)
        assert (facts["last_backup_ok"], facts["ok"]) == (True, True)
        text = server.client.get(f"{server.base}/metrics").text
        assert "echo_backup_ok 1" in text
        assert 'echo_job_end_timestamp_seconds{job="drill",result="ok"}' in text
        answer = server.call("echo_health")
        row = next(row for row in answer["checks"] if row["name"] == "backup")
        assert row["ok"] and "1 good backup kept" in row["detail"]
        assert [job["job"] for job in answer["details"]["jobs"]] == ["backup", "drill"]
        for path in ("/backups", "/data", f"/backups/{zips(tmp_path)[0]}", "/api/backups", f"/{zips(tmp_path)[0]}"):
            assert server.client.get(server.base + path).status_code == 404
    with running_server(tmp_path) as server:
        until(lambda: facts_of(server)["last_backup_ok"])
    assert len(make_desk(tmp_path).runs.recent("backup")) == 1


def test_a_server_that_is_stopped_in_a_backup_leaves_no_half_one(tmp_path: Path) -> None:
    """It ends in time; the next one starts over."""
    vault_with(tmp_path)
    for number in range(60):
        (tmp_path / f"vault/{number}.bin").write_bytes(os.urandom(500_000))
    with running_server(tmp_path, ready=False) as server:
        until(lambda: bool(list((tmp_path / "state").glob("backups/*.part"))))
        assert server.stop() == 0
    assert zips(tmp_path) == []
    assert not list((tmp_path / "state").glob("backups/*.part"))
    desk = make_desk(tmp_path)
    assert [run.result for run in desk.runs.recent("backup")] == ["stopped"]
    assert desk.back_up(WATCH).summary.files == 61


def test_a_failure_that_cannot_even_be_noted_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk takes no row: `/health` says that the night failed all the same."""
    note = vault_with(tmp_path)
    Nights(tmp_path, "2026-11-29T04:00:00")
    note.write_text("two")
    with monkeypatch.context() as patch:
        fill_disk(patch)
        patch.setattr(Runs, "begin", refuse)
        nights = Nights(tmp_path, "2026-11-30T04:00:00")
        assert nights.results() == ["ok"]
        assert nights.facts()["last_backup_ok"] is False
    nights.desk.back_up(WATCH)
    nights.job.look()
    assert nights.facts()["last_backup_ok"] is True


def refuse(*_: object) -> int:
    raise StorageFailed("The disk became full")
