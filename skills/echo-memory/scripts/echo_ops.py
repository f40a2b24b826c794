"""The default write and its neighbours: capture, resolve, link (spec 3.2)."""
from __future__ import annotations

from typing import AbstractSet, Any, Dict, FrozenSet, List, Optional, Sequence, Tuple

from echo_capture import Capture, checked, free_path, look_for_duplicates, merged_text, new_text, says_it_all
from echo_context import Envelope, OpContext, decide, ok
from echo_core import frontmatter, markdown
from echo_core.catalog.note import facts, new_note
from echo_core.clock import parse_period
from echo_core.errors import Conflict, InvalidArgument, TooLarge
from echo_core.kinds import INBOX, is_entity, kind_of
from echo_core.markdown.links import related_line, wikilink
from echo_core.names import Match
from echo_core.text import one_line, slug
from echo_core.vault.base import MAX_RACES, version_of
from echo_edits import edit_note, index_notes, line_under, log_in_day_note, must_exist, read_bytes, read_text, tried
from echo_notes import writable_note
from echo_starters import starter_text

LINE_BYTES = 16 * 1024
RELATED = "Related"
_NAMES = "_agent/names"
"""No file: whoever creates a note holds this place, so that two of one name never pass the gate at once."""
GATE_HINT = (
    "Nothing was written. If it is the same thing, call again with merge_into set to the candidate's slug; "
    "if the operator says it is another one, call again with force: true. Do not repeat the call unchanged."
)


def resolve_op(mention: str, *, ctx: OpContext) -> Envelope:
    """Which note a name means.

    `match: true` with slug, path, kind, title, aliases; or `match: false` with `suggest_slug` and `candidates`;
    or `ambiguous: true` with candidates. Raises vault errors only.
    """
    ctx.fresh()
    meant = ctx.names.resolve(mention)
    if isinstance(meant, Match):
        return ok(match=True, slug=meant.slug, path=meant.path, kind=meant.kind, title=meant.title,
                  aliases=list(meant.aliases))
    if meant is None:
        return ok(match=False, suggest_slug=slug(mention), candidates=ctx.names.candidates(mention))
    return ok(match=False, ambiguous=True, candidates=meant.candidates, suggest_slug=slug(mention))


def capture_op(
    title: str, kind: str = "", body: str = "", tags: Sequence[str] = (), aliases: Sequence[str] = (),
    sources: Sequence[str] = (), status: str = "", date: str = "", domain: str = "", period: str = "",
    supersedes: str = "", merge_into: str = "", force: bool = False, dry_run: bool = False, *, ctx: OpContext,
) -> Envelope:
    """Remember one thing in the right place, once.

    `action` created, updated (merged), inbox, unchanged, or the duplicate gate with `candidates` and nothing
    written. `dry_run` answers `action: preview` with what it `would` do and the diff of the note. Edits no note but
    the target, a note it supersedes, the index and the day note. Raises InvalidArgument, SecretSuspected,
    ActiveContent, NotFound, Ambiguous, Conflict and vault errors.
    """
    wanted = checked(title, kind, body or "", tags, aliases, sources, status, date, domain, "", ctx)
    ctx.fresh()
    old = writable_note(supersedes, ctx, "supersedes") if supersedes else ""
    if kind == "rollup":
        return _capture_rollup(wanted, period, dry_run, ctx)
    if period:
        raise InvalidArgument("period belongs to kind rollup", hint="Drop it, or set kind: rollup.", field="period")
    if merge_into:
        return _merge(wanted, writable_note(merge_into, ctx, "merge_into"), dry_run, ctx)
    if not kind:
        return _capture_line(wanted, dry_run, ctx)
    return _create(Capture(**{**wanted.__dict__, "supersedes": old}), force, dry_run, ctx)


def _create(wanted: Capture, force: bool, dry_run: bool, ctx: OpContext) -> Envelope:
    """Gate, then create; somebody else taking the path in between means looking again."""
    made = _made_before(wanted, ctx)
    if made:
        return _created(wanted, made, version_of(ctx.vault.read(made)), [], [], ctx)
    for _attempt in range(MAX_RACES):
        namesakes = ctx.catalog.named(wanted.keys)
        found = look_for_duplicates(wanted, ctx)
        if found.same:
            return _already_there(found.same, dry_run, ctx)
        if _forget_gone(found.gate, ctx):
            continue
        if found.gate and not force:
            return decide("duplicate-gate", GATE_HINT, candidates=found.gate, title=wanted.title, kind=wanted.kind)
        path = free_path(wanted, ctx)
        text, added = new_text(wanted, path, ctx)
        if dry_run:
            return tried("create", path, None, text, links_added=added, near_duplicates=found.near or None)
        try:
            version = version_of(_write_new(ctx, path, text, wanted.keys, namesakes))
        except Conflict:
            if ctx.catalog.taken(path) is None:
                ctx.catalog.refresh()
            continue
        return _created(wanted, path, version, added, found.near, ctx)
    raise Conflict(f"{path} was written by somebody else again and again", hint="Call again in a moment.", path=path)


def _forget_gone(gate: List[Dict[str, Any]], ctx: OpContext) -> bool:
    """Let go of look-alikes that somebody has removed since they were last seen; whether there were any."""
    gone = [str(row["path"]) for row in gate if ctx.vault.is_gone(str(row["path"]))]
    for path in gone:
        ctx.catalog.forget(path)
    return bool(gone)


def _made_before(wanted: Capture, ctx: OpContext) -> str:
    """The note that an earlier run of this op, which broke off, made of the capture; "" for none."""
    made = ctx.resumed.created() if ctx.resumed else []
    return next((path for path in made if kind_of(path) == wanted.kind and says_it_all(path, wanted, ctx)), "")


def _already_there(path: str, dry_run: bool, ctx: OpContext) -> Envelope:
    """Nothing to write, but a note whose first capture broke off before the index step gets its entry now."""
    missing = is_entity(path) and not ctx.names.slug_of(path)
    warnings = index_notes(ctx, [path]) if missing and not dry_run else []
    return ok("unchanged", path=path, slug=ctx.names.slug_of(path), hint="The note already says all of this.",
              dry_run=dry_run or None, warnings=warnings)


def _write_new(
    ctx: OpContext, path: str, text: str, keys: FrozenSet[str] = frozenset(), namesakes: AbstractSet[str] = frozenset()
) -> bytes:
    """Create the note at `path`; Conflict when somebody else did first, or other notes than `namesakes` have its keys.
    """
    def surgery(before: Optional[str]) -> str:
        if before is not None or ctx.catalog.named(keys) != namesakes:
            raise Conflict(f"there is already a note {path}", path=path)
        return text

    with ctx.vault.exclusive(path, _NAMES):
        return edit_note(ctx, path, surgery).after


def _created(
    wanted: Capture, path: str, version: str, added: List[str], near: List[Dict[str, Any]], ctx: OpContext
) -> Envelope:
    warnings = index_notes(ctx, [path])
    if wanted.supersedes:
        warnings += _stamp_superseded(wanted, path, ctx)
    log_in_day_note(ctx, f"captured {wanted.kind} {wikilink(path, wanted.title)}")
    return ok("created", path=path, slug=ctx.names.slug_of(path), version=version, links_added=added,
              near_duplicates=near or None, warnings=warnings)


def _stamp_superseded(wanted: Capture, path: str, ctx: OpContext) -> List[str]:
    """Mark the older note with the one that replaces it; a malformed one stays as it is, with a warning."""
    old = wanted.supersedes

    def surgery(text: Optional[str]) -> str:
        note = must_exist(old, text, ctx)
        if frontmatter.parse(note).malformed:
            return note
        return frontmatter.set_key(note, "superseded_by", wikilink(path, wanted.title))

    edited = edit_note(ctx, old, surgery)
    return [] if edited.changed else [f"{old} could not be marked as superseded: its frontmatter does not parse"]


def _merge(wanted: Capture, path: str, dry_run: bool, ctx: OpContext) -> Envelope:
    """Add the capture to an existing note."""
    outcome: Tuple[List[str], List[str]] = ([], [])

    def surgery(text: Optional[str]) -> str:
        nonlocal outcome
        merged, added, warnings = merged_text(must_exist(path, text, ctx), path, wanted, ctx)
        outcome = (added, warnings)
        return merged

    if dry_run:
        before = read_text(ctx, path)
        after = surgery(before)
        return tried("update", path, before, after, links_added=outcome[0], warnings=outcome[1])
    edited = edit_note(ctx, path, surgery)
    if not edited.changed:
        return ok("unchanged", path=path, slug=ctx.names.slug_of(path), warnings=outcome[1])
    warnings = outcome[1] + (index_notes(ctx, [path]) if is_entity(path) else [])
    log_in_day_note(ctx, f"updated {wikilink(path, _title_of(path, ctx))}")
    return ok("updated", path=path, slug=ctx.names.slug_of(path), version=version_of(edited.after),
              links_added=outcome[0], warnings=warnings)


def _capture_line(wanted: Capture, dry_run: bool, ctx: OpContext) -> Envelope:
    """One inbox line: `- 2026-11-30: text #tags`; the same line again changes nothing."""
    text = one_line(f"{wanted.title}: {wanted.body}" if wanted.body.strip() else wanted.title)
    tags = "".join(f" #{tag}" for tag in wanted.tags)
    line = f"- {ctx.clock.day()}: {text}{tags}"
    if len(line.encode("utf-8")) > LINE_BYTES:
        raise TooLarge(f"the inbox line would be longer than {LINE_BYTES} bytes",
                       hint="Give a kind, so that it becomes a note.", field="body", limit=LINE_BYTES)

    def surgery(before: Optional[str]) -> str:
        if before is None:
            before = starter_text(INBOX, ctx.clock, ctx.owner)
        return before if markdown.has_line(before, line, None) else markdown.append_text(before, line, None)

    if dry_run:
        current = read_text(ctx, INBOX)
        return tried("inbox", INBOX, current, surgery(current), warnings=_ignored(wanted))
    edited = edit_note(ctx, INBOX, surgery)
    return ok("inbox" if edited.changed else "unchanged", path=INBOX, line=line,
              version=version_of(edited.after), warnings=_ignored(wanted))


def _ignored(wanted: Capture) -> List[str]:
    names = [name for name in ("aliases", "sources", "status", "domain", "supersedes") if getattr(wanted, name)]
    return [f"an inbox line holds no {', '.join(names)}; give a kind to keep them"] if names else []


def _capture_rollup(wanted: Capture, period: str, dry_run: bool, ctx: OpContext) -> Envelope:
    """A written rollup in its journal folder; one that exists gets the text as a dated section."""
    if not period:
        raise InvalidArgument("a rollup needs its period", hint="For example 2026-W49 or 2026-11.", field="period")
    span = parse_period(period, field="period")
    path = f"journal/{span.folder}/{span.name}.md"
    made = ctx.resumed is not None and path in ctx.resumed.created()
    if ctx.catalog.facts(path) is not None and not made:
        return _merge(wanted, path, dry_run, ctx)
    meta = {"type": "rollup", "title": wanted.title, "created": ctx.clock.day(), "updated": ctx.clock.day(),
            "tags": list(wanted.tags), "agent_written": True}
    text = new_note({key: value for key, value in meta.items() if value != []}, wanted.title, wanted.body, [])
    if dry_run:
        return tried("create", path, None, text)
    there = read_bytes(ctx, path) if made else None
    version = version_of(_write_new(ctx, path, text) if there is None else there)
    log_in_day_note(ctx, f"wrote rollup {wikilink(path, wanted.title)}")
    return ok("created", path=path, version=version)


def link_op(a: str, b: str, relation: str = "", *, ctx: OpContext) -> Envelope:
    """Connect two notes under their `## Related` headings, both ways.

    a, b: paths or names that mean exactly one note. Returns the paths and which of them changed. Raises NotFound,
    Ambiguous, InvalidArgument (a note with itself), Conflict and vault errors.
    """
    ctx.fresh()
    first, second = writable_note(a, ctx, "a"), writable_note(b, ctx, "b")
    if first == second:
        raise InvalidArgument("a and b are the same note", hint="Name two notes.", field="b")
    for path in (first, second):
        must_exist(path, read_text(ctx, path), ctx)
    changed = {path: _relate(path, other, relation, ctx)
               for path, other in sorted([(first, second), (second, first)])}
    return ok("linked" if any(changed.values()) else "unchanged", a=first, b=second,
              a_changed=changed[first], b_changed=changed[second])


def _relate(path: str, other: str, relation: str, ctx: OpContext) -> bool:
    line = related_line(other, _title_of(other, ctx), relation)

    def surgery(text: Optional[str]) -> str:
        note = must_exist(path, text, ctx)
        return note if _is_related(note, other, line, bool(relation)) else line_under(note, RELATED, line)

    return edit_note(ctx, path, surgery).changed


def _is_related(text: str, other: str, line: str, with_relation: bool) -> bool:
    """Whether Related names `other` already; a relation that is new is worth a line of its own."""
    target = other[:-3] if other.endswith(".md") else other
    for heading in markdown.headings(text):
        if heading.title == RELATED:
            lines = [found.strip() for found in markdown.section_text(text, heading).splitlines()]
            if line in lines:
                return True
            if not with_relation and any(f"[[{target}|" in found or f"[[{target}]]" in found for found in lines):
                return True
    return False


def _title_of(path: str, ctx: OpContext) -> str:
    """The title of the note at `path`, one that nobody has told the catalog of yet included."""
    found = ctx.catalog.facts(path)
    return found.title if found else facts(path, read_text(ctx, path) or "").title
