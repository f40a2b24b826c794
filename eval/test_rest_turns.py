"""Turns at writing behind Obsidian's API: one writer a note, no waiting for writers of other notes (spec 6.5)."""
from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import echo_ops
import pytest
from echo_config import build_context
from echo_core.clock import Clock
from echo_core.errors import Conflict, NotFound, VaultUnreachable
from echo_core.vault.base import edit
from echo_core.vault.rest import RestVault
from parallel import together
from restvault import KEY, serving


@pytest.fixture
def rest(tmp_path):
    """A vault with two notes."""
    with serving(tmp_path) as served:
        for name in ("a.md", "b.md"):
            (served.folder / name).write_bytes(b"one\n")
        yield served


def append(vault, path, line=b"two\n"):
    """Append a line to a note."""
    return edit(vault, path, lambda before: before + line)


def test_a_slow_write_holds_up_no_other_note(rest):
    """While the write of one note hangs, another one is edited from read to read-back."""
    rest.api.faults.add("hang", method="PUT", path="/vault/a.md", times=1)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(append, rest.vault, "a.md")
        while not rest.api.log.count("PUT", "a.md"):
            time.sleep(0.01)
        append(rest.vault, "b.md")
        assert not slow.done()
        rest.api.faults.clear()  # drops the request that hangs
        slow.result()
    assert (rest.folder / "a.md").read_bytes() == (rest.folder / "b.md").read_bytes() == b"one\ntwo\n"


def test_writers_of_one_note_wait_for_each_other(rest):
    """Another vault object of this process counts too, and a spelling that may be the same file."""
    other = RestVault(rest.address, KEY, 0.2)
    with rest.vault.exclusive("a.md"):
        for path in ("a.md", "A.md"):
            with ThreadPoolExecutor(1) as pool, pytest.raises(VaultUnreachable) as refusal:
                pool.submit(append, other, path).result()
            assert refusal.value.data["reason"] in ("busy", "timeout")
    append(other, "a.md")
    other.close()


def test_the_whole_vault_can_be_held(rest):
    """Without a path nobody else writes anywhere."""
    other = RestVault(rest.address, KEY, 0.2)
    with rest.vault.exclusive(), ThreadPoolExecutor(1) as pool, pytest.raises(VaultUnreachable):
        pool.submit(append, other, "b.md").result()
    other.close()


def test_moves_in_opposite_directions_never_wait_for_each_other(rest):
    """Both places are taken in one order; every move ends, and no note is lost."""
    def carry(source, target):
        ended = 0
        for _ in range(15):
            try:
                rest.vault.move(source, target)
            except (Conflict, NotFound):
                pass
            ended += 1
        return ended

    (rest.folder / "b.md").unlink()
    assert together([lambda: carry("a.md", "b.md"), lambda: carry("b.md", "a.md")]) == [15, 15]
    assert [path.read_bytes() for path in rest.folder.glob("*.md")] == [b"one\n"]


def test_notes_of_one_name_never_pass_the_gate_at_once(tmp_path):
    """Eight captures of different titles that share an alias: one is created, the others are asked."""
    with serving(tmp_path, timeout_s=30) as served:
        ctx = build_context("", Clock("UTC", "2026-11-30T14:05:09Z"), str(tmp_path / "state"), backend=served.vault)
        ctx.fresh()
        ctx.refresh = lambda: None
        served.api.race.seconds = 0.01
        titles = ["Quartz", "Basalt", "Granite", "Marble", "Slate", "Gneiss", "Chalk", "Flint"]
        answers = together([
            lambda title=title: echo_ops.capture_op(title, kind="concept", aliases=["The Stone"],
                                                    body=f"{title} it is.", ctx=ctx) for title in titles])
        assert Counter(answer["action"] for answer in answers) == {"created": 1, "duplicate-gate": 7}
        ctx.history.close()


def test_a_thread_that_ends_in_an_error_gives_its_turn_back(rest):
    """Also when it held several places."""
    with pytest.raises(ZeroDivisionError), rest.vault.exclusive("a.md", "b.md"):
        raise ZeroDivisionError
    done = threading.Event()
    thread = threading.Thread(target=lambda: (append(rest.vault, "a.md"), append(rest.vault, "b.md"), done.set()))
    thread.start()
    thread.join(20)
    assert done.is_set()
