"""Which names a backup may hold: what no system and no program that unpacks it takes for something else."""
from __future__ import annotations

import re

MAX_SEGMENT_BYTES = 255
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_DRIVE = re.compile(r"[A-Za-z]:")


def fault_of(path: str) -> str:
    """Why `path` (relative, "/"-separated) may not be in a backup, "" when it may.

    Stricter than a file system and wider than the vault: any spelling a person has given a note is kept, nothing that
    could lead out of the folder it is unpacked into. Dot names are no part of a vault (spec 2.3).
    """
    try:
        raw = path.encode("utf-8")
    except UnicodeEncodeError:
        return "a name that is no text"
    if "\\" in path or _CONTROL.search(path):
        return "a backslash or control character in its name"
    for segment in raw.split(b"/"):
        if not segment or segment.startswith(b"."):
            return "an empty or hidden part in its path"
        if len(segment) > MAX_SEGMENT_BYTES:
            return "a name that is too long"
    return "a drive letter in its path" if _DRIVE.match(path) else ""


def shown(path: str) -> str:
    """A name for a manifest or message, however broken it is."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")
