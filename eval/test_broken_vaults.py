"""A broken note, index, route map or vault: it is named, keeps its bytes, and the rest goes on."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import echo_admin
import echo_check
import echo_offline
import echo_output
import echo_tools
import pytest
from echo_core.errors import IndexCorrupt
from echo_core.index import EntityIndex
from fakes.forked import NOBODY, in_child
from opsfixture import INSTANT, ZONE, call, get, make_ctx, put
from serverproc import Server, environment, running_server
from test_bad_input import CANARY, ENGINE, ENGINE_TEXT, LEAKS, PATCH, SESSION, cli, plain

LOADED = (echo_admin, echo_check, echo_offline, echo_output)
"""Loaded before a child becomes nobody, who may not be allowed to read the sources."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("odd"), ECHO_CLOCK=INSTANT, ECHO_TZ=ZONE) as running:
        yield running
        log = "\n".join(running.lines)
        assert not LEAKS.search(log), LEAKS.search(log)
        assert "internal error" not in log


SCALAR = "v: " + "y" * (1024 * 1024)
BROKEN_YAML = {
    "unclosed": "---\ntitle: Never ends\n\n# Broken unclosed\n\nzebrafish\n",
    "tabs": "---\n\ttitle: x\n---\n\n# Broken tabs\n\nzebrafish\n",
    "duplicate": "---\na: 1\nb: 2\na: 3\n---\n\n# Broken duplicate\n\nzebrafish\n",
    "datekey": "---\n2026-01-01: x\n? [complex]\n: y\n---\n\n# Broken datekey\n\nzebrafish\n",
    "anchor": "---\na: &x [1\nb: *x\n---\n\n# Broken anchor\n\nzebrafish\n",
    "nul": "---\na: b\0c\nd: [\n---\n\n# Broken nul\n\nzebrafish\n",
    "deep": "---\na: " + "[" * 3000 + "\n---\n\n# Broken deep\n\nzebrafish\n",
    "conflict": "---\n<<<<<<< ours\na: 1\n=======\na: 2\n>>>>>>> theirs\n---\n\n# Broken conflict\n\nzebrafish\n",
    "megabyte": f"---\n{SCALAR}\n---\n\n# Broken megabyte\n\nzebrafish\n",
    "megaquote": f"---\nv: \"{SCALAR}\n---\n\n# Broken megaquote\n\nzebrafish\n",
}


@pytest.mark.parametrize("name", BROKEN_YAML)
def test_frontmatter_that_does_not_parse_is_read_appended_to_and_never_edited(tmp_path: Path, name: str) -> None:
    """The body is found and grows below; edits of the block are refused with line and column; its bytes stay."""
    path, text = f"resources/concepts/{name}.md", BROKEN_YAML[name]
    put(tmp_path, path, text)
    ctx = make_ctx(tmp_path)
    read = call(ctx, "get_note", path=path)
    assert read["ok"]
    assert any("frontmatter does not parse" in warning for warning in read["warnings"]), read["warnings"]
    assert len(json.dumps(read)) < 20_000
    for key in ("status", "tags"):
        answer = plain(call(ctx, "patch_note", path=path, operation="replace", target_type="frontmatter", target=key,
                            content="x"), tmp_path)
        assert (answer["code"], answer["path"]) == ("malformed-note", path)
        assert answer["line"] >= 1
        assert answer["column"] >= 1
        assert len(json.dumps(answer)) < 1000
    assert get(tmp_path, path) == text
    hits = call(ctx, "recall", query="zebrafish")["primary"]
    assert [hit["path"] for hit in hits] == [path]
    assert call(ctx, "append_note", path=path, line="- grown")["ok"]
    assert get(tmp_path, path) == text + "- grown\n"
    merged = call(ctx, "capture", title="More", kind="concept", body="herring", tags=["t"], merge_into=path)
    assert merged["action"] == "updated"
    assert any("does not parse" in warning for warning in merged["warnings"])
    assert get(tmp_path, path).startswith(text + "- grown\n")
    assert "herring" in get(tmp_path, path)
    checks = {row["check"] for row in call(ctx, "health", deep=True)["violations"] if row["path"] == path}
    assert "frontmatter-malformed" in checks


ODD_BYTES = {
    "latin-1": "# Größe\n\nTür zebrafish\n".encode("latin-1"), "lone-ff": b"# T\n\n\xff zebrafish\n",
    "half": "# T\n\nzebrafish €".encode()[:-1], "utf-16": "# T zebrafish\n".encode("utf-16"),
    "nul": b"# T\n\na\0b zebrafish\n",
    "surrogate": b"# T\n\n\xed\xa0\x80 zebrafish\n", "overlong": b"# T\n\n\xc0\xae zebrafish\n",
    "controls": b"# T\n\n\x1b[31m\x07 zebrafish\n",
    "odd-frontmatter": b"---\ntitle: \xff\xfe\n---\n\n# T\n\nzebrafish\n",
}


@pytest.mark.parametrize("name", ODD_BYTES)
def test_a_note_of_odd_bytes_keeps_them(server: Server, name: str) -> None:
    """get_note answers with a flag, append and patch keep the rest byte for byte, every door can send the answer."""
    file = server.vault / f"odd/{name}.md"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(ODD_BYTES[name])
    path = f"odd/{name}.md"
    read = server.call("echo_get_note", path=path)
    assert read["ok"]
    valid = name in ("nul", "controls")
    assert (read.get("valid_utf8") is False) != valid
    assert server.tool("echo_get_note", path=path)["structuredContent"] == read
    assert server.call("echo_append_note", path=path, line="- grown")["ok"]
    data = file.read_bytes()
    assert data.startswith(ODD_BYTES[name])
    assert data.endswith(b"- grown\n")
    if name != "utf-16":
        patched = server.call("echo_patch_note", path=path, operation="append", target_type="heading",
                              target=server.call("echo_get_note", path=path)["headings"][-1], content="- patched")
        assert patched["ok"] or patched["code"] == "invalid-target", patched
        assert file.read_bytes().startswith(ODD_BYTES[name])
    for tool, arguments in (("echo_note_history", {"path": path}),
                            ("echo_move_note", {"path": path, "new_path": "odd/new.md"}),
                            ("echo_recall", {"query": "zebrafish"}), ("echo_health", {"deep": True}),
                            ("echo_load", {})):
        assert server.tool(tool, **arguments)["structuredContent"]["ok"], tool
    versions = server.call("echo_note_history", path=path)["versions"]
    assert server.call("echo_restore_note", path=path, version_id=versions[-1]["id"], confirm=True)["ok"]
    assert file.read_bytes() == ODD_BYTES[name]


@pytest.mark.parametrize("mb", [10, pytest.param(50, marks=pytest.mark.slow)])
def test_a_large_note_is_read_within_bounds(tmp_path: Path, mb: int) -> None:
    """CR-09: max_chars holds, recall and other calls go on, an append keeps every byte."""
    put(tmp_path, "notes/small.md", "# Small\n\nzebrafish in the pond\n")
    line = b"Lorem ipsum dolor sit amet, consectetur adipiscing elit " + b"word " * 20 + b"\n"
    (tmp_path / "vault/notes/big.md").write_bytes(b"# Big\n\n" + line * (mb * 1_000_000 // len(line)))
    size = (tmp_path / "vault/notes/big.md").stat().st_size
    with running_server(tmp_path, ready=False, ECHO_TIMEOUT="60") as server:
        read = server.call("echo_get_note", path="notes/big.md", max_chars=2000)
        assert read["ok"], read
        assert (read["truncated"], len(read["content"]) <= 2000) == (True, True)
        assert read["total_chars"] > (mb - 1) * 1_000_000
        server.wait(ready=True)
        assert server.call("echo_recall", query="zebrafish pond")["primary"][0]["path"] == "notes/small.md"
        answer = server.call("echo_append_note", path="notes/big.md", line="- the end")
        assert answer["ok"], answer
        assert (tmp_path / "vault/notes/big.md").stat().st_size == size + len("- the end\n")
        assert len(json.dumps(server.call("echo_recall", query="lorem ipsum"))) < 6000
        assert server.call("echo_get_note", path="notes/big.md", max_chars=2000)["ok"]


def test_a_missing_vault_is_an_error_on_every_door(tmp_path: Path) -> None:
    """Reads say vault-unreachable, exit 69 and 503; nothing is created in its place."""
    code, envelope = cli(tmp_path, "get", ENGINE)
    assert (code, plain(envelope, tmp_path)["code"]) == (69, "vault-unreachable")
    with running_server(tmp_path, ready=False, ECHO_BASE=str(tmp_path / "away/vault")) as server:
        for tool in echo_tools.TOOLS:
            arguments = {param.name: "x" for param in tool.params if param.required}
            arguments.update({name: value for name, value in (
                ("period", "week"), ("target_type", "heading"), ("operation", "append"),
                ("proposals", [{"action": "append", "path": "x", "line": "x"}])) if name in arguments})
            envelope = server.call(tool.name, **arguments)
            if tool.name == "echo_health":
                assert envelope["ok"] is True
                assert envelope["healthy"] is False
                continue
            if envelope.get("queued"):
                assert not tool.reads, "a write may wait for the vault"
                continue
            assert plain(envelope, tmp_path)["code"] == "vault-unreachable", (tool.name, envelope)
        assert not any(LEAKS.search(line) for line in server.lines)
    assert not (tmp_path / "away").exists()


def load_all_modules(folder: Path) -> None:
    """The other user may have no right to read Python's own files, which some calls import late."""
    for line in (("get", "nothing"), ("append", "nothing", "- x"), ("recall", "weaves"), ("lint",),
                 ("capture", "New", "--kind", "company", "--body", "b", "--dry-run")):
        cli(folder, *line)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root to become another user")
@pytest.mark.parametrize("closed", ["root", "folder", "note"])
def test_a_vault_we_may_not_read_is_an_auth_error(closed: str) -> None:
    """As another user: exit 77, the code vault-auth; entries of unreadable notes stay in the index."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "vault").mkdir()
        ctx = make_ctx(folder)
        call(ctx, "capture", title="Engine", kind="concept", body="weaves")
        call(ctx, "capture", title="Person", kind="person", body="someone")
        before = get(folder, "_agent/index/entities.json")
        load_all_modules(folder)
        for kept in (folder / "state").glob("cli-recall-*"):  # what was indexed before is found; here nothing was
            shutil.rmtree(kept)
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, NOBODY, NOBODY)
        os.chmod(folder, 0o755)
        target = {"root": "", "folder": "resources/concepts", "note": ENGINE}[closed]
        os.chown(folder / "vault" / target, 0, 0)
        os.chmod(folder / "vault" / target, 0)
        (folder / "state").chmod(0o777)

        def run(*line: str) -> tuple[int, dict[str, Any]]:
            answer: tuple[int, dict[str, Any]] = in_child(lambda: cli(folder, *line), as_nobody=True)
            return answer

        code, envelope = run("get", ENGINE)
        assert (code, plain(envelope, folder)["code"]) == (77, "vault-auth"), envelope
        code, envelope = run("append", ENGINE, "- x")
        assert (code, plain(envelope, folder)["code"]) == (77, "vault-auth"), envelope
        if closed != "root":
            code, envelope = run("capture", "New", "--kind", "company", "--body", "b")
            assert (code, envelope["action"]) == (0, "created"), envelope
            code, envelope = run("recall", "weaves")
            assert code == 0
            assert envelope["primary"] == []
            assert any("cannot be read" in warning for warning in envelope["warnings"])
            after = EntityIndex.from_bytes((folder / "vault/_agent/index/entities.json").read_bytes())
            assert set(EntityIndex.from_bytes(before.encode()).entries) < set(after.entries)
        else:
            os.chmod(folder / "vault", 0o755)
            assert get(folder, "_agent/index/entities.json") == before


INDEX = "_agent/index/entities.json"


def broken_indexes(good: bytes) -> list[bytes]:
    """The index cut at many places, with merge markers, and with everything else that is no index."""
    cut = [good[:at] for at in range(0, len(good) - 2, max(1, len(good) // 24))]
    merged = good.replace(b'"entities"', b'<<<<<<< HEAD\n"entities"\n=======\n>>>>>>> x\n', 1)
    return [*cut, merged, good.replace(b"}", b",}", 1), b"null", b"[]", b"{}", b"\xff\xfe", b"\0" * 100, b"[" * 100_000,
            b'{"version": 99, "entities": {}}', b'{"version": 1, "entities": []}',
            b'{"version": 1, "entities": {"a": 1}}',
            b'{"version": 1, "entities": {"a": {"path": 3}}}',
            good.replace(b"resources/concepts/engine.md", b"../../outside/secret.md")]


def test_a_broken_index_loses_no_entity(tmp_path: Path) -> None:
    """CR-01: reads go on; the next write sets the broken bytes aside and has every entity again."""
    ctx = make_ctx(tmp_path)
    for title in ("Engine", "Loom", "Card"):
        call(ctx, "capture", title=title, kind="concept", body=f"About {title}.")
    good = get(tmp_path, INDEX).encode()
    for number, data in enumerate(broken_indexes(good)):
        (tmp_path / "vault" / INDEX).write_bytes(data)
        ctx = make_ctx(tmp_path)
        assert call(ctx, "get_note", path="loom")["path"] == "resources/concepts/loom.md"
        assert call(ctx, "resolve", mention="Engine")["path"] == ENGINE
        assert call(ctx, "recall", query="about engine")["primary"]
        assert (tmp_path / "vault" / INDEX).read_bytes() == data, "reads write nothing"
        made = call(ctx, "capture", title=f"Fresh {number}x", kind="company", body=f"b{number} unlike {number * 7}",
                    force=True)
        assert made["ok"], made
        entries = EntityIndex.from_bytes((tmp_path / "vault" / INDEX).read_bytes()).entries
        assert {"engine", "loom", "card", made["slug"]} <= set(entries), number
        assert all(entry.path.startswith("resources/") for entry in entries.values()), entries
        try:
            EntityIndex.from_bytes(data)
        except IndexCorrupt:
            kept = {path.read_bytes() for path in (tmp_path / "vault/_agent/index").glob("entities.json.corrupt-*")}
            assert data in kept or not data, number


@pytest.mark.parametrize("path",
                         ["../../outside/secret.md", "/etc/passwd", "..", "a/../../x.md", ".obsidian/app.json",
                          "C:/x.md", "a\\b"])
def test_an_index_that_names_places_outside_leads_nowhere(tmp_path: Path, path: str) -> None:
    """A poisoned entry is no way around the check of paths, for reads and writes."""
    put(tmp_path, ENGINE, ENGINE_TEXT)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.md").write_text(CANARY)
    entry = {"aliases": [], "kind": "concept", "path": path, "title": "Trojan", "updated": ""}
    put(tmp_path, INDEX, json.dumps({"version": 1, "entities": {"trojan": entry}}))
    ctx = make_ctx(tmp_path)
    for name in ("trojan", "Trojan"):
        for tool, arguments in (("get_note", {"path": name}), ("append_note", {"path": name, "line": "- x"}),
                                ("link", {"a": name, "b": ENGINE}),
                                ("move_note", {"path": name, "new_path": "notes/x.md", "confirm": True})):
            assert plain(call(ctx, tool, **arguments), tmp_path)["code"] in ("not-found", "invalid-path"), (tool, name)
    assert call(ctx, "capture", title="Note", kind="concept", body="The Trojan horse.")["ok"]
    assert CANARY not in json.dumps(call(ctx, "recall", query="trojan"))
    assert (tmp_path / "outside/secret.md").read_text() == CANARY


@pytest.mark.parametrize("data",
                         [b"", b"{", b"null", b"[]", b"\xff", b'{"version": 2}', b'{"version": 1, "routes": {}}',
                                  b'{"version": 1, "routes": [{}]}', b'{"version": 1, "routes": [{"pattern": 3}]}',
                                  b"[" * 100_000,
                                  b"<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> x\n"])
def test_a_broken_route_map_stops_no_work(tmp_path: Path, data: bytes) -> None:
    """Edits and reads go on by the default routes with a warning; health names the file; the file stays."""
    put(tmp_path, ENGINE, ENGINE_TEXT)
    (tmp_path / "vault/_agent").mkdir(exist_ok=True)
    (tmp_path / "vault/_agent/routing.json").write_bytes(data)
    ctx = make_ctx(tmp_path)
    for tool, arguments in (("get_note", {"path": ENGINE}), ("append_note", {"path": ENGINE, "line": "- x"}),
                            ("patch_note", {"path": ENGINE, **PATCH})):
        answer = call(ctx, tool, **arguments)
        assert answer["ok"], answer
        assert len(answer["warnings"][0]) < 300
        assert any("_agent/routing.json" in warning for warning in answer["warnings"])
    assert call(ctx, "capture", title="Loom", kind="concept", body="b")["ok"]
    health = call(ctx, "health", deep=True)
    assert health["ok"]
    assert "routing.json" in json.dumps(health)
    assert (tmp_path / "vault/_agent/routing.json").read_bytes() == data


@pytest.mark.parametrize("name",
                         ["_agent/context/current-context.md", "inbox/captures/inbox.md", "journal/daily/2026-11-30.md",
                                  "_agent/memory/semantic/operator-preferences.md", "_agent/echo-vault.md",
                                  "_agent/sessions/heartbeat.json"])
@pytest.mark.parametrize("data",
                         [b"\xff\xfe\x00", b"---\na: [\n---\n", b"", b"\0" * 1000, b"[[[[" * 4_000, b"```\nopen"])
def test_a_broken_file_of_echos_own_stops_no_conversation(tmp_path: Path, name: str, data: bytes) -> None:
    """Load, recall, triage, health and capture answer; what cannot be written is a coded refusal."""
    (tmp_path / "vault" / name).parent.mkdir(parents=True)
    (tmp_path / "vault" / name).write_bytes(data)
    ctx = make_ctx(tmp_path)
    for tool, arguments in (("load", {}), ("load", {"brief": False}), ("recall", {"query": "anything"}),
                            ("triage_inbox", {}),
                            ("health", {"deep": True}), ("get_scope", {}), ("rollup_data", {"period": "week"})):
        answer = call(ctx, tool, **arguments)
        assert answer["ok"], (tool, answer)
        assert len(json.dumps(answer)) < 60_000
    assert (tmp_path / "vault" / name).read_bytes() == data
    for tool, arguments in (("capture", {"title": "Line"}), ("capture", {"title": "N", "kind": "concept", "body": "b"}),
                            ("set_scope", {"scope": "new"}), ("log_session", {**SESSION, "apply": True})):
        answer = call(ctx, tool, **arguments)
        if not answer["ok"]:
            assert plain(answer, tmp_path)["code"] in ("malformed-note", "invalid-target", "invalid-argument")
    after = (tmp_path / "vault" / name).read_bytes()
    assert after.startswith(data) or name.endswith((".json", "current-context.md", "inbox.md"))


def test_an_empty_mount_point_is_not_taken_for_the_vault(tmp_path: Path) -> None:
    """A vault whose notes are known is empty after a restart: writes are kept, and arrive when it is back."""
    (tmp_path / "vault").mkdir()
    with running_server(tmp_path, ECHO_CLOCK=INSTANT) as server:
        assert server.call("echo_capture", title="Engine", kind="concept", body="weaves")["ok"]
    (tmp_path / "vault").rename(tmp_path / "away")
    (tmp_path / "vault").mkdir()
    with running_server(tmp_path, ready=False, ECHO_CLOCK=INSTANT) as server:
        assert server.call("echo_load")["offline"] is True
        assert server.call("echo_get_note", path="nothing.md")["reason"] == "emptied"
        assert server.call("echo_capture", title="buy milk")["queued"]
    assert list((tmp_path / "vault").iterdir()) == []
    code, envelope = cli(tmp_path, "capture", "from the shell")
    assert (code, envelope["queued"]) == (0, True)
    assert cli(tmp_path, "load")[1]["offline"] is True
    (tmp_path / "vault").rmdir()
    (tmp_path / "away").rename(tmp_path / "vault")
    assert cli(tmp_path, "load")[0] == 0
    with running_server(tmp_path, ECHO_CLOCK=INSTANT) as server:
        inbox = tmp_path / "vault/inbox/captures/inbox.md"
        end = time.monotonic() + 30
        while "buy milk" not in inbox.read_text() and time.monotonic() < end:
            time.sleep(0.1)
        assert [inbox.read_text().count(text) for text in ("buy milk", "from the shell")] == [1, 1]


def test_run_sets_up_no_new_vault_over_one_that_is_away(tmp_path: Path) -> None:
    """`echo-mcp run` on an empty folder whose notes are known says so and stops."""
    (tmp_path / "vault").mkdir()
    with running_server(tmp_path) as server:
        server.call("echo_capture", title="Engine", kind="concept", body="weaves")
    (tmp_path / "vault").rename(tmp_path / "away")
    env = environment(tmp_path / "vault", tmp_path / "state")
    done = subprocess.run([sys.executable, "-m", "echo_mcp", "run"], env=env, capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == 64
    assert "ECHO_BASE" in done.stderr
    assert not (tmp_path / "vault").exists()


def test_the_trash_is_no_part_of_the_memory(tmp_path: Path) -> None:
    """A note whose creation was undone is found by no name, linked by nobody, and no finding of lint."""
    ctx = make_ctx(tmp_path)
    made = call(ctx, "capture", title="Oops Thing", kind="concept", body="a slip of the tongue nobody meant to keep")
    versions = call(ctx, "note_history", path=made["path"])["versions"]
    absent = next(version["id"] for version in versions if version.get("absent"))
    assert call(ctx, "restore_note", path=made["path"], version_id=absent, confirm=True)["action"] == "trashed"
    ctx.catalog.refresh()
    assert call(ctx, "resolve", mention="Oops Thing")["match"] is False
    assert call(ctx, "append_note", path="Oops Thing", line="- x")["code"] == "not-found"
    again = call(ctx, "capture", title="Oops Thing", kind="concept",
                 body="a slip of the tongue nobody meant to keep")
    assert (again["action"], "near_duplicates" in again) == ("created", False)
    assert [row for row in cli(tmp_path, "lint")[1]["violations"] if "trash" in row["path"]] == []


def test_a_broken_route_map_is_a_finding_and_stops_no_check(tmp_path: Path) -> None:
    """Lint names it and goes on with the default routes."""
    ctx = make_ctx(tmp_path)
    call(ctx, "capture", title="Engine", kind="concept", body="see [[Nowhere At All]]")
    put(tmp_path, "_agent/routing.json", "{{{")
    code, envelope = cli(tmp_path, "lint")
    assert code == 0
    assert {"route-map-broken", "broken-link"} <= {row["check"] for row in envelope["violations"]}


@pytest.mark.parametrize(("operation", "key", "content", "wanted"), [
    ("append", "title", ["x"], "text"), ("append", "title", "x", "text"), ("replace", "status", ["a", "b"], "text"),
    ("replace", "tags", "only", "list"),
])
def test_a_value_of_another_shape_is_refused(
    tmp_path: Path, operation: str, key: str, content: Any, wanted: str
) -> None:
    """One value stays one value and a list stays a list; the answer names the wanted shape."""
    ctx = make_ctx(tmp_path)
    put(tmp_path, "n.md", "---\ntitle: N\nstatus: open\ntags: [a, b]\n---\n\n# N\n")
    before = get(tmp_path, "n.md")
    answer = call(ctx, "patch_note", path="n.md", operation=operation, target_type="frontmatter", target=key,
                  content=content)
    assert (answer["code"], answer["field"], answer["wanted"]) == ("invalid-argument", "content", wanted)
    assert get(tmp_path, "n.md") == before


def test_a_section_of_echos_own_that_is_there_twice_still_takes_its_lines(tmp_path: Path) -> None:
    """Two devices made the day's log, or the Related section: nothing is refused, the last one goes on."""
    day = "# 2026-11-30\n\n## Agent Log\n\n- a\n\n## Agent Log\n\n- b\n"
    put(tmp_path, "journal/daily/2026-11-30.md", day)
    related = "# R\n\n## Related\n\n- x\n\n## Related\n\n- y\n"
    put(tmp_path, "notes/r.md", related)
    ctx = make_ctx(tmp_path)
    made = call(ctx, "capture", title="Ada", kind="person", body="Wrote programs.")
    assert (made["action"], made.get("warnings")) == ("created", None)
    assert get(tmp_path, "journal/daily/2026-11-30.md") == (
        f"{day}- 14:05 captured person [[resources/people/ada|Ada]]\n")
    for action in ("linked", "unchanged"):
        assert call(ctx, "link", a="notes/r.md", b="Ada")["action"] == action
    assert get(tmp_path, "notes/r.md") == f"{related}- [[resources/people/ada|Ada]]\n"


def test_a_write_that_something_else_than_an_outage_stops_half_way_does_not_blame_the_vault(tmp_path: Path) -> None:
    """The note is there, its line in the day's log is not: the answer says what stands in the way."""
    with running_server(tmp_path, ECHO_CLOCK=INSTANT, ECHO_TZ=ZONE) as server:
        (server.vault / "journal/daily/2026-11-30.md").mkdir(parents=True)
        answer = server.call("echo_capture", title="Ada", kind="person", body="Wrote programs.")
        assert answer["queued"]
        assert "reachable" not in json.dumps(answer)
        assert "2026-11-30.md is taken" in answer["warnings"][0]
        assert (server.vault / "resources/people/ada.md").exists()
        (server.vault / "journal/daily/2026-11-30.md").rmdir()
        assert echo_output.render("echo_capture", answer).startswith("Queued: a part of it is in the vault")
