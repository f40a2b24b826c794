"""Room on the disk: asked for before something is written, and never taken to the last byte."""
from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator

from echo_core.errors import StorageFailed

RESERVE = 32 * 1024 * 1024
RESERVE_SHARE = 0.05
"""What stays free, in bytes, or this share of a small disk: the memory itself goes on when a backup finds no room."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def require(folder: str, needed: int, what: str) -> None:
    """Raise StorageFailed unless `needed` bytes and the reserve are free where `folder` is. what: who needs them."""
    disk = shutil.disk_usage(folder)
    needed += int(min(RESERVE, RESERVE_SHARE * disk.total))
    if disk.free < needed:
        raise StorageFailed(
            f"{what} needs {megabytes(needed)} of free space and there are {megabytes(disk.free)}",
            hint="Free some space; what is there was left as it is.", reason="disk-full",
        )


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Turn an OSError about our own files into StorageFailed, which names no path of the host."""
    try:
        yield
    except OSError as failure:
        if failure.errno in _FULL:
            raise StorageFailed("The disk became full", hint="Free some space; what was there before is untouched.",
                                reason="disk-full") from None
        why = os.strerror(failure.errno or 0).lower()
        raise StorageFailed(f"A file of the backup cannot be used ({why})", reason="unusable",
                            hint="Check the disk, and who may write to the folder.") from None


def megabytes(size: int) -> str:
    """A size for people: `12 kB`, `3.4 MB`, `2.1 GB`."""
    for limit, unit in ((1e9, "GB"), (1e6, "MB")):
        if size >= limit:
            return f"{size / limit:,.1f} {unit}"
    return f"{max(size, 0) / 1000:,.0f} kB"
