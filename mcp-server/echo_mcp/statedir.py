"""The state folder: made for its owner only, proved writable, and the place of a token made on the spot."""
from __future__ import annotations

import os
import secrets
from pathlib import Path

from echo_mcp.settings import SettingsFault


def kept_token(state_dir: str) -> str:
    """The token in `token` of the state folder, made on first use; only its owner can read the file."""
    path = Path(state_dir) / "token"
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text(encoding="ascii").strip()
    with os.fdopen(handle, "w", encoding="ascii") as file:
        token = secrets.token_urlsafe(32)
        file.write(token + "\n")
    return token


def prepare_state(folder: str) -> None:
    """Make the state folder, for its owner only. Raises SettingsFault when it cannot be written."""
    probe = Path(folder) / f".write-test-{os.getpid()}"
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        probe.write_bytes(b"echo")
        probe.unlink()
    except OSError as failure:
        why = f"cannot be written ({os.strerror(failure.errno or 0)}); give the server's user a writable folder"
        raise SettingsFault([f"ECHO_STATE_DIR {why}."]) from failure
