"""Making one backup: survey, write beside the others, read back, and only then the final name (spec 6.4)."""
from __future__ import annotations

import contextlib
import hashlib
import os
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple

from echo_core.atomic import CREATE, sync
from echo_core.clock import Clock
from echo_core.errors import BadBackup, VaultUnreachable

from echo_mcp import __version__
from echo_mcp.backup import manifest, space
from echo_mcp.backup.archive import MOST_PACKED, ROOT, open_archive
from echo_mcp.backup.folder_source import IN_MEMORY, QUIET_S
from echo_mcp.backup.manifest import MOST_NAMED, FileEntry, FolderEntry, ManifestWriter, Summary
from echo_mcp.backup.shelf import PART, Shelf
from echo_mcp.backup.source import UNKNOWN, Found, LeftOut, Snapshot, Source, Survey, survey
from echo_mcp.backup.watch import Watch

LEVEL = 6
WELL_PACKED = 0.25
"""Size of packed text as a share of the text."""
PER_ENTRY = 512
"""Bytes that an entry costs beside its content: headers, table and manifest."""
_PACKED = frozenset({
    "7z", "aac", "avif", "bz2", "docx", "epub", "flac", "gif", "gz", "heic", "jpeg", "jpg", "m4a", "mkv", "mov", "mp3",
    "mp4", "ogg", "opus", "png", "pptx", "webm", "webp", "xlsx", "xz", "zip", "zst",
})
"""Files that packing makes no smaller."""
_BLOCK = 256 * 1024
_LOOK_BYTES = 8 * 1024 * 1024


@dataclass
class Made:
    """What a run did. name: the newest backup, which an unchanged vault already had. size: of the zip, in bytes.

    before: files in the backup before. removed: names of those that were rotated away.
    """

    name: str
    size: int
    summary: Summary
    before: int = 0
    unchanged: bool = False
    removed: list[str] = field(default_factory=list)


def make(open_source: Callable[[], Source], shelf: Shelf, clock: Clock, keep: int, damaged: set[str],
         watch: Watch) -> Made:
    """Back the vault up, unless the newest backup holds it as it is now; rotate.

    The caller holds the shelf's lock. open_source: opens the vault, remembering nothing of it. keep: how many good
    backups stay. damaged: names of backups that are known to be so. Raises StorageFailed, BadBackup when what was
    written cannot be read back, the vault's errors, and Stopped; then no file has been added and none removed.
    """
    last = _last(shelf, damaged)
    with contextlib.ExitStack() as opened:
        source = opened.enter_context(contextlib.closing(open_source()))
        seen = _first_look(source, watch, patient=last is not None)
        if last is not None and 2 * seen.files < last.summary.files and source.loading_s:
            watch.pause(source.loading_s)
            source = opened.enter_context(contextlib.closing(open_source()))
            seen = survey(source, watch)
        if last is not None and last.summary.fingerprint == seen.fingerprint and not last.summary.partial:
            made = Made(last.name, last.size, last.summary, unchanged=True)
        else:
            _require_plausible(seen, last)
            space.require(shelf.folder, _estimate(seen, last), "the backup")
            made = _write(source, shelf, clock, seen, watch)
    made.before = last.summary.files if last is not None else 0
    made.removed = shelf.rotate(keep, damaged)
    return made


def _first_look(source: Source, watch: Watch, patient: bool) -> Survey:
    """A survey; with `patient`, one of nothing for a vault that is still loading and should be looked at again."""
    try:
        return survey(source, watch)
    except VaultUnreachable as failure:
        if patient and source.loading_s and failure.data.get("reason") == "loading":
            return Survey()
        raise


class _Last(NamedTuple):
    """The newest backup. size: of the zip, in bytes."""

    name: str
    summary: Summary
    size: int


def _require_plausible(seen: Survey, last: _Last | None) -> None:
    """Raise VaultUnreachable for an empty vault that was not empty before: it is more likely not mounted."""
    if not seen.files and last is not None and last.summary.files:
        raise VaultUnreachable(
            "The vault is empty, but its last backup is not", reason="emptied",
            hint="Mount it; or, if you did empty it, move its backups to another folder.",
        )


def _last(shelf: Shelf, damaged: set[str]) -> _Last | None:
    """The newest backup when it can be opened."""
    kept = shelf.kept()
    if not kept or kept[-1].name in damaged:
        return None
    try:
        with open_archive(shelf.path(kept[-1].name)) as archive:
            return _Last(kept[-1].name, archive.summary, archive.size)
    except (BadBackup, OSError):
        return None


def _estimate(seen: Survey, last: _Last | None) -> int:
    """How many bytes it will take at least: as the last one went, or well packed; more is noticed on the way."""
    share = last.size / last.summary.bytes if last is not None and last.summary.bytes else WELL_PACKED
    copy = seen.largest if seen.largest > IN_MEMORY else 0
    return int(min(share, 1.0) * seen.bytes) + seen.files * PER_ENTRY + copy


def _write(source: Source, shelf: Shelf, clock: Clock, seen: Survey, watch: Watch) -> Made:
    """A verified backup under its final name; nothing at all when that fails."""
    part = f"{shelf.next_name(clock.file_stamp(), partial=False)}{PART}"
    path = shelf.path(part)
    with contextlib.ExitStack() as undo:
        with space.writing():
            fd = os.open(path, CREATE, 0o600)
        undo.callback(_discard, path)
        with os.fdopen(fd, "wb") as out:
            summary = Summary(clock.instant(), source.kind, __version__, fingerprint=seen.fingerprint)
            _fill(out, source, shelf, summary, seen.files, watch)
            with space.writing():
                out.flush()
                sync(out.fileno())
                _forget_cached(out.fileno())
        size = _verify(path, summary, watch)
        name = shelf.next_name(clock.file_stamp(), summary.partial)
        shelf.finish(part, name)
        undo.pop_all()
    return Made(name, size, summary)


def _verify(path: str, written: Summary, watch: Watch) -> int:
    """Read the file back whole; its size in bytes. Raises BadBackup."""
    with open_archive(path) as archive:
        if archive.summary != written:
            raise BadBackup("The backup does not read back as it was written", reason="damaged",
                            hint="Check the disk of the state folder.")
        archive.check(watch)
        return archive.size


def _fill(out: BinaryIO, source: Source, shelf: Shelf, summary: Summary, total: int, watch: Watch) -> None:
    """Write every entry and the manifest, and the totals into `summary`. total: about how many files there will be."""
    with space.writing(), contextlib.closing(ManifestWriter(shelf.folder)) as entries, \
            zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as packed:
        writer = _Writer(packed, entries, shelf.folder, summary, total, watch)
        later = writer.add_all(source, _noting_folders(source.walk(), writer), patient=False)
        missed = writer.last_try(source, later)
        unreadable = sorted([*source.unreadable, *missed])
        summary.left_out, summary.left_out_total = _named(sorted(source.left_out)), len(source.left_out)
        summary.unreadable, summary.unreadable_total = _named(unreadable), len(unreadable)
        with packed.open(_info(manifest.NAME, None, None), "w", force_zip64=True) as target:
            entries.write(summary, target)


def _noting_folders(found: Iterator[Found], writer: _Writer) -> Iterator[Found]:
    """The files of a walk; its folders go into the zip on the way."""
    for each in found:
        if each.is_folder:
            writer.add_folder(each)
        else:
            yield each


class _Writer:
    """Adds files to an open zip and its manifest, and counts them in the summary."""

    def __init__(self, packed: zipfile.ZipFile, entries: ManifestWriter, folder: str, summary: Summary, total: int,
                 watch: Watch) -> None:
        self._packed = packed
        self._entries = entries
        self._folder = folder
        self._summary = summary
        self._total = total
        self._watch = watch
        self._since_look = 0
        self._missed: list[LeftOut] = []

    def add_folder(self, found: Found) -> None:
        """A folder, so that an empty one is restored as well."""
        mode = _known(found.mode)
        self._packed.writestr(_info(f"{ROOT}{found.path}/", mode, None), b"")
        self._entries.add_folder(FolderEntry(found.path, mode))

    def add_all(self, source: Source, files: Iterable[Found], patient: bool) -> list[Found]:
        """Every file; those that are being written to come back."""
        busy: list[Found] = []
        for found, reading in source.read(files, self._watch, patient):
            if isinstance(reading, Snapshot):
                self._add(found.path, reading)
            elif reading.busy:
                busy.append(found)
            else:
                self._missed.append(LeftOut(found.path, reading.why))
            self._watch.tell("saved", self._summary.files, self._total)
        return busy

    def last_try(self, source: Source, busy: list[Found]) -> list[LeftOut]:
        """Add what was being written to before; everything that could not be read at all."""
        if busy:
            self._watch.pause(QUIET_S)
        for found in self.add_all(source, busy, patient=True):
            self._missed.append(LeftOut(found.path, "it changes all the time"))
        return self._missed

    def _add(self, path: str, snapshot: Snapshot) -> None:
        digest = hashlib.sha256()
        mode, mtime_ns = _known(snapshot.mode), _known(snapshot.mtime_ns)
        info = _info(ROOT + path, mode, mtime_ns)
        info.file_size = snapshot.size
        if snapshot.size > MOST_PACKED or path.rpartition(".")[2].lower() in _PACKED:
            info.compress_type = zipfile.ZIP_STORED
        with snapshot.content as content, self._packed.open(info, "w") as target:
            while block := content.read(_BLOCK):
                digest.update(block)
                target.write(block)
                self._spent(len(block))
        self._entries.add_file(FileEntry(path, snapshot.size, digest.hexdigest(), mode, mtime_ns))
        self._summary.files += 1
        self._summary.bytes += snapshot.size

    def _spent(self, size: int) -> None:
        """Look now and then whether somebody wants to stop, and that others are left room on the disk."""
        self._watch.look()
        self._since_look += size
        if self._since_look >= _LOOK_BYTES:
            self._since_look = 0
            space.require(self._folder, 0, "the backup")


def _info(name: str, mode: int | None, mtime_ns: int | None) -> zipfile.ZipInfo:
    """An entry's head. Other programs read its mode, and its time as the local one with two seconds' grain."""
    when = time.localtime((mtime_ns or 0) / 1e9)[:6]
    info = zipfile.ZipInfo(name, when if 1980 <= when[0] <= 2107 else (1980, 1, 1, 0, 0, 0))
    folder = name.endswith("/")
    bits = mode if mode is not None else 0o755 if folder else 0o644
    info.create_system = 3
    info.external_attr = ((0o040000 if folder else 0o100000) | bits) << 16 | (0x10 if folder else 0)
    info.compress_type = zipfile.ZIP_STORED if folder else zipfile.ZIP_DEFLATED
    return info


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value


def _named(rows: list[LeftOut]) -> list[dict[str, str]]:
    return [row._asdict() for row in rows[:MOST_NAMED]]


def _forget_cached(fd: int) -> None:
    """Let what was written be read from the disk, not from memory, when it is verified."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def _discard(path: str) -> None:
    with contextlib.suppress(OSError):  # what went wrong before is what has to be told; the next run cleans up
        os.unlink(path)
