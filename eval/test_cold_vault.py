"""Obsidian's API while its vault is still loading: each note answers 404, a PUT writes over what is there (6.1)."""
from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from echo_core.vault.rest_paths import SHOWN_S
from fakes.olrapi import Olrapi
from opsfixture import snapshot
from restvault import KEY
from serverproc import Server, environment, running_server
from test_rest_server import until

SCRIPT = Path(__file__).parent.parent / "skills/echo-memory/scripts/echo.py"
ZED = "resources/people/zed.md"
PRECIOUS = "---\ntype: person\ntitle: Zed\n---\n\n# Zed\n\nprecious\n"


def cold(api: Olrapi) -> None:
    """From now on the vault shows nothing."""
    api.faults.add("cold")


def warm(api: Olrapi) -> None:
    """Obsidian has loaded its vault."""
    api.faults.clear()


def settings(api: Olrapi) -> dict[str, str]:
    return {"ECHO_BASE": api.url, "ECHO_KEY": KEY}


def cli(folder: Path, api: Olrapi, *words: str) -> subprocess.CompletedProcess[str]:
    """The command line with a state folder of its own."""
    env = environment(folder / "vault", folder / "cli-state", **settings(api))
    return subprocess.run([sys.executable, str(SCRIPT), *words, "--json"], env=env, capture_output=True, text=True,
                          check=False, timeout=60)


def notes(folder: Path) -> dict[str, bytes]:
    """The vault's files without ECHO's own control files."""
    return {path: data for path, data in snapshot(folder).items() if "_agent/locks" not in path}


def write(folder: Path, path: str, text: str) -> None:
    (folder / "vault" / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / "vault" / path).write_text(text, encoding="utf-8")


def reachable(server: Server) -> bool:
    return bool(server.client.get(f"{server.base}/health").json()["vault_reachable"])


@pytest.mark.timeout(90)
def test_a_first_start_overwrites_nothing_and_its_writes_arrive_when_obsidian_is_ready(tmp_path: Path) -> None:
    """The server knows nothing of the vault; a capture and an append of notes that are there wait."""
    write(tmp_path, ZED, PRECIOUS)
    with Olrapi(str(tmp_path / "vault"), key=KEY) as api:
        cold(api)
        before = notes(tmp_path)
        with running_server(tmp_path, ready=False, **settings(api)) as server:
            captured = server.call("echo_capture", title="Zed", kind="person", body="imposter")
            assert (captured["ok"], captured["queued"]) == (True, True)
            appended = server.call("echo_append_note", path=ZED, line="- met him")
            assert (appended["ok"], appended["queued"]) == (True, True)
            loaded = server.call("echo_load")
            assert (loaded["ok"], loaded["code"], loaded["reason"]) == (False, "vault-unreachable", "loading")
            assert "bootstrap" not in loaded["error"]
            assert notes(tmp_path) == before
            assert server.client.get(f"{server.base}/health").json()["index_ready"] is False
            warm(api)
            until(lambda: "- met him" in (tmp_path / "vault" / ZED).read_text())
            assert "precious" in (tmp_path / "vault" / ZED).read_text()
            until(lambda: server.call("echo_load")["parked"] == 1)  # the capture meets the duplicate gate
            until(lambda: server.client.get(f"{server.base}/health").json()["index_ready"])
    assert not (tmp_path / "vault/_agent/locks/loaded.md").exists()


@pytest.mark.timeout(90)
def test_run_and_bootstrap_write_no_starter_note_over_yours(tmp_path: Path) -> None:
    """The server starts and waits; the command line says what is the matter; later both go through."""
    write(tmp_path, "README.md", "MINE\n")
    with Olrapi(str(tmp_path / "vault"), key=KEY) as api:
        cold(api)
        before = notes(tmp_path)
        refused = cli(tmp_path, api, "bootstrap")
        assert refused.returncode == 69
        assert '"loading"' in refused.stdout
        with running_server(tmp_path, "run", ready=False, **settings(api)) as server:
            until(lambda: reachable(server))
            assert notes(tmp_path) == before
            warm(api)
        assert cli(tmp_path, api, "bootstrap").returncode == 0
        assert (tmp_path / "vault/README.md").read_text() == "MINE\n"
        assert (tmp_path / "vault/_agent/echo-vault.md").exists()


@pytest.mark.timeout(90)
def test_a_vault_that_goes_cold_is_answered_for_from_what_was_known(tmp_path: Path) -> None:
    """Nobody is told that the memory is empty or was never set up, by either door; nothing is created."""
    (tmp_path / "vault").mkdir()
    with Olrapi(str(tmp_path / "vault"), key=KEY) as api:
        assert cli(tmp_path, api, "bootstrap").returncode == 0
        with running_server(tmp_path, **settings(api)) as server:
            assert server.call("echo_set_scope", scope="looms")["ok"]
            assert server.call("echo_load")["sections"]["scope"] == "looms"
            cold(api)
            last_look = time.monotonic()
            before = notes(tmp_path)
            loaded = server.call("echo_load")
            assert (loaded["offline"], loaded["sections"]["scope"]) == (True, "looms")
            assert "never set up" not in loaded["hint"]
            assert server.call("echo_get_scope")["scope"] == "looms"
            api.log.clear()
            assert cli(tmp_path, api, "load").returncode == 0
            assert cli(tmp_path, api, "get", "Nobody").returncode != 0
            assert api.log.count("PUT", "loaded.md") == 0  # who only looks asks a known vault by writing nothing
            until(lambda: "looms" in server.call("echo_get_scope")["scope"] and time.monotonic() > last_look + SHOWN_S)
            assert server.call("echo_capture", title="Ada", kind="person", body="x")["queued"]
            assert notes(tmp_path) == before
            warm(api)
            until(lambda: (tmp_path / "vault/resources/people/ada.md").exists())
            until(lambda: not server.call("echo_load").get("offline"))


@pytest.mark.timeout(180)
def test_an_obsidian_that_was_started_anew_a_moment_after_it_showed_its_notes_is_not_trusted(tmp_path: Path) -> None:
    """What came into the vault meanwhile is not written over by what waited, nor is it said not to be there."""
    (tmp_path / "vault").mkdir()
    with Olrapi(str(tmp_path / "vault"), key=KEY) as api:
        assert cli(tmp_path, api, "bootstrap").returncode == 0
        with running_server(tmp_path, **settings(api)) as server:
            assert server.call("echo_load")["ok"]
            api.refuse()
            api.drop_connections()
            assert server.call("echo_append_note", path=ZED, line="- met him")["queued"]
            assert server.call("echo_capture", title="Zed", kind="person", body="imposter")["queued"]
            write(tmp_path, ZED, PRECIOUS)
            cold(api)
            api.log.clear()
            api.accept()
            until(lambda: api.log.count("GET", "/vault/resources/people/zed.md") > 1, 60)  # it was tried
            until(lambda: reachable(server))
            warm(api)
            until(lambda: "- met him" in (tmp_path / "vault" / ZED).read_text())
            assert "precious" in (tmp_path / "vault" / ZED).read_text()
            until(lambda: server.client.get(f"{server.base}/health").json()["outbox_depth"] == 0)
        assert "precious" in (tmp_path / "vault" / ZED).read_text()


def test_a_vault_that_is_really_empty_takes_the_first_note(tmp_path: Path) -> None:
    """It shows what is written to it; the file that asked is gone afterwards."""
    (tmp_path / "vault").mkdir()
    with Olrapi(str(tmp_path / "vault"), key=KEY) as api, running_server(tmp_path, **settings(api)) as server:
        assert server.call("echo_capture", title="Ada", kind="person", body="x")["action"] == "created"
        assert not (tmp_path / "vault/_agent/locks/loaded.md").exists()


def test_where_nothing_may_be_written_an_empty_vault_is_not_asked_by_writing(tmp_path: Path) -> None:
    """A read-only server says that the vault shows nothing."""
    (tmp_path / "vault").mkdir()
    with Olrapi(str(tmp_path / "vault"), key=KEY) as api:
        with running_server(tmp_path, ready=False, ECHO_MCP_READ_ONLY="on", **settings(api)) as server:
            assert server.call("echo_load")["reason"] == "loading"
        assert snapshot(tmp_path) == {}
        assert api.log.count("PUT") == 0
