"""Holding the vault's advisory lock from the command line, for work ECHO does not do itself (spec 2.6)."""
from __future__ import annotations

from echo_context import Envelope, OpContext, decide, ok
from echo_core.errors import NotFound
from echo_core.kinds import INDEX_LOCK
from echo_core.locks import LockHeld

HOLDER = "operator"
"""The name in a lock that is taken by hand without one: `unlock` has to know it in another process."""


def lock_op(holder: str = "", *, ctx: OpContext) -> Envelope:
    """Take the lock and leave it, until `unlock` or until it expires; taking it again prolongs it.

    Returns `holder, expires` and `action` locked, or the decision lock-held. Raises vault errors.
    """
    ctx.lock.holder = holder or HOLDER
    try:
        ctx.lock.take("index", wait_s=0)
    except LockHeld as held:
        return lock_held(held)
    taken = ctx.lock.status("index")
    return ok("locked", holder=ctx.lock.holder, expires=taken.expires if taken else None)


def unlock_op(holder: str = "", force: bool = False, *, ctx: OpContext) -> Envelope:
    """Give the lock back: one that carries our name, an abandoned one, or with `force` anybody's.

    Returns `action` unlocked or unchanged, or the decision lock-held. Raises vault errors.
    """
    held = ctx.lock.status("index")
    if held is not None and held.holder != (holder or HOLDER) and not force:
        return lock_held(held)
    try:
        lost = ctx.lock.break_open("index")
    except NotFound:
        lost = None
    return ok("unlocked" if lost else "unchanged", path=INDEX_LOCK, holder=lost.holder if lost else None)


def lock_held(held: LockHeld) -> Envelope:
    """The decision an op answers with when it needs nothing but the lock, and somebody else has it."""
    return decide("lock-held", "Call again when the lock has expired.", holder=held.holder, expires=held.expires)
