"""Which vault paths ECHO accepts, and the few facts a path tells (spec 2.3).

A path is vault-relative, "/"-separated and NFC. Every path of a caller goes through `check_path` before anything
is asked of a vault, and backends check again: what is refused here never reaches a file system or a URL. The
check reads a path the way a careless reader further down might: percent-decoded (again and again), with
look-alike characters replaced and invisible ones dropped.
"""
from __future__ import annotations

import os
import re
import unicodedata
from typing import Iterator, Tuple

from echo_core.errors import InvalidPath

NOTE_EXTENSION = ".md"
MAX_PATH_BYTES = 1024
MAX_SEGMENT_BYTES = 255
CONTROL_FOLDERS: Tuple[str, ...] = ("_agent/index", "_agent/locks")
"""Folders of derived or control files: rebuilt at will, worth no history, no place for notes."""

_MAX_DECODINGS = 8
_MAX_SHOWN = 80
_PLAIN = re.compile(r"(?:[A-Za-z0-9_(](?:[A-Za-z0-9_() ,.'&+-]*[A-Za-z0-9_(),'&+-])?/)*"
                    r"[A-Za-z0-9_(](?:[A-Za-z0-9_() ,.'&+-]*[A-Za-z0-9_(),'&+-])?\Z")
_ESCAPE = re.compile(r"%u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}")
_OVERLONG = re.compile(rb"[\xc0\xc1][\x80-\xbf]|\xe0[\x80-\x9f][\x80-\xbf]|\xf0[\x80-\x8f][\x80-\xbf]{2}")
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_SEPARATOR = re.compile(r"[/\\%\u2044\u2215\u2216\u29f5\u29f8\u29f9\uff0f\uff3c\ufe68]")
_DRIVE = re.compile(r"[A-Za-z]:")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9\u00b9\u00b2\u00b3])[ ]*(?:\.|\Z)",
                     re.IGNORECASE)
_NOT_ON_EVERY_SYSTEM = re.compile(r'[<>:"|?*]')
# NFKC misses these slashes and dots; the ellipsis is ordinary punctuation that NFKC would turn into three dots.
_LOOK_ALIKE = str.maketrans({
    "\u2044": "/", "\u2215": "/", "\u29f8": "/", "\u2216": "/", "\u29f5": "/", "\u29f9": "/",
    "\uff3c": "/", "\ufe68": "/", "\u3002": ".", "\uff61": ".", "\u2026": "_",
})


def check_path(path: str, field: str = "path") -> str:
    """The path in NFC, or InvalidPath naming `field` when spec 2.3 refuses it.

    Refused in any encoding: dot segments and dot names, empty segments, absolute and drive paths, backslashes,
    control and direction characters, lone surrogates, more than 255 bytes a segment or 1,024 in all. A literal "%"
    that encodes nothing is an ordinary character. What names a file here need not be a good name for a new one: see
    `unportable`.
    """
    if isinstance(path, str) and len(path) <= MAX_SEGMENT_BYTES and os.name != "nt" and _PLAIN.match(path):
        return path
    reason = _refusal(path)
    if reason:
        raise InvalidPath(
            f"{field} is refused, {reason}: {_shown(path)}",
            hint="Give a vault-relative path such as projects/active/engine.md.",
            field=field,
        )
    return unicodedata.normalize("NFC", path)


def unportable(path: str) -> str:
    """Why Windows, Android or a sync program between them cannot hold this path, "" when every system can.

    Notes that have such a name are read and edited where they are; ECHO gives none to a new one.
    """
    for segment in path.split("/"):
        if _NOT_ON_EVERY_SYSTEM.search(segment):
            return "holds a character that Windows and Android refuse"
        if segment.endswith(".") or segment[-1:].isspace():
            return "has a part that ends in a dot or space, which Windows drops"
        if _DEVICE.match(segment):
            return "has a part that Windows keeps to itself"
    return ""


def check_reference(ref: str, field: str = "path") -> str:
    """Like `check_path` for what may be a title instead: "Acme Inc.", ".NET" and "Q: why" name notes, "../x" never.

    A title is looked up among known names only. Whoever goes on to ask a vault for it checks it as a path first.
    """
    return unicodedata.normalize("NFC", ref) if _may_be_title(ref) else check_path(ref, field)


def _may_be_title(ref: str) -> bool:
    """Whether no reader of any kind would take the text for more than one name."""
    if len(ref) > MAX_PATH_BYTES or _SEPARATOR.search(ref) or _FORBIDDEN.search(ref):
        return False
    return any(char.isalnum() for char in ref) and not any("\ud800" <= char <= "\udfff" for char in ref)


def check_folder(path: str, field: str = "folder") -> str:
    """Like `check_path` for a folder: "" is the root, and one closing "/" is dropped."""
    if path == "":
        return ""
    return check_path(path[:-1] if isinstance(path, str) and len(path) > 1 and path.endswith("/") else path, field)


def stem(path: str) -> str:
    """The last segment without `.md`; other extensions stay, since "dr. who" is a name as well."""
    return without_extension(path).rpartition("/")[2]


def parent(path: str) -> str:
    """The folder of a path; "" for a file in the root."""
    return path.rpartition("/")[0]


def without_extension(path: str) -> str:
    """The path as wikilinks spell it: a closing `.md` dropped, anything else kept."""
    return path[: -len(NOTE_EXTENSION)] if is_note(path) else path


def is_note(path: str) -> bool:
    """Whether the path names a Markdown note (ends in `.md`, in any case)."""
    return path[-len(NOTE_EXTENSION):].lower() == NOTE_EXTENSION


def is_inside(path: str, folder: str) -> bool:
    """Whether `path` is `folder` itself or lies under it; everything lies under ""."""
    return folder == "" or path == folder or path.startswith(folder + "/")


def is_control(path: str) -> bool:
    """Whether the path is a derived or control file (`CONTROL_FOLDERS`)."""
    return any(is_inside(path, folder) for folder in CONTROL_FOLDERS)


def case_key(path: str) -> str:
    """Equal for two paths that differ only in case or Unicode normal form.

    Lower case rather than casefold: no file system takes Strasse.md for Straße.md.
    """
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).lower())


def _refusal(path: str) -> str:
    """Why the path is refused, "" when it is fine."""
    if not isinstance(path, str):
        return "it is not text"
    if not path:
        return "it is empty"
    if len(path) > MAX_PATH_BYTES:
        return "it is too long"
    try:
        normal = unicodedata.normalize("NFC", path)
        sizes = [len(segment.encode("utf-8")) for segment in normal.split("/")]
    except UnicodeEncodeError:
        return "it holds half a character"
    if max(sizes) > MAX_SEGMENT_BYTES or sum(sizes) + len(sizes) - 1 > MAX_PATH_BYTES:
        return "it is too long"
    for spelling in _spellings(normal):
        reason = _fault(spelling, normal.count("/"))
        if reason:
            return reason
    return ""


def _spellings(path: str) -> Iterator[str]:
    """The path, then what it becomes each time somebody percent-decodes it; a NUL closes a bottomless nesting."""
    yield path
    for _ in range(_MAX_DECODINGS):
        if not _ESCAPE.search(path):
            return
        path = _decoded(path)
        yield path
    if _ESCAPE.search(path):
        yield "\0"


def _decoded(path: str) -> str:
    """One round of percent-decoding, `%uXXXX` included; overlong UTF-8 decodes to NUL, which is refused."""
    raw = bytearray()
    end = 0
    for match in _ESCAPE.finditer(path):
        code = match.group()
        raw += path[end:match.start()].encode("utf-8", "replace")
        raw += chr(int(code[2:], 16)).encode("utf-8", "replace") if code[1] == "u" else bytes([int(code[1:], 16)])
        end = match.end()
    raw += path[end:].encode("utf-8", "replace")
    return _OVERLONG.sub(b"\0", bytes(raw)).decode("utf-8", "replace")


def _fault(text: str, slashes: int) -> str:
    """What is wrong with one spelling of a path that has `slashes` separators as written."""
    if _FORBIDDEN.search(text):
        return "it holds a control or direction character"
    if "\\" in text:
        return "it holds a backslash"
    if text.count("/") != slashes:
        return "it holds an encoded slash"
    if text.startswith(("/", "~")):
        return "it is not relative to the vault"
    for segment in text.split("/"):
        reason = _segment_fault(segment)
        if reason:
            return reason
    return "" if text.isascii() else _disguise_fault(text)


def _segment_fault(segment: str) -> str:
    """What is wrong with one segment."""
    visible = segment.strip()
    if not visible:
        return "it has an empty segment"
    if visible.startswith("."):
        return "it has a segment that starts with a dot"
    if _DRIVE.match(visible):
        return "it has a drive letter"
    if os.name == "nt":  # where such a name means a device or another file
        return unportable(segment) and "Windows keeps this name to itself"
    return ""


def _disguise_fault(text: str) -> str:
    """Whether look-alike or invisible characters hide a dot segment, an empty one or an absolute path."""
    visible = "".join(char for char in text if unicodedata.category(char) != "Cf")
    plain = unicodedata.normalize("NFKC", visible.translate(_LOOK_ALIKE)).replace("\\", "/")
    for segment in plain.split("/"):
        if segment.strip() in ("", ".", "..") or segment.startswith("."):
            return "look-alike characters hide a dot or an empty segment in it"
    return ""


def _shown(path: object) -> str:
    """The start of a refused path, escaped so that it cannot disturb a terminal or a log; at most 80 characters."""
    escaped = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in str(path)[:_MAX_SHOWN]
    )
    return escaped if len(escaped) <= _MAX_SHOWN and len(str(path)) <= _MAX_SHOWN else escaped[:_MAX_SHOWN - 1] + "…"
