"""A small fingerprint of a note's body, to find likely copies without reading every note again (spec 3.2).

It is a bottom-k sketch: the smallest hashes of all runs of five words. Two bodies that share most of their runs
share most of the smallest hashes; whoever finds a likely copy compares the texts themselves.
"""
from __future__ import annotations

import itertools
import re
import zlib
from typing import List, Sequence

from echo_core.markdown import Heading
from echo_core.text.boundaries import SPACELESS

RUN = 5
KEPT = 8
ENOUGH = 3
"""Hashes two sketches must share before the bodies are worth a comparison."""

_WORD = re.compile(r"[^\W_]+")
_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")
_LONGEST = 200_000


def body_of(text: str, body_offset: int, found: Sequence[Heading]) -> str:
    """What a note says itself: without frontmatter, its level-1 title and a closing Related section.

    found: all headings of `text`.
    """
    start = found[0].content_start if found and found[0].level == 1 else body_offset
    end = found[-1].start if found and found[-1].title == "Related" else len(text)
    return text[start:max(start, end)]


def sketch(body: str) -> List[int]:
    """At most 8 hashes that stand for the body, ascending; empty for one of fewer than five words.

    Case and links do not count: a body and the same body with its mentions linked have one sketch.
    """
    words = _words(_LINK.sub(r"\1", body[:_LONGEST]).casefold())
    joined = " ".join(words).encode("utf-8", "replace")
    ends = list(itertools.accumulate(len(word.encode("utf-8", "replace")) + 1 for word in words))
    starts = [0, *ends]
    hashes = {zlib.crc32(joined[start:end - 1]) for start, end in zip(starts, ends[RUN - 1:])}
    return sorted(hashes)[:KEPT]


def alike(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether two sketches are close enough for the bodies to be compared."""
    return len(set(one) & set(other)) >= min(ENOUGH, len(one), len(other)) > 0


def _words(text: str) -> List[str]:
    """Words; in scripts that write no blanks every character is one."""
    words = _WORD.findall(text)
    if not SPACELESS.search(text):
        return words
    return [part for word in words for part in (word if SPACELESS.search(word) else (word,))]
