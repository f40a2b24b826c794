"""The environment is checked once, whole, and no message repeats a value (spec 4.2; fault SC-07)."""
from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from echo_mcp.settings import EXAMPLE_TOKENS, SETTINGS, Settings, SettingsFault, load
from echo_place import Place
from serverproc import TOKEN, environment

CANARY = "canary4711"


def good(tmp_path: Path, **more: str) -> dict[str, str]:
    own = {"ECHO_BASE": str(tmp_path / "vault"), "ECHO_STATE_DIR": str(tmp_path / "state"), "ECHO_MCP_TOKEN": TOKEN}
    return {**own, **more}


def faults(environ: dict[str, str], http: bool = True, embedded: bool = False) -> list[str]:
    """The lines of the refusal; none when the environment is fine."""
    try:
        load(environ, http=http, embedded=embedded)
    except SettingsFault as fault:
        return fault.lines
    return []


def test_the_smallest_environment_serves_with_the_documented_defaults(tmp_path: Path) -> None:
    """Vault and token are all that has to be named."""
    found = load(good(tmp_path))
    assert found == Settings(
        place=Place(str(tmp_path / "vault")), state_dir=str(tmp_path / "state"), token=TOKEN, clock=found.clock
    )


def test_every_default_of_the_table_is_valid(tmp_path: Path) -> None:
    """Writing the defaults down changes nothing."""
    written = {row.name: row.default for row in SETTINGS if row.default}
    assert load({**written, **good(tmp_path)}).port == 8765


def test_a_token_is_never_shown() -> None:
    """Not even by repr, which ends up in tracebacks."""
    assert TOKEN not in repr(load({"ECHO_BASE": "/v", "ECHO_STATE_DIR": "/s", "ECHO_MCP_TOKEN": TOKEN}))


@pytest.mark.parametrize(("name", "value"), [
    ("ECHO_BASE", ""), ("ECHO_BASE", "   "), ("ECHO_BASE", f"/{CANARY}\n"), ("ECHO_BASE", f"http://{CANARY}:99999"),
    ("ECHO_BASE", f"https://u:{CANARY}@host/path"), ("ECHO_BASE", f"ftp://{CANARY}"),
    ("ECHO_BASE", f"file://{CANARY}/vault"), ("ECHO_KEY", CANARY), ("ECHO_OWNER", f" {CANARY}"),
    ("ECHO_OWNER", f"{CANARY}\x1b[31m"), ("ECHO_MCP_TOKEN", ""), ("ECHO_MCP_TOKEN", CANARY),
    ("ECHO_MCP_TOKEN", f"{CANARY}{'x' * 40}\n"), ("ECHO_MCP_TOKEN", f"{CANARY} {'x' * 40}"),
    ("ECHO_MCP_TOKEN", f"{CANARY}{'ä' * 40}"), ("ECHO_MCP_TOOLS", f"memory,{CANARY}"), ("ECHO_MCP_TOOLS", ","),
    ("ECHO_MCP_HOST", f"{CANARY}/x"), ("ECHO_MCP_HOST", "999.1.1.1"), ("ECHO_MCP_PORT", CANARY),
    ("ECHO_MCP_PORT", "65536"), ("ECHO_MCP_PORT", "-1"), ("ECHO_MCP_PORT", "٨٠"), ("ECHO_MCP_PORT", "80 "),
    ("ECHO_MCP_INDEX_TTL", "0"), ("ECHO_WORKERS", "0"), ("ECHO_WORKERS", "9" * 40), ("ECHO_TIMEOUT", "1.5"),
    ("ECHO_TIMEOUT", "601"), ("ECHO_LOCK_TTL", "never"), ("ECHO_TZ", f"Mars/{CANARY}"), ("ECHO_TZ", "../../etc/passwd"),
    ("ECHO_CLOCK", CANARY), ("ECHO_MCP_READ_ONLY", CANARY), ("ECHO_ALLOW_SECRETS", "perhaps"),
    ("ECHO_LOG_LEVEL", CANARY), ("ECHO_MCP_ALLOWED_HOSTS", f"https://{CANARY}"),
    ("ECHO_BACKUP_AT", f"24:00{CANARY}"), ("ECHO_BACKUP_AT", "3"), ("ECHO_BACKUP_KEEP", "0"),
    ("ECHO_NOTIFY_URL", f"ftp://{CANARY}"), ("ECHO_NOTIFY_URL", f"https://{CANARY}:99999/x"),
    ("ECHO_MCP_ALLOWED_ORIGINS", CANARY), ("ECHO_MCP_ALLOWED_ORIGINS", f"https://{CANARY}/path"),
])
def test_a_wrong_value_is_one_line_naming_the_variable_and_never_the_value(
    tmp_path: Path, name: str, value: str
) -> None:
    """The line says what to do; nothing of a value, which may be a secret, gets into a log."""
    lines = faults(good(tmp_path, **{name: value}))
    assert len(lines) == 1, lines
    assert lines[0].startswith(f"{name} ")
    assert CANARY not in lines[0]
    assert "\n" not in lines[0]
    assert lines[0].endswith(".")


def test_all_faults_are_told_at_once() -> None:
    """Three wrong variables need one restart and not three."""
    lines = faults({"ECHO_MCP_PORT": "x", "ECHO_TIMEOUT": "x"})
    assert [line.split()[0] for line in lines] == ["ECHO_BASE", "ECHO_MCP_TOKEN", "ECHO_MCP_PORT", "ECHO_TIMEOUT"]


@pytest.mark.parametrize("token", sorted(EXAMPLE_TOKENS))
def test_a_token_from_the_documentation_is_refused(tmp_path: Path, token: str) -> None:
    """Whoever copies one would have an open door."""
    assert len(token) >= 32
    assert "example" in faults(good(tmp_path, ECHO_MCP_TOKEN=token))[0]


def test_secrets_come_from_mounted_files(tmp_path: Path) -> None:
    """`NAME_FILE` is read without its last line break; both at once, or a bad file, is a fault."""
    file = tmp_path / "secret"
    file.write_text(TOKEN + "\n")
    environ = good(tmp_path, ECHO_MCP_TOKEN_FILE=str(file))
    assert "both set" in faults(environ)[0]
    del environ["ECHO_MCP_TOKEN"]
    assert load(environ).token == TOKEN
    for content in ("", "two\nlines\n", " " + TOKEN):
        file.write_text(content)
        assert faults(environ)[0].startswith("ECHO_MCP_TOKEN_FILE ")
    file.unlink()
    assert "cannot be read" in faults(environ)[0]


def test_stdio_and_run_need_less(tmp_path: Path) -> None:
    """stdio has no door to guard; `run` makes vault and token in its state folder."""
    no_token = good(tmp_path)
    del no_token["ECHO_MCP_TOKEN"]
    assert faults(no_token)
    assert not faults(no_token, http=False)
    bare = load({"ECHO_STATE_DIR": str(tmp_path)}, embedded=True)
    assert (bare.place.folder, bare.token) == (str(tmp_path / "vault"), "")


def test_a_vault_behind_an_address_needs_its_key(tmp_path: Path) -> None:
    """From the variable or from a mounted file, and never shown."""
    address = good(tmp_path, ECHO_BASE="https://127.0.0.1:27124/")
    assert faults(address)[0].startswith("ECHO_KEY ")
    place = load({**address, "ECHO_KEY": CANARY, "ECHO_TIMEOUT": "7"}).place
    assert (place.name, place.folder, place.key, place.timeout_s) == ("https://127.0.0.1:27124", "", CANARY, 7)
    assert CANARY not in repr(place)
    (tmp_path / "key").write_text(CANARY + "\n")
    assert load({**address, "ECHO_KEY_FILE": str(tmp_path / "key")}).place == dataclasses.replace(place, timeout_s=10)
    for key in (f"{CANARY} x", f"{CANARY}ä"):
        lines = faults({**address, "ECHO_KEY": key})
        assert lines[0].startswith("ECHO_KEY ")
        assert CANARY not in lines[0]
    lines = faults({**address, "ECHO_KEY": CANARY, "ECHO_CA_FILE": str(tmp_path / "key")})
    assert lines[0].startswith("ECHO_CA_FILE ")


def test_the_state_folder_may_not_lie_in_the_vault(tmp_path: Path) -> None:
    """Versions of notes would become notes."""
    for state in ("vault", "vault/data"):
        assert faults(good(tmp_path, ECHO_STATE_DIR=str(tmp_path / state)))[0].startswith("ECHO_STATE_DIR ")
    assert not faults(good(tmp_path, ECHO_BASE=str(tmp_path / "data/vault"), ECHO_STATE_DIR=str(tmp_path / "data")))


@pytest.mark.parametrize(("value", "core", "toolsets"), [
    ("core", True, ("memory",)), ("full", False, ("memory",)), ("memory", False, ("memory",)),
    ("Memory, memory", False, ("memory",)), ("", False, ("memory",)),
])
def test_profiles_and_toolsets(tmp_path: Path, value: str, core: bool, toolsets: tuple[str, ...]) -> None:
    """`core`, `full`, or a comma list."""
    found = load(good(tmp_path, ECHO_MCP_TOOLS=value))
    assert (found.core_only, found.toolsets) == (core, toolsets)


def test_every_row_of_the_table_is_read(tmp_path: Path) -> None:
    """A setting that does nothing is not in the table, and no variable is read that is not in it."""
    source = (Path(sys.modules["echo_mcp.settings"].__file__ or "")).read_text()
    reading = source[source.index("def load"):]
    named = set(re.findall(r'"(ECHO_[A-Z_]+)"', reading))
    assert named == {row.name for row in SETTINGS}
    assert all(row.help.strip().endswith(".") for row in SETTINGS)


def test_a_server_with_faults_does_not_start(tmp_path: Path) -> None:
    """Exit 64, one line for each fault on stderr, nothing on stdout, no folder made."""
    env = environment(tmp_path / "vault", tmp_path / "state", ECHO_BASE="", ECHO_MCP_TOKEN="short", ECHO_WORKERS="0")
    done = subprocess.run([sys.executable, "-m", "echo_mcp", "serve"], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (64, "")
    names = [line.removeprefix("echo-mcp: ").split()[0] for line in done.stderr.splitlines()]
    assert names == ["ECHO_BASE", "ECHO_MCP_TOKEN", "ECHO_WORKERS"]
    assert not (tmp_path / "state").exists()


@pytest.mark.skipif(os.name == "nt", reason="a file in the way stands for a folder that cannot be written")
def test_a_state_folder_that_cannot_be_written_stops_the_start(tmp_path: Path) -> None:
    """One line, no traceback, nothing of the host's paths beyond the variable's name."""
    (tmp_path / "state").write_text("a file is in the way")
    env = environment(tmp_path / "vault", tmp_path / "state")
    done = subprocess.run([sys.executable, "-m", "echo_mcp", "serve"], env=env, capture_output=True, text=True)
    assert done.returncode == 64
    assert done.stderr.startswith("echo-mcp: ECHO_STATE_DIR cannot be written")
    assert done.stderr.count("\n") == 1
