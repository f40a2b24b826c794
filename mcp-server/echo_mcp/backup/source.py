"""What a backup asks of a vault: everything that is in it, and each file whole (spec 6.4)."""
from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple, Protocol

from echo_mcp.backup.watch import Watch

UNKNOWN = -1


class Found(NamedTuple):
    """A file or folder that a walk met, spelled as the vault spells it.

    size in bytes and mtime_ns are UNKNOWN where the vault does not say, mode (permission bits) where it has none.
    stamp: changes with the content as far as the vault can tell, 0 when it cannot.
    """

    path: str
    is_folder: bool
    size: int = UNKNOWN
    mtime_ns: int = UNKNOWN
    mode: int = UNKNOWN
    stamp: int = 0


class Snapshot(NamedTuple):
    """One file as it was at one moment. content: at its start, closed by whoever got it."""

    content: BinaryIO
    size: int
    mtime_ns: int
    mode: int


class Unsaved(NamedTuple):
    """Why a file could not be read whole. busy: it kept changing, a later try may do better."""

    why: str
    busy: bool = False


class LeftOut(NamedTuple):
    """Something that is no part of a backup, and why."""

    path: str
    why: str


Reading = tuple[Found, Snapshot | Unsaved]


class Source(Protocol):
    """A vault that can be backed up."""

    kind: str
    loading_s: float
    """How long it may show only some of its files after a start, in seconds; 0 when it never does."""
    left_out: list[LeftOut]
    """What the last complete walk left out on purpose."""
    unreadable: list[LeftOut]
    """What the last complete walk could not look into."""

    def walk(self) -> Iterator[Found]:
        """Everything in the vault, folders before what is in them. Raises the vault's errors for the vault itself."""

    def read(self, files: Iterable[Found], watch: Watch, patient: bool) -> Iterator[Reading]:
        """Each file whole, in any order; files that are gone meanwhile are left out of the answer.

        patient: wait for a file that somebody is writing to; else it comes back as busy at once.
        Raises the vault's errors when the vault itself is the trouble, and Stopped.
        """

    def close(self) -> None:
        """Let go of the vault."""


@dataclass
class Survey:
    """What one walk counted. fingerprint: equal for two walks between which nothing changed."""

    files: int = 0
    bytes: int = 0
    largest: int = 0
    fingerprint: str = ""
    unreadable: list[LeftOut] = field(default_factory=list)


def survey(source: Source, watch: Watch) -> Survey:
    """Walk once and count; files whose state the vault does not tell are read for the fingerprint."""
    seen, digest = Survey(), hashlib.sha256()
    for found in source.walk():
        watch.look()
        said: list[object] = [found.path, found.is_folder, found.mode]
        if not found.is_folder:
            seen.files += 1
            seen.bytes += max(found.size, 0)
            seen.largest = max(seen.largest, found.size)
            said += [found.size, found.mtime_ns, found.stamp]
            if found.size == UNKNOWN:
                said += [_content_of(source, found, watch)]
        digest.update(json.dumps(said, ensure_ascii=True).encode() + b"\n")
    seen.unreadable = list(source.unreadable)
    digest.update(json.dumps(seen.unreadable).encode())
    seen.fingerprint = digest.hexdigest()
    return seen


def _content_of(source: Source, found: Found, watch: Watch) -> str:
    """The SHA-256 of a file, or why it cannot be read."""
    for _, reading in source.read([found], watch, patient=True):
        if isinstance(reading, Unsaved):
            return reading.why
        digest = hashlib.sha256()
        with reading.content as content:
            while block := content.read(1024 * 1024):
                digest.update(block)
        return digest.hexdigest()
    return "gone"
