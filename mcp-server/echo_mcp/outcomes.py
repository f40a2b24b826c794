"""What an envelope looks like outside: bounded, as JSON, as REST status and as a word for logs (spec 3.1, 4.1)."""
from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from echo_core.errors import ERRORS, VaultError, outcome_of
from echo_core.text import shorten

from echo_mcp import logs

Envelope = dict[str, Any]

_OUTAGES = frozenset({"internal", "misconfigured", *(kind.code for kind in VaultError.__subclasses__())})
ANSWER_LIMIT = 20_000
"""Characters of one answer, unless the call asked for more."""


def to_json(value: Any) -> str:
    """Compact JSON text of a JSON value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def sized(envelope: Envelope, limit: int) -> tuple[Envelope, int]:
    """(the envelope within `limit` characters of JSON, its size in bytes).

    Over the limit, the largest field is cut until all fits: a list loses its last items, a text its end. The answer
    then carries `truncated: true` and, under `full_length`, the items or characters that each cut field had. Text
    that is no valid Unicode is replaced, so that every door can send the answer.
    """
    try:
        text = to_json(envelope)
        size = len(text.encode("utf-8"))
    except (UnicodeEncodeError, ValueError):
        envelope = _sendable(envelope)
        text = to_json(envelope)
        size = len(text.encode("utf-8"))
    if len(text) <= limit:
        return envelope, size
    return _cut(envelope, limit)


def _cut(envelope: Envelope, limit: int) -> tuple[Envelope, int]:
    cut = dict(envelope)
    full: dict[str, int] = {}
    for _ in range(2 * len(cut)):
        over = len(to_json(cut)) + _FLAGS - limit
        name = max(cut, key=lambda key: _weight(cut[key]))
        if over <= 0 or not _weight(cut[name]):
            break
        full.setdefault(name, len(cut[name]))
        cut[name] = _less(cut[name], over)
    cut.update(truncated=True, full_length=full)
    return cut, len(to_json(cut).encode("utf-8"))


_FLAGS = 200
"""Characters kept free for the flags that say what was cut."""


def _sendable(value: Any) -> Any:
    """`value` with half surrogates replaced and numbers that JSON lacks as text."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, float) and value - value != 0:
        return str(value)
    if isinstance(value, dict):
        return {_sendable(str(key)): _sendable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_sendable(item) for item in value]
    return value


def _weight(value: Any) -> int:
    return len(to_json(value)) if isinstance(value, (str, list, dict)) else 0


def _less(value: Any, over: int) -> Any:
    """`value` with at least `over` characters of JSON less, or as little of it as its shape allows."""
    if isinstance(value, str):
        keep = max(0, len(value) - over)
        return shorten(value, keep)[0]
    items = list(value.items()) if isinstance(value, dict) else list(value)
    while items and over > 0:
        over -= len(to_json(items.pop())) + 1
    return dict(items) if isinstance(value, dict) else items


def text(render: Callable[[Envelope], str], envelope: Envelope, limit: int) -> str:
    """The envelope as readable text of at most about `limit` characters; a cut says so with the full length.

    An answer that cannot be rendered is shown as JSON: what was done must not get lost over how it reads.
    """
    try:
        whole = render(envelope)
    except Exception as failure:
        logs.LOGGER.error("render-failed", exc_info=failure)
        whole = to_json(envelope)
    shown, cut = shorten(whole, limit)
    return f"{shown}\n[cut: {len(shown)} of {len(whole)} characters]" if cut else shown


def word(envelope: Envelope) -> str:
    """One word for logs and metrics: ok, queued, an action that needs a decision, or an error code."""
    if envelope.get("ok"):
        return "queued" if envelope.get("queued") else "ok"
    return str(envelope.get("action") or envelope.get("code") or "internal")


def is_error(envelope: Envelope) -> bool:
    """Whether MCP shows the envelope as an error."""
    return outcome_of(envelope).is_error


def is_outage(envelope: Envelope) -> bool:
    """Whether the failure is the vault's or ours, and not one of the request."""
    code = str(envelope.get("code"))
    return code in _OUTAGES or code not in ERRORS


def rest_answer(envelope: Envelope) -> tuple[int, dict[str, Any]]:
    """(HTTP status, body of the REST bridge): `{"success", "data"}`, with `error: {code, message}` on failure."""
    status = outcome_of(envelope).http_status
    if envelope.get("ok"):
        return status, {"success": True, "data": envelope}
    return status, failure_body(envelope)


def failure_body(envelope: Envelope) -> dict[str, Any]:
    """What a failure or a decision looks like outside MCP: `{"success": false, "error": {code, message}, "data"}`."""
    code = str(envelope.get("code") or envelope.get("action") or "internal")
    message = str(envelope.get("error") or envelope.get("hint") or code)
    return {"success": False, "error": {"code": code, "message": message}, "data": envelope}
