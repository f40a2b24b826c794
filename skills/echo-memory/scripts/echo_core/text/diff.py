"""Bytes of notes as lines: where two texts differ, where lines stand."""
from __future__ import annotations

from typing import Iterator, List, Tuple

_AROUND = (b"", b"\n", b"\r")


def common_line_ends(one: bytes, other: bytes) -> Tuple[int, int]:
    """Lengths of the common start and of the common end of two texts; what lies between is whole lines in both.

    Lines added behind a last line without its end begin with that end.
    """
    end_of_line = line_end(other)
    most = min(len(one), len(other))
    start = _same(one, other, most)
    longer = one if len(one) > len(other) else other
    if start < most or longer[start:start + 1] not in (b"\n", b"\r", b""):
        start = one.rfind(end_of_line, 0, start) + 1
    rest, other_rest = one[start:], other[start:]
    end = _same(rest[::-1], other_rest[::-1], min(len(rest), len(other_rest)))
    while end and not (_begins_line(rest, len(rest) - end, end_of_line)
                       and _begins_line(other_rest, len(other_rest) - end, end_of_line)):
        step = rest.find(end_of_line, len(rest) - end)
        end = 0 if step < 0 else len(rest) - step - 1
    return start, end


def line_end(text: bytes) -> bytes:
    """The byte that ends a line of `text`: a newline, or a carriage return where there is no newline at all."""
    return b"\r" if b"\r" in text and b"\n" not in text else b"\n"


def lines_of(text: bytes) -> List[bytes]:
    """The lines of a text with their ends."""
    end_of_line = line_end(text)
    lines = [line + end_of_line for line in text.split(end_of_line)]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def places_of(lines: bytes, text: bytes) -> Iterator[int]:
    """Where whole lines stand in `text`: the offsets at which they begin. lines: without the last one's end."""
    at = text.find(lines)
    while at >= 0:
        if text[at - 1:at] in _AROUND and text[at + len(lines):at + len(lines) + 1] in _AROUND:
            yield at
        at = text.find(lines, at + 1)


def _begins_line(text: bytes, at: int, end_of_line: bytes) -> bool:
    return at == 0 or text[at - 1:at] == end_of_line


def _same(one: bytes, other: bytes, most: int) -> int:
    """How many leading bytes are the same, by halving: notes may be large."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
