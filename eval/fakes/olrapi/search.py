"""POST /search/: one JsonLogic rule applied to every note."""

from __future__ import annotations

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
    modern = bool(call.dialect.link_fields)
    content = not modern or '"content"' in jsvalues.dumps(rule)
    graph = notes.link_graph(call.store) if modern else None
    found: list[dict[str, Any]] = []
    for name in call.store.notes():
        facts = notes.describe(call.store, name, call.dialect.link_fields, content, graph)
        try:
            result = jsonlogic.apply(rule, facts)
        except (jsonlogic.RuleError, RecursionError) as error:
            raise _bad_query(f"{error} (while processing {name})") from error
        if jsonlogic.is_sane(result):
            found.append({"filename": name, "result": result})
    send_json(call.answer, found)
