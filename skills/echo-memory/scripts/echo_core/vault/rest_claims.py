"""Whether a file may be created behind the REST API, which knows no create-only write (spec 2.3, 6.1)."""
from __future__ import annotations

import contextlib
import time
from typing import Callable, List, Optional, Set

from echo_core.errors import EchoError, InvalidPath, VaultUnreachable
from echo_core.paths import is_inside, is_note, parent
from echo_core.vault.base import Stat, version_of
from echo_core.vault.refusals import conflict
from echo_core.vault.rest_client import RestClient
from echo_core.vault.rest_paths import Spellings, nfc
from echo_core.vault.rest_scan import RestScan
from echo_core.vault.rest_write import RestWrites

HOLD_S = 2.0
"""How long a creation waits for a note that is known but answers 404: a loading Obsidian answers like that."""
LOCKS = "_agent/locks"
"""Files of our own making: nobody spells them otherwise, and they come and go."""
_PAUSE_S = 0.2
PROBE = f"{LOCKS}/loaded.md"
"""A file of ours: an index that takes it in is there. It is removed at once."""
PROBE_TEXT = b"ECHO looks whether Obsidian has loaded this vault. This file may be removed.\n"
PROVED_S = 30.0
"""How long an empty vault that has shown the probe counts as loaded."""


class Claims:
    """Claims on places of one vault. known: whether somebody, such as the entity index, knows a note at a path.
    anything: whether any note is known from before.

    probes: whether a vault that shows no file at all may be asked by writing one.
    """

    def __init__(
        self, client: RestClient, writes: RestWrites, names: Spellings, scan: RestScan, probes: bool,
    ) -> None:
        self._probes = probes
        self._proved_at = float("-inf")
        self._probe_left = False
        self._client = client
        self._writes = writes
        self._names = names
        self._scan = scan
        self.known: Callable[[str], bool] = lambda path: False
        self.anything: Callable[[], bool] = lambda: False

    def refuse_taken(self, path: str, now: Optional[bytes], until: float, besides: str = "") -> None:
        """Raise unless a file can be created: the place is free, no other spelling of it is taken, none is hidden."""
        if now is not None:
            raise conflict(path, "is not what you read", version_of(now))
        if is_inside(path, LOCKS):
            return
        found = self._names.matches(path, until)
        self.require_loaded(until)
        if found.below_file:
            raise InvalidPath(f"{path} would lie below a file", field="path")
        if path in map(nfc, found.folders):
            raise conflict(path, "is taken by something that is no readable file")
        others = [name for name in found.files if nfc(name) not in (besides, path)]
        if others:
            raise conflict(path, "exists already in another spelling", "", others)
        listed = path in map(nfc, found.files) and path != besides
        if listed or self._is_known(path):
            if self.is_gone(path, until):
                self.give_up(path)
            else:
                self._hold(path, until)

    def refuse_hidden(self, path: str, until: float) -> None:
        """Raise VaultUnreachable for a file that answers 404 though somebody knows it and nobody has removed it."""
        if self._is_known(path) and not self.is_gone(path, until):
            raise _hidden(path)

    def require_loaded(self, until: float) -> None:
        """Raise VaultUnreachable while the vault shows no file at all and would not even show one of ours.

        An Obsidian that has not loaded its vault answers 404 for every note, and a PUT writes over the file that is
        there. Whatever shows a file is loaded. A vault that shows none is empty only when it shows what was just
        written.
        """
        if self._names.shows_something(until):
            self._tidy(until)
            return
        if self._scan.notes or not self._probes or self.anything():
            raise _loading()
        if time.monotonic() - self._proved_at >= PROVED_S:
            self._probe_left = True
            self._client.put(PROBE, PROBE_TEXT, until)
            if self._client.file(PROBE, until) != PROBE_TEXT:
                raise _loading()
            self._proved_at = time.monotonic()
            self._tidy(until)

    def without_probe(self, found: List[Stat], until: float) -> List[Stat]:
        """The files of a walk but for a probe that a process has left in a vault that was loading; that goes."""
        others = [stat for stat in found if stat.path != PROBE]
        if len(others) < len(found) and self._probes:
            self._probe_left = True
            self._tidy(until)
        return others

    def _tidy(self, until: float) -> None:
        """Remove the probe, which a vault that was still loading has kept; a failure leaves it to the next time."""
        if self._probe_left:
            with contextlib.suppress(EchoError):
                self._client.remove(PROBE, until)
                self._probe_left = False

    def _is_known(self, path: str) -> bool:
        return path in self._scan.notes or (is_note(path) and self.known(path))

    def is_gone(self, path: str, until: float) -> bool:
        """Whether somebody has removed the file: a folder above it shows all the other notes known there.

        A loading Obsidian answers 404 as well, but it lists nothing of what it has not loaded.
        """
        if self._writes.look(path, until) is not None:
            return False
        branch = path
        while branch:
            folder, name = parent(branch), branch.rpartition("/")[2]
            listed = self._client.listing(self._names.spelled(folder), until) or []
            shown = {nfc(entry).rstrip("/") for entry in listed}
            if branch == path and name in shown:
                return False
            others = self._known_in(folder) - {name}
            if others:
                return others <= shown
            branch = folder
        return False

    def give_up(self, path: str) -> None:
        """Nobody claims the place any more: its file was removed."""
        self._scan.notes.discard(path)
        if not is_inside(path, LOCKS):
            self._names.gone(path)

    def _known_in(self, folder: str) -> Set[str]:
        """Names of the notes, and of the folders with notes, that were seen right below a folder."""
        start = len(folder) + 1 if folder else 0
        return {note[start:].partition("/")[0] for note in set(self._scan.notes) if is_inside(note, folder)}

    def _hold(self, path: str, until: float) -> None:
        """A 404 is no licence to create what is known: look again for a while, then give up."""
        end = time.monotonic() + min(HOLD_S, (until - time.monotonic()) / 2)
        while time.monotonic() < end:
            now = self._writes.look(path, until)
            if now is not None:
                raise conflict(path, "is not what you read", version_of(now))
            time.sleep(_PAUSE_S)
        raise _hidden(path)


def _loading() -> VaultUnreachable:
    return VaultUnreachable(
        "The vault shows no file at all; Obsidian may still be loading it", reason="loading",
        hint="Try again in half a minute. If you emptied the vault on purpose, remove the catalog file from "
             "ECHO_STATE_DIR and restart ECHO.",
    )


def _hidden(path: str) -> VaultUnreachable:
    return VaultUnreachable(f"{path} is known, but the vault does not show it; Obsidian may still be loading",
                            hint="Try again in half a minute.", reason="loading", path=path)
