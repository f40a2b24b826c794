"""Changing one key of a note's frontmatter and nothing else (spec 2.2).

Only the lines of the named key change; every other character of the note stays. Reading is `frontblock`, whose
names are offered here too. After each edit the result is read again, and an edit that would have changed another
key is refused instead of returned.
"""
from __future__ import annotations

import re
import unicodedata
from typing import Any, Iterable, Mapping, Union

from echo_core.errors import InvalidArgument, MalformedNote
from echo_core.frontmatter.finding import Block, Frontmatter, Problem, parse, split
from echo_core.frontmatter.surgery import KEY_ORDER, add_key, entry_lines, extend, rank, remove, replace
from echo_core.frontmatter.yaml_nodes import Entry
from echo_core.frontmatter.yaml_scalars import render, same

__all__ = [
    "EMPTY_BLOCK", "KEY_ORDER", "MAX_KEY", "Block", "Frontmatter", "Problem",
    "add_items", "compose", "parse", "set_key", "split",
]

EMPTY_BLOCK = "---\n---\n"
MAX_KEY = 200
"""Characters of the longest property name that is written."""

Scalar = Union[str, int, float, bool]


def compose(values: Mapping[str, Any]) -> str:
    """The block of a new note: keys in canonical order, those that are None, "" or [] left out, "\\n" line ends.

    Raises InvalidArgument for a value that is no scalar or list of scalars.
    """
    lines = []
    for key in sorted(values, key=rank):
        if values[key] is None or values[key] in ("", [], ()):
            continue
        _check(key, values[key])
        lines.append(entry_lines(key, values[key], "", "\n"))
    return "---\n" + "".join(lines) + "---\n"


def set_key(text: str, key: str, value: Any) -> str:
    """`text` with `key` set to a str, int, float, bool or list of them; None removes the key.

    A value that stands there already changes no character. A note without a block gets one. Raises MalformedNote,
    and InvalidArgument where a map stands (`wanted`: map) or the value cannot be a property.
    """
    front = _editable(text)
    entry = _entry(front, key)
    if entry is not None and value is not None and same(entry.node.value, value):
        return text
    _check(key, value)
    if entry is None:
        return text if value is None else _checked(front, add_key(text, front, key, value), key, value)
    if value is None:
        return _checked(front, remove(text, entry), key, None)
    if isinstance(entry.node.value, dict):
        raise InvalidArgument(f"{key} holds a map, which this value cannot replace", field=key, wanted="map")
    return _checked(front, replace(text, entry, value), key, value)


def add_items(text: str, key: str, items: Iterable[Scalar]) -> str:
    """`text` with `items` added to the list `key`, those that it holds already left out.

    A missing key is made, a scalar becomes the first item. Raises MalformedNote, and InvalidArgument where a map
    stands (`wanted`: list).
    """
    front = _editable(text)
    wanted = list(dict.fromkeys(items))
    _check(key, wanted)
    entry = _entry(front, key)
    old = entry.node.value if entry else None
    if isinstance(old, dict):
        raise InvalidArgument(f"{key} holds a map; it must be a list to take items", field=key, wanted="list")
    present = old if isinstance(old, list) else _as_items(key, old)
    missing = [item for item in wanted if str(item) not in {str(held) for held in present}]
    if not missing:
        return text
    if entry is None or old is None:
        return set_key(text, key, missing)
    edited = extend(text, entry, missing) if isinstance(old, list) else replace(text, entry, [*present, *missing])
    return _checked(front, edited, key, [*present, *missing])


def _as_items(key: str, scalar: Any) -> list[Any]:
    """The items a single value stands for; `tags: a, b` are two."""
    if scalar is None:
        return []
    if key == "tags" and isinstance(scalar, str):
        return [tag for tag in re.split(r"[,\s]+", scalar) if tag]
    return [scalar]


def _editable(text: str) -> Frontmatter:
    """The frontmatter, when it can be edited. Raises MalformedNote."""
    front = parse(text)
    problem = front.malformed
    if problem is None and front.entries is None:
        problem = Problem(2, 1, "the frontmatter is JSON, which is read but not edited")
    if problem:
        raise MalformedNote(
            f"frontmatter, line {problem.line}, column {problem.column}: {problem.reason}",
            hint="Correct that line by hand; the note was left as it is.",
            path="", line=problem.line, column=problem.column,
        )
    return front


def _check(key: str, value: Any) -> None:
    """Raise InvalidArgument unless `key` can be the name of a property and `value` its value."""
    if not key.strip() or len(key) > MAX_KEY or len(key.splitlines()) > 1:
        raise InvalidArgument(f"a property name is one line of 1 to {MAX_KEY} characters", field="key")
    render(key)
    for item in value if isinstance(value, (list, tuple)) else [] if value is None else [value]:
        render(item)


def _entry(front: Frontmatter, key: str) -> Entry | None:
    """The entry of `key`, whatever normal form its name was typed in."""
    name = unicodedata.normalize("NFC", key)
    found = (entry for entry in front.entries or () if unicodedata.normalize("NFC", entry.key) == name)
    return next(found, None)


def _checked(front: Frontmatter, text: str, key: str, value: Any) -> str:
    """`text` when it says what was meant and leaves every other key as it was, to the character.

    Raises InvalidArgument otherwise: removing an anchor that another key repeats is such a case.
    """
    after = parse(text)
    entry = _entry(after, key)
    fits = entry is None if value is None else entry is not None and same(entry.node.value, value)
    if after.malformed or not fits or _others(front, key) != _others(after, key):
        raise InvalidArgument(f"{key} cannot be changed without changing other properties; edit it by hand", field=key)
    return text


def _others(front: Frontmatter, key: str) -> list[tuple[str, str, Any]]:
    """Name, source and value of every key but `key`."""
    name = unicodedata.normalize("NFC", key)
    return [
        (other, source, front.values[other]) for other, source in front.raw.items()
        if unicodedata.normalize("NFC", other) != name
    ]
