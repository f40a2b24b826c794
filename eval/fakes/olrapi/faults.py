"""Faults that tests switch on: which requests they meet, how often, and what they do."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass, fields
from typing import Any

BEFORE_READING = frozenset({"reset_request"})
BEFORE_EFFECT = frozenset({
    "hang", "slow", "error_before", "redirect", "wrong_key", "endless", "gzip_bomb", "garbage",
})
DURING = frozenset({"cold", "ignore_case", "phantom"})
AFTER_EFFECT = frozenset({"hang_after", "error_after", "half", "reset_response"})
KINDS = BEFORE_READING | BEFORE_EFFECT | DURING | AFTER_EFFECT | {"refuse"}


@dataclass
class Fault:
    """One fault.

    kind: see docs of the package. method, path: the requests it meets ("" every one; path is a part of the request's
    path, percent-encoded as it was sent). times: how often (0: until cleared). skip: matching requests let through
    first. after: bytes passed on before a reset or a half answer (-1: half of it). status: of the 5xx or redirect.
    seconds: how long `slow` waits. location: where a redirect leads. size: bytes of an endless body's pause-free part
    or of an unpacked bomb.
    """

    kind: str
    method: str = ""
    path: str = ""
    times: int = 0
    skip: int = 0
    after: int = -1
    status: int = 0
    seconds: float = 0.2
    location: str = "http://other-host.invalid/"
    size: int = 1 << 30
    fired: int = 0

    def meets(self, method: str, path: str) -> bool:
        """Whether the fault is due for this request, which is counted."""
        if self.method not in ("", method) or self.path not in path or (self.times and self.fired >= self.times):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        self.fired += 1
        return True


class Faults:
    """The faults that are switched on. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active: list[Fault] = []
        self._fired: dict[str, int] = {}

    def add(self, kind: str, **settings: Any) -> Fault:
        """Switch a fault on; its `fired` tells whether it met a request. Raises ValueError for an unknown setting."""
        known = {field.name for field in fields(Fault)} - {"kind", "fired"}
        if kind not in KINDS or not set(settings) <= known:
            raise ValueError(f"no fault {kind!r} with {sorted(settings)}")
        fault = Fault(kind, **settings)
        with self._lock:
            self._active.append(fault)
        return fault

    def remove(self, fault: Fault) -> None:
        """Switch one fault off."""
        with self._lock:
            self._active = [active for active in self._active if active is not fault]

    def clear(self) -> None:
        """Switch every fault off; requests that hang are dropped."""
        with self._lock:
            self._active = []

    def due(self, method: str, path: str, kinds: frozenset[str]) -> Fault | None:
        """The first fault of these kinds that meets the request."""
        with self._lock:
            for fault in self._active:
                if fault.kind in kinds and fault.meets(method, path):
                    self._fired[fault.kind] = self._fired.get(fault.kind, 0) + 1
                    return fault
        return None

    def active(self, kind: str = "") -> list[Fault]:
        """The faults that are on, of one kind or all."""
        with self._lock:
            return [fault for fault in self._active if kind in ("", fault.kind)]

    def is_on(self, fault: Fault) -> bool:
        """Whether the fault has not been cleared since."""
        with self._lock:
            return any(active is fault for active in self._active)

    def fired(self, kind: str) -> int:
        """How many requests faults of a kind have met since the start."""
        with self._lock:
            return self._fired.get(kind, 0)

    def as_json(self) -> list[dict[str, Any]]:
        """The active faults as objects."""
        return [asdict(fault) for fault in self.active()]
