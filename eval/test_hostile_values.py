"""Every argument of every tool is tried with values nobody should send: the answer is coded and tells the way out.

The table of `test_bad_input` says which refusal is right where; this sweep has no blind spot: a new tool or argument is
in it by itself.
"""
from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from echo_core.errors import DECISIONS, ERRORS
from echo_tools import TOOLS, Param, Tool
from opsfixture import INSTANT, ZONE
from serverproc import TOKEN, Server, running_server
from test_bad_input import CANARY, ENGINE, LEAKS, PATCH, SESSION, TRIAGE, fill, tree

DEEP: Any = []
for _ in range(500):
    DEEP = [DEEP]
VALUES: list[Any] = [
    None, "", [], {}, [[]], {"a": 1}, True, -1, 1.5, 10**400, "a\0b", "x" * 1_100_000, "%2e%2e%2fx", "a\nb", "\u202e",
    "9" * 400, "[[[[" * 2000, ["x"] * 1001, "{{x}}<% y %>", DEEP,
]
"""What any argument is tried with."""
NESTED: list[Any] = [[], {"a": 1}, "a\0b", "x" * 20_000, "\u202e", DEEP]
"""What the fields of a proposal are tried with."""
BASE: dict[str, dict[str, Any]] = {
    "echo_recall": {"query": "patterns"}, "echo_resolve": {"mention": "Engine"}, "echo_get_note": {"path": ENGINE},
    "echo_set_scope": {"scope": "s"}, "echo_capture": {"title": "T", "kind": "concept", "body": "b"},
    "echo_link": {"a": ENGINE, "b": "inbox/captures/inbox.md"}, "echo_append_note": {"path": ENGINE, "line": "- x"},
    "echo_patch_note": {"path": ENGINE, **PATCH}, "echo_move_note": {"path": ENGINE, "new_path": "notes/new.md"},
    "echo_reflect": {"proposals": [{"action": "append", "path": ENGINE, "line": "- y"}]}, "echo_log_session": SESSION,
    "echo_rollup_data": {"period": "week"}, "echo_note_history": {"path": ENGINE},
    "echo_restore_note": {"path": ENGINE, "version_id": "1"},
}
"""Calls that would be good but for the one value; tools that are not here need no argument."""
PROPOSALS: dict[str, dict[str, Any]] = {
    "capture": {"title": "T", "kind": "concept"}, "append": {"path": ENGINE, "line": "- q", "text": "t"},
    "link": {"a": ENGINE, "b": "inbox/captures/inbox.md"},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "vault").mkdir()
    fill(folder / "vault", folder / "outside")
    with running_server(folder, ECHO_CLOCK=INSTANT, ECHO_TZ=ZONE, ECHO_TIMEOUT="60") as running:
        yield running
        log = "\n".join(running.lines)
        assert not LEAKS.search(log), LEAKS.search(log)
        assert "internal error" not in log
        assert CANARY not in log
    assert [path.name for path in (folder / "outside").iterdir()] == ["secret.md"]


def attempts(tool: Tool) -> Iterator[tuple[str, dict[str, Any]]]:
    """(argument, call) with one hostile value in each call."""
    base = BASE.get(tool.name, {})
    for param in tool.params:
        for value in VALUES:
            yield param.name, {**base, param.name: value}
        for field in param.fields:
            for value in NESTED:
                yield f"{param.name}[0].{field.name}", {**base, param.name: [proposal(tool, param, field.name, value)]}


def proposal(tool: Tool, param: Param, field: str, value: Any) -> dict[str, Any]:
    """A good proposal but for one field; of the kind that uses the field where there is one."""
    known = {each.name for each in param.fields}
    action = next((name for name, fields in PROPOSALS.items() if field in fields and field in known), "capture")
    item = {"action": action, **{key: given for key, given in PROPOSALS[action].items() if key in known}}
    return {**item, **(TRIAGE if tool.name == "echo_triage_inbox" else {}), field: value}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_no_value_of_any_argument_breaks_a_tool(server: Server, tool: Tool) -> None:
    """A code of the table, one line, a way out, no byte changed by a refusal, nothing of the host in any answer."""
    before = tree(server.vault)
    for where, arguments in attempts(tool):
        answer = server.client.post(f"{server.base}/api/tools/{tool.name}", content=json.dumps(arguments).encode())
        envelope = answer.json()["data"]
        shown = (where, str(arguments)[:200], answer.text[:300])
        assert answer.status_code < 500, shown
        assert str(server.vault.parent) not in answer.text, shown
        assert TOKEN not in answer.text, shown
        after = tree(server.vault)
        if not envelope["ok"]:
            assert after == before, shown
            refused(envelope, shown)
        before = after


def refused(envelope: dict[str, Any], shown: Any) -> None:
    """Whether a refusal is one that a model can act on."""
    assert envelope.get("code") in ERRORS or envelope.get("action") in DECISIONS, shown
    assert envelope.get("code") != "internal", shown
    assert envelope["hint"], shown
    assert len(json.dumps(envelope)) < 8000, shown
    error = envelope.get("error", "decision")
    assert 0 < len(error) < 400, shown
    assert len(error.splitlines()) == 1, shown
    assert not LEAKS.search(error + envelope["hint"]), shown
