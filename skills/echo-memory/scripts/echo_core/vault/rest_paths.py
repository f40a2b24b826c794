"""How the vault behind the REST API spells a path: other case, other Unicode normal form (spec 2.3)."""
from __future__ import annotations

import threading
import time
import unicodedata
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Set

from echo_core.paths import case_key, parent

WALK_S = 90.0
"""How long the names that a walk saw serve; another program's new file may go unseen that long anyway."""
SHOWN_S = 1.0
"""How long a walk or a listing that showed something tells that the vault is loaded: Obsidian may be started anew. Once
it has not answered, it tells nothing any more."""
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

    What a walk saw serves for WALK_S, own writes included, so that a creation needs no listings. list_raw: direct
    children of a folder as the vault spells them, those of folders ending in "/"; None when it is not there. breaks:
    grows whenever the vault has not answered; what was seen before serves no longer.
    """

    def __init__(self, list_raw: Lister, breaks: Callable[[], int]) -> None:
        self._list = list_raw
        self._breaks = breaks
        self._breaks_seen = 0
        self._loaded_until = float("-inf")
        self._lock = threading.Lock()
        self._raw: Dict[str, str] = {}
        self._files: Dict[str, Set[str]] = {}
        self._folders: Dict[str, Set[str]] = {}
        self._walked_at = -WALK_S

    def walked(self, paths: Iterable[str]) -> None:
        """A walk saw exactly these files (NFC)."""
        self._distrust_after_break()
        with self._lock:
            self._files, self._folders = {}, {}
            for path in paths:
                self._add(path)
            self._walked_at = time.monotonic()
            if self._files:
                self._loaded_until = self._walked_at + SHOWN_S

    def shows_something(self, until: float) -> bool:
        """Whether the vault shows any file: as of a walk or a listing of late, else asked of its root."""
        self._distrust_after_break()
        return time.monotonic() < self._loaded_until or bool(self._list_raw("", until))

    def _list_raw(self, folder: str, until: float) -> Optional[List[str]]:
        entries = self._list(folder, until)
        if entries:
            self._loaded_until = max(self._loaded_until, time.monotonic() + SHOWN_S)
        return entries

    def _distrust_after_break(self) -> None:
        """Forget how fresh the names are when the vault has been away since: Obsidian may have been started anew."""
        breaks = self._breaks()
        if breaks != self._breaks_seen:
            self._breaks_seen = breaks
            self._loaded_until, self._walked_at = float("-inf"), -WALK_S

    def made(self, path: str) -> None:
        """We have just created this file."""
        with self._lock:
            self._add(path)

    def gone(self, path: str) -> None:
        """We have just removed this file; its folder may be gone or not."""
        with self._lock:
            self._files.get(case_key(path), set()).discard(path)
            self._walked_at = -WALK_S

    def _add(self, path: str) -> None:
        self._files.setdefault(case_key(path), set()).add(path)
        folder = parent(path)
        while folder and folder not in self._folders.setdefault(case_key(folder), set()):
            self._folders[case_key(folder)].add(folder)
            folder = parent(folder)

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
        """Ask the last walk, else the vault's listings: one request when the parent is there, else one a level."""
        self._distrust_after_break()
        if time.monotonic() - self._walked_at < WALK_S:
            return self._remembered(path)
        folder = self.spelled(parent(path))
        entries = self._list_raw(folder, until)
        if entries is not None:
            return self._among(path, folder, entries)
        return self._descend(path, until)

    def _remembered(self, path: str) -> Matches:
        with self._lock:
            files, folders = (kind.get(case_key(path), ()) for kind in (self._files, self._folders))
            above, below_file = parent(path), False
            while above and not below_file:
                below_file = above in self._files.get(case_key(above), ())
                above = parent(above)
            return Matches(sorted(map(self.spelled, files)), sorted(map(self.spelled, folders)), below_file)

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
