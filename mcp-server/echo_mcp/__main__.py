"""The command `echo-mcp`: serve over HTTP, speak stdio, run with everything made on the spot, look at the queue.

What cannot be started is said before the protocol SDK is imported, which takes longer than all the rest.
"""
from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from echo_mcp import __version__, logs, settings, statedir
from echo_mcp.backup import cli

if TYPE_CHECKING:
    from echo_mcp.wiring import Parts

EXIT_CONFIG = 64
EXIT_ADDRESS = 69
EXIT_IN_USE = 75


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0, 64 for settings at fault, 69 when the address is taken, 75 when
    another server has the state folder.
    """
    args = _parser().parse_args(argv)
    try:
        http = args.command in ("serve", "run")
        found = settings.load(settings.environment(), http=http, embedded=args.command in ("run", "backup"))
        if args.command == "backup":
            return _backup(found, args)
        statedir.prepare_state(found.state_dir)
        if args.command == "queue":
            return _answered("queue", lambda wiring: wiring.queue(found, args.do, args.id))
        if args.command == "forget":
            return _answered("forget", lambda wiring: wiring.forget(found, args.path, args.drop_waiting))
        with statedir.held(found.state_dir):
            return _stdio(found) if args.command == "stdio" else _http(found)
    except settings.SettingsFault as fault:
        for line in fault.lines:
            sys.stderr.write(f"echo-mcp: {line}\n")
        return EXIT_CONFIG
    except statedir.InUse as taken:
        sys.stderr.write(f"echo-mcp: {taken}\n")
        return EXIT_IN_USE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="echo-mcp", description="One long-term memory, every assistant.")
    parser.add_argument("--version", action="version", version=f"echo-mcp {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("serve", help="serve MCP and REST over HTTP, set up by ECHO_* variables")
    commands.add_parser("stdio", help="speak MCP on stdin and stdout")
    commands.add_parser("run", help="serve with a vault and a token of its own in ./data, made on first use")
    queue = commands.add_parser("queue", help="the writes that wait for the vault, and those that need a decision")
    queue.add_argument("do", nargs="?", default="list", choices=("list", "retry", "drop"),
                       help="list them; replay a parked write again; forget one, or a conflict, for good")
    queue.add_argument("id", nargs="?", default="", help="of the write or the conflict")
    forget = commands.add_parser("forget", help="remove every trace of a note but the note itself and backups")
    forget.add_argument("path", help="vault path of the note, which may be gone")
    forget.add_argument("--drop-waiting", action="store_true", help="also writes to it that have not arrived")
    cli.add_arguments(commands.add_parser("backup", help="make, list, verify and restore backups of the vault"))
    return parser


def _backup(found: settings.Settings, args: argparse.Namespace) -> int:
    if cli.needs_state(args):
        statedir.prepare_state(found.state_dir)
    return cli.run(args, found)


def _answered(command: str, work: Callable[[Any], dict[str, Any]]) -> int:
    """Print the answer of a command that works beside a running server. work: gets the module that builds things."""
    from echo_core.errors import EchoError, outcome_of
    from echo_output import render

    from echo_mcp import wiring

    try:
        envelope = work(wiring)
    except EchoError as failure:
        envelope = failure.envelope()
    sys.stdout.write(render(command, envelope) + "\n")
    return outcome_of(envelope).exit_code


def _http(found: settings.Settings) -> int:
    from echo_mcp import serving

    try:
        bound = serving.bind(found.host, found.port)
    except OSError as failure:
        why = os.strerror(failure.errno) if failure.errno and failure.errno > 0 else "no such address"
        sys.stderr.write(f"echo-mcp: ECHO_MCP_HOST and ECHO_MCP_PORT cannot be listened on: {why}.\n")
        return EXIT_ADDRESS
    from echo_mcp import wiring

    with bound:
        port = bound.getsockname()[1]
        if found.embedded:
            found = wiring.embed(found)
            sys.stdout.write(_welcome(found, port) + "\n")
            sys.stdout.flush()
        logs.configure(found.log_level)
        parts = wiring.build(found)
        # Threads that read and index notes let go of the interpreter after 1 ms and not after 5: answers wait less.
        sys.setswitchinterval(0.001)
        serving.serve(parts.app(), bound, lambda: logs.event("listening", port=port), parts.stopping)
        parts.close()
    return _leave()


def _stdio(found: settings.Settings) -> int:
    from echo_mcp import wiring

    logs.configure(found.log_level, sys.stderr)
    parts = wiring.build(found)
    parts.background.start()
    parts.health.serve(True)
    asyncio.run(_until_signal(parts))
    parts.close()
    return _leave()


async def _until_signal(parts: Parts) -> None:
    """Serve stdio until stdin ends or a signal asks to stop."""
    serving_stdio = asyncio.ensure_future(parts.door.serve_stdio())
    loop = asyncio.get_running_loop()
    if sys.platform != "win32":
        for sig in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(sig, serving_stdio.cancel)
    try:
        await serving_stdio
    except asyncio.CancelledError:
        parts.stopping()


def _leave() -> int:
    """Exit 0 at once: a thread that hangs in the vault or in stdin must not hold the process."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _welcome(found: settings.Settings, port: int) -> str:
    host = f"[{found.host}]" if ":" in found.host else found.host
    if host in ("0.0.0.0", "[::]"):  # noqa: S104 (compared, not bound)
        host = socket.gethostname()
    url = f"http://{host}:{port}"
    return (
        f"ECHO serves the vault {found.place.name}\n\n"
        "Register it in Claude Code with:\n\n"
        f'  claude mcp add --transport http echo {url}/mcp --header "Authorization: Bearer {found.token}"\n\n'
        f"REST: {url}/api/docs (same token). Stop with Ctrl+C.\n"
    )


if __name__ == "__main__":
    raise SystemExit(main())
