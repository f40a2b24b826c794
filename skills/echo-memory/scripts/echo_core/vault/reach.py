"""Whether a vault answers, as the calls of this process have just found it (spec 4.1).

Whoever answers from memory asks here instead of the vault. A vault that hangs is not asked again and again: after
`HUNG` timeouts in a row every call fails at once, until a probe gets through.
"""
from __future__ import annotations

import contextlib
import threading
import time
from typing import Callable, Dict, Iterable, Iterator, Optional, Tuple

from echo_core.errors import Conflict, EchoError, NotFound, VaultAuth, VaultBadResponse, VaultTls, VaultUnreachable
from echo_core.vault.base import Listing, Stat, Vault
from echo_core.vault.forwarding import ForwardingVault

HUNG = 3
"""Timeouts in a row after which the vault counts as hung; one of a check is enough."""
SILENT_S = 2.0
"""A vault that leaves a question open for longer, and answers nobody meanwhile, may be hung."""

_LOADING = "loading"
"""The vault answers, and says nothing yet of its notes."""
_AWAY = frozenset({"refused", "dns", "network", "timeout", "reset", "missing", "emptied"})
"""Reasons that speak of the vault and not of one note; whatever a `check` says speaks of the vault."""
_ANSWERS = (NotFound, Conflict, VaultAuth)
"""Failures that only a vault that is there can give."""


class Reach:
    """What is known about one vault being there. Thread-safe; only `probe` asks it.

    check: the vault's own.
    """

    def __init__(self, check: Callable[[], None] = lambda: None) -> None:
        self._check = check
        self._lock = threading.Lock()
        self._open: Dict[object, float] = {}
        self._failure: Optional[VaultUnreachable] = None
        self._astray: Optional[EchoError] = None
        self._since = 0.0
        self._timeouts = 0
        self.key_refused = False
        """Whether the last answer was that the key is wrong."""
        self._answered = time.monotonic()

    def probe(self) -> None:
        """Ask whether it answers, also when it hangs: so it is found to be back. Raises what `check` raises."""
        with self.asking(whole=True):
            self._check()

    @contextlib.contextmanager
    def asking(self, whole: bool = False, quick: bool = True) -> Iterator[None]:
        """Around each question to the vault. whole: it is not about one path. quick: its answer takes no time."""
        question = object()
        with self._lock:
            if quick:
                self._open[question] = time.monotonic()
        failure: Optional[EchoError] = None
        try:
            yield
        except EchoError as error:
            failure = error
            raise
        finally:
            with self._lock:
                self._open.pop(question, None)
                self._take(failure, whole, HUNG if whole and quick else 1)

    def away(self) -> Optional[VaultUnreachable]:
        """Why the vault is not there, as the last answer said; None while it answers."""
        return self._failure

    def unheard(self) -> Optional[EchoError]:
        """Why the last question brought nothing of the vault: it is away, refuses the key or is something else."""
        return self._failure or self._astray

    def away_s(self) -> float:
        """For how many seconds it has not been there, 0 while it answers."""
        return time.monotonic() - self._since if self._failure else 0.0

    def hung(self) -> Optional[VaultUnreachable]:
        """The same when asking again would only cost time."""
        return self._failure if self._timeouts >= HUNG else None

    def silent(self) -> bool:
        """Whether somebody has waited SILENT_S for an answer, and nobody has got one since."""
        with self._lock:
            begun = min(self._open.values(), default=None)
            waits_since = None if begun is None else max(begun, self._answered)
        return waits_since is not None and time.monotonic() - waits_since > SILENT_S

    def _take(self, failure: Optional[EchoError], whole: bool, weight: int) -> None:
        self._astray = failure if _is_astray(failure) else None
        if failure is None or isinstance(failure, _ANSWERS):
            self.key_refused = self._astray is not None
            self._failure, self._timeouts, self._answered = None, 0, time.monotonic()
        if not isinstance(failure, VaultUnreachable):
            return
        reason = failure.data.get("reason")
        if reason == _LOADING or (not whole and reason not in _AWAY):
            return
        if self._failure is None:
            self._since = time.monotonic()
        self._failure = VaultUnreachable(failure.message, hint=failure.hint, **failure.data)
        self._timeouts = self._timeouts + weight if reason == "timeout" else 0


def _is_astray(failure: Optional[EchoError]) -> bool:
    """Whether an answer speaks of the whole vault without being one of its own."""
    if isinstance(failure, VaultAuth):
        return failure.data.get("reason") == "key"
    return isinstance(failure, (VaultBadResponse, VaultTls))


class ReachedVault(ForwardingVault):
    """Notes in `reach` how `inner`, a backend, answers; spares one that hangs further questions."""

    def __init__(self, inner: Vault) -> None:
        super().__init__(inner)
        self.reach = Reach(inner.check)

    @contextlib.contextmanager
    def _asking(self, whole: bool = False, quick: bool = True) -> Iterator[None]:
        hung = self.reach.hung()
        if hung is not None:
            raise VaultUnreachable(hung.message, hint=hung.hint, **hung.data)
        with self.reach.asking(whole, quick):
            yield

    def read(self, path: str) -> bytes:
        with self._asking():
            return self._inner.read(path)

    def read_many(self, paths: Iterable[str]) -> Iterator[Tuple[str, bytes]]:
        found = self._inner.read_many(paths)
        while True:
            with self._asking():
                pair = next(found, None)
            if pair is None:
                return
            yield pair

    def write(self, path: str, data: bytes, expected: Optional[bytes]) -> None:
        with self._asking():
            self._inner.write(path, data, expected)

    def delete(self, path: str, expected: bytes) -> None:
        with self._asking():
            self._inner.delete(path, expected)

    def move(self, source: str, target: str) -> None:
        with self._asking():
            self._inner.move(source, target)

    def stat(self, path: str) -> Stat:
        with self._asking():
            return self._inner.stat(path)

    def is_gone(self, path: str) -> bool:
        with self._asking():
            return self._inner.is_gone(path)

    def list_folder(self, path: str) -> Listing:
        with self._asking():
            return self._inner.list_folder(path)

    def walk(self) -> Iterator[Stat]:
        with self._asking(whole=True, quick=False):
            return iter(list(self._inner.walk()))

    def check(self) -> None:
        with self._asking(whole=True):
            self._inner.check()
