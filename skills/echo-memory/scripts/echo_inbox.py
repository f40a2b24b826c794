"""The inbox as items: reading its bullets, naming them, taking exactly one out (spec 2.1, 3.2)."""
from __future__ import annotations

import hashlib
import re
from collections import Counter
from datetime import date
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from echo_context import OpContext, bounded
from echo_core.catalog.notebytes import displayable, encode
from echo_core.errors import Ambiguous, NotFound
from echo_core.kinds import INBOX
from echo_core.markdown.lines import CODE, FENCE, FRONT, INDENTED, RAW
from echo_core.markdown.scan import scan
from echo_core.text import one_line, plural
from echo_edits import read_text

AGING_DAYS = 7
"""Age in days beyond which an item counts as aging (spec 3.4)."""
SHOWN_CHARS = 300
"""Longest text of one item in a listing."""

_NO_BULLET = frozenset({FRONT, FENCE, CODE, INDENTED, RAW})
_BULLET = re.compile(r"[ \t]*[-*+][ \t]+(?:\[[^\]]?\][ \t]+)?(?P<content>\S.*)")
_DATED = re.compile(r"(?P<date>\d{4}-\d{2}-\d{2}):?(?:[ \t]+|$)(?P<text>.*)")
_TRAILING_TAGS = re.compile(r"(?:(?:^|\s+)#(?=[\w/-]*[^\W\d])[\w/-]+)+\s*$")


class Item(NamedTuple):
    """One bullet of the inbox.

    id: 8 hex of the line's SHA-256, with `-2`, `-3` for its exact repeats. line: the whole line without its end.
    nth: which of its exact repeats it is, from 1. text: what it says, without bullet, date and trailing tags.
    content: text and tags as written. day: None when the line has no date.
    """

    id: str
    line: str
    nth: int
    text: str
    content: str
    day: Optional[date]
    tags: Tuple[str, ...]
    start: int
    stop: int


def items_of(text: str) -> List[Item]:
    """The items of an inbox note, in its order; code, comments and frontmatter hold none."""
    seen: Counter[str] = Counter()
    items = []
    for span in scan(text):
        line = text[span.start:span.end]
        bullet = None if span.kind in _NO_BULLET else _BULLET.fullmatch(line)
        if bullet:
            seen[line] += 1
            items.append(_item(line, seen[line], bullet.group("content").rstrip(), span.start, span.stop))
    return items


def read_items(ctx: OpContext) -> List[Item]:
    """The items of the vault's inbox; none when there is no inbox. Raises vault errors."""
    return items_of(read_text(ctx, INBOX) or "")


def age_days(item: Item, today: date) -> Optional[int]:
    """Whole days since the item's date, 0 for one from the future, None without a date."""
    return None if item.day is None else max(0, (today - item.day).days)


def aging(items: Sequence[Item], today: date) -> List[Item]:
    """The items older than AGING_DAYS."""
    return [item for item in items if (age_days(item, today) or 0) > AGING_DAYS]


def shown(item: Item, today: date) -> Dict[str, Any]:
    """An item of a listing: `{id, text, date, age_days, tags}`; a cut text has `truncated` and `total_chars`."""
    return {
        "id": item.id, **bounded("text", displayable(item.text), SHOWN_CHARS),
        "date": item.day.isoformat() if item.day else "", "age_days": age_days(item, today),
        "tags": [displayable(tag) for tag in item.tags],
    }


def item_of(line: str, nth: int) -> Item:
    """The item that a line of the inbox is, as the nth of its exact repeats; its place is not known."""
    return items_of(line)[0]._replace(nth=nth)


def find_item(items: Sequence[Item], ref: str) -> Item:
    """The item that `ref` names: its id, its text, its text with tags, or its whole line.

    Raises NotFound with the nearest items and Ambiguous when different lines say the same.
    """
    by_id = [item for item in items if item.id == ref]
    wanted = one_line(ref)
    found = by_id or [item for item in items if wanted in _spellings(item)]
    if len({item.line for item in found}) > 1:
        raise Ambiguous(
            f"{plural(len(found), 'inbox line')} have this text", hint="Use the id from the listing.",
            candidates=[_candidate(item) for item in found[:10]],
        )
    if found:
        return found[0]
    raise NotFound(
        "there is no such inbox line", hint="List the inbox again and use an id from it.", path=INBOX,
        candidates=[_candidate(item) for item in items[:5]],
    )


def without_item(text: str, line: str, nth: int) -> str:
    """The inbox without the nth item that is exactly `line`; every other byte stays. Equal text when it is gone."""
    found = [item for item in items_of(text) if item.line == line]
    if len(found) < nth:
        return text
    return text[:found[nth - 1].start] + text[found[nth - 1].stop:]


def _item(line: str, nth: int, content: str, start: int, stop: int) -> Item:
    dated = _DATED.fullmatch(content)
    day = _day(dated.group("date")) if dated else None
    if dated and day:
        content = dated.group("text")
    tags = _TRAILING_TAGS.search(content)
    name = hashlib.sha256(encode(line)).hexdigest()[:8]
    return Item(
        id=name if nth == 1 else f"{name}-{nth}", line=line, nth=nth,
        text=content[:tags.start()].rstrip() if tags else content, content=content, day=day,
        tags=tuple(tag.lstrip("#") for tag in tags.group().split()) if tags else (), start=start, stop=stop,
    )


def _day(text: str) -> Optional[date]:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _spellings(item: Item) -> Tuple[str, ...]:
    return tuple(one_line(displayable(text)) for text in (item.text, item.content, item.line))


def _candidate(item: Item) -> Dict[str, Any]:
    return {"id": item.id, **bounded("text", displayable(item.text), 120)}
