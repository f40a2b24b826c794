"""The pieces a frontmatter block is read into: each value with the place of its source."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class Fault(Exception):
    """The block is not YAML that can be edited safely: character offset in the note, and why."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(reason)
        self.at = at
        self.reason = reason


@dataclass
class Node:
    """A value: `start` and `end` are character offsets of its source in the note, comments left out.

    value: str, int, float, bool, None, list or dict. flow: written with brackets. items: nodes of a list;
    dashes: offsets of their dashes when it is a block list.
    """

    value: Any
    start: int
    end: int
    flow: bool = False
    items: list[Node] = field(default_factory=list)
    dashes: list[int] = field(default_factory=list)


@dataclass
class Entry:
    """One key of a map: offsets of the key and of the place behind its colon, its value's node.

    value_start: where the source of the value begins, tag and anchor included.
    """

    key: str
    start: int
    colon_end: int
    value_start: int
    node: Node
