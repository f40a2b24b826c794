"""What was saved is what is restored, byte for byte, to a folder or through the API (spec 6.4; faults BK-04, BK-13)."""
from __future__ import annotations

import os
import shutil
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from backupdesk import WATCH, command, make_desk, tree, zips
from echo_core.clock import Clock
from echo_core.errors import EchoError, VaultUnreachable
from echo_core.vault.rest import RestVault
from echo_mcp.backup.desk import Desk
from echo_mcp.backup.restoring import restore_folder
from echo_mcp.backup.vault_source import VaultSource
from echo_mcp.backup.watch import Watch
from fakes.olrapi import Olrapi
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from restvault import KEY, serving

_ODD = ["é", unicodedata.normalize("NFD", "é"), "北京", "a b", "why?", "CON", "x.", "%2e%2e", "ß", "日記 📓", "-rf"]
letters = st.characters(codec="utf-8", categories=["L", "N", "Zs"])
names = st.sampled_from(_ODD) | st.text(letters, min_size=1, max_size=8)
files = st.tuples(st.binary(max_size=200), st.sampled_from([0o644, 0o600, 0o755, 0o444]))
Tree = dict[tuple[str, ...], tuple[bytes, int] | None]
"""Path of a file -> its bytes and mode, of an empty folder -> None."""
trees = st.dictionaries(st.lists(names, min_size=1, max_size=3).map(tuple), st.none() | files, max_size=8)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=trees)
def test_a_restored_vault_is_identical(tmp_path: Path, content: Tree) -> None:
    """Exact names in both normal forms, bytes, modes, empty files and empty folders (9.3)."""
    desk = make_desk(tmp_path)
    vault, target = tmp_path / "vault", tmp_path / "restored"
    for folder in (vault, target, tmp_path / "state/backups"):
        shutil.rmtree(folder, ignore_errors=True)
    vault.mkdir()
    for parts, what in content.items():
        place = vault.joinpath(*parts)
        try:
            (place if what is None else place.parent).mkdir(parents=True, exist_ok=True)
            if what is not None and not place.is_dir():
                place.write_bytes(what[0])
                place.chmod(what[1])
        except (FileExistsError, NotADirectoryError):
            continue
    made = desk.back_up(WATCH)
    assert not made.summary.partial
    with desk.open(made.name) as archive:
        restore_folder(archive, str(target), WATCH)
    assert tree(target) == tree(vault)


def test_a_damaged_backup_is_named_and_passed_over(tmp_path: Path) -> None:
    """`verify` finds one flipped bit (fault BK-13); `restore` takes the one before and says so."""
    desk = make_desk(tmp_path)
    for text in ("first", "second, which is longer"):
        (tmp_path / "vault/a.md").write_text(text)
        name = desk.back_up(WATCH).name
    place = Path(desk.shelf.path(name))
    data = bytearray(place.read_bytes())
    data[data.index(b"vault/a.md") + 15] ^= 1
    place.write_bytes(data)
    code, answer = command(tmp_path, "verify")
    assert code == 65
    assert [row["state"] for row in answer["backups"]] == ["verified", "damaged"]
    assert [row["state"] for row in command(tmp_path, "list")[1]["backups"]] == ["damaged", "good"]
    code, answer = command(tmp_path, "restore", "--into", str(tmp_path / "out"))
    assert code == 0
    assert (tmp_path / "out/a.md").read_text() == "first"
    assert "passed over" in answer["warnings"][0]
    code, answer = command(tmp_path, "restore", name, "--into", str(tmp_path / "out2"))
    assert (code, answer["code"]) == (65, "bad-backup")
    assert not (tmp_path / "out2").exists()


def test_a_vault_behind_the_api_is_saved_and_restored_through_it(tmp_path: Path) -> None:
    """Notes, attachments, odd names and a byte order mark arrive as they were, in a folder and in another vault."""
    key = "canary-key-93b1c0"
    vault, other = tmp_path / "vault", tmp_path / "other"
    vault.mkdir()
    other.mkdir()
    (tmp_path / "key").write_text(key + "\n")
    for name, data in {
        "a.md": b"one\r\n", "empty.md": b"", "bom.md": b"\xef\xbb\xbfx", "sub/\u00e9.md": "ü".encode(),
        "sub/picture.png": bytes(range(256)), "latin.md": b"caf\xe9",
    }.items():
        (vault / name).parent.mkdir(exist_ok=True)
        (vault / name).write_bytes(data)
    with Olrapi(str(vault), "5.1.0", key) as api, Olrapi(str(other), "3.6.1", key) as target:
        env = {"ECHO_BASE": api.url, "ECHO_KEY": key}
        code, answer = command(tmp_path, "now", **env)
        assert (code, answer["files"]) == (0, 6)
        (vault / "sub/picture.png").write_bytes(bytes(range(255, -1, -1)))
        assert command(tmp_path, "now", **env)[1]["action"] == "backed-up"
        code, answer = command(tmp_path, "restore", "--into", target.url, "--key-file", str(tmp_path / "key"), **env)
        assert (code, answer["files"]) == (0, 6)
        code, answer = command(tmp_path, "restore", "--into", api.url, **env)
        assert (code, answer["code"]) == (79, "conflict")
        code, answer = command(tmp_path, "restore", "--into", target.url, **env)
        assert (code, answer["field"]) == (2, "key-file")
    assert tree(other, modes=False) == tree(vault, modes=False)
    assert command(tmp_path, "restore", "--into", str(tmp_path / "out"))[0] == 0
    assert tree(tmp_path / "out", modes=False) == tree(vault, modes=False)
    assert key.encode() not in b"".join(path.read_bytes() for path in (tmp_path / "state/backups").iterdir())


def test_a_restore_that_was_killed_can_be_repeated(tmp_path: Path) -> None:
    """What it left behind does not count as content, and is removed."""
    desk = make_desk(tmp_path)
    (tmp_path / "vault/a.md").write_text("first")
    name = desk.back_up(WATCH).name
    left = tmp_path / "out/.echo-restore-0123abcd"
    left.mkdir(parents=True)
    (left / "half.md").write_text("hal")
    with desk.open(name) as archive:
        restore_folder(archive, str(tmp_path / "out"), WATCH)
    assert os.listdir(tmp_path / "out") == ["a.md"]
    (tmp_path / "out/.hidden").write_text("somebody's")
    (tmp_path / "out/a.md").unlink()
    with desk.open(name) as archive, pytest.raises(EchoError, match="not empty"):
        restore_folder(archive, str(tmp_path / "out"), WATCH)


def test_a_backup_file_alone_is_enough_to_restore(tmp_path: Path) -> None:
    """On a new machine: no vault, no state folder, no setting."""
    desk = make_desk(tmp_path)
    (tmp_path / "vault/a.md").write_text("first")
    shutil.copy(desk.shelf.path(desk.back_up(WATCH).name), tmp_path / "carried.zip")
    shutil.rmtree(tmp_path / "state")
    code, answer = command(tmp_path, "restore", str(tmp_path / "carried.zip"), "--into", str(tmp_path / "new"),
                           ECHO_BASE="")
    assert (code, answer["files"]) == (0, 1)
    assert (tmp_path / "new/a.md").read_text() == "first"
    assert not (tmp_path / "state").exists()


class Pauses(Watch):
    """Does not wait; `seconds` counts how long it should have, `then` is what happens meanwhile."""

    def __init__(self, then: Callable[[], None]) -> None:
        super().__init__()
        self.seconds = 0.0
        self._then = then

    def pause(self, seconds: float) -> None:
        self.seconds += seconds
        self._then()


def test_a_note_that_the_api_cannot_read_makes_the_night_partial(tmp_path: Path) -> None:
    """The rest is saved and the note is named; an API that is down or still loading makes no backup of the remains."""
    with serving(tmp_path) as rest:
        desk = make_desk(tmp_path)
        desk = Desk(desk.shelf, lambda: VaultSource(RestVault(rest.address, KEY)), Clock("UTC"), 30, desk.runs)
        for name in ("a.md", "bad.md", "c.md", "bad.png"):
            (rest.folder / name).write_text(name)
        rest.api.faults.add("error_before", method="GET", path="/vault/bad")
        made = desk.back_up(WATCH)
        assert made.summary.files == 2
        assert [row["path"] for row in made.summary.unreadable] == ["bad.md", "bad.png"]
        assert made.name.endswith("-partial.zip")
        rest.api.faults.clear()
        assert desk.back_up(WATCH).summary.files == 4
        fault = rest.api.faults.add("cold")
        pauses = Pauses(lambda: rest.api.faults.remove(fault))
        assert desk.back_up(pauses).unchanged
        assert pauses.seconds >= 30
        rest.api.faults.add("error_before")
        (rest.folder / "a.md").write_text("changed")
        with pytest.raises(VaultUnreachable):
            desk.back_up(WATCH)
    assert len(zips(tmp_path)) == 2


def test_a_note_that_never_rests_behind_the_api_is_in_as_it_was_read_last(tmp_path: Path) -> None:
    """The backup is a good one all the same."""
    with serving(tmp_path) as rest:
        desk = make_desk(tmp_path)
        note = rest.folder / "a.md"
        note.write_text("0")

        class Restless(RestVault):
            def read(self, path: str) -> bytes:
                note.write_text(note.read_text() + "0")
                return super().read(path)

            def read_many(self, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
                for path in paths:
                    yield path, self.read(path)

        desk = Desk(desk.shelf, lambda: VaultSource(Restless(rest.address, KEY)), Clock("UTC"), 30, desk.runs)
        made = desk.back_up(Pauses(lambda: None))
        assert (made.summary.files, made.summary.unreadable) == (1, [])
        assert not made.name.endswith("-partial.zip")
        with desk.open(made.name) as archive:
            restore_folder(archive, str(tmp_path / "out"), WATCH)
        assert (tmp_path / "out/a.md").read_text() == note.read_text()
