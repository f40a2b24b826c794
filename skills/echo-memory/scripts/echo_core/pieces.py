"""What a write changed in a note, in pieces that can be looked for later and put back (spec 6.1).

A vault without compare-and-swap may lose a write that was acknowledged: somebody else's write, made from what stood
there before ours, takes its place. What then stands there holds everything but our pieces.
"""
from __future__ import annotations

from difflib import SequenceMatcher
from typing import Iterator, List, NamedTuple, Optional, Tuple

from echo_core.frontmatter import parse
from echo_core.notebytes import decode
from echo_core.textdiff import common_line_ends, line_end, lines_of, places_of

CONTEXT_BYTES = 1024
"""How much of the text around a piece is kept to find its place again."""
_CONTEXT_LINES = (3, 2, 1)
_MOST_STEPS = 250_000
"""Lines times lines beyond which a change is taken as one piece."""
_MOST_MARKS = 200
_LIST = (b"-", b"*", b"+", b">", b"|")
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
        return not (self.only_adds or other.only_adds) and _said(self.above)[-1:] == _said(other.above)[-1:]


def pieces_of(before: Optional[bytes], after: bytes) -> List[Piece]:
    """The pieces of a write, in the order of the note; before None: it created the note.

    Blank lines and a new `updated` stamp are no pieces.
    """
    if before is None:
        marks = tuple(dict.fromkeys(_said(after)))
        return [Piece(after, b"", b"", b"", 0, 1, marks, created=True)] if marks else []
    found = [_piece(before, after, *step) for step in _steps(before, after)]
    pieces = [piece for piece in found if (piece.added.strip() or piece.removed.strip()) and not _is_stamp(piece)]
    mixed = any(piece.only_adds for piece in pieces)
    return [piece._replace(mixed=mixed) for piece in pieces]


def stands(piece: Piece, text: bytes) -> bool:
    """Whether the note still says what the piece made it say; its lines may stand elsewhere by now."""
    core = _core(piece.added)
    if not core:
        return _count(_core(piece.removed), text) <= piece.times
    if _count(core, text) >= piece.times:
        return True
    return bool(piece.marks) and not _missing(piece, text)


def put_back(piece: Piece, text: bytes) -> Optional[bytes]:
    """`text` with the piece that it lacks; None when its place is gone or somebody else's text is there.

    A replacement goes back only when it belonged to a write that also added, and what it replaced is untouched.
    """
    if not piece.only_adds:
        return _replaced_again(piece, text) if piece.mixed and piece.added.strip() else None
    result: Optional[bytes] = text
    for above, added, below in _runs(piece, text):
        at = None if result is None else _place(above, below, piece.offset, result)
        result = None if result is None or at is None else _inserted(added, at, result)
    return None if result is None or _spoils_block(text, result) else result


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
    marks = dict.fromkeys(line for line in _said(added) if not _count(line, before))
    core = _core(added) or _core(removed)
    return Piece(
        added, removed, before[max(0, start - CONTEXT_BYTES):start], before[end:end + CONTEXT_BYTES], start,
        _count(core, after), tuple(marks)[:_MOST_MARKS],
    )


def _is_stamp(piece: Piece) -> bool:
    return piece.added.startswith(_STAMP) and len(lines_of(piece.added)) == 1


def _said(text: bytes) -> List[bytes]:
    """The lines that say something, without their ends."""
    return [_core(line) for line in lines_of(text) if line.strip()]


def _core(text: bytes) -> bytes:
    return text.strip(b"\r\n")


def _count(lines: bytes, text: bytes) -> int:
    return sum(1 for _ in places_of(lines, text)) if lines else 0


def _missing(piece: Piece, text: bytes) -> List[bytes]:
    return [mark for mark in piece.marks if not _count(mark, text)]


def _runs(piece: Piece, text: bytes) -> Iterator[Tuple[bytes, bytes, bytes]]:
    """What has to go back: the text above, the lines, the text below; somebody may have added some lines too."""
    missing = set(_missing(piece, text))
    if not piece.created and len(missing) == len(piece.marks):
        yield piece.above, piece.added, piece.below
        return
    lines = lines_of(piece.added)
    gone = [number for number, line in enumerate(lines) if _core(line) in missing]
    while gone:
        first = last = gone.pop(0)
        while gone and not [line for line in lines[last + 1:gone[0]] if line.strip()]:
            last = gone.pop(0)
        above, below = piece.above + b"".join(lines[:first]), b"".join(lines[last + 1:]) + piece.below
        yield above[-CONTEXT_BYTES:], b"".join(lines[first:last + 1]), below[:CONTEXT_BYTES]


def _place(above: bytes, below: bytes, offset: int, text: bytes) -> Optional[int]:
    """The offset in `text` between what stood above and below, by as many lines around it as are still there."""
    if not above.strip() and not below.strip():
        return None if text.strip() else len(text)
    for number in _CONTEXT_LINES:
        last, first = _near(lines_of(above)[::-1], number)[::-1], _near(lines_of(below), number)
        ends = (at + len(b"".join(last)) for at in _found(b"".join(last), text))
        places = [at for at in ends if at == len(text) or b"\n" in text[at - 1:at + 1] or b"\r" in text[at - 1:at + 1]]
        places = places or [at for at in _found(b"".join(first), text) if text[at - 1:at] in (b"", b"\n", b"\r")]
        if places:
            return min(places, key=lambda at: abs(at - offset))
    return None


def _near(lines: List[bytes], number: int) -> List[bytes]:
    """The first of `lines` up to the one that is the `number`th to say something; none when there are not so many."""
    said = [index for index, line in enumerate(lines) if line.strip()]
    return lines[:said[number - 1] + 1] if len(said) >= number else []


def _found(wanted: bytes, text: bytes) -> Iterator[int]:
    """The offsets of `wanted` in `text`."""
    at = text.find(wanted) if wanted else -1
    while at >= 0:
        yield at
        at = text.find(wanted, at + 1)


def _inserted(added: bytes, at: int, text: bytes) -> bytes:
    """Lines put in at an offset, as lines of their own; prose stays a paragraph of its own."""
    end_of_line = line_end(text or added)
    head, tail = text[:at], text[at:]
    lines = added.lstrip(b"\r\n") if not head else added
    if head and not head.endswith(end_of_line) and not lines.startswith((b"\n", b"\r")):
        lines = end_of_line + lines
    if tail and not lines.endswith(end_of_line) and not tail.startswith((b"\n", b"\r")):
        lines += end_of_line
    prose = lines.strip() and not lines.strip().startswith(_LIST)
    if prose and tail.strip() and not tail.startswith((b"\n", b"\r", *_LIST)):
        lines += end_of_line
    return head + lines + tail


def _replaced_again(piece: Piece, text: bytes) -> Optional[bytes]:
    old = _core(piece.removed)
    places = list(places_of(old, text))
    if len(places) != 1:
        return None
    result = text[:places[0]] + _core(piece.added) + text[places[0] + len(old):]
    return None if _spoils_block(text, result) else result


def _spoils_block(text: bytes, result: bytes) -> bool:
    """Whether the frontmatter could be read and cannot any more, for example since a key would stand twice."""
    return bool(parse(decode(result)[0]).malformed) and not parse(decode(text)[0]).malformed
