"""Previews of the curating tools: a call tried without writing, and the token that ties apply to it (spec 3.2)."""
from __future__ import annotations

from typing import Any, List, Optional, Tuple, cast

from echo_context import Envelope, OpContext, bounded, decide
from echo_core.catalog.catalog import Catalog
from echo_core.catalog.notebytes import decode
from echo_core.errors import InvalidArgument
from echo_core.vault.preview import Change, PreviewVault
from echo_edits import diff_of

PLAN_CHARS = 20000
"""Longest diffs of one plan together; shared out among its items."""
LEAST_CHARS = 600
"""Longest diff of one item however many there are."""


class _StillCatalog:
    """The catalog as it is: a preview's own writes do not reach it."""

    def __init__(self, inner: Catalog) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def touch(self, path: str, data: bytes) -> None:
        """Called for every edit; a preview has nothing to tell."""


def preview_context(ctx: OpContext) -> Tuple[OpContext, PreviewVault]:
    """A context in which edits of notes stay in memory, and the vault that holds them.

    For ops that edit notes only: the index, the lock and the history still belong to the real vault.
    """
    vault = PreviewVault(ctx.vault)
    catalog = cast(Catalog, _StillCatalog(ctx.catalog))
    return ctx.varied(vault=vault, catalog=catalog, refresh=_nothing, running=None, resumed=None), vault


def steady(ctx: OpContext) -> OpContext:
    """The context for the items of one batch, refreshed once here: own writes reach the catalog by themselves."""
    ctx.fresh()
    return ctx.varied(refresh=_nothing)


def diffs_of(changes: List[Change]) -> str:
    """One unified diff of all changes."""
    return "".join(
        diff_of(change.path, None if change.before is None else decode(change.before)[0], decode(change.after)[0])
        for change in changes
    )


def bounded_diff(diff: str, items: int) -> Envelope:
    """`{"diff"}`, and when it was cut to its share of PLAN_CHARS also `truncated` and `total_chars`."""
    return bounded("diff", diff, max(LEAST_CHARS, PLAN_CHARS // max(1, items)))


def refuse_stale(given: Optional[str], current: str, required: bool) -> Optional[Envelope]:
    """None when an apply may go on, else the `stale-preview` decision.

    given: the caller's token. current: the token a preview would answer with now. Raises InvalidArgument when a
    token is required and missing; one that was given always counts.
    """
    if not given:
        if required:
            raise InvalidArgument(
                "apply needs the preview_token of the preview",
                hint="Call without apply first, show the plan to the operator, then apply with its preview_token.",
                field="preview_token",
            )
        return None
    if given == current:
        return None
    return decide(
        "stale-preview",
        "Nothing was written: the proposals or what they are about changed since the preview. Preview again, "
        "show it to the operator, and apply with the new token.",
    )


def _nothing() -> None:
    """Stands for a refresh that has just been done."""
