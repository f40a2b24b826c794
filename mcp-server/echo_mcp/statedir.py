"""The state folder: made for its owner only, proved writable, held by one server; its token."""
from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from echo_core.state.kernel_lock import KernelLock

from echo_mcp.settings import SettingsFault


class InUse(Exception):
    """Another server has the state folder; the message says what to do."""


@contextmanager
def held(folder: str) -> Iterator[None]:
    """Have the state folder, for as long as this process lives or the block runs. Raises InUse.

    Two servers would replay one outbox, make one backup twice and look twice at each write (spec 6.2).
    """
    lock = KernelLock(os.path.join(folder, "server", "server.lock"))
    if not lock.take():
        raise InUse("another ECHO server is using ECHO_STATE_DIR. Connect to that one over HTTP, stop it, or give this "
                    "one a state folder of its own.")
    try:
        yield
    finally:
        lock.release()


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
