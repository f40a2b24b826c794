"""Calls that come before the server has read the notes once (spec 4.2)."""
from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from echo_core.errors import VaultUnreachable
from echo_mcp.health import Health
from echo_mcp.jobs import Refresher
from fakes.olrapi import Olrapi
from restvault import KEY
from serverproc import running_server


def test_no_call_takes_a_failed_reading_for_a_good_one() -> None:
    """However many wait and ask anew at once: while every reading fails, every one of them hears of a failure."""
    def fails() -> bool:
        raise VaultUnreachable("away", reason="refused")

    refresher = Refresher(fails, lambda: None, lambda: 0, Health(), 60.0)

    def wait(number: int) -> str:
        with pytest.raises(VaultUnreachable) as heard:
            refresher.wait(30)
        return str(heard.value.data["reason"])

    refresher.thread.start()
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(wait, range(400))) == {"refused"}
    refresher.thread.stop()


def test_what_the_first_calls_need_is_made_once_behind_them() -> None:
    """As soon as all notes can be found, not before; what goes wrong there is left to the call that meets it."""
    health, made, runs = Health(), [], threading.Semaphore(0)

    def warm() -> None:
        made.append(health.index_ready)
        raise VaultUnreachable("away", reason="refused")

    refresher = Refresher(lambda: bool(runs.release()), lambda: None, lambda: 0, health, 0.01, warm)
    refresher.thread.start()
    for _ in range(3):
        assert runs.acquire(timeout=20)
    refresher.thread.stop()
    assert made == [True]


def test_a_write_that_comes_while_the_first_reading_hangs_is_kept(tmp_path: Path) -> None:
    """It is answered `queued: true` within the time of a call, not with an outcome that nobody knows."""
    (tmp_path / "vault").mkdir()
    with Olrapi(str(tmp_path / "vault"), key=KEY) as api:
        api.faults.add("hang")
        with running_server(tmp_path, ready=False, ECHO_BASE=api.url, ECHO_KEY=KEY, ECHO_TIMEOUT="2") as server:
            assert server.call("echo_capture", title="Ada Lovelace", kind="person", body="x")["queued"]
