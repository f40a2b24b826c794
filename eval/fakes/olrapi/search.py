"""POST /search/: one JsonLogic rule applied to every note."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fakes.olrapi import bodies, jsonlogic, jsvalues, notes
from fakes.olrapi.replies import Refusal, send_json
from fakes.olrapi.vault_routes import Call

JSONLOGIC = "application/vnd.olrapi.jsonlogic+json"
NO_TYPE = Refusal(
    code=40011,
    text="Content-Type header required; this API accepts data in multiple content-types and you must indicate the "
         "content-type of your request body via the Content-Type header.",
)
BAD_TYPE = Refusal(code=40012, text="Unknown or invalid Content-Type specified in Content-Type header.")


def _bad_query(detail: str) -> Refusal:
    return Refusal(code=40070, text="The query you provided could not be processed.", detail=detail)


async def by_jsonlogic(call: Call) -> None:
    """Every note for which the rule gives something, with what it gives."""
    kind = call.request.header("content-type")
    if not kind:
        raise NO_TYPE
    if kind == bodies.DATAVIEW_TYPE and call.dialect.hangs_on_errors:
        raise _bad_query("Cannot read properties of undefined (reading 'tryQuery')")
    if kind != JSONLOGIC:
        raise BAD_TYPE
    rule = call.body
    if needs_no_text(rule):
        send_json(call.answer, _matches(rule, ((name, notes.outline(call.store, name)) for name in call.store.notes())))
        return
    modern = bool(call.dialect.link_fields)
    content = not modern or '"content"' in jsvalues.dumps(rule)
    graph = notes.link_graph(call.store) if modern else None
    described = (
        (name, notes.describe(call.store, name, call.dialect.link_fields, content, graph))
        for name in call.store.notes()
    )
    send_json(call.answer, _matches(rule, described))


def needs_no_text(rule: Any) -> bool:
    """Whether the rule asks for nothing but a note's path and times, which no note need be opened for."""
    if isinstance(rule, list):
        return all(needs_no_text(item) for item in rule)
    if not isinstance(rule, dict):
        return True
    if rule.keys() & {"missing", "missing_some", "map", "filter", "reduce", "all", "some", "none"}:
        return False
    if "var" in rule:
        wanted = rule["var"]
        return isinstance(wanted, str) and (wanted == "path" or wanted.startswith("stat."))
    return all(needs_no_text(item) for item in rule.values())


def _matches(rule: Any, described: Iterable[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The notes for which the rule gives something. Raises Refusal, naming the note it failed at."""
    found: list[dict[str, Any]] = []
    for name, facts in described:
        try:
            result = jsonlogic.apply(rule, facts)
        except (jsonlogic.RuleError, RecursionError) as error:
            raise _bad_query(f"{error} (while processing {name})") from error
        if jsonlogic.is_sane(result):
            found.append({"filename": name, "result": result})
    return found
