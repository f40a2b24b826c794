"""The queue of writes under faults: refusals, signals, a jumping clock, other releases, a vault that goes."""
from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from crashpoints import DATABASE, Op, call, context, notes
from echo_config import build_context
from echo_context import OpContext
from echo_core.clock import Clock
from echo_core.vault.rest import RestVault
from echo_offline import with_outbox
from echo_queue import Outbox
from echo_queue_vault import OutboxVault
from echo_replay import flush
from fakes.forked import dying_at
from fakes.olrapi import Olrapi, Race
from opsfixture import INSTANT, ZONE, snapshot
from parallel import RestClient, clients_at
from restvault import KEY, serving
from serverproc import environment, running_server
from test_outbox_crashes import OPS, template  # noqa: F401

from faults.hosts import Host, rest_host
from faults.hosts import notes as make_notes
from faults.kills import states
from faults.until import until

slow = pytest.mark.slow
pytestmark = pytest.mark.timeout(400)
LATER = "2026-12-01T09:00:00+01:00"


@slow
@pytest.mark.parametrize("status", [400, 405, 413])
def test_one_write_that_is_always_refused_holds_up_no_other_note(tmp_path: Path, status: int) -> None:
    """OB-06, OB-07: the others land soon; it is listed with its reason after few tries, and lands when asked again."""
    with rest_host(tmp_path) as host:
        host.api.refuse()
        host.api.drop_connections()
        host.mixed(4, 25, wanted="queued")
        fault = host.api.faults.add("error_before", method="PUT", path="n0.md", status=status)
        host.api.accept()
        good = [write for write in host.ledger.writes if not write.path.endswith("n0.md")]
        until(lambda: all(write.marker in (host.vault / write.path).read_text() for write in good
                          if (host.vault / write.path).exists()) and (host.vault / "inbox").exists(), 60)
        until(lambda: host.health()["parked"] == len(host.ledger.writes) - len(good), 300)
        assert 0 < fault.fired <= 2 * 10 * (len(host.ledger.writes) - len(good))
        host.api.faults.remove(fault)
        env = environment(host.vault, host.server.state, ECHO_BASE=host.api.url, ECHO_KEY=KEY)
        words = [sys.executable, "-m", "echo_mcp", "queue"]
        listed = subprocess.run([*words, "list", "--json"], env=env, capture_output=True, text=True, check=True).stdout
        for row in json.loads(listed)["writes"]:
            assert row["reason"]
            subprocess.run([*words, "retry", row["op_id"]], env=env, capture_output=True, check=True)
        host.settled(120)


@contextlib.contextmanager
def server_at(folder: Path, api: Olrapi, **env: str) -> Iterator[Host]:
    """A server on a double that goes on when the server ends."""
    with running_server(folder, ready=False, ECHO_BASE=api.url, ECHO_KEY=KEY, ECHO_TIMEOUT="5", **env) as server:
        yield Host(folder, api, server)


@slow
@pytest.mark.parametrize("times", [2, pytest.param(20, marks=slow)])
def test_sigterm_during_a_drain(tmp_path: Path, times: int) -> None:
    """OB-12: exit 0 in time at any moment of a drain; in the end each write is there once, in order."""
    (tmp_path / "vault").mkdir()
    make_notes(tmp_path / "vault", 3)
    chance, interrupted = random.Random(3), 0
    with Olrapi(str(tmp_path / "vault"), key=KEY, race=Race(seconds=0.04)) as api:
        ledger = None
        for _ in range(times):
            api.refuse()
            with server_at(tmp_path, api) as host:
                ledger = host.ledger = ledger or host.ledger
                host.mixed(2, 10 if times < 5 else 25, wanted="queued")
                api.accept()
                before = len(api.log.entries)
                until(lambda before=before: len(api.log.entries) - before > chance.randrange(12))
                interrupted += bool(states(tmp_path))
                assert host.server.stop() == 0
        with server_at(tmp_path, api) as host:
            host.ledger = ledger
            host.settled()
    assert interrupted > 0, "no signal met a drain"


@slow
def test_a_clock_that_jumps_ten_years_takes_nothing_away(tmp_path: Path) -> None:
    """OB-16: what waits, the versions and the backups are all there after a minute in another decade."""
    with running_server(tmp_path, ECHO_CLOCK=INSTANT, ECHO_TZ=ZONE) as server:
        assert server.call("echo_capture", title="Ada", kind="person", body="x")["ok"]
        assert server.call("echo_append_note", path="resources/people/ada.md", line="- y")["ok"]
        until(lambda: list((tmp_path / "state/backups").glob("*.zip")))
        versions = server.call("echo_note_history", path="resources/people/ada.md")["versions"]
        server.vault.rename(tmp_path / "away")
        assert server.call("echo_capture", title="remember me")["queued"]
    zips = sorted(path.name for path in (tmp_path / "state/backups").glob("*.zip"))
    with running_server(tmp_path, ready=False, ECHO_BASE=str(tmp_path / "vault"), ECHO_CLOCK="2036-12-01T09:00:00Z",
                        ECHO_TZ=ZONE) as server:
        (tmp_path / "vault").rmdir()
        until(lambda: server.client.get(f"{server.base}/health").json()["outbox_depth"] == 1)
        (tmp_path / "away").rename(tmp_path / "vault")
        until(lambda: (tmp_path / "vault/inbox/captures/inbox.md").exists())
        assert "- 2026-11-30: remember me\n" in (tmp_path / "vault/inbox/captures/inbox.md").read_text()
        assert server.call("echo_note_history", path="resources/people/ada.md")["versions"] == versions
    assert set(zips) <= {path.name for path in (tmp_path / "state/backups").glob("*.zip")}


@slow
def test_a_note_edited_by_hand_while_writes_wait_keeps_the_edit(tmp_path: Path) -> None:
    """OB-18: lines of both stand; a section that a waiting write replaces is kept as a version."""
    vault, away = tmp_path / "vault", tmp_path / "away"
    vault.mkdir()
    (vault / "list.md").write_text("# List\n\n## Status\n\nold\n\n## Log\n\n- start\n")
    with running_server(tmp_path) as server:
        assert server.call("echo_get_note", path="list.md")["ok"]
        vault.rename(away)
        assert server.call("echo_append_note", path="list.md", line="- ours", section="Log")["queued"]
        assert server.call("echo_patch_note", path="list.md", operation="replace", target_type="heading",
                           target="Status", content="replaced")["queued"]
        text = "# List\n\nA new preface.\n\n## Status\n\nold, but longer by hand\n\n## Log\n\n- start\n- by hand\n"
        (away / "list.md").write_text(text)
        away.rename(vault)
        until(lambda: "- ours" in (vault / "list.md").read_text())
        until(lambda: server.client.get(f"{server.base}/health").json()["outbox_depth"] == 0)
        now = (vault / "list.md").read_text()
        assert "A new preface." in now and "- start\n- by hand\n" in now
        versions = server.call("echo_note_history", path="list.md")["versions"]
        kept = [server.call("echo_restore_note", path="list.md", version_id=row["id"])["diff"] for row in versions]
        assert "old, but longer by hand" in now or any("old, but longer by hand" in diff for diff in kept)


@slow
def test_the_same_call_ten_times_at_once_has_one_effect(tmp_path: Path) -> None:
    """OB-19: also when it is sent once more after a restart; all answers are alike."""
    same = ("echo_append_note", {"path": "list.md", "line": "- once"})
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault/list.md").write_text("# List\n")
    with running_server(tmp_path) as server:
        answers = clients_at(server, [[same]] * 10)
    with running_server(tmp_path) as server:
        door = RestClient(server)
        answers.append(door.call(same[0], **same[1]))
        door.close()
    assert {answer["op_id"] for answer in answers} == {answers[0]["op_id"]}
    assert (tmp_path / "vault/list.md").read_text() == "# List\n- once\n"


def rest_context(folder: Path, vault: RestVault, instant: str) -> OpContext:
    """A context with an outbox over a vault behind the API, as the server has it."""
    state = str(folder / "state")
    outbox = Outbox(state, "vault", "server")
    ctx = build_context("", Clock(ZONE, instant), state, holder="test", notify=lambda message: None, backend=vault,
                        wrap=lambda inner: OutboxVault(inner, outbox))
    return with_outbox(ctx, outbox, state)


STEPPED = ["capture a note", "merge", "reflect", "triage", "log the session", "set the scope", "link", "append"]


@slow
@pytest.mark.parametrize("name", ["set the scope", *(pytest.param(name, marks=slow) for name in STEPPED
                                                     if name != "set the scope")])
def test_the_vault_goes_after_any_request_of_a_call(
    name: str, template: Path, tmp_path: Path, record_property: Callable[[str, object], None]  # noqa: F811
) -> None:
    """OB-21: whichever request is the last that works, the vault ends as if nothing had happened, byte for byte."""
    wanted, fired, k = None, True, -1
    while fired:
        copy = tmp_path / f"run{k}"
        shutil.copytree(template, copy)
        before = notes(copy)
        with serving(copy, timeout_s=0.5) as rest:
            ctx = rest_context(copy, rest.vault, INSTANT)
            ctx.catalog.refresh()
            fault = None if k < 0 else rest.api.faults.add("reset_request", skip=k, after=0)
            answer = call(ctx, OPS[name])
            fired = fault is None or fault.fired > 0
            rest.api.faults.clear()
            ctx.close()
            ctx = rest_context(copy, rest.vault, LATER)
            until(lambda ctx=ctx: not flush(ctx).left, 30)
            held = [f"{row.state} {row.reason}" for row in ctx.outbox.rows()] if ctx.outbox else []
            ctx.close()
        after = notes(copy)
        if k < 0:
            wanted = after
        assert held == [], (k, held)
        assert after == (wanted if answer["ok"] else before) or after == wanted, (k, answer)
        shutil.rmtree(copy)
        k += 1
    assert k > 3
    record_property("requests", k)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_write_that_waits_survives_the_death_of_the_next_one(tmp_path: Path) -> None:
    """OB-03: killed at each step of keeping the second one; the first, which was acknowledged, is there."""
    steps = [(os, name) for name in ("open", "write", "fsync", "rename", "replace", "unlink", "ftruncate")]
    step, died = 0, True
    while died:
        step += 1
        folder = tmp_path / f"{step}"
        (folder / "vault").mkdir(parents=True)
        (folder / "vault/list.md").write_text("# List\n")
        (folder / "vault").rename(folder / "away")
        ctx = context(folder)
        assert call(ctx, Op("echo_append_note", {"path": "list.md", "line": "- first"}))["queued"]
        ctx.close()
        second = Op("echo_append_note", {"path": "list.md", "line": "- second"})
        died = dying_at(step, [*steps, *DATABASE], lambda folder=folder, op=second: call(context(folder), op))
        (folder / "away").rename(folder / "vault")
        ctx = context(folder, LATER)
        flush(ctx)
        assert ctx.outbox is not None and ctx.outbox.counts()["damaged"] == 0
        ctx.close()
        lines = (folder / "vault/list.md").read_text().splitlines()[1:]
        assert lines in (["- first"], ["- first", "- second"]), (step, lines)
    assert step > 3


OLD = """CREATE TABLE writes (id INTEGER PRIMARY KEY AUTOINCREMENT, op_id TEXT NOT NULL UNIQUE, vault TEXT NOT NULL,
tool TEXT NOT NULL, arguments TEXT NOT NULL, instant TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '')"""


@slow
def test_an_outbox_of_another_release(tmp_path: Path) -> None:
    """OB-22, SC-12: an older one is replayed once; a newer one stops the start and is left as it is."""
    (tmp_path / "vault").mkdir()
    folder = tmp_path / "state/server"
    folder.mkdir(parents=True, mode=0o700)
    with contextlib.closing(sqlite3.connect(folder / "queue.sqlite3")) as database:
        database.execute(OLD)
        for number in range(3):
            database.execute("INSERT INTO writes (op_id, vault, tool, arguments, instant) VALUES (?, ?, ?, ?, ?)",
                             (f"op{number:010}", str(tmp_path / "vault"), "echo_capture",
                              json.dumps({"title": f"thought {number} of old"}), INSTANT))
        database.commit()
    for _ in range(2):
        with running_server(tmp_path, ECHO_TZ=ZONE) as server:
            until(lambda: (tmp_path / "vault/inbox/captures/inbox.md").exists())
            until(lambda: not states(tmp_path))
            assert server.stop() == 0
    lines = [line for line in (tmp_path / "vault/inbox/captures/inbox.md").read_text().splitlines() if "of old" in line]
    assert lines == [f"- 2026-11-30: thought {number} of old" for number in range(3)]
    with contextlib.closing(sqlite3.connect(folder / "queue.sqlite3")) as database:
        database.execute("PRAGMA user_version = 99")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before, vault = (folder / "queue.sqlite3").read_bytes(), snapshot(tmp_path)
    done = subprocess.run([sys.executable, "-m", "echo_mcp", "serve"], capture_output=True, text=True, check=False,
                          env=environment(tmp_path / "vault", tmp_path / "state"), timeout=30)
    assert done.returncode == 64
    assert "newer release" in done.stderr and done.stderr.count("\n") == 1
    assert (folder / "queue.sqlite3").read_bytes() == before
    assert snapshot(tmp_path) == vault
