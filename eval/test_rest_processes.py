"""The server and the command line behind one REST API take turns: no acknowledged line is lost."""
from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from echo_core.errors import EchoError
from echo_core.markdown import append_text
from echo_core.vault.base import edit
from echo_core.vault.rest import RestVault
from echo_core.vault.rest_address import parse_address
from fakes.olrapi import Olrapi, Race

KEY = "key-of-a-double-0123456789"
PROCESSES, THREADS, LINES = 3, 3, 15


def _appends(url: str, process: int, done: multiprocessing.queues.Queue[list[str]]) -> None:
    """Append from several threads; report the lines that were acknowledged."""
    vault = RestVault(parse_address(url), KEY, 30, "")

    def thread(number: int) -> list[str]:
        kept = []
        for turn in range(LINES):
            line = f"- mark {process}-{number}-{turn} end"
            try:
                edit(vault, "log.md", lambda data, line=line: append_text((data or b"").decode(), line).encode())
            except EchoError:
                continue
            kept.append(line)
        return kept

    with ThreadPoolExecutor(THREADS) as pool:
        done.put([line for lines in pool.map(thread, range(THREADS)) for line in lines])


@pytest.mark.skipif(sys.platform == "win32", reason="started by spawn with a double in this process")
@pytest.mark.timeout(180)
def test_processes_of_one_host_lose_no_acknowledged_line(tmp_path: Path) -> None:
    """Three processes of three threads each, against a double that races on purpose."""
    (tmp_path / "log.md").write_text("# Log\n")
    context = multiprocessing.get_context("spawn")
    with Olrapi(tmp_path, key=KEY, race=Race(seconds=0.002)) as api:
        done = context.Queue()
        workers = [context.Process(target=_appends, args=(api.url, number, done)) for number in range(PROCESSES)]
        for worker in workers:
            worker.start()
        acknowledged = [line for _ in workers for line in done.get(timeout=150)]
        for worker in workers:
            worker.join()
    text = (tmp_path / "log.md").read_text()
    assert len(acknowledged) == PROCESSES * THREADS * LINES
    assert [line for line in acknowledged if text.count(line) != 1] == []
