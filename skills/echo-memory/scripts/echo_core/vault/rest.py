"""The vault behind Obsidian's Local REST API (spec 6.1, 2.6).

The API has no compare-and-swap. So a write is: the file is read (that is the compare), PUT, read back; what stands
there decides, not the status. Between the read and the PUT another program can slip in: the read-back notices when it
overwrote us, not when we overwrote it. `exclusive` is a lock of this user's ECHO processes on this host, at each path.
Paths are written exactly as given or refused; only reads may guess another spelling.
"""
from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from echo_core.errors import Conflict, NotFound, VaultAuth, VaultBadResponse
from echo_core.paths import case_key, check_folder, check_path, is_inside, is_note, without_extension
from echo_core.vault.base import Listing, Stat, Vault, version_of
from echo_core.vault.refusals import conflict, missing
from echo_core.vault.rest_address import Address, check_addressable
from echo_core.vault.rest_claims import LOCKS, Claims
from echo_core.vault.rest_client import BYTES, RestClient
from echo_core.vault.rest_landing import require_text
from echo_core.vault.rest_paths import Spellings, nfc
from echo_core.vault.rest_scan import RestScan, fan_out, stat_of
from echo_core.vault.rest_transport import HttpTransport, Transport
from echo_core.vault.rest_turn import turns_of
from echo_core.vault.rest_write import RestWrites

_BATCH = 64


class RestVault(Vault):
    """A vault at `address`.

    timeout_s: total time of one method. transport: the seam; by default the standard library's. probes: whether a vault
    that shows no file at all may be asked by writing one; False where nothing may be written.
    """

    def __init__(self, address: Address, key: str, timeout_s: float = 10.0, ca_file: str = "",
                 transport: Optional[Transport] = None, probes: bool = True) -> None:
        self._transport = transport or HttpTransport(address, ca_file)
        self._client = RestClient(self._transport, key)
        self._secure = address.scheme == "https"
        self._timeout_s = timeout_s
        self._turns = turns_of(address.key)
        self._names = Spellings(self._client.listing, lambda: self._client.breaks)
        self._writes = RestWrites(self._client, self._names)
        self._scan = RestScan(self._client, self._names, self._until)
        self._versions: Dict[str, object] = {}
        self._claims = Claims(self._client, self._writes, self._names, self._scan, probes)

    def read(self, path: str) -> bytes:
        path = check_path(path)
        until = self._until()
        found = self._writes.look(path, until)
        if found is not None:
            return found
        others = self._others(path, until)
        if len(others) == 1:
            found = self._client.file(others[0], until)
        if found is None:
            raise self._missing(path, others, until)
        return found

    def read_many(self, paths: Iterable[str]) -> Iterator[Tuple[str, bytes]]:
        """Several at a time. Other spellings are not looked for: such paths come from walks and listings."""
        wanted = [check_path(path) for path in paths]
        for start in range(0, len(wanted), _BATCH):
            batch = wanted[start:start + _BATCH]
            found = fan_out(lambda path: self._client.file(self._names.spelled(path), self._until()), batch)
            yield from ((path, data) for path, data in zip(batch, found) if data is not None)

    def stat(self, path: str) -> Stat:
        path = check_path(path)
        until = self._until()
        for name in self._spellings(path, until):
            times = self._client.times(name, until)
            if times is not None:
                return stat_of(nfc(name), times)
            data = self._client.file(name, until)
            if data is not None:  # not taken in by Obsidian yet; a time that is always new asks to look again
                return Stat(nfc(name), len(data), time.time_ns())
        raise self._missing(path, self._others(path, until), until)

    def is_gone(self, path: str) -> bool:
        return self._claims.is_gone(check_path(path), self._until())

    def write(self, path: str, data: bytes, expected: Optional[bytes]) -> None:
        path = check_path(path)
        check_addressable(path)
        for content in (data, expected):
            if content is not None:
                require_text(path, content)
        with self.exclusive(path):
            until = self._until()
            now = self._compared(path, until)
            if expected is None:
                self._claims.refuse_taken(path, now, until)
            elif now != expected:
                raise self._changed(path, now, until)
            self._writes.replace(path, data, expected, until)
            self._note(path)

    def place(self, path: str, data: bytes) -> None:
        """Create a file of any bytes, note or attachment, with its name spelled exactly as given; for restores.

        Return when it reads back the same. Raises Conflict when something is there, VaultBadResponse with reason
        "phantom" when the vault did not keep the bytes.
        """
        check_addressable(check_path(path))
        with self.exclusive(path):
            until = self._until()
            if self._client.file(path, until) is not None:
                raise conflict(path, "exists already")
            self._claims.require_loaded(until)
            self._client.put(path, data, until, kind=BYTES)
            if self._client.file(path, self._until()) != data:
                raise VaultBadResponse(f"The vault accepted {path} and did not keep it", reason="phantom", path=path)
            self._names.learn(path)
            self._note(check_path(path))

    def delete(self, path: str, expected: bytes) -> None:
        path = check_path(path)
        with self.exclusive(path):
            until = self._until()
            now = self._compared(path, until)
            if now is None:
                raise self._missing(path, self._others(path, until), until)
            if now != expected:
                raise self._changed(path, now, until)
            self._remove(path, until)

    def move(self, source: str, target: str) -> None:
        """A copy, then a deletion: a crash in between leaves both, never none."""
        source, target = check_path(source, "source"), check_path(target, "target")
        check_addressable(target)
        aside = f"{without_extension(target)} (renaming).md"
        with self.exclusive(source, target, aside):
            until = self._until()
            data = self._compared(source, until)
            if data is None:
                raise self._missing(source, self._others(source, until), until)
            require_text(source, data)
            if source != target and self._is_respelled(source, target, data, until):
                self._carry(source, aside, data, until)
                self._carry(aside, target, data, until)
            else:
                self._claims.refuse_taken(target, self._compared(target, until), until, besides=source)
                self._carry(source, target, data, until)

    def list_folder(self, path: str) -> Listing:
        path = check_folder(path)
        until = self._until()
        name = self._names.spelled(path)
        entries = self._client.listing(name, until)
        if entries is None and path:
            folders = self._names.matches(path, until).folders
            name = folders[0] if len(folders) == 1 else name
            entries = self._client.listing(name, until) if folders else None
        if entries is None:
            if not path:
                raise VaultBadResponse("The vault does not list its root", reason="garbled")
            self._claims.require_loaded(until)
            raise missing(path)
        shown = self._names.learn_children(name, entries)
        return Listing(sorted(entry[:-1] for entry in shown if entry.endswith("/")),
                       sorted(entry for entry in shown if not entry.endswith("/")))

    def walk(self) -> Iterator[Stat]:
        """See `rest_scan`: sizes and times are Obsidian's; a file that is no note has neither, both are 0."""
        found = self._scan.files()
        if not found:
            self._claims.require_loaded(self._until())
        return iter(self._claims.without_probe(found, self._until()))

    def expect(self, known: Callable[[str], bool], anything: Callable[[], bool] = lambda: False) -> None:
        """The notes of the last walk are known anyway."""
        self._claims.known, self._claims.anything = known, anything

    def exclusive(self, *paths: str) -> AbstractContextManager[None]:
        return self._turns.held(paths, self._timeout_s)

    def check(self) -> None:
        said = self._client.status(self._until())
        versions = said.get("versions")
        self._versions = dict(versions) if isinstance(versions, dict) else {}
        if said.get("authenticated") is not True:
            raise VaultAuth("The vault refuses the key", reason="key",
                            hint="Copy the key from Obsidian's settings of the Local REST API into ECHO_KEY.")

    def close(self) -> None:
        self._transport.close()

    def describe(self) -> Dict[str, object]:
        """Versions are those of the last `check`, "" before it."""
        return {
            "backend": "rest", "plugin": _word(self._versions.get("self")),
            "obsidian": _word(self._versions.get("obsidian")), "tls": "verified" if self._secure else "none",
            "write_lock": "between processes" if self._turns.between_processes else "between threads only",
            "byte_order_marks_lost": self._writes.lost_marks,
        }

    def _until(self) -> float:
        """The deadline of a method that begins now."""
        return time.monotonic() + self._timeout_s

    def _compared(self, path: str, until: float) -> Optional[bytes]:
        """What is there right before a write, in either normal form of the path."""
        now = self._writes.compared(path, until)
        if now is None and not path.isascii():
            self._names.matches(path, until)
            if self._names.spelled(path) != path:
                now = self._writes.look(path, until)
        return now

    def _others(self, path: str, until: float) -> List[str]:
        """Files whose path differs only in case or normal form; nobody asks that of the lock's own files."""
        asked = self._names.spelled(path)
        found = [] if is_inside(path, LOCKS) else self._names.matches(path, until).files
        return [name for name in found if name != asked]

    def _spellings(self, path: str, until: float) -> Iterator[str]:
        """How the vault may spell what a read means: as given, else the only other way."""
        yield self._names.spelled(path)
        others = self._others(path, until)
        if len(others) == 1:
            yield others[0]

    def _missing(self, path: str, others: List[str], until: float) -> NotFound:
        """That there is no such file; VaultUnreachable when a loading Obsidian may only not show it."""
        self._claims.refuse_hidden(path, until)
        if not is_inside(path, LOCKS):
            self._claims.require_loaded(until)
        return missing(path, others)

    def _changed(self, path: str, now: Optional[bytes], until: float) -> Conflict:
        if now is None:
            return conflict(path, "is not there any more", "", self._others(path, until))
        return conflict(path, "is not what you read", version_of(now))

    def _is_respelled(self, source: str, target: str, data: bytes, until: float) -> bool:
        """Whether the vault takes both paths for one file, as file systems without case do."""
        if case_key(source) != case_key(target) or self._writes.look(target, until) != data:
            return False
        return [nfc(name) for name in self._names.matches(target, until).files] == [source]

    def _carry(self, source: str, target: str, data: bytes, until: float) -> None:
        """Copy, compare the source once more, delete it; a source that changed meanwhile stays, its copy goes."""
        self._writes.replace(target, data, None, until)
        now = self._writes.look(source, until)
        if now is not None and now != data:
            self._writes.remove(target, until)
            raise conflict(source, "was changed by somebody else meanwhile", version_of(now))
        self._note(target)
        self._remove(source, until)

    def _remove(self, path: str, until: float) -> None:
        self._writes.remove(path, until)
        self._claims.give_up(path)

    def _note(self, path: str) -> None:
        """Take in a file that we have written."""
        self._names.made(path)
        if is_note(path):
            self._scan.notes.add(path)


def _word(value: object) -> str:
    """A version as the vault says it, fit for a report."""
    return "".join(char for char in str(value or "") if char.isprintable())[:40]
