"""What a run of the scenarios has shown: a count for each group, and the figures of spec 6.7 beside their targets."""
from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from faults.scenarios import Scenario, scenarios

ACKS = {
    "one server": {"test_rest_races.py::test_appends_by_many_clients_lose_no_line[full]": 1000,
                   "test_rest_races.py::test_patches_of_ten_headings_keep_the_last_text_of_each[full]": 200},
    "two servers": {"test_two_servers.py::test_two_servers_lose_none_of_two_thousand_lines": 2000,
                    "test_two_servers.py::test_two_servers_lose_nothing_of_a_mixed_day": 1000},
    "server and command line": {
        "test_rest_races.py::test_the_server_and_a_command_line_lose_no_line_of_each_other[full]": 2000},
}
"""Acknowledged concurrent writes of tests that assert each of them, behind the API that races."""


def report(items: Collection[str], rows: list[dict[str, Any]], mine: Collection[str]) -> tuple[str, bool]:
    """(text, whether anything failed). items: of all scenarios. rows: results. mine: the items of this shard."""
    outcome = {row["item"]: row["outcome"] for row in rows}
    verdicts = {one.id: verdict(one, items, outcome) for one in scenarios().values()}
    lines = ["", f"{'group':16} {'shown':>6} {'failed':>6} {'skipped':>7} {'not run':>7} {'not shown':>9}   of"]
    for group in dict.fromkeys(one.group for one in scenarios().values()):
        counts = Counter(verdicts[one.id] for one in scenarios().values() if one.group == group)
        lines.append(f"{group:16} {counts['passed']:6} {counts['failed']:6} {counts['skipped']:7} "
                     f"{counts['not run']:7} {counts['no test']:9}   {sum(counts.values())}")
    partly = [one.id for one in scenarios().values() if one.tests and one.missing]
    lines += ["", f"shown in part, see docs/reliability.md: {', '.join(partly)}"] if partly else []
    lines += ["", *figures(rows, outcome, verdicts)]
    wrong = sorted(item for item in outcome if outcome[item] == "failed" and item in items)
    lines += ["", *(f"FAILED {item}" for item in wrong)]
    lines += [f"SKIPPED {row['item']}: {row['why'][8:]}" for row in rows if row["outcome"] == "skipped"]
    return "\n".join(lines), bool(wrong) or not set(mine) <= set(outcome)


def verdict(one: Scenario, items: Collection[str], outcome: dict[str, str]) -> str:
    """passed, failed, skipped, "not run" or "no test": the worst of what its tests did."""
    own = [item for item in items if item.split("[")[0] in one.tests]
    found = {outcome.get(item, "not run") for item in own}
    return next((word for word in ("failed", "not run", "skipped", "passed") if word in found), "no test")


def figures(rows: list[dict[str, Any]], outcome: dict[str, str], verdicts: dict[str, str]) -> list[str]:
    """The table of spec 6.7. A number counts only when the test that measured it has passed."""
    sums: Counter[str] = Counter()
    worst: dict[str, float] = {}
    for row in rows:
        if row["outcome"] == "passed":
            for name, value in row["figures"].items():
                sums[name] += value
                worst[name] = max(worst.get(name, 0), value)
    acks = {door: sum(number for item, number in tests.items() if outcome.get(item) == "passed")
            for door, tests in ACKS.items()}
    acks["one server"] += sums["acks one server"]
    acks["two servers"] += sums["acks two servers"]

    def word(*ids: str) -> str:
        return "0" if all(verdicts[one] == "passed" for one in ids) else "not shown: " + ", ".join(
            f"{one} {verdicts[one]}" for one in ids if verdicts[one] != "passed")

    table = [
        ("lost or doubled, random kill -9", "0 of 50,000 acks, 1,000 kills",
         f"0 of {sums['acks under kill -9']:,} acks, {sums['kills']:,} kills"),
        ("lost or doubled, killed at a step", "0 at every enumerated one",
         f"0 at {sums['system calls']:,} system calls"),
        *((f"concurrent writes lost, {door}", f"0 of {target:,}", f"0 of {acks[door]:,}")
          for door, target in (("one server", 10_000), ("two servers", 2_000), ("server and command line", 2_000))),
        ("open routes beside /health", "0", word("HT-05", "HT-01", "HT-06")),
        ("canary hits", "0", word("PV-01", "PV-02", "HT-25")),
        ("path escapes", "0", word("CR-16", "CR-12", "CR-13")),
        ("malformed requests answered 5xx", "0 of 12,000", f"0 of {sums['malformed requests']:,}"),
        ("nights verified, restored identical", "all", word("BK-02", "BK-03", "BK-04").replace("0", "all", 1)),
        ("memory growth, MiB a 100,000 calls", "20", _shown(worst, "MiB a 100,000 calls")),
        ("/health p99, 60 calls hung, ms", "300", _shown(worst, "health p99 ms")),
        ("SIGTERM, slowest end, s", "10", _shown(worst, "SIGTERM s")),
        ("seeded bugs caught", "12", f"{sums['mutants caught']}"),
    ]
    width = [max(len(row[column]) for row in table) for column in range(3)]
    head = ("figure", "target", "this run")
    return ["  ".join(cell.ljust(width[column]) for column, cell in enumerate(row)).rstrip() for row in (head, *table)]


def _shown(worst: dict[str, float], name: str) -> str:
    return f"{worst[name]:.1f}" if name in worst else "not run"
