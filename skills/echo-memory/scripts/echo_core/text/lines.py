"""Where the lines of a text begin and end, with any line end: "\\n", "\\r\\n" or a lone "\\r"."""
from __future__ import annotations


def line_start(text: str, at: int) -> int:
    """The start of the line that holds the offset `at`."""
    after_lf = text.rfind("\n", 0, at) + 1
    return text.rfind("\r", after_lf, at) + 1 or after_lf


def line_end(text: str, at: int) -> int:
    """The offset of the line end, or of the end of the text, at or after `at`."""
    lf = text.find("\n", at)
    end = len(text) if lf < 0 else lf
    cr = text.find("\r", at, end)
    return end if cr < 0 else cr


def next_line(text: str, at: int) -> int:
    """The start of the line after the one that holds `at`; beyond the text when that is the last one."""
    end = line_end(text, at)
    return end + (2 if text[end:end + 2] == "\r\n" else 1)


def eol_before(text: str, at: int) -> str:
    """The line end right before `at`, which must not be 0."""
    return "\r\n" if text[at - 2:at] == "\r\n" else text[at - 1]
