"""Each seeded bug turns the tests red that are named in its patch, and they are green without it."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from faults.mutants import Mutant, applied, copy_to, mutants, run_tests


@pytest.mark.slow
@pytest.mark.timeout(540)
@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.name)
def test_a_seeded_bug_is_caught(
    mutant: Mutant, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Green before, red after, by a failed test and not by one that could not be collected."""
    copy_to(tmp_path)
    clean = run_tests(mutant, tmp_path)
    assert clean.returncode == 0, clean.stdout[-2000:]
    applied(mutant, tmp_path)
    broken = run_tests(mutant, tmp_path)
    assert broken.returncode == 1, broken.stdout[-2000:]
    assert "FAILED eval/" in broken.stdout, broken.stdout[-2000:]
    record_property("mutants caught", 1)
