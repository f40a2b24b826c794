"""The CLI's offline queue: a write that was answered `queued: true` arrives exactly once, with its own time."""
from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import echo
import echo_tools
import pytest
from echo_bootstrap import bootstrap_op
from echo_context import OpContext
from echo_core.errors import EchoError, InvalidPath, VaultUnreachable
from echo_offline import promised, run, with_outbox
from echo_queue import Outbox
from echo_queue_rows import Running, call_of
from echo_queue_vault import OutboxVault
from echo_replay import flush
from echo_tools import new_op_id
from fakes.memory_vault import MemoryVault
from opsfixture import INSTANT, ZONE, get, make_ctx, put, snapshot


class Machine:
    """A command line on a vault that can be taken away and brought back."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capsys = capsys
        self.env = {"ECHO_BASE": str(folder / "vault"), "ECHO_STATE_DIR": str(folder / "state"), "ECHO_TZ": ZONE,
                    "ECHO_CLOCK": INSTANT}

    def __call__(self, *line: str, code: int = 0, clock: str = INSTANT) -> dict[str, Any]:
        assert echo.main([*line, "--json"], {**self.env, "ECHO_CLOCK": clock}) == code
        answer = json.loads(self.capsys.readouterr().out)
        assert isinstance(answer, dict)
        return answer

    def vault_goes(self) -> None:
        """As when the disk is unmounted."""
        (self.folder / "vault").rename(self.folder / "away")

    def vault_returns(self) -> None:
        """The same folder again."""
        (self.folder / "away").rename(self.folder / "vault")

    def waiting(self) -> list[str]:
        """The states of what is queued."""
        return [row["state"] for row in self("queue")["writes"]]


@pytest.fixture
def machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Machine:
    """A machine whose vault was set up, holds one list, and has just gone away."""
    bootstrap_op(ctx=make_ctx(tmp_path))
    put(tmp_path, "list.md", "# List\n")
    made = Machine(tmp_path, capsys)
    made("load")
    made.vault_goes()
    return made


def test_a_write_waits_and_arrives_with_its_own_time(machine: Machine) -> None:
    """`queued: true`, exit 0; the next call replays it first, stamped when it was made."""
    answer = machine("capture", "buy milk")
    assert (answer["ok"], answer["queued"]) == (True, True)
    assert answer["op_id"]
    assert machine("queue")["writes"][0]["what"] == "buy milk"
    machine.vault_returns()
    machine("resolve", "anything", clock="2026-12-05T09:00:00+01:00")
    assert machine.waiting() == []
    assert "- 2026-11-30: buy milk\n" in get(machine.folder, "inbox/captures/inbox.md")


def test_writes_arrive_in_their_order(machine: Machine) -> None:
    """Two appends of one client keep their order."""
    for line in ("first", "second", "third"):
        machine("append", "list.md", line)
    machine.vault_returns()
    assert machine("flush")["arrived"]
    assert get(machine.folder, "list.md") == "# List\nfirst\nsecond\nthird\n"


def test_load_says_how_many_arrived(machine: Machine) -> None:
    """The assistant learns at the start that waiting writes are in."""
    machine("append", "list.md", "first")
    machine.vault_returns()
    assert machine("load")["queued_flushed"] == 1


def test_reads_and_previews_are_not_queued(machine: Machine) -> None:
    """Exit 69: they have to be asked again."""
    for line in (["recall", "milk"], ["get", "list.md"], ["capture", "x", "--dry-run"], ["move", "list.md", "l.md"],
                 ["put", "x.md", "text"]):
        assert machine(*line, code=69)["code"] == "vault-unreachable"
    assert machine.waiting() == []


def test_a_wrong_call_is_refused_at_once(machine: Machine) -> None:
    """Nothing that could never arrive is queued: bad arguments and secrets are answered now."""
    assert machine("capture", "x", "--kind", "persn", code=2)["field"] == "kind"
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    assert machine("capture", f"token {secret}", code=65)["code"] == "secret-suspected"
    assert machine.waiting() == []
    assert not any(secret.encode() in path.read_bytes() for path in (machine.folder / "state").rglob("*")
                   if path.is_file())


def test_the_same_write_twice_waits_once(machine: Machine) -> None:
    """A retry of the caller is the same write."""
    first, second = machine("capture", "buy milk"), machine("capture", "buy milk")
    assert first["op_id"] == second["op_id"]
    assert machine.waiting() == ["waiting"]


def test_a_replay_that_is_refused_is_parked_with_its_reason(machine: Machine) -> None:
    """It is kept and named, the writes behind it arrive, and the operator may drop it."""
    machine("append", "nowhere.md", "lost?")
    machine("append", "list.md", "second")
    machine.vault_returns()
    answer = machine("flush")
    assert (len(answer["arrived"]), len(answer["parked"]), answer["left"]) == (1, 1, 0)
    row = machine("queue")["writes"][0]
    assert row["state"] == "parked"
    assert row["reason"].startswith("not-found: ")
    assert machine("load")["parked"] == 1
    assert [check["ok"] for check in machine("doctor")["checks"] if check["name"] == "queue"] == [False]
    assert machine("queue", "drop", row["op_id"])["writes"] == []
    assert machine("queue", "drop", row["op_id"], code=44)["code"] == "not-found"


def test_a_parked_write_can_be_retried(machine: Machine) -> None:
    """Once its cause is gone it arrives."""
    machine("append", "later.md", "line")
    machine.vault_returns()
    op_id = machine("flush")["parked"][0]
    put(machine.folder, "later.md", "# Later\n")
    machine("queue", "retry", op_id)
    assert machine("flush")["arrived"] == [op_id]
    assert get(machine.folder, "later.md") == "# Later\nline\n"


def test_a_batch_that_arrives_in_part_is_parked(machine: Machine) -> None:
    """The items that could be done are done; the write is kept with what is left."""
    proposals = [{"action": "append", "path": "list.md", "line": "done"},
                 {"action": "append", "path": "nowhere.md", "line": "not done"}]
    machine("reflect", json.dumps(proposals), "--apply")
    machine.vault_returns()
    assert len(machine("flush")["parked"]) == 1
    assert machine("queue")["writes"][0]["reason"].startswith("partial: not done: item 1")
    assert get(machine.folder, "list.md") == "# List\ndone\n"


def test_a_gate_in_a_replay_parks_the_write(machine: Machine) -> None:
    """A look-alike that came meanwhile needs a decision, and nothing is written twice."""
    machine("capture", "Ada Lovelace", "--kind", "person", "--body", "One text.")
    machine.vault_returns()
    put(machine.folder, "resources/people/ada-lovelace.md",
        "---\ntype: person\ntitle: Ada Lovelace\n---\n\n# Ada Lovelace\n\nQuite another text.\n")
    before = get(machine.folder, "resources/people/ada-lovelace.md")
    assert machine("flush")["left"] == 0
    assert machine("queue")["writes"][0]["reason"].startswith("duplicate-gate: ")
    assert get(machine.folder, "resources/people/ada-lovelace.md") == before


def test_flushing_while_the_vault_is_away_keeps_everything(machine: Machine) -> None:
    """Exit 69, and the write still waits."""
    machine("append", "list.md", "first")
    assert machine("flush", code=69)["code"] == "vault-unreachable"
    assert machine.waiting() == ["waiting"]


def test_a_replay_cut_off_before_it_was_noted_does_not_double(machine: Machine) -> None:
    """Killed between the write and its removal from the queue: the second replay changes nothing."""
    machine("append", "list.md", "first")
    machine("capture", "Ada Lovelace", "--kind", "person", "--body", "Writes programs.")
    state = machine.folder / "state/cli"
    kept = {path.name: path.read_bytes() for path in state.iterdir() if path.is_file()}
    machine.vault_returns()
    machine("flush")
    after = snapshot(machine.folder)
    for path in state.iterdir():
        if path.is_file():
            path.unlink()
    for name, data in kept.items():
        (state / name).write_bytes(data)
    answer = machine("flush")
    assert len(answer["arrived"]) == 2
    assert snapshot(machine.folder) == after


def test_a_damaged_queue_is_kept_and_reported(machine: Machine) -> None:
    """It is never silently replaced by an empty one: the next answer says so, its own write gets a new file."""
    machine("append", "list.md", "first")
    path = machine.folder / "state/cli/queue.sqlite3"
    for leftover in path.parent.glob("queue.sqlite3-*"):
        leftover.unlink()
    path.write_bytes(b"not a database at all, " * 50)
    answer = machine("append", "list.md", "second")
    assert answer["queued"] is True
    kept, = path.parent.glob("queue.sqlite3.corrupt-*")
    assert kept.name in answer["warnings"][0]
    assert kept.read_bytes().startswith(b"not a database")
    assert machine.waiting() == ["waiting"]
    row = next(check for check in machine("doctor")["checks"] if check["name"] == "queue")
    assert (row["ok"], "1 damaged queue file" in row["detail"]) == (False, True)


def test_a_queue_that_cannot_be_written_refuses_the_write(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """No `queued: true` without a durable row."""
    def full(*args: object) -> str:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(Outbox, "keep", full)
    answer = machine("append", "list.md", "first", code=74)
    assert "could not be queued" in answer["error"]


def test_two_vaults_never_get_each_others_writes(machine: Machine, tmp_path: Path) -> None:
    """Also when both share one state folder."""
    machine("append", "list.md", "first")
    other = Outbox(str(tmp_path / "state"), "/another/vault")
    assert other.rows() == []
    assert (other.page(0), other.adopt()) == ([], 0)


def waiting_line(outbox: Outbox, line: str, path: str = "list.md") -> str:
    """Keep an append that waits; returns its op id."""
    values = {"path": path, "line": line}
    return outbox.keep(Running(new_op_id(), "echo_append_note", values, INSTANT, call_of("echo_append_note", values)))


def outbox_ctx(folder: Path, **options: Any) -> OpContext:
    """A context over `folder/vault` with an outbox in `folder/state`."""
    outbox = Outbox(str(folder / "state"), "v")
    ctx = make_ctx(folder, wrap=lambda vault: OutboxVault(vault, outbox), **options)
    return with_outbox(ctx, outbox, str(folder / "state"))


def test_an_interrupted_replay_keeps_the_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever breaks a replay off, the write still waits."""
    ctx = outbox_ctx(tmp_path)
    assert ctx.outbox is not None
    op_id = waiting_line(ctx.outbox, "x")

    def dies(*args: object) -> dict[str, Any]:
        raise KeyboardInterrupt

    monkeypatch.setattr("echo_tools.carry_out", dies)
    with pytest.raises(KeyboardInterrupt):
        flush(ctx)
    ctx.outbox.close()
    again = Outbox(str(tmp_path / "state"), "v")
    assert again.waits()
    assert [row.op_id for row in again.page(0)] == [op_id]


def test_a_second_process_leaves_a_running_replay_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one replays, the other does nothing instead of writing twice."""
    ctx = outbox_ctx(tmp_path)
    assert ctx.outbox is not None
    op_id = waiting_line(ctx.outbox, "x")
    calls: list[str] = []

    def call(tool: object, values: object, warnings: object, ctx: object, op_id: str) -> dict[str, Any]:
        calls.append(op_id)
        assert flush(outbox_ctx(tmp_path)) == ([], [], 0)
        return {"ok": True}

    monkeypatch.setattr("echo_tools.carry_out", call)
    assert flush(ctx).arrived == [op_id]
    assert calls == [op_id]


@pytest.mark.parametrize("envelope", [
    {"ok": False, "code": "vault-unreachable", "error": "gone"},
    {"ok": False, "action": "lock-held", "hint": "wait"},
])
def test_what_passes_by_itself_is_not_parked(
    envelope: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vault that goes again, or a held lock: the write waits, and so do those behind it."""
    ctx = outbox_ctx(tmp_path)
    assert ctx.outbox is not None
    for line in "ab":
        waiting_line(ctx.outbox, line)
    calls: list[str] = []

    def call(tool: object, values: object, warnings: object, ctx: object, op_id: str) -> dict[str, Any]:
        calls.append(op_id)
        (tmp_path / "vault").rename(tmp_path / "away")
        return envelope

    monkeypatch.setattr("echo_tools.carry_out", call)
    assert flush(ctx).left == 2
    assert len(calls) == 1
    assert ctx.outbox.counts() == {"depth": 2, "parked": 0, "conflicts": 0, "damaged": 0}


def test_the_queue_is_private_to_its_owner(machine: Machine) -> None:
    """Folder 0700, file 0600: it holds what the operator wrote."""
    machine("append", "list.md", "first")
    folder = machine.folder / "state/cli"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "queue.sqlite3").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("failure", [None, InvalidPath("refused"), VaultUnreachable("away", reason="timeout")])
def test_a_write_whose_caller_went_is_made_parked_or_waits(tmp_path: Path, failure: EchoError | None) -> None:
    """Once it was answered `queued: true` it is never just forgotten, even if it changes nothing."""
    backend = MemoryVault({"list.md": b"# List\n"})
    ctx = outbox_ctx(tmp_path, backend=backend)
    outbox, tool = ctx.outbox, echo_tools.BY_NAME["echo_append_note"]
    assert outbox is not None
    given = {"path": "list.md", "line": "x"}
    assert promised(tool, given, ctx) is None
    told: list[dict[str, Any]] = []

    def meanwhile(path: str) -> None:
        if path == "list.md" and not told:
            told.append(promised(tool, given, ctx) or {})
            if failure is not None:
                raise failure

    backend.before_write = meanwhile
    envelope = run(tool, given, ctx)
    assert (told[0]["ok"], told[0]["queued"]) == (True, True)
    rows = [(row.op_id, row.state) for row in outbox.rows()]
    if failure is None:
        assert (envelope["op_id"], rows) == (told[0]["op_id"], [])
        assert backend.read("list.md") == b"# List\nx\n"
    else:
        assert rows == [(told[0]["op_id"], "waiting" if isinstance(failure, VaultUnreachable) else "parked")]
    assert promised(tool, given, ctx) is None
