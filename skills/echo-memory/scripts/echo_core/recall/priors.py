"""What of a note but its words moves its score (spec 5.2)."""
from __future__ import annotations

import datetime
from functools import lru_cache

STALE_FACTOR = 0.5
"""Archived and superseded notes count half, still findable."""

RECENT_DAYS = 30
OLD_DAYS = 730
AGE_PRIOR = 0.05
STATUS_PRIOR = 0.05


def prior(status: str, updated: str, superseded_by: str, today: str) -> float:
    """The factor on a note's score: at most 10 % either way for age and status, half for what is out of date."""
    if superseded_by or status in ("archived", "superseded"):
        return STALE_FACTOR
    factor = 1 + AGE_PRIOR * _freshness(updated[:10], today[:10])
    if status == "active":
        factor += STATUS_PRIOR
    elif status in ("on-hold", "incubating"):
        factor -= STATUS_PRIOR
    return factor


@lru_cache(maxsize=1 << 12)
def _freshness(updated: str, today: str) -> float:
    """1 for the last 30 days, falling to -1 at two years; 0 when either day is unknown."""
    try:
        age = (datetime.date.fromisoformat(today) - datetime.date.fromisoformat(updated)).days
    except ValueError:
        return 0.0
    span = OLD_DAYS - RECENT_DAYS
    return 1 - 2 * min(max(age - RECENT_DAYS, 0), span) / span
