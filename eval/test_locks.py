"""Clients take turns at the advisory lock, and nobody dead holds it for long (spec 2.6)."""
import json
import threading

import pytest
from echo_core.clock import Clock
from echo_core.errors import VaultBadResponse, VaultUnreachable
from echo_core.locks import AdvisoryLock, LockHeld
from echo_core.vault.folder import FolderVault
from fakes.memory_vault import MemoryVault

FILE = "_agent/locks/index.json"
NOW = "2026-11-30T14:05:09+01:00"


class Times:
    """A clock, a monotonic timer and the wall time, moved by hand or by sleeping."""

    def __init__(self, vault):
        self.passed_s = 0.0
        self._vault = vault
        self._start = Clock("Europe/Berlin", NOW).now()

    def timer(self):
        return self.passed_s

    def wall_s(self):
        return self._start.timestamp() + self.passed_s

    def sleep(self, seconds):
        self.passed_s += seconds
        self._vault.now_ns = int(self.wall_s() * 1e9)


class MovingClock(Clock):
    """A clock that follows `Times`."""

    def __init__(self, times):
        super().__init__("Europe/Berlin", NOW)
        self._times = times

    def now(self):
        return self.at(NOW).now().fromtimestamp(self._times.wall_s(), super().now().tzinfo).replace(microsecond=0)


@pytest.fixture
def vault():
    """An empty vault in memory."""
    return MemoryVault()


@pytest.fixture
def times(vault):
    """The time of the test."""
    times = Times(vault)
    times.sleep(0)
    return times


@pytest.fixture
def said():
    """What was notified."""
    return []


@pytest.fixture
def client(vault, times, said):
    """Makes a client of the vault by name."""
    def make(holder, clock=None):
        return AdvisoryLock(vault, clock or MovingClock(times), holder, 30, said.append, times.timer, times.sleep,
                            times.wall_s)

    return make


def put(vault, **document):
    """A lock file as somebody else wrote it."""
    vault.put(FILE, json.dumps({"holder": "other", "ttl_s": 30, "token": "t", **document}).encode())


def waited(times, lock):
    """Seconds until `lock` is ours."""
    start = times.passed_s
    with lock.held(wait_s=300):
        return times.passed_s - start


def test_the_file_says_who_holds_the_lock_and_is_gone_afterwards(vault, client):
    """Holder, time, ttl and token while held; nothing but silence after."""
    with client("me").held():
        document = json.loads(vault.read(FILE))
    assert (document["holder"], document["acquired"], document["ttl_s"]) == ("me", NOW, 30)
    assert len(document["token"]) == 16
    assert vault.snapshot() == {}


def test_a_held_lock_is_refused_with_holder_and_end(vault, client):
    """A second client is told who has it and until when, and changes nothing."""
    with client("me").held():
        before = vault.snapshot()
        with pytest.raises(LockHeld) as refusal:
            client("you").take(wait_s=1)
        assert (refusal.value.holder, refusal.value.expires) == ("me", "2026-11-30T14:05:39+01:00")
        assert vault.snapshot() == before


def test_a_thread_may_take_its_lock_again(vault, client):
    """Only the outermost release gives it back."""
    lock = client("me")
    with lock.held():
        with lock.held():
            pass
        assert FILE in vault.snapshot()
    assert vault.snapshot() == {}


def test_another_thread_of_the_same_client_waits_its_turn(client):
    """One client is not two holders at once."""
    lock = client("me")
    refused = []

    def second():
        try:
            lock.take(wait_s=0)
        except LockHeld as held:
            refused.append(held.holder)

    with lock.held():
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert refused == ["me"]


def test_an_expired_lock_is_stolen_at_once_and_the_theft_is_told(vault, client, times, said):
    """Its own stamp says that its time is over."""
    put(vault, acquired="2026-11-30T13:05:09+01:00")
    assert waited(times, client("me")) == 0
    assert said == ["the abandoned lock index of other was taken over by me"]


def test_a_live_lock_is_not_stolen_before_its_time(vault, client, times):
    """Not one second early, and soon after."""
    put(vault, acquired=NOW)
    assert 30 < waited(times, client("me")) < 32


@pytest.mark.parametrize("data", [
    b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"holder": "other"}', b'{"acquired": "2026-11-30T15:05:09+01:00"}',
    b'{"acquired": "2026-11-30 14:05", "ttl_s": 30}', b'{"acquired": 5, "ttl_s": "x"}', b'{"ttl_s": NaN}',
    b'{"acquired": "2026-11-30T14:05:09+01:00", "ttl_s": 86400}', b'{"acquired": "2099-01-01T00:00:00Z", "ttl_s": 1e9}',
])
def test_a_broken_or_skewed_lock_blocks_no_longer_than_two_ttls(vault, client, times, data):
    """Unparsable, without a stamp, in the future, for ever: it ends, and a fresh one is respected for a while."""
    vault.put(FILE, data)
    assert 25 < waited(times, client("me")) <= 61


def test_a_broken_lock_that_is_old_blocks_nobody(vault, client, times):
    """A one-shot command line does not wait for what nobody has touched for an hour."""
    vault.put(FILE, b"")
    times.sleep(3600)
    assert waited(times, client("me")) == 0


def test_a_lock_with_a_time_that_stands_still_is_given_up_after_being_watched(vault, client, times):
    """Under a fixed clock no stamp ever ages; a live holder would have renewed."""
    put(vault, acquired=NOW)
    assert 30 < waited(times, client("me", Clock("Europe/Berlin", NOW))) < 32


def test_a_restarted_holder_takes_its_own_lock_back(vault, client, times, said):
    """At its start, and only then: later the same name must be another run of the same program."""
    put(vault, holder="me", acquired=NOW)
    lock = client("me")
    assert waited(times, lock) == 0
    assert said == []
    put(vault, holder="me", acquired=NOW)
    with pytest.raises(LockHeld):
        lock.take(wait_s=1)


def test_a_long_holder_renews_and_keeps_its_lock(vault, client, times):
    """Half a ttl after the last time, on use."""
    lock, other = client("me"), client("you")
    with lock.held() as lease:
        for _ in range(10):
            times.sleep(20)
            assert lock.renew(lease)
            with pytest.raises(LockHeld):
                other.take(wait_s=0)
        assert json.loads(vault.read(FILE))["acquired"] == "2026-11-30T14:08:29+01:00"
    assert vault.snapshot() == {}


def test_a_holder_that_slept_notices_the_theft_and_leaves_the_thief_alone(vault, client, times, said):
    """Its renewal fails, its release removes nothing."""
    lock, thief = client("me"), client("you")
    lease = lock.take()
    times.sleep(40)
    stolen = thief.take()
    assert not lock.renew(lease)
    lock.release(lease)
    assert json.loads(vault.read(FILE))["holder"] == "you"
    assert len(said) == 3
    thief.release(stolen)
    assert vault.snapshot() == {}


def test_whoever_reads_back_another_token_has_lost_the_race(vault, client):
    """A backend without compare-and-swap takes both writes; only the one that stands holds the lock."""
    real_read, turns = vault.read, []

    def overwritten(path):
        if len(turns) == 1:
            put(vault, holder="racer", acquired=NOW)
        turns.append(path)
        return real_read(path)

    vault.read = overwritten
    with pytest.raises(LockHeld) as refusal:
        client("me").take(wait_s=0)
    assert refusal.value.holder == "racer"


def test_a_lock_that_somebody_elses_release_removed_is_taken_again(vault, client):
    """Behind an API without compare-and-swap a release that was begun earlier removes the lock written after it."""
    real_write, turns = vault.write, []

    def removed(path, data, expected):
        turns.append(path)
        if len(turns) == 1:
            raise VaultBadResponse("The vault accepted it and did not keep it", reason="phantom", path=path)
        real_write(path, data, expected)

    vault.write = removed
    assert client("me").take().name == "index"
    assert len(turns) == 2


def test_a_release_while_the_vault_is_down_is_told_and_not_raised(vault, client, said):
    """The op's own answer counts; the lock expires by itself."""
    with client("me").held():
        vault.down = VaultUnreachable("The vault is down")
    assert said == ["the lock index could not be released and will expire: The vault is down"]


def test_an_error_inside_releases_the_lock(vault, client):
    """Nothing is left behind by a refusal."""
    with pytest.raises(KeyError), client("me").held():
        raise KeyError
    assert vault.snapshot() == {}


def test_status_and_breaking_open(vault, client):
    """An operator sees who holds the lock and may remove it."""
    operator = client("operator")
    assert operator.status() is None
    assert operator.break_open() is None
    put(vault, holder="dead\n\x1b[31m server", acquired=NOW)
    assert operator.status().holder == "dead[31m server"
    assert operator.break_open().expires == "2026-11-30T14:05:39+01:00"
    assert vault.snapshot() == {}


def test_clients_on_a_folder_take_turns(tmp_path):
    """Real time, real files: 4 clients, each update alone, nothing left over."""
    vaults = [FolderVault(str(tmp_path)) for _ in range(4)]
    counter = {"value": 0, "inside": 0, "most": 0}

    def work(number):
        lock = AdvisoryLock(vaults[number], Clock("UTC"), f"client {number}")
        for _ in range(5):
            with lock.held(wait_s=60):
                counter["inside"] += 1
                counter["most"] = max(counter["most"], counter["inside"])
                counter["value"] += 1
                counter["inside"] -= 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter == {"value": 20, "inside": 0, "most": 1}
    assert [path.name for path in (tmp_path / "_agent/locks").iterdir()] == ["write.lock"]
