"""The scenarios by id, read from `catalogue/GROUP.toml`.

    [BK-01]
    severity = "S1"
    words = "a backup is killed at any of its steps"
    tests = ["test_backup_crashes.py::test_a_backup_killed_…"]     node ids below `eval/`
    missing = "what no test shows yet; told in docs/reliability.md too"
"""
from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

EVAL = Path(__file__).parent.parent
CATALOGUE = Path(__file__).parent / "catalogue"


class Scenario(NamedTuple):
    """One kind of fault. tests: node ids relative to `eval/`. missing: what they do not show, "" when all is shown."""

    id: str
    group: str
    severity: str
    words: str
    tests: tuple[str, ...]
    missing: str


def scenarios() -> dict[str, Scenario]:
    """Every scenario by id, in the order of the groups' files."""
    found: dict[str, Scenario] = {}
    for file in sorted(CATALOGUE.glob("*.toml")):
        for name, row in tomllib.loads(file.read_text(encoding="utf-8")).items():
            assert name not in found and set(row) <= {"severity", "words", "tests", "missing"}, name
            found[name] = Scenario(name, file.stem, row["severity"], row["words"], tuple(row.get("tests", ())),
                                   row.get("missing", ""))
    return found
