"""The server sweeps the vault each hour and looks for what was left alone each week (spec 6.6)."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from echo_core.clock import Clock
from echo_mcp.runs import Runs
from opsfixture import put
from serverproc import Server, running_server
from test_rest_server import until

BROKEN = "---\ntitle: [never closed\n---\n\n# Broken\n"


def ran(folder: Path, job: str, instant: str, result: str = "ok") -> None:
    """A run of a job that began at `instant`, as the table has it."""
    runs = Runs(str(folder / "state"), Clock("UTC", instant))
    runs.end(runs.begin(job), result, {})


def jobs(server: Server) -> dict[str, dict[str, Any]]:
    """The last run of each job, as `echo_health` tells it."""
    return {row["job"]: row for row in server.call("echo_health")["details"]["jobs"]}


def health_notes(server: Server) -> list[Path]:
    return sorted(server.vault.glob("_agent/health/*.md"))


@pytest.mark.timeout(120)
def test_what_is_due_is_done_once_and_shown(tmp_path: Path) -> None:
    """The findings stand in the month's health note; a restart does not do it again; a future run is a wrong clock."""
    put(tmp_path, "broken.md", BROKEN)
    ran(tmp_path, "sweep", "2026-01-01T00:00:00Z")
    ran(tmp_path, "decay", "2099-01-01T00:00:00Z")
    with running_server(tmp_path) as server:
        until(lambda: (lambda row: row["started"] < "2099" and row["result"] == "ok")(jobs(server)["decay"]), 100)
        done = jobs(server)
        assert (done["sweep"]["result"], done["sweep"]["findings"] >= 1) == ("ok", True)
        assert done["decay"]["proposals"] == 0
        (note,) = health_notes(server)
        assert "broken.md" in note.read_text(encoding="utf-8")
        assert 'echo_job_seconds{job="sweep",result="ok"}' in server.client.get(f"{server.base}/metrics").text
    written = note.stat().st_mtime_ns
    with running_server(tmp_path) as server:
        assert server.call("echo_capture", title="buy milk")["ok"]
        assert jobs(server)["sweep"]["started"] == done["sweep"]["started"]
    assert note.stat().st_mtime_ns == written


def test_a_vault_that_is_only_tried_out_is_left_alone(tmp_path: Path) -> None:
    """No run before the first hour has passed."""
    put(tmp_path, "broken.md", BROKEN)
    with running_server(tmp_path) as server:
        assert not {"sweep", "decay"} & set(jobs(server))
        assert health_notes(server) == []
