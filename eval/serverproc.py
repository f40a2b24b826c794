"""A real server process for tests: on a free port, waited for by its `/health`, stopped by SIGTERM.

    with running_server(tmp_path) as server:
        server.call("echo_recall", query="engine")      # REST: the envelope
        server.tool("echo_recall", query="engine")      # MCP: the CallToolResult
"""
from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from serverfork import FORKS, Forked

EVAL = Path(__file__).parent
TOKEN = "canary-token-5f0c1e9a7b3d42688c1a9e0f"
MODERN = "2026-07-28"
LEGACY = "2025-06-18"
START_S = 30.0
_KEPT = ("PATH", "PYTHONPATH", "HOME", "LANG", "SYSTEMROOT", "VIRTUAL_ENV", "TMPDIR")


def environment(vault: Path, state: Path, **more: str) -> dict[str, str]:
    """A small environment for a server on `vault`; more: further variables, "" leaves one out."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    own = {"ECHO_BASE": str(vault), "ECHO_STATE_DIR": str(state), "ECHO_MCP_TOKEN": TOKEN, "ECHO_MCP_PORT": "0"}
    return {name: value for name, value in {**kept, **own, **more}.items() if value}


class Server:
    """A running process. base: its URL; vault, state: its folders; lines: what it has printed so far."""

    def __init__(self, process: subprocess.Popen[str] | Forked, vault: Path, state: Path) -> None:
        self.process = process
        self.vault = vault
        self.state = state
        self.lines: list[str] = []
        self._listening = threading.Event()
        self.port = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.client = httpx.Client(trust_env=False, timeout=30, headers={"authorization": f"Bearer {TOKEN}"})

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if '"event": "listening"' in line:
                self.port = json.loads(line)["port"]
                self._listening.set()
        self._listening.set()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def wait(self, ready: bool = False) -> None:
        """Return when `/health` answers 200, and with `ready` when all notes have been read."""
        self._listening.wait(START_S)
        assert self.port, "\n".join(self.lines)
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            with contextlib.suppress(httpx.HTTPError):
                answer = self.client.get(f"{self.base}/health")
                if answer.status_code == 200 and (answer.json()["index_ready"] or not ready):
                    return
            time.sleep(0.02)
        raise AssertionError("the server does not become healthy:\n" + "\n".join(self.lines))

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The envelope a tool answers by REST, gates and errors included."""
        answer = self.client.post(f"{self.base}/api/tools/{name}", json=arguments)
        return dict(answer.json()["data"])

    def rpc(self, method: str, params: dict[str, Any] | None = None, era: str = MODERN) -> httpx.Response:
        """The raw answer to one JSON-RPC request of an era."""
        params = dict(params or {})
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": era}
        if era == MODERN:
            params["_meta"] = {
                **params.get("_meta", {}),
                "io.modelcontextprotocol/protocolVersion": era, "io.modelcontextprotocol/clientCapabilities": {},
            }
            headers["mcp-method"] = method
            name = params.get("name", params.get("uri"))
            if isinstance(name, str) and name.isascii():
                headers["mcp-name"] = name
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.client.post(f"{self.base}/mcp", json=body, headers=headers)

    def tool(self, name: str, /, era: str = MODERN, **arguments: Any) -> dict[str, Any]:
        """The CallToolResult of a tool by MCP."""
        answer = self.rpc("tools/call", {"name": name, "arguments": arguments}, era)
        return dict(answer.json()["result"])

    def raw(self, *parts: bytes, timeout_s: float = 10) -> bytes:
        """Send bytes on a fresh connection and read until the server closes it or says nothing for `timeout_s`."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout_s) as connection:
            received = b""
            with contextlib.suppress(OSError):
                for part in parts:
                    connection.sendall(part)
                while chunk := connection.recv(65536):
                    received += chunk
            return received

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.client.close()
            self._reader.join(5)
            if self.process.stdout is not None:
                self.process.stdout.close()
        return code

    def events(self, name: str) -> list[dict[str, Any]]:
        """The log lines of one event."""
        return [line for line in map(json.loads, self.lines) if line.get("event") == name]


def spawned(command: list[str], env: dict[str, str], vault: Path, state: Path) -> Server:
    """A server that a command line starts."""
    process = subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8")
    return Server(process, vault, state)


@contextlib.contextmanager
def running_server(
    folder: Path, command: str = "serve", ready: bool = True, fake: bool = False, patch: str = "", **env: str
) -> Iterator[Server]:
    """A server with the vault `folder`/vault and the state `folder`/state, stopped at the end.

    ready: wait until all notes have been read. fake: the tools of `fakeserver` instead of the real ones. patch: Python
    that breaks the server before it starts, to show that a test notices. `serve` is forked where the system can, which
    is quick; other commands, and a patched one, are started as a user starts them.
    """
    vault, state = folder / "vault", folder / "state"
    vault.mkdir(exist_ok=True)
    variables = environment(vault, state, **env)
    if FORKS and command == "serve" and not patch:
        server = Server(Forked(["fake", "0"] if fake else [command], variables), vault, state)
    else:
        words = [str(EVAL / "fakeserver.py"), "0"] if fake else ["-m", "echo_mcp", command]
        if patch:
            words = ["-c", f"import sys\n{patch}\nfrom echo_mcp.__main__ import main\nsys.exit(main())", command]
        server = spawned([sys.executable, *words], variables, vault, state)
    try:
        server.wait(ready and not fake)
        yield server
    finally:
        server.stop()
