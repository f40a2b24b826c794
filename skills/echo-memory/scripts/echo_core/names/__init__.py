"""What a name means: entities of the index and every other note of the vault, in one lookup (spec 2.4).

Order: path, slug, title (with slug and file name, folded), alias. Two notes on one name in one step are ambiguous.
System notes own their title and file name; ECHO's own files and conflict copies are asked last. All answers come
from lookup tables: the catalog's, and a small one for entries of the index that say something else than the note.
"""
from __future__ import annotations

import threading
import unicodedata
from itertools import chain
from typing import Dict, FrozenSet, Iterable, List, NamedTuple, Set, Tuple, Union

from echo_core.catalog.catalog import Catalog
from echo_core.catalog.names import file_stem, note_keys
from echo_core.errors import Ambiguous, NotFound
from echo_core.index.names import IndexNames, IndexSource
from echo_core.kinds import SYSTEM_NOTES, is_system, kind_of
from echo_core.lint.sync_copies import conflict_copy
from echo_core.names.autolink import Linkable
from echo_core.names.nearest import NearestNames
from echo_core.text import name_keys

MAX_CANDIDATES = 10
"""How many candidates an ambiguous name lists."""


class Match(NamedTuple):
    """The one note a name means. by: "path", "slug", "title" or "alias". slug: "" for a note without an entry."""

    path: str
    slug: str
    kind: str
    title: str
    aliases: List[str]
    by: str


class Several(NamedTuple):
    """The notes a name could mean, as `{path, title, kind, slug}`. total: how many there are."""

    candidates: List[Dict[str, str]]
    total: int


Meaning = Union[Match, Several, None]


def _system_keys() -> Dict[str, str]:
    """Folded file name or standard title of a system note -> its path."""
    return {key: path for path, title in SYSTEM_NOTES.items() for key in note_keys(path, title, ())}


SYSTEM_KEYS = _system_keys()


class Names:
    """Names of one vault, shared between threads.

    The index file is looked at again once after each refresh of the catalog, the catalog's notes at once.
    """

    def __init__(self, index: IndexSource, catalog: Catalog) -> None:
        self._catalog = catalog
        self._entities = IndexNames(index, catalog)
        self._nearest = NearestNames()
        self._learning = threading.Lock()
        self._learnt = -1

    def resolve(self, mention: str) -> Meaning:
        """What `mention` means: a Match, Several, or None. Raises what loading the index raises."""
        self._entities.follow()
        mention = unicodedata.normalize("NFC", mention).strip()
        path = self._path(mention)
        if path:
            return self._match(path, "path")
        # Only a bare file name loses its extension: what looks like a path to another folder names nothing here.
        keys = name_keys(mention if "/" in mention else file_stem(mention))
        path = self._system_note(keys)
        if path:
            return self._match(path, "title")
        entry = self._entities.index.entries.get(mention)
        if entry is not None and self._exists(entry.path):
            return self._match(entry.path, "slug")
        return self._by_name(keys)

    def exact(self, ref: str) -> str:
        """The path of the one note `ref` means.

        Raises NotFound with the nearest `candidates`, Ambiguous with those it could mean, and what loading the
        index raises.
        """
        found = self.resolve(ref)
        if isinstance(found, Match):
            return found.path
        shown = ref if len(ref) <= 80 else ref[:79] + "…"
        if found is None:
            raise NotFound(
                f"there is no note called {shown!r}", hint="Use the path or slug of one of the candidates.",
                path=ref, candidates=self.candidates(ref),
            )
        raise Ambiguous(
            f"{shown!r} may mean {found.total} notes", hint="Use the path of the one you mean.",
            candidates=found.candidates,
        )

    def candidates(self, mention: str, n: int = 5) -> List[Dict[str, str]]:
        """The at most `n` notes with the nearest names as `{path, title, kind, slug}`, best first."""
        found = self._paths_of(self._nearest.find(self._learnt_about(mention), self._is_name, 4 * n))
        best = sorted(found, key=lambda path: self._rank(path, 1) != 1)  # stable: nearest first, own files last
        return [self._row(path) for path in best[:n]]

    def lookalikes(self, name: str) -> List[str]:
        """The paths of all notes with a name so near that they may be the same thing, ECHO's own files left out."""
        found = self._paths_of(self._nearest.shortlist(self._learnt_about(name), self._is_name))
        return [path for path in found if self._rank(path, 1) == 1]

    def _learnt_about(self, mention: str) -> str:
        """The name in `mention`, once all names there are now are known."""
        self._entities.follow()
        self._learn()
        return file_stem(mention)

    def _is_name(self, key: str) -> bool:
        return bool(self._named((key,)))

    def _paths_of(self, keys: Iterable[str]) -> List[str]:
        """The notes that answer to the keys, in the order of these."""
        found: Dict[str, None] = {}
        for key in keys:
            found.update(dict.fromkeys(path for path in sorted(self._named({key})) if self._exists(path)))
        return list(found)

    def slug_of(self, path: str) -> str:
        """The slug of the entity whose note is `path`, "" when the index has none."""
        self._entities.follow()
        return self._entities.index.by_path.get(unicodedata.normalize("NFC", path), "")

    def linkables(self, text: str = "") -> List[Linkable]:
        """The notes a mention in `text` may mean, for `autolink`, in path order; all of them without a text.

        ECHO's own files and conflict copies are never meant. It may name more notes than `text` mentions, never
        fewer.
        """
        self._entities.follow()
        names = {*self._catalog.name_keys(), *self._entities.name_keys()}
        if text:
            spellings = name_keys(text)
            names = {name for name in names if any(name in spelling for spelling in spellings)}
        paths = [path for path in sorted(self._named(names)) if self._rank(path, 1) == 1 and self._exists(path)]
        return [self._linkable(path) for path in paths]

    def _learn(self) -> None:
        """Tell the nearest names what has come since the last time."""
        with self._learning:
            generation, changed = self._catalog.generation, self._catalog.changed_since(self._learnt)
            records = map(self._catalog.record, changed or ())
            names = chain.from_iterable(record.keys for record in records if record is not None)
            if not self._nearest.learn(names) or changed is None:
                self._nearest.learn_all(self._catalog.name_keys())
            self._nearest.learn(self._entities.name_keys())
            self._learnt = generation

    def _linkable(self, path: str) -> Linkable:
        match, entry = self._match(path, ""), self._entities.index.get(path)
        names = dict.fromkeys([*match.aliases, *(entry.aliases if entry else ()), file_stem(path)])
        return Linkable(path, match.title, list(names), match.kind)

    # -- one name -------------------------------------------------------------------------------------------

    def _path(self, mention: str) -> str:
        """The note whose path `mention` is, with or without `.md`; "" when it is none."""
        mention = mention.lstrip("/")
        for path in (mention, f"{mention}.md"):
            if self._catalog.record(path) is not None:
                return path
            if path in self._entities.index.by_path and self._exists(path):
                return path
        return ""

    def _system_note(self, keys: FrozenSet[str]) -> str:
        """The system note whose file name or standard title this is, "" when it is none or not there."""
        paths = [SYSTEM_KEYS[key] for key in keys if key in SYSTEM_KEYS]
        return next((path for path in paths if self._catalog.record(path) is not None), "")

    def _by_name(self, keys: FrozenSet[str]) -> Meaning:
        ranks: Dict[Tuple[int, int], List[str]] = {}
        for path in self._named(keys):
            if self._exists(path):
                step = 0 if self._is_own_name(path, keys) else 1
                ranks.setdefault((self._rank(path, step), step), []).append(path)
        if not ranks:
            return None
        first = min(ranks)
        paths = sorted(ranks[first])
        if len(paths) == 1:
            return self._match(paths[0], "title" if first[1] == 0 else "alias")
        return Several([self._row(path) for path in paths[:MAX_CANDIDATES]], len(paths))

    def _rank(self, path: str, step: int = 0) -> int:
        """0 for system notes by a name of their own, 1 for ordinary notes, 2 for ECHO's files and conflict copies."""
        if path in SYSTEM_NOTES:
            return 0 if step == 0 else 2
        return 2 if is_system(path) or conflict_copy(path) else 1

    def _named(self, keys: Iterable[str]) -> Set[str]:
        """The notes that answer to one of `keys` by slug, file name, title or alias."""
        return self._catalog.named(keys) | self._entities.named(keys)

    def _is_own_name(self, path: str, keys: FrozenSet[str]) -> bool:
        """Whether one of `keys` is the note's slug, title or file name, and not only an alias."""
        entry = self._entities.index.get(path)
        record = self._catalog.record(path)
        names = {file_stem(path)}
        if record is not None:
            names.add(record.title)
        if entry is not None:
            names.update((entry.title, self._entities.index.by_path[path]))
        return any(not keys.isdisjoint(name_keys(name)) for name in names)

    def _exists(self, path: str) -> bool:
        """Whether the note is there, or nobody can tell that it is not."""
        return self._catalog.record(path) is not None or not self._catalog.is_gone(path)

    def _match(self, path: str, by: str) -> Match:
        entry, record = self._entities.index.get(path), self._catalog.record(path)
        title = record.title if record else entry.title if entry else file_stem(path)
        aliases = list(record.aliases if record else entry.aliases if entry else ())
        return Match(path, self._entities.index.by_path.get(path, ""), self._kind(path), title, aliases, by)

    def _row(self, path: str) -> Dict[str, str]:
        match = self._match(path, "")
        return {"path": match.path, "title": match.title, "kind": match.kind, "slug": match.slug}

    def _kind(self, path: str) -> str:
        facts = self._catalog.facts(path)
        return kind_of(path) or (facts.kind if facts else "")
