"""Notes as a whole: the bytes of a new one, and the facts other parts need of an old one (spec 2.2)."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from echo_core import markdown
from echo_core.catalog.sketch import body_of, sketch
from echo_core.frontmatter import EMPTY_BLOCK, Frontmatter, Problem, compose, parse
from echo_core.kinds import kind_of
from echo_core.markdown.links import link_targets
from echo_core.text import one_line

RELATED = "Related"
LONGEST_FACT = 1000
"""Characters of the longest fact: every row about a note and every passage of it repeats its title."""
_LINE_END = re.compile("\r\n?|\n")
_WIKILINK = re.compile(r"!?\[\[([^\]|#]*)[^\]]*\]\]")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_CLOSING_HASHES = re.compile(r"(^|\s)(#+)$")


@dataclass(frozen=True)
class NoteFacts:
    """What the catalog, lint and search know of one note; plain JSON values only.

    title: declared, else the first level-1 heading, else the file name. headings: their addresses in order.
    sketch: of the body, for notes of a kind only. links: targets as written, without alias and heading.
    supersedes, superseded_by: targets without brackets.
    """

    path: str
    title: str
    kind: str = ""
    status: str = ""
    created: str = ""
    updated: str = ""
    domain: str = ""
    supersedes: str = ""
    superseded_by: str = ""
    agent_written: bool = False
    valid_utf8: bool = True
    tags: list[str] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    source_notes: list[str] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    malformed: Problem | None = None
    has_frontmatter: bool = False
    sketch: list[int] = field(default_factory=list)


def new_note(meta: Mapping[str, Any], title: str, body: str, related: Sequence[str] = ()) -> str:
    """The text of a new note: frontmatter of `meta`, `# title`, body, `## Related` with the lines of `related`.

    Line ends are "\\n", one at the end. The heading is not repeated when `body` opens with it, and related lines
    join a Related section that `body` already has.
    """
    title = one_line(title)
    body = _LINE_END.sub("\n", body).strip("\n")
    parts = [] if _opens_with(body, title) else [f"# {_CLOSING_HASHES.sub(_escaped_hashes, title)}"]
    if body.strip():
        parts.append(body)
    block = compose(meta)
    text = (f"{block}\n" if block != EMPTY_BLOCK else "") + "\n\n".join(parts) + "\n"
    return _with_related(text, related) if related else text


def _escaped_hashes(match: re.Match[str]) -> str:
    """Hashes at the end of a title, kept from closing the heading."""
    return f"{match.group(1)}\\{match.group(2)}"


def _opens_with(body: str, title: str) -> bool:
    """Whether the first line of `body` is the level-1 heading `title`."""
    found = markdown.headings(body)
    if not found or found[0].level != 1 or body[:found[0].start].strip():
        return False
    return one_line(found[0].title) in (title, _CLOSING_HASHES.sub(_escaped_hashes, title))


def _with_related(text: str, related: Sequence[str]) -> str:
    """`text` with the lines under its last level-2 heading Related, which is made when missing."""
    if not _related_sections(text):
        section_text = f"\n## {RELATED}\n\n" + "".join(f"{line}\n" for line in related)
        closers = ["", *(f"{fence}\n" for fence in _FENCE.findall(text)), "-->\n"]
        # A fence or comment that the body leaves open would swallow the section: close it first.
        closed = (text + closer + section_text for closer in closers)
        return next((whole for whole in closed if _related_sections(whole)), text + section_text)
    for line in related:
        section = _related_sections(text)[-1]
        if not markdown.has_line(text, line, section):
            text = markdown.append_text(text, line, section)
    return text


def _related_sections(text: str) -> list[markdown.Heading]:
    return [found for found in markdown.headings(text) if found.level == 2 and found.title == RELATED]


def facts(path: str, text: str) -> NoteFacts:
    """The facts of the note `text` at `path`. Never raises; a malformed block leaves those of the body."""
    front = parse(text)
    values = front.values
    headings = markdown.headings(text)
    first = next((one_line(found.title) for found in headings if found.level == 1 and found.title.strip()), "")
    stem = path.rsplit("/", 1)[-1]
    return NoteFacts(
        path=path,
        title=_line(values.get("title")) or first or (stem.removesuffix(".md")),
        kind=_line(values.get("type")),
        status=_line(values.get("status")),
        created=_line(values.get("created")),
        updated=_line(values.get("updated")),
        domain=_line(values.get("domain")),
        supersedes=_target(front, "supersedes"),
        superseded_by=_target(front, "superseded_by"),
        agent_written=values.get("agent_written") is True,
        tags=_tags(_texts(values, "tags") + _texts(values, "tag")),
        aliases=_unique(_texts(values, "aliases") + _texts(values, "alias")),
        source_notes=_unique(_texts(values, "source_notes")),
        headings=markdown.addresses(headings),
        links=link_targets(text),
        malformed=front.malformed,
        has_frontmatter=front.present,
        sketch=sketch(body_of(text, front.body_offset, headings)) if kind_of(path) else [],
    )


def _line(value: Any) -> str:
    """A scalar as one line of text, the start of a very long one; "" for none, a list or a map."""
    if value is None or isinstance(value, (list, dict)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return one_line(str(value)[:2 * LONGEST_FACT])[:LONGEST_FACT]


def _texts(values: dict[str, Any], key: str) -> list[str]:
    """The items of a list, or a scalar as a list of one; `[[Name]]` that lost its quotes is read as meant."""
    value = values.get(key)
    items = value if isinstance(value, list) else [value]
    return [text for text in (_line(_unquoted_wikilink(item)) for item in items) if text]


def _unquoted_wikilink(value: Any) -> Any:
    """`[[Name]]` for the list of a list that YAML reads where somebody left the quotes out."""
    if isinstance(value, list) and len(value) == 1:
        inner = value[0]
        while isinstance(inner, list) and len(inner) == 1:
            inner = inner[0]
        return f"[[{inner}]]" if isinstance(inner, str) else value
    return value


def _target(front: Frontmatter, key: str) -> str:
    """The first note a key names: the target of its wikilink, or its plain text."""
    value = front.values.get(key)
    if isinstance(value, list) and value and isinstance(value[0], str):
        value = value[0]
    text = _line(_unquoted_wikilink(value))
    match = _WIKILINK.fullmatch(text)
    return match.group(1).strip() if match else text


def _tags(texts: list[str]) -> list[str]:
    """Tag names without "#"; one text may hold several, split at commas and white space."""
    return _unique([tag for text in texts for tag in (part.lstrip("#") for part in re.split(r"[,\s]+", text)) if tag])


def _unique(texts: list[str]) -> list[str]:
    return list(dict.fromkeys(texts))
