"""A double of Obsidian's Local REST API plugin, as a real HTTP server over a folder.

    with Olrapi(root, version="5.1.0", key="KEY") as api:
        api.url, api.port
        api.faults.add("error_after", method="PUT", path="projects/", times=1)
        api.race.seconds = 0.01
        api.log.count("GET", "/vault/a.md")

It answers as the plugin versions 5.1.0, 4.1.7 and 3.6.1 do, loses parallel appends as they do, and breaks on demand.

Faults (settings in `faults.Fault`): refuse (nothing listens) · hang · slow · reset_request (after `after` bytes of the
request) · error_before · error_after (5xx before and after the effect) · hang_after · reset_response, half (after
`after` bytes of the answer; half closes politely) · redirect · wrong_key · cold (existing notes are 404, the index is
empty) · ignore_case (names of any case mean the same file) · phantom (204 without effect) · endless · gzip_bomb ·
garbage (no HTTP at all).
"""

from __future__ import annotations

from fakes.olrapi.control import Control
from fakes.olrapi.dialects import DIALECTS
from fakes.olrapi.faults import Fault, Faults
from fakes.olrapi.race import Race
from fakes.olrapi.requestlog import Entry, RequestLog
from fakes.olrapi.server import Olrapi

__all__ = ["DIALECTS", "Control", "Entry", "Fault", "Faults", "Olrapi", "Race", "RequestLog"]
