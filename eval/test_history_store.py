"""What history keeps, for how long, and what it never gives away (spec 6.3)."""
import hashlib
import os
import random
import sqlite3
import stat
import threading
from itertools import pairwise

import pytest
from echo_core import history as history_module
from echo_core.clock import Clock
from echo_core.errors import NotFound, NoUndo
from echo_core.history import HistoryStore
from fakes.forked import dying_at, in_child

# Test runners have threads of their own; the forked children use nothing of them.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

NOW = "2026-11-30T14:05:09Z"


@pytest.fixture
def state(tmp_path):
    """An empty state folder."""
    return tmp_path / "state"


@pytest.fixture
def history(state):
    """A history at a fixed time."""
    store = HistoryStore(str(state), Clock("UTC", NOW))
    yield store
    store.close()


def write(history, path, *states):
    """Record the writes that lead through these states."""
    for before, after in pairwise(states):
        history.record(path, before, "patch", "op", after=after)


def on(day):
    """A clock at noon of a day."""
    return Clock("UTC", f"{day}T12:00:00Z")


def disk(state):
    """All bytes of the state folder."""
    return b"".join(path.read_bytes() for path in state.rglob("*") if path.is_file())


def test_each_version_is_the_state_before_a_write_newest_first(history):
    """Bytes come back exactly; the creation has an absent version; the first telling line sums it up."""
    write(history, "a.md", None, b"---\ntype: x\n---\n\n# Title \n\xff", b"", b"end")
    versions = history.versions("a.md")
    assert [version.absent for version in versions] == [False, False, True]
    assert [history.content("a.md", version.id) for version in versions] == [
        b"", b"---\ntype: x\n---\n\n# Title \n\xff", None]
    assert [version.bytes for version in versions] == [0, 27, 0]
    assert [version.summary_line for version in versions] == ["", "Title", ""]
    assert versions[0][1:] == ("2026-11-30T14:05:09+00:00", 0, "", "patch", "op", False, False)
    assert [history.outcome("a.md", version.id) for version in versions] == [
        b"end", b"", b"---\ntype: x\n---\n\n# Title \n\xff"]


def test_looking_makes_nothing(history, state):
    """Questions to a history that was never begun leave the disk alone."""
    assert history.versions("a.md") == []
    assert history.set_back("a.md", b"") is None
    assert history.forget("a.md") == []
    assert not history.knows("a.md")
    with pytest.raises(NotFound):
        history.content("a.md", "v1")
    assert not state.exists()


def test_opening_it_again_to_look_writes_nothing(history, state):
    """The file stays as it is: every write of one would hold up a note that is being synced."""
    write(history, "a.md", None, b"one")
    history.close()
    file = state / "history/history.sqlite3"
    os.utime(file, ns=(1, 1))
    assert len(history.versions("a.md")) == 1
    history.close()
    assert file.stat().st_mtime_ns == 1


def test_only_the_owner_can_read_the_history(history, state):
    """Folders 0700, files 0600, SQLite's companions too."""
    write(history, "a.md", None, b"secret")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in state.rglob("*")}
    assert modes.pop("history") == 0o700
    assert modes
    assert set(modes.values()) == {0o600}


def test_the_ring_keeps_the_newest_and_what_others_share(history, state):
    """25 versions of A in a day: 20 stay; B's equal content stays restorable; the rest leaves the disk."""
    shared = b"shared" * 10
    write(history, "b.md", shared, b"b")
    write(history, "a.md", None, shared, *[os.urandom(400) for _ in range(24)])
    versions = history.versions("a.md")
    assert len(versions) == 20
    assert history.content("b.md", history.versions("b.md")[0].id) == shared
    blobs = sqlite3.connect(state / "history/history.sqlite3")
    count, = blobs.execute("SELECT count(*) FROM blob").fetchone()
    used, = blobs.execute("SELECT count(*) FROM (SELECT sha FROM version WHERE sha IS NOT NULL UNION "
                          "SELECT after_sha FROM version WHERE after_sha IS NOT NULL)").fetchone()
    total, real = blobs.execute("SELECT bytes, (SELECT sum(stored) FROM blob) FROM total").fetchone()
    blobs.close()
    assert (count, total) == (used, real)


def test_the_last_state_that_somebody_else_wrote_is_kept(history):
    """Forty writes of ours do not push out the person's own text."""
    write(history, "a.md", b"by hand", *[b"%d" % number for number in range(40)])
    versions = history.versions("a.md")
    assert [history.content("a.md", version.id) for version in versions if version.by_others] == [b"by hand"]
    assert len(versions) == 21


def test_one_version_a_day_is_kept_for_thirty_days(state):
    """The newest of each of the last 30 days that have any."""
    for day in range(1, 32):
        store = HistoryStore(str(state), on(f"2026-10-{day:02}"))
        write(store, "a.md", *[b"%d" % (day * 10 + number) for number in range(10)], b"%d" % (day * 10 + 10))
        store.close()
    write(store, "a.md", *[b"%d" % (320 + number) for number in range(41)])
    kept = store.versions("a.md")
    days = [version.ts[:10] for version in kept[20:]]
    assert days == [f"2026-10-{day:02}" for day in (*range(30, 1, -1), 1)]
    assert store.content("a.md", kept[20].id) == b"309"
    assert kept[-1].by_others
    store.close()


def test_a_clock_that_jumps_ten_years_deletes_nothing(state):
    """Retention counts versions and days that exist, not the time that passed."""
    store = HistoryStore(str(state), on("2026-10-01"))
    write(store, "a.md", *[b"%d" % number for number in range(10)])
    store.close()
    future = HistoryStore(str(state), on("2036-10-01"))
    write(future, "a.md", b"9", b"10")
    assert len(future.versions("a.md")) == 10
    future.close()


def test_the_size_cap_drops_the_oldest_and_spares_each_path_its_last(state):
    """The contents stay under the cap; a path that was not touched for long keeps a version."""
    store = HistoryStore(str(state), Clock("UTC", NOW), max_bytes=100_000)
    write(store, "old.md", b"old", b"newer")
    for number in range(30):
        store.record(f"{number % 3}.md", os.urandom(10_000))
    assert len(store.versions("old.md")) == 1
    assert sum(len(store.versions(f"{number}.md")) for number in range(3)) == 9
    store.close()
    assert len(disk(state)) < 1_000_000


def test_appends_to_a_large_note_are_kept_as_their_tails(history, state):
    """Twenty appends to a megabyte that does not compress take one megabyte, and all come back."""
    start = random.Random(1).randbytes(1_000_000)
    states = [start + b"line\n" * number for number in range(21)]
    write(history, "log.md", *states)
    assert [history.content("log.md", version.id) for version in history.versions("log.md")] == states[-2::-1]
    history.close()
    assert os.path.getsize(state / "history/history.sqlite3") < 1_200_000
    history.withdraw([history.versions("log.md")[-1].id])
    assert history.content("log.md", history.versions("log.md")[0].id) == states[-2]


def test_a_tail_is_taken_only_of_a_true_continuation(history):
    """A note that was changed in front and grew behind comes back whole."""
    states = [b"a" * 5000, b"b" + b"a" * 4999 + b"more", b"b" + b"a" * 4999 + b"more, and more"]
    write(history, "a.md", *states, b"end")
    assert [history.content("a.md", version.id) for version in history.versions("a.md")] == states[::-1]


@pytest.mark.parametrize("version_id", [
    "", "v", "v0", "v01", "v-1", "1", "V1", "v1 ", "v1\n", "v1;", "v999999999999999999999", "../../outbox",
    "/etc/passwd", "v1' OR '1'='1", "\x00", "v\u0661", "x" * 10_000, None, 1,
])
def test_a_made_up_id_is_not_found(history, version_id):
    """Only ids that this note gave out open anything."""
    write(history, "a.md", b"one", b"two")
    with pytest.raises(NotFound):
        history.content("a.md", version_id)


def test_the_id_of_another_note_is_answered_like_one_that_never_was(history):
    """No hint that it exists."""
    write(history, "a.md", b"one", b"two")
    write(history, "b.md", b"three", b"four")
    foreign = history.versions("b.md")[0].id
    refusals = []
    for version_id in (foreign, "v424242"):
        with pytest.raises(NotFound) as refusal:
            history.content("a.md", version_id)
        refusals.append(refusal.value.envelope())
    assert refusals[0] == refusals[1]


def test_history_follows_a_move_and_stays_at_the_old_path(history):
    """Both places can be restored; going back and forth doubles nothing."""
    write(history, "a.md", None, b"one", b"two")
    history.moved("a.md", "b.md", b"two", "move", "op2")
    assert [history.content("b.md", version.id) for version in history.versions("b.md")] == [None, b"one", None]
    assert [history.content("a.md", version.id) for version in history.versions("a.md")] == [b"two", b"one", None]
    history.moved("b.md", "a.md", b"two", "move", "op3")
    history.moved("a.md", "b.md", b"two", "move", "op4")
    assert len(history.versions("a.md")) == 6
    assert len(history.versions("b.md")) == 7


def test_text_that_a_sync_tool_took_away_can_be_brought_back(history):
    """An older state that we know is named with the version that leads to ours; a person's own edit is not."""
    write(history, "a.md", b"one", b"two", b"three")
    assert history.set_back("a.md", b"three") is None
    assert history.set_back("a.md", b"by hand") is None
    found = history.set_back("a.md", b"one")
    assert history.outcome("a.md", found.id) == b"three"


def test_forgetting_leaves_no_trace_on_the_disk(history, state):
    """Neither rows nor contents nor free pages; other notes stay; a former name is reported."""
    write(history, "a.md", None, b"CANARY first", b"CANARY second " + b"x" * 9000)
    write(history, "b.md", b"keep", b"kept")
    history.moved("a.md", "c.md", b"CANARY second " + b"x" * 9000)
    assert history.forget("c.md") == ["a.md"]
    assert history.forget("a.md") == []
    assert history.versions("a.md") == []
    assert b"CANARY" not in disk(state)
    assert history.content("b.md", history.versions("b.md")[0].id) == b"keep"


def test_a_version_whose_write_did_not_happen_is_withdrawn(history):
    """Its content goes with it."""
    write(history, "a.md", None, b"one")
    kept = [history.record("a.md", b"one", after=b"two")]
    history.withdraw(kept)
    assert [version.absent for version in history.versions("a.md")] == [True]


def test_a_broken_database_is_set_aside_and_reported(history, state):
    """Never silently replaced: the broken bytes stay, the next write is kept, and `problems` says so."""
    write(history, "a.md", None, b"one")
    history.close()
    file = state / "history/history.sqlite3"
    file.write_bytes(b"no database " * 1000)
    write(history, "a.md", b"one", b"two")
    assert [history.content("a.md", version.id) for version in history.versions("a.md")] == [b"one"]
    assert history.problems() == [
        "a broken history database was set aside as history.sqlite3.corrupt-2026-11-30-1405"]
    assert (state / "history/history.sqlite3.corrupt-2026-11-30-1405").read_bytes() == b"no database " * 1000


def test_a_database_that_breaks_while_open_is_set_aside_too(history, state):
    """A torn page in the middle of the run."""
    write(history, "a.md", *[os.urandom(3000) for _ in range(15)])
    history.close()
    file = state / "history/history.sqlite3"
    data = bytearray(file.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    file.write_bytes(data)
    write(history, "a.md", b"one", b"two")
    assert len(history.versions("a.md")) == 1
    assert len(history.problems()) == 1


@pytest.mark.parametrize("obstacle", ["file in the way", "read-only", "locked"])
def test_a_history_that_cannot_be_written_says_no_undo(history, state, monkeypatch, obstacle):
    """Whatever the reason, nothing is set aside and the error names no host path."""
    if obstacle == "file in the way":
        state.write_bytes(b"")
    else:
        write(history, "a.md", None, b"one")
        history.close()
    if obstacle == "read-only":
        real = sqlite3.connect
        monkeypatch.setattr(sqlite3, "connect", lambda file, **more: real(f"file:{file}?mode=ro", uri=True, **more))
    if obstacle == "locked":
        monkeypatch.setattr("echo_core.state.database.BUSY_S", 0)
        blocker = sqlite3.connect(state / "history/history.sqlite3", isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(NoUndo) as failure:
        history.record("a.md", b"one", after=b"two")
    assert str(state) not in repr(failure.value.envelope())
    assert history.problems() == []
    if obstacle == "locked":
        blocker.close()


def test_a_damaged_content_is_refused_and_not_returned(history, state):
    """A flipped bit is found by the hash."""
    write(history, "a.md", b"one", b"two")
    database = sqlite3.connect(state / "history/history.sqlite3")
    database.execute("UPDATE blob SET data = x'789c4b04000062'")
    database.commit()
    database.close()
    with pytest.raises(NoUndo):
        history.content("a.md", history.versions("a.md")[0].id)


def test_threads_and_processes_share_one_history(history):
    """Nothing is lost between 4 threads and 3 processes."""
    write(history, "a.md", b"start", b"go")

    def record(path):
        for number in range(5):
            history.record(path, b"%d" % number)
        return True

    threads = [threading.Thread(target=record, args=(f"thread {number}",)) for number in range(4)]
    assert all(in_child(lambda name=f"process {number}": record(name)) for number in range(3))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for path in [f"thread {number}" for number in range(4)] + [f"process {number}" for number in range(3)]:
        assert len(history.versions(path)) == 5


def test_a_killed_process_leaves_the_version_whole_or_not_at_all(history):
    """Death at any step of recording; the next start is clean."""
    write(history, "a.md", b"start", b"go")
    history.close()
    hooks = [(history_module, name) for name in ("keep", "_surplus", "_delete")]
    for step in range(1, 5):
        dying_at(step, hooks, lambda: history.record("a.md", b"before", after=b"after"))
        assert [version.bytes for version in history.versions("a.md")] == [5]
        assert history.problems() == []
        history.close()


def test_a_text_that_was_written_over_is_listed_until_it_is_back_or_dismissed(history):
    """Once for the same text; its version holds it, and stays when the conflict is dismissed."""
    sha = hashlib.sha256(b"ours").hexdigest()
    version = history.overwritten("a.md", b"ours", sha, b"theirs")
    assert history.overwritten("a.md", b"ours", sha, b"theirs") == version
    assert [(one.path, one.version) for one in history.conflicts()] == [("a.md", version)]
    assert history.content("a.md", version) == b"ours"
    history.record("a.md", b"theirs", after=b"ours")
    assert history.conflicts() == []
    version = history.overwritten("a.md", b"ours", sha, b"theirs")
    assert history.dismiss(history.conflicts()[0].id)
    assert not history.dismiss("c999") and not history.dismiss("nonsense")
    assert history.conflicts() == []
    assert history.content("a.md", version) == b"ours"


def test_a_text_that_was_written_over_is_found_by_its_hash_or_listed_without_a_version(history):
    """Many versions later the bytes may be gone; that something was lost is still told."""
    history.record("a.md", b"old", after=b"ours")
    version = history.overwritten("a.md", None, hashlib.sha256(b"ours").hexdigest(), b"theirs")
    assert history.content("a.md", version) == b"ours"
    assert history.overwritten("b.md", None, hashlib.sha256(b"never kept").hexdigest(), b"theirs") == ""
    assert [one.version for one in history.conflicts()] == [version, ""]


def test_the_version_of_a_conflict_outlives_the_newer_ones(history):
    """It goes neither with the twentieth version after it nor before its conflict does."""
    version = history.overwritten("a.md", b"ours", hashlib.sha256(b"ours").hexdigest(), b"theirs")
    for number in range(history_module.KEEP_VERSIONS + 5):
        history.record("a.md", b"%d" % number, after=b"%d" % (number + 1))
    assert history.content("a.md", version) == b"ours"
