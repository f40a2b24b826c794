"""Opening files below one folder so that no link leads out of it, however fast somebody swaps things.

Each segment is opened relative to the open folder above it and never through a link. A link that is met is resolved
on paper; when its target lies inside, the walk starts again from the root on the target's own path, under the same
rule. So a race can make a walk fail but cannot carry it outside. Where the platform cannot open relative to a folder
(Windows), the same walk runs on full paths and checks for links right before each step.
"""
from __future__ import annotations

import errno
import os
import stat
import unicodedata
from types import TracebackType
from typing import List, NamedTuple, Optional, Sequence, Tuple, Type

from echo_core.errors import InvalidPath
from echo_core.vault.open_folder import DIR_FDS, FOLDER, OpenFolder

MAX_LINKS = 16


class LinkMet(Exception):
    """A symbolic link stands at `segments`; `rest` is what was still to be walked."""

    def __init__(self, segments: Sequence[str], rest: Sequence[str]) -> None:
        super().__init__("/".join(segments))
        self.segments = list(segments)
        self.rest = list(rest)


class Place(NamedTuple):
    """Where a path leads: the open folder, the name in it, its facts (None: nothing is there yet)."""

    folder: OpenFolder
    name: str
    facts: Optional[os.stat_result]

    def __enter__(self) -> "Place":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.folder.close()

    @property
    def is_file(self) -> bool:
        """Whether an ordinary file is there (not a folder, device or pipe)."""
        return self.facts is not None and stat.S_ISREG(self.facts.st_mode)


class Below:
    """Finds places below the folder `root` (a host path, which may itself be a link)."""

    def __init__(self, root: str, dir_fds: bool = DIR_FDS) -> None:
        self.root = root
        self.dir_fds = dir_fds

    def open_root(self) -> OpenFolder:
        """The root itself; OSError when it is not there or not a folder."""
        if self.dir_fds:
            return OpenFolder(self.root, os.open(self.root, FOLDER))
        if not stat.S_ISDIR(os.stat(self.root).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder")
        return OpenFolder(self.root, None)

    def folder(self, path: str) -> OpenFolder:
        """The open folder at a checked path, "" for the root; OSError or InvalidPath."""
        segments = path.split("/") if path else []
        for _ in range(MAX_LINKS):
            try:
                return self._descend(segments, make=False)
            except LinkMet as link:
                segments = self._inside(link.segments) + link.rest
        raise self._escapes(path)

    def place(self, path: str, make: bool = False) -> Place:
        """Where a checked path leads; the caller closes its folder. make: create missing folders on the way.

        Names match exactly or in the other Unicode normal form. Raises OSError when a folder is missing, and
        InvalidPath when a link leads out of the root or into a dot folder.
        """
        segments = path.split("/")
        for _ in range(MAX_LINKS):
            try:
                return self._place(segments, make)
            except LinkMet as link:
                segments = self._inside(link.segments) + link.rest
                if not segments:
                    break
        raise self._escapes(path)

    def _place(self, segments: List[str], make: bool) -> Place:
        folder = self._descend(segments[:-1], make, segments[-1:])
        try:
            name, facts = _look(folder, segments[-1])
            if facts is not None and stat.S_ISLNK(facts.st_mode):
                raise LinkMet(segments[:-1] + [name], [])
            return Place(folder, name, facts)
        except BaseException:
            folder.close()
            raise

    def _descend(self, segments: List[str], make: bool, after: Sequence[str] = ()) -> OpenFolder:
        """Open the folders one below the other. after: what the caller still wants below the last one."""
        folder = self.open_root()
        try:
            for depth, segment in enumerate(segments):
                below = self._step(folder, segments[:depth], segment, segments[depth + 1:] + list(after), make)
                folder.close()
                folder = below
        except BaseException:
            folder.close()
            raise
        return folder

    def _step(self, folder: OpenFolder, above: List[str], segment: str, rest: List[str], make: bool) -> OpenFolder:
        try:
            return folder.child(segment)
        except FileNotFoundError:
            name, facts = _look(folder, segment)
            if facts is None and not make:
                raise
        except OSError as error:
            # Linux says "not a folder" of a link here, other systems say "a link".
            if error.errno not in (errno.ENOTDIR, errno.ELOOP, getattr(errno, "EMLINK", 0)):
                raise
            if not stat.S_ISLNK(folder.lstat(segment).st_mode):
                raise
            raise LinkMet(above + [segment], rest) from None
        if facts is None:
            folder.make(name)
        return self._step(folder, above, name, rest, make=False)

    def _inside(self, segments: List[str]) -> List[str]:
        """The segments of a link's target below the root; InvalidPath when it leads elsewhere."""
        root = os.path.realpath(self.root)
        target = os.path.realpath(os.path.join(root, *segments))
        if target == root:
            return []
        below = os.path.join(root, "")
        if not os.path.normcase(target).startswith(os.path.normcase(below)):
            raise self._escapes("/".join(segments))
        parts = target[len(below):].split(os.sep)
        if any(part.startswith(".") for part in parts):
            raise self._escapes("/".join(segments))
        return parts

    def _escapes(self, path: str) -> InvalidPath:
        return InvalidPath(f"{path} is a link that leads out of the vault or into a hidden folder", field="path",
                           hint="Replace the link by the note itself.")


def _look(folder: OpenFolder, name: str) -> Tuple[str, Optional[os.stat_result]]:
    """How the folder spells `name` and its facts: as given, or in another normal form when just one does."""
    try:
        return name, folder.lstat(name)
    except FileNotFoundError:
        if name.isascii():
            return name, None
    same = [other for other in folder.names() if unicodedata.normalize("NFC", other) == name]
    return (same[0], folder.lstat(same[0])) if len(same) == 1 else (name, None)
