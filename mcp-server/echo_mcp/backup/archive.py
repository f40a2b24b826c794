"""One opened backup: nothing in it is believed before it has been checked (spec 6.4).

Opening looks at names, kinds and sizes; `check` reads every byte and compares it with the manifest. Both take memory
for the table of names only, whatever the zip claims to unpack to.
"""
from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from types import TracebackType
from typing import IO, BinaryIO

from echo_core.errors import BadBackup
from echo_core.paths import parent

from echo_mcp.backup import manifest
from echo_mcp.backup.manifest import FileEntry, FolderEntry
from echo_mcp.backup.names import fault_of, shown
from echo_mcp.backup.watch import Watch

ROOT = "vault/"
"""Folder in the zip that holds the vault: whoever unpacks it with another program gets one folder to open."""
MOST_PACKED = 64 * 1024 * 1024
"""Larger files are stored as they are, so one that claims to unpack to more than this is no backup of ours."""
_KINDS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError,
           struct.error, OSError)
_BLOCK = 256 * 1024
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Archive:
    """A backup in `file`, which stays open until `close`. Raises BadBackup when it is none.

    name: of its file. size: of its file, in bytes. summary: what it says about itself.
    """

    def __init__(self, file: BinaryIO) -> None:
        with _translating():
            self._zip = zipfile.ZipFile(file)
        self._file = file
        self.name = os.path.basename(file.name)
        self.size = os.fstat(file.fileno()).st_size
        self._require_harmless()
        with self._manifest() as stream:
            self.summary = manifest.read_summary(stream)

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._zip.close()
        self._file.close()

    def folders(self) -> Iterator[FolderEntry]:
        """The folders, each before what is in it. Raises BadBackup."""
        for entry in self._entries():
            if isinstance(entry, FileEntry):
                return
            yield entry

    def files(self) -> Iterator[FileEntry]:
        """The files. Raises BadBackup."""
        return (entry for entry in self._entries() if isinstance(entry, FileEntry))

    def blocks(self, entry: FileEntry) -> Iterator[bytes]:
        """The bytes of a file. Raises BadBackup when they are not those of the manifest."""
        digest, size = hashlib.sha256(), 0
        with _translating(), self._zip.open(ROOT + entry.path) as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
                size += len(block)
                yield block
        if size != entry.size or digest.hexdigest() != entry.sha256:
            raise _damaged(entry.path)

    def check(self, watch: Watch) -> None:
        """Read everything; return when each file is what the manifest says and nothing is missing or too much.

        Raises BadBackup, and Stopped.
        """
        self._require_agreement()
        for number, entry in enumerate(self.files()):
            watch.tell("verified", number, self.summary.files)
            for _ in self.blocks(entry):
                watch.look()

    @contextlib.contextmanager
    def _manifest(self) -> Iterator[IO[bytes]]:
        with _translating(), self._zip.open(manifest.NAME) as stream:
            yield stream

    def _entries(self) -> Iterator[FolderEntry | FileEntry]:
        with self._manifest() as stream:
            yield from manifest.read_entries(stream)

    def _require_harmless(self) -> None:
        """Raise BadBackup for any entry that could leave the target, is no plain file or claims an absurd size."""
        infos = self._zip.infolist()
        if len(infos) != len(self._zip.NameToInfo):
            raise _hostile("a name stands in it twice")
        if manifest.NAME not in self._zip.NameToInfo:
            raise manifest.foreign("it has no manifest")
        for info in infos:
            if why := _harm_in(info):
                raise _hostile(f"{shown(info.orig_filename[:80])!r} has {why}")

    def _require_agreement(self) -> None:
        """Raise BadBackup unless manifest and zip name the same files and folders, none of them below a file."""
        infos, seen = self._zip.NameToInfo, {manifest.NAME}
        bytes_named = 0
        for entry in self._entries():
            name = ROOT + entry.path + ("/" if isinstance(entry, FolderEntry) else "")
            info = infos.get(name)
            if info is None or name in seen:
                raise _damaged(entry.path)
            seen.add(name)
            if isinstance(entry, FileEntry):
                bytes_named += entry.size
                if info.file_size != entry.size:
                    raise _damaged(entry.path)
        if len(seen) != len(infos):
            raise _hostile("it holds more than its manifest names")
        if (bytes_named, sum(not name.endswith("/") for name in seen) - 1) != (self.summary.bytes, self.summary.files):
            raise manifest.foreign("its totals are wrong")
        self._require_tree()

    def _require_tree(self) -> None:
        """Raise BadBackup when something lies below a file."""
        infos, checked = self._zip.NameToInfo, {""}
        for name in infos:
            above = parent(name.rstrip("/"))
            while above not in checked:
                if above in infos:
                    raise _hostile("something in it lies below a file")
                checked.add(above)
                above = parent(above)


def open_archive(path: str) -> Archive:
    """The backup in the file at `path`, never through a link. Raises BadBackup, and OSError when there is none."""
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NO_LINK))  # noqa: SIM115 (see Archive)
    try:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise manifest.foreign("it is no file")
        return Archive(file)
    except BaseException:
        file.close()
        raise


def _harm_in(info: zipfile.ZipInfo) -> str:
    """What is wrong with an entry of the zip, "" when nothing is."""
    name, mode = info.filename, info.external_attr >> 16
    if info.orig_filename != name:
        return "a NUL in its name"
    if info.flag_bits & _ENCRYPTED or info.compress_type not in _KINDS:
        return "an encryption or packing that ECHO does not use"
    kind = stat.S_IFMT(mode)
    if kind not in (0, stat.S_IFDIR if name.endswith("/") else stat.S_IFREG):
        return "a link or device in place of a file"
    if info.compress_type == zipfile.ZIP_DEFLATED and info.file_size > MOST_PACKED and name != manifest.NAME:
        return "a size that ECHO never packs"
    if name == manifest.NAME:
        return ""
    inner = name.removeprefix(ROOT)
    if inner == name:
        return "a place that no backup has"
    return fault_of(inner.removesuffix("/"))


@contextlib.contextmanager
def _translating() -> Iterator[None]:
    """Turn what the zip reader raises for a broken file into BadBackup."""
    try:
        yield
    except BadBackup:
        raise
    except _BROKEN as failure:
        raise BadBackup(f"The backup is damaged or no zip ({type(failure).__name__})", reason="damaged",
                        hint="Restore an older one.") from None


def _damaged(path: str) -> BadBackup:
    return BadBackup(f"The backup is damaged at {path}", reason="damaged", path=path,
                     hint="Restore an older one; any zip program still gets the other files out of this one.")


def _hostile(why: str) -> BadBackup:
    return BadBackup(f"The zip is refused: {why}", reason="hostile", hint="Nothing was written. Do not unpack it.")
