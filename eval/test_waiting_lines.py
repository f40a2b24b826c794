"""Lines that wait for one place are written together, and it makes no difference but in speed (spec 6.2)."""
from __future__ import annotations

import random
from pathlib import Path
from typing import Any
from unittest.mock import patch

import echo_replay_lines
import pytest
from echo_context import OpContext
from echo_core import markdown
from echo_core.errors import EchoError, VaultUnreachable
from echo_core.vault.folder import FolderVault
from echo_queue import Outbox
from echo_queue_rows import Running, call_of
from echo_replay import flush
from echo_replay_lines import parts_of
from hypothesis import given
from hypothesis import strategies as st
from opsfixture import INSTANT, get, put, snapshot
from test_queue import outbox_ctx

NOTE = "# Engine\n\n## Status\n\nold\n\n## Log\n\n- start\n\n### Later\n\ntext\n"
_PIECES = st.sampled_from([
    "# A", "## Log", "### Sub", "text", "- item", "  - inner", "1. one", "> quoted", "```", "~~~", "| a |", "|---|", "",
    "    code", "---", "<div>", "</div>", "%%", "$$", "---\nk: v\n---", "- [ ] open", "\ttab", "Term\r", "[^1]: note",
    "^id",
])
_TEXTS = st.lists(_PIECES, max_size=12).map("\n".join)
_ITEMS = st.lists(st.sampled_from([
    "- a", "- b", "- Ada met Grace", "- item", "- 1. one", "- x `code", "- `` two", "- **bold", "- a | b", "- [[n|N]]",
    "- https://x.y/z", "- é", "- x ^id", "- x <div>", "- x %% y", "- x $$", "- 10. y", "- a: b", "- _x_", "- x ```",
]).filter(lambda line: echo_replay_lines._ITEM.fullmatch(line) is not None), min_size=2, max_size=6)


@given(_TEXTS, _ITEMS, st.booleans(), st.booleans())
def test_lines_added_together_are_those_added_one_by_one(text: str, lines: list[str], inside: bool, ends: bool) -> None:
    """At the end of any note and of any section, whatever stands there."""
    text += "\n" if ends else ""
    title = "Log" if inside else ""

    def place(now: str) -> Any:
        return markdown.find_heading(now, title) if title else None

    one = text
    try:
        for line in lines:
            at = place(one)
            one = one if markdown.has_line(one, line, at) else markdown.append_text(one, line, at)
    except EchoError:
        return
    at = place(text)
    new = markdown.missing_lines(text, lines, at)
    assert (markdown.append_text(text, "\n".join(new), at) if new else text) == one


def keep(outbox: Outbox, number: int, tool: str, values: dict[str, Any]) -> str:
    """Put one waiting write into the outbox; returns its op id."""
    op = Running(f"{number:012x}", tool, values, INSTANT, call_of(tool, values))
    outbox._insert(op, "waiting")
    return op.op_id


def queue(folder: Path, seed: int) -> OpContext:
    """A context with some notes, and a queue of every kind of write in a random order."""
    for name in ("a.md", "b.md", "c.md"):
        put(folder, name, NOTE)
    ctx = outbox_ctx(folder)
    assert ctx.outbox is not None
    chance = random.Random(seed)
    for number in range(60):
        path = chance.choice(["a.md", "a.md", "b.md", "c.md", "a", "nowhere.md", "A.md"])
        kind = chance.randrange(10)
        if kind < 7:
            line = chance.choice(
                [f"- item {chance.randrange(40)}", f"- line {number}", "* star", "- ```", "plain", "-  two"])
            values = {"path": path, "line": line}
            if chance.random() < 0.4:
                values["section"] = chance.choice(["Log", "Log", "Status", "No such"])
            keep(ctx.outbox, number, "echo_append_note", values)
        elif kind < 9:
            keep(ctx.outbox, number, "echo_patch_note", {
                "path": path, "operation": chance.choice(["replace", "append"]), "target_type": "heading",
                "target": chance.choice(["Log", "Status"]), "content": f"patched {number}"})
        else:
            keep(ctx.outbox, number, "echo_capture", {"title": f"idea {number}"})
    return ctx


@pytest.mark.parametrize("seed", range(8))
def test_a_drain_leaves_the_vault_as_one_by_one(tmp_path: Path, seed: int) -> None:
    """The same bytes in every note, the same writes arrived and parked."""
    outcomes = []
    for name, order in (("together", parts_of), ("alone", lambda page, now: iter(page))):
        (tmp_path / name).mkdir()
        with patch("echo_replay.parts_of", order):
            ctx = queue(tmp_path / name, seed)
            done = flush(ctx)
        assert ctx.outbox is not None
        outcomes.append((snapshot(tmp_path / name), sorted(done.arrived), sorted(done.parked), done.left))
        ctx.close()
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][1]
    assert outcomes[0][2]


def lines_for(ctx: OpContext, count: int, path: str = "a.md") -> list[str]:
    assert ctx.outbox is not None
    return [keep(ctx.outbox, number, "echo_append_note", {"path": path, "line": f"- item {number}"})
            for number in range(count)]


def test_many_lines_cost_a_few_writes_and_each_has_its_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one alone, then as many as are looked at together; a client that asks again hears its own answer."""
    put(tmp_path, "a.md", "# A\n")
    written: list[str] = []
    real = FolderVault.write

    def write(self: FolderVault, path: str, *rest: Any) -> None:
        written.append(path)
        real(self, path, *rest)

    monkeypatch.setattr(FolderVault, "write", write)
    ctx = outbox_ctx(tmp_path)
    monkeypatch.setattr("echo_replay.AHEAD", 300)
    count = 350
    op_ids = lines_for(ctx, count)
    assert flush(ctx).arrived == op_ids
    assert written == ["a.md"] * 3
    assert get(tmp_path, "a.md") == "# A\n" + "".join(f"- item {number}\n" for number in range(count))
    assert ctx.outbox is not None
    call = call_of("echo_append_note", {"path": "a.md", "line": "- item 7"})
    kept = ctx.outbox.answered_call(call, 600)
    assert kept is not None
    assert (kept.op_id, kept.answer["action"], kept.answer["line"]) == (op_ids[7], "appended", 9)
    assert kept.targets.keys() == {"a.md"}


@pytest.mark.parametrize("when", ["before the note", "after the note"])
def test_a_drain_that_is_cut_off_is_made_again_without_doubling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Killed before or after the one write of many lines: each line stands once in the end."""
    put(tmp_path, "a.md", "# A\n")
    ctx = outbox_ctx(tmp_path)
    lines_for(ctx, 30)
    assert ctx.outbox is not None

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        if when == "before the note":
            broken.setattr(echo_replay_lines, "edit_note", dies)
        else:
            broken.setattr(Outbox, "finish_all", dies)
        with pytest.raises(KeyboardInterrupt):
            flush(ctx)
    ctx.outbox.close()
    again = outbox_ctx(tmp_path)
    assert flush(again).left == 0
    assert get(tmp_path, "a.md") == "# A\n" + "".join(f"- item {number}\n" for number in range(30))


def test_lines_of_a_note_that_the_vault_refuses_wait_and_others_arrive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refused ones are told apart one by one, none is lost, and their order stays."""
    for name in ("a.md", "b.md"):
        put(tmp_path, name, "# A\n")
    ctx = outbox_ctx(tmp_path)
    assert ctx.outbox is not None
    for number in range(40):
        keep(ctx.outbox, number, "echo_append_note", {"path": "ab"[number % 2] + ".md", "line": f"- item {number}"})
    real = FolderVault.write

    def write(self: FolderVault, path: str, *rest: Any) -> None:
        if path == "a.md":
            raise VaultUnreachable("not this one", reason="http-400")
        real(self, path, *rest)

    with monkeypatch.context() as broken:
        broken.setattr(FolderVault, "write", write)
        done = flush(ctx)
    assert (len(done.arrived), done.parked, done.left) == (20, [], 20)
    assert get(tmp_path, "b.md") == "# A\n" + "".join(f"- item {number}\n" for number in range(1, 40, 2))
    assert get(tmp_path, "a.md") == "# A\n"
    with patch("time.time", return_value=4e9):
        assert flush(ctx).left == 0
    assert get(tmp_path, "a.md") == "# A\n" + "".join(f"- item {number}\n" for number in range(0, 40, 2))


def test_names_and_spellings_of_one_note_do_not_overtake_each_other(tmp_path: Path) -> None:
    """Only lines that name the note by one and the same path go together; whatever else comes between is a border."""
    ctx = outbox_ctx(tmp_path)
    assert ctx.outbox is not None
    for number, path in enumerate(["a.md", "a.md", "A.md", "a.md", "a", "a.md", "a.md"]):
        keep(ctx.outbox, number, "echo_append_note", {"path": path, "line": f"- item {number}"})
    parts = [[one.number for one in part] if isinstance(part, list) else part.number
             for part in parts_of(ctx.outbox.page(0), 0.0)]
    assert parts == [[1, 2], 3, 4, 5, [6, 7]]
