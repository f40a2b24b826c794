"""Nothing of a forgotten note stays in the state folder, whatever keeps copies of it (spec 6.3)."""
from __future__ import annotations

import sqlite3
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from opsfixture import put
from serverproc import Server, environment, running_server
from test_kept_index import cli_context, recalled
from test_rest_server import until

CANARY = "xylophonecanary"
NOTE = "resources/concepts/secret-thing.md"


def forget(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`echo-mcp forget` on the vault and state of `folder`."""
    env = environment(folder / "vault", folder / "state")
    return subprocess.run([sys.executable, "-m", "echo_mcp", "forget", *words], env=env, capture_output=True, text=True,
                          check=False, timeout=60)


def holders(state: Path) -> list[str]:
    """The files of the state folder in which the canary stands, plain or compressed; backups left out."""
    found = []
    for path in sorted(state.rglob("*")):
        if path.is_file() and "backups" not in path.parts and CANARY.encode() in path.read_bytes().lower():
            found.append(path.name)
    kept = state / "history/history.sqlite3"
    if kept.exists():
        database = sqlite3.connect(kept)
        for (data,) in database.execute("SELECT data FROM blob").fetchall():
            try:
                plain = zlib.decompress(data)
            except zlib.error:
                plain = data
            if CANARY.encode() in plain.lower():
                found.append("a kept version")
        database.close()
    return found


def fill(server: Server) -> None:
    """The note in every place that keeps something: history, outbox, caches, index."""
    assert server.call("echo_capture", title="Secret thing", kind="concept", body=f"First {CANARY}.")["ok"]
    assert server.call("echo_append_note", path=NOTE, line=f"- second {CANARY}")["ok"]
    assert server.call("echo_get_note", path=NOTE)["ok"]
    until(lambda: server.call("echo_recall", query=CANARY)["primary"])


@pytest.mark.parametrize("running", [True, False])
def test_no_file_holds_anything_of_a_forgotten_note(tmp_path: Path, running: bool) -> None:
    """The person deleted the note; the command works beside a running server, and nothing brings it back."""
    put(tmp_path, "other.md", "# Other\n\nA walrus.\n")
    with running_server(tmp_path) as server:
        fill(server)
        context = cli_context(tmp_path)
        assert recalled(context, CANARY) == [NOTE]
        context.close()
        (server.vault / NOTE).unlink()
        until(lambda: not server.call("echo_recall", query=CANARY)["primary"])
        if running:
            done = forget(tmp_path, NOTE)
            assert server.events("forgotten")
            assert server.call("echo_recall", query="walrus")["primary"][0]["path"] == "other.md"
            assert server.call("echo_note_history", path=NOTE).get("versions", []) == []
    assert holders(tmp_path / "state") != [] or running
    if not running:
        done = forget(tmp_path, NOTE)
    assert (done.returncode, "forgotten" in done.stdout) == (0, True), done.stderr
    assert holders(tmp_path / "state") == []
    with running_server(tmp_path) as server:
        assert server.call("echo_recall", query=CANARY)["primary"] == []
        assert server.call("echo_recall", query="walrus")["primary"][0]["path"] == "other.md"
    assert holders(tmp_path / "state") == []


def test_a_note_that_is_still_there_stays_and_is_found(tmp_path: Path) -> None:
    """The vault belongs to the person; only the former versions go."""
    (tmp_path / "vault").mkdir()
    with running_server(tmp_path) as server:
        fill(server)
        done = forget(tmp_path, NOTE)
        assert "in_vault: true" in done.stdout
        assert CANARY in (server.vault / NOTE).read_text()
        until(lambda: server.call("echo_recall", query=CANARY)["primary"])
        assert server.call("echo_note_history", path=NOTE)["versions"] == []


def test_a_write_that_waits_is_not_thrown_away_by_the_way(tmp_path: Path) -> None:
    """It has to be asked for; until then nothing is forgotten."""
    vault = tmp_path / "vault"
    vault.mkdir()
    with running_server(tmp_path) as server:
        fill(server)
        vault.rename(tmp_path / "away")
        assert server.call("echo_append_note", path=NOTE, line=f"- third {CANARY}")["queued"]
        refused = forget(tmp_path, NOTE)
        assert refused.returncode != 0
        assert "conflict" in refused.stdout
        assert holders(tmp_path / "state") != []
        assert forget(tmp_path, NOTE, "--drop-waiting").returncode == 0
        (tmp_path / "away").rename(vault)
        until(lambda: server.client.get(f"{server.base}/health").json()["vault_reachable"])
        assert server.client.get(f"{server.base}/health").json()["outbox_depth"] == 0
        assert "third" not in (vault / NOTE).read_text()


@pytest.mark.parametrize("path", ["../secret.md", "/etc/passwd", "a\0b.md"])
def test_a_path_that_is_none_is_refused(tmp_path: Path, path: str) -> None:
    """With its code, and before anything is looked at."""
    (tmp_path / "vault").mkdir()
    if "\0" in path:
        path = path.replace("\0", "%00/../..")
    done = forget(tmp_path, path)
    assert done.returncode != 0
    assert "invalid-path" in done.stdout
    assert str(tmp_path) not in done.stdout + done.stderr


def test_forgetting_what_was_never_known_is_no_error(tmp_path: Path) -> None:
    """Nothing to do is done."""
    (tmp_path / "vault").mkdir()
    done = forget(tmp_path, "never/was.md")
    assert (done.returncode, "forgotten" in done.stdout) == (0, True)
