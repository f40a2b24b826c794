"""A client that writes what clients write, remembers what it was told, and can say afterwards what must be there.

Lines go through the `Ledger`. What has states (a section that is replaced, a person that is moved, a scope, a restored
note) is a `Held`: the state that was acknowledged last, and those that an unanswered call may have made of it.
"""
from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults.ledger import Ledger, Write

Call = Callable[..., dict[str, Any]]
"""Calls a tool by name; raises OSError or http.client.HTTPException when there is no answer."""
INBOX = "inbox/captures/inbox.md"
SCOPE = "_agent/context/current-context.md"
INDEX = "_agent/index/entities.json"
SHARED = tuple(f"areas/business/log{number}.md" for number in range(3))


@dataclass
class Held:
    """What one place may hold: exactly one of `allowed`. kind: "section" (text) or "person" (path)."""

    kind: str
    name: str
    allowed: list[str]


class Client:
    """One client. number: its own; the notes it replaces and moves are its own, those it appends to are shared."""

    def __init__(self, number: int, ledger: Ledger, seed: int) -> None:
        self.number = number
        self.ledger = ledger
        self.held: list[Held] = []
        self._random = random.Random(seed * 1000 + number)
        self._people: list[Held] = []
        self._lines: list[Write] = []
        self._page = Held("section", f"projects/active/page{number}.md", ["start"])
        self.held.append(self._page)
        self.counts: dict[str, int] = {}

    def prepare(self, vault: Path) -> None:
        """Put the notes that the client expects into an empty vault."""
        for path, text in ((self._page.name, f"# Page {self.number}\n\n## Text\n\nstart\n\n## Rest\n\nstays\n"),
                           *((path, f"# {Path(path).stem}\n") for path in SHARED)):
            (vault / path).parent.mkdir(parents=True, exist_ok=True)
            (vault / path).write_text(text, encoding="utf-8")

    def one(self, call: Call) -> None:
        """Make one write of a random kind and note what was answered."""
        kinds = [self._append] * 5 + [self._inbox] * 4 + [self._person] * 2 + [
            self._merge, self._move, self._triage, self._reflect, self._session, self._replace, self._restore,
            self._scope]
        kind = self._random.choice(kinds)
        kind(call)
        self.counts[kind.__name__] = self.counts.get(kind.__name__, 0) + 1

    def _append(self, call: Call) -> None:
        write = self.ledger.begin(self.number, self._random.choice(SHARED))
        self.ledger.told(write, call("echo_append_note", path=write.path, line=f"- {write.marker}"))

    def _inbox(self, call: Call) -> None:
        write = self.ledger.begin(self.number, INBOX)
        if self.ledger.told(write, call("echo_capture", title=f"thought {write.marker} of the day")):
            self._lines.append(write)

    def _person(self, call: Call) -> None:
        write = self.ledger.begin(self.number, "")
        write.path = f"resources/people/person-{write.marker}.md"
        person = Held("person", write.marker, ["", write.path])
        self.held.append(person)
        if self.ledger.told(write, call("echo_capture", title=f"Person {write.marker}", kind="person",
                                        body=f"I am {write.marker}.", force=True)):
            person.allowed = [write.path]
            self._people.append(person)

    def _merge(self, call: Call) -> None:
        if self._people:
            path = self._random.choice(self._people).allowed[0]
            write = self.ledger.begin(self.number, path)
            self.ledger.told(write, call("echo_capture", title="Fact", kind="person", body=f"Fact {write.marker}.",
                                         merge_into=path))

    def _move(self, call: Call) -> None:
        if not self._people:
            return
        person = self._random.choice(self._people)
        old, new = person.allowed[0], f"resources/people/moved-{self._random.randrange(10**9)}.md"
        self._people.remove(person)
        person.allowed = [old, new]
        for write in self.ledger.writes:
            if write.client == self.number and write.path == old:
                write.path = f"{old}|{new}"
        if call("echo_move_note", path=old, new_path=new, confirm=True)["ok"]:
            person.allowed = [new]

    def _triage(self, call: Call) -> None:
        if not self._lines:
            return
        line = self._lines.pop(self._random.randrange(len(self._lines)))
        write = self.ledger.begin(self.number, self._random.choice(SHARED))
        told, line.told = line.told, ""
        answer = _applied(call, "echo_triage_inbox", proposals=[
            {"line": f"thought {line.marker} of the day", "action": "append", "path": write.path,
             "text": f"- {write.marker}"}])
        line.told = "refused" if self.ledger.told(write, answer) else told

    def _reflect(self, call: Call) -> None:
        first, second = (self.ledger.begin(self.number, path) for path in SHARED[:2])
        answer = _applied(call, "echo_reflect", proposals=[
            {"action": "append", "path": write.path, "line": f"- {write.marker}"} for write in (first, second)])
        for write in (first, second):
            self.ledger.told(write, answer)

    def _session(self, call: Call) -> None:
        write = self.ledger.begin(self.number, SHARED[2])
        answer = _applied(call, "echo_log_session", slug=f"session {write.marker}", log_body="A day.",
                          agent_log_line="a day",
                          reflect=[{"action": "append", "path": write.path, "line": f"- {write.marker}"}])
        self.ledger.told(write, answer)

    def _replace(self, call: Call) -> None:
        new = f"state {self._random.randrange(10**9)}"
        self._page.allowed.append(new)
        if call("echo_patch_note", path=self._page.name, operation="replace", target_type="heading", target="Text",
                content=new)["ok"]:
            self._page.allowed = [new]

    def _restore(self, call: Call) -> None:
        """Back to the version before the last replacement, when it is known what that is."""
        if len(self._page.allowed) != 1:
            return
        versions = call("echo_note_history", path=self._page.name)["versions"]
        if not versions:
            return
        shown = call("echo_restore_note", path=self._page.name, version_id=versions[0]["id"], confirm=False)
        if not shown["ok"]:
            return
        self._page.allowed.append("?")
        if call("echo_restore_note", path=self._page.name, version_id=versions[0]["id"], confirm=True)["ok"]:
            content = call("echo_get_note", path=self._page.name)["content"]
            self._page.allowed = [content.split("## Text\n\n")[1].split("\n")[0]]

    def _scope(self, call: Call) -> None:
        write = self.ledger.begin(self.number, SCOPE)
        self.ledger.told(write, call("echo_set_scope", scope=f"scope {write.marker}"))


def _applied(call: Call, tool: str, **arguments: Any) -> dict[str, Any]:
    """The answer to the apply after a preview, or to the preview when that is refused."""
    shown = call(tool, **arguments)
    if not shown["ok"]:
        return shown
    return call(tool, **arguments, apply=True, preview_token=shown["preview_token"])


def wrong_states(clients: list[Client], vault: Path) -> list[str]:
    """The places that hold none of what they may hold, and entries of the index that name no note."""
    index = vault / INDEX
    entities = json.loads(index.read_text())["entities"] if index.exists() else {}  # none before the first entity
    entries = {entry["path"] for entry in entities.values()}
    found = [f"the index names {path}, which is not there" for path in sorted(entries) if not (vault / path).is_file()]
    days = [line for day in (vault / "journal/daily").glob("*.md") for line in day.read_text().splitlines()
            if "captured person" in line]
    for client in clients:
        for held in client.held:
            if held.kind == "section":
                text = (vault / held.name).read_text().split("## Text\n\n")[1]
                state, rest = text.split("\n", 1)
                if (state not in held.allowed and "?" not in held.allowed) or rest != "\n## Rest\n\nstays\n":
                    found.append(f"{held.name} holds {state!r}, allowed are {held.allowed}")
            else:
                there = [path for path in held.allowed if path and (vault / path).is_file()]
                if len(there) != 1 and "" not in held.allowed:
                    found.append(f"person {held.name} stands at {there} of {held.allowed}")
                found += [f"{path} is not in the index" for path in there if path not in entries]
                if sum(f"|Person {held.name}]]" in line for line in days) != len(there):
                    found.append(f"the day's log names person {held.name} not once")
    return found
