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

from echo_core.atomic import sync, sync_folder
from echo_core.errors import InvalidPath

DIR_FDS = os.open in os.supports_dir_fd and os.rename in os.supports_dir_fd and os.scandir in os.supports_fd
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
MAX_LINKS = 16
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# O_PATH asks only for the right to pass through a folder, not for the right to list it.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)


class LinkMet(Exception):
    """A symbolic link stands at `segments`; `rest` is what was still to be walked."""

    def __init__(self, segments: Sequence[str], rest: Sequence[str]) -> None:
        super().__init__("/".join(segments))
        self.segments = list(segments)
        self.rest = list(rest)


class OpenFolder:
    """One open folder and the calls that act on names directly in it; every one raises OSError."""

    def __init__(self, path: str, fd: Optional[int]) -> None:
        """path: its host path, used only when there is no descriptor `fd`."""
        self.path = path
        self.fd = fd

    def __enter__(self) -> "OpenFolder":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        """Give the descriptor back; once is enough, more is harmless."""
        fd, self.fd = self.fd, None
        if fd is not None:
            os.close(fd)

    def _at(self, name: str) -> str:
        return name if self.fd is not None else os.path.join(self.path, name)

    def child(self, name: str) -> "OpenFolder":
        """The sub-folder `name`; NotADirectoryError for a file and for a link."""
        if self.fd is not None:
            return OpenFolder("", os.open(name, _FOLDER | NO_FOLLOW, dir_fd=self.fd))
        if not stat.S_ISDIR(self.lstat(name).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder")
        return OpenFolder(self._at(name), None)

    def lstat(self, name: str) -> os.stat_result:
        """Facts of the name itself, a link not followed."""
        return os.stat(self._at(name), dir_fd=self.fd, follow_symlinks=False)

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """A descriptor of the file `name`, never through a link."""
        if self.fd is None and os.path.islink(self._at(name)):
            raise OSError(errno.ELOOP, "a link")
        return os.open(self._at(name), flags | NO_FOLLOW, mode, dir_fd=self.fd)

    def entries(self) -> List["os.DirEntry[str]"]:
        """What is in the folder; `stat` of an entry works as long as the folder is open."""
        if self.fd is None:
            with os.scandir(self.path) as found:
                return list(found)
        fd = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.fd)
        # The entries stat themselves relative to the descriptor that listed them, so this folder takes it over.
        os.close(self.fd)
        self.fd = fd
        with os.scandir(fd) as found:
            return list(found)

    def names(self) -> List[str]:
        """The names in the folder."""
        if self.fd is None:
            return os.listdir(self.path)
        fd = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.fd)
        try:
            return os.listdir(fd)
        finally:
            os.close(fd)

    def make(self, name: str) -> None:
        """Make the sub-folder `name` durably, owned like this one when we are root; no matter if it is there."""
        try:
            os.mkdir(self._at(name), dir_fd=self.fd)
        except FileExistsError:
            return
        if ROOT:
            above = self.facts()
            os.chown(self._at(name), above.st_uid, above.st_gid, dir_fd=self.fd, follow_symlinks=False)
        self.sync()

    def facts(self) -> os.stat_result:
        """Facts of the folder itself."""
        return os.stat(self.path) if self.fd is None else os.fstat(self.fd)

    def rename(self, name: str, target: "OpenFolder", new_name: str) -> None:
        """Put the file `name` at `new_name` of `target`, over whatever is there."""
        os.replace(self._at(name), target._at(new_name), src_dir_fd=self.fd, dst_dir_fd=target.fd)

    def link(self, name: str, target: "OpenFolder", new_name: str) -> None:
        """Give the file `name` a second name; FileExistsError when that is taken."""
        if self.fd is None:
            os.link(self._at(name), target._at(new_name))
        else:
            os.link(name, new_name, src_dir_fd=self.fd, dst_dir_fd=target.fd, follow_symlinks=False)

    def unlink(self, name: str) -> None:
        """Remove the file `name`."""
        os.unlink(self._at(name), dir_fd=self.fd)

    def may_write(self, name: str) -> bool:
        """Whether the file's own permissions let us write it (a rename would not ask them)."""
        return os.access(self._at(name), os.W_OK, dir_fd=self.fd)

    def sync(self) -> None:
        """Make the names in this folder durable, as far as its file system can do that at all."""
        try:
            if self.fd is None:
                sync_folder(self.path)
            else:
                self._sync_descriptor()
        except OSError as error:
            # Network and FUSE file systems answer so for every folder; theirs is then the server's duty.
            if error.errno not in (errno.EINVAL, errno.EACCES, errno.EBADF, errno.EOPNOTSUPP):
                raise

    def _sync_descriptor(self) -> None:
        fd = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.fd)
        try:
            sync(fd)
        finally:
            os.close(fd)


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
            return OpenFolder(self.root, os.open(self.root, _FOLDER))
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
