"""Bytes of a note to text and back without losing one (spec 2.2)."""
from __future__ import annotations

import re

from echo_core.errors import InvalidArgument

_SURROGATE = re.compile("[\ud800-\udfff]")


def decode(data: bytes) -> tuple[str, bool]:
    """The text of a note and whether its bytes are valid UTF-8.

    Bytes that are not UTF-8 become lone surrogates, so `encode` gives the same bytes again. A BOM stays as the
    first character. Use `displayable` before such text leaves the process.
    """
    try:
        return data.decode("utf-8"), True
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape"), False


def encode(text: str) -> bytes:
    """The bytes of a note's text, `decode` undone.

    Raises InvalidArgument for half of a surrogate pair that no `decode` made.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InvalidArgument(
            f"the text holds half of a surrogate pair at character {error.start}", field="text"
        ) from error


def displayable(text: str) -> str:
    """`text` with each byte that was not UTF-8 shown as U+FFFD, fit for JSON."""
    return _SURROGATE.sub("\ufffd", text)
