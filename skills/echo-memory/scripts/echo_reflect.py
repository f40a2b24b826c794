"""Storing what a conversation taught, as a batch of proposals: preview, then apply (spec 3.2)."""
from __future__ import annotations

from typing import Optional, Sequence

from echo_context import Envelope, OpContext, ok
from echo_core.errors import InvalidArgument
from echo_previews import refuse_stale, steady
from echo_proposals import Proposal, applied, apply_each, check_proposals, do_proposal, plan_proposals, token_of


def apply_op(
    proposals: Sequence[Proposal], apply: bool = False, preview_token: Optional[str] = "", *, ctx: OpContext
) -> Envelope:
    """Preview or carry out proposals: `plan` with `preview_token`, or `results`.

    Items are independent: one that fails or meets the duplicate gate says so in its row, the others are done.
    Raises InvalidArgument, SecretSuspected and vault errors.
    """
    if not proposals:
        raise InvalidArgument("proposals is empty", hint="Send at least one proposal.", field="proposals")
    check_proposals(proposals, ctx)
    ctx = steady(ctx)
    if not ctx.resumed:
        plan = plan_proposals(proposals, ctx)
        token = token_of("echo_reflect", proposals, plan, None, ctx)
        if not apply:
            return ok("preview", plan=[planned.row(len(plan)) for planned in plan], preview_token=token)
        stale = refuse_stale(preview_token, token, ctx.token_required)
        if stale is not None:
            return stale
    return applied(apply_each(proposals, lambda index: do_proposal(proposals[index], ctx), ctx))
