"""What one word is known by: its stem, its other spellings, its first letters, its parts (spec 5.2).

A word gives its stem, for letters with diacritics also the second spelling (ü as u and as ue), and `~` with its first
four letters: measured, that prefix finds inflected forms as well as a stemmer made for the language. An identifier
gives its parts and the joined form.
"""
from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import List, Tuple

from echo_core.recall.stemming import stem
from echo_core.text import name_keys

PREFIX = "~"
REMEMBERED = 1 << 15
"""Words whose forms are remembered: most text repeats itself."""

_PREFIX_LENGTH = 4
_LONGEST_TOKEN = 64
_SEGMENT_BREAK = re.compile(r"[\s/\\:@]")  # blanks: compatibility forms such as \ufdfa stand for several words
_PART_BREAK = re.compile("[-._'\u2019\u02bc]+")
_CAMEL = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SUFFIX = re.compile(r"(\w)(\+\+|#)$")
_POSSESSIVE = re.compile("['\u2019\u02bc][sS]$")
_CONTRACTION = re.compile("(?<=[a-zA-Z])['\u2019\u02bc](?=(?:t|re|ve|ll|d|m)$)", re.IGNORECASE)
_LOOSE_MARKS = re.compile("[\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u200c\u200d]")
_GREEK_ACCENT = re.compile("[\u0300\u0301\u0308\u0342\u0345]")
# Letters that are written one for the other: Arabic alefs, ya and ta marbuta, Russian yo.
_SAME_LETTER = str.maketrans("أإآٱىیةё", "ااااييهе")


@lru_cache(maxsize=REMEMBERED)
def word_tokens(run: str) -> Tuple[str, ...]:
    """The tokens of all parts of a word, the joined form once, at the end."""
    groups = word_groups(run)
    if len(groups) < 2:
        return groups[0] if groups else ()
    shared = set(groups[0]).intersection(*groups[1:])
    return tuple(token for group in groups for token in group if token not in shared) + tuple(sorted(shared))


def word_groups(run: str) -> Tuple[Tuple[str, ...], ...]:
    """One group of tokens for each part of a word; every group also holds the joined form of its segment."""
    compatible = unicodedata.normalize("NFKC", run)
    if compatible.isalpha() and not (compatible.isascii() and _is_camel(compatible)):
        return (_forms(compatible),)
    groups: List[Tuple[str, ...]] = []
    for segment in _SEGMENT_BREAK.split(compatible):
        segment = _CONTRACTION.sub("", _POSSESSIVE.sub("", segment))
        suffix = _SUFFIX.search(segment)
        if suffix:
            groups.append((segment.lower(), *_forms(segment[:suffix.start(2)])))
            continue
        parts = _parts(segment)
        joined = _forms("".join(parts))[:1] if len(parts) > 1 else ()
        groups.extend(_forms(part) + joined for part in parts)
    return tuple(groups)


def _is_camel(word: str) -> bool:
    """Whether letters change from small to capital inside a word of ASCII letters."""
    return not (word.islower() or word.isupper() or word[1:].islower())


def _parts(segment: str) -> List[str]:
    parts: List[str] = []
    for piece in _PART_BREAK.split(segment):
        parts.extend(_CAMEL.findall(piece) if piece.isascii() else [piece])
    return [part for part in parts if part]


def _forms(word: str) -> Tuple[str, ...]:
    """Stem, stem of the second spelling, prefix: what one plain word is known by."""
    word = word[:_LONGEST_TOKEN].lower()
    spellings = [word] if word.isascii() else _spellings(word)
    forms = [stem(spelling) for spelling in spellings]
    if len(spellings[0]) > _PREFIX_LENGTH and not any(map(str.isdigit, spellings[0])):
        forms.append(PREFIX + spellings[0][:_PREFIX_LENGTH])
    return tuple(dict.fromkeys(forms))


def _spellings(word: str) -> List[str]:
    """The word without diacritics, and with German ones written out, shortest first; other scripts without points."""
    bare = _LOOSE_MARKS.sub("", word).translate(_SAME_LETTER) or word
    if "\u0370" <= bare[0] <= "\u03ff" or "\u1f00" <= bare[0] <= "\u1fff":
        bare = unicodedata.normalize("NFC", _GREEK_ACCENT.sub("", unicodedata.normalize("NFD", bare)))
        bare = bare.replace("ς", "σ")
    return sorted(name_keys(bare), key=lambda key: (len(key), key)) or [bare]
