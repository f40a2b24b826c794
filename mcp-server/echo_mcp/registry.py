"""The registry: what exists on every door, and the one way a call runs (spec 4.1, 4.4).

MCP, REST, OpenAPI and the documentation are derived from the records here; a tool that is not registered exists
on no door. The order of registration is the order everywhere.
"""
from __future__ import annotations

import asyncio
import difflib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

from echo_core.errors import InternalError, NotFound, VaultUnreachable

from echo_mcp import logs, outcomes
from echo_mcp.limits import Workers
from echo_mcp.outcomes import ANSWER_LIMIT, Envelope

Arguments = Mapping[str, Any]
Lane = Literal["vault", "index", "start"]
INDEX_WORKERS = 4
"""Threads of calls that need no vault: they never wait behind calls that hang in it."""
START_WORKERS = 4
"""Threads of calls that begin a conversation: they can do without a vault that does not answer."""
LOOK_S = 0.25
"""How often a waiting call looks whether waiting has become hopeless."""


def default_limit(_: Arguments) -> int:
    """The most characters of an answer whose call asked for no certain size."""
    return ANSWER_LIMIT


@dataclass(frozen=True)
class ToolRecord:
    """One tool.

    handler: gets the raw arguments, which it checks, and the client's own key of the call or ""; answers an envelope
    and raises nothing; runs in a thread.
    render: an envelope as readable text. annotations: MCP's hints. lane: "index" for handlers that never touch the
    vault, "start" for those that can do without it. writes: may change the vault. limit: from the arguments to the
    most characters of an answer. known: answers without the vault, None when it cannot; asked when the time is up or,
    where that is given, as soon as waiting is hopeless. kept: the answer to a write that has begun and is not done in
    time, when it is sure to be made or parked.
    """

    name: str
    description: str
    group: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    annotations: dict[str, bool]
    handler: Callable[[Arguments, str], Envelope]
    render: Callable[[Envelope], str]
    lane: Lane = "vault"
    writes: bool = True
    limit: Callable[[Arguments], int] = default_limit
    known: Callable[[Arguments], Envelope | None] | None = None
    hopeless: Callable[[], bool] | None = None
    kept: Callable[[Arguments, str], Envelope | None] | None = None


@dataclass(frozen=True)
class ResourceRecord:
    """A family of MCP resources. prefix: the URI up to the name; template: the URI with its placeholder.

    reader: gets the decoded name, answers an envelope with `content` (the text of the resource).
    """

    name: str
    prefix: str
    template: str
    description: str
    reader: Callable[[str], Envelope]


@dataclass(frozen=True)
class PromptRecord:
    """An MCP prompt without arguments: what the assistant is asked to do."""

    name: str
    description: str
    text: str


@dataclass
class ToolStats:
    """Totals of one tool since start: outcomes by word, time in milliseconds, bytes answered."""

    outcomes: Counter[str] = field(default_factory=Counter)
    ms: float = 0.0
    sent: int = 0


class Rescue(NamedTuple):
    """What may answer instead of a call that waits for the vault: see `ToolRecord`."""

    known: Callable[[], Envelope | None]
    hopeless: Callable[[], bool] | None


class Registry:
    """Tools, resources and prompts by name, and the lanes their handlers run in.

    workers: vault calls at once. timeout_s: the total time of one call, waiting included. instructions: sentences
    for the client's model about the tools as a whole; toolsets add to them. stats: totals by tool.
    """

    def __init__(self, workers: int = 16, timeout_s: float = 10) -> None:
        self._tools: dict[str, ToolRecord] = {}
        self._resources: dict[str, ResourceRecord] = {}
        self._prompts: dict[str, PromptRecord] = {}
        self._timeout_s = timeout_s
        self._lanes: dict[Lane, Workers] = {
            "vault": Workers("vault", workers), "index": Workers("index", INDEX_WORKERS),
            "start": Workers("start", START_WORKERS),
        }
        self.stats: dict[str, ToolStats] = {}
        self.instructions: list[str] = []

    def add_tool(self, record: ToolRecord) -> None:
        """Register a tool. Raises ValueError when the name is taken."""
        if record.name in self._tools:
            raise ValueError(f"two tools are called {record.name}")
        self._tools[record.name] = record
        self.stats[record.name] = ToolStats()

    def add_resource(self, record: ResourceRecord) -> None:
        """Register a family of resources under its prefix."""
        self._resources[record.prefix] = record

    def add_prompt(self, record: PromptRecord) -> None:
        """Register a prompt under its name."""
        self._prompts[record.name] = record

    def tools(self) -> list[ToolRecord]:
        """Every tool, in order of registration."""
        return list(self._tools.values())

    def resources(self) -> list[ResourceRecord]:
        """Every family of resources."""
        return list(self._resources.values())

    def prompts(self) -> list[PromptRecord]:
        """Every prompt."""
        return list(self._prompts.values())

    def find(self, name: str) -> ToolRecord | None:
        """The tool of exactly this name."""
        return self._tools.get(name)

    def nearest(self, name: str) -> str:
        """The tool whose name looks most like `name`, "" when none does."""
        near = difflib.get_close_matches(name[:100], self._tools, n=1)
        return near[0] if near else ""

    async def call(self, name: str, arguments: Arguments, client_key: str = "") -> Envelope:
        """Run a registered tool and answer its envelope, bounded; raises KeyError for a name that is not there.

        client_key: the client's own name for the call, so that one sent again is not made again.

        A call that is not done in time answers `vault-unreachable`. A write that has begun goes on all the same, so
        its answer says that it is kept, or that the outcome is unknown, and never that nothing happened.
        """
        record = self._tools[name]
        started = time.perf_counter()
        outcome, size = "abandoned", 0
        try:
            rescue = None if record.known is None else Rescue(partial(record.known, arguments), record.hopeless)
            job = partial(record.handler, arguments, client_key)
            envelope = await self._run(record.lane, job, record.writes, rescue)
            if envelope.get("outcome") == "unknown" and record.kept is not None:
                envelope = record.kept(arguments, client_key) or envelope
            envelope, size = outcomes.sized(envelope, record.limit(arguments))
            outcome = outcomes.word(envelope)
            return envelope
        finally:
            self._account(name, (time.perf_counter() - started) * 1000, outcome, size)

    async def read(self, uri: str) -> Envelope:
        """The envelope of a resource, with its text in `content`; `not-found` for a URI of no family."""
        for prefix, record in self._resources.items():
            if uri.startswith(prefix) and len(uri) > len(prefix):
                envelope = await self._run("vault", partial(record.reader, uri[len(prefix):]), writes=False)
                return outcomes.sized(envelope, ANSWER_LIMIT)[0]
        return NotFound("there is no such resource", hint="See resources/templates/list.").envelope()

    def prompt(self, name: str) -> PromptRecord | None:
        """The prompt of exactly this name."""
        return self._prompts.get(name)

    def open_calls(self) -> int:
        """Calls that wait for a thread or run in one."""
        return sum(lane.open for lane in self._lanes.values())

    def drain(self, until: float) -> bool:
        """Wait for running calls until `time.monotonic()` passes `until`; whether all are done."""
        drained = [lane.drain(until) for lane in self._lanes.values()]
        return all(drained)

    async def _run(
        self, lane: Lane, job: Callable[[], Envelope], writes: bool, rescue: Rescue | None = None
    ) -> Envelope:
        future = self._lanes[lane].submit(job)
        waiter = asyncio.wrap_future(future)
        end = time.monotonic() + self._timeout_s
        while not await self._ends(waiter, end, rescue):
            late = time.monotonic() >= end
            if rescue and (late or (rescue.hopeless and rescue.hopeless())):
                known = await self._rescued(rescue)
                if known is not None:
                    future.cancel()
                    return known
            if late:
                return self._late(began=not future.cancel(), writes=writes)
        if failure := waiter.exception():
            logs.LOGGER.error("handler-failed", exc_info=failure)
            return InternalError("the call failed for an unforeseen reason").envelope()
        envelope: Envelope = waiter.result()
        return envelope

    async def _ends(self, waiter: asyncio.Future[Envelope], end: float, rescue: Rescue | None) -> bool:
        """Whether the job ends until it is time to look again."""
        left = max(0.0, end - time.monotonic())
        done, _ = await asyncio.wait({waiter}, timeout=min(LOOK_S, left) if rescue and rescue.hopeless else left)
        return bool(done)

    async def _rescued(self, rescue: Rescue) -> Envelope | None:
        """The answer without the vault, None when that is not known."""
        return await asyncio.wrap_future(self._lanes["index"].submit(rescue.known))

    def _late(self, began: bool, writes: bool) -> Envelope:
        if began and writes:
            return VaultUnreachable(
                f"the vault did not finish within {self._timeout_s:g} seconds",
                hint="The outcome is unknown: the write may still arrive. Read the note before you repeat the call.",
                reason="timeout", outcome="unknown",
            ).envelope()
        return VaultUnreachable(
            f"the vault did not answer within {self._timeout_s:g} seconds",
            hint="Nothing was changed. Proceed without memory and try again later.", reason="timeout",
        ).envelope()

    def _account(self, name: str, ms: float, outcome: str, size: int) -> None:
        stats = self.stats[name]
        stats.outcomes[outcome] += 1
        stats.ms += ms
        stats.sent += size
        logs.event("call", tool=name, ms=round(ms, 1), outcome=outcome, bytes=size)


def schema_size(records: Iterable[ToolRecord]) -> int:
    """Characters of what `tools/list` costs a model: names, descriptions and input schemas as compact JSON."""
    return sum(
        len(outcomes.to_json({"name": r.name, "description": r.description, "inputSchema": r.input_schema}))
        for r in records
    )
