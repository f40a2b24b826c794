"""What one capture stores: the request, the duplicate gate, the new note's text, the merged note's text."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple

from echo_context import OpContext
from echo_core import frontmatter, markdown
from echo_core.catalog.note import NoteFacts, facts, new_note
from echo_core.catalog.notebytes import decode
from echo_core.catalog.sketch import body_of, sketch
from echo_core.errors import InvalidArgument, NotFound
from echo_core.guards import refuse_active_content, refuse_secrets
from echo_core.kinds import KINDS, PROJECT_STATUSES, SYSTEM_NOTES, is_entity, is_system, kind_of, place
from echo_core.markdown.links import plain_text, wikilink
from echo_core.names import SYSTEM_KEYS
from echo_core.paths import unportable
from echo_core.text import fold, name_keys, one_line, slug, suspicious_unicode

NEAR_TITLE = 0.85
"""Token-set similarity of titles from which two notes count as look-alikes (spec 3.2)."""
NEAR_BODY = 0.8
"""Jaccard similarity of 5-word shingles from which two bodies count as near-identical (spec 3.2)."""


@dataclass(frozen=True)
class Capture:
    """One thing to remember, checked. day: the entity's own day for dated kinds, else today."""

    title: str
    kind: str
    body: str = ""
    tags: Sequence[str] = ()
    aliases: Sequence[str] = ()
    sources: Sequence[str] = ()
    status: str = ""
    day: str = ""
    domain: str = ""
    supersedes: str = ""
    names: Sequence[str] = field(default=())

    @property
    def keys(self) -> FrozenSet[str]:
        """Every folded key the capture would answer to."""
        return frozenset().union(*(name_keys(name) for name in self.names))


def checked(
    title: str, kind: str, body: str, tags: Sequence[str], aliases: Sequence[str], sources: Sequence[str],
    status: str, date: str, domain: str, supersedes: str, ctx: OpContext,
) -> Capture:
    """The request with everything refused that must not be stored.

    Raises InvalidArgument, SecretSuspected and ActiveContent, each naming the field.
    """
    entry = KINDS.get(kind)
    if kind == "project" and status and status not in PROJECT_STATUSES:
        raise InvalidArgument(f"a project has no status of that name; allowed: {', '.join(PROJECT_STATUSES)}",
                              hint=f"Use one of: {', '.join(PROJECT_STATUSES)}.", field="status")
    if suspicious_unicode(title):
        raise InvalidArgument("title holds invisible or direction-changing characters",
                              hint="Send the title as a person would type it.", field="title")
    for name in (title, *aliases):
        owner = next((SYSTEM_KEYS[key] for key in name_keys(name) if key in SYSTEM_KEYS), "")
        if owner and kind:
            raise InvalidArgument(f"a name of this capture belongs to ECHO's own note {owner}",
                                  hint="Choose another title or alias.", field="title", path=owner)
    texts = [("title", title), ("body", body)]
    texts += [(name, value) for name, values in (("tags", tags), ("aliases", aliases), ("sources", sources))
              for value in values]
    for name, text in texts:
        if not ctx.allow_secrets:
            refuse_secrets(text, name)
        refuse_active_content(text, name)
    return Capture(
        title=title, kind=kind, body=body.strip("\r\n"), tags=_tags(tags), aliases=_unique(aliases, title),
        sources=_unique(sources), status=status or ("active" if kind == "project" else ""),
        day=date if date and entry and entry.dated else ctx.clock.day(),
        domain=domain or ("business" if kind == "area" else ""), supersedes=supersedes,
        names=(title, *aliases),
    )


def _unique(values: Sequence[str], other_than: str = "") -> Tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in (one_line(v) for v in values) if value and value != other_than))


def _tags(values: Sequence[str]) -> Tuple[str, ...]:
    """Tags as Obsidian takes them: no leading #, no blanks inside."""
    cleaned = ("-".join(one_line(value).lstrip("#").split()) for value in values)
    return tuple(dict.fromkeys(tag for tag in cleaned if tag))


class Gate(NamedTuple):
    """What the vault already holds of a capture, as candidate rows `{path, title, kind, slug, why}`.

    same: the note that already says all of it, "" when none. gate: nothing is written before somebody decides.
    near: worth a look, does not stop the capture.
    """

    same: str
    gate: List[Dict[str, Any]]
    near: List[Dict[str, Any]]


def look_for_duplicates(wanted: Capture, ctx: OpContext) -> Gate:
    """Compare with every note of the vault by name, and with the likeliest ones by body (spec 3.2)."""
    gate: Dict[str, Dict[str, Any]] = {}
    near: Dict[str, Dict[str, Any]] = {}
    for found, why in _resembling(wanted, ctx):
        stops = kind_of(found.path) == wanted.kind and not _another_day(wanted, found)
        (gate if stops else near)[found.path] = _row(found, why, ctx)
    for found, why in _same_bodies(wanted, ctx):
        if found.path not in gate:
            near.setdefault(found.path, _row(found, why, ctx))
    same = next((path for path in sorted(gate) if says_it_all(path, wanted, ctx)), "")
    return Gate(same, [gate[path] for path in sorted(gate)][:10], [near[path] for path in sorted(near)][:10])


def _resembling(wanted: Capture, ctx: OpContext) -> List[Tuple[NoteFacts, str]]:
    """Notes that share a name with the capture, then notes whose title is a near hit; ECHO's own files left out."""
    named = [path for path in sorted(ctx.catalog.named(wanted.keys)) if not is_system(path) or path in SYSTEM_NOTES]
    found = [(ctx.catalog.facts(path), "same name") for path in named]
    for path in ctx.names.lookalikes(wanted.title):
        known = ctx.catalog.facts(path)
        if known and path not in named and _similar_title(wanted.title, known.title):
            found.append((known, "similar title"))
    return [(known, why) for known, why in found if known]


def _similar_title(title: str, other: str) -> bool:
    from echo_core.catalog.similarity import differs_in_detail, title_similarity  # most command lines compare nothing

    return not differs_in_detail(title, other) and title_similarity(title, other) >= NEAR_TITLE


def _another_day(wanted: Capture, found: NoteFacts) -> bool:
    """Meetings and decisions recur under one title: only the same day is the same one."""
    return KINDS[wanted.kind].dated and not found.path.rpartition("/")[2].startswith(wanted.day)


def _same_bodies(wanted: Capture, ctx: OpContext) -> List[Tuple[NoteFacts, str]]:
    """Notes whose body is nearly the new one; their sketches say which are worth reading."""
    from echo_core.catalog.similarity import body_similarity  # loaded late, as above

    found = []
    for known in ctx.catalog.with_body_like(sketch(wanted.body)):
        text = _text(known.path, ctx) if is_entity(known.path) else None
        if text is None:
            continue
        body = body_of(text, frontmatter.parse(text).body_offset, markdown.headings(text))
        if body_similarity(wanted.body, body) >= NEAR_BODY:
            found.append((known, "near-identical body"))
    return found


def _row(found: NoteFacts, why: str, ctx: OpContext) -> Dict[str, Any]:
    return {"path": found.path, "title": found.title, "kind": found.kind,
            "slug": ctx.names.slug_of(found.path), "why": why}


def _text(path: str, ctx: OpContext) -> Optional[str]:
    try:
        return decode(ctx.vault.read(path))[0]
    except NotFound:
        return None


def says_it_all(path: str, wanted: Capture, ctx: OpContext) -> bool:
    """Whether the note at `path` already holds everything of `wanted`: then a repeat changes nothing."""
    text = _text(path, ctx)
    if text is None:
        return False
    found = facts(path, text)
    body = text[frontmatter.parse(text).body_offset:]
    return (
        fold(found.title) == fold(wanted.title)
        and set(wanted.tags) <= set(found.tags)
        and set(wanted.aliases) <= {*found.aliases, found.title}
        and (not wanted.status or wanted.status == found.status)
        and {_source_key(s) for s in wanted.sources} <= {_source_key(s) for s in found.source_notes}
        and _plain(wanted.body) in _plain(body)
    )


def _source_key(source: str) -> str:
    target = source.strip().strip("[]").split("|")[0]
    return fold(target[:-3] if target.endswith(".md") else target)


def _plain(text: str) -> str:
    """Text with links reduced to what a reader sees and blanks collapsed, to compare before with after linking."""
    return " ".join(plain_text(text).split())


def free_path(wanted: Capture, ctx: OpContext) -> str:
    """The path for a new note: the slug of its title, with -2, -3 ... when another note, entity or Windows has it."""
    base = slug(wanted.title)
    index = ctx.index.load()
    number = 1
    while True:
        name = base if number == 1 else f"{base}-{number}"
        path = place(wanted.kind, name, wanted.status, wanted.domain, wanted.day)
        key = path.rpartition("/")[2][:-3]
        taken = index.entries.get(key)
        if not unportable(path) and ctx.catalog.taken(path) is None and (taken is None or taken.path == path):
            return path
        number += 1


def new_text(wanted: Capture, path: str, ctx: OpContext) -> Tuple[str, List[str]]:
    """The new note's text and the paths its body was linked to."""
    body, added = linked_body(wanted.body, path, ctx)
    dated = KINDS[wanted.kind].dated
    meta = {
        "type": wanted.kind, "title": wanted.title, "status": wanted.status, "created": ctx.clock.day(),
        "updated": ctx.clock.day(), "tags": list(wanted.tags), "aliases": list(wanted.aliases),
        "date": wanted.day if dated else "", "domain": wanted.domain, "agent_written": True,
        "source_notes": source_notes(wanted.sources, ctx),
        "supersedes": _superseded_link(wanted.supersedes, ctx),
    }
    return new_note({key: value for key, value in meta.items() if value not in ("", [])}, wanted.title, body, []), added


def linked_body(body: str, path: str, ctx: OpContext) -> Tuple[str, List[str]]:
    """`body` with the first mention of each known name as a link, and the linked paths."""
    return ctx.linker.current().link(body, path) if body else (body, [])


def source_notes(sources: Sequence[str], ctx: OpContext) -> List[str]:
    """Sources as frontmatter holds them: a note of the vault as a wikilink, anything else as it was given."""
    return [_as_link(source, ctx) for source in sources]


def _as_link(source: str, ctx: OpContext) -> str:
    target = source.strip("[]").split("|")[0]
    try:
        path = ctx.names.exact(target)
    except Exception as failure:
        if getattr(failure, "code", "") not in ("not-found", "ambiguous", "invalid-path"):
            raise
        return source
    return wikilink(path, _title(path, ctx))


def _superseded_link(supersedes: str, ctx: OpContext) -> str:
    return wikilink(supersedes, _title(supersedes, ctx)) if supersedes else ""


def _title(path: str, ctx: OpContext) -> str:
    found = ctx.catalog.facts(path)
    return found.title if found else path.rpartition("/")[2][:-3]


def merged_text(text: str, path: str, wanted: Capture, ctx: OpContext) -> Tuple[str, List[str], List[str]]:
    """`(text, linked paths, warnings)`: the note with the capture added; equal text when it holds it already.

    Only adds: a dated section, unions of tags, aliases and sources, `updated`. A note whose frontmatter does not
    parse gets the section only, with a warning that says what was left out.
    """
    with_body, added = _with_section(text, path, wanted, ctx)
    block = frontmatter.parse(with_body)
    if block.malformed:
        left_out = [name for name in ("tags", "aliases", "sources") if getattr(wanted, name)]
        where = f"line {block.malformed.line}, column {block.malformed.column}"
        return with_body, added, [f"the frontmatter does not parse at {where}; left alone: "
                                  + ", ".join([*left_out, "updated"])]
    merged = with_body
    for key, items in (
        ("tags", list(wanted.tags)), ("aliases", list(wanted.aliases)),
        ("source_notes", source_notes(wanted.sources, ctx)),
    ):
        merged = frontmatter.add_items(merged, key, items) if items else merged
    if merged != text:
        merged = frontmatter.set_key(merged, "updated", ctx.clock.day())
    return merged, added, []


def _with_section(text: str, path: str, wanted: Capture, ctx: OpContext) -> Tuple[str, List[str]]:
    if not wanted.body.strip():
        return text, []
    if _plain(wanted.body) in _plain(text[frontmatter.parse(text).body_offset:]):
        return text, []
    title = f"{ctx.clock.day()}: {wanted.title}"
    body, added = linked_body(wanted.body, path, ctx)
    existing = [h for h in markdown.headings(text) if h.title == title]
    if existing:
        return markdown.edit_section(text, existing[-1], "append", "\n" + body), added
    return markdown.insert_before_related(text, title, 2, body), added

