"""`make faults SHARD=2/6`: runs every scenario, or a part of them, goes on where it was stopped, and prints the table.

    python -m faults.run [--shard K/N] [--again] [--report]

Results stand in `build/faults/results.jsonl`, each with the state of the sources it holds for: what passed in this
state is not run again unless `--again` asks for it. --report: only print what is known. Exit 1 when anything failed.
"""
from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from itertools import groupby
from typing import Any

from faults.report import report
from faults.scenarios import EVAL, scenarios

ROOT = EVAL.parent
RESULTS = ROOT / "build/faults/results.jsonl"
SOURCES = ("eval", "mcp-server", "skills", "pyproject.toml")
EXTRA = ("test_memory_day.py::test_every_door_and_backend_writes_the_same_bytes", "faults/test_suite.py")
"""Tests that take long and prove no scenario of their own."""
SECONDS = {
    "test_kills.py": 85, "test_syscalls.py": 60, "test_mutants.py": 60, "any_system_call": 12, "test_load.py": 60,
    "[120]": 130, "[full]": 40, "two_thousand": 60, "mixed_day": 60, "mutated_requests": 60, "test_disks.py": 8,
    "test_vault_down.py": 8, "test_outbox.py": 10,
}
"""About how long an item takes whose id contains the words; others take one second."""


def main() -> int:
    """Run what is asked for; the exit code."""
    parser = argparse.ArgumentParser(prog="faults.run", description=__doc__.splitlines()[0])
    parser.add_argument("--shard", default="1/1", help="which part of how many, as 2/6")
    parser.add_argument("--again", action="store_true", help="run also what has passed in this state of the sources")
    parser.add_argument("--report", action="store_true", help="run nothing")
    asked = parser.parse_args()
    number, of = map(int, asked.shard.split("/"))
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    state = state_of_sources()
    if asked.again:
        RESULTS.unlink(missing_ok=True)
    items = collected()
    if not asked.report:
        done = {row["item"] for row in results(state) if row["outcome"] != "failed"}
        mine = [item for item in shard(items, number, of) if item not in done]
        print(f"shard {number}/{of}: {len(mine)} tests to run, {len(items)} in all", flush=True)
        for file, group in groupby(sorted(mine), lambda item: item.split("::")[0]):
            run(file, list(group), state)
    text, failed = report(items, results(state), shard(items, number, of))
    print(text)
    return 1 if failed else 0


def state_of_sources() -> str:
    """A hash of every file a result depends on."""
    found = hashlib.sha256()
    for name in SOURCES:
        top = ROOT / name
        for path in sorted([top] if top.is_file() else top.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                found.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return found.hexdigest()[:16]


def collected() -> list[str]:
    """Every test item of the scenarios, relative to `eval/`."""
    named = dict.fromkeys([test for one in scenarios().values() for test in one.tests])
    done = subprocess.run(_pytest("--collect-only", *[f"eval/{test}" for test in (*named, *EXTRA)]), cwd=ROOT,
                          capture_output=True, text=True, check=False)
    items = [line.removeprefix("eval/") for line in done.stdout.splitlines() if "::" in line]
    if done.returncode or not items:
        raise SystemExit(done.stdout[-3000:] + done.stderr[-3000:])
    return list(dict.fromkeys(items))


def seconds(item: str) -> float:
    """About how long the item takes."""
    return max([value for words, value in SECONDS.items() if words in item], default=1)


def shard(items: list[str], number: int, of: int) -> list[str]:
    """The part `number` (from 1) of `of`: the longest first, each to the part that has least to do."""
    parts: list[list[str]] = [[] for _ in range(of)]
    loads = [0.0] * of
    for item in sorted(items, key=lambda item: (-seconds(item), item)):
        least = loads.index(min(loads))
        parts[least].append(item)
        loads[least] += seconds(item)
    return parts[number - 1]


def results(state: str) -> list[dict[str, Any]]:
    """The last line of each item that holds for this state of the sources."""
    if not RESULTS.exists():
        return []
    rows = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    return list({row["item"]: row for row in rows if row["state"] == state}.values())


def run(file: str, items: list[str], state: str) -> None:
    """Run items of one file; what they did goes into the results."""
    print(f"{file}: {len(items)}", flush=True)
    env = {**os.environ, "FAULTS_RESULTS": str(RESULTS), "FAULTS_STATE": state}
    subprocess.run(_pytest("-rfE", "-p", "faults.recorder", *[f"eval/{item}" for item in items]), cwd=ROOT, env=env,
                   check=False)


def _pytest(*words: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "--no-header", *words]


if __name__ == "__main__":
    sys.exit(main())
