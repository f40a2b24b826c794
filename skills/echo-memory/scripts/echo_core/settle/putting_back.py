"""Where a piece that a note lacks goes back to (spec 6.1)."""
from __future__ import annotations

from typing import Iterator, List, Optional, Sequence, Tuple

from echo_core.catalog.notebytes import decode
from echo_core.frontmatter import parse
from echo_core.settle.pieces import CONTEXT_BYTES, Piece, core_of, missing_from
from echo_core.text.diff import line_end, lines_of, places_of

_CONTEXT_LINES = (3, 2, 1)
_LIST = (b"-", b"*", b"+", b">", b"|")


def put_back(
    piece: Piece, text: bytes, earlier: Sequence[Piece] = (), later: Sequence[Piece] = (),
) -> Optional[bytes]:
    """`text` with the piece that it lacks; None when its place is gone or somebody else's text is there.

    earlier, later: pieces that it has to stand behind and before, as far as they stand in `text`. A replacement goes
    back only when it belonged to a write that also added, and what it replaced is untouched.
    """
    if not piece.only_adds:
        return _replaced_again(piece, text) if piece.mixed and piece.added.strip() else None
    result: Optional[bytes] = text
    for above, added, below in _runs(piece, text):
        at = None if result is None else _place(above, below, piece.offset, result)
        if result is not None:
            result = None if at is None else _inserted(added, _between(at, earlier, later, result), result)
    return None if result is None or _spoils_block(text, result) else result


def _runs(piece: Piece, text: bytes) -> Iterator[Tuple[bytes, bytes, bytes]]:
    """What has to go back: the text above, the lines, the text below; somebody may have added some lines too."""
    missing = set(missing_from(piece, text))
    if not piece.created and len(missing) == len(piece.marks):
        yield piece.above, piece.added, piece.below
        return
    lines = lines_of(piece.added)
    gone = [number for number, line in enumerate(lines) if core_of(line) in missing]
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


def _between(at: int, earlier: Sequence[Piece], later: Sequence[Piece], text: bytes) -> int:
    """The offset moved behind the earlier and before the later pieces; the order of our own writes is kept."""
    ends = [start + len(core_of(piece.added)) for piece in earlier for start in _once(piece, text)]
    starts = [start for piece in later for start in _once(piece, text)]
    behind = max([at, *(text.find(line_end(text), end) + 1 or len(text) for end in ends)])
    return min([behind, *starts])


def _once(piece: Piece, text: bytes) -> List[int]:
    """Where a piece stands, when it stands in one place only."""
    places = list(places_of(core_of(piece.added), text)) if piece.added.strip() else []
    return places if len(places) == 1 else []


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
    old = core_of(piece.removed)
    places = list(places_of(old, text))
    if len(places) != 1:
        return None
    result = text[:places[0]] + core_of(piece.added) + text[places[0] + len(old):]
    return None if _spoils_block(text, result) else result


def _spoils_block(text: bytes, result: bytes) -> bool:
    """Whether the frontmatter could be read and cannot any more, for example since a key would stand twice."""
    return bool(parse(decode(result)[0]).malformed) and not parse(decode(text)[0]).malformed
