"""Waiting for what a background job does."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def until(wanted: Callable[[], Any], patience_s: float = 60.0, why: str = "it did not happen in time") -> Any:
    """What `wanted()` returns, once it is true; fails after `patience_s` seconds."""
    end = time.monotonic() + patience_s
    while not (found := wanted()):
        assert time.monotonic() < end, why
        time.sleep(0.05)
    return found
