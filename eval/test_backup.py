"""Backups are whole, verified and rotated, and restore to what was saved (spec 6.4; faults BK-01 to BK-12, CR-12)."""
from __future__ import annotations

import json
import os
import stat
import threading
import zipfile
from pathlib import Path

import pytest
from backupdesk import WATCH, command, fill_disk, make_desk, zips
from echo_core.clock import Clock
from echo_core.errors import BadBackup, StorageFailed, VaultUnreachable
from echo_mcp.backup import making
from echo_mcp.backup.archive import open_archive
from echo_mcp.backup.shelf import Shelf
from echo_mcp.backup.watch import Overrun, Stopped, Watch


def test_a_backup_holds_the_vault_and_nothing_else(tmp_path: Path) -> None:
    """No hidden folder, no plugin's key, nothing that a link leads to; the manifest says what was left out."""
    vault = tmp_path / "vault"
    (vault / ".obsidian/plugins").mkdir(parents=True)
    (vault / ".obsidian/plugins/data.json").write_text("canary-key")
    (tmp_path / "outside.md").write_text("canary-outside")
    (vault / "out.md").symlink_to(tmp_path / "outside.md")
    (vault / "folder").symlink_to(tmp_path)
    (vault / "a.md").write_text("mine")
    (vault / "in.md").symlink_to("a.md")
    os.mkfifo(vault / "pipe.md")
    code, answer = command(tmp_path, "now")
    assert (code, answer["action"], answer["files"]) == (0, "backed-up", 2)
    place = tmp_path / "state/backups" / answer["name"]
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    with zipfile.ZipFile(place) as packed:
        assert packed.testzip() is None
        assert {name for name in packed.namelist() if name != "manifest.json"} == {"vault/a.md", "vault/in.md"}
        manifest = json.loads(packed.read("manifest.json"))
        assert not any(b"canary" in packed.read(name) for name in packed.namelist())
    assert [row["path"] for row in manifest["left_out"]] == [".obsidian", "folder", "out.md", "pipe.md"]
    assert ".obsidian" in manifest["note"]
    assert [row["path"] for row in manifest["files"]] == ["a.md", "in.md"]


def test_a_final_name_is_given_only_to_what_reads_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the disk changed between writing and reading back never becomes a backup; the older one stays."""
    desk = make_desk(tmp_path)
    (tmp_path / "vault/a.md").write_text("one")
    first = desk.back_up(WATCH).name
    (tmp_path / "vault/a.md").write_text("a second text " * 50)

    def rot(fd: int) -> None:
        assert zips(tmp_path) == [first], "a final name before the check"
        os.pwrite(fd, b"\xff", 45)

    monkeypatch.setattr(making, "_forget_cached", rot)
    with pytest.raises(BadBackup):
        desk.back_up(WATCH)
    assert zips(tmp_path) == [first]
    assert sorted(os.listdir(tmp_path / "state/backups")) == [".lock", first]
    last = desk.runs.last("backup")
    assert last is not None and (last.result, last.detail["code"]) == ("failed", "bad-backup")


def test_thirty_good_nights_are_kept_whatever_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """35 nights, of which five fail or miss a file: none of those pushes a good one out (fault BK-03)."""
    note = tmp_path / "vault/a.md"
    for night in range(1, 36):
        desk = make_desk(tmp_path, Clock("UTC", f"2026-{9 + night // 30:02}-{1 + night % 30:02}T03:30:00Z"))
        note.write_text(f"night {night}")
        odd = tmp_path / "vault/a\\b.md"
        if 10 <= night <= 12:
            odd.write_text("a name that no backup may hold")
            assert desk.back_up(WATCH).summary.partial
            odd.unlink()
        elif 13 <= night <= 14:
            with monkeypatch.context() as patch:
                fill_disk(patch)
                with pytest.raises(StorageFailed):
                    desk.back_up(WATCH)
        else:
            desk.back_up(WATCH)
        assert len([name for name in zips(tmp_path) if "partial" not in name]) == min(30, night - (
            0 if night < 10 else min(night - 9, 5)))
    kept = desk.shelf.kept()
    assert len([one for one in kept if not one.partial]) == 30
    with desk.open(kept[0].name) as archive:
        assert b"".join(archive.blocks(next(archive.files()))) == b"night 1"
    note.write_text("one more")
    assert desk.back_up(WATCH).removed == [kept[0].name]


def test_the_last_good_backup_is_never_removed(tmp_path: Path) -> None:
    """Not by partial ones and not when the newest turns out damaged."""
    desk = make_desk(tmp_path, keep=1)
    note, odd = tmp_path / "vault/a.md", tmp_path / "vault/a\\b.md"
    note.write_text("good")
    good = desk.back_up(WATCH).name
    odd.write_text("x")
    for number in range(3):
        note.write_text(f"partial {number}")
        desk.back_up(WATCH)
    assert [one.name for one in desk.shelf.kept() if not one.partial] == [good]
    assert len(desk.shelf.kept()) == 2
    odd.unlink()
    newer = desk.back_up(WATCH).name
    assert zips(tmp_path) == [newer]
    place = Path(desk.shelf.path(newer))
    place.write_bytes(place.read_bytes()[:-40])
    with pytest.raises(BadBackup):
        desk.verify(newer, WATCH)
    again = desk.back_up(WATCH)
    assert not again.unchanged
    assert desk.newest_good() is not None and desk.newest_good().name == again.name


def test_an_unchanged_vault_is_not_zipped_again(tmp_path: Path) -> None:
    """Until a byte, a mode or a name changes, even when size and time of the file stay as they were."""
    desk = make_desk(tmp_path)
    note = tmp_path / "vault/a.md"
    note.write_text("one")
    first = desk.back_up(WATCH)
    assert desk.back_up(WATCH).unchanged
    facts = note.stat()
    note.write_text("two")
    os.utime(note, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert desk.back_up(WATCH).name != first.name
    (tmp_path / "vault/empty").mkdir()
    assert not desk.back_up(WATCH).unchanged
    assert desk.back_up(WATCH).unchanged


def test_names_follow_the_sequence_when_the_clock_jumps(tmp_path: Path) -> None:
    """A clock set back a day, and two runs in one minute: nothing is overwritten, the newest is the newest."""
    for number, instant in enumerate(["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-24T02:30:00Z",
                                      "2036-10-24T02:30:00Z", "2026-10-24T02:31:00Z"]):
        (tmp_path / "vault").mkdir(exist_ok=True)
        (tmp_path / "vault/a.md").write_text(f"{number}")
        made = make_desk(tmp_path, Clock("Europe/Berlin", instant)).back_up(WATCH)
    kept = make_desk(tmp_path).shelf.kept()
    assert len(kept) == 5
    assert kept[-1].name == made.name == "echo-2026-10-24-0431-0005.zip"


@pytest.mark.parametrize("writer", ["in place", "renamed"])
def test_a_file_that_changes_while_it_is_read_is_never_torn(tmp_path: Path, writer: str) -> None:
    """Someone writes it again and again: the backup has one of the versions, whole."""
    desk = make_desk(tmp_path)
    note, done = tmp_path / "vault/a.md", threading.Event()
    note.write_bytes(b"A" * 3_000_000)

    def rewrite() -> None:
        for letter in "BCDEFGHIJKLMNOP":
            target = note if writer == "in place" else note.with_name("b.md")
            with open(target, "wb") as out:
                for _ in range(3):
                    out.write(letter.encode() * 1_000_000)
                    out.flush()
                    done.wait(0.01)
            if target != note:
                os.replace(target, note)

    thread = threading.Thread(target=rewrite)
    thread.start()
    try:
        made = desk.back_up(WATCH)
    finally:
        thread.join()
    with desk.open(made.name) as archive:
        texts = {entry.path: b"".join(archive.blocks(entry)) for entry in archive.files()}
    if "a.md" in texts:
        assert texts["a.md"] == texts["a.md"][:1] * 3_000_000
    else:
        assert [row["path"] for row in made.summary.unreadable] == ["a.md"]


def test_a_file_that_cannot_be_read_makes_the_night_partial(tmp_path: Path) -> None:
    """The rest is saved, the file is named in the manifest, and the night does not count as good (fault BK-09)."""
    desk = make_desk(tmp_path)
    (tmp_path / "vault/a.md").write_text("good")
    (tmp_path / "vault/lost\\name.md").write_text("cannot be kept")
    code, answer = command(tmp_path, "now")
    assert (code, answer["action"]) == (65, "partial")
    assert answer["name"].endswith("-partial.zip")
    assert [row["path"] for row in answer["unreadable"]] == ["lost\\name.md"]
    assert desk.newest_good() is None
    code, answer = command(tmp_path, "restore", answer["name"], "--into", str(tmp_path / "out"))
    assert (code, answer["files"]) == (0, 1)
    assert "partial" in answer["warnings"][0]


def test_a_vault_that_is_gone_is_not_backed_up_as_an_empty_one(tmp_path: Path) -> None:
    """An unmounted folder would otherwise push the good backups out, night by night."""
    desk = make_desk(tmp_path)
    (tmp_path / "vault/a.md").write_text("good")
    desk.back_up(WATCH)
    (tmp_path / "vault/a.md").unlink()
    with pytest.raises(VaultUnreachable):
        desk.back_up(WATCH)
    (tmp_path / "vault").rmdir()
    code, answer = command(tmp_path, "now")
    assert (code, answer["code"]) == (69, "vault-unreachable")
    assert len(zips(tmp_path)) == 1


def test_a_full_disk_leaves_the_older_backups(tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk that fills up in the middle (fault BK-06)."""
    resource = pytest.importorskip("resource")
    desk = make_desk(tmp_path)
    (tmp_path / "vault/a.md").write_text("first")
    desk.back_up(WATCH)
    (tmp_path / "vault/b.md").write_bytes(os.urandom(600_000))
    code, answer = command(tmp_path, "now", before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (400_000,) * 2))
    assert (code, answer["code"], answer["reason"]) == (74, "storage-failed", "disk-full")
    assert len(zips(tmp_path)) == 1
    assert not list((tmp_path / "state/backups").glob("*.part"))
    desk.verify(zips(tmp_path)[0], WATCH)


def test_free_space_is_asked_for_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backup that cannot fit is refused with what is missing, before anything is written."""
    desk = make_desk(tmp_path)
    (tmp_path / "vault/a.md").write_text("first")
    fill_disk(monkeypatch)
    with pytest.raises(StorageFailed, match=r"needs .* of free space"):
        desk.back_up(WATCH)
    assert os.listdir(tmp_path / "state/backups") == [".lock"]


def test_two_runs_never_write_at_once(tmp_path: Path) -> None:
    """The second one says so and leaves; the lock of a process that is gone holds nobody up."""
    desk = make_desk(tmp_path)
    (tmp_path / "vault/a.md").write_text("first")
    with desk.shelf.locked():
        assert command(tmp_path, "now")[0] == 75
    assert command(tmp_path, "now")[0] == 0


def test_a_run_that_is_told_to_stop_stops_and_leaves_nothing(tmp_path: Path) -> None:
    """Between any two files."""
    desk, stop = make_desk(tmp_path), threading.Event()
    (tmp_path / "vault/a.md").write_text("first")
    stop.set()
    with pytest.raises(Stopped):
        desk.back_up(Watch(stop=stop))
    assert zips(tmp_path) == []
    assert os.listdir(tmp_path / "state/backups") == [".lock"]


def test_a_run_that_takes_too_long_is_ended_and_reported(tmp_path: Path) -> None:
    """It leaves nothing, and its row says why."""
    desk, watch = make_desk(tmp_path), Watch(limit_s=1e-9)
    (tmp_path / "vault/a.md").write_text("first")
    with pytest.raises(Overrun):
        desk.back_up(watch)
    assert zips(tmp_path) == []
    last = desk.runs.last("backup")
    assert last is not None and (last.result, last.detail["reason"]) == ("failed", "overrun")


def test_the_shelf_knows_only_its_own_names(tmp_path: Path) -> None:
    """What somebody puts beside the backups is neither counted nor removed."""
    shelf = Shelf(str(tmp_path))
    shelf.make()
    for name in ("echo-old.zip", "mine.zip", "echo-2026-01-01-0330-0001.zip.bak"):
        (tmp_path / "backups" / name).write_text("x")
    shelf.rotate(1)
    shelf.clean()
    assert shelf.kept() == []
    assert len(os.listdir(tmp_path / "backups")) == 3
    with pytest.raises(BadBackup):
        open_archive(str(tmp_path / "backups/mine.zip"))
