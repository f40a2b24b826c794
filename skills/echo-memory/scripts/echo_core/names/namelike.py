"""Whether a word in running text is somebody's name or just the word (spec 3.2, auto-link).

A capital letter tells a name from a word only where the word would be small: not at the start of a sentence, and not
in German, whose nouns are all written large.
"""
from __future__ import annotations

import re
from typing import AbstractSet

from echo_core.names.everyday_words import EVERYDAY
from echo_core.names.ordinary_words import ORDINARY
from echo_core.text import fold

NOUN_ENDINGS = (
    "tion", "sion", "ment", "ness", "ity", "ance", "ence", "ship", "ics", "ism", "ing", "er", "or", "ist", "ure", "age",
    "able", "ive", "ary", "ory", "ful", "less", "ung", "heit", "keit", "schaft", "tat", "nis", "logy", "graphy", "al",
    "ty", "cy",
)
"""How folded words end that are made of other words: few names do."""

_SHORTEST_MADE = 6
_INFLECTIONS = (("", ""), ("s", ""), ("es", ""), ("ed", ""), ("d", ""), ("ing", ""), ("er", ""), ("ly", ""),
                ("es", "e"), ("ed", "e"), ("ing", "e"), ("er", "e"), ("ies", "y"))
_PLURAL = re.compile("[^eiosu]s")
_START = re.compile(r"""(?:^|[.!?…])["'”’)\]*_]*[\s\-+*>#(\["'“„«_\d.)|:]*\Z""")
_COLON = re.compile(r"[:–—][\s*_\"'“„]*\Z")
_GERMAN = frozenset((
    "und", "der", "das", "ist", "nicht", "ein", "eine", "einen", "einem", "dem", "den", "des", "mit", "auf", "von",
    "zum", "zur", "sich", "auch", "als", "bei", "nach", "aus", "wie", "oder", "wird", "werden", "wir", "ich", "sie",
    "fur", "im",
))
_GERMAN_SHARE = 0.1
_LETTERS = re.compile(r"[^\W\d_]+")


def is_ordinary(word: str) -> bool:
    """Whether the folded word, or what it is made from, is an everyday word that is never taken for a thing's name."""
    return _made_from(word, ORDINARY)


def is_everyday(word: str) -> bool:
    """Whether the folded word is most likely a plain noun: one of the lists, a plural, or made of another word."""
    bases = (word, word[:-1] if word.endswith("s") else "", word[:-2] if word.endswith("en") else "")
    made = any(len(base) >= _SHORTEST_MADE and base.endswith(NOUN_ENDINGS) for base in bases)
    return made or bool(_PLURAL.match(word[-2:])) or _made_from(word, EVERYDAY) or is_ordinary(word)


def is_distinctive(name: str) -> bool:
    """Whether the spelling alone marks a name: capitals inside, digits, signs, or a script without capitals."""
    letters = [char for char in name if char.isalpha()]
    return (any(char.isdigit() or char in "+#" for char in name) or any(map(str.isupper, letters[1:]))
            or not any(char.isupper() or char.islower() for char in letters))


def opens_sentence(text: str, start: int) -> bool:
    """Whether the word at `start` is the first of a sentence, a line or a list item."""
    line = text[max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1:start]
    return bool(_START.search(line) or _COLON.search(line))


def is_german(text: str) -> bool:
    """Whether function words of German are a tenth of the text or more."""
    words = [fold(word) for word in _LETTERS.findall(text)]
    return bool(words) and sum(word in _GERMAN for word in words) / len(words) >= _GERMAN_SHARE


def _made_from(word: str, known: AbstractSet[str]) -> bool:
    return any(word.endswith(ending) and word[:len(word) - len(ending)] + more in known
               for ending, more in _INFLECTIONS)
