"""MOVE and COPY, and the refusals of PATCH, which ECHO never uses."""

from __future__ import annotations

import posixpath
import re

from fakes.olrapi import paths, targets
from fakes.olrapi.replies import Crash, Refusal
from fakes.olrapi.vault_routes import NO_CONTENT, NOT_FOUND, ONLY_FILES, Call

DESTINATION_EXISTS = Refusal(code=40920, text="Destination file already exists.")
BAD_DESTINATION = Refusal(code=40022, text="The 'Destination' header you provided could not be parsed.")
NO_OPERATION = Refusal(code=40056, text="No 'Operation' header was provided.")
BAD_OPERATION = Refusal(code=40057, text="The 'Operation' header you provided was invalid.")


async def move(call: Call) -> None:
    """Rename a note."""
    await _carry(call, "move")


async def copy(call: Call) -> None:
    """Copy a note."""
    await _carry(call, "copy")


async def _carry(call: Call, verb: str) -> None:
    path = paths.whole_file(call.segments)
    if path is None:
        raise NOT_FOUND
    if not path or path.endswith("/"):
        raise ONLY_FILES
    target = _destination(call, path)
    try:
        _check(call, verb, path, target)
        await call.race.pause(verb.upper(), path)
        if path != target and not call.phantom:
            _do(call, verb, path, target)
    except Crash as error:
        detail = f"Failed to {verb} file: {error}"
        text = "File operation failed. Check the error message for details."
        raise Refusal(code=50020, text=text, detail=detail) from error
    call.answer.headers["content-location"] = paths.encode_uri(target)
    raise NO_CONTENT


def _destination(call: Call, path: str) -> str:
    """The path the Destination header names; one that ends in a slash keeps the file's name. Raises Refusal."""
    if "destination" not in call.request.headers:
        raise Refusal(code=40020, text=call.dialect.missing_destination)
    try:
        wanted = paths.decode(call.request.header("destination").strip())
    except ValueError as error:
        raise BAD_DESTINATION from error
    wanted = re.sub("/+", "/", wanted.replace("\\", "/"))
    if wanted.startswith("/") or not paths.stays_inside(wanted):
        raise paths.TRAVERSAL
    return wanted + posixpath.basename(path) if not wanted or wanted.endswith("/") else wanted


def _check(call: Call, verb: str, path: str, target: str) -> None:
    """Refuse a missing source and a taken destination; a move onto itself is fine, even of nothing."""
    if path == target and verb == "move":
        return
    if call.store.in_index(path) != "file":
        raise NOT_FOUND
    taken = path == target or call.store.exists(target)
    if taken and (path == target or call.request.header("allow-overwrite") != "true"):
        raise DESTINATION_EXISTS


def _do(call: Call, verb: str, path: str, target: str) -> None:
    if call.store.exists(target):
        call.store.remove(target)
    (call.store.rename if verb == "move" else call.store.copy)(path, target)


async def patch(call: Call) -> None:
    """Refuse a PATCH as the plugin would, and with 501 where it would work."""
    segments = call.segments
    if call.dialect.decodes_segments:
        targets.refuse_patch(call, paths.resolve(segments, call.store), segments)
    path = paths.whole_file(segments)
    if path is None:
        raise NOT_FOUND
    if not path or path.endswith("/"):
        raise ONLY_FILES
    if call.dialect.decodes_segments:
        if call.request.header("markdown-patch-version") != "1":
            raise targets.NOT_HERE
        call.answer.headers["deprecation"] = targets.SUNSET
    try:
        paths.decode(call.request.header("target"))
    except ValueError as error:
        raise Crash("URI malformed") from error
    if call.dialect.hangs_on_errors and call.store.in_index(path) != "file":
        raise NOT_FOUND
    kind, operation = call.request.header("target-type"), call.request.header("operation")
    if not kind:
        raise targets.NO_TYPE
    if kind not in paths.TARGETS:
        raise Refusal(code=40054, text=call.dialect.invalid_target_type)
    if not operation:
        raise NO_OPERATION
    if operation not in ("append", "prepend", "replace"):
        raise BAD_OPERATION
    if call.request.header("content-type") not in ("application/json", "text/markdown"):
        raise targets.BAD_CONTENT_TYPE
    raise targets.NOT_HERE if call.store.in_index(path) == "file" else NOT_FOUND
