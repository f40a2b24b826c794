"""`echo-mcp backup now|list|verify|restore`: the operator's side of backups (spec 6.4)."""
from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from echo_context import Envelope, ok
from echo_core.errors import BadBackup, EchoError, InvalidArgument, NotFound, outcome_of
from echo_core.vault.rest import RestVault
from echo_core.vault.rest_address import is_address
from echo_output import render
from echo_place import Place, place_of

from echo_mcp.backup import opening, space
from echo_mcp.backup.archive import Archive, open_archive
from echo_mcp.backup.desk import Desk
from echo_mcp.backup.rest_restore import restore_rest
from echo_mcp.backup.restoring import Restored, restore_folder
from echo_mcp.backup.shelf import Busy, is_name
from echo_mcp.backup.watch import Stopped, Watch
from echo_mcp.settings import Settings

EXIT_BAD = 65
EXIT_BUSY = 75
EXIT_STOPPED = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words after `echo-mcp backup`."""
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    verbs.add_parser("now", help="make a backup now, unless nothing has changed since the last one")
    verbs.add_parser("list", help="the backups, newest first")
    verify = verbs.add_parser("verify", help="read backups whole and compare every file with its manifest")
    verify.add_argument("name", nargs="?", default="", help="one of the list, or a file; all when left out")
    verify.add_argument("--drill", action="store_true", help="also restore it into a scratch folder and compare that")
    restore = verbs.add_parser("restore", help="restore a backup into an empty place")
    restore.add_argument("name", nargs="?", default="",
                         help="one of the list, or a file; the newest good one when left out")
    restore.add_argument("--into", required=True, metavar="DIR|URL",
                         help="an empty or new folder, or the address of an empty vault's REST API")
    restore.add_argument("--key-file", default="", metavar="FILE", help="file with the key of the API at URL")
    restore.add_argument("--ca-file", default="", metavar="FILE", help="certificate of an https URL")


def needs_state(args: argparse.Namespace) -> bool:
    """Whether the state folder is used at all: a backup file can be restored where there is none."""
    return not (args.verb in ("verify", "restore") and args.name and not is_name(args.name))


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Do what the words say; the exit code. Progress goes to stderr, the answer to stdout."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    watch = Watch(lambda line: print(line, file=sys.stderr, flush=True), stop)  # noqa: T201
    try:
        envelope = _VERBS[args.verb](_Call(opening.desk(settings), settings.place, args, watch))
    except EchoError as failure:
        envelope = failure.envelope()
    except Busy:
        sys.stderr.write("echo-mcp: another backup, verification or drill is under way here; try again later.\n")
        return EXIT_BUSY
    except Stopped:
        sys.stderr.write("echo-mcp: stopped; finished backups are as they were.\n")
        return EXIT_STOPPED
    sys.stdout.write((json.dumps(envelope, ensure_ascii=False) if args.json else render("backup", envelope)) + "\n")
    return EXIT_BAD if envelope.get("action") in ("partial", "damaged") else outcome_of(envelope).exit_code


class _Call(NamedTuple):
    """One command. place: where the server's own vault is."""

    desk: Desk
    place: Place
    args: argparse.Namespace
    watch: Watch


def _now(call: _Call) -> Envelope:
    made = call.desk.back_up(call.watch)
    summary = made.summary
    warnings = []
    if summary.partial:
        warnings.append(f"{summary.unreadable_total} files could not be read and are missing in it; it does not count "
                        "as a good backup.")
    if made.before > 2 * summary.files:
        warnings.append(f"The backup before it had {made.before:,} files.")
    action = "unchanged" if made.unchanged else "partial" if summary.partial else "backed-up"
    return ok(action, warnings, name=made.name, files=summary.files, size=space.megabytes(made.size),
              unreadable=summary.unreadable or None, removed=made.removed or None)


def _list(call: _Call) -> Envelope:
    rows = call.desk.listing()
    for row in rows:
        if "size" in row:
            row["size"] = space.megabytes(row["size"])
    return ok("listed", backups=rows)


def _verify(call: _Call) -> Envelope:
    desk, _, args, watch = call
    if args.name and not is_name(args.name):
        with _file(args.name) as archive:
            archive.check(watch)
            return ok("verified", files=archive.summary.files, partial=archive.summary.partial or None)
    names = [args.name] if args.name else [kept.name for kept in desk.shelf.kept()]
    rows: list[dict[str, Any]] = []
    for name in names:
        row: dict[str, Any] = {"name": name, "state": "verified"}
        try:
            if args.drill:
                desk.drill(name, watch)
            else:
                desk.verify(name, watch)
        except BadBackup as failure:
            row.update(state="damaged", error=failure.message)
        rows.append(row)
    damaged = [row["name"] for row in rows if row["state"] == "damaged"]
    return ok("damaged" if damaged else "verified", backups=rows)


def _restore(call: _Call) -> Envelope:
    warnings: list[str] = []
    restore = _into(call)
    with _chosen(call.desk, call.args.name, warnings) as archive:
        if archive.summary.partial:
            warnings.append(f"It is a partial backup: {archive.summary.unreadable_total} files are missing in it.")
        done = restore(archive, call.watch)
        if done.not_kept:
            warnings.append(done.not_kept)
        return ok("restored", warnings, name=archive.name, made=archive.summary.made, files=done.files,
                  folders=done.folders or None, size=space.megabytes(done.bytes))


def _chosen(desk: Desk, name: str, warnings: list[str]) -> Archive:
    """The named backup, or the newest good one; what is newer but not good is told in `warnings`."""
    if name:
        if is_name(name) and name in desk.damaged():
            warnings.append("The last check found this backup damaged.")
        return desk.open(name) if is_name(name) else _file(name)
    newest = desk.newest_good()
    if newest is None:
        raise NotFound("there is no good backup to restore", hint="`echo-mcp backup list` shows what there is.")
    passed = [kept for kept in desk.shelf.kept() if kept.sequence > newest.sequence]
    if passed:
        warnings.append(f"{len(passed)} newer ones were passed over, since they are partial or damaged.")
    return desk.open(newest.name)


def _into(call: _Call) -> Callable[[Archive, Watch], Restored]:
    """How to restore into the place that `--into` names."""
    into = call.args.into
    if not is_address(into):
        target = os.path.abspath(os.path.expanduser(into))
        return lambda archive, watch: restore_folder(archive, target, watch)
    vault = _target(call.args, call.place).open()
    if not isinstance(vault, RestVault):
        raise InvalidArgument("--into is no address of an API", field="into")
    return lambda archive, watch: restore_rest(archive, vault, watch)


def _target(args: argparse.Namespace, own: Place) -> Place:
    """The API to restore into. The server's own key goes to its own address only."""
    if args.key_file:
        try:
            key = Path(args.key_file).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, ValueError):
            raise InvalidArgument("--key-file cannot be read as text", field="key-file") from None
        return place_of(args.into, key, args.ca_file)
    if own.address is not None and place_of(args.into, own.key, own.ca_file).name == own.name:
        return own
    raise InvalidArgument("The API at --into needs its key", field="key-file", hint="Name a file that holds it.")


def _file(name: str) -> Archive:
    with space.writing():
        try:
            return open_archive(os.path.expanduser(name))
        except FileNotFoundError:
            raise NotFound("there is no such file", hint="Name one of `echo-mcp backup list`, or a path.") from None


_VERBS: dict[str, Callable[[_Call], Envelope]] = {
    "now": _now, "list": _list, "verify": _verify, "restore": _restore,
}
