"""What an OSError of a folder vault means to a caller (the table of `vault.base`)."""
from __future__ import annotations

import errno
from typing import Callable, Dict

from echo_core.errors import EchoError, InvalidPath, VaultAuth, VaultUnreachable
from echo_core.vault.refusals import missing

DISK_FULL = "disk-full"
"""The reason of a write that found no room; nothing was changed."""


def _unusable(path: str) -> EchoError:
    return InvalidPath(f"The file system refuses the name {path}", field="path")


def _full(path: str) -> EchoError:
    return VaultUnreachable(
        f"Could not write {path}: the disk is full", hint="Free some space; nothing was changed.",
        reason=DISK_FULL, path=path,
    )


def _read_only(path: str) -> EchoError:
    return VaultAuth(
        f"Could not write {path}: the vault is mounted read-only", hint="Mount it writable.",
        reason="read-only", path=path,
    )


def forbidden(path: str) -> EchoError:
    """The file permissions keep us out of `path`."""
    return VaultAuth(
        f"The file permissions do not allow access to {path or 'the vault'}",
        hint="Let the user that ECHO runs as read and write the vault.", reason="permission", path=path,
    )


def _evicted(path: str) -> EchoError:
    return VaultUnreachable(
        f"{path} is in the cloud only and is not on this machine", hint="Let the sync client download it.",
        reason="evicted", path=path,
    )


_MEANING: Dict[int, Callable[[str], EchoError]] = {
    errno.ENOENT: missing, errno.ENOTDIR: missing, errno.EISDIR: missing,
    errno.ENAMETOOLONG: _unusable, errno.EILSEQ: _unusable, errno.EINVAL: _unusable, errno.ELOOP: _unusable,
    errno.ENOSPC: _full, errno.EDQUOT: _full, errno.EFBIG: _full,
    errno.EROFS: _read_only,
    errno.EACCES: forbidden, errno.EPERM: forbidden,
    errno.EDEADLK: _evicted,
}


def translate(error: OSError, path: str) -> EchoError:
    """The EchoError for what the system said about the vault-relative `path`; never names a host path."""
    meaning = _MEANING.get(error.errno or 0)
    if meaning is not None:
        return meaning(path)
    name = errno.errorcode.get(error.errno or 0, "unknown").lower()
    return VaultUnreachable(f"The vault failed at {path or 'its root'} ({name})", reason=name, path=path)
