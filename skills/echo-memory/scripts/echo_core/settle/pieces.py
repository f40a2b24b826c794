"""What a write changed in a note, in pieces that can be looked for later and put back (spec 6.1).

A vault without compare-and-swap may lose a write that was acknowledged: somebody else's write, made from what stood
there before ours, takes its place. What then stands there holds everything but our pieces.
"""
from __future__ import annotations

from difflib import SequenceMatcher
from typing import Iterator, List, NamedTuple, Optional, Tuple

from echo_core.text.diff import common_line_ends, lines_of, places_of

CONTEXT_BYTES = 1024
"""How much of the text around a piece is kept to find its place again."""
_MOST_STEPS = 250_000
"""Lines times lines beyond which a change is taken as one piece."""
_MOST_MARKS = 200
_STAMP = b"updated:"


class Piece(NamedTuple):
    """One place that a write changed, in whole lines.

    added, removed: what came and what went. above, below: the text around it. offset: where it began. times: how
    often `added` stood in the note afterwards; of a mere removal, how often `removed` did. marks: the lines of `added`
    that stood nowhere before. created: the piece is a whole new note. mixed: the same write also merely added.
    """

    added: bytes
    removed: bytes
    above: bytes
    below: bytes
    offset: int
    times: int
    marks: Tuple[bytes, ...]
    created: bool = False
    mixed: bool = False

    @property
    def only_adds(self) -> bool:
        """Whether nothing had to go for it."""
        return not self.removed.strip()

    def replaces_at(self, other: Piece) -> bool:
        """Whether both replaced what stood below the same line."""
        return not (self.only_adds or other.only_adds) and said(self.above)[-1:] == said(other.above)[-1:]

    def stacks_with(self, other: Piece) -> bool:
        """Whether both were added above the same line, or at the end: the later one stands below the earlier one."""
        return self.only_adds and other.only_adds and said(self.below)[:1] == said(other.below)[:1]


def pieces_of(before: Optional[bytes], after: bytes) -> List[Piece]:
    """The pieces of a write, in the order of the note; before None: it created the note.

    Blank lines and a new `updated` stamp are no pieces.
    """
    if before is None:
        marks = tuple(dict.fromkeys(said(after)))
        return [Piece(after, b"", b"", b"", 0, 1, marks, created=True)] if marks else []
    found = [_piece(before, after, *step) for step in _steps(before, after)]
    pieces = [piece for piece in found if (piece.added.strip() or piece.removed.strip()) and not _is_stamp(piece)]
    mixed = any(piece.only_adds for piece in pieces)
    return [piece._replace(mixed=mixed) for piece in pieces]


def stands(piece: Piece, text: bytes) -> bool:
    """Whether the note still says what the piece made it say; its lines may stand elsewhere by now."""
    core = core_of(piece.added)
    if not core:
        return count(core_of(piece.removed), text) <= piece.times
    if count(core, text) >= piece.times:
        return True
    return bool(piece.marks) and not missing_from(piece, text)


def _steps(before: bytes, after: bytes) -> Iterator[Tuple[int, int, int, int]]:
    """Where both texts differ: start and end in `before`, start and end in `after`."""
    start, end = common_line_ends(before, after)
    old, new = before[start:len(before) - end], after[start:len(after) - end]
    old_lines, new_lines = lines_of(old), lines_of(new)
    if not old or not new or len(old_lines) * len(new_lines) > _MOST_STEPS:
        yield start, start + len(old), start, start + len(new)
        return
    for kind, a, b, c, d in SequenceMatcher(None, old_lines, new_lines, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        # Keys of a frontmatter that changed side by side are pieces of their own.
        single = [(a + n, a + n + 1, c + n, c + n + 1) for n in range(b - a)] if b - a == d - c else [(a, b, c, d)]
        for first, last, new_first, new_last in single:
            at, there = start + len(b"".join(old_lines[:first])), start + len(b"".join(new_lines[:new_first]))
            yield (at, at + len(b"".join(old_lines[first:last])),
                   there, there + len(b"".join(new_lines[new_first:new_last])))


def _piece(before: bytes, after: bytes, start: int, end: int, new_start: int, new_end: int) -> Piece:
    added, removed = after[new_start:new_end], before[start:end]
    marks = dict.fromkeys(line for line in said(added) if not count(line, before))
    core = core_of(added) or core_of(removed)
    return Piece(
        added, removed, before[max(0, start - CONTEXT_BYTES):start], before[end:end + CONTEXT_BYTES], start,
        count(core, after), tuple(marks)[:_MOST_MARKS],
    )


def _is_stamp(piece: Piece) -> bool:
    return piece.added.startswith(_STAMP) and len(lines_of(piece.added)) == 1


def said(text: bytes) -> List[bytes]:
    """The lines that say something, without their ends."""
    return [core_of(line) for line in lines_of(text) if line.strip()]


def core_of(text: bytes) -> bytes:
    """Lines without what ends the last one and blank lines around them."""
    return text.strip(b"\r\n")


def count(lines: bytes, text: bytes) -> int:
    """How often these whole lines stand in `text`."""
    return sum(1 for _ in places_of(lines, text)) if lines else 0


def missing_from(piece: Piece, text: bytes) -> List[bytes]:
    """The marks that do not stand in `text`."""
    return [mark for mark in piece.marks if not count(mark, text)]
