"""Conflict copies that sync programs leave beside a note, recognised by name (spec 3.4)."""
from __future__ import annotations

import re

_CONFLICT_COPY = re.compile(
    r"""
      \.sync-conflict-\d{8}-\d{6}(?:-[A-Z0-9]{7})?$                       # Syncthing
    | \ \(Conflicted\ copy\ [^()]*\d{12}\)$                                # Obsidian Sync: device and time
    | \ \([^()]*\bconflicted\ copy\b[^()]*\d{4}-\d\d-\d\d[^()]*\)(?:\ \(\d+\))?$  # Dropbox, Nextcloud
    | \ \((?:Case\ Conflict|Selective\ Sync\ Conflict|Unicode\ Encoding\ Conflict)(?:\ \d+)?\)$   # Dropbox
    | \ \(?conflict(?:ed)?[ -]\d{4}-\d\d-\d\d[^()]*\)?$                    # iCloud and others, with a date
    | _conflict-\d{8}-\d{6}$                                               # Nextcloud mobile
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ICLOUD_NUMBER = re.compile(r"(?P<original>.*\S) [2-9]$")


def conflict_copy(path: str) -> bool:
    """Whether the file name says that a sync program made `path` as a copy of another note.

    Names the program by pattern alone; a bare iCloud number ("Note 2.md") needs `numbered_original` as well,
    since people number their own notes too.
    """
    return _CONFLICT_COPY.search(_bare_name(path)) is not None


def numbered_original(path: str) -> str:
    """The note that "Note 2.md" is a copy of if iCloud made it ("Note.md" beside it), "" without such a number."""
    match = _ICLOUD_NUMBER.match(_bare_name(path))
    if not match:
        return ""
    folder, slash, _ = path.rpartition("/")
    return f"{folder}{slash}{match.group('original')}.md"


def _bare_name(path: str) -> str:
    name = path.rsplit("/", 1)[-1]
    return name[:-3] if name.endswith(".md") else name
