"""The vault's advisory lock around index writes, kept by every client of every machine (spec 2.6).

A backend may have no compare-and-swap, so taking the lock is: write it, read it back, compare the token. When a lock
counts as abandoned:
 its stamp says so          acquired + ttl_s has passed
 its stamp says nothing     (unparsable, or in the future by somebody's wrong clock) the file is older than the ttl
 neither can be believed    at once: a live holder would have at least one of both right
 we watched it              the same bytes for a whole ttl; a live holder renews
"""
from __future__ import annotations

import contextlib
import logging
import secrets
import threading
import time
from datetime import timedelta
from typing import Callable, Dict, Iterator, Optional, Tuple

from echo_core.clock import Clock
from echo_core.errors import Conflict, NotFound, VaultBadResponse, VaultError
from echo_core.locks.file import LockFile, document, parsed
from echo_core.vault.base import Vault

FOLDER = "_agent/locks"
DEFAULT_TTL_S = 30.0
DEFAULT_WAIT_S = 5.0
_PAUSE_S = 0.05
_log = logging.getLogger("echo.locks")


class LockHeld(Exception):
    """Somebody else holds the lock: `holder`, and `expires` (an ISO instant). Ops answer `lock-held` or queue."""

    def __init__(self, holder: str, expires: str) -> None:
        super().__init__(f"the lock is held by {holder} until {expires}")
        self.holder = holder
        self.expires = expires


class Lease:
    """A lock that we hold."""

    def __init__(self, name: str, token: str, data: bytes, since: float) -> None:
        self.name = name
        self.token = token
        self.data = data
        self.since = since
        self.depth = 1


class AdvisoryLock:
    """Takes, renews and releases the locks of one vault for one client.

    holder: who we are, unique to this process but the same after its restart where possible. ttl_s: seconds until
    others may take an unrenewed lock. notify: told about thefts and failed releases, one line each. timer, sleep,
    wall_s: seams for tests (monotonic seconds, a pause, seconds since the epoch).
    """

    def __init__(
        self, vault: Vault, clock: Clock, holder: str, ttl_s: float = DEFAULT_TTL_S,
        notify: Callable[[str], None] = _log.warning, timer: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep, wall_s: Callable[[], float] = time.time,
    ) -> None:
        self._vault = vault
        self._clock = clock
        self.holder = holder
        self._ttl_s = ttl_s
        self._notify = notify
        self._timer = timer
        self._sleep = sleep
        self._wall_s = wall_s
        self._mutex = threading.RLock()
        self._leases: Dict[str, Lease] = {}
        self._started: Dict[str, bool] = {}
        self._watched: Dict[str, Tuple[bytes, float]] = {}

    @contextlib.contextmanager
    def held(self, name: str = "index", wait_s: float = DEFAULT_WAIT_S) -> Iterator[Lease]:
        """Hold the lock `name`; re-entrant within a thread. Inside `vault.exclusive()` nobody may wait for it.

        Raises LockHeld when it is not free within `wait_s` seconds, and vault errors.
        """
        lease = self.take(name, wait_s)
        try:
            yield lease
        finally:
            self.release(lease)

    def take(self, name: str = "index", wait_s: float = DEFAULT_WAIT_S) -> Lease:
        """Like `held`, for a lock that outlives the call; give it back with `release` from the same thread."""
        if not self._mutex.acquire(timeout=wait_s):
            raise LockHeld(self.holder, self._in(self._ttl_s))
        try:
            lease = self._leases.get(name)
            if lease is None:
                lease = self._leases[name] = self._taken(name, self._timer() + wait_s)
            else:
                lease.depth += 1
                self.renew(lease)
            return lease
        except BaseException:
            self._mutex.release()
            raise

    def renew(self, lease: Lease) -> bool:
        """Prolong a lease whose ttl is half over. False when somebody took it from us."""
        if self._timer() - lease.since <= self._ttl_s / 2:
            return True
        data = self._document(lease.token)
        if not self._wrote(lease.name, data, lease.data):
            self._notify(f"the lock {lease.name} was taken from {self.holder} while it held it")
            return False
        lease.data, lease.since = data, self._timer()
        return True

    def release(self, lease: Lease) -> None:
        """Give a lease back; the last `release` of a re-entered lock removes the file. Never raises."""
        lease.depth -= 1
        try:
            if lease.depth == 0:
                del self._leases[lease.name]
                self._vault.delete(_path(lease.name), lease.data)
        except (Conflict, NotFound):
            self._notify(f"the lock {lease.name} was no longer ours when {self.holder} released it")
        except VaultError as error:
            self._notify(f"the lock {lease.name} could not be released and will expire: {error.message}")
        finally:
            self._mutex.release()

    def status(self, name: str = "index") -> Optional[LockHeld]:
        """Who holds the lock now, as the error a caller would get; None when it is free or abandoned."""
        data = self._read(name)
        if data is None:
            return None
        found = parsed(data, self._ttl_s)
        return None if self._is_abandoned(name, data, found) else self._refusal(found)

    def break_open(self, name: str = "index") -> Optional[LockHeld]:
        """Remove the lock whoever holds it, for an operator who knows better; answers who lost it."""
        data = self._read(name)
        if data is None:
            return None
        self._vault.delete(_path(name), data)
        return self._refusal(parsed(data, self._ttl_s))

    def _taken(self, name: str, deadline: float) -> Lease:
        while True:
            lease = self._attempt(name)
            if lease is not None:
                return lease
            if self._timer() >= deadline:
                data = self._read(name)
                raise self._refusal(parsed(data or b"", self._ttl_s))
            self._sleep(_PAUSE_S)

    def _attempt(self, name: str) -> Optional[Lease]:
        """One try: look, write, read back."""
        before = self._read(name)
        found = None if before is None else parsed(before, self._ttl_s)
        if before is not None and found is not None and not self._may_take(name, before, found):
            return None
        token = secrets.token_hex(8)
        data = self._document(token)
        if not self._wrote(name, data, before) or self._read(name) != data:
            return None
        if found is not None and found.holder != self.holder:
            self._notify(f"the abandoned lock {name} of {found.holder} was taken over by {self.holder}")
        self._started[name] = True
        self._watched.pop(name, None)
        return Lease(name, token, data, self._timer())

    def _wrote(self, name: str, data: bytes, before: Optional[bytes]) -> bool:
        """Write the lock file over `before`; False when somebody else was there first, or removed ours at once."""
        try:
            self._vault.write(_path(name), data, before)
        except (Conflict, NotFound):
            return False
        except VaultBadResponse as dropped:
            # Another client's release, begun before we wrote, removes what it finds.
            if dropped.data.get("reason") != "phantom":
                raise
            return False
        return True

    def _may_take(self, name: str, data: bytes, found: LockFile) -> bool:
        """Whether the lock is abandoned, or left over from our own last run."""
        ours = found.holder == self.holder and not self._started.get(name)
        return ours or self._is_abandoned(name, data, found)

    def _is_abandoned(self, name: str, data: bytes, found: LockFile) -> bool:
        if self._watched_s(name, data) > found.ttl_s:
            return True
        if found.acquired is not None:
            age_s = (self._clock.now() - found.acquired).total_seconds()
            if age_s >= -1:
                return age_s > found.ttl_s
        try:
            age_s = self._wall_s() - self._vault.stat(_path(name)).mtime_ns / 1e9
        except NotFound:
            return True
        return age_s > found.ttl_s or age_s < -found.ttl_s

    def _watched_s(self, name: str, data: bytes) -> float:
        """For how long we have seen exactly these bytes."""
        seen = self._watched.get(name)
        if seen is None or seen[0] != data:
            seen = self._watched[name] = (data, self._timer())
        return self._timer() - seen[1]

    def _read(self, name: str) -> Optional[bytes]:
        try:
            return self._vault.read(_path(name))
        except NotFound:
            return None

    def _document(self, token: str) -> bytes:
        return document(self.holder, self._clock.instant(), self._ttl_s, token)

    def _refusal(self, found: LockFile) -> LockHeld:
        if found.acquired is None or found.acquired > self._clock.now():
            return LockHeld(found.holder, self._in(found.ttl_s))
        return LockHeld(found.holder, (found.acquired + timedelta(seconds=found.ttl_s)).isoformat(timespec="seconds"))

    def _in(self, seconds: float) -> str:
        return (self._clock.now() + timedelta(seconds=seconds)).isoformat(timespec="seconds")


def _path(name: str) -> str:
    return f"{FOLDER}/{name}.json"
