"""Search tokens of text in every script, the same at index and at query time (spec 5.2).

What a word gives is said in `echo_core.recall.word_forms`. Scripts that write without spaces give pairs of neighbouring
characters.
"""
from __future__ import annotations

import re
import unicodedata
from itertools import chain
from typing import AbstractSet, Dict, Iterable, Iterator, List, NamedTuple, Sequence, Tuple

from echo_core.recall.stemming import common_start
from echo_core.recall.word_forms import PREFIX, word_groups, word_tokens

__all__ = ["PREFIX", "VERSION", "Word", "find_words", "index_tokens", "is_paired", "query_words", "words"]

VERSION = 1
"""Grows when the same text gives other tokens: stored indexes of another version are rebuilt."""

_MOST_CHUNKS = 1 << 17
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
_PAIRED_RUN = re.compile(f"[{_PAIRED}]+")
# What may stand around a plain word without being part of it; a + or # may be.
_AROUND = "\"'()[]{}<>*.,;:!?|=-/\\`~"
_NO_PUNCTUATION = str.maketrans("", "", _AROUND + "_@")
_IS_PAIRED = re.compile(f"[{_PAIRED}]")
# Of these NFKC makes something else, or something else of them and their neighbours.
_UNSTABLE = re.compile(
    "[\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u11ff\u1780-\u17d3\u2e80-\u2fdf\u3097-\u30a0\u30fb\u30fd-\u318f"
    "\u31f0-\u31ff\ud7a4-\ud7ff\uf900-\ufaff\uff66-\uffdc\U0002f800-\U0002fa1f]"
)


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
            yield Word(match.start(), match.end(), word_tokens(run))


def find_words(text: str, tokens: AbstractSet[str]) -> List[Word]:
    """The words of `text` that have one of `tokens`, in order; much quicker than `words` when they are few."""
    pairs = [token for token in tokens if is_paired(token)]
    found = _find_pairs(text, pairs) if pairs else []
    if len(pairs) < len(tokens):
        found += _find_spaced(text, tokens)
    return sorted(found)


def _find_spaced(text: str, tokens: AbstractSet[str]) -> List[Word]:
    """The words in scripts with spaces, in no order."""
    found: List[Word] = []
    starts = tuple(set(map(_start, tokens)))
    # Most chunks are plain small letters, for which the whole question is asked right here.
    chunks = {chunk for chunk in set(text.split()) if (chunk.startswith(starts) or not (
        chunk.islower() and chunk.isalpha() and chunk.isascii())) and _may_hold(chunk, starts)}
    holders = _chunks_with(chunks).holders
    for chunk in {chunk for token in tokens for chunk in chunks.intersection(holders.get(token, ()))}:
        place = text.find(chunk)
        while place >= 0:
            end = place + len(chunk)
            if (place == 0 or text[place - 1].isspace()) and (end == len(text) or text[end].isspace()):
                for run in _RUN.finditer(text, place, end):
                    if not _IS_PAIRED.match(run.group()):
                        held = word_tokens(run.group())
                        if not tokens.isdisjoint(held):
                            found.append(Word(run.start(), run.end(), held))
            place = text.find(chunk, end)
    return found


def _may_hold(chunk: str, starts: Tuple[str, ...]) -> bool:
    """False when a chunk surely has no token that begins with one of these, as `_start` gives them.

    Stem and prefix of a plain word begin as it does, every other token with something that stands somewhere in the
    chunk. What is not ASCII has to be read.
    """
    if not chunk.isascii():
        return True
    word = chunk.strip(_AROUND)
    if word.isalpha() and (word.islower() or word[1:].islower() or word.isupper()):
        return word.lower().startswith(starts)
    bare = word.lower().translate(_NO_PUNCTUATION)
    return any(start in bare for start in starts)


def _start(token: str) -> str:
    """As many of a token's first letters, digits or signs as every word has that gives it."""
    bare = token[token.startswith(PREFIX):].translate(_NO_PUNCTUATION)
    return bare if token.startswith(PREFIX) else bare[:common_start(len(bare))]


def _find_pairs(text: str, pairs: Sequence[str]) -> List[Word]:
    """The pairs of characters in scripts without spaces, in no order."""
    if _UNSTABLE.search(text) or any(len(pair) < 2 for pair in pairs):
        wanted = set(pairs)
        return [word for match in _PAIRED_RUN.finditer(text)
                for word in _paired_words(match.group(), match.start()) if word.tokens[0] in wanted]
    found: List[Word] = []
    for pair in pairs:
        place = text.find(pair)
        while place >= 0:
            found.append(Word(place, place + 2, (pair,)))
            place = text.find(pair, place + 1)
    return found


def index_tokens(text: str) -> List[str]:
    """All tokens of a text that is to be found, repeated as often as they occur.

    Spaceless scripts give single characters too, so that a query of one character finds them.
    """
    chunks = text.split()
    return list(chain.from_iterable(map(_chunks_with(chunks).tokens.__getitem__, chunks)))


class _Chunks:
    """What stands between two blanks, with its tokens.

    tokens: of each chunk; holders: of each token its chunks; size: grows with the memory they take.
    """

    def __init__(self) -> None:
        self.tokens: Dict[str, Tuple[str, ...]] = {}
        self.holders: Dict[str, List[str]] = {}
        self.size = 0

    def add(self, chunk: str, found: Tuple[str, ...]) -> None:
        """Enter a chunk."""
        self.tokens[chunk] = found
        self.size += len(found) + 1
        for token in found:
            self.holders.setdefault(token, []).append(chunk)


_remembered, _older = _Chunks(), _Chunks()


def _chunks_with(chunks: Iterable[str]) -> _Chunks:
    """A table that has all of `chunks`. Most text repeats itself, so it is kept.

    When it is full a new one takes its place, and takes over what it is asked for. Threads that still use the old one
    are not disturbed.
    """
    global _remembered, _older
    table = _remembered
    for chunk in set(chunks).difference(table.tokens):
        table.add(chunk, _older.tokens.get(chunk) or _tokens_of_chunk(chunk))
    if table.size > _MOST_CHUNKS and table is _remembered:
        _remembered, _older = _Chunks(), table
    return table


def _tokens_of_chunk(chunk: str) -> Tuple[str, ...]:
    found: List[str] = []
    for run in _RUN.findall(chunk):
        if _IS_PAIRED.match(run):
            run = unicodedata.normalize("NFKC", run).lower()
            found.extend(run)
            if len(run) > 1:
                found.extend(_pairs(run))
        else:
            found.extend(word_tokens(run))
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
            found.extend(word_groups(run))
    return list(dict.fromkeys(found))


def is_paired(token: str) -> bool:
    """Whether a token is a pair of characters, or one, of a script written without spaces."""
    return bool(_IS_PAIRED.match(token))


def _paired_words(run: str, start: int) -> Iterator[Word]:
    last = len(run)
    for place, pair in enumerate(_pairs(unicodedata.normalize("NFKC", run).lower())):
        yield Word(start + min(place, last - 1), start + min(place + 2, last), (pair,))


def _pairs(run: str) -> List[str]:
    """Neighbouring characters in pairs, or the one character there is."""
    if len(run) < 2:
        return [run] if run else []
    return [run[place:place + 2] for place in range(len(run) - 1)]
