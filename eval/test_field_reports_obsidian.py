"""What people reported about tools on a running Obsidian or on synced folders comes out right here, through the server.

The double of the REST API stands for Obsidian, in the plugin's newest and oldest supported versions.
"""
from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from echo_core.errors import VaultUnreachable
from echo_core.vault.base import Vault
from fakes.olrapi import Olrapi
from opsfixture import INSTANT, ZONE, call, get, make_ctx, put
from restvault import KEY
from serverproc import Server, running_server
from test_bad_input import PAYLOADS, tree

NOTE = "# Übersicht\n\n## Детали\n\nx ^id\n\n## 详细 🖊️\n\ny\n"


class Behind(NamedTuple):
    """A server whose vault is a running double."""

    api: Olrapi
    server: Server

    def put(self, path: str, text: str) -> Path:
        """A note as somebody in Obsidian writes it."""
        file = self.server.vault / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        return file


@pytest.fixture(scope="module", params=["5.1.0", "3.6.1"])
def behind(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    folder = tmp_path_factory.mktemp("obsidian")
    (folder / "vault").mkdir()
    with (
        Olrapi(str(folder / "vault"), request.param, KEY) as api,
        running_server(folder, ECHO_BASE=api.url, ECHO_KEY=KEY, ECHO_CLOCK=INSTANT, ECHO_TZ=ZONE) as server,
    ):
        yield Behind(api, server)


def test_every_patch_works_whatever_dialect_the_plugin_speaks(behind: Behind) -> None:
    """A heading in any script, a key and a block; no PATCH is sent, so no version of it can fail."""
    file = behind.put("notes/übersicht.md", "---\r\nzip: 007 # kept\r\n---\r\n\r\n" + NOTE.replace("\n", "\r\n"))
    before = file.read_bytes().decode()
    behind.api.log.clear()
    edits = [("append", "heading", "Детали", "- new"), ("append", "heading", "详细 🖊️", "- 新"),
             ("replace", "frontmatter", "status", "active"), ("append", "block", "id", "more")]
    for operation, kind, target, content in edits:
        answer = behind.server.call("echo_patch_note", path="notes/übersicht.md", operation=operation, target_type=kind,
                                    target=target, content=content)
        assert answer["action"] == "patched", answer
    wanted = before.replace("x ^id", "x more ^id\r\n- new").replace("y\r\n", "y\r\n- 新\r\n")
    assert file.read_bytes().decode() == wanted.replace("# kept\r\n", "# kept\r\nstatus: active\r\n")
    assert behind.api.log.count("PATCH") == 0


@pytest.mark.parametrize("path", ["🖊️ journal/день #1.md", "日记/今天 😀.md", "Acme & Co/50% of (it).md", "a b/ü.md"])
def test_a_folder_of_any_name_is_read_written_and_moved(behind: Behind, path: str) -> None:
    """Each part of a path is encoded by itself, in both directions."""
    file = behind.put(path, "# T\n")
    assert behind.server.call("echo_get_note", path=path)["content"] == "# T\n"
    assert behind.server.call("echo_append_note", path=path, line="- x")["ok"]
    assert file.read_text() == "# T\n- x\n"
    moved = path.replace(".md", " zwei.md")
    assert behind.server.call("echo_move_note", path=path, new_path=moved, confirm=True)["ok"]
    assert (behind.server.vault / moved).read_text() == "# T\n- x\n"
    assert not file.exists()


def test_a_stale_version_is_refused_although_the_api_would_take_it(behind: Behind) -> None:
    """PUT heeds no If-Match: the comparison right before it is ours."""
    file = behind.put("notes/stale.md", "one\n")
    read = behind.server.call("echo_get_note", path="notes/stale.md")["version"]
    file.write_text("somebody else\n")
    answer = behind.server.call("echo_append_note", path="notes/stale.md", line="- x", if_match=read)
    assert answer["code"] == "conflict"
    assert file.read_text() == "somebody else\n"
    assert behind.server.call("echo_append_note", path="notes/stale.md", line="- x", if_match=answer["version"])["ok"]


def test_edits_in_one_batch_all_land(behind: Behind) -> None:
    """Appends and patches of one note at once, each answered well, each there once."""
    file = behind.put("notes/batch.md", "# N\n\n## A\n\na\n\n## B\n\nb\n")
    jobs: list[tuple[str, dict[str, Any]]] = [("echo_append_note", {"line": f"- line {n}"}) for n in range(6)]
    jobs += [("echo_patch_note", {"operation": "append", "target_type": "heading", "target": name,
                                  "content": f"patched {name}"}) for name in "AB"]
    with ThreadPoolExecutor(len(jobs)) as pool:
        answers = list(pool.map(lambda job: behind.server.call(job[0], path="notes/batch.md", **job[1]), jobs))
    assert all(answer["ok"] for answer in answers), answers
    for text in [f"- line {n}\n" for n in range(6)] + ["patched A\n", "patched B\n"]:
        assert file.read_text().count(text) == 1


def test_no_hostile_path_reaches_the_api(behind: Behind) -> None:
    """The plugin's own check has had holes: nothing is asked of it for any of these."""
    behind.put("notes/plain.md", "# Plain\n")
    assert behind.server.call("echo_get_note", path="notes/plain.md")["ok"]
    before = tree(behind.server.vault)
    for path in [path for path in PAYLOADS if not any("\ud800" <= char <= "\udfff" for char in path)]:
        for tool, arguments in (
            ("echo_get_note", {"path": path}), ("echo_append_note", {"path": path, "line": "- x"}),
            ("echo_move_note", {"path": "notes/plain.md", "new_path": path, "confirm": True}),
        ):
            assert behind.server.call(tool, **arguments)["code"] == "invalid-path", (tool, path)
    assert tree(behind.server.vault) == before
    asked = {entry.path for entry in behind.api.log.entries if "secret" in entry.path or ".." in entry.path}
    assert asked == set()


class Evicted(Vault):
    """A folder whose notes under `away/` are in the cloud and not on the disk; counts what is asked of it."""

    def __init__(self, inner: Vault) -> None:
        self._inner = inner
        self.asked: list[str] = []
        self.back = False

    def __getattribute__(self, name: str) -> Any:
        own = ("_inner", "asked", "back", "read", "read_many")
        return object.__getattribute__(self, name) if name in own else getattr(self._inner, name)

    def read(self, path: str) -> bytes:
        """The bytes, unless they are away."""
        if path.startswith("away/") and not self.back:
            self.asked.append(path)
            raise VaultUnreachable(f"{path} is not on this machine now", reason="evicted", path=path)
        return self._inner.read(path)

    def read_many(self, paths: Any) -> Iterator[tuple[str, bytes]]:
        """One after the other."""
        return Vault.read_many(self, paths)


def test_notes_that_a_sync_program_took_off_the_disk_hold_up_nothing(tmp_path: Path) -> None:
    """70 of them: each is tried once, one warning names them all, every other note is found; later they are back."""
    for number in range(70):
        put(tmp_path, f"away/{number:02}.md", f"# Away {number}\n\nzebrafish\n")
    put(tmp_path, "notes/here.md", "# Here\n\nzebrafish pond\n")
    vaults: list[Evicted] = []

    def taken_off(inner: Vault) -> Vault:
        vaults.append(Evicted(inner))
        return vaults[0]

    ctx = make_ctx(tmp_path, wrap=taken_off)
    answers = [call(ctx, "load"), call(ctx, "capture", title="New", kind="concept", body="pond life")]
    answers += [call(ctx, "recall", query=words) for words in ("zebrafish", "zebrafish pond", "pond life")]
    answers += [call(ctx, "resolve", mention="Here"),
                call(ctx, "capture", title="Newer", kind="concept", body="a lake")]
    assert all(answer["ok"] for answer in answers), answers
    assert {path: vaults[0].asked.count(path) for path in vaults[0].asked if vaults[0].asked.count(path) > 2} == {}
    assert len(set(vaults[0].asked)) == 70
    assert len(vaults[0].asked) <= 75
    recalled = answers[2]
    assert [hit["path"] for hit in recalled["primary"]] == ["notes/here.md"]
    assert len(recalled["warnings"]) == 1
    assert "and more" in recalled["warnings"][0]
    refused = call(ctx, "get_note", path="away/07.md")
    assert (refused["code"], refused["reason"]) == ("vault-unreachable", "evicted")
    assert get(tmp_path, "away/07.md") == "# Away 7\n\nzebrafish\n"
    vaults[0].back = True
    assert call(ctx, "get_note", path="away/07.md")["ok"]
    assert call(make_ctx(tmp_path), "recall", query="zebrafish", limit=20)["primary"]
