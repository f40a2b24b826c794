"""Made-up notes for property tests: frontmatter in the styles people and tools write, as pieces per key."""

from __future__ import annotations

from typing import Any, NamedTuple

import yaml
from echo_core.frontmatter import split
from echo_core.frontmatter.yaml_scalars import resolve
from hypothesis import strategies as st


class Written(NamedTuple):
    """A note in pieces: `head` (BOM and opening fence), the lines of each key, `tail` (closing fence and body)."""

    head: str
    pieces: tuple[tuple[str, str], ...]
    tail: str

    @property
    def text(self) -> str:
        """The whole note."""
        return self.head + "".join(lines for _, lines in self.pieces) + self.tail


NOTE = """---
title: "Plan: B"   # shown in the app
created: 2026-04-23
attendees: "[[John-Brown]]"
code: 007
rate: 1.50
tags: [a, 'b c']  # flow
aliases:
  - one # first
  # about two
  - "two"
meta:
  k: v
---
# Body
"""

VALUES = (
    " 007",
    " 1.50",
    " 2026-04-23",
    "  spaced   # a comment",
    ' "[[John-Brown]]"',
    " 'it''s'",
    ' "a: \\"b\\""',
    "",
    " # only a comment",
    " true",
    " Yes",
    " ~",
    " [a, 'b', \"c, d\"]",
    " []",
    " {x: 1, y: [2]}",
    " [\n  a,\n  b # why\n]",
    '\n  - one\n  - "two" # second',
    "\n- one\n- two: 2\n  deep: [x]",
    "\n  - - nested\n    - list",
    "\n  sub: 1\n  more:\n    - x",
    " |\n  literal\n   text: here\n\n  # no comment",
    " >-\n  folded\n  text",
    " |+\n  kept\n\n",
    " plain over\n  two lines",
    ' "quoted over\n  two lines"',
    " !tag value",
    " https://example.org/a#b",
    " 12:30",
    " -5",
    " größer 漢字 🎉",
    " |2\n    deep\n  x",
)
NAMES = (
    "title",
    "created",
    "tags",
    "aliases",
    "my key",
    "Ключ",
    "related",
    "a.b",
    "'quoted'",
    '"q: k"',
    "x-1",
    "updated",
)
COMMENTS = ("", "# about the next key\n", "# alone\n\n")
BODIES = ("", "body", "# Title\n\nText.\n", "\n\n---\n\nkey: no property\n")


def block_of(text: str) -> str:
    """The lines between the fences."""
    block = split(text)
    assert block is not None
    return text[block.content : block.content_end]


def oracle(text: str) -> dict[str, Any]:
    """The block as PyYAML reads it, every scalar as its text."""
    return yaml.load(block_of(text), Loader=yaml.BaseLoader) or {}


def agrees(ours: Any, theirs: Any) -> bool:
    """Whether our value is PyYAML's: the same shape, each scalar its text or what the text stands for."""
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and list(ours) == list(theirs) and all(agrees(ours[k], theirs[k]) for k in theirs)
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(agrees, ours, theirs))
    return ours == theirs or (type(ours), ours) == (type(resolve(theirs)), resolve(theirs))


def bare(name: str) -> str:
    """A name without the quotes it is written in."""
    return str(yaml.safe_load(name))


@st.composite
def notes(draw: Any) -> Written:
    """A note whose frontmatter is valid YAML, with any line end, BOM and closing fence."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=6))
    pieces = [
        (bare(name), draw(st.sampled_from(COMMENTS)) + f"{name}:{draw(st.sampled_from(VALUES))}\n") for name in names
    ]
    eol = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    head = draw(st.sampled_from(["", "\ufeff"])) + "---" + draw(st.sampled_from(["", " "])) + "\n"
    tail = draw(st.sampled_from(["---", "---  ", "..."])) + "\n" + draw(st.sampled_from(BODIES))
    return Written(
        head.replace("\n", eol),
        tuple((name, lines.replace("\n", eol)) for name, lines in pieces),
        tail.replace("\n", eol),
    )


TEXTS = st.one_of(
    st.sampled_from(
        [
            "yes",
            "No",
            "on",
            "y",
            "null",
            "~",
            "",
            "007",
            "1.50",
            "-5",
            "1e5",
            "0x1F",
            "12:30",
            ".5",
            ".inf",
            "=",
            "<<",
            "2026-11-30",
            "2026-11-30T14:05:09+01:00",
            "2026-13-45",
            "2026-1-5 10:00:00",
            "[[Foo]]",
            "see [[Foo]]",
            "a: b",
            "a:",
            "a #b",
            "#tag",
            "- x",
            "---",
            "...",
            "@me",
            "`x`",
            "%d",
            "!x",
            "&a",
            "*a",
            "? x",
            "{a}",
            "[a]",
            "a, b",
            '"',
            "'",
            "\\",
            " lead",
            "trail ",
            "tab\tin",
            "two\nlines",
            "cr\rhere",
            "\x00",
            "\x85",
            "\u2028",
            "\ufeff",
            "\xa0nbsp",
            "漢字",
            "🎉",
            "1_000",
            "2026-11-30 plan",
            "C:\\dir",
            "http://x.example/a#b",
            "1.0e+16",
            "...dots",
        ]
    ),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12),
)
