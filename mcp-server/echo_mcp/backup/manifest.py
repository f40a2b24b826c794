"""The manifest in each backup: what it holds, what it leaves out, and the SHA-256 of every file (spec 6.4).

One JSON document that has one file a line, so that any program can read it whole and this one line by line: neither
writing nor reading it takes memory that grows with the vault.
"""
from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import IO, Any, NamedTuple

from echo_core.errors import BadBackup

NAME = "manifest.json"
FORMAT = 1
MOST_NAMED = 1000
"""Most things left out or unreadable that are named one by one; the counts cover all."""
_MAX_HEAD = 4 * 1024 * 1024
_MAX_LINE = 64 * 1024
_FOLDERS, _FILES, _END = ', "folders": [', '], "files": [', "]}"


class FolderEntry(NamedTuple):
    """A folder of the vault. mode: permission bits, None where the vault has none."""

    path: str
    mode: int | None


class FileEntry(NamedTuple):
    """A file of the vault. mode, mtime_ns: None where the vault has or tells none."""

    path: str
    size: int
    sha256: str
    mode: int | None
    mtime_ns: int | None


@dataclass
class Summary:
    """What a backup says about itself. made: an instant with offset; source: "folder" or "rest".

    fingerprint: of the vault when it was made. left_out, unreadable: `{"path", "why"}`; the second are missing although
    they belong to the vault, which makes the backup a partial one.
    """

    made: str
    source: str
    echo: str
    files: int = 0
    bytes: int = 0
    fingerprint: str = ""
    left_out: list[dict[str, str]] = field(default_factory=list)
    left_out_total: int = 0
    unreadable: list[dict[str, str]] = field(default_factory=list)
    unreadable_total: int = 0
    note: str = ("Names that begin with a dot are left out; .obsidian among them, which holds settings and the key of "
                 "the REST API plugin.")

    @property
    def partial(self) -> bool:
        """Whether something that belongs to the vault is missing."""
        return self.unreadable_total > 0


class ManifestWriter:
    """Collects entries in an unnamed file of `folder` until the totals are known. Close it."""

    def __init__(self, folder: str) -> None:
        self._files: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n", dir=folder)  # noqa: SIM115
        self._folders: list[str] = []
        self._count = 0

    def add_folder(self, entry: FolderEntry) -> None:
        """Note a folder."""
        self._folders.append(_line({"path": entry.path, "mode": _octal(entry.mode)}))

    def add_file(self, entry: FileEntry) -> None:
        """Note a file that is in the backup."""
        self._files.write(",\n" if self._count else "")
        self._files.write(_line({**entry._asdict(), "mode": _octal(entry.mode)}))
        self._count += 1

    def write(self, summary: Summary, out: IO[bytes]) -> None:
        """The whole manifest as UTF-8."""
        head = _line({"format": FORMAT, **asdict(summary)})[:-1]
        out.write((head + _FOLDERS + "\n" + ",\n".join(self._folders) + "\n" + _FILES + "\n").encode())
        self._files.seek(0)
        while block := self._files.read(64 * 1024):
            out.write(block.encode())
        out.write(f"\n{_END}\n".encode())

    def close(self) -> None:
        """Let go of the unnamed file."""
        self._files.close()


def read_summary(stream: IO[bytes]) -> Summary:
    """The summary at the start of a manifest. Raises BadBackup."""
    head = _next(stream, _MAX_HEAD)
    if not head.endswith(_FOLDERS):
        raise foreign()
    said = _object(head[:-len(_FOLDERS)] + "}")
    if said.pop("format", None) != FORMAT:
        raise foreign("it was made by a newer version of ECHO or by something else")
    try:
        summary = Summary(**said)
    except TypeError:
        raise foreign() from None
    if not _fits(summary):
        raise foreign()
    return summary


def read_entries(stream: IO[bytes]) -> Iterator[FolderEntry | FileEntry]:
    """Folders, then files, one by one. stream: at the start of the manifest. Raises BadBackup."""
    _next(stream, _MAX_HEAD)
    for line in _until(stream, _FILES):
        said = _object(line)
        if set(said) != {"path", "mode"} or not isinstance(said["path"], str):
            raise foreign()
        yield FolderEntry(said["path"], _mode(said["mode"]))
    for line in _until(stream, _END):
        said = _object(line)
        if set(said) != set(FileEntry._fields):
            raise foreign()
        kinds = (isinstance(said["path"], str), _is_count(said["size"]), isinstance(said["sha256"], str),
                 said["mtime_ns"] is None or isinstance(said["mtime_ns"], int))
        if not all(kinds):
            raise foreign()
        yield FileEntry(said["path"], said["size"], said["sha256"], _mode(said["mode"]), said["mtime_ns"])


def foreign(why: str = "its manifest is not one of ECHO's") -> BadBackup:
    """The refusal of a zip that is no backup of ours."""
    return BadBackup(f"This is no backup that ECHO can read: {why}", reason="foreign",
                     hint="`echo-mcp backup list` shows those that can be restored.")


def _until(stream: IO[bytes], end: str) -> Iterator[str]:
    """The lines before `end`, without their commas."""
    while (line := _next(stream, _MAX_LINE)) != end:
        if line:
            yield line.removesuffix(",")


def _next(stream: IO[bytes], limit: int) -> str:
    """One line without its end. Raises BadBackup at the end and for a line that no backup has."""
    line = stream.readline(limit)
    if not line.endswith(b"\n"):
        raise foreign()
    try:
        return line[:-1].decode("utf-8")
    except UnicodeDecodeError:
        raise foreign() from None


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise foreign() from None
    if not isinstance(found, dict):
        raise foreign()
    return found


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _octal(mode: int | None) -> str | None:
    return None if mode is None else f"{mode:04o}"


def _mode(text: object) -> int | None:
    """The permission bits a manifest names."""
    if text is None:
        return None
    try:
        return int(str(text), 8) & 0o7777
    except ValueError:
        raise foreign() from None


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _fits(summary: Summary) -> bool:
    words = (summary.made, summary.source, summary.echo, summary.fingerprint, summary.note)
    counts = (summary.files, summary.bytes, summary.left_out_total, summary.unreadable_total)
    lists = (summary.left_out, summary.unreadable)
    return (all(isinstance(word, str) for word in words) and all(map(_is_count, counts))
            and all(isinstance(rows, list) and all(isinstance(row, dict) for row in rows) for rows in lists))
