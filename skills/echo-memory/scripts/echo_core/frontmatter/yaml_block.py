"""Reading a frontmatter block: the YAML people and tools write there, each value with its place.

Not read: complex keys (`? `), anchors on keys. What is not read is a Fault, so nothing edits it.
"""
from __future__ import annotations

import re
from typing import Any

from echo_core.frontmatter.yaml_flow import (
    MAX_DEPTH,
    PROPERTY,
    FlowReader,
    apply_property,
    fold_breaks,
    read_alias,
    read_quoted,
)
from echo_core.frontmatter.yaml_keys import PLAIN_STOP, after_spaces, is_dash, read_key, starts_plain
from echo_core.frontmatter.yaml_lines import Lines, read_block_scalar
from echo_core.frontmatter.yaml_nodes import Entry, Fault, Node
from echo_core.frontmatter.yaml_scalars import resolve

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
_MARKER = re.compile(r"(?:^|(?<=[\r\n]))---(?=[ \t])")
_FAST = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*):[ ]+([A-Za-z0-9_./(\u00c0-\u024f][^\r\n:#\t]*)(?=\r|\n|$)")


class BlockReader:
    """Reads the map between `start` and `limit` of a note. `root` raises Fault."""

    def __init__(self, text: str, start: int, limit: int) -> None:
        self.text = text
        self.limit = limit
        self.anchors: dict[str, Any] = {}
        self.flow = FlowReader(text, limit, self.anchors)
        self.lines = Lines(text, start, limit)
        self.line = 0
        self.depth = 0
        self._start = start

    def root(self) -> tuple[dict[str, Any], list[Entry] | None]:
        """Values and entries of the top-level map; entries None when it is one map in braces (JSON)."""
        for pattern, reason in ((_CONTROL, "a control character"), (_MARKER, "a second document starts here")):
            found = pattern.search(self.text, self._start, self.limit)
            if found:
                raise Fault(found.start(), reason)
        self.line = self.lines.content(0)
        if self.line == self.lines.count:
            return {}, []
        at = self.lines.begin(self.line)
        if self.text[at] == "{":
            node = self.flow.read(at)
            self._finish(node.end)
            values, entries = node.value, None
        else:
            entries = self._entries(self.lines.indent[self.line], at)
            values = {entry.key: entry.node.value for entry in entries}
        if self.line < self.lines.count:
            raise Fault(self.lines.begin(self.line), "indentation that fits no key above")
        return values, entries

    def _entries(self, indent: int, at: int) -> list[Entry]:
        """The entries of a block map whose first key stands at `at` and whose keys are indented by `indent`."""
        entries: list[Entry] = []
        seen: set[str] = set()
        lines = self.lines
        while True:
            entry = self._fast_entry(indent, at) or self._entry(indent, at)
            if entry.key in seen:
                raise Fault(at, f"the key {entry.key[:40]!r} stands twice")
            seen.add(entry.key)
            entries.append(entry)
            if self.line == lines.count or lines.indent[self.line] < indent:
                return entries
            at = lines.begin(self.line)
            if lines.indent[self.line] > indent:
                raise Fault(at, "indentation that fits no key above")

    def _fast_entry(self, indent: int, at: int) -> Entry | None:
        """The entry of a line `key: plain text`, which is most of them; None when it may be something else."""
        match = _FAST.match(self.text, at, self.lines.end[self.line])
        if not match:
            return None
        following = self.lines.content(self.line + 1)
        if following < self.lines.count and self.lines.indent[following] > indent:
            return None
        self.line = following
        value = match.group(2).rstrip(" ")
        start = match.start(2)
        node = Node(resolve(value), start, start + len(value))
        return Entry(match.group(1), at, match.end(1) + 1, start, node)

    def _entry(self, indent: int, at: int) -> Entry:
        end = self.lines.end[self.line]
        found = read_key(self.text, at, end)
        if found is None:
            raise Fault(at, "this line is not `key: value`")
        key, colon_end = found
        start = after_spaces(self.text, colon_end)
        node = self._value(start, indent, colon_end, in_list=False)
        return Entry(key, at, colon_end, start, node)

    def _is_key(self, at: int) -> bool:
        return read_key(self.text, at, self.lines.end[self.line]) is not None

    def _is_empty(self, at: int) -> bool:
        """Whether nothing but a comment is left of the line from `at`."""
        return at >= self.lines.end[self.line] or (self.text[at] == "#" and self.text[at - 1] in " \t")

    def _value(self, at: int, indent: int, nothing: int, in_list: bool) -> Node:
        """The value that starts at `at` or on the lines below. nothing: where to place a value that is not there."""
        source = self._property(at)
        inner = after_spaces(self.text, at + len(source))
        if self._is_empty(inner):
            node = self._below(indent, at + len(source) if source else nothing, in_list)
        else:
            node = self._inline(inner, indent)
        return apply_property(source, node, self.text, self.anchors) if source else node

    def _property(self, at: int) -> str:
        """The tag or anchor at `at`, "" for none. Raises Fault for a second one."""
        if self.text[at:at + 1] not in ("&", "!"):
            return ""
        match = PROPERTY.match(self.text, at, self.lines.end[self.line])
        if not match:
            raise Fault(at, f"text that starts with {self.text[at]} needs quotes")
        return match.group()

    def _below(self, indent: int, nothing: int, in_list: bool) -> Node:
        """The value on the lines below a key or dash that has none on its own line.

        The list of a key may stand at the key's own indentation; below a dash that would be the next item.
        """
        lines = self.lines
        self.line = lines.content(self.line + 1)
        if self.line < lines.count:
            at = lines.begin(self.line)
            if lines.indent[self.line] > indent:
                return self._nested(lines.indent[self.line], at, indent)
            if lines.indent[self.line] == indent and is_dash(self.text, at) and not in_list:
                return self._list(indent, at)
        return Node(None, nothing, nothing)

    def _nested(self, indent: int, at: int, parent: int) -> Node:
        """A list, map or scalar that begins at `at`, as a level of its own."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Fault(at, f"more than {MAX_DEPTH} levels of nesting")
        if is_dash(self.text, at):
            node = self._list(indent, at)
        elif self._is_key(at):
            entries = self._entries(indent, at)
            node = Node({entry.key: entry.node.value for entry in entries}, at, entries[-1].node.end)
        else:
            node = self._inline(at, parent)
        self.depth -= 1
        return node

    def _list(self, indent: int, at: int) -> Node:
        """The block list whose first dash stands at `at`; its dashes are indented by `indent`."""
        items: list[Node] = []
        dashes: list[int] = []
        lines = self.lines
        while is_dash(self.text, at):
            dashes.append(at)
            items.append(self._item(indent, at))
            if self.line == lines.count or lines.indent[self.line] != indent:
                break
            at = lines.begin(self.line)
        return Node([item.value for item in items], dashes[0], items[-1].end, False, items, dashes)

    def _item(self, indent: int, dash: int) -> Node:
        at = after_spaces(self.text, dash + 1)
        if not self._is_empty(at) and (is_dash(self.text, at) or self._is_key(at)):
            return self._nested(indent + at - dash, at, indent)
        return self._value(at, indent, dash + 1, in_list=True)

    def _inline(self, at: int, parent: int) -> Node:
        """The scalar, or list or map in brackets, that begins at `at`; continuation lines are deeper than `parent`."""
        char = self.text[at]
        if char in "|>":
            node, after = read_block_scalar(self.lines, at, parent)
            self._comment_only(self._header_end(at))
            self.line = self.lines.content(after)
            return node
        if char in "[{":
            node = self.flow.read(at)
        elif char in "\"'":
            value, end = read_quoted(self.text, at, self.limit)
            node = Node(value, at, end)
        elif char == "*":
            node = read_alias(self.text, at, self.limit, self.anchors)
        else:
            return self._plain(at, parent)
        self._finish(node.end)
        return node

    def _header_end(self, at: int) -> int:
        while at < self.limit and self.text[at] not in " \t\r\n":
            at += 1
        return at

    def _finish(self, end: int) -> None:
        """Go on to the line behind a value that ends at `end`. Raises Fault when something else follows it."""
        self.line = self.lines.at(end)
        self._comment_only(end)
        self.line = self.lines.content(self.line + 1)

    def _comment_only(self, end: int) -> None:
        rest = after_spaces(self.text, end)
        if not self._is_empty(rest):
            raise Fault(rest, "unexpected text behind the value: put the whole value in quotes")

    def _plain(self, at: int, parent: int) -> Node:
        """Unquoted text, which may go on over deeper lines. Raises Fault."""
        text, lines, start = self.text, self.lines, at
        if not starts_plain(text, at):
            raise Fault(at, f"text that starts with {text[at]} needs quotes")
        value = ""
        while True:
            end = lines.end[self.line]
            stop = PLAIN_STOP.search(text, at, end)
            if stop and stop.group() == ":":
                raise Fault(stop.start(), "a colon inside unquoted text: put the value in quotes")
            part = text[at:stop.start() if stop else end].rstrip(" \t")
            value += part
            following = self.line + 1
            while following < lines.count and lines.blank[following]:
                following += 1
            ends = stop or following == lines.count or lines.comment[following] or lines.indent[following] <= parent
            if ends:
                break
            value += fold_breaks(text[end:lines.start[following]])
            self.line = lines.content(following)
            at = lines.begin(self.line)
        self.line = lines.content(self.line + 1)
        return Node(resolve(value), start, at + len(part))
