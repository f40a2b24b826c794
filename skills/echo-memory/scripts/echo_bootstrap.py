"""Setting a vault up: every file the layout needs, the marker last (spec 2.1)."""
from __future__ import annotations

from typing import NamedTuple, Optional

from echo_context import Envelope, OpContext, ok
from echo_core import frontmatter
from echo_core.errors import Conflict, Misconfigured, NotFound
from echo_core.kinds import INDEX, MARKER, ROUTES
from echo_core.locks import LockHeld
from echo_core.routing import RouteMap
from echo_core.vault.base import edit
from echo_edits import edit_note, read_text
from echo_starters import SCHEMA_VERSION, STARTERS, marker_text, starter_text


class Created(NamedTuple):
    """What became of one file: whether it was made now, and what is to be said about it ("" for nothing)."""

    path: str
    created: bool
    warning: str = ""


def bootstrap_op(*, ctx: OpContext) -> Envelope:
    """Create what the layout needs and the vault lacks; nothing that is there is changed.

    May be run again after a crash at any step: the marker is written last, so a vault that has one is complete.
    Returns `created` and `kept` (paths), `schema_version`, and `action` created or unchanged. Raises
    Misconfigured when the vault's format is newer than this program, and the vault's errors.
    """
    version = schema_version(ctx)
    refuse_newer(version)
    ctx.vault.check()
    made = [create_one(path, ctx) for path in (*STARTERS, ROUTES, INDEX, MARKER)]
    warnings = [row.warning for row in made if row.warning]
    if version is not None and version < SCHEMA_VERSION:
        warnings.append(f"the vault has schema version {version}; `migrate` shows what would change")
    created = [row.path for row in made if row.created]
    return ok(
        "created" if created else "unchanged", warnings=warnings, created=created,
        kept=[row.path for row in made if not row.created],
        schema_version=SCHEMA_VERSION if version is None else version,
    )


def create_one(path: str, ctx: OpContext) -> Created:
    """Make one file of the layout (a starter note, the route map, the index, the marker) unless it is there.

    A file whose name differs only in case or accents counts as there.
    """
    try:
        if path == INDEX:
            return _create_index(ctx)
        if path == ROUTES:
            routes = RouteMap.load(None).dump()
            return Created(path, edit(ctx.vault, path, lambda before: routes if before is None else before).changed)
        text = marker_text(ctx.clock) if path == MARKER else starter_text(path, ctx.clock, ctx.owner)
        return Created(path, edit_note(ctx, path, lambda before: text if before is None else before).changed)
    except Conflict as taken:
        return Created(path, False, taken.message)


def _create_index(ctx: OpContext) -> Created:
    try:
        return Created(INDEX, not has_file(INDEX, ctx) and ctx.index.update(lambda index: None))
    except LockHeld as held:
        return Created(
            INDEX, False, f"the index is locked by {held.holder} until {held.expires}; it follows with the next write"
        )


def has_file(path: str, ctx: OpContext) -> bool:
    """Whether the vault holds this file."""
    try:
        ctx.vault.stat(path)
    except NotFound:
        return False
    return True


def schema_version(ctx: OpContext) -> Optional[int]:
    """The vault's schema version as its marker says; None without a marker, 0 when the marker does not say."""
    text = read_text(ctx, MARKER)
    if text is None:
        return None
    value = frontmatter.parse(text).values.get("schema_version")
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def refuse_newer(version: Optional[int]) -> None:
    """Raise Misconfigured when the vault's format is newer than this program knows."""
    if version is not None and version > SCHEMA_VERSION:
        raise Misconfigured(
            f"the vault has schema version {version}; this program knows {SCHEMA_VERSION}",
            hint="Update ECHO on this machine.", path=MARKER,
        )


def set_schema_version(ctx: OpContext) -> bool:
    """Bring the marker to the current schema version, making it when missing. Returns whether it changed."""
    def surgery(before: Optional[str]) -> str:
        if before is None:
            return marker_text(ctx.clock)
        return frontmatter.set_key(before, "schema_version", SCHEMA_VERSION)

    return edit_note(ctx, MARKER, surgery).changed
