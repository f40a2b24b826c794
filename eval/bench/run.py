"""`make bench`: what calls cost, as ratios to a bare JSON route measured in the same rounds.

    PYTHONPATH=eval python eval/bench/run.py [--notes 1000 10000] [--rounds 150] [--out build]

Prints a table, writes bench.json and bench.svg. Tokens are characters divided by four throughout.
"""
from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from pathlib import Path
from typing import Any

import chart
import measure
from vault import make_vault

ROOT = Path(__file__).parent.parent.parent


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--notes", type=int, nargs="+", default=[1000, 10000])
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--out", type=Path, default=ROOT / "build")
    asked = parser.parse_args()
    report: dict[str, Any] = {
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()},
        "tokens_are": f"characters / {measure.CHARS_PER_TOKEN}",
        "vaults": {count: measured(count, asked.rounds) for count in asked.notes},
    }
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "bench.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    (asked.out / "bench.svg").write_text(picture(report), encoding="utf-8")
    print(table(report))
    return 0


def measured(count: int, rounds: int) -> dict[str, Any]:
    """Everything about a vault of `count` notes."""
    with tempfile.TemporaryDirectory(prefix="echo-bench-") as name:
        folder = Path(name)
        vault, state, cli_state = (folder / part for part in ("vault", "state", "cli-state"))
        vault.mkdir()
        measure.command_line(vault, cli_state, ["bootstrap"])
        notes = make_vault(vault, count)
        found: dict[str, Any] = {}
        with measure.started("echo", vault, state) as (server, found["first_start"]):
            measure.backed_up(server)
        with measure.started("bare", vault, state) as (bare, _), \
                measure.started("echo", vault, state) as (server, found["second_start"]):
            found["latency"] = measure.latencies(server, bare, notes, rounds)
            found["rss_after_mb"] = measure.resident_mb(server)
            found["schema_tokens"] = {"full": measure.schema_tokens(server)}
            found["tokens_by_tool"] = measure.tokens_by_tool(server, notes)
        with measure.started("echo", vault, state, ECHO_MCP_TOOLS="core") as (server, _):
            found["schema_tokens"]["core"] = measure.schema_tokens(server)
        first = measure.command_line(vault, cli_state, ["resolve", notes[0].title])[1]
        again = measure.command_line(vault, cli_state, ["resolve", notes[1].title])[1]
        found["command_line_cpu_s"] = {"first": first, "resolve": again}
        found["tokens_by_shell"] = measure.tokens_by_shell(vault, cli_state, notes)
        found["skill_tokens"] = measure.tokens(measure.SKILL.read_text(encoding="utf-8"))
        return found


def table(report: dict[str, Any]) -> str:
    """The report for people."""
    lines = [f"{report['machine']['system']}, {report['machine']['cpus']} CPUs; tokens are {report['tokens_are']}"]
    for count, found in report["vaults"].items():
        lines += ["", f"{count} notes", f"  {'call':<16}{'door':<6}{'p50 ms':>9}{'p95 ms':>9}{'p50 ×':>8}{'p95 ×':>8}"]
        lines += [
            f"  {row['call']:<16}{row['door']:<6}{row['p50_ms']:>9}{row['p95_ms']:>9}{row['p50_ratio']:>8}"
            f"{row['p95_ratio']:>8}" for row in found["latency"]
        ]
        for start in ("first_start", "second_start"):
            told = found[start]
            lines.append(f"  {start.replace('_', ' ')}: serving after {told['serving_s']} s, all findable after "
                         f"{told['all_findable_s']} s, {told['rss_mb']} MB")
        lines.append(f"  memory after the calls: {found['rss_after_mb']} MB")
        cpu = found["command_line_cpu_s"]
        lines.append(f"  command line, processor seconds: first call {cpu['first']}, resolve {cpu['resolve']}")
        lines += tokens_table(found)
    return "\n".join(lines)


def tokens_table(found: dict[str, Any]) -> list[str]:
    """What load, capture and recall cost a model, by either door."""
    schema, tool, shell = found["schema_tokens"], found["tokens_by_tool"], found["tokens_by_shell"]
    by_tool = sum(part["written"] + part["read_structure"] for part in tool.values())
    by_shell = sum(part["written"] + part["read_text"] for part in shell.values())
    lines = [f"  tools/list: core {schema['core']} tokens, full {schema['full']}; SKILL.md {found['skill_tokens']}",
             f"  load + capture + recall: by tool {by_tool} tokens, by shell {by_shell}"]
    lines += [
        f"    {name:<14} tool: {part['written']} written, {part['read_structure']} read (as text {part['read_text']}); "
        f"shell: {shell[name]['written']} written, {shell[name]['read_text']} read, {shell[name]['cpu_s']} s CPU"
        for name, part in tool.items()
    ]
    return lines


def picture(report: dict[str, Any]) -> str:
    """p50 of every call as a multiple of the bare route."""
    series = {
        f"{count} notes": {f"{row['call']} ({row['door']})": row["p50_ratio"] for row in found["latency"]}
        for count, found in report["vaults"].items()
    }
    return chart.bars("p50 as a multiple of a bare JSON route", series)


if __name__ == "__main__":
    raise SystemExit(main())
