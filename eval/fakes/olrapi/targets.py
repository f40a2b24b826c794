"""Parts of a note (headings, blocks, frontmatter keys): the checks the plugin makes, and 501 for the work itself.

ECHO never uses the plugin's section writes; an answer 501 here means that somebody began to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakes.olrapi import paths
from fakes.olrapi.replies import Refusal

if TYPE_CHECKING:
    from fakes.olrapi.vault_routes import Call

NOT_HERE = Refusal(501, text="This double does not read or write parts of a note.")
NO_TYPE = Refusal(code=40053, text="No 'Target-Type' header was provided.")
NO_TARGET = Refusal(code=40055, text="No 'Target' header was provided.")
BAD_TARGET = Refusal(code=40058, text="The 'Target' header you provided was invalid.")
BAD_CONTENT_TYPE = Refusal(code=40012, text="Unknown or invalid Content-Type specified in Content-Type header.")
BAD_VERSION = Refusal(
    code=40082,
    text="The 'Markdown-Patch-Version' header you provided was invalid. Valid values are '1' (the deprecated "
         "header-driven format) and '2' (the default JSON-instruction format).",
)
NEEDS_VERSION_1 = Refusal(
    code=40083,
    text="Header-based targeting (Target-Type/Target and the related Target-Scope/Target-Delimiter/"
         "Trim-Target-Whitespace headers) is deprecated and only processed when you also send 'Markdown-Patch-Version: "
         "1'. Without it, reach a sub-part of a document with path-element targeting instead (e.g. "
         "/vault/note.md/heading/My%20Heading).",
)
SUNSET = 'true; sunset-version="6.0"'


def _has_headers(call: Call) -> bool:
    return bool(call.request.header("target-type") or call.request.header("target"))


def _bad_type(call: Call, detail: str = "") -> Refusal:
    return Refusal(code=40054, text=call.dialect.invalid_target_type, detail=detail)


def _check_version(call: Call, by_header: bool) -> None:
    """Refuse a Markdown-Patch-Version that 5.x does not know, and header targets without version 1."""
    if not call.dialect.decodes_segments:
        return
    version = call.request.headers.get("markdown-patch-version", "2")
    if version not in ("1", "2"):
        raise BAD_VERSION
    if by_header and version != "1":
        raise NEEDS_VERSION_1


def read(call: Call, found: paths.Resolved) -> None:
    """GET of a part that the path names."""
    if _has_headers(call):
        raise Refusal(code=42200, text=call.dialect.conflicting_target)
    if found.target_type not in paths.TARGETS:
        place = f"It was supplied as the URL path element '{found.target_type}', immediately after the note."
        raise _bad_type(call, place if call.dialect.decodes_segments else "")
    _check_version(call, by_header=False)
    raise NOT_HERE if found.target else NO_TARGET


def read_by_headers(call: Call) -> None:
    """GET of a part that headers name; returns when none is named."""
    kind = call.request.header("target-type")
    if not kind:
        return
    if kind not in paths.TARGETS:
        raise _bad_type(call, "It was supplied in the 'Target-Type' header." if call.dialect.decodes_segments else "")
    _check_version(call, by_header=True)
    raise NOT_HERE if _decoded(call) else NO_TARGET


def write(call: Call, found: paths.Resolved) -> None:
    """PUT or POST to a part that the path names. Always raises Refusal."""
    if _has_headers(call):
        raise Refusal(code=42200, text=call.dialect.conflicting_target)
    _check_write(call, found.target_type, found.target, by_header=False)


def write_by_headers(call: Call) -> None:
    """PUT or POST to a part that headers name; returns when none is named, else raises Refusal."""
    if not _has_headers(call):
        return
    kind = call.request.header("target-type")
    if not kind:
        raise NO_TYPE
    if kind not in paths.TARGETS:
        raise _bad_type(call)
    target = _decoded(call)
    if not target:
        raise NO_TARGET
    _check_write(call, kind, target, by_header=True)


def _check_write(call: Call, kind: str, target: str, by_header: bool) -> None:
    _check_version(call, by_header)
    media_type = call.request.header("content-type")
    checks = [
        (kind in paths.TARGETS, _bad_type(call)),
        (media_type in ("application/json", "text/markdown"), BAD_CONTENT_TYPE),
        (bool(target), NO_TARGET),
    ]
    if call.dialect.decodes_segments:
        checks[0], checks[1] = checks[1], checks[0]
    for held, refusal in checks:
        if not held:
            raise refusal
    raise NOT_HERE


def refuse_patch(call: Call, found: paths.Resolved | None, segments: list[str]) -> None:
    """PATCH of a part that the path names, in 5.x; returns when the path names a whole file."""
    if found is None and any(segment in paths.TARGETS for segment in segments):
        raise Refusal(404)
    version = call.request.headers.get("markdown-patch-version", "2")
    if found is None or not found.has_target:
        if version not in ("1", "2") and segments[-1]:
            raise BAD_VERSION
        return
    if version not in ("1", "2"):
        raise BAD_VERSION
    if _has_headers(call):
        raise Refusal(code=42200, text=call.dialect.conflicting_target)
    raise NOT_HERE


def _decoded(call: Call) -> str:
    """The Target header, percent-decoded. Raises Refusal."""
    try:
        return paths.decode(call.request.header("target"))
    except ValueError as error:
        raise BAD_TARGET from error
