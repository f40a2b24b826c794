"""How the vault behind the REST API spells a path: other case, other Unicode normal form (spec 2.3)."""
from __future__ import annotations

import threading
import unicodedata
from typing import Callable, Dict, List, NamedTuple, Optional

from echo_core.paths import case_key, parent

Lister = Callable[[str, float], Optional[List[str]]]


class Matches(NamedTuple):
    """What answers to a path but for case and normal form, spelled as in the vault.

    below_file: the path leads through a file.
    """

    files: List[str]
    folders: List[str]
    below_file: bool = False


class Spellings:
    """Remembers names that are not NFC in the vault, and looks for other spellings when a path is not there.

    list_raw: direct children of a folder as the vault spells them, those of folders ending in "/"; None when it is
    not there.
    """

    def __init__(self, list_raw: Lister) -> None:
        self._list_raw = list_raw
        self._lock = threading.Lock()
        self._raw: Dict[str, str] = {}

    def learn(self, raw: str) -> str:
        """The NFC path of a raw one, which is remembered when it differs."""
        path = nfc(raw)
        if path != raw or path in self._raw:
            with self._lock:
                self._raw[path] = raw
        return path

    def learn_children(self, folder: str, entries: List[str]) -> List[str]:
        """The NFC names of a raw folder's raw entries (those of folders still end in "/"), dot names left out."""
        below = f"{folder}/" if folder else ""
        shown = [entry for entry in entries if not entry.startswith(".")]
        for entry in shown:
            self.learn(below + entry.rstrip("/"))
        return [nfc(entry) for entry in shown]

    def spelled(self, path: str) -> str:
        """How the vault spells an NFC path, as far as is known."""
        return self._raw.get(path, path)

    def matches(self, path: str, until: float) -> Matches:
        """Look through the vault's listings: one request when the parent folder is there, else one a level."""
        folder = self.spelled(parent(path))
        entries = self._list_raw(folder, until)
        if entries is not None:
            return self._among(path, folder, entries)
        return self._descend(path, until)

    def _among(self, path: str, folder: str, entries: List[str]) -> Matches:
        wanted = case_key(path.rpartition("/")[2])
        same = [f"{folder}/{name}" if folder else name for name in entries if case_key(name.rstrip("/")) == wanted]
        for raw in same:
            self.learn(raw.rstrip("/"))
        return Matches(sorted(raw for raw in same if not raw.endswith("/")),
                       sorted(raw.rstrip("/") for raw in same if raw.endswith("/")))

    def _descend(self, path: str, until: float) -> Matches:
        """Follow every spelling of each folder from the root."""
        segments = path.split("/")
        level = Matches([], [""])
        for number in range(len(segments)):
            prefix = "/".join(segments[:number + 1])
            if any(nfc(raw) == parent(prefix) for raw in level.files):
                return Matches([], [], below_file=True)
            found = [self._among(prefix, folder, self._list_raw(folder, until) or []) for folder in level.folders]
            level = Matches([raw for one in found for raw in one.files], [raw for one in found for raw in one.folders])
        return level


def nfc(text: str) -> str:
    """NFC, quickly for the usual name."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)
