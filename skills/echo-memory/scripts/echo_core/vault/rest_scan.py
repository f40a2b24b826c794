"""Walks over a vault behind the REST API, and the doubt when many notes are missing at once (spec 6.1).

One search gives time and size of every note. Where the search fails, the folders are listed and each note is asked
for; the answers are the same, so that switching between both ways makes nothing look changed. Files that are no notes
come from listings, which are renewed now and then only: nobody asks for more than their names, so their size and time
are given as 0.
"""
from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, Dict, Iterable, List, Optional, Set, TypeVar

from echo_core.errors import InvalidPath, VaultBadResponse, VaultError, VaultUnreachable
from echo_core.paths import check_path, is_note
from echo_core.vault.base import Stat
from echo_core.vault.refusals import emptied
from echo_core.vault.rest_client import RestClient, Times
from echo_core.vault.rest_paths import Spellings, nfc

OTHERS_S = 600.0
"""How long the names of files that are no notes are trusted."""
FAN_OUT = 8
"""Requests at the same time where many are needed."""
SEARCH_REST_S = 600.0
"""How long a search that was too slow or failed is not tried again."""
CONFIRM_S = 20.0
"""How long many notes must stay missing until that is believed."""
_FEW = 5
_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")


class RestScan:
    """The walks of one vault. until: gives the deadline of a request that begins now."""

    def __init__(self, client: RestClient, spellings: Spellings, until: Callable[[], float]) -> None:
        self._client = client
        self._spellings = spellings
        self._until = until
        self._others: List[str] = []
        self._others_at = 0.0
        self._search_again_at = 0.0
        self._shrunk_at = 0.0
        self.notes: Set[str] = set()
        """Paths of the notes that the last believed walk saw, kept up by the vault's own writes."""

    def files(self) -> List[Stat]:
        """Every file in path order. Raises VaultUnreachable when so many are missing that the vault may be loading."""
        found = self._searched()
        listed: Optional[List[str]] = None
        if found is None:
            listed = self._listed()
            found = self._asked([name for name in listed if is_note(name)])
        stats = [stat for stat in (self._stat(name, times) for name, times in found.items()) if stat is not None]
        self._doubt({stat.path for stat in stats})
        stats.extend(Stat(path, 0, 0) for path in self._other_files(listed))
        self._spellings.walked(stat.path for stat in stats)
        return sorted(stats)

    def _searched(self) -> Optional[Dict[str, Times]]:
        """Times of all notes by one search, None when that does not work now."""
        if time.monotonic() < self._search_again_at:
            return None
        try:
            return self._client.all_times(self._until())
        except VaultBadResponse:
            return None
        except VaultUnreachable as failure:
            reason = str(failure.data.get("reason"))
            if reason != "timeout" and not reason.startswith("http-"):
                raise
            # A vault that is down does not answer this either; with one that does only the search is the trouble.
            self._client.status(self._until())
            self._search_again_at = time.monotonic() + SEARCH_REST_S
            return None

    def _asked(self, names: List[str]) -> Dict[str, Times]:
        """Times of the notes, asked for one by one; those that went meanwhile are left out."""
        found = fan_out(lambda name: self._client.times(name, self._until()), names)
        return {name: times for name, times in zip(names, found) if times is not None}

    def _other_files(self, listed: Optional[List[str]]) -> List[str]:
        """Paths of the files that are no notes."""
        now = time.monotonic()
        if listed is None and self._others_at and now - self._others_at < OTHERS_S:
            return self._others
        try:
            names = self._listed() if listed is None else listed
        except VaultError:
            if not self._others_at:
                raise
            return self._others
        paths = (self._path(name) for name in names if not is_note(name))
        self._others, self._others_at = [path for path in paths if path], now
        return self._others

    def _listed(self) -> List[str]:
        """Every file's name, folder by folder."""
        names: List[str] = []
        folders = [""]
        while folders:
            listings = fan_out(lambda folder: self._client.listing(folder, self._until()), folders)
            entries = [f"{folder}/{entry}" if folder else entry
                       for folder, listing in zip(folders, listings) for entry in listing or []]
            names.extend(entry for entry in entries if not entry.endswith("/"))
            folders = [entry[:-1] for entry in entries if entry.endswith("/") and self._path(entry[:-1])]
        return names

    def _stat(self, name: str, times: Times) -> Optional[Stat]:
        path = self._path(name)
        return stat_of(path, times) if path else None

    def _path(self, name: str) -> str:
        """The path of a raw name, "" when ECHO refuses such names."""
        try:
            path = check_path(name)
        except InvalidPath:
            return ""
        if path != nfc(name):
            return ""
        return self._spellings.learn(name)

    def _doubt(self, now: Set[str]) -> None:
        """Raise when many notes vanished at once: Obsidian answers like that while it loads its vault."""
        gone = len(self.notes - now)
        if self.notes and not now:
            raise emptied()
        if gone > max(_FEW, len(self.notes) // 10):
            clock = time.monotonic()
            self._shrunk_at = self._shrunk_at or clock
            if clock - self._shrunk_at < CONFIRM_S:
                raise VaultUnreachable(
                    f"{gone} notes are missing at once; Obsidian may still be loading", reason="loading",
                    hint="Try again in half a minute.",
                )
        self._shrunk_at = 0.0
        self.notes = now


def stat_of(path: str, times: Times) -> Stat:
    """The Stat of a file; Obsidian's times are whole milliseconds."""
    return Stat(path, times.size, round(times.mtime_ms * 1000) * 1000)


def fan_out(ask: Callable[[_Item], _Answer], items: Iterable[_Item]) -> List[_Answer]:
    """The answers for all items in order, FAN_OUT at a time; the first error is raised."""
    wanted = list(items)
    if len(wanted) < 2:
        return [ask(item) for item in wanted]
    with ThreadPoolExecutor(min(FAN_OUT, len(wanted)), thread_name_prefix="vault") as pool:
        return list(pool.map(ask, wanted))
