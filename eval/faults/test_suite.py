"""The catalogue cannot rot: every scenario has its tests or an honest word, every seeded bug fits the code."""
from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from faults.ledger import Ledger
from faults.mutants import ROOT, applied, mutants
from faults.report import report, verdict
from faults.run import shard
from faults.scenarios import EVAL, scenarios


def test_every_scenario_has_tests_that_exist_or_says_what_is_missing() -> None:
    """And what is missing is told to the reader, not only here."""
    page = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")
    functions: dict[str, set[str]] = {}
    for one in scenarios().values():
        assert one.tests or one.missing, one.id
        assert one.severity in ("S1", "S2", "S3") and one.words, one.id
        assert not one.missing or one.id in page, f"{one.id} is not in docs/reliability.md"
        for test in one.tests:
            file, name = test.split("::")
            if file not in functions:
                tree = ast.parse((EVAL / file).read_text(encoding="utf-8"))
                functions[file] = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
            assert name in functions[file], f"{one.id}: {test}"


def test_the_groups_are_complete() -> None:
    """As many scenarios as the catalogue of faults names."""
    assert Counter(one.group for one in scenarios().values()) == {
        "backup-restore": 12, "concurrency": 14, "container": 9, "corruption": 16, "history-undo": 8, "http": 26,
        "mcp-memory": 8, "outbox": 18, "privacy": 7, "resources": 8, "vault-down": 15,
    }


def test_every_seeded_bug_still_fits_the_code() -> None:
    """Twelve patches, each with tests that exist."""
    assert len(mutants()) == 12
    for mutant in mutants():
        applied(mutant, ROOT, check=True)
        assert mutant.tests
        for test in mutant.tests:
            file, _, name = test.partition("::")
            assert f"def {name.split('[')[0]}(" in (EVAL / file).read_text(encoding="utf-8"), test


def test_the_ledger_notices_each_broken_invariant(tmp_path: Path) -> None:
    """A lost, a doubled, a misplaced and a refused but present marker; and silence about a good vault."""
    ledger = Ledger()
    writes = [ledger.begin(0, "a.md") for _ in range(4)]
    for write in writes[:3]:
        ledger.told(write, {"ok": True})
    ledger.told(writes[3], {"ok": False, "code": "not-found"})
    note, lines = tmp_path / "a.md", [f"- {write.marker}\n" for write in writes]
    note.write_text("".join(lines[:3]))
    assert ledger.problems(tmp_path) == []
    for text, invariant in ((lines[:2], "INV1"), ([*lines[:3], lines[2]], "INV2"), ([lines[1], lines[0], lines[2]],
                            "INV5"), (lines, "INV6")):
        note.write_text("".join(text))
        assert [problem[:4] for problem in ledger.problems(tmp_path)] == [invariant]


def test_shards_share_out_every_test_once() -> None:
    """Whatever their number."""
    items = [f"test_kills.py::test[{number}]" for number in range(20)] + [f"a.py::test_{n}" for n in range(300)]
    for of in (1, 6, 7):
        assert sorted(item for number in range(of) for item in shard(items, number + 1, of)) == sorted(items)


def test_a_scenario_counts_by_its_worst_test_and_a_failure_is_told() -> None:
    """What was not run is not shown, and a figure of a failed test does not count."""
    one = next(iter(scenarios().values()))
    items = [f"{test}[x]" for test in one.tests]
    assert verdict(one, items, {}) == "not run"
    assert verdict(one, items, dict.fromkeys(items, "passed")) == "passed"
    assert verdict(one, items, {**dict.fromkeys(items, "passed"), items[0]: "failed"}) == "failed"
    rows = [{"item": items[0], "outcome": "failed", "why": "failed in call", "figures": {"kills": 7}}]
    text, failed = report(items, rows, items[:1])
    assert failed and f"FAILED {items[0]}" in text and "0 of 0 acks, 0 kills" in text
