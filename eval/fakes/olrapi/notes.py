"""What Obsidian's metadata cache knows of a note: frontmatter, tags, links, times."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import yaml

from fakes.olrapi import jsvalues
from fakes.olrapi.store import Store

NOTE_JSON = "application/vnd.olrapi.note+json"
_BLOCK = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)(?:^---[ \t]*(?:\r?\n|\Z))", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1|\Z)", re.DOTALL | re.MULTILINE)
_INLINE_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_NO_TAG = r"\s#.,;:!?'\"()\[\]{}<>|`^*+=@$%&\\~"
_TAG = re.compile(rf"(?<!\S)#([^{_NO_TAG}]*[^\W\d_/-][^{_NO_TAG}]*)")
_WIKILINK = re.compile(r"\[\[([^\[\]|#^\n]+)[^\[\]\n]*\]\]")


class _Loader(yaml.SafeLoader):
    """YAML 1.2 as Obsidian reads it: dates, `yes` and `on` stay text."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", "~nN\0"),
    ("tag:yaml.org,2002:int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("tag:yaml.org,2002:float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+0123456789."),
):
    _Loader.add_implicit_resolver(_tag, re.compile(f"^(?:{_pattern})$"), [*_first.replace("\0", ""), ""])


@dataclass(frozen=True)
class Meta:
    """The cached facts of one note's text."""

    frontmatter: dict[str, Any]
    tags: tuple[str, ...]
    links: tuple[str, ...]


@dataclass(frozen=True)
class Graph:
    """Which path a link's name leads to, and which notes link to a path."""

    names: dict[str, str]
    backlinks: dict[str, list[str]]


@lru_cache(maxsize=20_000)
def meta(text: str) -> Meta:
    """Frontmatter ({} when it does not parse), tags without their hash, and wikilink targets, each once."""
    match = _BLOCK.match(text)
    frontmatter = _yaml(match[1]) if match else {}
    body = _INLINE_CODE.sub(" ", _FENCE.sub("\n", text[match.end() :] if match else text))
    listed = frontmatter.get("tags")
    tags = [tag for tag in listed if isinstance(tag, str)] if isinstance(listed, list) else []
    tags += _TAG.findall(body)
    unique = dict.fromkeys(tag.removeprefix("#") for tag in tags if tag)
    return Meta(frontmatter, tuple(unique), tuple(dict.fromkeys(link.strip() for link in _WIKILINK.findall(body))))


def _yaml(block: str) -> dict[str, Any]:
    try:
        value = yaml.load(block, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else {}


def _facts(store: Store, path: str) -> tuple[str, Meta]:
    """A file's text and its facts; a file that is no note has none."""
    text = store.read(path).decode("utf-8", "replace")
    return text, meta(text) if path.endswith(".md") else Meta({}, (), ())


def describe(
    store: Store, path: str, link_fields: tuple[str, ...], content: bool = True, graph: Graph | None = None
) -> dict[str, Any]:
    """The note+json object; times in milliseconds, size in bytes. `graph` is `link_graph` computed before."""
    text, facts = _facts(store, path)
    found: dict[str, Any] = {
        "tags": list(facts.tags),
        "frontmatter": dict(facts.frontmatter),
        **outline(store, path),
        "content": text if content else "",
    }
    if link_fields:
        _add_links(found, store, path, facts, link_fields, graph)
    return found


def outline(store: Store, path: str) -> dict[str, Any]:
    """What is known of a note without opening it: times in milliseconds, size in bytes, path."""
    stat = os.stat(store.real(path) or "")
    times = {"ctime": stat.st_ctime_ns // 10**6, "mtime": stat.st_mtime_ns // 10**6}
    return {"stat": {**times, "size": stat.st_size}, "path": path}


def _add_links(
    found: dict[str, Any], store: Store, path: str, facts: Meta, fields: tuple[str, ...], graph: Graph | None
) -> None:
    graph = graph or link_graph(store)
    targets = {link: graph.names.get(link.removesuffix(".md"), "") for link in facts.links}
    values = {
        "links": list(dict.fromkeys(target for target in targets.values() if target)),
        "backlinks": graph.backlinks.get(path, []),
        "unresolvedLinks": [link for link, target in targets.items() if not target],
    }
    found.update((field, values[field]) for field in fields)


def link_graph(store: Store) -> Graph:
    """The links of the whole vault."""
    graph = Graph({}, {})
    paths = store.notes()
    for path in paths:
        graph.names.setdefault(path.rpartition("/")[2].removesuffix(".md"), path)
    graph.names.update((path.removesuffix(".md"), path) for path in paths)
    for path in paths:
        targets = dict.fromkeys(graph.names.get(link.removesuffix(".md"), "") for link in _facts(store, path)[1].links)
        for target in targets:
            if target:
                graph.backlinks.setdefault(target, []).append(path)
    return graph


def as_json(value: dict[str, Any]) -> str:
    """The object as the plugin prints it."""
    return jsvalues.dumps(value, 2)
