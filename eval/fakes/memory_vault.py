"""A vault in memory that keeps the contract of `echo_core.vault.base`, for tests of everything above it."""
from __future__ import annotations

import contextlib
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, NoReturn

from echo_core.errors import EchoError, InvalidPath, NotFound, VaultAuth
from echo_core.paths import case_key, check_folder, check_path, is_inside
from echo_core.vault.base import Listing, Stat, Vault, version_of
from echo_core.vault.refusals import conflict, missing

START_NS = 1_700_000_000_000_000_000
TICK_NS = 1_000_000_000


class _File(NamedTuple):
    data: bytes
    mtime_ns: int


class MemoryVault(Vault):
    """Files in a dict.

    down: raise this from every call, as a vault that is off would. closed: folders that nobody may read.
    before_write: called with the path right before a write compares, the place to play another editor.
    calls: how often each method was asked, for tests that count. now_ns: time of the last write; each adds a second.
    """

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        self.down: EchoError | None = None
        self.closed: list[str] = []
        self.before_write: Callable[[str], None] | None = None
        self.calls: Counter[str] = Counter()
        self._lock = threading.RLock()
        self._files: dict[str, _File] = {}
        self.now_ns = START_NS
        self._unreadable: list[str] = []
        for path, data in (files or {}).items():
            self.put(path, data)

    def put(self, path: str, data: bytes) -> None:
        """Write as a foreign editor would: no compare, no count, and the name exactly as given."""
        with self._lock:
            self.now_ns += TICK_NS
            self._files[path] = _File(data, self.now_ns)

    def remove(self, path: str) -> None:
        """Remove as a foreign editor would."""
        with self._lock:
            del self._files[path]

    def snapshot(self) -> dict[str, bytes]:
        """All files and their bytes, for comparing whole vaults."""
        with self._lock:
            return {path: file.data for path, file in sorted(self._files.items())}

    def read(self, path: str) -> bytes:
        self._begin("read")
        with self._lock:
            return self._files[self._meant(check_path(path))].data

    def stat(self, path: str) -> Stat:
        self._begin("stat")
        with self._lock:
            name = self._meant(check_path(path))
            return Stat(_nfc(name), len(self._files[name].data), self._files[name].mtime_ns)

    def write(self, path: str, data: bytes, expected: bytes | None) -> None:
        self._begin("write")
        path = check_path(path)
        if self.before_write is not None:
            self.before_write(path)
        with self._lock:
            self._refuse_closed(path)
            name = self._exact(path)
            if expected is None:
                self._refuse_taken(path)
            elif name is None or self._files[name].data != expected:
                self._conflict(path, name)
            self.put(name or path, data)

    def delete(self, path: str, expected: bytes) -> None:
        self._begin("delete")
        path = check_path(path)
        with self._lock:
            self._refuse_closed(path)
            name = self._exact(path)
            if name is None:
                raise self._missing(path)
            if self._files[name].data != expected:
                self._conflict(path, name)
            del self._files[name]

    def move(self, source: str, target: str) -> None:
        self._begin("move")
        source, target = check_path(source, "source"), check_path(target, "target")
        with self._lock:
            self._refuse_closed(source)
            self._refuse_closed(target)
            name = self._exact(source)
            if name is None:
                raise self._missing(source)
            self._refuse_taken(target, besides=source if source != target else "")
            self._files[target] = self._files.pop(name)

    def list_folder(self, path: str) -> Listing:
        self._begin("list_folder")
        path = check_folder(path)
        with self._lock:
            self._refuse_closed(path)
            below = f"{path}/" if path else ""
            inside = [_nfc(name) for name in self._files if _nfc(name).startswith(below)]
            if not inside:
                inside = [_nfc(name) for name in self._files if case_key(name).startswith(case_key(below))]
            if not inside and path:
                raise missing(path)
            names = [name[len(below):] for name in inside if not name[len(below):].startswith(".")]
            return Listing(sorted({name.split("/")[0] for name in names if "/" in name}),
                           sorted({name for name in names if "/" not in name}))

    def walk(self) -> Iterator[Stat]:
        self._begin("walk")
        with self._lock:
            if "" in self.closed:
                self._refuse_closed("")
            found = sorted((_nfc(name), file) for name, file in self._files.items())
        for path, file in found:
            if not self._is_closed(path) and not any(part.startswith(".") for part in path.split("/")):
                yield Stat(path, len(file.data), file.mtime_ns)
        self._unreadable = list(self.closed)

    def unreadable(self) -> list[str]:
        return list(self._unreadable)

    @contextlib.contextmanager
    def exclusive(self, *paths: str) -> Iterator[None]:
        self._raise_if_down()
        with self._lock:
            yield

    def check(self) -> None:
        self._begin("check")
        self._refuse_closed("")

    def describe(self) -> dict[str, object]:
        return {"backend": "memory"}

    def _begin(self, method: str) -> None:
        self._raise_if_down()
        self.calls[method] += 1

    def _raise_if_down(self) -> None:
        if self.down is not None:
            raise self.down

    def _is_closed(self, path: str) -> bool:
        return any(is_inside(path, folder) for folder in self.closed)

    def _refuse_closed(self, path: str) -> None:
        if self._is_closed(path):
            raise VaultAuth(f"The file permissions do not allow access to {path}", reason="permission", path=path)

    def _exact(self, path: str) -> str | None:
        """How the vault spells `path`: as given or in another normal form; None when it is not there."""
        if path in self._files:
            return path
        same = [name for name in self._files if _nfc(name) == path]
        return same[0] if len(same) == 1 else None

    def _matches(self, path: str) -> list[str]:
        return sorted(name for name in self._files if case_key(name) == case_key(path))

    def _meant(self, path: str) -> str:
        """The file a read of `path` means."""
        self._refuse_closed(path)
        name = self._exact(path)
        if name is not None:
            return name
        found = self._matches(path)
        if len(found) != 1:
            raise self._missing(path)
        return found[0]

    def _refuse_taken(self, path: str, besides: str = "") -> None:
        if any(is_inside(path, name) and path != name for name in self._files):
            raise InvalidPath(f"{path} would lie below a file", field="path")
        if any(is_inside(name, path) for name in self._files):
            self._conflict(path, self._exact(path))
        if [name for name in self._matches(path) if _nfc(name) != besides]:
            self._conflict(path, None)

    def _missing(self, path: str) -> NotFound:
        return missing(path, self._matches(path))

    def _conflict(self, path: str, name: str | None) -> NoReturn:
        if name is None:
            raise conflict(path, "is not there, or only in another spelling", "", self._matches(path))
        raise conflict(path, "is not what you read", version_of(self._files[name].data))


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)
