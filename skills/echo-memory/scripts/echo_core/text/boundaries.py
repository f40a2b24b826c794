"""Where a name inside running text begins and ends, in scripts with and without spaces (spec 3.2)."""
from __future__ import annotations

import re
import unicodedata

_HAN_KANA = "\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KATAKANA = re.compile("[\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff]")
_HAN = re.compile(f"[{_HAN_KANA}]")
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff]")
_SOUTHEAST = re.compile("[\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u109f\u1780-\u17d3]")

SPACELESS = re.compile(f"{_HAN.pattern}|{_HANGUL.pattern}|{_SOUTHEAST.pattern}")
"""A character of a script whose words are not set apart by spaces (Korean: whose particles are not)."""

# Words of one character that may stand beside a short name without being part of a longer one.
_BESIDE = frozenset("的是在和与跟对从到把被给向由了说去来有也这那はがをにのともでへや")
_PARTICLES = """
은 는 이 가 을 를 의 에 와 과 도 로 만 야 아 께 에서 에게 으로 께서 한테 하고 까지 부터 이나 이랑
랑 처럼 보다 라고 에는 에도 님 씨
"""
_KOREAN_PARTICLES = frozenset(_PARTICLES.split())
_LEADING_VOWELS = frozenset("เแโใไເແໂໃໄ")
_SURE_LENGTH = 3
_JOINERS = frozenset("-_./@\\&~=:")


def is_bounded(text: str, start: int, end: int) -> bool:
    """Whether `text[start:end]` stands by itself and is not a piece of a longer word or identifier."""
    name = text[start:end]
    return _opens(text, start, name) and _closes(text, end, name)


def _opens(text: str, start: int, name: str) -> bool:
    if start == 0:
        return True
    before = text[start - 1]
    if SPACELESS.match(before):
        return _may_touch(before, name[0], name) and before not in _LEADING_VOWELS
    if before in _JOINERS:
        return start < 2 or not is_word_character(text[start - 2])
    return not is_word_character(before) or bool(SPACELESS.match(name[0]) and before.isascii())


def _closes(text: str, end: int, name: str) -> bool:
    if end == len(text):
        return True
    after = text[end]
    if unicodedata.category(after)[0] == "M":
        return False
    if SPACELESS.match(after):
        return _korean_particle(text, end) if _HANGUL.match(name[-1]) else _may_touch(after, name[-1], name)
    if after in _JOINERS:
        return end + 1 >= len(text) or not is_word_character(text[end + 1])
    return not is_word_character(after) or bool(SPACELESS.match(name[-1]) and after.isascii())


def _may_touch(neighbour: str, edge: str, name: str) -> bool:
    """Whether a character of a spaceless script beside the name's edge can belong to another word."""
    if not SPACELESS.match(edge):
        return True  # a Latin name in Chinese text
    if _HANGUL.match(edge) or _HANGUL.match(neighbour):
        return False
    if _KATAKANA.match(edge) and _KATAKANA.match(neighbour):
        return False
    return neighbour in _BESIDE or len(name) >= _SURE_LENGTH


def _korean_particle(text: str, end: int) -> bool:
    stop = end
    while stop < len(text) and _HANGUL.match(text[stop]):
        stop += 1
    return text[end:stop] in _KOREAN_PARTICLES


def is_word_character(char: str) -> bool:
    """Letters, digits and the marks that belong to them, in every script."""
    return char.isalnum() or unicodedata.category(char)[0] == "M"
