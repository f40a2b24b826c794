"""GET, PUT, POST and DELETE below /vault/."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from fakes.olrapi import bodies, mimes, notes, paths, targets
from fakes.olrapi.dialects import Dialect
from fakes.olrapi.http1 import Answer, Request
from fakes.olrapi.race import Race
from fakes.olrapi.replies import Crash, Refusal, send_json, send_text, set_type
from fakes.olrapi.store import Store

NOT_FOUND = Refusal(404)
NO_CONTENT = Refusal(204)
ONLY_FILES = Refusal(code=40510, text="Request method is valid only for file paths, not directories.")
NEEDS_TEXT = Refusal(
    code=40010,
    text="Incoming content must be text data and have an appropriate text/* Content-type header set "
         "(e.g. text/markdown).",
)
NO_SECTION_DELETE = Refusal(
    405,
    detail="Deleting a targeted section via URL is not supported. Use PATCH with Operation: replace and an empty body "
           "instead.",
)


@dataclass
class Call:
    """One request on its way through a handler; a handler fills `answer` or raises Refusal or Crash."""

    request: Request
    answer: Answer
    store: Store
    dialect: Dialect
    race: Race
    body: Any = None
    phantom: bool = False

    @property
    def segments(self) -> list[str]:
        """The decoded path segments behind the route's first one."""
        return paths.vault_path(self.request.path[self.request.path.index("/", 1) + 1 :], self.dialect)


async def get(call: Call) -> None:
    """A file, a folder's listing, or a note with its metadata."""
    segments = call.segments
    whole = paths.whole_file(segments)
    path = None if whole is None else whole.removesuffix("/")
    found = None
    if path is None or not path or call.store.kind(path) != "file":
        names = [] if path is None else call.store.listing(path)
        if names or path == "":
            send_json(call.answer, {"files": names})
            return
        found = paths.resolve(segments, call.store)
        if found is None or not found.has_target:
            raise NOT_FOUND
        path = found.path
    data = call.store.read(path)
    name = paths.encode_uri(path).replace(",", "%2C", 1)
    call.answer.headers["content-disposition"] = f'attachment; filename="{name}"'
    set_type(call.answer, mimes.lookup(path))
    if call.request.header("accept") == notes.NOTE_JSON:
        _note_json(call, path)
        return
    if found is None:
        targets.read_by_headers(call)
    else:
        targets.read(call, found)
    call.answer.body = data


def _note_json(call: Call, path: str) -> None:
    """The note+json answer. A file outside the index is 404, or a crash where the version does not look."""
    if call.store.in_index(path) != "file":
        if call.dialect.hangs_on_errors:
            raise Crash("Cannot read properties of null")
        raise NOT_FOUND
    call.answer.headers["content-type"] = notes.NOTE_JSON
    value = notes.describe(call.store, path, call.dialect.link_fields)
    send_text(call.answer, notes.as_json(value))


def _file_to_write(call: Call) -> str:
    """The path of the whole file a PUT or POST means. Raises Refusal for targets inside a note and for folders."""
    segments = call.segments
    found = paths.resolve(segments, call.store)
    if found is None and any(segment in paths.TARGETS for segment in segments):
        raise NOT_FOUND
    if found is not None and found.has_target:
        targets.write(call, found)
    path = paths.whole_file(segments)
    if path is None:
        raise NOT_FOUND
    targets.write_by_headers(call)
    if not path or path.endswith("/"):
        raise ONLY_FILES
    return path


async def put(call: Call) -> None:
    """Write a whole file; conditions in the headers are not looked at."""
    path = _file_to_write(call)
    if call.phantom:
        raise NO_CONTENT
    call.store.make_parent(path)
    known = call.store.in_index(path) == "file"
    await call.race.pause("PUT", path)
    await _store(call, path, bodies.as_bytes(call.body), known or not isinstance(call.body, str))
    raise NO_CONTENT


async def post(call: Call) -> None:
    """Append to a note: read, the gap, write. A note that the index does not know counts as new."""
    path = _file_to_write(call)
    if not isinstance(call.body, str):
        raise NEEDS_TEXT
    call.store.make_parent(path)
    known = call.store.in_index(path) == "file"
    before = call.store.read(path).decode("utf-8", "replace") if known else ""
    newline = "" if before.endswith("\n") or not known else "\n"
    await call.race.pause("POST", path)
    if not call.phantom:
        await _store(call, path, bodies.as_utf8(before + newline + call.body), known)
    raise NO_CONTENT


async def _store(call: Call, path: str, data: bytes, known: bool) -> None:
    """Put bytes where the version puts them: through the index, or straight onto the disk."""
    if call.store.kind(path) == "file":
        call.answer.dropped = len(set(call.store.read(path).splitlines()) - set(data.splitlines()))
    if call.dialect.creates_by_index and not known:
        call.store.create(path, data)
        return
    if call.race.torn_writes:
        call.store.write(path, b"")
        await call.race.pause("write", path)
    call.store.write(path, data)


async def delete(call: Call) -> None:
    """Remove a file, or move it to the trash."""
    segments = call.segments
    found = paths.resolve(segments, call.store)
    if found is not None and found.has_target:
        raise NO_SECTION_DELETE
    path = paths.whole_file(segments)
    if path is None:
        raise NOT_FOUND
    if not path or path.endswith("/"):
        raise ONLY_FILES
    to_trash = call.dialect.trashes and not _permanent(call.request)
    if not (call.store.in_index(path) if to_trash else call.store.exists(path)):
        raise NOT_FOUND
    try:
        if not call.phantom:
            (call.store.trash if to_trash else call.store.remove)(path)
    except Crash as error:
        if call.dialect.hangs_on_errors:
            raise
        raise Refusal(500) from error
    raise NO_CONTENT


def _permanent(request: Request) -> bool:
    """Whether the query says permanent=true, once."""
    return [value for name, value in parse_qsl(request.query, True) if name == "permanent"] == ["true"]
