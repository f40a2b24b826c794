"""The folder of finished backups: names, order, rotation, and the lock of whoever makes one (spec 6.4).

A file has a final name only when every entry in it has been read back and compared. Names are ordered by their
sequence number and not by time, which may jump.
"""
from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Collection, Iterator
from typing import NamedTuple

from echo_core.atomic import private_folder, sync_folder
from echo_core.errors import VaultUnreachable
from echo_core.vault.host_lock import host_lock

from echo_mcp.backup.space import writing

FOLDER = "backups"
PART = ".part"
_LOCK = ".lock"
_SCRATCH = ".drill-"
_NAME = re.compile(r"echo-(\d{4}-\d\d-\d\d-\d{4})-(\d{4,9})(-partial)?\.zip", re.ASCII)
_LEFTOVER = re.compile(r"echo-.*\.zip\.part|\.drill-[0-9a-f]{8}", re.ASCII)


class Busy(Exception):
    """Somebody else is making, checking or removing backups here."""


class Kept(NamedTuple):
    """A finished backup. sequence: higher is newer. partial: something of the vault is missing in it."""

    sequence: int
    name: str
    partial: bool


class Shelf:
    """The backups below `state_dir`."""

    def __init__(self, state_dir: str) -> None:
        self.folder = os.path.join(state_dir, FOLDER)

    def make(self) -> None:
        """Make the folder for its owner alone. Raises StorageFailed."""
        with writing():
            private_folder(self.folder)

    def path(self, name: str) -> str:
        """The host path of a file of the shelf."""
        return os.path.join(self.folder, name)

    def kept(self) -> list[Kept]:
        """Every finished backup, oldest first."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        found = (match for match in map(_NAME.fullmatch, names) if match)
        return sorted(Kept(int(match[2]), match[0], match[3] is not None) for match in found)

    def trace(self) -> int:
        """Changes with every file that comes or goes; 0 while there is no shelf."""
        try:
            return os.stat(self.folder).st_mtime_ns
        except OSError:
            return 0

    def next_name(self, stamp: str, partial: bool) -> str:
        """A name that is newer than all others. stamp: the owner's date and time as `2026-11-30-0330`."""
        kept = self.kept()
        sequence = kept[-1].sequence + 1 if kept else 1
        return f"echo-{stamp}-{sequence:04}{'-partial' if partial else ''}.zip"

    def finish(self, part: str, name: str) -> None:
        """Give the verified `part` its final name, durably. Raises StorageFailed."""
        with writing():
            os.rename(self.path(part), self.path(name))
            sync_folder(self.folder)

    def rotate(self, keep: int, damaged: Collection[str] = ()) -> list[str]:
        """Remove what is older than the `keep` newest good backups; the names that went.

        Partial and damaged ones count for nothing: they push no good one out, and go when a good one of their age
        would. Of partial ones at most `keep` stay.
        """
        kept = self.kept()
        good = [one for one in kept if not one.partial and one.name not in damaged]
        partial = [one for one in kept if one.partial]
        oldest = good[-keep].sequence if len(good) > keep else 0
        gone = [one.name for one in kept if one.sequence < oldest]
        gone += [one.name for one in partial[:-keep] if one.sequence >= oldest]
        with writing():
            for name in gone:
                os.unlink(self.path(name))
            if gone:
                sync_folder(self.folder)
        return gone

    @contextlib.contextmanager
    def scratch(self) -> Iterator[str]:
        """A private folder that is gone afterwards."""
        path = self.path(_SCRATCH + secrets.token_hex(4))
        with writing():
            os.mkdir(path, 0o700)
        try:
            yield path
        finally:
            with writing():
                remove_tree(path)

    def clean(self) -> None:
        """Remove what runs that were killed have left behind; the caller holds the lock."""
        with writing():
            for name in os.listdir(self.folder):
                if _LEFTOVER.fullmatch(name):
                    remove_tree(self.path(name))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep everybody else out who would write here. Raises Busy at once when somebody does."""
        self.make()
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(host_lock(self.folder).held(self._open_lock, lambda fd: True, wait_s=0))
            except VaultUnreachable:
                raise Busy from None
            yield

    def _open_lock(self) -> int:
        return os.open(self.path(_LOCK), os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)


def is_name(text: str) -> bool:
    """Whether the text is a name that a finished backup may have."""
    return _NAME.fullmatch(text) is not None


def remove_tree(path: str) -> None:
    """Remove a file, or a folder with everything in it whatever its modes are. Raises OSError."""
    if not os.path.isdir(path) or os.path.islink(path):
        os.unlink(path)
        return
    for above, folders, _ in os.walk(path):
        for name in folders:
            os.chmod(os.path.join(above, name), 0o700)
    shutil.rmtree(path)
