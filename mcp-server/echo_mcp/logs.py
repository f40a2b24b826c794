"""Logs: one JSON line for each call and event, and never a value that came from a caller or a note (spec 4.3).

Lines of libraries are reduced to where they came from and the type of the exception: their messages repeat
request contents. At most one line a second for each such place.
"""
from __future__ import annotations

import json
import logging
import os
import sys
import time
import traceback
from typing import Any, TextIO

LOGGER = logging.getLogger("echo_mcp")
_LIBRARIES = ("uvicorn", "mcp", "asyncio", "watchfiles", "anyio")


class _JsonLines(logging.Handler):
    """Writes each record as one line; non-ASCII and control characters are escaped."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._last: dict[tuple[str, int], float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {"ts": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))}
        fields["level"] = record.levelname.lower()
        if record.name == LOGGER.name:
            fields.update(event=record.getMessage(), **getattr(record, "fields", {}))
        elif self._too_often(record):
            return
        else:
            fields.update(event="library", logger=record.name, where=f"{record.filename}:{record.lineno}")
        if record.exc_info and record.exc_info[0] is not None:
            fields["exception"] = record.exc_info[0].__name__
        try:
            self._stream.write(json.dumps(fields) + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            self.handleError(record)

    def _too_often(self, record: logging.LogRecord) -> bool:
        place = (record.pathname, record.lineno)
        recent = record.created - self._last.get(place, 0.0) < 1.0
        if not recent:
            self._last[place] = record.created
        return recent


def configure(level: str, stream: TextIO | None = None) -> None:
    """Send ECHO's own lines of `level` and above, and warnings of libraries, to `stream` (stdout by default)."""
    root = logging.getLogger()
    root.handlers[:] = [_JsonLines(stream or sys.stdout)]
    root.setLevel(logging.WARNING)
    logging.raiseExceptions = False
    LOGGER.setLevel(level.upper())
    for name in _LIBRARIES:
        logger = logging.getLogger(name)
        logger.handlers[:] = []
        logger.propagate = True
        logger.setLevel(logging.WARNING)


def event(name: str, level: int = logging.INFO, **fields: Any) -> None:
    """Log one event. fields: numbers, booleans and words of ours; never text from outside."""
    LOGGER.log(level, name, extra={"fields": fields})


def cause(failure: BaseException) -> dict[str, str]:
    """`exception`: its type; `where`: the file name and line that raised it. Of a group, those of its first member."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    frames = traceback.extract_tb(failure.__traceback__)
    where = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    return {"exception": type(failure).__name__, "where": where}


def notice(message: str) -> None:
    """Log a sentence of the ops layer, which names no values (internal errors with their id, locks)."""
    LOGGER.warning("notice", extra={"fields": {"message": message[:500]}})
