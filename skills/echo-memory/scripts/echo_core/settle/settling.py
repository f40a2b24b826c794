"""What becomes of acknowledged writes that a look a moment later does not find any more (spec 6.1).

Two things look alike: somebody wrote over our text without knowing it, or knew it and took it out. The second is
certain when the note holds what we wrote later, on a text that still held the piece: whoever wrote the note since
then has seen it. Everything else is taken for the first; a person needs longer than the moment that passes.
"""
from __future__ import annotations

from typing import FrozenSet, List, NamedTuple, Optional, Sequence

from echo_core.settle.pieces import Piece, stands
from echo_core.settle.putting_back import put_back

MOST_TRIES = 8
"""How often a piece is put back before it becomes a conflict: two servers must not fight for ever."""


class Held(NamedTuple):
    """A piece on watch.

    write: number of its write, growing. first: that of the write which was no putting back. at: when it was written,
    monotonic seconds. tries: how often it was put back. later: numbers of our later writes that were made on a text
    with this piece in it. tool, op_id, sha: the call that wrote it, and the SHA-256 of the note as that left it. own:
    that note, where a conflict may need it. row: where the piece is kept, 0 for nowhere.
    """

    piece: Piece
    write: int
    at: float
    tries: int = 0
    later: FrozenSet[int] = frozenset()
    tool: str = ""
    op_id: str = ""
    sha: str = ""
    own: Optional[bytes] = None
    row: int = 0
    first: int = 0


class Judgement(NamedTuple):
    """text: the note as it should be. standing: still there. again: put back into `text`. lost: cannot be put back.

    What is in none of them was taken out by somebody who knew it, or replaced by ourselves since.
    """

    text: bytes
    standing: List[Held]
    again: List[Held]
    lost: List[Held]


def judge(watched: Sequence[Held], now: bytes, late: bool = False, settled: Sequence[Held] = ()) -> Judgement:
    """What to do about the pieces of one note that says `now`.

    late: too long after the writes to put anything back. settled: pieces that need no watch any more, for the order.
    """
    there = {held.write for held in watched if stands(held.piece, now)}
    text = now
    standing: List[Held] = []
    again: List[Held] = []
    lost: List[Held] = []
    for held in sorted(watched, key=lambda one: one.first):
        if stands(held.piece, text):
            standing.append(held)
        elif not held.later & there:
            after = None if late or held.tries >= MOST_TRIES else _back(held, [*settled, *watched], text)
            if after is not None:
                again.append(held)
                text = after
            elif not any(held.piece.replaces_at(other.piece) for other in watched if other.write > held.write
                         and other.write in there):
                lost.append(held)
    return Judgement(text, standing, again, lost)


def _back(held: Held, ours: Sequence[Held], text: bytes) -> Optional[bytes]:
    """`text` with the piece in it, in the order of our writes."""
    stacked = [other for other in ours if other is not held and held.piece.stacks_with(other.piece)]
    return put_back(held.piece, text, [other.piece for other in stacked if other.first < held.first],
                    [other.piece for other in stacked if other.first > held.first])


def seen(watched: Sequence[Held], base: bytes, write: int) -> List[Held]:
    """The pieces, knowing that our write of this number was made on the text `base`."""
    return [held._replace(later=held.later | {write}) if stands(held.piece, base) else held for held in watched]
