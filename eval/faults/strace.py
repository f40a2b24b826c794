"""System calls of a command line, killed or failed one by one with Debian's `strace`, and the log of their order."""
from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from opsfixture import INSTANT, ZONE
from serverproc import environment

SCRIPT = Path(__file__).parent.parent.parent / "skills/echo-memory/scripts/echo.py"
CHANGING = ("write", "pwrite64", "fsync", "fdatasync", "rename", "renameat", "renameat2", "unlink", "unlinkat", "link",
            "linkat", "ftruncate", "mkdir", "mkdirat")
"""Calls after which a disk may hold something else than before."""


def works() -> bool:
    """Whether strace is here and may trace (containers may forbid it)."""
    if shutil.which("strace") is None:
        return False
    command = ["strace", "-f", "-e", "trace=none", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


needs_strace = pytest.mark.skipif(not works(), reason="no strace that may trace: apt-get install strace")


class Done(NamedTuple):
    """One traced run. answer: the JSON it printed whole, None when there is none. killed: by the injected signal."""

    answer: dict[str, Any] | None
    killed: bool
    log: list[str]


def cli(folder: Path, *words: str, inject: str = "", trace: tuple[str, ...] = CHANGING) -> Done:
    """Run a verb of the command line on `folder`/vault under strace. inject: as `fsync:error=EIO:when=3`."""
    command = [sys.executable, "-S", str(SCRIPT), *words, "--json"]
    return traced(folder, command, inject, trace, ECHO_CLOCK=INSTANT, ECHO_TZ=ZONE, PYTHONDONTWRITEBYTECODE="1")


def traced(folder: Path, command: list[str], inject: str = "", trace: tuple[str, ...] = CHANGING, **env: str) -> Done:
    """Run a command under strace with the environment of `folder`'s vault and state."""
    log = folder / "strace.log"
    log.unlink(missing_ok=True)
    words = ["strace", "-f", "-y", "-qq", "-o", str(log), "-e", f"trace={','.join('?' + name for name in trace)}"]
    if inject:
        words += ["-e", f"inject={inject}"]
    done = subprocess.run([*words, *command], env=environment(folder / "vault", folder / "state", **env),
                          capture_output=True, text=True, check=False, timeout=60)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = None
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return Done(answer, any("killed by SIGKILL" in line for line in lines), lines)


def points(log: list[str]) -> Iterator[tuple[str, int]]:
    """(call, which one of its kind) of every traced call, in the order they were made."""
    counts: Counter[str] = Counter()
    for line in log:
        found = re.match(r"\d+ +(\w+)\(", line)
        if found:
            counts[found[1]] += 1
            yield found[1], counts[found[1]]
