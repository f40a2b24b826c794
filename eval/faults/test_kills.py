"""A server is killed with -9 at random moments while clients write in every way there is (spec 6.7, INV1 to INV6)."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from faults.kills import random_kills

KINDS = {"_append", "_inbox", "_person", "_merge", "_move", "_triage", "_reflect", "_session", "_replace", "_restore",
         "_scope"}


@pytest.mark.timeout(560)
@pytest.mark.slow
@pytest.mark.parametrize(("kills", "seed"), [(50, seed) for seed in range(2, 22)])
def test_killed_at_random_no_acknowledged_write_is_lost_or_doubled(
    tmp_path: Path, record_property: Callable[[str, object], None], kills: int, seed: int
) -> None:
    """CC-17, OB-03, RS-09: four clients, eleven kinds of writes; afterwards lint finds nothing a crash could cause."""
    found = random_kills(tmp_path, kills, seed)
    record_property("kills", found.kills)
    record_property("acks under kill -9", found.acked)
    print(f"kills {found.kills}, acknowledged {found.acked}, unanswered {found.unanswered}, parked {found.parked}")
    assert found.problems == []
    assert found.kills >= kills * 0.8, "a kill that meets no call shows nothing"
    assert found.acked > 0
    assert set(found.kinds) == KINDS
