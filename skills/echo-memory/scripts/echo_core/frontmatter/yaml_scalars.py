"""What a YAML scalar means, and how to write a value so that every YAML reader means the same (spec 2.2)."""
from __future__ import annotations

import math
import re
from datetime import date
from typing import Any

from echo_core.errors import InvalidArgument

_WORDS: dict[str, Any] = {"": None, "~": None}
for _word, _meaning in (("null", None), ("true", True), ("false", False)):
    _WORDS.update({_word: _meaning, _word.title(): _meaning, _word.upper(): _meaning})
# YAML 1.1 readers take these for booleans, YAML 1.2 readers (Obsidian) for text: read as text, written in quotes.
_OLD_BOOLEANS = frozenset({"y", "n", "yes", "no", "on", "off"})
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})")
_DECIMAL = re.compile(r"-?[0-9]{1,15}\.[0-9]{1,16}")
_NUMBER_LIKE = re.compile(
    r"[-+]?(?:\.[0-9_]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?0[xob][0-9a-fA-F_]+"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"
    r"|[-+]?\.(?:inf|Inf|INF|nan|NaN|NAN)"
)
_DATE_LIKE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}.*)?")
_ISO = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:T(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?(?:Z|[-+](?:0[0-9]|1[0-4]):[0-5][0-9])?)?"
)
_INDICATORS = frozenset("-?:,[]{}#&*!|>'\"%@`=<")
# Not printable in YAML, or a line break to some reader: such characters need an escape.
_ESCAPED = re.compile('["\\\\\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]')
_NAMED_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SURROGATE = re.compile("[\ud800-\udfff]")


def resolve(plain: str) -> Any:
    """The value of an unquoted scalar: None, bool, int, float or str.

    Only numbers that print the same again become numbers; `007`, `1.50`, dates and long digits stay text.
    """
    if plain in _WORDS:
        return _WORDS[plain]
    if _INTEGER.fullmatch(plain) and plain != "-0":
        return int(plain)
    if _DECIMAL.fullmatch(plain) and repr(float(plain)) == plain:
        return float(plain)
    return plain


def is_date_like(plain: str) -> bool:
    """Whether a YAML reader could take an unquoted scalar for a date or an instant."""
    return _DATE_LIKE.fullmatch(plain) is not None


def same(old: Any, new: Any) -> bool:
    """Whether the value read from a note is the value to write; `1.50` in a note is the number 1.5."""
    if isinstance(old, list) and isinstance(new, (list, tuple)):
        return len(old) == len(new) and all(same(left, right) for left, right in zip(old, new))
    if isinstance(new, (int, float)) and not isinstance(new, bool) and isinstance(old, str):
        return bool(_number(old) == new)
    return type(old) is type(new) and bool(old == new)


def _number(text: str) -> Any:
    """The number a plain scalar such as `1.50` or `1.0e+16` writes, None for other text."""
    if len(text) < 400 and re.fullmatch(r"-?[0-9]+(?:\.[0-9]+(?:e[-+][0-9]+)?)?", text):
        return float(text) if "." in text else int(text)
    return None


def render(value: Any, flow: bool = False) -> str:
    """The source of one scalar, quoted only where some YAML reader would mean something else.

    flow: it will stand inside `[...]`. Raises InvalidArgument for what is no scalar or cannot be written.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _render_float(value)
    if not isinstance(value, str):
        raise InvalidArgument(f"a property holds text, numbers, true or false, not {type(value).__name__}",
                              field="content")
    if _SURROGATE.search(value):
        raise InvalidArgument("the text holds half of a surrogate pair", field="content")
    if not needs_quotes(value, flow):
        return value
    return '"' + _ESCAPED.sub(_escape, value) + '"'


def _render_float(value: float) -> str:
    """A float with a point in it, which YAML 1.1 needs to see a number."""
    if not math.isfinite(value):
        raise InvalidArgument("a property cannot hold an infinite number", field="content")
    mantissa, e, exponent = repr(value).partition("e")
    return (mantissa if "." in mantissa or not e else mantissa + ".0") + e + exponent


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    named = _NAMED_ESCAPES.get(char)
    if named or char == "\xa0":
        return named or char
    return f"\\x{ord(char):02x}" if ord(char) < 256 else f"\\u{ord(char):04x}"


def needs_quotes(text: str, flow: bool = False) -> bool:
    """Whether plain `text` would be read as something else by a YAML 1.1 or 1.2 reader, or is a wikilink."""
    if text in _WORDS or text.lower() in _OLD_BOOLEANS or text != text.strip():
        return True
    if text[0] in _INDICATORS or "[[" in text or ": " in text or ":\t" in text or text.endswith(":"):
        return True
    if " #" in text or "\t#" in text or _has_unprintable(text):
        return True
    if text.startswith(("---", "...")) or (flow and any(char in ",[]{}:?" for char in text)):
        return True
    return _NUMBER_LIKE.fullmatch(text) is not None or (is_date_like(text) and not _is_iso(text))


def _has_unprintable(text: str) -> bool:
    return any(match.group() not in '"\\\xa0' for match in _ESCAPED.finditer(text))


def _is_iso(text: str) -> bool:
    """Whether `text` is a real ISO day or instant, which stays plain."""
    match = _ISO.fullmatch(text)
    if not match:
        return False
    try:
        date.fromisoformat(match.group(1))
    except ValueError:
        return False
    return True
