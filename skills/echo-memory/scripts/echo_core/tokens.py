"""Search tokens of text in every script, the same at index and at query time (spec 5.2).

A word gives its stem, for letters with diacritics also the second spelling (ü as u and as ue), and `~` with its first
four letters: measured, that prefix finds inflected forms as well as a stemmer made for the language. Scripts that
write without spaces give pairs of neighbouring characters. An identifier gives its parts and the joined form.
"""
from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import chain
from typing import AbstractSet, Dict, Iterator, List, NamedTuple, Optional, Tuple

from echo_core.stemming import stem
from echo_core.text import name_keys

VERSION = 1
"""Grows when the same text gives other tokens: stored indexes of another version are rebuilt."""

PREFIX = "~"
_PREFIX_LENGTH = 4
_LONGEST_TOKEN = 64
_REMEMBERED = 1 << 15
_LONGEST_REMEMBERED = 40

_PAIRED = (
    "\u2e80-\u2fdf\u3005-\u3007\u3041-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"  # Chinese, Japanese
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff\uffa1-\uffdc"  # Korean
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u109f\u1780-\u17d3"  # Thai, Lao, Burmese, Khmer
)
# Marks that belong to a letter; Python's \w leaves them out.
_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0711-\u074a\u0900-\u0903"
    "\u093a-\u0963\u0980-\u0983\u09bc-\u09e3\u0a01-\u0a75\u0a81-\u0ae3\u0b01-\u0b63\u0b82-\u0bd7\u0c00-\u0c63"
    "\u0c81-\u0ce3\u0d00-\u0d63\u0d82-\u0df3\u0f18-\u0f39\u0f71-\u0f84\u0f90-\u0fbc\u200c\u200d"
)
_LETTER = f"(?:[^\\W{_PAIRED}]|[{_MARKS}])"
_RUN = re.compile(f"[{_PAIRED}]+|{_LETTER}+(?:[-./'\u2019\u02bc:@\\\\]{_LETTER}+)*(?:\\+\\+|#(?!\\w))?")
_CHUNK = re.compile(r"\S+")
_IS_PAIRED = re.compile(f"[{_PAIRED}]")
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


class Word(NamedTuple):
    """One word of a text: its place (offsets in characters), the tokens the index knows it by, the main one first."""

    start: int
    end: int
    tokens: Tuple[str, ...]


def words(text: str) -> Iterator[Word]:
    """Every word of `text` in order; a run of Chinese or another spaceless script gives a word per character pair."""
    for match in _RUN.finditer(text):
        run = match.group()
        if _IS_PAIRED.match(run):
            yield from _paired_words(run, match.start())
        else:
            yield Word(match.start(), match.end(), _run_tokens(run))


def find_words(text: str, tokens: AbstractSet[str]) -> Iterator[Word]:
    """The words of `text` that have one of `tokens`, in order; much quicker than `words` when they are few."""
    wanted = {chunk for chunk in set(text.split())
              if len(chunk) > _LONGEST_REMEMBERED or not tokens.isdisjoint(_CHUNK_TOKENS[chunk])}
    if not wanted:
        return
    for chunk in _CHUNK.finditer(text):
        if chunk.group() in wanted:
            yield from _words_between(text, chunk.start(), chunk.end(), tokens)


def _words_between(text: str, start: int, end: int, tokens: AbstractSet[str]) -> Iterator[Word]:
    for match in _RUN.finditer(text, start, end):
        run = match.group()
        if _IS_PAIRED.match(run):
            yield from _paired_words(run, match.start(), tokens)
        else:
            known = _run_tokens(run)
            if not tokens.isdisjoint(known):
                yield Word(match.start(), match.end(), known)


def index_tokens(text: str) -> List[str]:
    """All tokens of a text that is to be found, repeated as often as they occur.

    Spaceless scripts give single characters too, so that a query of one character finds them.
    """
    return list(chain.from_iterable(map(_CHUNK_TOKENS.__getitem__, text.split())))


class _ChunkTokens(Dict[str, Tuple[str, ...]]):
    """The tokens of what stands between two blanks, remembered while it is short: most text repeats itself.

    When it is full, what was not asked for since the last time it was full is forgotten.
    """

    def __init__(self) -> None:
        super().__init__()
        self._older: Dict[str, Tuple[str, ...]] = {}

    def __missing__(self, chunk: str) -> Tuple[str, ...]:
        found = self._older.get(chunk)
        if found is None:
            found = _tokens_of_chunk(chunk)
        if len(chunk) <= _LONGEST_REMEMBERED:
            if len(self) >= _REMEMBERED:
                self._older = dict(self)
                self.clear()
            self[chunk] = found
        return found


_CHUNK_TOKENS = _ChunkTokens()


def _tokens_of_chunk(chunk: str) -> Tuple[str, ...]:
    found: List[str] = []
    for run in _RUN.findall(chunk):
        if _IS_PAIRED.match(run):
            run = unicodedata.normalize("NFKC", run).lower()
            found.extend(run)
            if len(run) > 1:
                found.extend(_pairs(run))
        else:
            found.extend(_run_tokens(run))
    return tuple(found)


def query_words(text: str) -> List[Tuple[str, ...]]:
    """The words of a query, each as the tokens that would count as finding it, the main one first.

    Repeated words are given once. Empty for a query without letters and digits.
    """
    found: List[Tuple[str, ...]] = []
    for run in _RUN.findall(text):
        if _IS_PAIRED.match(run):
            found.extend((pair,) for pair in _pairs(unicodedata.normalize("NFKC", run).lower()))
        else:
            found.extend(_word_groups(run))
    return list(dict.fromkeys(found))


def is_paired(token: str) -> bool:
    """Whether a token is a pair of characters, or one, of a script written without spaces."""
    return bool(_IS_PAIRED.match(token))


def _paired_words(run: str, start: int, tokens: Optional[AbstractSet[str]] = None) -> Iterator[Word]:
    """The pairs of a run, or those of them that are `tokens`."""
    last = len(run)
    pairs = _pairs(unicodedata.normalize("NFKC", run).lower())
    for place in range(len(pairs)) if tokens is None else [at for at, pair in enumerate(pairs) if pair in tokens]:
        yield Word(start + min(place, last - 1), start + min(place + 2, last), (pairs[place],))


def _pairs(run: str) -> List[str]:
    """Neighbouring characters in pairs, or the one character there is."""
    if len(run) < 2:
        return [run] if run else []
    return [run[place:place + 2] for place in range(len(run) - 1)]


@lru_cache(maxsize=_REMEMBERED)
def _run_tokens(run: str) -> Tuple[str, ...]:
    """The tokens of all parts of a word, the joined form once, at the end."""
    groups = _word_groups(run)
    if len(groups) < 2:
        return groups[0] if groups else ()
    shared = set(groups[0]).intersection(*groups[1:])
    return tuple(token for group in groups for token in group if token not in shared) + tuple(sorted(shared))


def _word_groups(run: str) -> Tuple[Tuple[str, ...], ...]:
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
