"""`echo-mcp forget PATH`: nothing of a note stays in the state folder but what backups hold (spec 6.3).

History, outboxes and caches are files that several processes share, so the command changes them itself. What a running
server has in memory, and the search index that it holds open, it lets go of when it finds a request.
"""
from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from echo_config import cache_files
from echo_context import OpContext, ok
from echo_core.atomic import private_folder
from echo_core.catalog.records import RecordCache
from echo_core.errors import Conflict, EchoError, NotFound, StorageFailed
from echo_core.paths import check_path
from echo_core.state.note_cache import NoteCache
from echo_queue import Outbox

from echo_mcp import statedir
from echo_mcp.settings import Settings

WAIT_S = 30.0
"""How long the command waits for a running server to let go."""
POLL_S = 1.0
"""How often a server looks for requests."""
_STEP_S = 0.1


def forget(ctx: OpContext, settings: Settings, path: str, drop_waiting: bool) -> dict[str, Any]:
    """Remove every trace of the note `path` from the state folder; the vault itself is not touched.

    drop_waiting: also writes to it that have not arrived. Answers `shared_with` (other notes whose kept versions hold
    some of the same texts), `backups` (how many there are; they stay as they are) and `in_vault`. Raises InvalidPath,
    Conflict when writes wait, NoUndo and StorageFailed when a file cannot be changed.
    """
    path = check_path(path)
    doors = [Outbox(settings.state_dir, settings.place.name, door) for door in ("server", "cli")]
    try:
        waiting = [op_id for outbox in doors for op_id in outbox.waiting_for(path)]
        if waiting and not drop_waiting:
            raise Conflict(f"writes to {path} wait or need a decision", path=path, op_ids=waiting,
                           hint="Let them arrive first, or give --drop-waiting to forget them too.")
        for outbox in doors:
            outbox.purge(path)
        shared = ctx.history.forget(path)
        forget_caches(settings, path)
        for folder in _indexes(settings, "cli-recall-"):
            shutil.rmtree(folder)
        _let_go(settings, path)
    except (OSError, sqlite3.Error) as failure:
        raise StorageFailed(f"not every trace of {path} could be removed ({type(failure).__name__})", reason="forget",
                            hint="Make the state folder writable, or free some space, and run the command again."
                            ) from failure
    finally:
        for outbox in doors:
            outbox.close()
    backups = len(list((Path(settings.state_dir) / "backups").glob("*.zip")))
    return ok("forgotten", path=path, shared_with=shared or None, backups=backups, in_vault=_in_vault(ctx, path),
              hint=_hint(backups))


def _hint(backups: int) -> str:
    return "Backups keep what they hold; remove those that hold the note from the folder `backups`." if backups else ""


def forget_caches(settings: Settings, path: str) -> None:
    """Take the note out of the files that a server and the command line share."""
    facts, notes = cache_files(settings.state_dir, settings.place)
    cache = NoteCache(notes)
    cache.drop([path])
    cache.save()
    RecordCache(facts).save([], [path])


def _indexes(settings: Settings, prefix: str) -> list[Path]:
    return sorted(Path(settings.state_dir).glob(f"{prefix}{settings.place.identity}"))


def _let_go(settings: Settings, path: str) -> None:
    """Have a running server let go of the note; without one, remove its search index. Raises StorageFailed."""
    with contextlib.suppress(statedir.InUse), statedir.held(settings.state_dir):
        for folder in _indexes(settings, "recall-"):
            shutil.rmtree(folder)
        return
    requests = _requests(settings.state_dir)
    private_folder(str(requests))
    asked = requests / f"{secrets.token_hex(8)}.json"
    part = asked.with_suffix(".part")
    part.write_text(json.dumps({"path": path}), encoding="utf-8")
    os.replace(part, asked)
    end = time.monotonic() + WAIT_S
    while asked.exists():
        if time.monotonic() > end:
            asked.unlink(missing_ok=True)
            raise StorageFailed("the running server did not let go of the note in time", reason="forget",
                                hint="Stop the server, run the command again, and start it.")
        time.sleep(_STEP_S)


def _requests(state_dir: str) -> Path:
    return Path(state_dir) / "server" / "forget"


def follower(ctx: OpContext, settings: Settings, forgotten: Callable[[], None]) -> Callable[[], None]:
    """What a server runs each POLL_S: it lets go of the notes it is asked to forget. forgotten: called afterwards."""
    requests = _requests(settings.state_dir)

    def look() -> None:
        try:
            asked = sorted(requests.glob("*.json"))
        except OSError:
            return
        for request in asked:
            try:
                path = str(json.loads(request.read_text(encoding="utf-8"))["path"])
            except (OSError, ValueError, KeyError, TypeError):
                path = ""
            if path:
                ctx.known.notes.drop([path])
                ctx.known.notes.save()
                forget_caches(settings, path)
                ctx.feed.renew()
            request.unlink(missing_ok=True)
            forgotten()

    return look


def _in_vault(ctx: OpContext, path: str) -> bool | None:
    """Whether the note is still there; None when the vault cannot tell."""
    try:
        ctx.vault.stat(path)
    except NotFound:
        return False
    except EchoError:
        return None
    return True
