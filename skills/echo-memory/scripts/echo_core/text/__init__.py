"""Comparing, naming and judging text in every script (spec 2.3, 2.4, 3.2). `shorten` comes from `cutting`."""
from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import lru_cache

from echo_core.text.cutting import shorten

__all__ = ["fold", "name_keys", "one_line", "plural", "shorten", "slug", "suspicious_unicode"]

SLUG_CHARACTERS = 80
SLUG_BYTES = 180

_LATIN_SPECIAL = str.maketrans({
    "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l",
    "ħ": "h", "ı": "i", "ŋ": "n", "ŧ": "t", "ĸ": "k", "ſ": "s",
})
_GERMAN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})
# Letters and marks that show nothing: a name made of them could not be told from another.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
# What `fold` makes a blank of, for the common case of a plain name.
_ASCII_BLANKS = {code: " " for code in range(128) if unicodedata.category(chr(code))[0] in "PC"}
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_TAGS = re.compile("[\U000e0000-\U000e007f]")
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f")
_ZERO_WIDTH_RUN = re.compile("[\u180e\u200b-\u200d\u2060\ufeff]{2,}")


@lru_cache(maxsize=4096)
def _is_latin(char: str) -> bool:
    """Whether marks on `char` are Latin diacritics: Latin letters, and the digits that share them."""
    return char.isascii() or unicodedata.name(char, "").startswith("LATIN ")


def _is_mark(char: str) -> bool:
    return unicodedata.category(char)[0] == "M"


def _fold_latin(text: str) -> str:
    """Casefolded `text` with the diacritics of Latin letters gone; marks of other scripts belong to the letter."""
    if text.isascii():
        return text.casefold()
    kept = []
    latin = False
    for char in unicodedata.normalize("NFD", text.casefold()):
        if _is_mark(char):
            if latin:
                continue
        else:
            latin = _is_latin(char)
        kept.append(char)
    return unicodedata.normalize("NFC", "".join(kept).translate(_LATIN_SPECIAL))


def fold(text: str) -> str:
    """The key two spellings of one name share: no case, Latin diacritics, width or punctuation.

    Runs of punctuation and white space become one space, ends are trimmed; a text of punctuation alone keeps it,
    so that "?" and "!" stay two names. `#` behind a letter stays: C# is not C.
    """
    if text.isascii() and "#" not in text:
        plain = text.casefold()
        return " ".join(plain.translate(_ASCII_BLANKS).split()) or " ".join(plain.split())
    compatible = _fold_latin(unicodedata.normalize("NFKC", text))
    kept: list[str] = []
    for char in _INVISIBLE.sub("", compatible):
        if char == "#" and kept and kept[-1].isalnum():
            kept.append(char)
        elif char.isspace() or unicodedata.category(char)[0] in "PC":
            kept.append(" ")
        else:
            kept.append(char)
    return " ".join("".join(kept).split()) or " ".join(compatible.split())


def name_keys(text: str) -> frozenset[str]:
    """Every key a name is entered under: `fold`, and the second German spelling (ü as u and as ue)."""
    if text.isascii():
        return frozenset((fold(text),)) - {""}
    german = unicodedata.normalize("NFKC", text).casefold()
    german = unicodedata.normalize("NFC", german).translate(_GERMAN)
    return frozenset(key for key in (fold(text), fold(german)) if key)


def slug(title: str) -> str:
    """The file name of a title: letters and digits of every script, all else one "-" (spec 2.3).

    At most 80 characters and 180 bytes of UTF-8, never a split letter; `untitled-<8 hex>` when nothing is left.
    """
    kept: list[str] = []
    for char in _fold_latin(unicodedata.normalize("NFC", title)):
        joined = bool(kept) and kept[-1] != "-"
        if not _INVISIBLE.match(char) and (char.isalnum() or (joined and _is_mark(char))):
            kept.append(char)
        elif joined:
            kept.append("-")
    name = _cut_slug("".join(kept).strip("-"))
    if name:
        return name
    return "untitled-" + hashlib.sha256(title.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _cut_slug(name: str) -> str:
    """`name` within both limits, cut before a letter and its marks rather than through them."""
    end = min(len(name), SLUG_CHARACTERS)
    while len(name[:end].encode("utf-8")) > SLUG_BYTES:
        end -= 1
    while 0 < end < len(name) and _is_mark(name[end]):
        end -= 1
    return name[:end].strip("-")


def one_line(text: str) -> str:
    """`text` on one line: every run of white space and line separators is one space, ends trimmed."""
    return " ".join(text.split())


def suspicious_unicode(text: str) -> int:
    """How many characters could hide or reorder text: bidi controls, tag characters, runs of zero-width ones.

    Emoji joiners, Persian joiners and flags made of tag characters are ordinary writing and count nothing.
    """
    if text.isascii():
        return 0
    hidden = len(_BIDI.findall(text)) + len(_TAGS.findall(_FLAG.sub("", text)))
    return hidden + sum(len(run) for run in _ZERO_WIDTH_RUN.findall(text))


def timespan(seconds: int) -> str:
    """Seconds in words, in the largest unit that gives at least two: "90 seconds", "3 minutes", "40 hours"."""
    if seconds < 5:
        return "a few seconds"
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * length:
            return plural(seconds // length, unit)
    return plural(seconds, "second")


def plural(count: int, noun: str) -> str:
    """`count` with its noun in the right number: "1 note", "2 notes", "3 entries"."""
    if count == 1:
        return f"1 {noun}"
    if re.search("[^aeiou]y$", noun):
        return f"{count} {noun[:-1]}ies"
    return f"{count} {noun}{'es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's'}"
