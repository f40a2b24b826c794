"""The route map `_agent/routing.json`: which paths of the vault belong to whom (spec 2.5).

A pattern is a vault-relative path in which `*` stands for any text inside one segment and `**` for any number of
whole segments. The first route that matches a path is its route; retired patterns are looked at on their own, so
a place can be retired although a broader route still covers it.
"""
from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from echo_core.errors import InvalidArgument
from echo_core.kinds import HEARTBEAT, INBOX, INDEX, INDEX_LOCK, KINDS, MARKER, README, ROUTES, SCOPE

VERSION = 1


class Route(NamedTuple):
    """A place that is in use: the kind that lives there, its pattern, and why it exists."""

    kind: str
    pattern: str
    reason: str


class Retired(NamedTuple):
    """A place that is no longer in use, and what to use instead."""

    pattern: str
    instead: str


@lru_cache(maxsize=512)
def _parts(pattern: str) -> Tuple[str, List[str]]:
    """(text every matching path begins with, segments of the pattern)."""
    return pattern.split("*", 1)[0], pattern.split("/")


def matches(pattern: str, path: str) -> bool:
    """Whether `path` is one of the paths `pattern` stands for; time grows with the product of their lengths only."""
    prefix, segments = _parts(pattern)
    return path.startswith(prefix) and _wild(segments, path.split("/"), "**", _segment_matches)


def _segment_matches(pattern: str, segment: str) -> bool:
    if "*" not in pattern:
        return pattern == segment
    return _wild(pattern, segment, "*", str.__eq__)


def _wild(pattern: Sequence[str], text: Sequence[str], star: str, same: Callable[[str, str], bool]) -> bool:
    """Match two sequences, `star` standing for any run of items.

    Only the latest star is ever given more items, which suffices and keeps a hostile pattern cheap.
    """
    at, position, star_at, resume = 0, 0, -1, 0
    while position < len(text):
        if at < len(pattern) and pattern[at] == star:
            star_at, resume = at, position
            at += 1
        elif at < len(pattern) and same(pattern[at], text[position]):
            at += 1
            position += 1
        elif star_at >= 0:
            resume += 1
            at, position = star_at + 1, resume
        else:
            return False
    return all(item == star for item in pattern[at:])


def default_routes() -> List[Route]:
    """The routes of the layout (spec 2.1), in the order they are tried."""
    routes = [
        Route("system", README, "signpost for whoever opens the folder"),
        Route("inbox", INBOX, "captured lines that have no place yet"),
        Route("system", "inbox/processing-log/*.md", "audit of triage, one note a month"),
        Route("journal", "journal/daily/*.md", "one note a day, with the agent log"),
    ]
    for period in ("weekly", "monthly", "quarterly", "annual"):
        routes.append(Route("rollup", f"journal/{period}/*.md", f"{period} rollups"))
    routes.append(Route("system", "journal/templates/*.md", "templates for journal notes"))
    for kind in KINDS.values():
        for choice in kind.choices or ("",):
            folder = kind.folder.format(status=choice, domain=choice)
            routes.append(Route(kind.name, f"{folder}/*.md", f"notes of kind {kind.name}"))
    routes += [
        Route("system", MARKER, "marker with the schema version"),
        Route("system", SCOPE, "current scope and its history"),
        Route("session", "_agent/sessions/*.md", "session logs, sortable by name"),
        Route("system", HEARTBEAT, "last committed session"),
        Route("system", INDEX, "entity index"),
        Route("system", INDEX + ".corrupt-*", "a broken entity index, kept aside"),
        Route("system", ROUTES, "this route map"),
        Route("system", INDEX_LOCK, "advisory lock"),
        Route("system", "_agent/locks/write.lock", "kernel lock of this host"),
        Route("system", "_agent/health/*.md", "findings of background sweeps"),
    ]
    return routes


class RouteMap:
    """The routes and retired places of one vault, immutable after loading."""

    def __init__(self, routes: Sequence[Route], retired: Sequence[Retired] = ()) -> None:
        self.routes = list(routes)
        self.retired_places = list(retired)

    @classmethod
    def load(cls, data: Optional[bytes]) -> "RouteMap":
        """Read `_agent/routing.json`; None (no such file) gives the default routes.

        Raises InvalidArgument with field "routing.json" when the file is not a route map.
        """
        if data is None:
            return cls(default_routes())
        try:
            document = json.loads(data.decode("utf-8-sig"))
        except (ValueError, RecursionError) as problem:
            raise _broken(f"is not JSON: {problem}") from None
        if not isinstance(document, dict) or document.get("version") != VERSION:
            raise _broken(f"does not say version {VERSION}")
        routes = [Route(*_row(row, "pattern", "kind", "pattern", "reason")) for row in _rows(document, "routes")]
        retired = [Retired(*_row(row, "pattern", "pattern", "instead")) for row in _rows(document, "retired")]
        return cls(routes, retired)

    def dump(self) -> bytes:
        """The canonical bytes of the route map: order kept, keys sorted, two-space indent, final newline."""
        document = {
            "version": VERSION,
            "routes": [route._asdict() for route in self.routes],
            "retired": [place._asdict() for place in self.retired_places],
        }
        return (json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode("utf-8")

    def match(self, path: str) -> Optional[Route]:
        """The first route that covers `path`, None when the path lies outside the map."""
        return next((route for route in self.routes if matches(route.pattern, path)), None)

    def retired(self, path: str) -> Optional[Retired]:
        """The retired place `path` lies in, None when it is not retired."""
        return next((place for place in self.retired_places if matches(place.pattern, path)), None)


def _rows(document: Dict[str, Any], key: str) -> List[Any]:
    rows = document.get(key, [])
    if not isinstance(rows, list):
        raise _broken(f"`{key}` is not a list")
    return rows


def _row(row: Any, needed: str, *keys: str) -> List[str]:
    """The texts of `keys` in one row, "" where absent; `needed` must be there."""
    if not isinstance(row, dict) or not row.get(needed):
        raise _broken(f"a row has no `{needed}`")
    values = [row.get(key, "") for key in keys]
    if not all(isinstance(value, str) for value in values):
        raise _broken("a row holds something else than text")
    return values


def _broken(why: str) -> InvalidArgument:
    return InvalidArgument(
        f"{ROUTES} {why}", hint="Repair the file, or remove it to use the default routes.", field="routing.json",
        path=ROUTES,
    )
