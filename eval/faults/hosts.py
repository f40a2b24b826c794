"""A server behind a double of Obsidian's REST API, clients that write through it, and what has to hold afterwards."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fakes.olrapi import Olrapi, Race
from parallel import RestClient, together
from restvault import KEY
from serverproc import Server, running_server

from faults.kills import states
from faults.ledger import Ledger, Write
from faults.until import until

INBOX = "inbox/captures/inbox.md"


class Host:
    """folder: `vault` and `state` lie in it. ledger: what the clients were told."""

    def __init__(self, folder: Path, api: Olrapi, server: Server) -> None:
        self.folder, self.api, self.server = folder, api, server
        self.vault = folder / "vault"
        self.ledger = Ledger()

    def health(self) -> dict[str, Any]:
        """What `/health` says."""
        return dict(self.server.client.get(f"{self.server.base}/health").json())

    def append(self, call: Callable[..., dict[str, Any]], client: int, path: str) -> dict[str, Any]:
        """One append with a marker of its own."""
        write = self.ledger.begin(client, path)
        envelope = call("echo_append_note", path=path, line=f"- {write.marker}")
        self.ledger.told(write, envelope)
        return envelope

    def capture(self, call: Callable[..., dict[str, Any]], client: int) -> dict[str, Any]:
        """One inbox line with a marker of its own."""
        write = self.ledger.begin(client, INBOX)
        envelope = call("echo_capture", title=f"thought {write.marker} of the day")
        self.ledger.told(write, envelope)
        return envelope

    def clients(self, number: int, work: Callable[[int, Callable[..., dict[str, Any]]], None]) -> None:
        """`work(client, call)` by so many clients at once, each on a connection of its own."""
        def one(client: int) -> None:
            door = RestClient(self.server)
            try:
                work(client, door.call)
            finally:
                door.close()

        together([lambda client=client: one(client) for client in range(number)])

    def mixed(self, clients: int, turns: int, paths: int = 3, wanted: str = "") -> list[dict[str, Any]]:
        """Appends to `paths` notes and inbox lines in turn by so many clients at once; their answers.

        wanted: "queued" or "made" asserts that of every answer.
        """
        answers: list[dict[str, Any]] = []

        def work(client: int, call: Callable[..., dict[str, Any]]) -> None:
            for turn in range(turns):
                answers.append(self.capture(call, client) if turn % 2 else
                               self.append(call, client, f"areas/business/n{(turn // 2 + client) % paths}.md"))

        self.clients(clients, work)
        if wanted:
            wrong = [one for one in answers if not one["ok"] or bool(one.get("queued")) != (wanted == "queued")]
            assert wrong == [], wrong[:2]
        return answers

    def settled(self, patience_s: float = 60.0) -> None:
        """Wait until nothing is owed any more, then hold the invariants against the vault (INV1, 2, 5, 6)."""
        until(lambda: not {"waiting", "late", "running", "replaying"} & set(states(self.folder)), patience_s,
              "the outbox does not become empty")
        problems = self.ledger.problems(self.vault)
        assert not problems, (problems, states(self.folder))

    def acked(self) -> list[Write]:
        """The acknowledged writes."""
        return [write for write in self.ledger.writes if write.told == "acked"]


def notes(vault: Path, number: int) -> list[str]:
    """Paths of so many new notes with a heading and a line."""
    paths = [f"areas/business/n{n}.md" for n in range(number)]
    for path in paths:
        (vault / path).parent.mkdir(parents=True, exist_ok=True)
        (vault / path).write_text(f"# Note {path}\n\nfirst line\n")
    return paths


@contextlib.contextmanager
def rest_host(folder: Path, count: int = 3, race_s: float = 0.0, ready: bool = True, key: str = KEY, **env: str
              ) -> Iterator[Host]:
    """A server behind a double with `count` notes. race_s: how long the gap between read and write stays open."""
    (folder / "vault").mkdir(exist_ok=True)
    notes(folder / "vault", count)
    with (
        Olrapi(str(folder / "vault"), key=key, race=Race(seconds=race_s)) as api,
        running_server(folder, ready=ready, ECHO_BASE=api.url, ECHO_KEY=KEY, **{"ECHO_TIMEOUT": "2", **env}) as server,
    ):
        host = Host(folder, api, server)
        yield host
        api.faults.clear()
        assert KEY not in "\n".join(server.lines)
