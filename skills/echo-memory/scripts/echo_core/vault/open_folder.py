"""One open folder: every call on a name in it goes through its descriptor, so no swapped link can redirect it."""
from __future__ import annotations

import errno
import os
import stat
from types import TracebackType
from typing import List, Optional, Type

from echo_core.atomic import sync, sync_folder

DIR_FDS = os.open in os.supports_dir_fd and os.rename in os.supports_dir_fd and os.scandir in os.supports_fd
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# O_PATH asks only for the right to pass through a folder, not for the right to list it.
FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)


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
            return OpenFolder("", os.open(name, FOLDER | NO_FOLLOW, dir_fd=self.fd))
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
