"""The few requests of the Local REST API that ECHO uses, each with what its answers mean (spec 6.1).

Reads are repeated on a fresh connection when one breaks; a write is sent once and never repeated here. ECHO uses
neither PATCH nor POST-append, and no other endpoint than these.
"""
from __future__ import annotations

import json
import time
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple
from urllib.parse import unquote

from echo_core.errors import VaultAuth, VaultBadResponse, VaultUnreachable
from echo_core.vault.rest_address import file_target, folder_target
from echo_core.vault.rest_transport import Answer, Transport

MAX_FILE_BYTES = 64 * 1024 * 1024
"""Nothing larger is read: as much as the catalog reads of a note."""

TEXT = "text/markdown; charset=utf-8"
"""Sent with every PUT: without it the plugin writes `{}` and answers that all is well."""

BYTES = "application/octet-stream"
"""Sent with a PUT of what need not be text: the plugin then writes the bytes as they are."""

_NOTE_JSON = "application/vnd.olrapi.note+json"
_JSON_LOGIC = "application/vnd.olrapi.jsonlogic+json"
_MAX_JSON_BYTES = 4 * MAX_FILE_BYTES
_TIMES = {"merge": [{"var": "stat.mtime"}, {"var": "stat.size"}]}
_TRIES = 3
_PAUSE_S = 0.05
_INVALID_TARGET = 40054
_NEVER = 1e16


class Times(NamedTuple):
    """Of one file, as Obsidian knows them: milliseconds since the epoch, size in bytes."""

    mtime_ms: float
    size: int


class RestClient:
    """Requests with a key. `until` is always the deadline of the whole call in monotonic seconds. Thread-safe."""

    def __init__(self, transport: Transport, key: str) -> None:
        self._transport = transport
        self._key = key
        self.breaks = 0
        """Grows whenever no answer came: what the vault showed before may be of an Obsidian that is gone."""

    def status(self, until: float) -> Dict[str, Any]:
        """What `GET /` says: versions and whether the key is right."""
        found = _json_of(self._read("/", until, 1024 * 1024), dict)
        if found.get("service") != "Obsidian Local REST API":
            raise VaultBadResponse("What answers at the vault's address is not the Local REST API",
                                   hint="Check ECHO_BASE.", reason="not-the-api")
        return dict(found)

    def file(self, name: str, until: float) -> Optional[bytes]:
        """The bytes of the file with exactly this spelling, None when there is none."""
        answer = self._read(file_target(name), until, MAX_FILE_BYTES)
        return answer.body if _is_file(answer, name) else None

    def times(self, name: str, until: float) -> Optional[Times]:
        """Time and size of a file that Obsidian has indexed, None when it has not."""
        answer = self._read(file_target(name), until, _MAX_JSON_BYTES, _NOTE_JSON)
        if not _is_file(answer, name):
            return None
        return _times(_json_of(answer, dict).get("stat"))

    def all_times(self, until: float) -> Dict[str, Times]:
        """Time and size of every note by its path, by one search; VaultBadResponse where that is not possible."""
        body = json.dumps(_TIMES).encode()
        answer = self._repeated("POST", "/search/", {"Content-Type": _JSON_LOGIC}, body, until, _MAX_JSON_BYTES)
        if answer.status != 200:
            raise _unexpected(answer)
        found: Dict[str, Times] = {}
        for row in _json_of(answer, list):
            if not isinstance(row, dict) or not isinstance(row.get("filename"), str):
                raise _garbled()
            pair = row.get("result")
            if not isinstance(pair, list) or len(pair) != 2:
                raise _garbled()
            found[row["filename"]] = _times({"mtime": pair[0], "size": pair[1]})
        return found

    def listing(self, name: str, until: float) -> Optional[List[str]]:
        """Direct children of a folder, those of folders ending in "/"; None when it is absent or empty."""
        answer = self._read(folder_target(name), until, MAX_FILE_BYTES)
        if answer.status != 200 or "content-disposition" in answer.headers:
            return None
        files = _json_of(answer, dict).get("files")
        if not isinstance(files, list) or not all(isinstance(entry, str) for entry in files):
            raise _garbled()
        return files

    def put(self, name: str, data: bytes, until: float, fresh: bool = False, kind: str = TEXT) -> None:
        """Send one PUT. Whatever it answers or raises, only a read tells what is there now. kind: TEXT or BYTES."""
        answer = self._once("PUT", file_target(name), {"Content-Type": kind}, data, until, 1024 * 1024, fresh)
        if not 200 <= answer.status < 300:
            raise _unexpected(answer)

    def remove(self, name: str, until: float) -> bool:
        """Send one DELETE, past the trash. False when there was nothing to remove."""
        answer = self._once("DELETE", file_target(name) + "?permanent=true", {}, None, until, 1024 * 1024)
        if answer.status == 404:
            return False
        if not 200 <= answer.status < 300:
            raise _unexpected(answer)
        return True

    def _read(self, target: str, until: float, limit: int, accept: str = "*/*") -> Answer:
        """A GET; 200 or "not there" come back, everything else is raised."""
        answer = self._repeated("GET", target, {"Accept": accept}, None, until, limit)
        absent = answer.status == 404 or (answer.status == 400 and _error_code(answer) == _INVALID_TARGET)
        if answer.status != 200 and not absent:
            raise _unexpected(answer)
        return answer

    def _repeated(self, method: str, target: str, headers: Mapping[str, str], body: Optional[bytes], until: float,
                  limit: int) -> Answer:
        """A request without effects, tried again while the vault stumbles and there is time."""
        for attempt in range(_TRIES - 1):
            try:
                return self._once(method, target, headers, body, until, limit, fresh=attempt > 0)
            except VaultUnreachable as failure:
                reason = str(failure.data.get("reason"))
                if reason != "reset" and not reason.startswith("http-"):
                    raise
                if reason != "reset":
                    time.sleep(_PAUSE_S)
        return self._once(method, target, headers, body, until, limit, fresh=True)

    def _once(self, method: str, target: str, headers: Mapping[str, str], body: Optional[bytes], until: float,
              limit: int, fresh: bool = False) -> Answer:
        """One request. Raises VaultAuth, VaultBadResponse for a redirect, VaultUnreachable for a 5xx."""
        dressed = {"Authorization": f"Bearer {self._key}", **headers}
        try:
            answer = self._transport.send(method, target, dressed, body, until, limit, fresh)
        except VaultUnreachable:
            self.breaks += 1
            raise
        if answer.status in (401, 403):
            raise VaultAuth("The vault refuses the key", reason="key",
                            hint="Copy the key from Obsidian's settings of the Local REST API into ECHO_KEY.")
        if 300 <= answer.status < 400:
            raise VaultBadResponse("The vault redirects to another address, which is never followed",
                                   hint="Set ECHO_BASE to the address itself.", reason="redirect")
        if answer.status >= 500 or answer.status == 429:
            raise VaultUnreachable(f"The vault answered with the error {answer.status}", hint="Try again.",
                                   reason=f"http-{answer.status}")
        return answer


def _is_file(answer: Answer, name: str) -> bool:
    """Whether an answer is the file `name`, not the listing of a folder nor a part of another note."""
    if answer.status != 200:
        return False
    said = answer.headers.get("content-disposition", "")
    start, end = said.find('filename="'), said.rfind('"')
    return start >= 0 and unquote(said[start + len('filename="'):end]) == name


def _times(stat: Any) -> Times:
    values: Tuple[Any, Any] = (stat.get("mtime"), stat.get("size")) if isinstance(stat, dict) else (None, None)
    if not all(isinstance(value, (int, float)) and 0 <= value < _NEVER for value in values):
        raise _garbled()
    return Times(values[0], int(values[1]))


def _json_of(answer: Answer, shape: type) -> Any:
    """The parsed body, which must be of this shape."""
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        raise _garbled() from None
    if not isinstance(found, shape):
        raise _garbled()
    return found


def _error_code(answer: Answer) -> int:
    """The plugin's own error number, 0 when it gave none."""
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        return 0
    code = found.get("errorCode") if isinstance(found, dict) else 0
    return code if isinstance(code, int) else 0


def _unexpected(answer: Answer) -> VaultBadResponse:
    code = _error_code(answer)
    return VaultBadResponse(f"The vault answered with status {answer.status}" + (f" (error {code})" if code else ""),
                            reason=f"http-{answer.status}")


def _garbled() -> VaultBadResponse:
    return VaultBadResponse("The vault sent an answer that is not what its API promises", reason="garbled")
