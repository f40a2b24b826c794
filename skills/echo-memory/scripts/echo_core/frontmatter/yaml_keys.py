"""What the start of a line of YAML is: a key, a dash or plain text."""
from __future__ import annotations

import re

from echo_core.frontmatter.yaml_flow import read_quoted
from echo_core.frontmatter.yaml_nodes import Fault
from echo_core.frontmatter.yaml_scalars import is_date_like

PLAIN_STOP = re.compile(r":(?=[ \t]|$)|[ \t]#")
"""Where unquoted text ends on its line: at the colon of a key, or before a comment."""

_SPACES = re.compile(r"[ \t]*")
_NO_PLAIN_START = frozenset(",[]{}#&*!|>'\"%@`")
_GAPS = ("", *" \t\r\n")


def after_spaces(text: str, at: int) -> int:
    """The offset behind the spaces and tabs at `at`."""
    match = _SPACES.match(text, at)
    return match.end() if match else at


def is_dash(text: str, at: int) -> bool:
    """Whether a list item starts at `at`."""
    return text[at] == "-" and text[at + 1:at + 2] in _GAPS


def starts_plain(text: str, at: int) -> bool:
    """Whether unquoted text may start at `at`."""
    return text[at] not in _NO_PLAIN_START and not (text[at] in "-?:" and text[at + 1:at + 2] in _GAPS)


def read_key(text: str, at: int, end: int) -> tuple[str, int] | None:
    """The key at `at` and the offset behind its colon; None when the line, which ends at `end`, holds no key.

    Raises Fault for a date as a key: some readers make it no text, so no name could stand for it.
    """
    if text[at] in "\"'":
        return _quoted_key(text, at, end)
    if not starts_plain(text, at):
        return None
    match = PLAIN_STOP.search(text, at, end)
    if match is None or match.group() != ":":
        return None
    key = text[at:match.start()].rstrip(" \t")
    if is_date_like(key):
        raise Fault(at, "a date as a key: put it in quotes")
    return key, match.end()


def _quoted_key(text: str, at: int, end: int) -> tuple[str, int] | None:
    try:
        key, after = read_quoted(text, at, end)
    except Fault:
        return None
    after = after_spaces(text, after)
    if text[after:after + 1] != ":" or text[after + 1:after + 2] not in _GAPS:
        return None
    return key, after + 1
