"""One note on a server's disk, edited through its doors: for tests of what an edit makes of a note."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from serverproc import Server, running_server

CLOCK = "2026-11-30T14:05:09+01:00"
ZONE = "Europe/Vienna"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for a module; nothing it did may have ended in a traceback."""
    with running_server(tmp_path_factory.mktemp("reports"), ECHO_CLOCK=CLOCK, ECHO_TZ=ZONE) as running:
        yield running
        assert [line for line in running.lines if "Traceback" in line or "internal error" in line] == []


class Desk:
    """One note on the server's disk, edited through its doors."""

    def __init__(self, server: Server, path: str, text: str) -> None:
        self.server, self.path = server, path
        self.file = server.vault / path
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_bytes(text.encode())

    def append(self, line: str, **more: Any) -> dict[str, Any]:
        """Call echo_append_note."""
        return self.server.call("echo_append_note", path=self.path, line=line, **more)

    def patch(
        self, operation: str, target: str, content: Any, target_type: str = "heading", **more: Any
    ) -> dict[str, Any]:
        """Call echo_patch_note; more: its other arguments."""
        return self.server.call("echo_patch_note", path=self.path, operation=operation, target_type=target_type,
                                target=target, content=content, **more)

    def set(self, key: str, value: Any) -> dict[str, Any]:
        """Replace a frontmatter key."""
        return self.patch("replace", key, value, "frontmatter")

    @property
    def text(self) -> str:
        """The note as it is on disk."""
        return self.file.read_bytes().decode()


@pytest.fixture
def desk(server: Server, request: pytest.FixtureRequest) -> Any:
    """Puts a note of this test's own on the server's disk."""
    folder = f"notes/{abs(hash(request.node.name)):x}"
    return lambda text, name="note.md": Desk(server, f"{folder}/{name}", text)
