"""Reading what YAML lets run over line ends: quoted scalars, and lists and maps in brackets."""
from __future__ import annotations

import re
from typing import Any

from echo_core.frontmatter.yaml_nodes import Fault, Node
from echo_core.frontmatter.yaml_scalars import resolve

MAX_DEPTH = 50
_BREAK = r"(?:\r\n|\r|\n)"
_FOLD = rf"[ \t]*{_BREAK}(?:[ \t]*{_BREAK})*[ \t]*"
_SINGLE = re.compile(r"'[^']*(?:''[^']*)*'")
_DOUBLE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SINGLE_PART = re.compile(rf"''|{_FOLD}")
_DOUBLE_PART = re.compile(
    rf"\\{_BREAK}(?:[ \t]*{_BREAK})*[ \t]*"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}"
    rf"|\\.|{_FOLD}", re.DOTALL
)
_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}
_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"#[^\r\n]*")
_PLAIN_END = re.compile(r"[,\[\]{}\r\n]|:(?=[\s,\[\]{}]|$)|[ \t]#")
PROPERTY = re.compile(r"[&!][^\s,\[\]{}]*(?=[\s,\[\]{}]|$)")
ALIAS = re.compile(r"\*[^\s,\[\]{}]+")
_LINE_BREAK = re.compile(_BREAK)


def fold_breaks(source: str) -> str:
    """What line ends inside a scalar mean: one is a space, each further one a line end."""
    count = len(_LINE_BREAK.findall(source))
    return " " if count == 1 else "\n" * (count - 1)


def read_quoted(text: str, at: int, limit: int) -> tuple[str, int]:
    """The value of the quoted scalar at `at`, and the offset behind it. Raises Fault."""
    match = (_SINGLE if text[at] == "'" else _DOUBLE).match(text, at, limit)
    if not match:
        raise Fault(at, "the quote that opens here is never closed")
    inner = match.group()[1:-1]
    if text[at] == "'":
        value = _SINGLE_PART.sub(lambda part: "'" if part.group() == "''" else fold_breaks(part.group()), inner)
        return value, match.end()
    return _DOUBLE_PART.sub(lambda part: _double_part(part, at + 1), inner), match.end()


def _double_part(match: re.Match[str], base: int) -> str:
    """What an escape or a run of line ends inside double quotes stands for. Raises Fault."""
    source = match.group()
    if source[0] != "\\":
        return fold_breaks(source)
    if source[1] in "\r\n":
        return "\n" * (len(_LINE_BREAK.findall(source)) - 1)
    if len(source) == 2:
        if source[1] not in _ESCAPES:
            raise Fault(base + match.start(), f"\\{source[1]} is no escape inside double quotes")
        return _ESCAPES[source[1]]
    if len(source) == 12:
        high, low = int(source[2:6], 16), int(source[8:], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00)
    code = int(source[2:], 16)
    if code > 0x10FFFF:
        raise Fault(base + match.start(), "there is no character with this number")
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else chr(code)


class FlowReader:
    """Reads one value in bracket style. anchors: values seen under `&name`, filled and used."""

    def __init__(self, text: str, limit: int, anchors: dict[str, Any]) -> None:
        self.text = text
        self.limit = limit
        self.anchors = anchors
        self._opened = 0

    def _skip(self, at: int) -> int:
        """The offset behind white space and comments. Raises Fault where the block ends."""
        text = self.text
        while True:
            match = _SPACE.match(text, at, self.limit)
            at = match.end() if match else at
            if at >= self.limit:
                raise Fault(self._opened, "the bracket that opens here is never closed")
            if text[at] != "#":
                return at
            if text[at - 1] not in " \t\r\n":
                raise Fault(at, "a # here starts a comment: put the text in quotes")
            comment = _COMMENT.match(text, at, self.limit)
            at = comment.end() if comment else at

    def read(self, at: int) -> Node:
        """The list or map whose bracket stands at `at`. Raises Fault."""
        self._opened = at
        return self._collection(at, 1)

    def _collection(self, at: int, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise Fault(at, f"more than {MAX_DEPTH} levels of nesting")
        return self._list(at, depth) if self.text[at] == "[" else self._map(at, depth)

    def _list(self, start: int, depth: int) -> Node:
        items: list[Node] = []
        at = self._skip(start + 1)
        while self.text[at] != "]":
            item = self._value(at, depth)
            at = self._skip(item.end)
            if self._is_colon(at, item):
                value = self._pair_value(at, depth, "]")
                item = Node({_key(item): value.value}, item.start, value.end, True)
                at = self._skip(value.end)
            items.append(item)
            at = self._separator(at, "]")
        return Node([item.value for item in items], start, at + 1, True, items)

    def _map(self, start: int, depth: int) -> Node:
        values: dict[str, Any] = {}
        at = self._skip(start + 1)
        while self.text[at] != "}":
            name = self._value(at, depth)
            key = _key(name)
            if key in values:
                raise Fault(name.start, f"the key {key[:40]!r} stands twice")
            at = self._skip(name.end)
            values[key] = None
            if self._is_colon(at, name):
                value = self._pair_value(at, depth, "}")
                values[key] = value.value
                at = self._skip(value.end)
            at = self._separator(at, "}")
        return Node(values, start, at + 1, True)

    def _is_colon(self, at: int, key: Node) -> bool:
        """Whether a `:` at `at` ends a key; right behind quotes it needs no space after it."""
        if self.text[at] != ":":
            return False
        return self.text[at + 1:at + 2] in ("", *" \t\r\n,[]{}") or (at == key.end and self.text[at - 1] in "\"'")

    def _pair_value(self, colon: int, depth: int, closing: str) -> Node:
        at = self._skip(colon + 1)
        return Node(None, colon + 1, colon + 1) if self.text[at] in "," + closing else self._value(at, depth)

    def _separator(self, at: int, closing: str) -> int:
        """The offset of the next item or of the closing bracket. Raises Fault for anything else."""
        if self.text[at] == ",":
            return self._skip(at + 1)
        if self.text[at] != closing:
            raise Fault(at, f"a comma or {closing} is missing here")
        return at

    def _value(self, at: int, depth: int) -> Node:
        text, char = self.text, self.text[at]
        if char in "[{":
            return self._collection(at, depth + 1)
        if char in "\"'":
            value, end = read_quoted(text, at, self.limit)
            return Node(value, at, end, True)
        if char in "&!":
            return self._with_property(at, depth)
        if char == "*":
            return read_alias(text, at, self.limit, self.anchors)
        return self._plain(at)

    def _with_property(self, at: int, depth: int) -> Node:
        match = PROPERTY.match(self.text, at, self.limit)
        if not match:
            raise Fault(at, f"text that starts with {self.text[at]} needs quotes")
        inner = self._skip(match.end())
        if self.text[inner] in ",]}":
            node = Node(None, at, match.end(), True)
        else:
            node = self._value(inner, depth)
        return apply_property(match.group(), node, self.text, self.anchors)

    def _plain(self, start: int) -> Node:
        text = self.text
        if text[start] in ",]}#|>%@`" or (text[start] in "-?:" and text[start + 1] in " \t\r\n,[]{}"):
            raise Fault(start, f"text that starts with {text[start]} needs quotes")
        parts: list[str] = []
        at = start
        while True:
            match = _PLAIN_END.search(text, at, self.limit)
            stop = match.start() if match else self.limit
            line = text[at:stop].rstrip(" \t")
            parts.append(line)
            end = at + len(line)
            if stop >= self.limit or text[stop] not in "\r\n":
                break
            at = self._skip(stop)
            if text[at] in ",[]{}" or "#" in text[stop:at] or self._bare_colon(at):
                break
            parts.append(fold_breaks(text[stop:at]))
        return Node(resolve("".join(parts)), start, end, True)

    def _bare_colon(self, at: int) -> bool:
        return self.text[at] == ":" and self.text[at + 1:at + 2] in ("", *" \t\r\n,[]{}")


def _key(node: Node) -> str:
    """The text of a key. Raises Fault for a list or map as key."""
    if isinstance(node.value, (list, dict)):
        raise Fault(node.start, "a key must be text")
    return "" if node.value is None else str(node.value)


def read_alias(text: str, at: int, limit: int, anchors: dict[str, Any]) -> Node:
    """The value that `*name` at `at` repeats. Raises Fault when there is no such anchor before it.

    A repeated list or map stays the text `*name`: written out, a short block could grow without end.
    """
    match = ALIAS.match(text, at, limit)
    if not match or match.group()[1:] not in anchors:
        raise Fault(at, "text that starts with * needs quotes, unless it repeats an anchor above")
    value = anchors[match.group()[1:]]
    return Node(match.group() if isinstance(value, (list, dict)) else value, at, match.end(), True)


def apply_property(source: str, node: Node, text: str, anchors: dict[str, Any]) -> Node:
    """`node` with the tag or anchor `source` that stands before it: an anchor is noted, `!!str` means text."""
    if source[0] == "&":
        anchors[source[1:]] = node.value
    elif source in ("!!str", "!") and not isinstance(node.value, (str, list, dict)):
        node.value = text[node.start:node.end]
    return node
