"""What `echo_health` says about backups and the other background jobs (spec 6.6)."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from echo_core.text import plural

from echo_mcp.backup.desk import BACKUP
from echo_mcp.backup.standing import Standing
from echo_mcp.runs import Run


def jobs(latest: Iterable[Run]) -> list[dict[str, Any]]:
    """The last run of each job: `{"job", "started", "ended", "result"}` and what it noted."""
    return [{"job": run.job, "started": run.started, "ended": run.ended, "result": run.result or "running",
             **run.detail} for run in latest]


def verdict(standing: Standing, latest: Iterable[Run]) -> tuple[bool, str]:
    """(whether all is well, one line). A server that has only just begun to make its first backup is well."""
    last = next((run for run in latest if run.job == BACKUP), None)
    if standing.backup_age.seconds < 0 and not standing.last_result:
        return True, "none yet; the first one follows soon"
    parts = [f"{plural(standing.kept, 'good backup')} kept"]
    if standing.backup_age.seconds >= 0:
        parts.append(f"the vault was last saved {_ago(standing.backup_age.seconds)}")
    if standing.drill_age.seconds >= 0:
        parts.append(f"restored for trial {_ago(standing.drill_age.seconds)}")
    if standing.damaged:
        parts.append(f"{plural(standing.damaged, 'kept one')} damaged, see `echo-mcp backup list`")
    if last is not None and last.result == "failed":
        parts.append(f"the last run failed: {last.detail.get('error', 'unknown')}")
    if last is not None and last.result == "partial":
        named = ", ".join(last.detail.get("named", []))
        parts.append(f"the last one misses {plural(last.detail.get('unreadable', 0), 'file')}: {named}")
    return standing.ok, "; ".join(parts)


def _ago(seconds: int) -> str:
    if seconds < 7200:
        return f"{plural(seconds // 60, 'minute')} ago"
    return f"{plural(seconds // 3600, 'hour')} ago"
