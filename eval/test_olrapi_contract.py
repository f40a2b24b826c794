"""The double of the Local REST API answers as the plugin was measured to answer."""

from __future__ import annotations

import base64
import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from fakes.olrapi import DIALECTS, Olrapi

GROUPS = frozenset({
    "auth", "cors", "delete", "get", "hidden", "listing", "move", "note-json", "post", "put", "routing",
    "search-jsonlogic", "status", "traversal",
})
HERE = Path(__file__).parent
OWN = HERE / "fakes" / "olrapi" / "cases.jsonl"
RECORDED = HERE.parent.parent / "shared" / "contract" / "rest-api-cases.jsonl"
ANSWER_SECONDS = 10.0
HANG_SECONDS = 0.3
Case = dict[str, Any]


def cases(source: Path) -> list[Any]:
    """One parameter per case and version, with what that version answered."""
    if not source.exists():
        return [pytest.param("", {}, marks=pytest.mark.skip(f"no {source.name} in shared/contract beside the project"))]
    lines = source.read_text("utf-8").splitlines()
    found = []
    for case in map(json.loads, lines):
        if case["group"] not in GROUPS:
            continue
        answers = {case["version"]: case, **dict.fromkeys(case.get("same_in", []), case)}
        answers.update((version, {**case, **changes}) for version, changes in case.get("differs_in", {}).items())
        for version, answer in answers.items():
            if version in DIALECTS:
                found.append(pytest.param(version, answer, id=f"{case['id']}-{version}"))
    return found


def as_bytes(value: Any) -> bytes:
    """A recorded file or body: text, or base64."""
    return base64.b64decode(value["b64"]) if isinstance(value, dict) else str(value).encode("utf-8", "surrogatepass")


def header_bytes(value: Any) -> bytes:
    """A recorded header value: raw Latin-1 where the record says so, else UTF-8."""
    return str(value["latin1"]).encode("latin-1") if isinstance(value, dict) else str(value).encode()


def ask(port: int, request: Case, seconds: float = ANSWER_SECONDS) -> bytes | None:
    """The raw answer to a recorded request, sent byte for byte; None when there was none in time."""
    body = None if request["body"] is None else as_bytes(request["body"])
    head = [f"{request['method']} {request['path']} HTTP/1.1".encode(), b"Host: localhost", b"Connection: close"]
    head += [name.encode() + b": " + header_bytes(value) for name, value in request["headers"].items()]
    if body is not None:
        head.append(b"Content-Length: %d" % len(body))
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as sock:
        sock.sendall(b"\r\n".join([*head, b"", body or b""]))
        parts = []
        try:
            while part := sock.recv(65536):
                parts.append(part)
        except TimeoutError:
            return None
    return b"".join(parts)


def parse(raw: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of an answer."""
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    return int(lines[0].split()[1]), headers, body


def lay_out(root: Path, files: Case) -> None:
    """The vault before the request."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(as_bytes(content))


def on_disk(root: Path) -> dict[str, bytes]:
    """The whole vault."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def check(version: str, case: Case, root: Path) -> None:
    """Replay one case and compare status, listed headers, body and the vault afterwards."""
    lay_out(root, case["files"])
    with Olrapi(str(root), version) as api:
        raw = ask(api.port, case["request"], HANG_SECONDS if case.get("hang") else ANSWER_SECONDS)
    if case.get("hang"):
        assert raw is None
        return
    assert raw is not None, "no answer"
    status, headers, body = parse(raw)
    assert status == case["status"]
    assert {name: headers.get(name) for name in case["headers"]} == case["headers"]
    if "body_json" in case:
        value = json.loads(body)
        value["stat"].update(ctime=0, mtime=0)
        assert value == case["body_json"]
    else:
        assert body.replace(os.fsencode(root), b"<VAULT>") == as_bytes(case["body"])
    assert on_disk(root) == {name: as_bytes(content) for name, content in case["files_after"].items()}


@pytest.mark.parametrize(("version", "case"), cases(RECORDED))
def test_double_answers_a_recorded_case_as_the_plugin_did(version: str, case: Case, tmp_path: Path) -> None:
    """Status, headers, body and files of every recorded case are the plugin's own."""
    check(version, case, tmp_path)


@pytest.mark.parametrize(("version", "case"), cases(OWN))
def test_double_answers_a_case_of_our_own_by_the_same_rules(version: str, case: Case, tmp_path: Path) -> None:
    """The rules behind the recorded cases hold for cases that were written for this project."""
    check(version, case, tmp_path)
