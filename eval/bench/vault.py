"""Vaults of any size for the bench: seeded, so the same on every machine, and shaped like people's own.

A note is about 1.5 kB: frontmatter, a few sections of prose, lists, links to other notes. Words follow Zipf's law, as
in every language, so that the search index meets common and rare ones.
"""
from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from echo_core.kinds import place
from echo_core.text import slug

SEED = 20261130
_KINDS = (
    ("person", 22), ("company", 8), ("concept", 20), ("reference", 12), ("meeting", 14), ("project", 8),
    ("decision", 8), ("semantic", 5), ("area", 3),
)
_SYLLABLES = [start + end for start in "bcdfghklmnprstvwz" for end in ("a", "e", "o", "in", "er")]
_HEADINGS = ("Background", "Status", "Log", "Open questions", "Next", "Numbers", "People", "Sources")


@dataclass(frozen=True)
class BenchNote:
    """A note of the vault. phrase: words of its body that hardly any other note has together."""

    path: str
    title: str
    kind: str
    phrase: str


def make_vault(folder: Path, count: int, seed: int = SEED) -> list[BenchNote]:
    """Write `count` notes below `folder` and return them, in the order they were made."""
    chance = random.Random(seed)
    words = [_word(chance) for _ in range(12_000)]
    weights = [1 / (rank + 2) for rank in range(len(words))]
    stock = chance.choices(words, weights, k=400_000)
    titles = list(_titles(chance, count))
    kinds = chance.choices([kind for kind, _ in _KINDS], [share for _, share in _KINDS], k=count)
    days = [f"20{chance.randint(22, 26)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}" for _ in range(count)]
    notes = []
    for title, kind, day in zip(titles, kinds, days, strict=True):
        status = chance.choice(("active", "on-hold", "archived")) if kind == "project" else ""
        path = place(kind, slug(title), status, "systems" if kind == "area" else "", day)
        notes.append(BenchNote(path, title, kind, " ".join(chance.choices(words, k=4))))
    for note, day in zip(notes, days, strict=True):
        target = folder / note.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_text(chance, note, day, stock, notes), encoding="utf-8")
    return notes


def _word(chance: random.Random) -> str:
    return "".join(chance.choices(_SYLLABLES, k=chance.randint(1, 4)))


def _titles(chance: random.Random, count: int) -> Iterator[str]:
    """Different titles of two or three words."""
    seen: set[str] = set()
    while len(seen) < count:
        title = " ".join(_word(chance).capitalize() for _ in range(chance.randint(2, 3)))
        if slug(title) not in seen:
            seen.add(slug(title))
            yield title


def _text(chance: random.Random, note: BenchNote, day: str, stock: list[str], notes: list[BenchNote]) -> str:
    others = chance.sample(notes, min(4, len(notes)))
    tags = chance.sample(("work", "home", "health", "money", "travel", "code", "reading"), chance.randint(0, 3))
    lines = ["---", f"type: {note.kind}", f"title: {note.title}", f"created: {day}", f"updated: {day}"]
    lines += ["tags:", *(f"  - {tag}" for tag in tags)] if tags else []
    lines += ["aliases:", f"  - {note.title} {note.kind}"] if chance.random() < 0.3 else []
    lines += ["agent_written: true", "---", "", f"# {note.title}", ""]
    lines += [f"{_prose(chance, stock, 30)} {note.phrase}.", ""]
    for heading in chance.sample(_HEADINGS, chance.randint(1, 4)):
        other = chance.choice(others)
        lines += [f"## {heading}", "", f"{_prose(chance, stock, 40)} See [[{other.path[:-3]}|{other.title}]].", ""]
        if chance.random() < 0.4:
            lines += [*(f"- {_prose(chance, stock, 8)}" for _ in range(chance.randint(2, 6))), ""]
    lines += ["## Related", "", *(f"- [[{other.path[:-3]}|{other.title}]]" for other in others[:2])]
    return "\n".join(lines) + "\n"


def _prose(chance: random.Random, stock: list[str], about: int) -> str:
    """About so many words as sentences."""
    start = chance.randrange(len(stock) - 2 * about)
    words = stock[start:start + chance.randint(about // 2, about + about // 2)]
    sentences = [words[at:at + 11] for at in range(0, len(words), 11)]
    return " ".join(" ".join(sentence).capitalize() + "." for sentence in sentences if sentence)
