"""The route map says which paths belong to whom, and survives what people write into it (spec 2.5)."""
from __future__ import annotations

import json

import pytest
from echo_core.errors import InvalidArgument
from echo_core.kinds import KINDS, place
from echo_core.routing import RouteMap, matches


def test_without_a_file_every_place_of_the_layout_has_a_route() -> None:
    """All kinds, the journal, the inbox and the control files are covered; somebody's own folder is not."""
    routes = RouteMap.load(None)
    for kind in KINDS:
        route = routes.match(place(kind, "x", day="2026-11-30"))
        assert route is not None
        assert route.kind == kind
    for path in (
        "README.md", "inbox/captures/inbox.md", "inbox/processing-log/2026-11.md", "journal/daily/2026-11-30.md",
        "journal/weekly/2026-W49.md", "journal/monthly/2026-11.md", "journal/quarterly/2026-Q4.md",
        "journal/annual/2026.md", "journal/templates/daily.md", "_agent/echo-vault.md", "_agent/sessions/a.md",
        "_agent/context/current-context.md", "_agent/sessions/heartbeat.json", "_agent/index/entities.json",
        "_agent/routing.json", "_agent/locks/index.json", "_agent/health/2026-11-vault-health.md",
        "projects/archived/x.md", "areas/systems/x.md",
    ):
        assert routes.match(path), path
    for path in ("Diary/a.md", "projects/a.md", "resources/people/deep/a.md", "a.md"):
        assert routes.match(path) is None, path


def test_dump_and_load_give_the_same_map_and_stable_bytes() -> None:
    """The canonical bytes are pinned: sorted keys, two-space indent, final newline, UTF-8 unescaped."""
    data = RouteMap.load(None).dump()
    assert RouteMap.load(data).dump() == data
    tiny = b'{"version":1,"routes":[{"pattern":"B\xc3\xbccher/*.md","reason":"b","kind":"k"}]}'
    assert RouteMap.load(tiny).dump().decode() == (
        '{\n  "retired": [],\n  "routes": [\n    {\n      "kind": "k",\n      "pattern": "Bücher/*.md",\n'
        '      "reason": "b"\n    }\n  ],\n  "version": 1\n}\n'
    )


def test_a_retired_place_says_what_to_use_instead() -> None:
    """Retired patterns are asked apart, also below a route that still covers them."""
    routes = RouteMap.load(json.dumps({
        "version": 1, "routes": [{"kind": "x", "pattern": "notes/**", "reason": ""}],
        "retired": [{"pattern": "notes/old/**", "instead": "projects/archived"}],
    }).encode())
    retired = routes.retired("notes/old/a/b.md")
    assert retired is not None
    assert retired.instead == "projects/archived"
    assert routes.retired("notes/new.md") is None
    assert routes.match("notes/old/a.md") is not None


@pytest.mark.parametrize(("pattern", "path", "right"), [
    ("a/*.md", "a/x.md", True),
    ("a/*.md", "a/b/x.md", False),
    ("a/**", "a/b/x.md", True),
    ("a/**/x.md", "a/x.md", True),
    ("a/**/x.md", "a/b/c/x.md", True),
    ("a/**/x.md", "a/b/y.md", False),
    ("**", "any/thing.md", True),
    ("*/x.md", "x.md", False),
    ("a/2026-*-*.md", "a/2026-11-30.md", True),
    ("a.md", "aXmd", False),
    ("a/[b].md", "a/[b].md", True),
    ("A/*.md", "a/x.md", False),
    ("ü/*.md", "ü/x.md", True),
])
def test_patterns_match_by_segments(pattern: str, path: str, right: bool) -> None:
    """`*` stays inside a segment, `**` spans any number of them, everything else is literal."""
    assert matches(pattern, path) is right


def test_a_hostile_pattern_costs_no_time() -> None:
    """Many stars against a long name: it ends, since the time grows with the lengths and not exponentially."""
    assert not matches("*a" * 60 + "b", "a" * 250)
    assert not matches("/".join(["**", "a"] * 30) + "/b", "/".join(["a"] * 200))


@pytest.mark.parametrize("data", [
    b"", b"{", b"[]", b"null", b'{"version": 2, "routes": []}', b'{"version": 1, "routes": {}}',
    b'{"version": 1, "routes": [1]}', b'{"version": 1, "routes": [{"kind": "x"}]}',
    b'{"version": 1, "routes": [{"pattern": 3}]}', b'{"version": 1, "retired": [{"instead": "x"}]}', b"\xff\xfe",
    b"[" * 100_000,
])
def test_a_broken_route_map_is_refused_in_one_line(data: bytes) -> None:
    """Whatever the file holds, the answer is an error that names the file, never a traceback or an empty map."""
    with pytest.raises(InvalidArgument) as refused:
        RouteMap.load(data)
    assert "routing.json" in refused.value.message
    assert "\n" not in refused.value.message
