"""Known bugs, seeded one at a time: `mutants/*.patch` are applied to a copy of the sources, and its tests must fail.

The head of each patch names the smallest tests that have to notice it: `caught by: test_x.py::test_y`.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from faults.scenarios import EVAL

ROOT = EVAL.parent
PATCHES = Path(__file__).parent / "mutants"
SOURCES = ("eval", "mcp-server", "skills", "docs", "Makefile", "README.md", "CHANGELOG.md")


class Mutant(NamedTuple):
    """One seeded bug. tests: node ids below `eval/` that must fail with it."""

    name: str
    patch: Path
    tests: tuple[str, ...]


def mutants() -> list[Mutant]:
    """All of them, by name."""
    found = []
    for patch in sorted(PATCHES.glob("*.patch")):
        head = patch.read_text(encoding="utf-8").split("\ndiff --git", 1)[0].splitlines()
        tests = tuple(line.removeprefix("caught by: ") for line in head if line.startswith("caught by: "))
        found.append(Mutant(patch.stem, patch, tests))
    return found


def copy_to(folder: Path) -> None:
    """The sources as they are, without what Python has compiled."""
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    shutil.copy(ROOT / "pyproject.toml", folder / "pyproject.toml")


def applied(mutant: Mutant, folder: Path, check: bool = False) -> None:
    """Apply the patch to the sources in `folder`. check: only see whether it could be. Raises CalledProcessError."""
    words = ["git", "apply", "--whitespace=nowarn", *(["--check"] if check else []), str(mutant.patch)]
    env = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    subprocess.run(words, cwd=folder, env=env, check=True, capture_output=True)


def run_tests(mutant: Mutant, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the mutant's tests on the sources in `folder`."""
    paths = [folder / name for name in ("skills/echo-memory/scripts", "mcp-server", "eval")]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    env = {**kept, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly",
         *[f"eval/{test}" for test in mutant.tests]],
        cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300)
