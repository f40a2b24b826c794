"""Proposals: what one would do, and doing it (spec 3.2). Triage, reflect and the session's end share this.

A proposal is a checked dict of `echo_tools`: `{"action": "capture"|"append"|"link"|"discard"|"keep", ...}`.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

from echo_context import Envelope, OpContext, ok
from echo_core.errors import EchoError, InvalidArgument, VaultError
from echo_core.guards import refuse_secrets
from echo_core.text import name_keys
from echo_core.vault.base import version_of
from echo_edits import preview_token
from echo_note_edits import append_op
from echo_notes import writable_note
from echo_ops import capture_op, link_op
from echo_previews import bounded_diff, diffs_of, preview_context

Proposal = Mapping[str, Any]
Row = Dict[str, Any]

NEEDED = {"capture": ("title",), "append": ("path", "line"), "link": ("a", "b"), "discard": (), "keep": ()}
"""The fields a proposal of each action cannot do without."""
_CAPTURE_NAMES = ("title", "kind", "body", "tags", "aliases", "sources", "status", "date", "domain", "supersedes",
                  "merge_into", "force")
_WOULD = {"unchanged": "nothing", "duplicate-gate": "gate", "appended": "append", "linked": "link"}
"""What an op's answer means for a plan; a preview says by itself what it would do."""
_SHOWN = ("candidates", "near_duplicates", "links_added", "hint", "warnings", "code", "error", "headings", "line",
          "column", "field")


@dataclass
class Planned:
    """What one proposal would do.

    would: create, update, inbox, append, link, discard, keep, nothing, gate (the duplicate gate would stop it) or
    refuse (it would fail; `shown` has code and error). targets: the existing notes it would touch.
    """

    index: int
    action: str
    path: str
    would: str
    diff: str = ""
    targets: Tuple[str, ...] = ()
    shown: Row = field(default_factory=dict)

    def row(self, items: int) -> Row:
        """The item of `plan`; its diff is cut when it is longer than its share among `items`."""
        row: Row = {"index": self.index, "action": self.action, "path": self.path, "would": self.would}
        row.update(bounded_diff(self.diff, items))
        row.update(self.shown)
        return row


def check_proposals(proposals: Sequence[Proposal], ctx: OpContext, name: str = "proposals") -> None:
    """Refuse the whole call for a proposal that lacks a field or holds a credential.

    name: the argument, for `field`. Raises InvalidArgument and SecretSuspected.
    """
    for index, proposal in enumerate(proposals):
        at = f"{name}[{index}]"
        for needed in NEEDED[str(proposal["action"])]:
            if not proposal.get(needed):
                raise InvalidArgument(
                    f"{at}.{needed} is required to {proposal['action']}", hint="Add it, or choose another action.",
                    field=f"{at}.{needed}",
                )
        if not ctx.allow_secrets:
            _refuse_secrets_in(proposal, at)


def _refuse_secrets_in(proposal: Proposal, at: str) -> None:
    for name, value in proposal.items():
        for text in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(text, str):
                refuse_secrets(text, f"{at}.{name}")


def plan_proposals(proposals: Sequence[Proposal], ctx: OpContext) -> List[Planned]:
    """What each proposal would do, in order, each seeing what those before it would have written.

    Writes nothing. A proposal that would fail is planned as `refuse`. Raises vault errors only.
    """
    planner = _Planner(ctx)
    return [planner.plan(index, proposal) for index, proposal in enumerate(proposals)]


class _Planner:
    """Plans in order; `_made` maps each name and path of a note that an earlier proposal makes to its path."""

    def __init__(self, ctx: OpContext) -> None:
        self._ctx, self._vault = preview_context(ctx)
        self._made: Dict[str, str] = {}

    def plan(self, index: int, proposal: Proposal) -> Planned:
        action = str(proposal["action"])
        try:
            if action in ("discard", "keep"):
                return Planned(index, action, "", action)
            if action == "capture":
                return self._capture(index, proposal)
            return self._edit(index, proposal)
        except VaultError:
            raise
        except EchoError as failure:
            return Planned(index, action, str(failure.data.get("path", "")), "refuse", shown=_shown(failure.envelope()))

    def _capture(self, index: int, proposal: Proposal) -> Planned:
        target = str(proposal.get("merge_into") or "")
        if target and self._made_by(target):
            return Planned(index, "capture", self._made_by(target), "update")
        envelope = capture_op(**_capture_arguments(proposal), dry_run=True, ctx=self._ctx)
        path = str(envelope.get("path", ""))
        would = str(envelope.get("would") or _WOULD[str(envelope["action"])])
        if would == "create":
            if path in self._made:
                twin = {"path": path, "title": proposal["title"], "kind": proposal.get("kind") or ""}
                return Planned(index, "capture", path, "gate", shown={"candidates": [twin]})
            self._remember(proposal, path)
        targets = (path,) if would in ("update", "inbox", "nothing") else ()
        return Planned(index, "capture", path, would, str(envelope.get("diff", "")), targets, _shown(envelope))

    def _remember(self, proposal: Proposal, path: str) -> None:
        for name in (proposal["title"], *(proposal.get("aliases") or ())):
            self._made.update((key, path) for key in name_keys(name))
        self._made.update({path: path, path[:-3]: path})

    def _made_by(self, ref: str) -> str:
        """The path of the note an earlier proposal makes under this name, "" when none does."""
        found = {self._made[key] for key in (ref, *name_keys(ref)) if key in self._made}
        return found.pop() if len(found) == 1 else ""

    def _edit(self, index: int, proposal: Proposal) -> Planned:
        action = str(proposal["action"])
        refs = [str(proposal[name]) for name in (("path",) if action == "append" else ("a", "b"))]
        if any(self._made_by(ref) for ref in refs):
            paths = [self._made_by(ref) or writable_note(ref, self._ctx) for ref in refs]
            there = tuple(path for path in paths if path not in self._made)
            return Planned(index, action, paths[0], action, targets=there, shown=_other(paths))
        envelope = do_proposal(proposal, self._ctx)
        paths = _paths(envelope)
        return Planned(index, action, paths[0], _WOULD[str(envelope["action"])], diffs_of(self._vault.take()),
                       tuple(paths), {**_other(paths), **_shown(envelope, "warnings")})


def do_proposal(proposal: Proposal, ctx: OpContext) -> Envelope:
    """Carry out one capture, append or link; the envelope of its op. Raises what that op raises."""
    action = proposal["action"]
    if action == "capture":
        return capture_op(**_capture_arguments(proposal), ctx=ctx)
    if action == "append":
        return append_op(proposal["path"], proposal["line"], ctx=ctx)
    if action == "link":
        return link_op(proposal["a"], proposal["b"], ctx=ctx)
    return ok("discarded" if action == "discard" else "kept")


def token_of(tool: str, proposals: Sequence[Proposal], plan: Sequence[Planned], read: Any, ctx: OpContext) -> str:
    """The preview token: it covers the proposals, what each would do, and the versions of the notes they touch.

    read: what else the plan depends on, as JSON values.
    """
    targets = sorted({path for planned in plan for path in planned.targets})
    versions = {path: version_of(data) for path, data in ctx.vault.read_many(targets)}
    would = [[planned.action, planned.would, planned.path, list(planned.targets)] for planned in plan]
    return preview_token(tool, [[dict(proposal) for proposal in proposals], would, versions, read])


def apply_each(proposals: Sequence[Proposal], do: Callable[[int], Envelope], ctx: OpContext) -> List[Row]:
    """One row `{index, action, path, ok, did, ...}` for each proposal; a failing one leaves the others alone.

    do: carries out the one of an index. A vault that is down stops the batch: its error is raised with the
    `results` so far, and the call taken up again goes on where it stopped.
    """
    rows: Dict[str, Row] = dict(ctx.resumed.plan.get("rows", {})) if ctx.resumed else {}
    for index, proposal in enumerate(proposals):
        if str(index) in rows:
            continue
        try:
            answer, torn = attempted(partial(do, index), ctx)
        except VaultError as failure:
            if rows:
                failure.data["results"] = _in_order(rows)
            raise
        rows[str(index)] = result_row(index, proposal, answer)
        if not torn:
            ctx.remember(rows=dict(rows))
    return _in_order(rows)


def _in_order(rows: Mapping[str, Row]) -> List[Row]:
    return [rows[name] for name in sorted(rows, key=int)]


def attempted(run: Callable[[], Envelope], ctx: OpContext) -> Tuple[Envelope, bool]:
    """`(answer, torn)` of a part that may fail without stopping the others; a vault that is down stops everything.

    torn: it failed between its writes, so that the rest of it is still owed.
    """
    writes = ctx.running.writes if ctx.running else 0
    try:
        return run(), False
    except VaultError:
        raise
    except EchoError as failure:
        torn = ctx.running is not None and ctx.running.writes > writes
        if ctx.running is not None and torn:
            ctx.running.torn = True
        return failure.envelope(), torn


def result_row(index: int, proposal: Proposal, envelope: Envelope) -> Row:
    """The item of `results` for what an op answered."""
    paths = _paths(envelope)
    row: Row = {"index": index, "action": proposal["action"], "path": paths[0], "ok": bool(envelope["ok"])}
    if envelope.get("action"):
        row["did"] = envelope["action"]
    row.update(_other(paths))
    row.update(_shown(envelope))
    return row


def applied(rows: List[Row]) -> Envelope:
    """The answer to an apply: `action` applied, or partial with a warning.

    When nothing at all could be done it is the first item's failure or gate, with the `results` beside it.
    """
    done = [row for row in rows if row["ok"]]
    if len(done) == len(rows):
        return ok("applied", results=rows)
    if done:
        left = [str(row["index"]) for row in rows if not row["ok"]]
        return ok("partial", [f"not done: item {', '.join(left)}; see results"], results=rows)
    first = rows[0]
    answer: Envelope = {"ok": False}
    if "code" not in first:
        answer["action"] = first["did"]
    answer.update((name, first[name]) for name in ("code", "error", "hint", "candidates", "field") if name in first)
    answer["results"] = rows
    return answer


def _capture_arguments(proposal: Proposal) -> Dict[str, Any]:
    """echo_capture's arguments; what the proposal leaves out keeps the op's default."""
    return {name: proposal[name] for name in _CAPTURE_NAMES if proposal.get(name) not in (None, "", [])}


def _shown(envelope: Envelope, *names: str) -> Row:
    return {name: envelope[name] for name in names or _SHOWN if envelope.get(name)}


def _paths(envelope: Envelope) -> List[str]:
    """The note an op's answer is about, for a link both."""
    if "a" in envelope:
        return [str(envelope["a"]), str(envelope["b"])]
    return [str(envelope.get("path", ""))]


def _other(paths: Sequence[str]) -> Row:
    return {"other_path": paths[1]} if len(paths) > 1 else {}
