"""Where in a note one key's lines stand, and the note with just those lines changed (spec 2.2).

Every function takes the text of a note and places read from it, and returns the whole new text. `frontmatter` checks
what may be changed and that the result means what was meant.
"""
from __future__ import annotations

import re
from typing import Any, Sequence

from echo_core.frontmatter.finding import Frontmatter
from echo_core.frontmatter.yaml_nodes import Entry, Node
from echo_core.frontmatter.yaml_scalars import is_date_like, render, same
from echo_core.text.lines import eol_before, line_end, line_start, next_line

KEY_ORDER = (
    "type", "title", "status", "created", "updated", "tags", "aliases", "date", "domain", "agent_written",
    "source_notes", "supersedes", "superseded_by",
)
"""Canonical order of the keys of a note; further keys follow in the order given."""

_COMMENT_TAIL = re.compile(r"[ \t]+#[^\r\n]*")


def rank(key: str) -> int:
    """The place of a key in the canonical order; further keys come after all of it."""
    return KEY_ORDER.index(key) if key in KEY_ORDER else len(KEY_ORDER)


def entry_lines(key: str, value: Any, indent: str, eol: str) -> str:
    """The lines of one key in canonical style, lists as `  - item`."""
    name = f'{indent}"{key}":' if is_date_like(key) else f"{indent}{render(key)}:"
    if not isinstance(value, (list, tuple)):
        return f"{name} {render(value)}{eol}"
    if not value:
        return f"{name} []{eol}"
    return name + eol + "".join(f"{indent}  - {render(item)}{eol}" for item in value)


def add_key(text: str, front: Frontmatter, key: str, value: Any) -> str:
    """`text` with a key it does not have yet, at its place in the canonical order; a block is made when needed."""
    block = front.block
    if block is None:
        return _with_block(text, key, value)
    entries = front.entries or []
    at = _place(text, entries, key) if entries else block.content_end
    indent = text[line_start(text, entries[0].start):entries[0].start] if entries else ""
    return text[:at] + entry_lines(key, value, indent, eol_before(text, at)) + text[at:]


def _with_block(text: str, key: str, value: Any) -> str:
    """`text` with a new block before its body, a blank line between, and the line ends that the body has most."""
    bom = 1 if text.startswith("\ufeff") else 0
    body = text[bom:]
    eol = _usual_eol(body)
    gap = eol if body and body[0] not in "\r\n" else ""
    return text[:bom] + f"---{eol}" + entry_lines(key, value, "", eol) + f"---{eol}" + gap + body


def _usual_eol(text: str) -> str:
    crlf = text.count("\r\n")
    counts = {"\n": text.count("\n") - crlf, "\r\n": crlf, "\r": text.count("\r") - crlf}
    return max(counts, key=lambda eol: counts[eol])


def _place(text: str, entries: Sequence[Entry], key: str) -> int:
    """The offset where the lines of a new key go: behind the nearest key before it in the canonical order."""
    mine = rank(key)
    before = [entry for entry in entries if rank(entry.key) < mine and entry.key in KEY_ORDER]
    after = [entry for entry in entries if mine < rank(entry.key) < len(KEY_ORDER)]
    if key in KEY_ORDER and before:
        return next_line(text, _last(max(before, key=lambda entry: rank(entry.key))))
    if key in KEY_ORDER and after:
        index = entries.index(after[0])
        floor = next_line(text, _last(entries[index - 1])) if index else 0
        return _above_comments(text, line_start(text, after[0].start), floor)
    return next_line(text, _last(entries[-1]))


def _above_comments(text: str, at: int, floor: int) -> int:
    """The start of the comment lines right above the line at `at`, down to `floor`: they speak of that line."""
    while at > floor:
        above = line_start(text, at - len(eol_before(text, at)))
        if above < floor or not text[above:at].lstrip(" \t").startswith("#"):
            return at
        at = above
    return at


def remove(text: str, entry: Entry) -> str:
    """`text` without the lines of `entry`."""
    return text[:line_start(text, entry.start)] + text[next_line(text, _last(entry)):]


def replace(text: str, entry: Entry, value: Any) -> str:
    """`text` with another value for `entry`, in the style the old one has; comments beside it stay."""
    node = entry.node
    if not isinstance(value, (list, tuple)):
        return _put_inline(text, entry, render(value))
    if not value:
        return _put_inline(text, entry, "[]")
    if isinstance(node.value, list) and node.flow:
        return text[:node.start] + _flow_list(text, node, value) + text[node.end:]
    if isinstance(node.value, list):
        return _replace_items(text, entry, value)
    return _scalar_to_list(text, entry, value)


def extend(text: str, entry: Entry, items: Sequence[Any]) -> str:
    """`text` with `items` behind the last one of the list `entry`, which keeps its style."""
    node = entry.node
    if node.flow and node.items:
        at = node.items[-1].end
        return text[:at] + "".join(f", {render(item, flow=True)}" for item in items) + text[at:]
    if node.flow:
        return text[:node.start] + _flow_list(text, node, items) + text[node.end:]
    at = next_line(text, max(node.end, node.dashes[-1] + 1))
    indent = text[line_start(text, node.dashes[-1]):node.dashes[-1]]
    eol = eol_before(text, at)
    return text[:at] + "".join(f"{indent}- {render(item)}{eol}" for item in items) + text[at:]


def _put_inline(text: str, entry: Entry, source: str) -> str:
    """`text` with `source` as the value on the line of the key."""
    node, colon = entry.node, entry.colon_end
    key_end = line_end(text, colon)
    if node.end > entry.value_start and node.start <= key_end:
        return text[:entry.value_start] + source + text[node.end:]
    comment = _COMMENT_TAIL.search(text, colon, key_end)
    rest = line_end(text, max(node.end, colon))
    return text[:colon] + f" {source}" + (comment.group() if comment else "") + text[rest:]


def _source(text: str, node: Node, value: Any, flow: bool) -> str:
    """How `value` is written: as `node` writes it where that is the same value on one line."""
    source = text[node.start:node.end]
    return source if len(source.splitlines()) == 1 and same(node.value, value) else render(value, flow)


def _flow_list(text: str, node: Node, values: Sequence[Any]) -> str:
    """The source `[a, b]` of a list, items that stay written as they were."""
    parts = []
    for value in values:
        old = next((item for item in node.items if same(item.value, value)), node)
        parts.append(render(value, flow=True) if old is node else _source(text, old, value, flow=True))
    return f"[{', '.join(parts)}]"


def _replace_items(text: str, entry: Entry, values: Sequence[Any]) -> str:
    """`text` with other items in a block list; lines of items that stay are kept as they are."""
    node = entry.node
    start = end = next_line(text, entry.colon_end)
    old: list[tuple[Any, str]] = []
    for dash, item in zip(node.dashes, node.items):
        begin, end = end, next_line(text, max(item.end, dash + 1))
        old.append((item.value, text[begin:end]))
    indent = text[line_start(text, node.dashes[0]):node.dashes[0]]
    eol = eol_before(text, start)
    lines = []
    for value in values:
        at = next((index for index, (item, _) in enumerate(old) if same(item, value)), None)
        lines.append(f"{indent}- {render(value)}{eol}" if at is None else old.pop(at)[1])
    return text[:start] + "".join(lines) + text[end:]


def _scalar_to_list(text: str, entry: Entry, values: Sequence[Any]) -> str:
    """`text` with a block list where a single value stood; a comment stays on the line of the key."""
    node, colon = entry.node, entry.colon_end
    key_end = line_end(text, colon)
    comment = None if node.end > key_end else _COMMENT_TAIL.search(text, max(node.end, colon), key_end)
    indent = text[line_start(text, entry.start):entry.start]
    after = next_line(text, _last(entry))
    eol = eol_before(text, next_line(text, colon))
    # Behind a tag the bare source would mean something else: `!!str 1.5` is text.
    old = node if node.start == entry.value_start else Node(None, 0, 0)
    items = "".join(f"{indent}  - {_source(text, old, value, flow=False)}{eol}" for value in values)
    return text[:colon] + (comment.group() if comment else "") + eol + items + text[after:]


def _last(entry: Entry) -> int:
    """An offset on the last line of an entry."""
    return max(entry.node.end, entry.colon_end)
