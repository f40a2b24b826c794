"""A long queue: it arrives whole, each write once, and memory does not grow with it (spec 6.2; OB-13)."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from waitingload import measured

ROOM_MB = 64
"""How much more memory a server may take for its queue."""


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("kind", "items", "notes"), [
    ("folder", 40_000, 400), ("rest", 20_000, 200), ("folder", 20_000, 1),
])
def test_a_long_queue_arrives_whole_in_flat_memory(tmp_path: Path, kind: str, items: int, notes: int) -> None:
    """The figures are printed; `python eval/waitingload.py` measures other sizes."""
    found = measured(tmp_path, kind, items, notes, 200)
    print(json.dumps(found))
    assert (found["missing"], found["doubled"], found["parked"]) == (0, 0, 0)
    usual = max(found["rss_empty_mb"], found["rss_after_mb"])
    assert found["rss_waiting_mb"] - usual < ROOM_MB
    assert found["rss_peak_mb"] - usual < ROOM_MB
