"""Names in every script are compared, filed and cut without loss (spec 2.3, 2.4, 3.1, 3.2)."""

from __future__ import annotations

import unicodedata

import pytest
from echo_core.catalog import notebytes
from echo_core.errors import InvalidArgument
from echo_core.text import fold, name_keys, one_line, plural, shorten, slug, suspicious_unicode
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Schlüter", "SCHLUTER"),
        ("Größe", "grosse"),
        ("Ærø", "aero"),
        ("Łódź", "lodz"),
        ("Đặng", "dang"),
        ("alpha_note", "Alpha-Note"),
        ("O’Brien", "O'Brien"),
        ("Ｔｏｋｙｏ", "tokyo"),
        ("e\u0301", "é"),
        ("ﬁn", "fin"),
        ("a\u00adb", "ab"),
    ],
)
def test_two_spellings_of_one_name_fold_to_one_key(left: str, right: str) -> None:
    """Case, Latin diacritics, width, normal form and punctuation make no other name."""
    assert fold(left) == fold(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("й", "и"),
        ("が", "か"),
        ("한국", "한"),
        ("C#", "C"),
        ("C++", "C"),
        ("?", "!"),
        ("हिन्दी", "हनद"),
    ],
)
def test_two_names_do_not_fold_to_one_key(left: str, right: str) -> None:
    """Marks that make another letter in their script stay, and so do the signs that tell C from C#."""
    assert fold(left) != fold(right)


def test_both_german_spellings_meet() -> None:
    """`schlueter`, `Schlüter` and `schluter` share a key with Schlüter, also when it is decomposed."""
    for written in ("Schlüter", unicodedata.normalize("NFD", "Schlüter")):
        assert name_keys(written) == {"schluter", "schlueter"}
    assert name_keys("schlueter") <= name_keys("Schlüter")
    assert name_keys("  ") == frozenset()


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Schlüter GmbH & Co. KG", "schluter-gmbh-co-kg"),
        ("Straße", "strasse"),
        ("../../etc/passwd", "etc-passwd"),
        ("a\u0301b", "ab"),
        ("İstanbul", "istanbul"),
        ("Детали Й", "детали-й"),
        ("が行", "が行"),
        ("हिन्दी", "हिन्दी"),
        ("ภาษาไทย", "ภาษาไทย"),
        ("한국어 노트", "한국어-노트"),
        ("2026-11-30: Plan", "2026-11-30-plan"),
        ("x" * 300, "x" * 80),
        ("漢" * 300, "漢" * 60),
        ("!!!", "untitled-e84c538e"),
    ],
)
def test_a_slug_keeps_the_letters_of_every_script(title: str, expected: str) -> None:
    """Latin diacritics are folded, other letters with their marks stay, all else is one hyphen."""
    assert slug(title) == expected


def test_an_invisible_title_gets_a_visible_name() -> None:
    """A title of Hangul fillers alone counts as one without letters."""
    assert slug("\u3164\u115f").startswith("untitled-")


@given(st.text())
def test_a_slug_is_never_empty_and_never_leaves_its_folder(title: str) -> None:
    """Whatever the title: one path segment within both limits, no dot, no separator, no white space, stable."""
    name = slug(title)
    assert name
    assert len(name) <= 80
    assert len(name.encode("utf-8")) <= 180
    assert not set(name) & set('./\\:*?"<>|%~#[]^\x00 \n')
    assert name == name.strip("-")
    assert "--" not in name
    assert unicodedata.is_normalized("NFC", name)
    assert slug(name) == name


@pytest.mark.parametrize("letter", ["हि", "ก็", "か\u309a", "й"])
def test_a_slug_is_cut_between_letters(letter: str) -> None:
    """A long title never ends in the middle of a letter and its marks."""
    for lead in ("", "x", "xy"):
        assert slug(lead + letter * 90).endswith(unicodedata.normalize("NFC", letter))


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("short", 10, "short"),
        ("see [[projects/x|My Project]] now", 20, "see "),
        ("see [My Project](https://x.example/a_(b)) now", 38, "see "),
        ("look at https://example.org/a/b/c ok", 20, "look at "),
        ("an ![[image.png]] embed", 8, "an "),
        ("text\n| a | b |\n|---|---|\n| one | two |\n", 32, "text\n| a | b |\n|---|---|\n"),
        ("text\na | b\n--|--\none | two\n", 20, "text\na | b\n--|--\n"),
        ("text\r\na | b\r\n--|--\r\none | two\r\n", 24, "text\r\na | b\r\n--|--\r\n"),
        ("a | b\r--|--", 3, ""),
        ("cafe\u0301 x", 4, "caf"),
        ("👨\u200d👩\u200d👧 family", 3, ""),
        ("ab🇩🇪🇫🇷", 5, "ab🇩🇪"),
        ("👍🏽!", 1, ""),
        ("a\r\nb", 2, "a"),
        ("a [stray bracket and on", 6, "a [str"),
        ("either a | b or c", 12, "either a | b"),
        ("anything", 0, ""),
    ],
)
def test_a_cut_never_splits_a_letter_a_link_or_a_table_row(text: str, limit: int, expected: str) -> None:
    """The cut moves before what it would go through, and says that it cut."""
    assert shorten(text, limit) == (expected, expected != text)


@given(st.text(), st.integers(0, 50))
def test_a_cut_is_a_beginning_within_the_limit(text: str, limit: int) -> None:
    """The answer is a prefix of at most `limit` characters, whole when it fits."""
    cut, truncated = shorten(text, limit)
    assert text.startswith(cut)
    assert len(cut) <= limit
    assert truncated == (len(text) > limit)
    assert shorten(cut, limit) == (cut, False)


@given(st.text())
def test_one_line_is_one_line(text: str) -> None:
    """No line separator of any kind is left, and nothing but white space is lost."""
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    assert "".join(line.split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("plain", 0),
        ("\u202eevil\u202c", 2),
        ("x\u200b\u200b\u200by", 3),
        ("می\u200cخواهم", 0),
        ("👨\u200d👩\u200d👧", 0),
        ("🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", 0),
        ("a\U000e0041\U000e0042", 2),
        ("\ufeff# Note", 0),
    ],
)
def test_hidden_characters_are_counted_and_ordinary_ones_are_not(text: str, count: int) -> None:
    """Bidi controls, stray tag characters and zero-width runs count; Persian, emoji and flags do not."""
    assert suspicious_unicode(text) == count


def test_a_count_takes_the_right_number() -> None:
    """One note, two notes, three entries, four matches."""
    assert [plural(1, "note"), plural(2, "note"), plural(0, "entry"), plural(4, "match"), plural(2, "day")] == [
        "1 note",
        "2 notes",
        "0 entries",
        "4 matches",
        "2 days",
    ]


@given(st.binary())
def test_any_bytes_survive_decoding(data: bytes) -> None:
    """Bytes that are no UTF-8 come back exactly, and their display is fit for JSON."""
    text, valid = notebytes.decode(data)
    assert notebytes.encode(text) == data
    notebytes.displayable(text).encode("utf-8")
    assert valid == (notebytes.displayable(text) == text)


def test_half_a_surrogate_pair_is_refused() -> None:
    """Text that no note can hold is an error that names where it is."""
    with pytest.raises(InvalidArgument, match="character 1"):
        notebytes.encode("a\ud83d")
