"""Blocks that carry an id (`text ^id`): finding and editing them, the id kept (spec 3.2, `target_type: block`)."""
from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from echo_core.errors import InvalidArgument, InvalidTarget
from echo_core.markdown.edit import OPERATIONS, keeps_surroundings
from echo_core.markdown.headings import addresses, headings, printable
from echo_core.markdown.lines import BLANK, FRONT, GAP, TEXT, Line, detect_eol
from echo_core.markdown.scan import scan

_EOL = re.compile(r"\r\n|\r|\n")
_ID = re.compile(r"(?:^|(?<=[ \t>]))\^(?P<id>[A-Za-z0-9-]+)[ \t]*$")
_MARKS = re.compile(
    r"\ufeff?(?P<quotes>(?:[ \t]*>)*)(?P<items>(?:[ \t]*(?:[-+*]|[0-9]{1,9}[.)])(?=[ \t]))*)[ \t]*"
    r"(?P<task>\[[^\]\r\n]\][ \t]+)?")
_ITEM = re.compile(r"(?:[-+*]|[0-9]{1,9}[.)])[ \t]+")


class Block(NamedTuple):
    """A block with an id, offsets in characters.

    `start` to `end` is its text without container marks and id, `id_start` to `id_end` the `^id`; `item_start` is
    where its list marker starts (`start` when it is no list item); `prefix` what further lines of it begin with;
    `alone` whether the id stands on a line of its own below the block.
    """

    block_id: str
    start: int
    end: int
    id_start: int
    id_end: int
    item_start: int
    prefix: str
    alone: bool


def blocks_by_id(text: str) -> Dict[str, List[Block]]:
    """All blocks with an id; several under one id when the note repeats it."""
    found: Dict[str, List[Block]] = {}
    if "^" not in text:
        return found
    lines = scan(text)
    for index, line in enumerate(lines):
        match = _ID.search(text[line.start:line.end]) if line.kind == TEXT else None
        if not match or (index + 1 < len(lines) and _same_paragraph(line, lines[index + 1])):
            continue
        block = _block(text, lines, index, match)
        if block:
            found.setdefault(block.block_id, []).append(block)
    return found


def find_block(text: str, block_id: str) -> Block:
    """The one block with this id (with or without `^`). InvalidTarget with `blocks` when none or several have it."""
    wanted = block_id.strip().lstrip("#^")
    known = blocks_by_id(text)
    fitting = known.get(wanted) or [
        block for name, blocks in known.items() if name.casefold() == wanted.casefold() for block in blocks]
    if len(fitting) == 1:
        return fitting[0]
    problem = f"{len(fitting)} blocks have" if fitting else "no block has"
    raise InvalidTarget(f"{problem} the id {printable(wanted)!r}", "Use one of `blocks`.", blocks=sorted(known),
                        headings=addresses(headings(text)))


def edit_block(text: str, block_id: str, operation: str, content: str) -> str:
    """The text with the block's text extended or replaced; its id and its list or quote marks stay.

    append and prepend join with one space unless `content` brings its own white space; a block whose id stands
    below it (table, code, quote) gets whole lines. InvalidTarget as in `find_block`; InvalidArgument for another
    operation and for content that would change what stands around it or take over the id.
    """
    if operation not in OPERATIONS:
        raise InvalidArgument(f"no such operation; one of {', '.join(OPERATIONS)}", field="operation")
    block = find_block(text, block_id)
    content = _without_id(content.strip("\r\n") if operation != "append" else content.rstrip("\r\n"), block.block_id)
    if not content.strip() and operation != "replace":
        return text
    start, end, piece = _change(block, operation, content)
    eol = detect_eol(text)
    new = text[:start] + _EOL.sub(lambda _: eol + block.prefix, piece) + text[end:]
    if not _still_there(text, new, block):
        raise InvalidArgument("the content would take the block apart", "Send text of the block's own kind.",
                              field="content")
    return new


def _change(block: Block, operation: str, content: str) -> Tuple[int, int, str]:
    """What is put where: start, end and new text, which begins each further line without the block's prefix."""
    if operation == "replace":
        bare = content.lstrip(" \t")
        is_item = block.item_start < block.start and _ITEM.match(bare)
        return (block.item_start, block.end, bare) if is_item else (block.start, block.end, content)
    if operation == "append":
        if block.alone:
            return block.end, block.end, "\n" + content.lstrip("\r\n")
        return block.end, block.end, content if content[0] in " \t\r\n" else " " + content
    glue = "\n" if block.alone else "" if content[-1] in " \t" else " "
    return block.start, block.start, content + glue


def _without_id(content: str, block_id: str) -> str:
    """The content without the block's own id at its end, which the note has already."""
    match = _ID.search(content)
    return content[:match.start()].rstrip() if match and match.group("id") == block_id else content


def _still_there(old: str, new: str, block: Block) -> bool:
    """Whether the id still names a block that starts where it did, and nothing around it became something else."""
    found = blocks_by_id(new).get(block.block_id, [])
    if len(found) != 1 or found[0].start < block.item_start or _EOL.search(new, block.item_start, found[0].start):
        return False
    lines = scan(old)
    inside = [line for line in lines if line.stop > block.start and line.start < block.id_end]
    return keeps_surroundings(lines, scan(new), inside[0].start, inside[-1].stop)


def _same_paragraph(line: Line, other: Line) -> bool:
    return other.kind == TEXT and other.block == line.block


def _block(text: str, lines: Sequence[Line], index: int, match: "re.Match[str]") -> Optional[Block]:
    """The block that the id at the end of line `index` names; None when there is nothing above a lone id."""
    line = lines[index]
    id_start, id_end = line.start + match.start(), line.start + match.end()
    marks = _MARKS.match(text, line.start, line.end)
    alone = marks is not None and marks.end() == id_start
    first = last = index
    while first and _same_paragraph(line, lines[first - 1]):
        first -= 1
    if alone:
        last = index - 1
        while first == index and last >= 0 and lines[last].kind in (BLANK, GAP):
            last -= 1
        if last < 0 or lines[last].kind == FRONT:
            return None
        if first == index:
            first = _first_of_block(lines, last, line.depth)
    end = lines[last].end if alone else line.start + len(text[line.start:id_start].rstrip(" \t"))
    whole = alone and (lines[first].kind != TEXT or line.depth < lines[first].depth)
    return _placed(text, lines[first], whole, Block(match.group("id"), 0, end, id_start, id_end, 0, "", alone))


def _first_of_block(lines: Sequence[Line], last: int, depth: int) -> int:
    """Index of the first line of the block that ends with line `last`: the whole list or quote for an id outside it."""
    end = lines[last]
    found = last
    for index in range(last - 1, -1, -1):
        line = lines[index]
        if line.kind == BLANK:
            continue
        same = line.root == end.root if end.root and not depth else (line.block, line.depth) == (end.block, end.depth)
        if not same:
            break
        found = index
    return found


def _placed(text: str, line: Line, whole: bool, block: Block) -> Block:
    """`block` with its start, list marker and prefix, by its first line; `whole` lines carry no marks of their own."""
    marks = _MARKS.match(text, line.start, line.end)
    if whole or not marks:
        return block._replace(start=line.start, item_start=line.start)
    items = marks.group("items")
    start = marks.end()
    item_start = marks.end("quotes") + len(items) - len(items.lstrip(" \t")) if items else start
    indent = text[line.start:marks.start("task") if marks.group("task") else start].lstrip("\ufeff")
    return block._replace(start=start, item_start=item_start, prefix=re.sub(r"[^>\t]", " ", indent))
