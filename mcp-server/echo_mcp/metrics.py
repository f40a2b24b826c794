"""Counters as Prometheus text."""
from __future__ import annotations

from datetime import datetime

from echo_mcp.health import Health
from echo_mcp.registry import Registry
from echo_mcp.runs import Run


def prometheus(registry: Registry, health: Health) -> str:
    """Calls by outcome, time and size by tool, and the gauges of calls, vault and index."""
    stats = registry.stats
    lines = ["# HELP echo_calls_total Calls by tool and outcome.", "# TYPE echo_calls_total counter"]
    for tool, total in stats.items():
        for outcome, count in sorted(total.outcomes.items()):
            lines.append(f'echo_calls_total{{tool="{tool}",outcome="{outcome}"}} {count}')
    lines += ["# HELP echo_call_seconds Time of calls by tool.", "# TYPE echo_call_seconds summary"]
    for tool, total in stats.items():
        lines.append(f'echo_call_seconds_sum{{tool="{tool}"}} {total.ms / 1000:.6f}')
        lines.append(f'echo_call_seconds_count{{tool="{tool}"}} {total.outcomes.total()}')
    lines += ["# HELP echo_answer_bytes_total Bytes answered by tool.", "# TYPE echo_answer_bytes_total counter"]
    lines += [f'echo_answer_bytes_total{{tool="{tool}"}} {total.sent}' for tool, total in stats.items()]
    lines += _gauge("echo_calls_open", "Calls that wait or run now.", registry.open_calls())
    lines += _gauge("echo_vault_up", "Whether the vault answered the last probe.", int(health.vault_reachable))
    lines += _gauge("echo_index_ready", "Whether all notes have been read once.", int(health.index_ready))
    lines += _gauge("echo_index_age_seconds", "Time since the notes were compared with the vault.", health.index_age_s)
    outbox = health.outbox
    lines += _gauge("echo_outbox_depth", "Writes that wait for the vault.", outbox["outbox_depth"])
    lines += _gauge("echo_outbox_oldest_seconds", "Age of the oldest of them.", outbox["outbox_oldest_s"])
    lines += _gauge("echo_outbox_parked", "Writes that need the operator's decision.", outbox["parked"])
    backups = health.backups
    lines += _gauge("echo_backup_age_seconds", "Time since the vault was last known to be backed up, -1 before.",
                    backups.backup_age.seconds)
    lines += _gauge("echo_backup_ok", "Whether the last backup is whole, fresh and can be restored.", int(backups.ok))
    lines += _gauge("echo_backup_kept", "Good backups that are kept.", backups.kept)
    lines += _gauge("echo_backup_damaged", "Kept backups that are known to be damaged.", backups.damaged)
    lines += _gauge("echo_backup_drill_age_seconds", "Time since a backup was last restored for trial, -1 before.",
                    backups.drill_age.seconds)
    return "\n".join([*lines, *_jobs(health.runs)]) + "\n"


def _jobs(latest: list[Run]) -> list[str]:
    """When the last run of each job ended, how long it took and how it ended."""
    ended, took = [], []
    for run in latest:
        if run.ended:
            end = datetime.fromisoformat(run.ended)
            labels = f'{{job="{run.job}",result="{run.result}"}}'
            ended.append(f"echo_job_end_timestamp_seconds{labels} {end.timestamp():.0f}")
            seconds = (end - datetime.fromisoformat(run.started)).total_seconds()
            took.append(f"echo_job_seconds{labels} {seconds:.0f}")
    return [
        "# HELP echo_job_end_timestamp_seconds When the last run of a job ended, by its result.",
        "# TYPE echo_job_end_timestamp_seconds gauge", *ended,
        "# HELP echo_job_seconds How long that run took.", "# TYPE echo_job_seconds gauge", *took,
    ]


def _gauge(name: str, text: str, value: int) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} gauge", f"{name} {value}"]
