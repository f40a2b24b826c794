"""The lines of a frontmatter block, and the block scalars (`|`, `>`) that are read by lines."""
from __future__ import annotations

import re
from bisect import bisect_right

from echo_core.frontmatter.yaml_nodes import Fault, Node

_LINE = re.compile(r"( *)[ \t]*(?:(#)|([^\r\n]))?[^\r\n]*()(?:\r\n|\r|\n|$)")
HEADER = re.compile(r"([|>])(?:([1-9])([+-]?)|([+-])([1-9]?))?(?=[ \t\r\n]|$)")


class Lines:
    """Each line of a block: offsets `start` and `end` (before its line end), and `indent` in spaces.

    Lines of white space or a comment alone are not `content`.
    """

    def __init__(self, text: str, start: int, limit: int) -> None:
        self.text = text
        self.limit = limit
        self.start: list[int] = []
        self.end: list[int] = []
        self.indent: list[int] = []
        self.blank: list[bool] = []
        self.comment: list[bool] = []
        for match in _LINE.finditer(text, start, limit):
            begin = match.start()
            if begin == limit:
                break
            hash_mark, letter = match.group(2, 3)
            self.start.append(begin)
            self.indent.append(match.end(1) - begin)
            self.end.append(match.end(4))
            self.comment.append(hash_mark is not None)
            self.blank.append(hash_mark is None and letter is None)
        self.count = len(self.start)

    def content(self, line: int) -> int:
        """The first line at or after `line` that holds something; `count` when there is none. Raises Fault on tabs."""
        while line < self.count and (self.blank[line] or self.comment[line]):
            line += 1
        if line < self.count and self.text[self.begin(line)] == "\t":
            raise Fault(self.begin(line), "a tab in the indentation: YAML allows spaces only")
        return line

    def begin(self, line: int) -> int:
        """The offset of the first character that is no space."""
        return self.start[line] + self.indent[line]

    def at(self, offset: int) -> int:
        """The number of the line that holds `offset`."""
        return max(bisect_right(self.start, offset) - 1, 0)


def read_block_scalar(lines: Lines, at: int, parent: int) -> tuple[Node, int]:
    """The `|` or `>` text whose header stands at `at`, and the line behind it.

    parent: indentation of the key or dash it belongs to. Raises Fault.
    """
    header = HEADER.match(lines.text, at, lines.limit)
    if not header:
        raise Fault(at, f"text that starts with {lines.text[at]} needs quotes")
    style, digit, chomp, chomp_first, digit_last = header.groups()
    head = lines.at(at)
    first = head + 1
    digit = digit or digit_last
    depth = parent + int(digit) if digit else _found_depth(lines, first, parent)
    stop = first
    while stop < lines.count and (lines.indent[stop] >= depth or lines.blank[stop]):
        stop += 1
    rows = [
        lines.text[lines.start[row] + depth:lines.end[row]] if lines.indent[row] >= depth else ""
        for row in range(first, stop)
    ]
    while rows and not rows[-1]:
        rows.pop()
    last = first + len(rows)
    keep = chomp or chomp_first
    value = _fold(rows) if style == ">" else "\n".join(rows)
    if rows and keep != "-":
        value += "\n"
    if keep == "+":
        value += "\n" * (stop - last)
        last = stop
    return Node(value, at, lines.end[last - 1] if last > first else header.end()), stop


def _found_depth(lines: Lines, first: int, parent: int) -> int:
    """The indentation of the first line of a block scalar that is not blank. Raises Fault."""
    deepest = 0
    row = first
    while row < lines.count and lines.blank[row]:
        deepest = max(deepest, lines.indent[row])
        row += 1
    if row == lines.count or lines.indent[row] <= parent:
        return max(parent + 1, deepest)
    if deepest > lines.indent[row]:
        raise Fault(lines.begin(row), "the text is indented less than the blank line before it")
    return lines.indent[row]


def _fold(rows: list[str]) -> str:
    """The text of a `>` scalar: lines join with spaces, except beside blank and further indented lines."""
    value = ""
    breaks = 0
    previous = ""
    for row in rows:
        if not row:
            breaks += 1
            continue
        if previous:
            flat = previous[0] not in " \t" and row[0] not in " \t"
            value += ("\n" * breaks or " ") if flat else "\n" * (breaks + 1)
        else:
            value += "\n" * breaks
        value += row
        previous, breaks = row, 0
    return value
