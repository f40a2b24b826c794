"""Random kills: clients write through a server that is killed with -9 again and again, and started again.

After the last kill the outbox is empty, nothing is parked, and the vault agrees with what the clients were told.
"""
from __future__ import annotations

import contextlib
import http.client
import random
import sqlite3
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from opsfixture import call, make_ctx
from parallel import RestClient
from serverproc import Server, running_server

from faults.ledger import MARK, Ledger
from faults.mix import Client, wrong_states
from faults.until import until

MISMATCHES = {
    "index-stale", "index-missing", "broken-link", "ambiguous-link", "duplicate-entity", "frontmatter-malformed",
    "invalid-utf8", "conflict-copy", "bad-name", "unreadable", "folder-status-mismatch",
}
"""Findings of lint that a crash could cause."""


MAY_BE_PARKED = ("INV1 lost", "INV6 refused and there")
"""What a write explains that was answered `queued: true` and then needs a decision: it is listed, not lost."""


@dataclass
class Outcome:
    """kills: how many hit a server while clients were writing. acked: acknowledged writes; kinds: calls by kind;
    parked: writes that were queued behind others and met a change of what they were decided on."""

    kills: int = 0
    acked: int = 0
    unanswered: int = 0
    parked: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def random_kills(folder: Path, kills: int, seed: int, clients: int = 4, longest_s: float = 0.9) -> Outcome:
    """Kill the server of `folder`/vault so often, each time 0.02 to `longest_s` seconds after the clients began."""
    (folder / "vault").mkdir(exist_ok=True)
    ledger, chance, outcome = Ledger(), random.Random(seed), Outcome()
    people = [Client(number, ledger, seed) for number in range(clients)]
    for one in people:
        one.prepare(folder / "vault")
    for _ in range(kills):
        with running_server(folder, ECHO_WORKERS="8") as server:
            outcome.kills += _killed_under_load(server, people, chance.uniform(0.02, longest_s))
    with running_server(folder) as server:
        until(lambda: not {"waiting", "late", "running", "replaying"} & set(states(folder)))
        assert server.stop() == 0
    parked = states(folder).get("parked", "")
    outcome.problems += [problem for problem in (*ledger.problems(folder / "vault"),
                                                 *wrong_states(people, folder / "vault"))
                         if not problem.startswith(MAY_BE_PARKED) or MARK.findall(problem)[0] not in parked]
    outcome.parked = len(parked.splitlines())
    ctx = make_ctx(folder, notify=lambda message: None)
    outcome.problems += [f"lint {row['check']} {row['path']}: {row['detail']}"
                         for row in call(ctx, "health", deep=True)["violations"] if row["check"] in MISMATCHES]
    ctx.close()
    outcome.acked = ledger.acked
    outcome.unanswered = sum(write.told == "" for write in ledger.writes)
    for one in people:
        outcome.kinds.update(one.counts)
    return outcome


def states(folder: Path) -> dict[str, str]:
    """The outbox of the server of `folder`: the arguments of all rows that are not done, a line each, by state."""
    file = folder / "state/server/queue.sqlite3"
    if not file.exists():
        return {}
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        found: dict[str, str] = {}
        for state, arguments in database.execute("SELECT state, reason || arguments FROM intent WHERE state <> 'done'"):
            found[state] = found.get(state, "") + arguments + "\n"
        return found


def _killed_under_load(server: Server, clients: list[Client], after_s: float) -> bool:
    """Let the clients write until the server is killed; whether the kill cut a connection."""
    failures: list[BaseException] = []
    cut: list[int] = []

    def work(client: Client) -> None:
        door = RestClient(server)
        try:
            while True:
                client.one(door.call)
        except (OSError, http.client.HTTPException):
            cut.append(client.number)
        except BaseException as failure:
            failures.append(failure)
        finally:
            door.close()

    threads = [threading.Thread(target=work, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    time.sleep(after_s)
    server.process.kill()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return bool(cut)
