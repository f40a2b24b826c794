"""How often each term stands in each field of one passage, packed into a few hundred bytes (spec 5.1).

With these and the statistics of all passages a passage is scored without its text, by whatever engine it was found.
"""
from __future__ import annotations

import struct
from array import array
from collections import Counter
from typing import Dict, Mapping, Sequence, Tuple

from echo_core.bm25 import FIELD_WEIGHTS

FIELDS: Tuple[str, ...] = tuple(FIELD_WEIGHTS)
"""The fields in the order of their numbers."""

_FIELD_BITS = 3
_HEAD = struct.Struct(f"<{len(FIELDS)}I")
_KEY = array("I").itemsize
_MOST = 255


def key_of(term: int, field: int) -> int:
    """The key of a term in a field. term: its number in the store; field: its place in FIELDS."""
    return term << _FIELD_BITS | field


def split_key(key: int) -> Tuple[int, int]:
    """(number of the term, number of the field) of a key."""
    return key >> _FIELD_BITS, key & (1 << _FIELD_BITS) - 1


def packed(fields: Mapping[str, Sequence[str]], numbers: Mapping[str, int]) -> bytes:
    """The counts of a passage. fields: name -> tokens; numbers: of every token in them. Counts above 255 are cut."""
    counts: Dict[int, int] = {}
    for number, name in enumerate(FIELDS):
        for term, count in Counter(fields.get(name, ())).items():
            counts[numbers[term] << _FIELD_BITS | number] = count if count < _MOST else _MOST
    keys = array("I", sorted(counts))
    lengths = (len(fields.get(name, ())) for name in FIELDS)
    return _HEAD.pack(*lengths) + keys.tobytes() + bytes([counts[key] for key in keys])


class TermCounts:
    """The counts of one passage, read from what `packed` gave.

    lengths: tokens of each field, in the order of FIELDS. keys: of all terms in it, ascending; counts: of each of them.
    Raises ValueError when the bytes are not what `packed` gives.
    """

    __slots__ = ("counts", "keys", "lengths")

    def __init__(self, data: bytes) -> None:
        size = len(data) - _HEAD.size
        if size < 0 or size % (_KEY + 1):
            raise ValueError("no term counts")
        self.lengths = _HEAD.unpack_from(data)
        end = _HEAD.size + size // (_KEY + 1) * _KEY
        self.keys = memoryview(data)[_HEAD.size:end].cast("I")
        self.counts = memoryview(data)[end:]
