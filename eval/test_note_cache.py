"""The file that keeps notes for the time when the vault is away: bounded, private, and never worth a failure."""
from __future__ import annotations

import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from echo_core.errors import NotFound
from echo_core.state import note_cache
from echo_core.state.note_cache import NoteCache
from echo_core.vault.cached import CachedVault
from fakes.memory_vault import MemoryVault


def bytes_of(cache: NoteCache, path: str) -> bytes | None:
    kept = cache.get(path)
    return kept.data if kept else None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state/notes.sqlite3"


def test_what_was_kept_is_there_for_the_next_run(path: Path) -> None:
    """Byte for byte, odd bytes included; only this user can read the file."""
    cache = NoteCache(str(path))
    cache.keep("a.md", b"\xff\x00one")
    cache.keep("_agent/index/entities.json", b"{}")
    cache.save()
    again = NoteCache(str(path))
    assert bytes_of(again, "a.md") == b"\xff\x00one"
    assert bytes_of(again, "_agent/index/entities.json") == b"{}"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_no_memory_is_not_kept(path: Path) -> None:
    """Attachments, locks, huge notes, and names that no database can hold."""
    cache = NoteCache(str(path))
    for name in ("a.png", "_agent/locks/index.json", "odd\udcff.md"):
        cache.keep(name, b"x")
        assert cache.get(name) is None
    cache.keep("huge.md", b"x" * (note_cache.LARGEST + 1))
    cache.save()
    assert cache.get("huge.md") is None


def test_a_note_that_is_gone_leaves_no_trace(path: Path) -> None:
    """Not even in free pages of the file."""
    cache = NoteCache(str(path))
    cache.keep("a.md", b"canary-5f0c" * 500)
    cache.save()
    assert b"canary-5f0c" in path.read_bytes()
    cache.drop(["a.md", "odd\udcff.md"])
    assert cache.get("a.md") is None
    cache.save()
    assert b"canary-5f0c" not in path.read_bytes()


def test_the_notes_not_met_for_the_longest_time_make_room(path: Path) -> None:
    """The bound holds for the file as a whole."""
    cache = NoteCache(str(path), most_bytes=1000)
    for number in range(30):
        cache.keep(f"{number}.md", b"x" * 100)
        cache.keep("0.md", b"x" * 100)  # met again and again
        cache.save()
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT sum(size) FROM kept").fetchone()[0] <= 1000
    database.close()
    assert bytes_of(cache, "0.md")
    assert bytes_of(cache, "29.md")
    assert cache.get("1.md") is None


def test_memory_alone_is_bounded_too() -> None:
    """Without a file the oldest go as well."""
    cache = NoteCache("", most_bytes=1000)
    for number in range(100):
        cache.keep(f"{number}.md", b"x" * 100)
    assert cache.get("0.md") is None
    assert bytes_of(cache, "99.md")


@pytest.mark.parametrize("damage", [b"nonsense" * 100, b""])
def test_a_damaged_file_is_made_anew(path: Path, damage: bytes) -> None:
    """Nobody hears of it."""
    path.parent.mkdir()
    path.write_bytes(damage)
    cache = NoteCache(str(path))
    assert cache.get("a.md") is None
    cache.keep("a.md", b"one")
    cache.save()
    assert bytes_of(NoteCache(str(path)), "a.md") == b"one"


def test_a_row_that_does_not_fit_its_version_is_not_shown(path: Path) -> None:
    """Whoever changed it."""
    cache = NoteCache(str(path))
    cache.keep("a.md", b"one")
    cache.save()
    with sqlite3.connect(path) as database:
        database.execute("UPDATE kept SET data = ?", (b"two",))
    database.close()
    assert cache.get("a.md") is None


def test_a_file_that_cannot_be_written_stops_nothing(path: Path) -> None:
    """What waits is still answered, up to a bound."""
    path.mkdir(parents=True)
    cache = NoteCache(str(path), most_bytes=1000)
    for number in range(100):
        cache.keep(f"{number}.md", b"x" * 100)
    cache.drop(["98.md"])
    cache.save()
    assert bytes_of(cache, "99.md")
    assert (cache.get("0.md"), cache.get("98.md")) == (None, None)


class SlowReads(MemoryVault):
    """Somebody else's write through the same cache comes between each reading and its answer."""

    writer: CachedVault

    def read(self, path: str) -> bytes:
        data = super().read(path)
        if data == b"old":
            self.writer.write(path, b"new", b"old")
        return data


def test_a_read_that_a_write_overtakes_is_not_kept() -> None:
    """The answer was right when it was given; it must not replace the newer bytes."""
    cache = NoteCache()
    slow = SlowReads({"a.md": b"old"})
    slow.writer = CachedVault(slow, cache, bulk=True)
    assert slow.writer.read("a.md") == b"old"
    assert bytes_of(cache, "a.md") == b"new"


def test_own_writes_moves_and_deletions_are_followed() -> None:
    """Without another read."""
    cache = NoteCache()
    memory = MemoryVault()
    vault = CachedVault(memory, cache, bulk=False)
    vault.write("a.md", b"one", None)
    assert bytes_of(cache, "a.md") == b"one"
    vault.move("a.md", "b.md")
    assert (cache.get("a.md"), bytes_of(cache, "b.md")) == (None, b"one")
    vault.delete("b.md", b"one")
    assert cache.get("b.md") is None
    memory.put("c.md", b"three")
    assert list(vault.read_many(["c.md"])) == [("c.md", b"three")]
    assert cache.get("c.md") is None  # not in bulk
    assert vault.read("c.md") == b"three"
    assert bytes_of(cache, "c.md") == b"three"
    with pytest.raises(NotFound):
        vault.read("d.md")


def test_many_threads_and_two_processes_worth_of_caches_share_one_file(path: Path) -> None:
    """None of them fails, and the notes are there."""
    caches = [NoteCache(str(path)) for _ in range(4)]

    def work(number: int) -> None:
        cache = caches[number % 4]
        for round_ in range(10):
            cache.keep(f"{number}-{round_}.md", b"%d" % number)
            cache.save()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    for cache in caches:
        cache.save()
    found = NoteCache(str(path))
    assert all(bytes_of(found, f"{number}-9.md") == b"%d" % number for number in range(8))
