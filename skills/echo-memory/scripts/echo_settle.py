"""Looking again at acknowledged writes, and putting back what is gone (spec 6.1).

For vaults without compare-and-swap: two servers of different hosts may read the same note and write it one after the
other; then the first one's text is gone although its read-back found it. The server looks about a second after each
write, the command line at its next call.
"""
from __future__ import annotations

import json
import re
import time
from typing import List, NamedTuple, Optional, Sequence, Tuple

from echo_context import OpContext
from echo_core.errors import EchoError, NotFound
from echo_core.kinds import INDEX
from echo_core.settle.pieces import stands
from echo_core.settle.settling import MOST_TRIES, Held, Judgement, judge
from echo_core.settle.watch import SETTLE_S, Watch
from echo_core.text import plural
from echo_core.vault.refusals import missing
from echo_edits import edit_bytes, index_notes

LATE_S = 120.0
"""After so long a missing piece may well have been taken out by somebody; it is reported, not put back."""
ABSENT_S = 30.0
"""How long a note that is not there is looked for: Obsidian may be loading."""
RETRY_S = 3.0
"""Seconds until the next look where one failed."""
_PATH = re.compile(rb'"path": ("(?:[^"\\]|\\.)*")')


class Look(NamedTuple):
    """What a look found: pieces that were gone and are back, texts that were written over and are conflicts now."""

    put_back: int = 0
    lost: int = 0


def look(path: str, patience_s: float, *, ctx: OpContext, watch: Watch) -> Look:
    """Judge what is on watch of one note; a piece younger than `patience_s` that stands stays on watch.

    Raises what the vault raises, and NoUndo; then all of it stays on watch for another look in RETRY_S seconds.
    """
    try:
        if path == INDEX:
            _look_at_index(ctx, watch)
            return Look()
        # None of our own writes comes between taking the pieces and judging them.
        with ctx.vault.exclusive(path):
            return _judged(path, watch.take(path), patience_s, ctx, watch)
    except EchoError:
        watch.postpone(path, RETRY_S)
        raise


def catch_up(ctx: OpContext) -> None:
    """Look at what earlier calls of the command line have left on watch, the latest of them left alone.

    What fails is left for the next call, and said.
    """
    watch = ctx.watch
    if watch is None:
        return
    try:
        for path in watch.resume(SETTLE_S):
            found = look(path, SETTLE_S, ctx=ctx, watch=watch)
            if found.put_back:
                ctx.notify(f"{path} had been written over: {plural(found.put_back, 'place')} put back")
            if found.lost:
                ctx.notify(f"{path} had been written over: see `echo.py queue`")
    except EchoError as failure:
        ctx.notify(f"what was written earlier could not be looked at again: {failure.message}")


def _judged(path: str, held: Sequence[Held], patience_s: float, ctx: OpContext, watch: Watch) -> Look:
    now = time.monotonic()
    try:
        found, text = _settled(path, held, now, ctx, watch)
    except NotFound:
        left = [one for one in held if now - one.at < ABSENT_S]
        watch.hold(path, left, RETRY_S)
        watch.release(path, [one for one in held if one not in left])
        return Look()
    except EchoError:
        watch.hold(path, held, RETRY_S)
        raise
    young = [one for one in found.standing if now - one.at < patience_s]
    watch.hold(path, young, patience_s - min((now - one.at for one in young), default=0.0))
    lost = _report(path, found.lost, text, ctx, watch)
    kept = {id(one.piece) for one in (*young, *found.again)}  # what is back on watch has new rows already
    watch.release(path, [one for one in held if id(one.piece) not in kept])
    return Look(len(found.again), lost)


def _settled(
    path: str, held: Sequence[Held], now: float, ctx: OpContext, watch: Watch
) -> Tuple[Judgement, bytes]:
    """What became of the pieces, and the note with those in it that were put back."""
    late = all(now - one.at > LATE_S for one in held)
    found = Judgement(b"", [], [], [])

    def surgery(text: Optional[bytes]) -> bytes:
        nonlocal found
        if text is None:
            raise missing(path)
        found = judge(held, text, late, watch.settled(path))
        watch.puts_back(path, found.again)
        return found.text

    ctx.vault.note_context("settle", "")
    try:
        text = edit_bytes(ctx, path, surgery).after
        return found, text
    finally:
        watch.puts_back(path, ())


def _report(path: str, lost: Sequence[Held], text: bytes, ctx: OpContext, watch: Watch) -> int:
    """List the texts that somebody wrote over, and how many; what cannot be listed now stays on watch."""
    texts = {one.sha: one for one in lost}
    for number, one in enumerate(texts.values()):
        try:
            ctx.history.overwritten(path, one.own, one.sha, text, one.tool, one.op_id)
        except EchoError:
            left = list(texts)[number:]
            watch.hold(path, [other for other in lost if other.sha in left], RETRY_S)
            raise
    return len(texts)


def _look_at_index(ctx: OpContext, watch: Watch) -> None:
    """Enter again what another server's copy of the index has overwritten; the notes say what it is."""
    held = watch.take(INDEX)
    try:
        data = ctx.vault.read(INDEX)
        gone = [one for one in held if not stands(one.piece, data)]
        tries = max((one.tries for one in gone), default=MOST_TRIES)
        if tries < MOST_TRIES:
            ctx.index.look_again()
            # The entry is written anew, perhaps in other words; two servers must not do that for ever.
            watch.puts_back(INDEX, [one._replace(later=frozenset()) for one in gone])
            index_notes(ctx, sorted({path for one in gone for path in _paths(one)}))
    except NotFound:
        pass
    except EchoError:
        watch.hold(INDEX, held, RETRY_S)
        raise
    finally:
        watch.puts_back(INDEX, ())
    watch.release(INDEX, held)


def _paths(held: Held) -> List[str]:
    """The notes whose entries a piece of the index changed; of one that names none, those of its neighbours."""
    piece = held.piece
    named = _PATH.findall(piece.added) or [*_PATH.findall(piece.above)[-1:], *_PATH.findall(piece.below)[:1]]
    return [str(json.loads(name)) for name in named]
