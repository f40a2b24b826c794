"""Finding and reading the frontmatter of a note (spec 2.2). `frontmatter` writes it."""
from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional

from echo_core.frontmatter.yaml_block import BlockReader
from echo_core.frontmatter.yaml_nodes import Entry, Fault

MAX_BLOCK = 512 * 1024
"""Characters of the longest block that is read; one that is not closed by then is malformed."""

_OPENING = re.compile("\ufeff?---[ \t]*(\r\n|\r|\n|$)")
_CLOSING = re.compile(r"(?:(?<=\n)|(?<=\r))(?:---|\.\.\.)[ \t]*(?:\r\n|\r|\n|$)")
_KEY_LIKE = re.compile(r"[ \t]*(?:\"[^\"\r\n]+\"|'[^'\r\n]+'|[^\s:#\-][^:\r\n]*)[ \t]*:(?:[ \t\r\n]|$)")
_LINE_BREAK = re.compile("\r\n|\r|\n")
_BLANK = re.compile(r"[ \t]*(?:\r\n|\r|\n|$)")
_COMMENT_OR_BLANK = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n|$)")


class Problem(NamedTuple):
    """Where a block stops being YAML: 1-based line and column in the file, and why."""

    line: int
    column: int
    reason: str


class Block(NamedTuple):
    """A frontmatter block, in character offsets of the note.

    start: the opening `---`; content, content_end: the lines between the fences; end: where the body begins.
    eol: the line end of the opening fence. closed False: there is no closing fence, and no body.
    """

    start: int
    content: int
    content_end: int
    end: int
    eol: str
    closed: bool


@dataclass
class Frontmatter:
    """What the block of a note says.

    values: in the order of the note; empty when malformed. raw: the source text of each value, so that `007` can be
    told from 7. entries: each key with its place, None when the block is JSON. body_offset: where the body begins.
    """

    present: bool = False
    malformed: Optional[Problem] = None
    body_offset: int = 0
    values: dict[str, Any] = field(default_factory=dict)
    raw: dict[str, str] = field(default_factory=dict)
    entries: Optional[list[Entry]] = field(default_factory=list)
    block: Optional[Block] = None


def split(text: str) -> Block | None:
    """The frontmatter block of a note, None when it has none; a leading thematic break is none.

    BOM, CRLF and lone CR are understood. A block that opens like YAML and never ends has `closed` False.
    """
    opening = _OPENING.match(text)
    if not opening:
        return None
    start = 1 if text[0] == "\ufeff" else 0
    content, eol = opening.end(), opening.group(1) or "\n"
    first = _skip(_BLANK, text, content)
    closing = _CLOSING.search(text, content, content + MAX_BLOCK)
    if closing is None:
        if not _KEY_LIKE.match(text, first):
            return None
        return Block(start, content, len(text), len(text), eol, False)
    if first > content and not _starts_block(text, first, closing.start()):
        return None
    return Block(start, content, closing.start(), closing.end(), eol, True)


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    """The start of the first line at or after `at` that `pattern` does not match."""
    while at < len(text):
        match = pattern.match(text, at)
        if match is None or match.end() == at:
            return at
        at = match.end()
    return at


def _starts_block(text: str, first: int, end: int) -> bool:
    """Whether what follows blank lines below the opening is properties, rather than prose below a thematic break."""
    first = _skip(_COMMENT_OR_BLANK, text, first)
    return first >= end or text[first] == "{" or _KEY_LIKE.match(text, first) is not None


def parse(text: str) -> Frontmatter:
    """Read the frontmatter of a note. Never raises: what is no YAML is described by `malformed`."""
    block = split(text)
    if block is None:
        return Frontmatter(body_offset=1 if text.startswith("\ufeff") else 0)
    front = Frontmatter(present=True, body_offset=block.end if block.closed else block.start, block=block)
    try:
        if not block.closed:
            raise Fault(block.start, f"no --- closes this frontmatter within {MAX_BLOCK} characters")
        values, entries = BlockReader(text, block.content, block.content_end).root()
    except Fault as fault:
        front.malformed = _problem(text, fault)
        return front
    front.values, front.entries = values, entries
    front.raw = {entry.key: text[entry.value_start:entry.node.end] for entry in entries or ()}
    return front


def _problem(text: str, fault: Fault) -> Problem:
    """A fault with its place as people count it; the BOM is no column."""
    breaks = list(_LINE_BREAK.finditer(text, 0, fault.at))
    start = breaks[-1].end() if breaks else text.startswith("\ufeff")
    return Problem(len(breaks) + 1, fault.at - start + 1, fault.reason)
