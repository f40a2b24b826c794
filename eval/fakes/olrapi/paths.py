"""From a request's path to a place in the vault: decoding, the guard against leaving it, and note + target paths."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

from fakes.olrapi.dialects import Dialect
from fakes.olrapi.replies import Refusal
from fakes.olrapi.store import Store

TARGETS = ("heading", "block", "frontmatter")
TRAVERSAL = Refusal(
    code=40021, text="Path traversal is not allowed. Paths must be relative and within the vault."
)
_URI_SAFE = ";,/?:@&=+$-_.!~*'()#"


def decode(text: str) -> str:
    """decodeURIComponent. Raises ValueError where JavaScript raises URIError."""
    for at in range(len(text)):
        if text[at] == "%" and not _is_hex(text[at + 1 : at + 3]):
            raise ValueError(text)
    pieces = text.split("%")
    out, run = pieces[0], b""
    for piece in pieces[1:]:
        run += unquote_to_bytes(f"%{piece[:2]}")
        if piece[2:]:
            out, run = out + run.decode("utf-8") + piece[2:], b""
    return out + run.decode("utf-8")


def _is_hex(pair: str) -> bool:
    return len(pair) == 2 and all(char in "0123456789abcdefABCDEF" for char in pair)


def encode_uri(text: str) -> str:
    """encodeURI: everything but letters, digits and the reserved characters is percent-encoded."""
    return quote(text, safe=_URI_SAFE)


def vault_path(raw: str, dialect: Dialect) -> list[str]:
    """The decoded segments of what follows `/vault/`. Raises Refusal for a path out of the vault.

    Where the dialect decodes before it splits, a %2F makes two segments.
    """
    segments = [decode(segment) for segment in raw.split("/")]
    joined = "/".join(segments)
    if dialect.guards_traversal and not stays_inside(joined):
        raise TRAVERSAL
    return segments if dialect.decodes_segments else joined.split("/")


def stays_inside(path: str) -> bool:
    """Whether a path, resolved against the vault, is the vault or below it."""
    resolved = posixpath.normpath(path if path.startswith("/") else f"/vault/{path}")
    return resolved == "/vault" or resolved.startswith("/vault/")


def whole_file(segments: list[str]) -> str | None:
    """The segments as one path; None when one holds a slash, which no file name does."""
    return None if any("/" in segment for segment in segments) else "/".join(segments)


@dataclass(frozen=True)
class Resolved:
    """A file, and the target inside it that the rest of the path names ("" when the path is just the file)."""

    path: str
    target_type: str = ""
    target: str = ""
    has_target: bool = False


def resolve(segments: list[str], store: Store) -> Resolved | None:
    """The longest leading part of the path that is a file; None when there is none."""
    if segments[-1] == "":
        segments = segments[:-1]
    for length in range(len(segments), 0, -1):
        path = whole_file(segments[:length])
        if path is not None and store.kind(path) == "file":
            rest = segments[length:]
            if not rest:
                return Resolved(path)
            target = "::".join(rest[1:]) if rest[0] == "heading" else (rest[1] if len(rest) > 1 else "")
            return Resolved(path, rest[0], target, bool(rest[0]))
    return None
