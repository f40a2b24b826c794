"""Recall: the few passages that answer, in one right-sized answer, or nothing (spec 3.2, 5.4)."""
from __future__ import annotations

import difflib
import unicodedata
from typing import TYPE_CHECKING, Any, Dict, List, Sequence, Tuple

from echo_context import Envelope, OpContext, ok
from echo_core.catalog.note import NoteFacts
from echo_core.catalog.notebytes import displayable
from echo_core.errors import InvalidArgument, VaultUnreachable
from echo_core.kinds import KINDS, OWN_TYPES, is_searchable, kind_of
from echo_core.text import plural, suspicious_unicode

if TYPE_CHECKING:  # loaded by the first call that searches: most command lines search nothing
    from echo_core.recall.packing import Candidate
    from echo_core.recall.search import Hit, SearchIndex

LINKED_SHARE = 0.25
"""Share of the budget the linked notes may take, so that they never crowd out what answers."""
MOST_LINKED = 6
MOST_KINDS = 40
"""Most kinds a refusal names: a vault's own `type` words may be many."""
HEADROOM = 0.85
"""Share of the budget packing may fill: the text rendering of a hit is a little longer than its JSON."""


def recall_op(
    query: str, limit: int = 6, include_linked: bool = True, budget_chars: int = 4000, kinds: Sequence[str] = (),
    since: str = "", until: str = "", explain: bool = False, *, ctx: OpContext,
) -> Envelope:
    """Find passages.

    `primary`: best first, each `{path, title, kind, score, updated, status, heading, line, excerpt, truncated,
    version}`, `superseded_by` where a newer note replaces it; [] when nothing fits. `linked`: notes linked with
    them. Both together stay within `budget_chars` as compact JSON. score: 0 to 1, the best hit of an answer is
    near how much of the question it covers. kinds: of the layout, or words that notes of this vault have as `type`.
    Raises InvalidArgument for a query without a letter or digit and for a kind of neither sort, and vault errors when
    the vault was never read.
    """
    from echo_core.recall.packing import json_size, pack

    if not any(unicodedata.category(char)[0] in "LN" for char in query):
        raise InvalidArgument("query holds no word to look for", hint="Ask with at least one word.", field="query")
    ctx.fresh()
    away = ctx.offline is not None
    search = ctx.feed.gather() if away else ctx.feed.catch_up()
    if away and not len(search):  # not to be taken for a memory in which nothing fits
        raise VaultUnreachable("the vault is away, and the text of no note is kept", reason="not-kept")
    building = _building(ctx)
    known, warnings = _known_kinds(kinds, search, bool(building))
    hits, wanted = ctx.feed.find(query, away, limit=limit, kinds=known, since=since or "", until=until or "")
    building = building or _building(ctx)
    hits = [hit for hit in hits if not ctx.catalog.is_gone(hit.path)]
    linked = _linked(hits, ctx) if include_linked else []
    budget = int(budget_chars * HEADROOM)
    linked = _within(linked, int(budget * LINKED_SHARE))
    primary = pack(_candidates(hits, explain), wanted, budget - (json_size(linked) if linked else 0))
    return ok(
        query=query, primary=primary, linked=linked, mode="keyword", quoted=True, searched=len(search),
        more=len(hits) - len(primary) or None, suspicious_unicode=_suspicious(primary) or None,
        hint=None if primary else _nothing(kinds, since, until, len(search)),
        warnings=warnings + _blind_spots(ctx), **building,
    )


def _known_kinds(asked: Sequence[str], search: SearchIndex, building: bool) -> Tuple[List[str], List[str]]:
    """The kinds as the notes spell them, and warnings; a word that no note can have is refused with the real ones.

    building: not all notes are known yet, so that a word nobody has used may still turn up: it is a warning then.
    """
    asked = [kind for kind in asked if kind]
    known = list(dict.fromkeys((*KINDS, *OWN_TYPES, *sorted(search.kinds())))) if asked else []
    wanted: List[str] = []
    warnings: List[str] = []
    for number, kind in enumerate(asked):
        meant = [name for name in known if name.casefold() == kind.casefold()]
        if not meant and not building:
            raise _no_such_kind(f"kinds[{number}]", kind, known)
        if not meant:
            warnings.append(f"kinds[{number}] is the kind of no note read so far")
        wanted += meant or [kind]
    return wanted, warnings


def _no_such_kind(field: str, kind: str, known: Sequence[str]) -> InvalidArgument:
    allowed = [displayable(name)[:40] for name in known[:MOST_KINDS]]
    near = difflib.get_close_matches(kind.casefold(), allowed, n=1)
    return InvalidArgument(
        f"{field} is no kind of note in this vault",
        hint=(f"Did you mean {near[0]}? " if near else "") + f"Kinds: {', '.join(allowed)}.", field=field,
        allowed=allowed,
    )


def _candidates(hits: Sequence[Hit], explain: bool) -> List[Candidate]:
    from echo_core.recall.packing import Candidate

    best = max((hit.score for hit in hits), default=1.0) or 1.0
    found = []
    for hit in hits:
        note = hit.note
        fields: Dict[str, Any] = {
            "path": displayable(note.path), "title": note.title, "kind": note.kind,
            "score": round(hits[0].coverage * hit.score / best, 3), "updated": note.updated, "status": note.status,
            "version": note.version,
        }
        if note.superseded_by:
            fields["superseded_by"] = note.superseded_by
        if explain:
            fields["parts"] = {name: round(value, 3) for name, value in hit.parts.items()}
            fields["parts"]["coverage"] = round(hit.coverage, 3)
        found.append(Candidate(fields, hit.passage, hit.score, note.chars, hit.words))
    return found


def _row(facts: NoteFacts) -> Dict[str, Any]:
    return {"path": displayable(facts.path), "title": displayable(facts.title),
            "kind": kind_of(facts.path) or facts.kind}


def _linked(hits: Sequence[Hit], ctx: OpContext) -> List[Dict[str, Any]]:
    """Neighbours of the hits over links and backlinks, those that touch most hits first, never a hit itself."""
    own = {hit.path for hit in hits}
    touches: Dict[str, float] = {}
    for hit in hits:
        for path in _neighbours(hit.path, ctx):
            if path not in own and is_searchable(path):
                touches[path] = touches.get(path, 0.0) + 1.0 + hit.coverage / 10
    ranked: List[Tuple[float, str]] = sorted((-weight, path) for path, weight in touches.items())
    rows = []
    for _weight, path in ranked[:MOST_LINKED]:
        facts = ctx.catalog.facts(path)
        if facts is not None:
            rows.append(_row(facts))
    return rows


def _neighbours(path: str, ctx: OpContext) -> List[str]:
    facts = ctx.catalog.facts(path)
    meant = [ctx.catalog.resolve_link(target, path) for target in (facts.links if facts else [])]
    return list(dict.fromkeys([*(found for found in meant if isinstance(found, str)), *ctx.catalog.backlinks(path)]))


def _within(rows: List[Dict[str, Any]], budget: int) -> List[Dict[str, Any]]:
    from echo_core.recall.packing import json_size

    while rows and json_size(rows) > budget:
        rows = rows[:-1]
    return rows


def _suspicious(primary: Sequence[Dict[str, Any]]) -> int:
    return sum(suspicious_unicode(hit["excerpt"]) for hit in primary)


def _nothing(kinds: Sequence[str], since: str, until: str, searched: int) -> str:
    filters = [f"kinds {', '.join(kinds)}" if kinds else "", f"since {since}" if since else "",
               f"until {until}" if until else ""]
    within = "; ".join(word for word in filters if word)
    return f"Nothing fits in {plural(searched, 'note')}" + (f" with {within}." if within else ".")


def _building(ctx: OpContext) -> Dict[str, Any]:
    """`index: building` and the share that is searchable, while the vault is read for the first time."""
    if ctx.offline is not None:
        return {}
    if ctx.catalog.refreshes() and not ctx.feed.building():
        return {}
    return {"index": "building", "coverage": round(ctx.feed.coverage(), 2)}


def _blind_spots(ctx: OpContext) -> List[str]:
    """An unreadable place is not an empty one: say what could not be looked at."""
    unread = [path for path in ctx.catalog.problems() if (record := ctx.catalog.record(path)) and not record.version]
    unread = sorted({*unread, *ctx.feed.missed()})
    blind = []
    unkept = sum(map(is_searchable, ctx.catalog.paths())) - len(ctx.feed.search) if ctx.offline is not None else 0
    if unkept > 0:
        blind.append(f"not searched, since the text is not kept: {plural(unkept, 'note')}")
    for why, places in (("not searched, since it cannot be read", [*ctx.catalog.unreadable(), *unread]),
                        ("searched only in its first part, since it is very long", ctx.feed.search.cut())):
        if places:
            blind.append(f"{why}: {', '.join(places[:3])}" + (" and more" if places[3:] else ""))
    return blind
