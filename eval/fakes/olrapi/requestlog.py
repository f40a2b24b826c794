"""What arrived at the double, for tests to count."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class Entry:
    """One request; `status` is 0 until and unless an answer was sent, `fault` the kind of the fault that met it.

    dropped: how many different lines of the file a write took away; where everybody only appends, each is a lost one.
    """

    method: str
    path: str
    has_authorization: bool
    status: int = 0
    fault: str = ""
    dropped: int = 0


class RequestLog:
    """The requests in the order of their arrival. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[Entry] = []

    def add(self, entry: Entry) -> Entry:
        """Note a request; the caller fills in its status later."""
        with self._lock:
            self._entries.append(entry)
        return entry

    @property
    def entries(self) -> list[Entry]:
        """A copy of the log."""
        with self._lock:
            return list(self._entries)

    def count(self, method: str = "", path: str = "") -> int:
        """How many requests there were; method "" and path "" match every one, path matches as a part."""
        return sum(1 for entry in self.entries if method in ("", entry.method) and path in entry.path)

    def clear(self) -> None:
        """Begin anew."""
        with self._lock:
            self._entries.clear()

    def as_json(self) -> list[dict[str, Any]]:
        """The entries as objects."""
        return [asdict(entry) for entry in self.entries]
