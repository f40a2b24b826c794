"""A server process forked from one that has imported the server already: the imports are most of what a start costs.

The fork has an environment, a standard output and an end of its own, like a process started by a command.
"""
from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection

FORKS = "forkserver" in multiprocessing.get_all_start_methods()
_PRELOADED = ["echo_mcp.wiring", "echo_mcp.serving", "fakeserver", "pytest"]


class Forked:
    """What the tests use of `subprocess.Popen`, for `words`: the arguments of `echo-mcp`, or "fake" and a port."""

    def __init__(self, words: list[str], env: dict[str, str]) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)
        ours, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=_run, args=(words, env, theirs))
        self._process.start()
        theirs.close()
        self.stdout = os.fdopen(os.dup(ours.fileno()), encoding="utf-8")
        ours.close()

    def poll(self) -> int | None:
        """The exit code, None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code. Raises subprocess.TimeoutExpired."""
        self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired("echo-mcp", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal to the process."""
        assert self._process.pid is not None
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended since
                os.kill(self._process.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _run(words: list[str], env: dict[str, str], out: Connection) -> None:
    """In the forked process: be the command."""
    for number in (1, 2):
        os.dup2(out.fileno(), number)
    out.close()
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    tempfile.tempdir = None
    if words[0] == "fake":
        import fakeserver

        fakeserver.main(int(words[1]))
        return
    from echo_mcp.__main__ import main

    sys.exit(main(words))
