"""Links of a note: `[[wiki]]`, `![[embed]]` and `[text](file.md)`; read, rewritten, written (spec 2.7, 3.2)."""
from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from typing import Callable, Iterator, List, NamedTuple, Optional, Tuple
from urllib.parse import quote, unquote

from echo_core.markdown.inline import CARRIED, INLINE_LINK, MATH, WIKI, Span, block_spans, blocks, spans
from echo_core.markdown.lines import FRONT
from echo_core.markdown.scan import scan
from echo_core.text import one_line

_SHORT = 1000  # characters of a block whose links are remembered
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:|//")
_PUNCTUATION = r"[!-/:-@\[-`{-~]"
_ESCAPED = re.compile(r"\\(%s)" % _PUNCTUATION)
_READ_AS_MARK = re.compile(r"\\(?=%s|$)" % _PUNCTUATION)
_NEEDS_MARK = re.compile(r"[\]|]|\[(?=\[)")
_WIKI = re.compile(r"!?\[\[(?:\\[^\r\n]|(?!\]\]|\[\[)[^\r\n\\])+?\]\]")
_YAML_START = re.compile(r"\s*(?:- +)*(?:(?:\"[^\"]*\"|'[^']*'|[^\s:#\"'\[\]{}][^:#\[\]{}]*):\s+)?")
_YAML_QUOTED = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:''|[^'])*'")


class Link(NamedTuple):
    """One link, offsets in characters.

    `kind` is wiki, embed or markdown; `target` the linked file as written, decoded, without heading and alias (""
    links to the note itself); `heading` what follows `#` (`^id` for a block); `alias` the shown text ("" for none).
    `target_start` and `target_end` enclose the target's own characters; `place` is body or frontmatter, `quote` the
    YAML quote around a frontmatter link ("" for none).
    """

    kind: str
    target: str
    heading: str
    alias: str
    start: int
    end: int
    target_start: int
    target_end: int
    place: str = "body"
    quote: str = ""


def links(text: str) -> List[Link]:
    """All links to files of the vault, in order; not those in code or HTML comments, nor web addresses."""
    if "[[" not in text and "](" not in text:
        return []
    found = [*_frontmatter_links(text), *_links_in(text, spans(text, links_only=True))]
    return sorted(found, key=lambda link: link.start)


def link_targets(text: str) -> List[str]:
    """The `target` of each of `links`, quicker for a text that has been looked at before it grew."""
    if "[[" not in text and "](" not in text:
        return []
    if any(mark in text for mark in CARRIED):
        return [link.target for link in links(text)]
    found = [link.target for link in _frontmatter_links(text)]
    for start, end, _ in blocks(text):
        if text.find("[", start, end) >= 0:
            found.extend(_known_targets(text[start:end]) if end - start < _SHORT else _targets(text[start:end]))
    return found


def _targets(block: str) -> Tuple[str, ...]:
    return tuple(link.target for link in sorted(_links_in(block, block_spans(block)), key=lambda link: link.start))


_known_targets = lru_cache(maxsize=2048)(_targets)


def _links_in(text: str, inline: List[Span]) -> Iterator[Link]:
    """The links among the spans of a text."""
    math = sorted((span.start, span.end) for span in inline if span.kind == MATH)
    for span in inline:
        before = bisect_right(math, (span.start, len(text))) - 1
        if before >= 0 and span.start < math[before][1]:
            continue  # display math may hold whole blocks, `[[1, 2]]` among them
        if span.kind == WIKI:
            yield from _wiki(text, span.start, span.end, "body", "")
        elif span.kind == INLINE_LINK:
            yield from _markdown(text, span.start, span.end, span.inner_start, span.inner_end)


def _wiki(text: str, start: int, end: int, place: str, mark: str) -> Iterator[Link]:
    """The link that `[[...]]` from `start` to `end` is; nothing when it names neither file nor heading."""
    kind = "embed" if text[start] == "!" else "wiki"
    inner_start = start + (3 if kind == "embed" else 2)
    inner = text[inner_start:end - 2]
    left, _, alias = inner.partition("|")
    if len(left) < len(inner) and left.endswith("\\"):
        left = left[:-1]  # `\\|` is how the bar stands in a table cell
    target, _, heading = left.partition("#")
    if target.strip() or heading.strip():
        target_start = inner_start + len(target) - len(target.lstrip())
        target_end = target_start + len(target.strip())
        yield Link(kind, _unquoted(target.strip(), mark), heading.strip(), unescape_alias(alias.strip()), start, end,
                   target_start, target_end, place, mark)


def _markdown(text: str, start: int, end: int, dest_start: int, dest_end: int) -> Iterator[Link]:
    """The link that `[text](destination)` is; nothing when the destination is a web address or empty."""
    raw = text[dest_start:dest_end]
    if raw.startswith("<"):
        dest_start, raw = dest_start + 1, raw[1:-1]
    if not raw or _SCHEME.match(raw):
        return
    target, _, heading = raw.partition("#")
    alias = text[start:text.rfind("](", start, dest_start)].lstrip("!")[1:]
    yield Link("markdown", _destination(target), _destination(heading), alias, start, end, dest_start,
               dest_start + len(target))


def _destination(raw: str) -> str:
    return unquote(_ESCAPED.sub(r"\1", raw), errors="surrogateescape")


def _frontmatter_links(text: str) -> Iterator[Link]:
    """Wikilinks in property values; an unquoted `[[x]]` is a nested list to YAML, hence no link."""
    for line in scan(text):
        if line.kind != FRONT:
            return
        row = text[line.start:line.end]
        if "[[" not in row:
            continue
        match = _YAML_START.match(row)
        value = match.end() if match else 0
        for start, end, mark in _yaml_strings(row, value):
            for found in _WIKI.finditer(row, start, end):
                yield from _wiki(text, line.start + found.start(), line.start + found.end(), "frontmatter", mark)


def _yaml_strings(row: str, value: int) -> Iterator[Tuple[int, int, str]]:
    """The pieces of a property line that are text, as (start, end, quote)."""
    if row[value:value + 1] in ("[", "{", '"', "'"):
        for quoted in _YAML_QUOTED.finditer(row, value):
            yield quoted.start() + 1, quoted.end() - 1, row[quoted.start()]
    else:
        comment = re.search(r"(?:^|\s)#", row[value:])
        yield value, value + comment.start() if comment else len(row), ""


def _unquoted(target: str, mark: str) -> str:
    if mark == '"':
        return _ESCAPED.sub(r"\1", target)
    return target.replace("''", "'") if mark == "'" else target


def rewrite(text: str, resolve: Callable[[Link], Optional[str]]) -> str:
    """The text with the targets that `resolve` gives; None or the same target leaves a link as it is.

    Only the characters of the target change: alias, heading, embed mark, title and the way of writing (`<>`, percent
    encoding, YAML quotes) stay.
    """
    pieces: List[str] = []
    pos = 0
    for link in sorted(links(text), key=lambda each: each.target_start):
        target = resolve(link)
        if target is None or target == link.target:
            continue
        pieces += [text[pos:link.target_start], _written(text, link, target)]
        pos = link.target_end
    return "".join(pieces) + text[pos:]


def _written(text: str, link: Link, target: str) -> str:
    """`target` in the spelling that the place of `link` asks for."""
    if link.kind != "markdown":
        if link.quote == '"':
            return target.replace("\\", "\\\\").replace('"', '\\"')
        return target.replace("'", "''") if link.quote == "'" else target
    old = text[link.target_start:link.target_end]
    if text[link.target_start - 1] == "<":
        return re.sub(r"([<>\\])", r"\\\1", target.replace("%", "%25").replace("#", "%23"))
    if re.search(r"%[89A-Fa-f][0-9A-Fa-f]", old):
        return quote(target, safe="/!$&'*+,;=:@~", errors="surrogateescape")
    return re.sub(r"[\s()<>%#?\\\x00-\x1f\x7f]", lambda match: quote(match.group(), safe=""), target)


def escape_alias(alias: str) -> str:
    """`alias` as it stands in `[[path|alias]]`: one line, with `]`, `|` and a doubled `[` escaped."""
    return _NEEDS_MARK.sub(r"\\\g<0>", _READ_AS_MARK.sub(r"\\\\", one_line(alias)))


def unescape_alias(alias: str) -> str:
    """The text that an escaped alias shows."""
    return _ESCAPED.sub(r"\1", alias)


def wikilink(path: str, title: str) -> str:
    """`[[path|Title]]`; `path` with or without `.md`."""
    bare = path[:-3] if path.lower().endswith(".md") else path
    return f"[[{bare}|{escape_alias(title)}]]"


def related_line(path: str, title: str, relation: str = "") -> str:
    """The line `- [[path|Title]]`, with `: relation` when there is one; `path` with or without `.md`."""
    line = f"- {wikilink(path, title)}"
    return f"{line}: {one_line(relation)}" if relation.strip() else line


def plain_text(text: str) -> str:
    """The text with each link, embeds left out, reduced to what a reader sees of it."""
    pieces: List[str] = []
    pos = 0
    for link in links(text):
        if link.start < pos or link.kind == "embed" or text[link.start] == "!":
            continue
        pieces += [text[pos:link.start], link.alias or f"{link.target}#{link.heading}".rstrip("#")]
        pos = link.end
    return "".join(pieces) + text[pos:]
