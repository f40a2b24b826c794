"""Request bodies as the plugin's parsers see them: by Content-Type into JSON, text, bytes — or lost as `{}`."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from typing import Any

from fakes.olrapi import jsvalues
from fakes.olrapi.dialects import Dialect
from fakes.olrapi.http1 import Request
from fakes.olrapi.replies import Refusal

_TOKEN = r"[!#$%&'*+\-.0-9A-Z^_`a-z|~]+"
_TYPE = re.compile(r"^ *[A-Za-z0-9][A-Za-z0-9!#$&^_-]{0,126}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126} *$")
_PARAMETER = re.compile(rf'; *({_TOKEN}) *= *("(?:[ !#-\[\]-~\x80-\xff]|\\[ -~])*"|{_TOKEN}) *')
JSON_TYPES = frozenset({
    "application/json", "application/vnd.olrapi.note+json", "application/vnd.olrapi.jsonlogic+json",
})
PATCH_TYPE = "application/vnd.olrapi.patch-instruction+json"
DATAVIEW_TYPE = "application/vnd.olrapi.dataview.dql+txt"
UNREADABLE = Refusal(
    code=40015,
    text="Your request body could not be processed as the content-type specified in your Content-Type header.",
)


def read(request: Request, dialect: Dialect) -> Any:
    """The parsed body: a JSON value, str for text/*, bytes for any other type, and {} when no parser takes it.

    Raises Refusal for a body that is not of its type.
    """
    kind, parameters = content_type(request.header("content-type"))
    if not kind or not request.has_body:
        return {}
    is_json = kind in JSON_TYPES or (dialect.creates_by_index and kind == PATCH_TYPE)
    is_text = kind.startswith("text/") or (dialect.hangs_on_errors and kind == DATAVIEW_TYPE)
    if not is_json and not is_text:
        return _inflated(request)
    charset = parameters.get("charset", "").lower() or "utf-8"
    if is_json and not charset.startswith("utf-"):
        raise _unsupported(charset)
    text = _decoded(_inflated(request), charset)
    return _json(text) if is_json else text


def content_type(header: str) -> tuple[str, dict[str, str]]:
    """The media type and its parameters; ("", {}) when the header is not well-formed to the last character."""
    kind, semicolon, _ = header.partition(";")
    if not _TYPE.match(kind):
        return "", {}
    parameters: dict[str, str] = {}
    at = len(kind)
    while semicolon and at < len(header):
        match = _PARAMETER.match(header, at)
        if match is None:
            return "", {}
        parameters[match[1].lower()] = re.sub(r"\\(.)", r"\1", match[2].strip('"'))
        at = match.end()
    return kind.strip().lower(), parameters


def _unsupported(charset: str) -> Refusal:
    return Refusal(500, detail=f'unsupported charset "{charset.upper()}"')


def _inflated(request: Request) -> bytes:
    """The body without its Content-Encoding. Raises Refusal for an encoding nobody knows."""
    encoding = request.header("content-encoding").lower() or "identity"
    try:
        if encoding == "gzip":
            return gzip.decompress(request.body)
        if encoding == "deflate":
            return zlib.decompress(request.body)
    except (OSError, EOFError, zlib.error) as error:
        raise Refusal(500, detail="incorrect header check") from error
    if encoding != "identity":
        raise Refusal(500, detail=f'unsupported content encoding "{encoding}"')
    return request.body


def _decoded(data: bytes, charset: str) -> str:
    """The body's text; a BOM is dropped, what is no text becomes U+FFFD. Raises Refusal for an unknown charset."""
    try:
        codecs.lookup(charset)
    except LookupError as error:
        raise _unsupported(charset) from error
    whole = data[: len(data) & ~1] if charset.startswith("utf-16") else data
    return whole.decode(charset, "replace").removeprefix("\ufeff")


def _json(text: str) -> Any:
    """The JSON value of a body, {} for an empty one. Raises Refusal."""
    if not text:
        return {}
    try:
        return jsvalues.parse(text)
    except (ValueError, RecursionError) as error:
        raise UNREADABLE from error


def as_bytes(body: Any) -> bytes:
    """What a PUT writes for a parsed body."""
    if isinstance(body, bytes):
        return body
    return as_utf8(body if isinstance(body, str) else jsvalues.dumps(body))


def as_utf8(text: str) -> bytes:
    """The text as a file; half a surrogate pair becomes U+FFFD."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text).encode()
