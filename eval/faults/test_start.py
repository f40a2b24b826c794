"""Starts that must not be: state folders that cannot be used, a system that is read-only, code nobody listed."""
from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path

import httpx
import pytest
from serverproc import EVAL, environment, running_server

from faults.until import until

slow = pytest.mark.slow
pytestmark = [slow, pytest.mark.timeout(200)]
ROOT = EVAL.parent
as_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root to play other users")
NOBODY = 65534


def start(folder: Path, state: Path, before: list[str] | None = None) -> subprocess.CompletedProcess[str]:
    """A start that shall end by itself, within ten seconds."""
    (folder / "vault").mkdir(exist_ok=True)
    return subprocess.run([*(before or []), sys.executable, "-m", "echo_mcp", "serve"], capture_output=True, text=True,
                          env=environment(folder / "vault", state), check=False, timeout=20)


@as_root
@pytest.mark.parametrize("kind", ["another user's", "read-only", "below a file", "a dead link"])
def test_a_state_folder_that_cannot_be_used_stops_the_start(kind: str) -> None:
    """OB-23, SC-06: exit 64, one line that names the variable, nothing served from memory, nothing left half-made."""
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        state, before = folder / "state", ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        (folder / "vault").mkdir()
        os.chown(folder / "vault", NOBODY, NOBODY)
        if kind == "another user's":
            state.mkdir(mode=0o700)
        elif kind == "read-only":
            state.mkdir(mode=0o500)
            os.chown(state, NOBODY, NOBODY)
        elif kind == "below a file":
            (folder / "file").write_text("x")
            state, before = folder / "file/state", []
        else:
            state.symlink_to(folder / "nowhere/deep")
            before = []
        done = start(folder, state, before)
        assert (done.returncode, done.stdout) == (64, ""), (done.returncode, done.stdout, done.stderr)
        assert done.stderr.count("\n") == 1 and "ECHO_STATE_DIR" in done.stderr
        assert name not in done.stderr
        assert list((folder / "vault").iterdir()) == []


def test_a_new_state_folder_is_its_owners_alone(tmp_path: Path) -> None:
    """PV-08: folders 0700 and files 0600 whatever the umask; the search engine's own files lie in a folder 0700."""
    old = os.umask(0)
    try:
        with running_server(tmp_path) as server:
            assert server.call("echo_capture", title="Ada", kind="person", body="x")["ok"]
            assert server.call("echo_append_note", path="resources/people/ada.md", line="- y")["ok"]
            until(lambda: list((tmp_path / "state/backups").glob("*.zip")))
    finally:
        os.umask(old)
    modes = {str(path.relative_to(tmp_path)): stat.S_IMODE(path.stat().st_mode)
             for path in [tmp_path / "state", *(tmp_path / "state").rglob("*")]}
    wrong = {name: oct(mode) for name, mode in modes.items() if mode & 0o077 and "/tantivy/" not in name}
    assert len(modes) > 5 and wrong == {}


@as_root
def test_a_server_of_an_ordinary_user_on_a_read_only_system() -> None:
    """SC-01, SC-02: as uid 10001, all but vault and state read-only: it serves and writes."""
    import tempfile

    if subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("no mount namespaces here")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for part in ("vault", "state"):
            (folder / part).mkdir()
            os.chown(folder / part, 10001, 10001)
        script = (f"mount --make-rprivate / && mount --bind {name} {name} && mount -o remount,bind,ro / && "
                  f"exec setpriv --reuid=10001 --regid=10001 --clear-groups {sys.executable} -m echo_mcp serve")
        env = environment(folder / "vault", folder / "state", HOME="/nonexistent", PYTHONDONTWRITEBYTECODE="1")
        from serverproc import spawned

        server = spawned(["unshare", "-m", "sh", "-c", script], env, folder / "vault", folder / "state")
        try:
            server.wait(ready=True)
            assert server.call("echo_capture", title="Ada", kind="person", body="x")["ok"]
            assert (folder / "vault/resources/people/ada.md").stat().st_uid == 10001
        finally:
            assert server.stop() == 0


def test_a_stopped_server_answers_no_probe_and_goes_on_afterwards(tmp_path: Path) -> None:
    """SC-04: SIGSTOP is noticed by whoever asks `/health` with a deadline; SIGCONT heals."""
    with running_server(tmp_path) as server:
        pid = server.process._process.pid  # type: ignore[union-attr]
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(httpx.TimeoutException):
                httpx.get(f"{server.base}/health", timeout=1, trust_env=False)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert httpx.get(f"{server.base}/health", timeout=10, trust_env=False).json()["ok"] is True


FLOORS = {"mcp": (2, 3), "starlette": (0, 49, 1), "h11": (0, 16)}


def test_every_dependency_is_pinned_hashed_and_above_its_floor() -> None:
    """SC-08: each line of both lists is an exact version with hashes."""
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text().replace("\\\n", " ")
        rows = [row for row in text.splitlines() if row.strip() and not row.startswith("#")]
        assert len(rows) > 10
        for row in rows:
            assert re.match(r"[\w.\[\]-]+==[\w.+!-]+ ", row) and "--hash=sha256:" in row, row[:80]
        for package, floor in FLOORS.items():
            found = re.search(rf"^{package}==([\d.]+)", text, re.M)
            assert found, package
            assert tuple(map(int, found[1].split("."))) >= floor


def test_nothing_runs_at_pythons_start_that_is_not_listed() -> None:
    """SC-09: path files of site-packages only name folders, but for those listed; nobody customises the start."""
    site = Path(sysconfig.get_paths()["purelib"])
    listed = {"distutils-precedence.pth", "_virtualenv.pth"}
    for file in site.glob("*.pth"):
        runs = [line for line in file.read_text().splitlines() if line.startswith(("import ", "import\t"))]
        assert not runs or file.name in listed, (file.name, runs)
    assert not list(site.glob("sitecustomize*")) and not list(site.glob("usercustomize*"))
