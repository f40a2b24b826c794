"""Closing a session: log, agent log, scope, reflections, and the heartbeat as the last word (spec 2.1, 3.2, 3.3)."""
from __future__ import annotations

import json
import re
from functools import partial
from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

from echo_context import Envelope, OpContext, ok
from echo_core.catalog.note import new_note
from echo_core.errors import Conflict, InvalidArgument, VaultError
from echo_core.guards import refuse_active_content, refuse_secrets
from echo_core.kinds import DAY_NOTES, HEARTBEAT, SCOPE
from echo_core.text import one_line
from echo_core.text import slug as slug_of
from echo_core.vault.base import edit, version_of
from echo_edits import edit_note, log_in_day_note, read_text
from echo_previews import bounded_diff, diffs_of, preview_context, refuse_stale, steady
from echo_proposals import (
    Proposal,
    Row,
    apply_each,
    attempted,
    check_proposals,
    do_proposal,
    plan_proposals,
    token_of,
)
from echo_scope import checked_scope, scope_set_op
from echo_session_logs import FOLDER, heartbeat, session_logs, stamp_of

Step = Tuple[str, Callable[[OpContext], Envelope]]
AGENT = "echo"
MOST_OF_ONE_MINUTE = 100
"""Most sessions of one minute and one name."""
REPEAT_HOURS = 24
"""How long the same session logged again counts as the repeat of a call that broke off."""


_BULLET = re.compile(r"^[-*+](?: |$)")
_WOULD = {"created": "create", "appended": "append", "updated": "update", "unchanged": "nothing"}


class Bundle(NamedTuple):
    """What a session leaves behind, checked. reflect: proposals as in echo_reflect; scope: "" keeps the old one."""

    title: str
    body: str
    agent_line: str
    scope: str
    reflect: Sequence[Proposal]


def session_end_op(
    slug: str, log_body: str, agent_log_line: str, scope: Optional[str] = "", reflect: Sequence[Proposal] = (),
    apply: bool = False, preview_token: Optional[str] = "", *, ctx: OpContext,
) -> Envelope:
    """Preview or carry out the end of a session.

    Steps in order: log, agent-log, scope, one reflect an item, heartbeat. `plan` with `preview_token`, or
    `results: [{step, ok, path, did, ...}]`; the token is optional, since a session only adds. A repeat finishes
    what a broken call left undone and doubles nothing. Raises InvalidArgument, SecretSuspected, ActiveContent and
    vault errors; a scope or a reflection that fails says so in its row.
    """
    bundle = _checked(slug, log_body, agent_log_line, scope or "", reflect or (), ctx)
    ctx = _at_first_attempt(bundle, steady(ctx))
    if not apply:
        plan, token = _plan(bundle, ctx)
        return ok("preview", path=plan[0]["path"], plan=plan, preview_token=token)
    if preview_token and not ctx.resumed:
        stale = refuse_stale(preview_token, _plan(bundle, ctx)[1], False)
        if stale is not None:
            return stale
    return _answer(_run(bundle, ctx))


def _checked(
    slug: str, log_body: str, agent_log_line: str, scope: str, reflect: Sequence[Proposal], ctx: OpContext
) -> Bundle:
    line = _BULLET.sub("", one_line(agent_log_line or ""))
    for name, text in (("slug", slug), ("log_body", log_body), ("agent_log_line", line)):
        if not (text or "").strip():
            raise InvalidArgument(f"{name} is empty", hint="Say what the session was about.", field=name)
        if not ctx.allow_secrets:
            refuse_secrets(text, name)
        refuse_active_content(text, name)
    check_proposals(reflect, ctx, "reflect")
    return Bundle(one_line(slug), log_body, line, checked_scope(scope, ctx) if scope.strip() else "", reflect)


def _at_first_attempt(bundle: Bundle, ctx: OpContext) -> OpContext:
    """The context with the clock at the first attempt when this very session was logged within REPEAT_HOURS.

    Then every line gets the stamp it had, and finds itself written. Otherwise the context as it is.
    """
    now = ctx.clock.now()
    for log in reversed(session_logs(ctx)):
        at = log.at(ctx)
        if now.timestamp() - at.timestamp() > REPEAT_HOURS * 3600:
            break
        then = ctx if log.stamp == ctx.clock.file_stamp() else ctx.varied(clock=ctx.clock.at(at.isoformat()))
        if log.slug.startswith(slug_of(bundle.title)) and read_text(ctx, log.path) == _log_text(bundle, then):
            return then
    return ctx


def _steps(bundle: Bundle) -> List[Step]:
    """The steps between the log and the reflections, each with what carries it out in a context."""
    steps: List[Step] = [("agent-log", lambda ctx: _write_agent_line(bundle, ctx))]
    if bundle.scope:
        steps.append(("scope", lambda ctx: scope_set_op(bundle.scope, ctx=ctx)))
    return steps


def _plan(bundle: Bundle, ctx: OpContext) -> Tuple[List[Row], str]:
    """The plan, found by carrying it out on a preview, and its token."""
    trial, vault = preview_context(ctx)
    count = len(bundle.reflect) + 4
    rows: List[Row] = []

    def tried(name: str, run: Callable[[OpContext], Envelope]) -> Envelope:
        answer = attempted(partial(run, trial), trial)[0]
        row = {"step": name, "action": name, "path": answer.get("path", ""),
               "would": _WOULD.get(str(answer.get("action")), "refuse")}
        row.update(bounded_diff(diffs_of(vault.take()), count))
        row.update((key, answer[key]) for key in ("code", "error", "hint") if key in answer)
        rows.append(row)
        return answer

    log = tried("log", lambda at: _write_log(bundle, at))
    for name, run in _steps(bundle):
        tried(name, run)
    planned = plan_proposals(bundle.reflect, ctx)
    rows += [{"step": "reflect", **item.row(count)} for item in planned]
    tried("heartbeat", lambda at: _write_heartbeat(str(log.get("path", "")), at))
    scope_note = [version_of(data) for _path, data in ctx.vault.read_many([SCOPE])] if bundle.scope else []
    read = [bundle.title, bundle.body, bundle.agent_line, bundle.scope, scope_note]
    return rows, token_of("echo_log_session", bundle.reflect, planned, read, ctx)


def _run(bundle: Bundle, ctx: OpContext) -> List[Row]:
    """Carry out all steps; one row each. A vault that is down stops them: raised with the `results` so far."""
    rows: List[Row] = []
    try:
        log = _write_log(bundle, ctx)
        rows.append(_row("log", log))
        for name, run in _steps(bundle):
            rows.append(_row(name, attempted(partial(run, ctx), ctx)[0]))
        reflected = apply_each(bundle.reflect, lambda index: do_proposal(bundle.reflect[index], ctx), ctx)
        rows += [{"step": "reflect", **row} for row in reflected]
        rows.append(_row("heartbeat", _write_heartbeat(str(log["path"]), ctx)))
    except VaultError as failure:
        rows += [{"step": "reflect", **row} for row in failure.data.get("results", [])]
        if rows:
            failure.data["results"] = rows
        raise
    return rows


def _row(step: str, answer: Envelope) -> Row:
    row: Row = {"step": step, "action": step, "path": answer.get("path", ""), "ok": bool(answer["ok"])}
    if answer["ok"]:
        row["did"] = answer["action"]
    row.update((key, answer[key]) for key in ("code", "error", "hint", "headings", "line", "column") if key in answer)
    return row


def _answer(rows: List[Row]) -> Envelope:
    failed = [str(row["step"]) for row in rows if not row["ok"]]
    if failed:
        return ok("partial", [f"not done: {', '.join(failed)}; see results"], path=rows[0]["path"], results=rows)
    same = all(row["did"] == "unchanged" for row in rows)
    return ok("unchanged" if same else "logged", path=rows[0]["path"], results=rows)


def _log_text(bundle: Bundle, ctx: OpContext) -> str:
    day = ctx.clock.day()
    meta = {"type": "session", "title": bundle.title, "created": day, "updated": day, "agent_written": True}
    return new_note(meta, bundle.title, bundle.body, [])


def _write_log(bundle: Bundle, ctx: OpContext) -> Envelope:
    """The session log under its stamp; a name that another session has gets -2, -3 ..."""
    stem = f"{FOLDER}/{ctx.clock.file_stamp()}-{slug_of(bundle.title)}"
    text = _log_text(bundle, ctx)
    made = [path for path in ctx.resumed.created() if path.startswith(stem)] if ctx.resumed else []
    if made and read_text(ctx, made[0]) is not None:  # whoever changed it since wants it as it is
        return ok("unchanged", path=made[0])
    for number in range(1, MOST_OF_ONE_MINUTE):
        path = f"{stem}.md" if number == 1 else f"{stem}-{number}.md"
        try:
            edited = edit_note(ctx, path, partial(_only_new, path, text))
        except Conflict:
            continue
        return ok("created" if edited.changed else "unchanged", path=path)
    raise Conflict(f"all names {stem}-N.md are taken", hint="Use another slug.", path=f"{stem}.md")


def _only_new(path: str, text: str, before: Optional[str]) -> str:
    """The text for a note that is not there yet or says exactly this. Raises Conflict for another session's."""
    if before not in (None, text):
        raise Conflict(f"{path} is another session", path=path)
    return text


def _write_agent_line(bundle: Bundle, ctx: OpContext) -> Envelope:
    before = read_text(ctx, DAY_NOTES.format(day=ctx.clock.day()))
    path = log_in_day_note(ctx, bundle.agent_line)
    return ok("unchanged" if read_text(ctx, path) == before else "appended", path=path)


def _write_heartbeat(session: str, ctx: OpContext) -> Envelope:
    """Mark `session` as committed, unless it or one of a later minute is already: a replay does not turn time back."""
    last = heartbeat(ctx).get("session", "")
    if last == session or stamp_of(last) > stamp_of(session):
        return ok("unchanged", path=HEARTBEAT)
    beat = {"session": session, "at": ctx.clock.instant(), "agent": AGENT}
    data = (json.dumps(beat, ensure_ascii=False, indent=2) + "\n").encode("utf-8")
    edit(ctx.vault, HEARTBEAT, lambda _before: data)
    return ok("updated", path=HEARTBEAT)
