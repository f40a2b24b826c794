"""Which writes have to keep their order: those of one note (spec 6.2, one client's writes to one note)."""
from __future__ import annotations

from typing import Any, FrozenSet, Iterator, Mapping, Optional, Set

from echo_context import OpContext
from echo_core.errors import EchoError
from echo_core.kinds import INBOX, SCOPE
from echo_core.names import Match
from echo_core.text import fold
from echo_queue_rows import First

_NAMES = frozenset({"path", "new_path", "title", "a", "b", "slug", "merge_into", "supersedes"})
"""Arguments that name a note, at any depth."""
_OWN: Mapping[str, str] = {"echo_set_scope": SCOPE, "echo_triage_inbox": INBOX}
"""Tools that write a note which no argument names."""


def notes_of(tool: str, arguments: Mapping[str, Any], ctx: OpContext, first: Optional[First] = None) -> FrozenSet[str]:
    """The notes a write is about: paths of those that are known, folded names of others.

    Asks nothing of the vault. first: the first write, when the op has begun.
    """
    found: Set[str] = {_note(name, ctx) for name in _named(arguments)}
    if tool in _OWN:
        found.add(_OWN[tool])
    if tool == "echo_capture" and not arguments.get("kind") and not arguments.get("merge_into"):
        found.add(INBOX)
    if first is not None:
        found.add(first.path)
    return frozenset(found) or frozenset({tool})


def _named(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key in _NAMES and isinstance(inner, str) and inner.strip():
                yield inner
            else:
                yield from _named(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _named(inner)


def _note(name: str, ctx: OpContext) -> str:
    try:
        meant = ctx.known.names.resolve(name)
    except EchoError:
        meant = None
    return meant.path if isinstance(meant, Match) else fold(name)
