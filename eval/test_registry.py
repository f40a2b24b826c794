"""One way a call runs: deadline, lanes, bounds, log line (spec 4.1, 4.4)."""
from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from echo_mcp import outcomes
from echo_mcp.registry import Registry, schema_size
from fakeserver import echo_back, fill, tool

Handler = Callable[[Mapping[str, Any]], dict[str, Any]]


def blocked(gate: threading.Event, ran: list[str]) -> Handler:
    """A handler that notes that it began, waits for the gate and then notes its mark."""

    def handler(arguments: Mapping[str, Any]) -> dict[str, Any]:
        ran.append("began")
        gate.wait(10)
        ran.append(str(arguments.get("mark")))
        return {"ok": True}

    return handler


def ask(registry: Registry, name: str, **arguments: Any) -> dict[str, Any]:
    return asyncio.run(registry.call(name, arguments))


def test_a_read_that_overruns_its_deadline_changed_nothing() -> None:
    """The answer comes in time and says that nothing happened."""
    gate, registry = threading.Event(), Registry(timeout_s=0.1)
    registry.add_tool(tool("hang", blocked(gate, []), writes=False))
    envelope = ask(registry, "hang")  # answered although the vault never does
    gate.set()
    assert (envelope["ok"], envelope["code"], envelope["reason"]) == (False, "vault-unreachable", "timeout")
    assert "Nothing was changed" in envelope["hint"]


def test_a_write_that_overruns_its_deadline_says_that_its_outcome_is_unknown() -> None:
    """It goes on in its thread: an answer that claims failure would make a model write twice."""
    gate, ran, registry = threading.Event(), [], Registry(timeout_s=0.1)
    registry.add_tool(tool("write", blocked(gate, ran)))
    envelope = ask(registry, "write", mark="written")
    assert envelope["outcome"] == "unknown"
    assert "Read the note before you repeat" in envelope["hint"]
    gate.set()
    assert registry.drain(time.monotonic() + 5)
    assert ran == ["began", "written"]


@pytest.mark.parametrize("holds", [True, False])
def test_a_write_that_the_outbox_holds_is_queued_when_the_time_is_up(holds: bool) -> None:
    """Its outcome is known then: it is made or parked."""
    gate, registry = threading.Event(), Registry(timeout_s=0.1)
    kept = {"ok": True, "queued": True, "op_id": "abc"} if holds else None
    registry.add_tool(dataclasses.replace(tool("write", blocked(gate, [])), kept=lambda arguments, key: kept))
    envelope = ask(registry, "write")
    gate.set()
    assert (envelope["ok"], envelope.get("queued", False), "outcome" in envelope) == (holds, holds, not holds)


def test_a_call_that_never_got_a_worker_never_runs() -> None:
    """When all workers hang, a waiting write is taken back: it says so, and it is true."""
    gate, ran, registry = threading.Event(), [], Registry(workers=1, timeout_s=0.1)
    registry.add_tool(tool("write", blocked(gate, ran)))

    async def both() -> list[dict[str, Any]]:
        first = asyncio.ensure_future(registry.call("write", {"mark": "first"}))
        return [await first, await registry.call("write", {"mark": "second"})]

    first, second = asyncio.run(both())
    gate.set()
    assert registry.drain(time.monotonic() + 5)
    assert first.get("outcome") == "unknown"
    assert "outcome" not in second
    assert ran == ["began", "first"]


@pytest.mark.parametrize("hopeless", [None, lambda: False, lambda: True])
def test_what_is_known_answers_for_a_vault_that_does_not(hopeless: Callable[[], bool] | None) -> None:
    """When the time is up, or as soon as waiting is hopeless; also for a call that never got a worker."""
    gate = threading.Event()
    registry = Registry(workers=1, timeout_s=60 if hopeless and hopeless() else 0.4)
    for name, known in (("told", {"ok": True, "offline": True}), ("unknown", None)):
        record = tool(name, blocked(gate, []), writes=False)
        registry.add_tool(dataclasses.replace(record, known=lambda _, known=known: known, hopeless=hopeless))

    async def run() -> list[dict[str, Any]]:
        return await asyncio.gather(*(registry.call("told", {}) for _ in range(3)))

    assert all(envelope["offline"] for envelope in asyncio.run(run()))
    if not (hopeless and hopeless()):
        assert ask(registry, "unknown")["code"] == "vault-unreachable"
    gate.set()


def test_a_vault_that_answers_is_never_answered_for() -> None:
    """However long the call takes within its time."""
    gate, registry = threading.Event(), Registry(timeout_s=60)
    asked = []

    def hopeless() -> bool:
        asked.append(1)
        gate.set()
        return False

    record = tool("look", blocked(gate, []), writes=False)
    registry.add_tool(dataclasses.replace(record, known=lambda _: {"ok": True, "offline": True}, hopeless=hopeless))
    assert ask(registry, "look") == {"ok": True}
    assert asked


def test_index_tools_answer_while_sixty_vault_calls_hang() -> None:
    """A dead vault takes the vault's lane and nothing else."""
    gate, registry = threading.Event(), fill(Registry(workers=16, timeout_s=60))
    registry.add_tool(tool("hang", blocked(gate, []), writes=False))

    async def run() -> None:
        hung = [asyncio.ensure_future(registry.call("hang", {})) for _ in range(60)]
        for _ in range(100):
            assert (await registry.call("fake_noop", {}))["ok"]
        assert not any(call.done() for call in hung)
        gate.set()
        await asyncio.gather(*hung)

    asyncio.run(run())


def test_a_cancelled_call_leaves_its_write_running() -> None:
    """A client that goes away does not cut a write in half."""
    gate, ran, registry = threading.Event(), [], Registry()
    registry.add_tool(tool("write", blocked(gate, ran)))

    async def cancelled() -> None:
        call = asyncio.ensure_future(registry.call("write", {"mark": "done"}))
        while not ran:
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

    asyncio.run(cancelled())
    gate.set()
    assert registry.drain(time.monotonic() + 5)
    assert ran == ["began", "done"]
    assert registry.stats["write"].outcomes == {"abandoned": 1}


def test_a_handler_with_a_bug_answers_internal_without_its_message() -> None:
    """Nothing of the exception leaves the process."""
    envelope = ask(fill(Registry()), "fake_crash", text="secret")
    assert envelope["code"] == "internal"
    assert "canary" not in json.dumps(envelope)


def test_each_call_is_one_log_line_without_values(caplog: pytest.LogCaptureFixture) -> None:
    """Tool, time, outcome and size; never an argument."""
    registry = fill(Registry())
    with caplog.at_level(logging.INFO, "echo_mcp"):
        ask(registry, "fake_noop", text="canary")
        ask(registry, "fake_decide")
        ask(registry, "fake_down")
    lines = [record.fields for record in caplog.records]  # type: ignore[attr-defined]
    assert [set(line) for line in lines] == [{"tool", "ms", "outcome", "bytes"}] * 3
    assert [line["outcome"] for line in lines] == ["ok", "duplicate-gate", "vault-unreachable"]
    assert "canary" not in str(lines)
    assert registry.stats["fake_noop"].outcomes == {"ok": 1}


def test_two_tools_cannot_share_a_name() -> None:
    """The second toolset fails at start and not by shadowing the first."""
    registry = fill(Registry())
    with pytest.raises(ValueError, match="fake_noop"):
        registry.add_tool(tool("fake_noop", echo_back))


def test_names_are_found_exactly_and_the_nearest_is_suggested() -> None:
    """`Fake_noop` is not `fake_noop`; a hint says what may have been meant."""
    registry = fill(Registry())
    assert registry.find("Fake_noop") is None
    assert registry.nearest("fake_nop") == "fake_noop"
    assert registry.nearest("x" * 10_000) == ""


@pytest.mark.parametrize("uri", ["echo://note/", "echo://other/x", "file:///etc/passwd", ""])
def test_only_known_resources_are_read(uri: str) -> None:
    """A URI of no family is not-found, whatever it names."""
    assert asyncio.run(fill(Registry()).read(uri))["code"] == "not-found"


def test_a_resource_is_read_by_its_name() -> None:
    """The rest of the URI is the name."""
    assert asyncio.run(fill(Registry()).read("echo://note/a/b.md"))["content"] == "note a/b.md"


def test_a_small_answer_passes_unchanged() -> None:
    """Not even its key order differs."""
    envelope = {"ok": True, "z": [1, None, {"b": "ä"}], "a": ""}
    assert outcomes.sized(envelope, 1000) == (envelope, len('{"ok":true,"z":[1,null,{"b":"ä"}],"a":""}'.encode()))


def test_a_large_answer_is_cut_at_its_largest_fields_and_says_so() -> None:
    """Lists lose their last items, text its end; the full lengths are told; small fields stay whole."""
    envelope = {"ok": True, "path": "a.md", "items": [f"item {n}" for n in range(5000)], "content": "wörter " * 5000}
    cut, size = outcomes.sized(envelope, 20_000)
    assert len(outcomes.to_json(cut)) <= 20_000
    assert size == len(outcomes.to_json(cut).encode())
    assert (cut["truncated"], cut["path"]) == (True, "a.md")
    assert cut["full_length"] == {"items": 5000, "content": 35_000}
    assert cut["items"] == envelope["items"][:len(cut["items"])]
    assert envelope["content"].startswith(cut["content"])


def test_text_that_no_door_could_send_is_made_sendable() -> None:
    """Half surrogates and NaN would break the response after the write is done."""
    cut, _ = outcomes.sized({"ok": True, "title": "a\ud800b", "score": float("nan")}, 1000)
    assert cut == {"ok": True, "title": "a?b", "score": "nan"}
    outcomes.to_json(cut).encode()


def test_an_answer_that_cannot_be_rendered_is_shown_as_json() -> None:
    """A bug in how an answer reads does not lose what was done."""
    def broken(_: dict[str, Any]) -> str:
        raise KeyError("x")

    assert outcomes.text(broken, {"ok": True, "path": "a.md"}, 100) == '{"ok":true,"path":"a.md"}'


def test_a_cut_text_says_how_long_it_was() -> None:
    """The reader sees that something is missing."""
    assert outcomes.text(lambda _: "word " * 100, {}, 20).endswith("of 500 characters]")


def test_the_cost_of_the_schemas_is_counted() -> None:
    """What `tools/list` costs a model in characters."""
    assert schema_size([]) == 0
    assert schema_size(fill(Registry()).tools()) > 300
