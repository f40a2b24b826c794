"""The block phase of CommonMark, plus tables: what each line is, given the lines above it (spec 2.2)."""
from __future__ import annotations

from typing import List, Optional, Pattern, Sequence, Tuple

from echo_core.markdown import syntax as mdsyntax
from echo_core.markdown.lines import (
    ATX,
    BLANK,
    CODE,
    FENCE,
    GAP,
    HTML,
    INDENTED,
    RAW,
    RULE,
    SETEXT,
    TABLE,
    TEXT,
    UNDERLINE,
)

_QUOTE = -1
_VERBATIM = (FENCE, RAW, HTML)
_DEEPEST = 64  # containers; a line of a million `>` must not take a million steps at each of them


class Scanner:
    """Reads lines in order and notes what each is.

    `leaf` is the kind of the open leaf block ("" for none); `stack` the open containers, each [width of its indent or
    _QUOTE, 1 once it holds something]. In all methods `rest` is the line from its first unread non-space character,
    `matched` the number of containers the line continues, `paragraph` whether an open paragraph could take it.
    """

    def __init__(self) -> None:
        self.lines: List[Tuple[int, int, int, str, int, int, int]] = []
        self.stack: List[List[int]] = []
        self.leaf = ""
        self.fence = ""
        self.html_end: Optional[Pattern[str]] = None
        self.paragraph: List[str] = []
        self.block = self.root = 0
        self.root_marker = ""
        self.span = (0, 0, 0)

    def copy(self, lines: Sequence[Tuple[int, int, int, str, int, int, int]]) -> "Scanner":
        """A scanner that goes on from here; `lines`: what was noted so far."""
        other = Scanner()
        other.__dict__.update(self.__dict__)
        other.lines, other.stack, other.paragraph = list(lines), [list(box) for box in self.stack], list(self.paragraph)
        return other

    def feed(self, raw: str, start: int, end: int, stop: int) -> None:
        """Classifies one line; `raw` is its text without the line end."""
        self.span = (start, end, stop)
        if (not self.stack and self.common(raw)) or self.item(raw):
            return
        line = raw.expandtabs(4) if "\t" in raw else raw
        pos, matched = self.enter_containers(line)
        inside = matched == len(self.stack)
        if inside and self.leaf in _VERBATIM and self.continue_verbatim(line[pos:]):
            return
        if not inside and self.leaf != TEXT:
            self.leaf = ""
        self.open_blocks(line, pos, matched)

    def common(self, raw: str) -> bool:
        """Notes a line of the frequent kinds outside containers, which need no closer look; False for any other."""
        leaf = self.leaf
        if leaf == FENCE:
            if self.fence[0] in raw:
                return False
            self.put(CODE, False)
        elif leaf in _VERBATIM:
            return False
        elif not raw:
            self.blank(0, False)
        elif raw[0] not in mdsyntax.SPECIAL and leaf in ("", TEXT):
            self.text_line(raw, leaf == TEXT)
        elif raw[0] == "#" and mdsyntax.ATX.match(raw):
            self.leaf_block(0, ATX, "")
        else:
            return False
        return True

    def item(self, raw: str) -> bool:
        """Notes the frequent bullet with plain text that stands at the margin; False for any other line."""
        if not mdsyntax.PLAIN_ITEM.match(raw) or "\t" in raw or (not self.stack and self.leaf in _VERBATIM):
            return False
        self.push(0, 2, raw[0])
        self.text_line(raw[2:], False)
        return True

    def enter_containers(self, line: str) -> Tuple[int, int]:
        """Where the line's content starts inside the containers it continues, and how many these are."""
        pos = matched = 0
        for width, holds in self.stack:
            indent = mdsyntax.indent_of(line, pos)
            if width == _QUOTE:
                if indent > 3 or line[pos + indent:pos + indent + 1] != ">":
                    break
                pos = mdsyntax.after_quote_mark(line, pos + indent)
            elif pos + indent == len(line):
                if not holds:
                    break
                pos = min(len(line), pos + width)
            elif indent < width:
                break
            else:
                pos += width
            matched += 1
        return pos, matched

    def continue_verbatim(self, rest: str) -> bool:
        """Notes a line of the open fence or HTML block; False when the block ended before it."""
        if self.leaf == FENCE:
            mark = rest.strip(" ")
            closes = len(mark) >= len(self.fence) and not mark.strip(self.fence[0]) and mdsyntax.indent_of(rest, 0) < 4
            self.put(FENCE if closes else CODE, False)
            self.leaf = "" if closes else FENCE
            return True
        if self.leaf == HTML and not rest.strip(" "):
            self.leaf = ""
            return False
        self.put(self.leaf, False)
        if self.leaf == RAW and self.html_end is not None and self.html_end.search(rest):
            self.leaf = ""
        return True

    def open_blocks(self, line: str, pos: int, matched: int) -> None:
        """Opens the containers and the leaf block that the rest of the line starts."""
        opened = False
        while True:
            indent = mdsyntax.indent_of(line, pos)
            rest = line[pos + indent:]
            paragraph = self.leaf == TEXT and not opened
            within = paragraph and matched == len(self.stack)
            if not rest:
                self.blank(matched, opened or bool(line.strip(" ")))
            elif indent > 3:
                self.indented(rest, matched, paragraph)
            elif rest[0] == ">" and matched < _DEEPEST:
                pos = mdsyntax.after_quote_mark(line, pos + indent)
                self.push(matched, _QUOTE, "")
                matched, opened = len(self.stack), True
                continue
            elif not self.open_leaf(rest, matched, paragraph, within):
                width = mdsyntax.item_width(rest, within)
                if width and matched < _DEEPEST:
                    pos = min(len(line), pos + indent + width[0])
                    self.push(matched, indent + width[0], width[1])
                    matched, opened = len(self.stack), True
                    continue
                self.plain(rest, matched, paragraph)
            return

    def open_leaf(self, rest: str, matched: int, paragraph: bool, within: bool) -> bool:
        """Notes a line that starts a leaf block or makes the paragraph above a heading or table; False otherwise."""
        first = rest[0]
        if first not in mdsyntax.LEAF_STARTS:
            return False
        fence = mdsyntax.OPEN_FENCE.match(rest) if first in "`~" else None
        if first == "#" and mdsyntax.ATX.match(rest):
            self.leaf_block(matched, ATX, "")
        elif fence:
            self.fence = fence.group()
            self.leaf_block(matched, FENCE, FENCE)
        elif first == "<" and self.open_html(rest, matched, paragraph):
            pass
        elif within and first in "=-" and mdsyntax.UNDERLINE.match(rest) and self.mark_heading():
            self.put(UNDERLINE, False)
            self.leaf = ""
        elif first in "*-_" and mdsyntax.RULE.match(rest):
            self.leaf_block(matched, RULE, "")
        elif within and first in "|:-" and mdsyntax.is_table_start(self.paragraph[-1], rest):
            self.start_table()
        else:
            return False
        return True

    def open_html(self, rest: str, matched: int, paragraph: bool) -> bool:
        """Notes a line that starts an HTML block; False when it starts none."""
        self.html_end = mdsyntax.raw_html_end(rest)
        if self.html_end:
            self.leaf_block(matched, RAW, "" if self.html_end.search(rest) else RAW)
        elif mdsyntax.starts_html(rest, paragraph):
            self.leaf_block(matched, HTML, HTML)
        else:
            return False
        return True

    def mark_heading(self) -> bool:
        """Turns the open paragraph into a setext heading; False when it holds only link definitions."""
        rest = mdsyntax.without_definitions("\n".join(self.paragraph))
        if not rest.strip():
            return False
        for index in range(-rest.count("\n") - 1, 0):
            row = self.lines[index]
            self.lines[index] = (*row[:3], SETEXT, *row[4:])
        return True

    def start_table(self) -> None:
        """Makes the last paragraph line the header of a table whose delimiter row is the current line."""
        if len(self.paragraph) > 1:
            self.block += 1
        row = self.lines[-1]
        self.lines[-1] = (*row[:3], TABLE, row[4], self.block, row[6])
        self.put(TABLE, False)
        self.leaf = TABLE

    def blank(self, matched: int, marked: bool) -> None:
        """Notes a line without content; `marked` when it holds container markers."""
        self.close(matched)
        if self.leaf != INDENTED:
            self.leaf = ""
        self.emit(GAP if marked else BLANK)

    def indented(self, rest: str, matched: int, paragraph: bool) -> None:
        """Notes a line indented by four or more: code, or one more line of the paragraph."""
        if paragraph:
            self.text_line(rest, True)
            return
        self.close(matched)
        self.put(INDENTED, self.leaf != INDENTED)
        self.leaf = INDENTED

    def plain(self, rest: str, matched: int, paragraph: bool) -> None:
        """Notes a line of text; an open paragraph takes it even when its container marks are missing."""
        if not paragraph:
            self.close(matched)
        if self.leaf == TABLE:
            self.put(TABLE, False)
        else:
            self.text_line(rest, paragraph)

    def text_line(self, rest: str, continues: bool) -> None:
        """Notes a paragraph line."""
        if not continues:
            self.paragraph = []
        self.paragraph.append(rest)
        self.put(TEXT, not continues)
        self.leaf = TEXT

    def leaf_block(self, matched: int, kind: str, leaf: str) -> None:
        """Notes the first line of a block; `leaf` is what stays open after it."""
        self.close(matched)
        self.put(kind, True)
        self.leaf = leaf

    def push(self, matched: int, width: int, marker: str) -> None:
        """Opens a quote or list item; an item of the list before it keeps that list's number."""
        self.close(matched)
        self.leaf = ""
        if self.stack:
            self.stack[-1][1] = 1
        elif not marker or marker != self.root_marker:
            self.root += 1
        self.root_marker = self.root_marker if self.stack else marker
        self.stack.append([width, 0])

    def close(self, matched: int) -> None:
        """Closes the containers that the line does not continue, and what is open inside them."""
        if matched < len(self.stack):
            del self.stack[matched:]
            self.leaf = ""

    def put(self, kind: str, fresh: bool) -> None:
        """Notes a line with content, as the first of its block when `fresh`."""
        self.block += fresh
        if self.stack:
            self.stack[-1][1] = 1
        else:
            self.root_marker = ""
        self.emit(kind)

    def emit(self, kind: str) -> None:
        """Notes the current line."""
        depth = len(self.stack)
        self.lines.append((*self.span, kind, depth, self.block, self.root if depth else 0))
