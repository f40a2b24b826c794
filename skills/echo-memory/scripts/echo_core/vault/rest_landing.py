"""What the bytes read back after a PUT say about it (spec 6.1)."""
from __future__ import annotations

import codecs
from enum import Enum
from typing import Optional

from echo_core.errors import MalformedNote
from echo_core.settle.pieces import pieces_of, stands

BOM = codecs.BOM_UTF8


class Landing(Enum):
    """ours: exactly our bytes, or others' that were built on them. bare: ours without their byte order mark.
    doubled: ours with a second mark. nothing: as before. theirs: somebody else's bytes without our edit in them."""

    OURS = "ours"
    BARE = "bare"
    DOUBLED = "doubled"
    NOTHING = "nothing"
    THEIRS = "theirs"


def landing(before: Optional[bytes], data: bytes, now: Optional[bytes]) -> Landing:
    """What became of a PUT of `data` over `before`, when the file now holds `now` (None: it is not there)."""
    if now == data:
        return Landing.OURS
    if now == before:
        return Landing.NOTHING
    if data.startswith(BOM) and now == data[len(BOM):]:
        return Landing.BARE
    if data.startswith(BOM) and now == BOM + data:
        return Landing.DOUBLED
    if now is not None and _holds_edit(before, data, now):
        return Landing.OURS
    return Landing.THEIRS


def body_of(data: bytes) -> bytes:
    """What to send so that `data` arrives: the plugin strips one byte order mark from what it is sent."""
    return BOM + data if data.startswith(BOM) else data


def require_text(path: str, data: bytes) -> None:
    """Raise MalformedNote for bytes that are no UTF-8: the plugin would replace what it cannot decode."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as fault:
        before = data[:fault.start]
        line = before.count(b"\n") + 1
        column = len(before.rpartition(b"\n")[2].decode("utf-8")) + 1
        raise MalformedNote(
            f"{path} is not valid UTF-8 (line {line}, column {column}), and the REST API would damage it",
            hint="Repair its encoding with another program.", path=path, line=line, column=column,
        ) from None


def _holds_edit(before: Optional[bytes], data: bytes, now: bytes) -> bool:
    """Whether all that our edit put in stands in `now`.

    Only for insertions: of a replacement it cannot be said that somebody else's bytes agree with it.
    """
    pieces = pieces_of(before, data)
    return bool(pieces) and all(piece.only_adds and stands(piece, now) for piece in pieces)
