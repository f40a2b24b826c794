"""Lines that wait for the same place are written together, so that a drain does not write a note once for each (6.2).

Only list items of one line take part: such lines, added together, are the very bytes they make one after the other. A
line that stands there already is not added, so a run that is killed half-way can be made again. Whatever goes wrong
leaves all lines waiting, to be replayed one by one.
"""
from __future__ import annotations

import re
import unicodedata
from contextlib import ExitStack
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from echo_context import Envelope, OpContext, ok
from echo_core import markdown
from echo_core.catalog.notebytes import decode
from echo_core.guards import refuse_secrets
from echo_core.paths import is_note
from echo_core.vault.base import version_of
from echo_edits import edit_note, must_exist
from echo_notes import route_warnings, writable_note
from echo_queue import Outbox
from echo_queue_rows import Intent, Running, call_of

TOOL = "echo_append_note"
LEAST = 2
"""Fewer lines gain nothing."""
_ITEM = re.compile(r"- \w(?:[^^\r\n\v\f\x1c-\x1e\x85\u2028\u2029]*[^\s^])?")
"""Without a block id, which wants to stay the end of its block."""


class Place(NamedTuple):
    """Where lines go: the note's path, and the heading the calls name, "" for the end of the note."""

    path: str
    section: str

    @property
    def note(self) -> str:
        """The same for every spelling of the path that may be one file."""
        return unicodedata.normalize("NFC", self.path).casefold()


Part = Union[Intent, List[Intent]]


def parts_of(page: Sequence[Intent], now: float) -> Iterator[Part]:
    """The writes in an order that keeps that of each note: single ones, and lists of those that may go together.

    What is no plain line is a border: lines from before it never come after it. now: seconds since the epoch.
    """
    gathered: Dict[str, Tuple[Place, List[Intent]]] = {}
    for intent in page:
        place = _place_of(intent, now)
        if place is None or gathered.get(place.note, (place,))[0] != place:
            yield from _gathered(gathered)
            gathered = {}
        if place is None:
            yield intent
        else:
            gathered.setdefault(place.note, (place, []))[1].append(intent)
    yield from _gathered(gathered)


def _gathered(gathered: Dict[str, Tuple[Place, List[Intent]]]) -> Iterator[Part]:
    for _, intents in gathered.values():
        if len(intents) < LEAST:
            yield from intents
        else:
            yield intents


def _place_of(intent: Intent, now: float) -> Optional[Place]:
    """Where the line of a write goes; None for a write that has to be made by itself."""
    values = intent.arguments
    plain = intent.tool == TOOL and not values.keys() - {"path", "line", "section"}
    if not plain or intent.first is not None or intent.tries or intent.again_at > now:
        return None
    path, line, section = (values.get(name, "") for name in ("path", "line", "section"))
    if not all(isinstance(value, str) for value in (path, line, section)):
        return None
    # A name may mean a note that another line names by its path, and the lines of a note keep their order.
    return Place(path, section) if is_note(path) and _ITEM.fullmatch(line) else None


def write_together(intents: Sequence[Intent], outbox: Outbox, ctx: OpContext) -> List[str]:
    """Claim the writes and make them with one edit of their note; returns the op ids of those that are done.

    None are done when anything is in the way; they wait as before then. Raises sqlite3.Error and OSError of the outbox.
    """
    claimed = outbox.claim_all([intent.op_id for intent in intents])
    mine = [intent for intent in intents if intent.op_id in claimed]
    if not mine:
        return []
    ops = [Running(intent.op_id, intent.tool, intent.arguments, intent.instant,
                   call_of(intent.tool, intent.arguments), stored=True) for intent in mine]
    with ExitStack() as running:
        for op in reversed(ops):  # the first one is the write's own: history knows it by that
            running.enter_context(outbox.carrying_out(op))
        done = False
        try:
            answers, targets = _added(mine, ops[0], ctx)
            done = True
        except Exception:  # whoever replays them one by one finds out which one it is, and what it means
            return []
        finally:
            if not done:
                outbox.wait_all(claimed)
        for op in ops:
            op.targets.update(targets)
        outbox.finish_all(list(zip(ops, answers)))
    return [op.op_id for op in ops]


def _added(intents: Sequence[Intent], leader: Running, ctx: OpContext) -> Tuple[List[Envelope], Dict[str, str]]:
    """The answers, and the version of the note; every line stands in it now. Raises EchoError."""
    place = Place(str(intents[0].arguments["path"]), str(intents[0].arguments.get("section") or ""))
    lines = [str(intent.arguments["line"]) for intent in intents]
    if not ctx.allow_secrets:
        for line in lines:
            refuse_secrets(line, "line")
    ctx.vault.note_context(TOOL, leader.op_id)
    then = ctx.varied(clock=ctx.clock.at(leader.instant), running=leader, queue=None, flush=None, resumed=None)
    then.fresh()
    path = writable_note(place.path, then)
    new: List[str] = []

    def surgery(text: Optional[str]) -> str:
        note = must_exist(path, text, then)
        heading = markdown.find_heading(note, place.section) if place.section else None
        new[:] = markdown.missing_lines(note, lines, heading)
        return markdown.append_text(note, "\n".join(new), heading) if new else note

    edited = edit_note(then, path, surgery)
    version, warnings = version_of(edited.after), route_warnings(path, then)
    numbers, added = _numbers(edited.after), set(new)
    answers = []
    for intent, line in zip(intents, lines):
        action = "appended" if line in added else "unchanged"
        added.discard(line)
        answers.append({**ok(action, path=path, version=version, line=numbers.get(line), warnings=warnings),
                        "op_id": intent.op_id})
    return answers, {path: version}


def _numbers(data: bytes) -> Dict[str, int]:
    """The 1-based number of the first line of each text."""
    found: Dict[str, int] = {}
    for number, line in enumerate(decode(data)[0].replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        found.setdefault(line.strip(), number)
    return found
