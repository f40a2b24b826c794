"""Take in single notes that another program has just changed, without a walk over the vault."""
from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from echo_context import OpContext
from echo_core.errors import EchoError, NotFound
from echo_core.paths import is_note
from echo_core.vault.base import version_of

MOST = 50
"""Notes taken in one by one; with more at once a walk is the shorter way."""
OWN = "_agent/"
"""Where ECHO keeps files that are no notes (index, locks); its own writes there are no news."""


def take_in(paths: Iterable[str], ctx: OpContext) -> bool:
    """Bring catalog and search index up to the named files; whether nothing is left for a walk to find.

    paths: vault-relative. Folders, attachments and trouble of any kind are left to the walk.
    """
    named = {unicodedata.normalize("NFC", path) for path in paths}
    notes = sorted(path for path in named if is_note(path))
    rest = [path for path in named if not is_note(path) and not path.startswith(OWN)]
    if rest or len(notes) > MOST:
        return False
    try:
        for path in notes:
            _note(path, ctx)
    except EchoError:
        return False
    return True


def _note(path: str, ctx: OpContext) -> None:
    if _is_known(path, ctx):
        return  # most news are of our own writes, and nobody has to wait until that is found out
    # No ECHO writer can come between reading and telling: an older text never replaces a newer one.
    with ctx.vault.exclusive(path):
        try:
            data = ctx.vault.read(path)
        except NotFound:
            ctx.catalog.forget(path)
            return
        if not _holds(path, data, ctx):
            ctx.catalog.touch(path, data)


def _is_known(path: str, ctx: OpContext) -> bool:
    try:
        return _holds(path, ctx.vault.read(path), ctx)
    except NotFound:
        return False


def _holds(path: str, data: bytes, ctx: OpContext) -> bool:
    """Whether the catalog knows the note as these bytes."""
    known = ctx.catalog.record(path)
    return known is not None and known.version == version_of(data)
