"""What every vault backend and wrapper promises, in one place (spec 2.3, 2.6, 6.1).

Paths are vault-relative, "/"-separated, NFC, already checked by `echo_core.paths.check_path`; a backend checks
them again. Contents are bytes: nothing below the ops decodes, re-encodes or normalises a note.

Which error means what, for every method:
 NotFound          the file or folder is not there, and the vault could tell
 InvalidPath       refused before anything was touched (traversal, dot folder, symlink that leaves the vault)
 Conflict          the note is not the bytes the caller expected; nothing was written
 VaultUnreachable  the vault is missing, down, full or too slow; `reason` may say which
 VaultAuth         the vault refuses us (key, or file permissions)
An unreadable place is never reported as an empty or absent one.
"""
from __future__ import annotations

import hashlib
from contextlib import AbstractContextManager
from typing import Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional

from echo_core.errors import Conflict

MAX_RACES = 12
"""How often an edit starts over when somebody else wrote in between, before it answers `conflict`."""


class Stat(NamedTuple):
    """One file of the vault: path, size in bytes, modification time in nanoseconds since the epoch."""

    path: str
    size: int
    mtime_ns: int


class Listing(NamedTuple):
    """One folder: names of its sub-folders and of its files, each sorted, dot names left out."""

    folders: List[str]
    files: List[str]


class Edited(NamedTuple):
    """The result of `edit`: the bytes before (None: the note was created) and after."""

    before: Optional[bytes]
    after: bytes

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return self.before != self.after


class Vault:
    """The contract. A backend implements all of it; a wrapper forwards what it does not change."""

    def read(self, path: str) -> bytes:
        """The exact bytes of one file. NotFound when there is none."""
        raise NotImplementedError

    def write(self, path: str, data: bytes, expected: Optional[bytes]) -> None:
        """Replace the whole file atomically and durably, but only when it still holds `expected`.

        expected None: the file must not exist yet (parent folders are made). Otherwise Conflict, with `version`
        of what is there now, and nothing written. When this returns, the bytes survive a crash.
        """
        raise NotImplementedError

    def delete(self, path: str, expected: bytes) -> None:
        """Remove one file that still holds `expected` (else Conflict). Permanent: no trash."""
        raise NotImplementedError

    def move(self, source: str, target: str) -> None:
        """Rename one file; Conflict when `target` exists, NotFound when `source` does not. Parents are made."""
        raise NotImplementedError

    def stat(self, path: str) -> Stat:
        """Size and time of one file. NotFound when there is none."""
        raise NotImplementedError

    def is_gone(self, path: str) -> bool:
        """Whether there is surely no file at `path`; a backend that may hide files says False while it cannot tell."""
        from echo_core.errors import NotFound

        try:
            self.stat(path)
        except NotFound:
            return True
        return False

    def list_folder(self, path: str) -> Listing:
        """Direct children of a folder ("" is the root). NotFound when it is not there."""
        raise NotImplementedError

    def walk(self) -> Iterator[Stat]:
        """Every file outside dot folders, in path order, links that leave the vault left out.

        Raises VaultUnreachable or VaultAuth when the root cannot be read. A sub-folder that cannot be read
        is reported through `unreadable` and its files are simply not in the answer: callers must treat
        what lies under it as unknown, not as gone.
        """
        raise NotImplementedError

    def unreadable(self) -> List[str]:
        """Folders and links the last complete `walk` had to leave out, for lint and for pruning decisions."""
        return []

    def exclusive(self, *paths: str) -> AbstractContextManager[None]:
        """Hold this while reading, editing and writing back: keeps every other ECHO writer of this host away.

        paths: all that will be written meanwhile, so that nobody waits for somebody who waits for him; none: the whole
        vault. A backend may hold more than it is asked to. Re-entrant within one thread, for the same paths. On a
        folder it is the kernel lock of spec 2.6, of the whole vault.
        """
        raise NotImplementedError

    def check(self) -> None:
        """Return when the vault answers; raise VaultUnreachable or VaultAuth when it does not."""
        raise NotImplementedError

    def describe(self) -> Dict[str, object]:
        """Facts for `echo_health`: {"backend": "folder"|"rest"|..., ...}; nothing secret, no host path."""
        raise NotImplementedError

    def expect(self, known: Callable[[str], bool], anything: Callable[[], bool] = lambda: False) -> None:
        """Tell a backend that may hide files for a while how to ask whether somebody knows a note at a path.

        What is known is not created anew just because it does not show. anything: whether any note is known, so that
        a vault which shows none is not a new one. Most backends hide nothing.
        """

    def close(self) -> None:
        """Let go of connections that wait for a next call, which may still come."""

    def note_context(self, tool: str, op_id: str) -> None:
        """Tell history-keeping wrappers which call of the current thread the next writes belong to."""

    def read_many(self, paths: Iterable[str]) -> Iterator["tuple[str, bytes]"]:
        """`(path, bytes)` for each path that exists; absent ones are skipped, other errors are raised."""
        from echo_core.errors import NotFound

        for path in paths:
            try:
                yield path, self.read(path)
            except NotFound:
                continue


def version_of(data: bytes) -> str:
    """The version of a note: the first 16 hex digits of the SHA-256 of its bytes (spec 3.2)."""
    return hashlib.sha256(data).hexdigest()[:16]


def edit(
    vault: Vault,
    path: str,
    surgery: Callable[[Optional[bytes]], bytes],
    if_match: str = "",
) -> Edited:
    """Read, apply `surgery`, write back only if the note is still what was read; start over on a lost race.

    surgery: gets the current bytes (None: the note does not exist), returns the new bytes, and raises EchoError
    to refuse. Equal bytes mean nothing is written. if_match: a version the note must have (Conflict otherwise).
    Raises Conflict after MAX_RACES lost races, and whatever `surgery` and the vault raise.
    """
    from echo_core.errors import NotFound

    for attempt in range(MAX_RACES):
        with vault.exclusive(path):
            before: Optional[bytes]
            try:
                before = vault.read(path)
            except NotFound:
                before = None
            if if_match:
                require_version(path, before, if_match)
            after = surgery(before)
            if after == before:
                return Edited(before, after)
            try:
                vault.write(path, after, before)
                return Edited(before, after)
            except Conflict:
                if if_match or attempt == MAX_RACES - 1:
                    raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def require_version(path: str, current: Optional[bytes], if_match: str) -> None:
    """Raise Conflict unless `current` has version `if_match`."""
    version = "" if current is None else version_of(current)
    if version != if_match:
        raise Conflict(
            f"{path} is not the version you read",
            hint="Read the note again and repeat the edit on what it says now.",
            path=path, version=version,
        )
