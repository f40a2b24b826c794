"""Light stemming by script, no dictionaries (spec 5.2): both sides of a search go through it, so it need not be right.

Rules by script instead of by language: a short query rarely tells its language, and a stem only has to be the same
for the note and for the question.
"""
from __future__ import annotations

import re
from typing import Sequence

_VOWEL = re.compile("[aeiouy]")
_DOUBLE = re.compile(r"([bdfgmnprt])\1$")
_DERIVED = (
    ("ization", "iz"), ("isation", "iz"), ("ations", "at"), ("ation", "at"), ("ators", "at"), ("ator", "at"),
    ("fulness", ""), ("ousness", "ous"), ("iveness", "iv"), ("ments", ""), ("ment", ""), ("ness", ""), ("ities", ""),
    ("ity", ""), ("ising", "iz"), ("izing", "iz"), ("ise", "iz"), ("ize", "iz"), ("ically", "ic"), ("ally", ""),
    ("ful", ""), ("less", ""), ("able", ""), ("ible", ""), ("ly", ""), ("al", ""),
)
_DERIVED_BY_LAST = {
    last: tuple(pair for pair in _DERIVED if pair[0][-1] == last) for last in {ending[-1] for ending, _ in _DERIVED}
}
_RUSSIAN = """
иями ывала ывать ивать ование ования ованию ующий ующая ующие ениями
ями ами ией ого его ому ему ыми ими ешь ишь ете ите ила ыла ела ена ены ено ить ыть еть ать ять
ние ния нию нием ость ости остью
ях ах ов ев ей ой ий ый ая яя ое ее ые ие ую юю ом ем ам ям ия ья ию ью ии ла ло ли ть ет ут ют ит ат ят на ны но
а я о е и ы у ю ь й л н
"""
_RUSSIAN_ENDS = tuple(sorted(set(_RUSSIAN.split()), key=len, reverse=True))
_ARABIC_STARTS = ("وال", "بال", "كال", "فال", "ال", "لل", "و")
_ARABIC_ENDS = ("ها", "ان", "ات", "ون", "ين", "يه", "ه", "ي")
_SHORTEST_STEM = 3


def stem(word: str) -> str:
    """The stem of one folded, lower-case word of any script; a word it has no rule for comes back as it is."""
    if len(word) <= _SHORTEST_STEM or not word.isalpha():
        return word
    if word.isascii():
        return _english(word)
    if "\u0400" <= word[0] <= "\u04ff":
        return _without_end(word, _RUSSIAN_ENDS)
    if "\u0600" <= word[0] <= "\u06ff":
        return _without_end(_without_start(word, _ARABIC_STARTS), _ARABIC_ENDS)
    return word


def common_start(length: int) -> int:
    """How many letters at least every ASCII word shares with its stem from the start on. length: of the stem."""
    return length if length < _SHORTEST_STEM else min(length - 1, _SHORTEST_STEM + 1)


def _english(word: str) -> str:
    word = _singular(word)
    word = _plain_verb(word)
    for ending, kept in _DERIVED_BY_LAST.get(word[-1], ()):
        if word.endswith(ending) and len(word) - len(ending) > _SHORTEST_STEM:
            word = word[:-len(ending)] + kept
            break
    if word.endswith("ion") and len(word) > 5 and word[-4] in "st":
        word = word[:-3]
    if word.endswith("e") and len(word) > 4:
        word = word[:-1]
    if word.endswith("y") and len(word) > 3 and word[-2] not in "aeiou":
        word = word[:-1] + "i"
    return word


def _singular(word: str) -> str:
    if not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    if word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    return word[:-1]


def _plain_verb(word: str) -> str:
    for ending in ("ing", "ed"):
        base = word[:-len(ending)]
        if word.endswith(ending) and len(base) >= _SHORTEST_STEM and _VOWEL.search(base):
            return base[:-1] if _DOUBLE.search(base) else base
    return word


def _without_end(word: str, endings: Sequence[str]) -> str:
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[:-len(ending)]
    return word


def _without_start(word: str, starts: Sequence[str]) -> str:
    for start in starts:
        if word.startswith(start) and len(word) - len(start) >= _SHORTEST_STEM:
            return word[len(start):]
    return word
