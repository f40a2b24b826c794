"""Clients that send a write again: what the first one answered, as long as that is still true (spec 6.2).

A client whose connection broke cannot know whether its write arrived, so it asks again. The same call, or the same key
of the client's own, then gets the first answer with the first `op_id`, and nothing is written twice.
"""
from __future__ import annotations

import hashlib
from typing import Optional

from echo_context import Envelope, OpContext, ok
from echo_core.errors import EchoError, InvalidArgument, NotFound
from echo_core.settle.pieces import pieces_of, stands
from echo_core.vault.base import version_of
from echo_queue import KEYED_S, UNKEYED_S, Answered, Outbox
from echo_queue_rows import Running

LONGEST_KEY = 255
SAY_UNCHANGED = frozenset({"echo_capture", "echo_append_note", "echo_patch_note", "echo_link", "echo_set_scope"})
"""Tools that say so when what they were asked for is there already (spec 3.2)."""
FOLLOWS = "The vault is not reachable now; the write follows as soon as it is."


def key_of(client_key: str) -> str:
    """What is kept of a client's key; it may be a secret of theirs. Raises InvalidArgument for one that is none."""
    if not client_key:
        return ""
    if len(client_key) > LONGEST_KEY or not client_key.isascii() or not client_key.isprintable():
        raise InvalidArgument("the idempotency key is no short text", field="idempotency-key",
                              hint=f"Send 1 to {LONGEST_KEY} visible ASCII characters, for example a UUID.")
    return hashlib.sha256(client_key.encode("ascii")).hexdigest()


def first_answer(op: Running, outbox: Outbox, ctx: OpContext) -> Optional[Envelope]:
    """What an earlier call of the same key, or the same call, answered; None when this one has to be made.

    A key names one write for KEYED_S, whatever has become of what it wrote. An identical call counts as sent again for
    UNKEYED_S, while what the first one wrote still stands. Raises InvalidArgument when the key was used for another
    call.
    """
    if op.key:
        named = outbox.answered_key(op.key, KEYED_S)
        if named is not None:
            if named.call != op.call:
                raise InvalidArgument("the idempotency key was sent with another call before", field="idempotency-key",
                                      hint="Send a new key with each new write.")
            return _answer(named)
    same = outbox.answered_call(op.call, UNKEYED_S)
    return _repeated(op.tool, same, ctx) if same is not None and still_holds(same, ctx) else None


def _answer(first: Answered) -> Envelope:
    if first.answer:
        return dict(first.answer)
    return ok(queued=True, op_id=first.op_id, provisional=True, hint=FOLLOWS)


def _repeated(tool: str, first: Answered, ctx: OpContext) -> Envelope:
    """The first answer, true of the note as it is now."""
    answer = _answer(first)
    if tool in SAY_UNCHANGED:
        answer["action"] = "unchanged"
    now = _bytes(str(answer["path"]), ctx) if answer.get("path") and answer.get("version") else None
    if now is not None:
        answer["version"] = version_of(now)
    return answer


def still_holds(first: Answered, ctx: OpContext) -> bool:
    """Whether every note says what the first call made it say; others may have changed other parts of it."""
    try:
        return bool(first.targets) and all(
            _stands(path, version, first.op_id, ctx) for path, version in first.targets.items())
    except EchoError:  # what cannot be looked at is not known to hold
        return False


def _stands(path: str, version: str, op_id: str, ctx: OpContext) -> bool:
    now = _bytes(path, ctx)
    if now is None or not version:
        return now is None and not version
    return version_of(now) == version or _pieces_stand(path, op_id, now, ctx)


def _pieces_stand(path: str, op_id: str, now: bytes, ctx: OpContext) -> bool:
    """Whether all that the op changed in the note stands in it; an op may have written it several times."""
    steps = [wrote for wrote in ctx.history.writes_of(op_id) if wrote.path == path]
    if not steps:
        return False
    before = ctx.history.content(path, steps[0].version_id)
    after = ctx.history.outcome(path, steps[-1].version_id)
    pieces = pieces_of(before, after) if after is not None else []
    return bool(pieces) and all(stands(piece, now) for piece in pieces)


def _bytes(path: str, ctx: OpContext) -> Optional[bytes]:
    try:
        return ctx.vault.read(path)
    except NotFound:
        return None
