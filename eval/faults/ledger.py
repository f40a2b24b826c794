"""What clients asked for and were told, and whether the vault agrees (INV1, INV2, INV5 and INV6 of spec 6.7).

Each write carries a marker of its own, a text that stands nowhere else. INV1: no acknowledged marker is missing. INV2:
none stands twice. INV5: those of one client in one note stand in the order they were written in. INV6: a write that
was refused has no effect. What was never answered may stand once or not at all.
"""
from __future__ import annotations

import itertools
import re
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MARK = re.compile(r"mk\d+x\d+z")
NEWEST_FIRST = "_agent/context/current-context.md"


@dataclass
class Write:
    """One write. path: the note that shall hold its marker, "old|new" for one that may have moved.

    told: "acked", "refused" or "" for no answer."""

    client: int
    number: int
    path: str
    told: str = ""

    @property
    def marker(self) -> str:
        """The text that stands for this write and for nothing else."""
        return f"mk{self.client}x{self.number}z"


@dataclass
class Ledger:
    """All writes of a run, in the order they were begun in. Thread-safe; a client is one thread at a time."""

    writes: list[Write] = field(default_factory=list)
    _numbers: Any = field(default_factory=lambda: itertools.count(1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, client: int, path: str) -> Write:
        """Note a write that is about to be sent."""
        with self._lock:
            write = Write(client, next(self._numbers), path)
            self.writes.append(write)
        return write

    def told(self, write: Write, envelope: dict[str, Any]) -> bool:
        """Note the answer; whether it was an acknowledgement."""
        if envelope["ok"]:
            write.told = "acked"
        elif envelope.get("outcome") != "unknown":
            write.told = "refused"
        return write.told == "acked"

    @property
    def acked(self) -> int:
        """How many writes were acknowledged."""
        return sum(write.told == "acked" for write in self.writes)

    def problems(self, vault: Path) -> list[str]:
        """What contradicts INV1, INV2, INV5 or INV6, one line each. vault: the folder of the notes."""
        found: list[str] = []
        for path, writes in self._by_path().items():
            order = MARK.findall(_text(vault, path))
            counts = Counter(order)
            for write in writes:
                count = counts[write.marker]
                if write.told == "acked" and count == 0:
                    found.append(f"INV1 lost {write.marker} in {path}")
                if count > 1:
                    found.append(f"INV2 {count} times {write.marker} in {path}")
                if write.told == "refused" and count:
                    found.append(f"INV6 refused and there {write.marker} in {path}")
            found += _out_of_order(path, order if path != NEWEST_FIRST else order[::-1])
        return found

    def _by_path(self) -> dict[str, list[Write]]:
        groups: dict[str, list[Write]] = {}
        for write in self.writes:
            groups.setdefault(write.path, []).append(write)
        return groups


def _text(vault: Path, paths: str) -> str:
    """The text of a note without frontmatter and heading, which repeat a title; of the first of "old|new"."""
    for path in paths.split("|"):
        if (vault / path).is_file():
            lines = (vault / path).read_text(encoding="utf-8").splitlines()
            return "\n".join(line for line in lines if not line.startswith(("title:", "# ", "scope:")))
    return ""


def _out_of_order(path: str, order: list[str]) -> list[str]:
    """INV5 in one note: of each client, the numbers must rise."""
    last: dict[str, int] = {}
    found = []
    for marker in order:
        client, number = marker[2:-1].split("x")
        if last.get(client, -1) > int(number):
            found.append(f"INV5 {marker} stands behind {last[client]} of its client in {path}")
        last[client] = int(number)
    return found
