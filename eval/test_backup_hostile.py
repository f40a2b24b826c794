"""A zip from anywhere harms nothing: it is refused before the first byte is written (spec 6.4; fault BK-10)."""
from __future__ import annotations

import hashlib
import json
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from backupdesk import WATCH
from echo_core.errors import BadBackup, Conflict
from echo_mcp.backup.archive import Archive, open_archive
from echo_mcp.backup.restoring import restore_folder

HEAD = {"made": "2026-11-30T03:30:00+01:00", "source": "folder", "echo": "0.1", "fingerprint": "", "left_out": [],
        "left_out_total": 0, "unreadable": [], "unreadable_total": 0, "note": ""}


def entry(name: str, mode: int = stat.S_IFREG | 0o644) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr, info.compress_type = 3, mode << 16, zipfile.ZIP_DEFLATED
    return info


def document(held: dict[str, bytes], **changed: object) -> str:
    """A manifest for the files as ECHO writes it."""
    rows = [{"path": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest(), "mode": "0644", "mtime_ns": 0}
            for name, data in held.items()]
    head = json.dumps({"format": 1, **HEAD, "files": len(held), "bytes": sum(map(len, held.values())), **changed})
    return (head[:-1] + ', "folders": [\n\n], "files": [\n' + ",\n".join(map(json.dumps, rows)) + "\n]}\n")


def pack(place: Path, files: dict[str, bytes], text: str = "", prefix: str = "vault/") -> None:
    """A zip that is as ECHO's are, but for what the arguments change."""
    with zipfile.ZipFile(place, "w") as packed:
        for name, data in files.items():
            packed.writestr(entry(prefix + name), data)
        packed.writestr(entry("manifest.json"), text or document(files))


def escaping(name: str) -> Callable[[Path], None]:
    return lambda place: pack(place, {name: b"evil"})


def linked(place: Path) -> None:
    with zipfile.ZipFile(place, "w") as packed:
        packed.writestr(entry("vault/a.md", stat.S_IFLNK | 0o777), "../../canary.md")
        packed.writestr(entry("manifest.json"), document({"a.md": b"../../canary.md"}))


def twice(place: Path) -> None:
    pack(place, {"a.md": b"one", "b.md": b"one"}, document({"a.md": b"one"}))
    place.write_bytes(place.read_bytes().replace(b"vault/b.md", b"vault/a.md"))


def below_a_file(place: Path) -> None:
    pack(place, {"a.md": b"one", "a.md/b.md": b"two"})


def bomb(place: Path) -> None:
    """Ten gigabytes of zeros in a few kilobytes; the real sizes stand in the heads."""
    pack(place, {"a.md": b"\0" * 10_000_000})
    data, huge = place.read_bytes(), struct.pack("<I", 0xF0000000)
    place.write_bytes(data.replace(struct.pack("<I", 10_000_000), huge))


def packed_bomb(place: Path) -> None:
    """A file that unpacks to more than the manifest says."""
    pack(place, {"a.md": b"\0" * 60_000_000}, document({"a.md": b"\0" * 10}))


def endless_manifest(place: Path) -> None:
    pack(place, {"a.md": b"one"}, text=" " * 30_000_000)


def unnamed(place: Path) -> None:
    """A file that the manifest does not name."""
    pack(place, {"a.md": b"one", "b.md": b"two"}, document({"a.md": b"one"}))


def missing(place: Path) -> None:
    pack(place, {"a.md": b"one"}, document({"a.md": b"one", "b.md": b"two"}))


def named_twice(place: Path) -> None:
    text = document({"a.md": b"one"}, files=2, bytes=6)
    row = text.splitlines()[-2]
    pack(place, {"a.md": b"one", "b.md": b"one"}, text.replace(row, f"{row},\n{row}"))


def other_bytes(place: Path) -> None:
    pack(place, {"a.md": b"two"}, document({"a.md": b"one"}))


def wrong_crc(place: Path) -> None:
    with zipfile.ZipFile(place, "w") as packed:
        info = entry("vault/a.md")
        info.compress_type = zipfile.ZIP_STORED
        packed.writestr(info, b"one-two-three")
        packed.writestr(entry("manifest.json"), document({"a.md": b"one-two-three"}))
    place.write_bytes(place.read_bytes().replace(b"one-two-three", b"one-two-thref", 1))


def foreign(place: Path) -> None:
    with zipfile.ZipFile(place, "w") as packed:
        packed.writestr("notes/a.md", "somebody's own zip")


def newer(place: Path) -> None:
    pack(place, {"a.md": b"one"}, document({"a.md": b"one"}, format=2))


def no_zip(place: Path) -> None:
    place.write_bytes(b"PK\x03\x04" + b"x" * 5000)


def cut(place: Path) -> None:
    pack(place, {"a.md": b"one" * 1000})
    place.write_bytes(place.read_bytes()[:-30])


HOSTILE: list[Callable[[Path], None]] = [
    *map(escaping, ("../../canary.md", "/canary.md", "a/../../../canary.md", "..\\..\\canary.md", "C:/canary.md",
                    ".obsidian/plugins/x/main.js", "a//b.md", "./a.md", "a\n.md", "x" * 256 + ".md")),
    linked, twice, below_a_file, bomb, packed_bomb, endless_manifest, unnamed, missing, named_twice, other_bytes,
    wrong_crc, foreign, newer, no_zip, cut,
]


@pytest.mark.parametrize("make", HOSTILE, ids=[getattr(make, "__name__", "") for make in HOSTILE])
def test_a_hostile_or_foreign_zip_is_refused_before_anything_is_written(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    """The target is not even made, and what lies around it stays as it is."""
    place, target, canary = tmp_path / "x.zip", tmp_path / "deep/target", tmp_path / "canary.md"
    canary.write_text("canary")
    make(place)
    with pytest.raises(BadBackup), open_archive(str(place)) as archive:
        restore_folder(archive, str(target), WATCH)
    assert canary.read_text() == "canary"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["canary.md", "x.zip"]


def test_what_the_hostile_ones_were_made_from_is_restored(tmp_path: Path) -> None:
    """The control: the same zip with nothing changed is taken."""
    pack(tmp_path / "x.zip", {"a.md": b"one", "sub/b.md": b"two"})
    with open_archive(str(tmp_path / "x.zip")) as archive:
        restore_folder(archive, str(tmp_path / "target"), WATCH)
    assert (tmp_path / "target/sub/b.md").read_bytes() == b"two"


def test_a_link_in_the_target_is_not_followed(tmp_path: Path) -> None:
    """A target with anything in it is refused, a link before all."""
    pack(tmp_path / "x.zip", {"sub/b.md": b"two"})
    (tmp_path / "outside").mkdir()
    (tmp_path / "target").mkdir()
    (tmp_path / "target/sub").symlink_to(tmp_path / "outside")
    with open_archive(str(tmp_path / "x.zip")) as archive, pytest.raises(Conflict):
        restore_folder(archive, str(tmp_path / "target"), WATCH)
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_backup_that_is_a_link_is_not_opened(tmp_path: Path) -> None:
    """Nor a folder, a pipe or a device."""
    pack(tmp_path / "x.zip", {"a.md": b"one"})
    (tmp_path / "link.zip").symlink_to("x.zip")
    with pytest.raises(OSError, match="symbolic links"):
        open_archive(str(tmp_path / "link.zip"))
    with pytest.raises(BadBackup), open("/dev/null", "rb") as nothing:
        Archive(nothing)
