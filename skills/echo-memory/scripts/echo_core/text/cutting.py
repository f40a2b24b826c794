"""Cutting Markdown to a length so that what is left is still whole (spec 3.1)."""
from __future__ import annotations

import re
import unicodedata

from echo_core.text.lines import eol_before, line_end, line_start, next_line

_LINK = re.compile(
    r"!?\[\[(?:\\.|[^\]\\\r\n]|\](?!\]))*\]\]"
    r"|!?\[(?:\\.|[^\[\]\\\r\n]|\[[^\]\r\n]*\](?:\([^()\r\n]*\))?)*\]\((?:[^()\r\n]|\([^()\r\n]*\))*\)"
    r"|<[a-zA-Z][a-zA-Z0-9+.-]*:[^<>\s]*>"
    r"|\bhttps?://[^\s<>]+"
)
_DELIMITER_ROW = re.compile(r"[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
# A link longer than this is taken for stray brackets; it bounds the search around the cut.
_LINK_REACH = 1024
_TABLE_REACH = 200


def shorten(text: str, limit: int) -> tuple[str, bool]:
    """At most `limit` characters from the start of `text`, and whether anything was cut.

    Never splits a letter from its marks, an emoji sequence, a link or a table row, so the answer may be shorter
    than `limit`, even empty.
    """
    if len(text) <= limit:
        return text, False
    cut = max(limit, 0)
    while True:
        earlier = _before_row(text, _before_link(text, _before_letter(text, cut)))
        if earlier == cut:
            return text[:cut], True
        cut = earlier


def _before_letter(text: str, cut: int) -> int:
    """The nearest place at or before `cut` between two letters as a reader sees them."""
    while 0 < cut < len(text) and _joined(text, cut):
        cut -= 1
    return cut


def _joined(text: str, cut: int) -> bool:
    """Whether the characters on both sides of `cut` show as one."""
    before, after = text[cut - 1], text[cut]
    if before == "\u200d" or (before == "\r" and after == "\n"):
        return True
    if _is_regional(after):
        run = 0
        while run < cut and _is_regional(text[cut - 1 - run]):
            run += 1
        return run % 2 == 1
    return (
        after in "\u200c\u200d"
        or unicodedata.category(after)[0] == "M"
        or "\u1160" <= after <= "\u11ff"
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or "\U000e0020" <= after <= "\U000e007f"
    )


def _is_regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _before_link(text: str, cut: int) -> int:
    """`cut`, or the start of the link it would go through."""
    start = max(cut - _LINK_REACH, text.rfind("\n", 0, cut) + 1)
    for match in _LINK.finditer(text, start, min(len(text), cut + _LINK_REACH)):
        if match.start() < cut < match.end():
            return match.start()
        if match.start() >= cut:
            break
    return cut


def _before_row(text: str, cut: int) -> int:
    """`cut`, or the start of the table row it would go through."""
    start = line_start(text, cut)
    if cut in (start, len(text)) or text[cut] in "\r\n":
        return cut
    row = text[start:line_end(text, cut)]
    if "|" not in row:
        return cut
    return start if row.lstrip(" \t>").startswith("|") or _in_table(text, start) else cut


def _in_table(text: str, start: int) -> bool:
    """Whether the line at `start` is a row of a table: a delimiter row just below, or above without a gap."""
    below = next_line(text, start)
    lines = [text[below:line_end(text, below)]] if below < len(text) else []
    for _ in range(_TABLE_REACH):
        if start == 0:
            break
        start = line_start(text, start - len(eol_before(text, start)))
        line = text[start:line_end(text, start)]
        if "|" not in line:
            break
        lines.append(line)
    return any("|" in line and _DELIMITER_ROW.fullmatch(line) for line in lines)
