"""First mentions of known notes become links (spec 3.2).

Only prose is touched. The longest name wins, an ambiguous name or the note's own blocks what lies inside it, and a
note the text links to already gets no second link.
"""
from __future__ import annotations

import re
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

from echo_core.markdown import prose_spans
from echo_core.markdown.links import link_targets, wikilink
from echo_core.names.namelike import is_distinctive, is_everyday, is_german, is_ordinary, opens_sentence
from echo_core.names.ordinary_words import STOP_WORDS
from echo_core.paths import stem, without_extension
from echo_core.text import fold, name_keys
from echo_core.text.boundaries import SPACELESS, is_bounded

NAMED_KINDS = frozenset(("person", "company", "project"))
"""Kinds whose names may be ordinary words: Will, May, Go."""

_WORD = re.compile("(?:[^\\W_]|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0903\u093a-\u0963\u0980-\u0dff])+[+#]*")
_HARMLESS_MARKS = frozenset("-_'\u2019\u2010\u2011")
_MOST_WORDS = 12
_EXACT_CASE_LENGTH = 3
_HEAD = 2


class Linkable(NamedTuple):
    """One note a mention can mean. names: what it may be called, with or without the title."""

    path: str
    title: str
    names: Sequence[str]
    kind: str = ""


class _Name(NamedTuple):
    """One spelling and the one note it means; path "" when it means several.

    exact: only in this very spelling. inside: only where its capital is no matter of grammar.
    """

    text: str
    path: str
    exact: bool
    inside: bool = False


class _Mention(NamedTuple):
    start: int
    end: int
    path: str


class Linker:
    """The names of many notes, prepared once; every thread may use it."""

    def __init__(self, linkables: Iterable[Linkable]) -> None:
        self._worded: Dict[Tuple[str, ...], _Name] = {}
        self._longest: Dict[str, int] = {}
        self._spaceless: Dict[str, List[_Name]] = {}
        self._by_key: Dict[str, Set[str]] = {}
        for linkable in linkables:
            self.add(linkable)

    def add(self, linkable: Linkable) -> None:
        """Know one more note."""
        self._by_key.setdefault(fold(stem(linkable.path)), set()).add(linkable.path)
        for name in dict.fromkeys((linkable.title, *linkable.names)):
            self._add(name, linkable)

    def link(self, text: str, self_path: str) -> Tuple[str, List[str]]:
        """`text` with links, and the paths that were linked, in their order.

        self_path: the note the text goes into, never linked. A text that mentions nobody comes back as it is.
        """
        done = self._linked_already(text)
        result: List[str] = []
        added: List[str] = []
        end = 0
        for mention in self._mentions(text):
            if not mention.path or mention.path == self_path or mention.path in done:
                continue
            done.add(mention.path)
            added.append(mention.path)
            result += [text[end:mention.start], wikilink(mention.path, text[mention.start:mention.end])]
            end = mention.end
        return "".join(result) + text[end:], added

    def _add(self, name: str, linkable: Linkable) -> None:
        for key in name_keys(name):
            self._by_key.setdefault(key, set()).add(linkable.path)
        entry = _entry(name, linkable)
        if entry is None:
            return
        if SPACELESS.search(name):
            self._add_spaceless(entry)
            return
        for words in _spellings(_WORD.findall(name)):
            if 0 < len(words) <= _MOST_WORDS:
                self._worded[words] = _merged(self._worded.get(words), entry)
                self._longest[words[0]] = max(self._longest.get(words[0], 0), len(words))

    def _add_spaceless(self, entry: _Name) -> None:
        names = self._spaceless.setdefault(entry.text.lower()[:_HEAD], [])
        for place, known in enumerate(names):
            if known.text.lower() == entry.text.lower():
                names[place] = _merged(known, entry)
                return
        names.append(entry)
        names.sort(key=lambda name: -len(name.text))

    def _linked_already(self, text: str) -> Set[str]:
        found: Set[str] = set()
        for named in link_targets(text):
            target = without_extension(named) if named.endswith(".md") else named
            found.add(target + ".md")
            for key in name_keys(stem(target)) | {fold(target)}:
                found |= self._by_key.get(key, set())
        return found

    def _mentions(self, text: str) -> List[_Mention]:
        """Mentions that do not overlap, in order of place; of two that do, the longer one."""
        found: List[_Mention] = []
        for start, end in prose_spans(text):
            found.extend(self._worded_mentions(text, start, end))
            found.extend(self._spaceless_mentions(text, start, end))
        kept: List[_Mention] = []
        taken: Set[int] = set()
        for mention in sorted(found, key=lambda each: (each.start - each.end, each.start)):
            if taken.isdisjoint(range(mention.start, mention.end)):
                taken.update(range(mention.start, mention.end))
                kept.append(mention)
        return sorted(kept)

    def _worded_mentions(self, text: str, start: int, end: int) -> Iterator[_Mention]:
        words = [(match.start(), match.end()) for match in _WORD.finditer(text, start, end)]
        keys = [fold(text[left:right]) for left, right in words]
        for first, key in enumerate(keys):
            for count in range(min(self._longest.get(key, 0), len(words) - first), 0, -1):
                name = self._worded.get(tuple(keys[first:first + count]))
                place = words[first][0], words[first + count - 1][1]
                if name and _fits(name, text, *place):
                    yield _Mention(*place, name.path)
                    break

    def _spaceless_mentions(self, text: str, start: int, end: int) -> Iterator[_Mention]:
        if not self._spaceless:
            return
        lower = text.lower() if len(text.lower()) == len(text) else text
        for place in range(start, end):
            for name in self._spaceless.get(lower[place:place + _HEAD], ()):
                stop = place + len(name.text)
                same = stop <= end and lower.startswith(name.text.lower(), place)
                if same and is_bounded(text, place, stop):
                    yield _Mention(place, stop, name.path)
                    break


def autolink(text: str, linkables: Union[Linker, Iterable[Linkable]], self_path: str) -> Tuple[str, List[str]]:
    """`text` with the first mention of each known note as a link, and the paths that were linked.

    linkables: the notes a mention can mean, or a Linker that was made of them. self_path: the note the text goes
    into. The inserted link is `[[path without extension|the words that stood there]]`.
    """
    linker = linkables if isinstance(linkables, Linker) else Linker(linkables)
    return linker.link(text, self_path)


def _entry(name: str, linkable: Linkable) -> Optional[_Name]:
    """How `name` may be recognised; None when it says too little to be a mention of anything."""
    letters = [char for char in name if char.isalpha()]
    words = fold(name).split(" ")
    if len(name.strip()) < _HEAD or not letters:
        return None
    if len(words) > 1 or SPACELESS.search(name):
        return None if all(word in STOP_WORDS for word in words) else _Name(name, linkable.path, False)
    return _one_word(name, words[0], linkable)


def _one_word(name: str, word: str, linkable: Linkable) -> Optional[_Name]:
    """People, companies and projects are called by any word, an everyday one only as it is written; other notes by
    words that are hardly anything but their name."""
    short = sum(map(str.isalpha, name)) <= _EXACT_CASE_LENGTH
    capital = any(map(str.isupper, name))
    if linkable.kind in NAMED_KINDS:
        everyday = is_everyday(word) and not is_distinctive(name)
        return _Name(name, linkable.path, everyday or short) if capital or not is_ordinary(word) else None
    if is_ordinary(word):
        return None
    if is_distinctive(name):
        return _Name(name, linkable.path, short)
    everyday = is_everyday(word)
    return _Name(name, linkable.path, True, everyday) if capital or not everyday else None


def _merged(known: Optional[_Name], entry: _Name) -> _Name:
    """One name for both: of no certain note when they differ, bound to a spelling or place only when both are."""
    if known is None:
        return entry
    path = entry.path if known.path == entry.path else ""
    kept = entry if known.exact else known
    return _Name(kept.text, path, known.exact and entry.exact, known.inside and entry.inside)


def _spellings(words: Sequence[str]) -> Set[Tuple[str, ...]]:
    """The folded words of a name, in both German spellings."""
    plain = tuple(fold(word) for word in words)
    written_out = tuple(max(name_keys(word), key=len, default="") for word in words)
    return {plain, written_out}


def _fits(name: _Name, text: str, start: int, end: int) -> bool:
    """Whether the words at this place are written as the name is: on one line, no foreign punctuation between."""
    mention = text[start:end]
    if "\n" in mention or "\r" in mention or not is_bounded(text, start, end):
        return False
    if name.exact:
        return mention == name.text and not (name.inside and (opens_sentence(text, start) or is_german(text)))
    marks = {char for char in mention if not char.isalnum() and not char.isspace()}
    return marks <= _HARMLESS_MARKS.union(name.text)
