"""Looking again at acknowledged writes, and putting back what is gone (spec 6.1).

For vaults without compare-and-swap: two servers of different hosts may read the same note and write it one after the
other; then the first one's text is gone although its read-back found it.
"""
from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Sequence

from echo_context import OpContext
from echo_core.errors import EchoError, NotFound, VaultError
from echo_core.kinds import INDEX
from echo_core.pieces import stands
from echo_core.settling import MOST_TRIES, Held, Judgement, judge
from echo_core.vault.refusals import missing
from echo_edits import edit_bytes, index_notes

from echo_mcp import logs
from echo_mcp.vaults.watch import Watch

SHORT_S = 0.4
"""Long enough for a look before the end of the process: another server's write follows its read within 0.25 s."""
LATE_S = 120.0
"""After so long a missing piece may well have been taken out by somebody: it is reported, not put back."""
ABSENT_S = 30.0
"""How long a note that is not there is looked for: Obsidian may be loading."""
RETRY_S = 3.0
_IDLE_S = 3600.0
_PATH = re.compile(rb'"path": ("(?:[^"\\]|\\.)*")')


class Settler:
    """Looks at what is on `watch` in a thread of its own.

    put_back: pieces that were gone and are back. lost: texts that were written over and are listed as conflicts.
    """

    def __init__(self, ctx: OpContext, watch: Watch) -> None:
        self._ctx = ctx
        self._watch = watch
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="settle", daemon=True)
        self._reentered = 0
        self.put_back = 0
        self.lost = 0

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def finish(self, until: float) -> None:
        """Look at what is still on watch, sooner than usual, and end. until: monotonic seconds."""
        self._ended.set()
        self._watch.wake()
        while self._watch.paths():
            wait_s = self._watch.wrote_at + SHORT_S - time.monotonic()
            if time.monotonic() + max(wait_s, 0.0) > until:
                return
            time.sleep(max(wait_s, 0.0))
            for path in self._watch.paths():
                self._look(path, SHORT_S)

    def _run(self) -> None:
        while not self._ended.is_set():
            path = self._watch.next(_IDLE_S)
            if path and not self._ended.is_set():
                self._look(path, self._watch.settle_s)

    def _look(self, path: str, patience_s: float) -> None:
        """Judge one note. A vault that fails leaves it on watch."""
        try:
            if path == INDEX:
                self._look_at_index()
                return
            # None of our own writes comes between taking the pieces and judging them.
            with self._ctx.vault.exclusive(path):
                self._judge(path, self._watch.take(path), patience_s)
        except EchoError as failure:
            self._watch.postpone(path, RETRY_S)
            logs.event("settle-failed", logging.WARNING, code=failure.code)
        except Exception as failure:
            logs.LOGGER.error("job-failed", exc_info=failure, extra={"fields": {"job": "settle"}})

    def _judge(self, path: str, held: Sequence[Held], patience_s: float) -> None:
        now = time.monotonic()
        try:
            found, text = self._settled(path, held, now)
        except NotFound:
            self._watch.hold(path, [one for one in held if now - one.at < ABSENT_S], RETRY_S)
            return
        except EchoError:
            self._watch.hold(path, held, RETRY_S)
            raise
        young = [one for one in found.standing if now - one.at < patience_s]
        self._watch.hold(path, young, patience_s - min((now - one.at for one in young), default=0.0))
        if found.again:
            self.put_back += len(found.again)
            logs.event("put-back", logging.WARNING, pieces=len(found.again))
        self._report(path, found.lost, text)

    def _report(self, path: str, lost: Sequence[Held], text: bytes) -> None:
        """List what somebody wrote over; when the list cannot be written, it stays on watch."""
        for one in {one.sha: one for one in lost}.values():
            try:
                self._ctx.history.overwritten(path, one.own, one.sha, text, one.tool, one.op_id)
            except EchoError:
                self._watch.hold(path, [other for other in lost if other.sha == one.sha], RETRY_S)
                raise
            self.lost += 1
            logs.event("overwritten", logging.WARNING)

    def _settled(self, path: str, held: Sequence[Held], now: float) -> tuple[Judgement, bytes]:
        """What became of the pieces, and the note with those in it that were put back."""
        late = all(now - one.at > LATE_S for one in held)
        found = Judgement(b"", [], [], [])

        def surgery(text: bytes | None) -> bytes:
            nonlocal found
            if text is None:
                raise missing(path)
            found = judge(held, text, late)
            self._watch.puts_back(path, found.again)
            return found.text

        self._ctx.vault.note_context("settle", "")
        try:
            text = edit_bytes(self._ctx, path, surgery).after
            return found, text
        finally:
            self._watch.puts_back(path, ())

    def _look_at_index(self) -> None:
        """Enter again what another server's copy of the index has overwritten; the notes say what it is."""
        held = self._watch.take(INDEX)
        try:
            data = self._ctx.vault.read(INDEX)
            gone = [one for one in held if not stands(one.piece, data)]
            self._reentered = self._reentered + 1 if gone else 0
            if not gone or self._reentered > MOST_TRIES:
                return
            self._ctx.index.look_again()
            busy = index_notes(self._ctx, sorted({path for one in gone for path in _paths(one)}))
        except NotFound:
            return
        except VaultError:
            self._watch.hold(INDEX, held, RETRY_S)
            raise
        if busy:
            self._watch.hold(INDEX, gone, RETRY_S)


def _paths(held: Held) -> list[str]:
    """The notes whose entries a piece of the index changed; of one that names none, those of its neighbours."""
    piece = held.piece
    named = _PATH.findall(piece.added) or [*_PATH.findall(piece.above)[-1:], *_PATH.findall(piece.below)[:1]]
    return [str(json.loads(name)) for name in named]
