"""The same word is found in every script, spelling and inflection people write it in (spec 5.2)."""

from __future__ import annotations

import pytest
from echo_core.recall.stemming import common_start, stem
from echo_core.recall.tokens import PREFIX, find_words, index_tokens, query_words, words
from hypothesis import given
from hypothesis import strategies as st


def found(query: str, text: str) -> bool:
    """Whether every word of the query has a token in the text, its first letters alone not counted."""
    held = {token for token in index_tokens(text) if not token.startswith(PREFIX)}
    return all(not held.isdisjoint(group) for group in query_words(query))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("适者生存", "严复把它译为即适者生存的学说"),
        ("止损", "昨天没有止损，亏了不少"),
        ("迁移", "我们计划下周迁移数据库"),
        ("猫", "一只猫睡着了"),
        ("Docker", "使用Docker部署服务"),
        ("東京", "きのう東京へ行った"),
        ("カメラ", "ｶﾒﾗを買った"),
        ("서울", "서울에서 만났다"),
        ("schlueter", "Herr Schlüter rief an"),
        ("schlüter", "Herr Schlueter rief an"),
        ("schluter", "Herr Schlüter rief an"),
        ("strasse", "Lange Straße 5"),
        ("Zoë", "zoe called"),
        ("Zoe\u0308", "Zoë called"),
        ("cafe", "a small café"),
        ("Łódź", "a trip to Lodz"),
        ("smørrebrød", "smorrebrod for lunch"),
        ("ёлка", "новогодняя елка"),
        ("книга", "купил новую книгу"),
        ("Όμηρος", "ομηρος"),
        ("الكتاب", "هذا كتاب جديد"),
        ("হিন্দি", "হিন্দি ভাষা"),
        ("decision", "three decisions"),
        ("planning", "we planned it"),
        ("organize", "the organisation of it"),
        ("readFile", "calls read_file twice"),
        ("read file", "readFile(path)"),
        ("read-file", "READ_FILE"),
        ("e-mail", "send an email"),
        ("covid19", "COVID-19 rules"),
        ("echo_core/recall/search.py", "in echo_core/recall/search.py it says"),
        ("search.py", "in echo_core/recall/search.py it says"),
        ("20261130", "on 2026-11-30"),
        ("C++", "rewritten in C++."),
        ("don't", "I dont know"),
        ("Ada's", "Ada said"),
        ("Ｔｏｋｙｏ", "tokyo"),
        ("الله", "كتبت \ufdfa هنا"),
    ],
)
def test_a_word_is_found_however_it_is_written(query: str, text: str) -> None:
    """Spelling, normal form, width, inflection and a script without spaces hide no word."""
    assert found(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("й", "и"),
        ("がく", "かく"),
        ("생존", "존생"),
        ("生适", "适者生存"),
        ("2026", "2025"),
    ],
)
def test_different_words_stay_different(query: str, text: str) -> None:
    """Folding goes no further than what people write for the same word."""
    assert not found(query, text)


def test_the_main_token_of_a_language_with_a_sign_in_its_name_is_the_whole_name() -> None:
    """A note about C does not count as covering C++ or C#."""
    assert [query_words(name)[0][0] for name in ("C++", "C#", "C")] == ["c++", "c#", "c"]


def test_words_stand_where_they_say() -> None:
    """The place of a word in the text is exact, so an excerpt can be cut around it."""
    text = "Ada met 王小明 in Zürich, e-mail: x"
    assert [text[word.start:word.end] for word in words(text)] == [
        "Ada", "met", "王小", "小明", "in", "Zürich", "e-mail", "x"]


def test_finding_some_words_is_the_same_as_reading_all_and_keeping_those() -> None:
    """The quick way to the words of a query leaves none out."""
    text = "Ada met 王小明 in Zürich; ada wrote. " * 3
    wanted = {"ada", "小明"}
    assert list(find_words(text, wanted)) == [word for word in words(text) if wanted.intersection(word.tokens)]


@given(st.lists(st.sampled_from([
    "flies", "Flying", "(added)", "a.b++", "c++,", "c#", "i", "I'm", "don't", "Ada's", "fooBar", "HTTPServer",
    "snake_case", "[[notes/a-b|Plan", "B]]", "x2", "2-x", "~tilde", "_em_", "**Bold**", "x.y", "@me", "a/b:c", "Zürich",
    "naïve-ish", "-",
]), max_size=12), st.integers(0, 40), st.booleans())
def test_the_quick_way_reads_every_chunk_that_may_hold_a_word(chunks: list[str], chosen: int, prefix: bool) -> None:
    """Plain words, links, identifiers, names of languages: all words with the tokens looked for are found."""
    text = " ".join(chunks)
    tokens = sorted({token for word in words(text) for token in word.tokens if token.startswith(PREFIX) == prefix})
    wanted = set(tokens[chosen % max(1, len(tokens)):][:2])
    assert find_words(text, wanted) == [word for word in words(text) if wanted.intersection(word.tokens)]


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", max_size=6), st.sampled_from([
    "", "s", "es", "ies", "ied", "sses", "ing", "dding", "ed", "ation", "ations", "ators", "ousness", "iveness",
    "fulness", "ments", "ities", "izing", "ically", "ally", "ability", "ly", "tion", "sion", "e", "y", "als", "nesses",
    "mmed",
]))
def test_a_stem_begins_like_its_word(begin: str, end: str) -> None:
    """Words that begin with other letters need not be looked at to find it."""
    word = begin + end
    shared = common_start(len(stem(word)))
    assert stem(word)[:shared] == word[:shared]


def test_a_query_word_is_given_once() -> None:
    """Repeating a word makes it no more important."""
    assert query_words("ada Ada ADA") == query_words("ada")


@pytest.mark.parametrize("text", ["", "   ", "?!…", "——", "\u200d", "🎉"])
def test_text_without_letters_gives_no_token_that_finds_anything(text: str) -> None:
    """Punctuation, emoji and joiners are no words."""
    assert not any(char.isalnum() for token in index_tokens(text) for char in token)


@given(st.text(max_size=80))
def test_any_text_is_tokenised_and_finds_itself(text: str) -> None:
    """No input raises, and what a query takes from a text the index takes from it too."""
    held = set(index_tokens(text))
    assert all(token.split() == [token] for token in held)
    for group in query_words(text):
        assert not held.isdisjoint(group)
    assert list(find_words(text, held)) == [word for word in words(text) if word.tokens]


@given(st.text(alphabet=st.characters(categories=["Ll", "Lu", "Lo"]), min_size=1, max_size=20))
def test_a_stem_is_never_empty(word: str) -> None:
    """Cutting an ending leaves a word."""
    assert stem(word)
