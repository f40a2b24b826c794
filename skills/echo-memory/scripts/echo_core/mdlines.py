"""Lines and line ends of a note, as Markdown counts them: LF, CRLF and lone CR, nothing else."""
from __future__ import annotations

import re
from typing import Iterator, Tuple

_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|$)")


def split_lines(text: str) -> Iterator[Tuple[int, int, int]]:
    """Each line as (start, end of its text, start of the next line), in characters."""
    if "\r" in text:
        for match in _LINE.finditer(text):
            if match.end() > match.start():
                yield match.start(), match.end(1), match.end()
        return
    start = 0
    for line in text.split("\n"):
        end = start + len(line)
        if end < len(text):
            yield start, end, end + 1
        elif end > start:
            yield start, end, end
        start = end + 1


def body_offset(text: str) -> int:
    """Where the body starts: behind the frontmatter block, or 0 (behind a byte order mark all the same)."""
    match = re.match(r"\ufeff?---[ \t]*(?:\r\n|\r|\n)", text)
    if not match:
        return 0
    for start, end, stop in split_lines(text):
        if start >= match.end() and text[start:end].rstrip() in ("---", "..."):
            return stop
    return 0


def detect_eol(text: str) -> str:
    """The line end most lines of `text` have, "\\n" when there is none or on a tie with it."""
    crlf = text.count("\r\n")
    counts = {"\n": text.count("\n") - crlf, "\r\n": crlf, "\r": text.count("\r") - crlf}
    return max(counts, key=lambda eol: counts[eol])
