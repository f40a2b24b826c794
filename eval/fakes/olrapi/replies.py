"""Answers as the plugin's web framework finishes them: JSON, ETag, 304, and what a 204 leaves out."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from fakes.olrapi import jsvalues, mimes
from fakes.olrapi.http1 import REASONS, Answer, Request


class Refusal(Exception):
    """A handler ends with one of the plugin's ready-made answers, an error or the 204."""

    def __init__(self, status: int = 0, code: int = 0, text: str = "", detail: str = "") -> None:
        super().__init__(f"{status or code}")
        self.status = status or code // 100
        self.code = code or status * 100
        self.message = "\n".join(part for part in (text or REASONS[self.status], detail) if part)


class Crash(Exception):
    """An error the plugin's handler did not expect; the text is the message of the JavaScript error."""


class NoAnswer(Exception):
    """The plugin never answers this request."""


def canned(answer: Answer, refusal: Refusal) -> None:
    """Put a ready-made answer into `answer`, over the headers that are already set."""
    answer.status = refusal.status
    send_json(answer, {"message": refusal.message, "errorCode": refusal.code})


def send_json(answer: Answer, value: Any) -> None:
    """A JSON body with two spaces of indent; a Content-Type set before stays."""
    answer.headers.setdefault("content-type", "application/json; charset=utf-8")
    send_text(answer, jsvalues.dumps(value, 2))


def send_text(answer: Answer, text: str) -> None:
    """A text body; whatever the Content-Type, it says charset=utf-8 afterwards."""
    kind = answer.headers.get("content-type", "text/html")
    if "charset" not in kind.lower():
        answer.headers["content-type"] = f"{kind}; charset=utf-8"
    answer.body = text.encode("utf-8", "surrogatepass")


def set_type(answer: Answer, media_type: str) -> None:
    """Name the media type, with its charset where the framework adds one."""
    answer.headers["content-type"] = mimes.with_charset(media_type)


def etag(body: bytes) -> str:
    """The weak entity tag of a body: its length in hex and 27 characters of its SHA-1."""
    digest = base64.b64encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode()[:27]
    return f'W/"{len(body):x}-{digest}"'


def finish(answer: Answer, request: Request) -> None:
    """Tag the body, turn a fresh answer into 304, and take away what 204 and 304 must not carry."""
    answer.headers["content-length"] = str(len(answer.body))
    answer.headers.setdefault("etag", etag(answer.body))
    if request.method in ("GET", "HEAD") and answer.status == 200 and _fresh(request, answer.headers["etag"]):
        answer.status = 304
    if answer.status in (204, 304):
        answer.body = b""
        for name in ("content-type", "content-length", "transfer-encoding"):
            answer.headers.pop(name, None)


def _fresh(request: Request, tag: str) -> bool:
    """Whether the client's copy is the current one."""
    wanted = request.header("if-none-match")
    if not wanted or "if-modified-since" in request.headers:
        return False
    if "no-cache" in [word.strip() for word in request.header("cache-control").split(",")]:
        return False
    if wanted == "*":
        return True
    return any(match.strip() in (tag, f"W/{tag}") or f"W/{match.strip()}" == tag for match in wanted.split(","))
