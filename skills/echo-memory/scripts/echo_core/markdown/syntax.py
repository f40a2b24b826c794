"""What starts and ends a block: the patterns of CommonMark 0.31 and GFM tables, on lines without tabs or line ends."""
from __future__ import annotations

import re
from typing import Optional, Pattern, Tuple

LEAF_STARTS = frozenset("#`~<=-*_|:")
"""First characters of all that is no plain text, quote or list item."""

SPECIAL = LEAF_STARTS | frozenset(" \t>+0123456789")
"""First characters of all that may be no plain text; a line that starts with any other is a paragraph's."""

PLAIN_ITEM = re.compile(r"[-*+] (?:[^ \t>+0-9#`~<=*_|:-]|[0-9]+[^0-9.)])")
"""A bullet whose content can start nothing but a paragraph."""

ATX = re.compile(r"#{1,6}(?: |$)")
UNDERLINE = re.compile(r"(?:=+|-+) *$")
RULE = re.compile(r"(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$")
OPEN_FENCE = re.compile(r"`{3,}(?=[^`]*$)|~{3,}")
_MARKER = re.compile(r"(?:[-+*]|(?P<number>[0-9]{1,9})[.)])(?=(?P<spaces> +)|$)")

_DELIMITERS = re.compile(r"\|? *:?-+:? *(?:\| *:?-+:? *)*\|? *$")
_DELIMITER_CHARACTERS = frozenset("|-: ")
_CELL_BAR = re.compile(r"(?<!\\)\|")
_DEFINITION = re.compile(
    r"\[(?!\s*\])(?:\\.|[^\[\]\\])+\]: *\n? *(?:<(?:\\.|[^<>\\\n])*>|[^\s<]\S*)"
    r"(?:(?: *\n *| +)(?:\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|\((?:\\.|[^()\\])*\)))? *(?:\n|$)")
_BARE_DEFINITION = re.compile(r"\[(?!\s*\])(?:\\.|[^\[\]\\])+\]: *\n? *(?:<(?:\\.|[^<>\\\n])*>|[^\s<]\S*) *(?:\n|$)")

_BLOCK_TAGS = (
    "address article aside base basefont blockquote body caption center col colgroup dd details dialog dir div dl dt "
    "fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr html iframe legend li link "
    "main menu menuitem nav noframes ol optgroup option p param search section summary table tbody td tfoot th thead "
    "title tr track ul").replace(" ", "|")
_ATTRIBUTE = r"\s+[a-zA-Z_:][\w.:-]*(?:\s*=\s*(?:[^\s\"'=<>`]+|'[^']*'|\"[^\"]*\"))?"
_TAG_BLOCK = re.compile(r"</?(?:%s)(?:\s|/?>|$)" % _BLOCK_TAGS, re.I)
_LONE_TAG = re.compile(r"(?:<[A-Za-z][A-Za-z0-9-]*(?:%s)*\s*/?>|</[A-Za-z][A-Za-z0-9-]*\s*>)\s*$" % _ATTRIBUTE)
_RAW = (
    (re.compile(r"<(?:script|pre|textarea|style)(?:\s|>|$)", re.I),
     re.compile(r"</(?:script|pre|textarea|style)>", re.I)),
    (re.compile(r"<!--"), re.compile(r"-->")),
    (re.compile(r"<\?"), re.compile(r"\?>")),
    (re.compile(r"<![A-Za-z]"), re.compile(r">")),
    (re.compile(r"<!\[CDATA\["), re.compile(r"\]\]>")),
)


def indent_of(line: str, pos: int) -> int:
    """How many spaces stand at `pos`."""
    end = pos
    while line[end:end + 1] == " ":
        end += 1
    return end - pos


def after_quote_mark(line: str, pos: int) -> int:
    """Where the content behind the `>` at `pos` starts."""
    return pos + (2 if line[pos + 1:pos + 2] == " " else 1)


def raw_html_end(rest: str) -> Optional[Pattern[str]]:
    """What ends the HTML without Markdown (script, comment, ...) that `rest` starts; None when it starts none."""
    return next((ends for begins, ends in _RAW if begins.match(rest)), None)


def starts_html(rest: str, in_paragraph: bool) -> bool:
    """Whether `rest` starts HTML that runs to the next blank line; a lone inline tag cannot interrupt a paragraph."""
    return bool(_TAG_BLOCK.match(rest)) or (not in_paragraph and bool(_LONE_TAG.match(rest)))


def item_width(rest: str, within: bool) -> Optional[Tuple[int, str]]:
    """Width of the list marker that `rest` starts with, and its kind; None when it starts no item.

    Inside a paragraph only an item with text, and of the ordered ones only number 1, starts a list.
    """
    marker = _MARKER.match(rest)
    if not marker:
        return None
    empty = not rest[marker.end():].strip(" ")
    if within and (empty or int(marker.group("number") or 1) != 1):
        return None
    spaces = len(marker.group("spaces") or "")
    return marker.end() + (spaces if 1 <= spaces <= 4 and not empty else 1), rest[marker.end() - 1]


def without_definitions(paragraph: str) -> str:
    """What is left of a paragraph, lines joined by newlines, after the link definitions it opens with."""
    while paragraph.startswith("["):
        match = _DEFINITION.match(paragraph) or _BARE_DEFINITION.match(paragraph)
        if not match:
            break
        paragraph = paragraph[match.end():]
    return paragraph


def is_table_start(header: str, rest: str) -> bool:
    """Whether `rest` is the delimiter row under the table header `header`: as many cells, by unescaped bars."""
    if not _DELIMITER_CHARACTERS.issuperset(rest) or not _DELIMITERS.match(rest):
        return False
    return ("|" in rest or "|" in header) and bool(header.strip("| ")) and _cells(header) == _cells(rest)


def _cells(row: str) -> int:
    row = row.strip()
    bars = len(_CELL_BAR.findall(row))
    outer = row.startswith("|") + (len(row) > 1 and bool(_CELL_BAR.match(row, len(row) - 1)))
    return bars - outer + 1
