"""Sorting the inbox: listing its items, planning where each goes, filing them with an audit line (spec 3.2, 2.7)."""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from echo_context import Envelope, OpContext, ok
from echo_core.catalog.note import new_note
from echo_core.catalog.notebytes import decode, displayable, encode
from echo_core.errors import EchoError, InvalidArgument, NotFound
from echo_core.kinds import INBOX
from echo_core.markdown import append_text, has_line
from echo_core.text import fold, one_line
from echo_edits import edit_note, read_bytes
from echo_inbox import Item, find_item, item_of, items_of, read_items, shown, without_item
from echo_previews import refuse_stale, steady
from echo_proposals import (
    Planned,
    Proposal,
    Row,
    applied,
    apply_each,
    check_proposals,
    do_proposal,
    plan_proposals,
    token_of,
)
from echo_resume import Resumed, has_arrived, is_made_by

LISTED = 100
"""Most items of one listing: as many as one call can sort."""
PROCESSING_LOG = "inbox/processing-log/{month}.md"


def triage_op(
    proposals: Sequence[Proposal] = (), apply: bool = False, preview_token: Optional[str] = "", *, ctx: OpContext
) -> Envelope:
    """List the inbox, preview where proposals would put its items, or file them.

    Without proposals `items`; with them `plan` and `preview_token`; with `apply` also `results`. Raises
    InvalidArgument, SecretSuspected and vault errors; what is wrong with one item stands in its row.
    """
    if proposals:
        return route_op(proposals, apply, preview_token, ctx=ctx)
    if apply:
        raise InvalidArgument("apply needs proposals", hint="Call without arguments to list the inbox.",
                              field="proposals")
    return list_op(ctx=ctx)


def list_op(*, ctx: OpContext) -> Envelope:
    """The items of the inbox in its order: `items: [{id, text, date, age_days, tags}]`, at most LISTED of them.

    More than that are counted in `total` with `truncated: true`. Raises vault errors.
    """
    items = read_items(ctx)
    today = ctx.clock.today()
    answer = ok(items=[shown(item, today) for item in items[:LISTED]], total=len(items))
    if len(items) > LISTED:
        answer.update(truncated=True, hint="Sort these first; the next listing shows the ones that follow.")
    return answer


def route_op(
    proposals: Sequence[Proposal], apply: bool = False, preview_token: Optional[str] = "", *, ctx: OpContext
) -> Envelope:
    """Preview or carry out proposals about inbox items; each names its item in `line`.

    An item leaves the inbox only after its target is written and the processing log has its line. Raises
    InvalidArgument, SecretSuspected and vault errors.
    """
    _check(proposals, ctx)
    ctx = steady(ctx)
    lines = _Lines(proposals, _items(proposals, ctx), ctx.resumed.plan.get("rows", {}) if ctx.resumed else {})
    if not ctx.resumed:
        plan = lines.plan(ctx)
        token = token_of("echo_triage_inbox", proposals, plan, lines.addressed(), ctx)
        if not apply:
            return ok("preview", plan=[planned.row(len(plan)) for planned in plan], preview_token=token)
        stale = refuse_stale(preview_token, token, ctx.token_required)
        if stale is not None:
            return stale
        ctx.remember(items=lines.places())
    return applied(apply_each(proposals, lambda index: lines.file(index, ctx), ctx))


def _items(proposals: Sequence[Proposal], ctx: OpContext) -> List[Union[Item, EchoError]]:
    """The item of each proposal, or why there is none; those that an earlier run of this op chose stay chosen."""
    if ctx.resumed and "items" in ctx.resumed.plan:
        return [item_of(*place) if place else _gone() for place in ctx.resumed.plan["items"]]
    earlier = ctx.resumed.steps(INBOX) if ctx.resumed else []
    items = items_of(decode(earlier[0].before or b"")[0]) if earlier else read_items(ctx)
    free = list(items)
    return [_pick(free, items, str(proposal["line"]), index) for index, proposal in enumerate(proposals)]


def _gone() -> NotFound:
    return NotFound("the line is no longer in the inbox", hint="List the inbox again.", path=INBOX)


def _check(proposals: Sequence[Proposal], ctx: OpContext) -> None:
    # An item is named by its line, so that text is in the vault already and no news to refuse.
    check_proposals([{**proposal, "line": "-"} for proposal in proposals], ctx)
    for index, proposal in enumerate(proposals):
        if proposal["action"] == "capture" and not proposal.get("kind") and not proposal.get("merge_into"):
            raise InvalidArgument(
                f"proposals[{index}].kind is required: without a kind the line would only return to the inbox",
                hint="Give a kind, or use keep to leave it there.", field=f"proposals[{index}].kind",
            )


class _Lines:
    """The inbox items that proposals are about. `found[i]` is the item of proposal i, or why there is none."""

    def __init__(
        self, proposals: Sequence[Proposal], found: Sequence[Union[Item, EchoError]], done: Mapping[str, Row]
    ) -> None:
        """found: the item of each proposal. done: rows of an earlier run, by the number of their proposal."""
        self._proposals = proposals
        self._found = found
        # Removing a line renumbers its exact repeats below; counted here, so that each removal hits its own line.
        self._removed: Dict[str, List[int]] = {}
        for number, row in done.items():
            item = found[int(number)]
            if isinstance(item, Item) and row.get("ok") and proposals[int(number)]["action"] != "keep":
                self._note_removed(item)

    def places(self) -> List[Optional[Tuple[str, int]]]:
        """Line and number among its exact repeats of each proposal's item, None for none."""
        return [(found.line, found.nth) if isinstance(found, Item) else None for found in self._found]

    def addressed(self) -> List[str]:
        """The exact lines the proposals are about, for the token."""
        return [found.line if isinstance(found, Item) else "" for found in self._found]

    def plan(self, ctx: OpContext) -> List[Planned]:
        """What each proposal would do; one without an item would be refused."""
        known = [index for index, found in enumerate(self._found) if isinstance(found, Item)]
        planned = dict(zip(known, plan_proposals([self._filled(index)[0] for index in known], ctx)))
        for index, found in enumerate(self._found):
            if isinstance(found, Item):
                planned[index].index = index
                if planned[index].action in ("keep", "discard"):
                    planned[index].path = INBOX
            else:
                shown_error = {name: value for name, value in found.envelope().items() if name not in ("ok", "path")}
                planned[index] = Planned(index, str(self._proposals[index]["action"]), INBOX, "refuse",
                                         shown=shown_error)
        return [planned[index] for index in range(len(self._found))]

    def file(self, index: int, ctx: OpContext) -> Envelope:
        """Carry out proposal `index`: target, then processing log, then the line leaves the inbox."""
        proposal, item = self._filled(index)
        if ctx.resumed and self._taken_out(item, ctx.resumed, ctx):
            self._note_removed(item)
            return ok("filed", path=INBOX)
        self._still_there(item, ctx)
        done = do_proposal(proposal, ctx)
        if not done["ok"] or proposal["action"] == "keep":
            return {"path": INBOX, **done}
        path = str(done.get("path") or done.get("a") or "")
        _log(item, path, str(proposal["action"]), ctx)
        edit_note(ctx, INBOX, lambda text: without_item(text or "", item.line, self._nth(item)))
        self._note_removed(item)
        return {"path": INBOX, **done}

    def _filled(self, index: int) -> Tuple[Dict[str, Any], Item]:
        """Proposal `index` with what it leaves to its item, and the item. Raises why there is no item."""
        item = self._found[index]
        if isinstance(item, EchoError):
            raise item
        proposal = dict(self._proposals[index])
        text = displayable(item.text)
        proposal["line"] = one_line(proposal.get("text") or "- " + displayable(item.content))
        if proposal["action"] == "capture":
            proposal["tags"] = list(proposal.get("tags") or [displayable(tag) for tag in item.tags])
            if not (proposal.get("body") or "").strip() and fold(text) != fold(str(proposal["title"])):
                proposal["body"] = text
        return proposal, item

    def _note_removed(self, item: Item) -> None:
        self._removed.setdefault(item.line, []).append(item.nth)

    def _nth(self, item: Item) -> int:
        return item.nth - sum(1 for nth in self._removed.get(item.line, []) if nth < item.nth)

    def _taken_out(self, item: Item, resumed: Resumed, ctx: OpContext) -> bool:
        """Whether an earlier run took the item's line out, which is the last step: then all of it is done."""
        nth = self._nth(item)

        def removal(data: Optional[bytes]) -> bytes:
            return encode(without_item(decode(data or b"")[0], item.line, nth))

        others = sum(map(len, self._removed.values()))
        now = read_bytes(ctx, INBOX)
        return any(is_made_by(removal, step) and has_arrived(step, now) for step in resumed.steps(INBOX)[others:])

    def _still_there(self, item: Item, ctx: OpContext) -> None:
        """Raise NotFound when somebody else took the line since the plan: its text may be filed elsewhere now."""
        now = Counter(found.line for found in read_items(ctx))
        if now[item.line] < self._nth(item):
            raise _gone()


def _pick(free: List[Item], items: Sequence[Item], ref: str, index: int) -> Union[Item, EchoError]:
    """The item `ref` names, taken out of `free`. Raises InvalidArgument when an earlier proposal has it."""
    try:
        named = find_item(items, ref)
    except EchoError as failure:
        return failure
    same = named if ref == named.id else next((item for item in free if item.line == named.line), named)
    if same not in free:
        raise InvalidArgument(
            f"proposals[{index}].line names an item that an earlier proposal has", hint="One proposal an item.",
            field=f"proposals[{index}].line",
        )
    free.remove(same)
    return same


def _log(item: Item, path: str, action: str, ctx: OpContext) -> None:
    """Add the item's line to this month's processing log: `- 2026-11-30 14:05: "text" → path (action)`."""
    month = ctx.clock.month()
    target = f"{path or '-'} ({action})"
    line = f'- {ctx.clock.day()} {ctx.clock.minute()}: "{one_line(displayable(item.content))}" → {target}'

    def surgery(text: Optional[str]) -> str:
        if text is None:
            title = f"Processing Log {month}"
            meta = {"type": "log", "title": title, "created": ctx.clock.day(), "agent_written": True}
            return new_note(meta, title, line, [])
        return text if has_line(text, line, None) else append_text(text, line, None)

    edit_note(ctx, PROCESSING_LOG.format(month=month), surgery)
