"""The answers that backends share when a file is absent, taken or changed."""
from __future__ import annotations

from typing import Any, Dict, List, Sequence

from echo_core.errors import Conflict, NotFound, Overtaken, VaultUnreachable
from echo_core.paths import stem


def missing(path: str, others: Sequence[str] = ()) -> NotFound:
    """There is no file at `path`; others: paths that may have been meant."""
    return NotFound(f"There is no file {path}", path=path, candidates=_candidates(others))


def conflict(path: str, what: str, version: str = "", others: Sequence[str] = ()) -> Conflict:
    """Nothing was written to `path`, since it `what` ("is not what you read"). version: of what is there now."""
    data: Dict[str, Any] = {"path": path, "version": version}
    if others:
        data["candidates"] = _candidates(others)
    return Conflict(f"{path} {what}; nothing was written", hint="Read it again and decide on what it says now.",
                    **data)


def overtaken(path: str, version: str) -> Overtaken:
    """Our bytes were sent to `path` and somebody else's, without our edit in them, stand there now."""
    return Overtaken(f"{path} was changed by somebody else meanwhile; your edit is not in it", path=path,
                     version=version, hint="Read it again and decide on what it says now.")


def emptied() -> VaultUnreachable:
    """The vault's folder held files and holds none: more likely unmounted than emptied."""
    return VaultUnreachable("The vault's folder is empty, though it held files before", reason="emptied",
                            hint="Mount the vault again. If it was emptied on purpose, remove the catalog file from "
                                 "ECHO_STATE_DIR and restart ECHO.")


def _candidates(paths: Sequence[str]) -> List[Dict[str, str]]:
    return [{"path": path, "title": stem(path), "kind": "", "slug": ""} for path in paths]
