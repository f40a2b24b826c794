"""Notes become passages, passages become excerpts, and hits never cost more than their budget (spec 5.2, 5.4)."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from echo_core.recall.excerpts import Wanted, excerpt, wanted_words
from echo_core.recall.packing import LONGEST, SHORTEST, Candidate, json_size, pack
from echo_core.recall.passages import FEWEST_WORDS, MOST_WORDS, Passage, count_words, passages
from echo_core.recall.tokens import query_words
from hypothesis import given
from hypothesis import strategies as st

SENTENCE = "The quick brown fox jumps over the lazy dog near the river bank. "


def wanted(query: str) -> Wanted:
    """Every word of the query worth the same."""
    groups = query_words(query)
    return wanted_words(groups, [1.0] * len(groups))


def candidates(count: int, text: str, title: str = "A note") -> list[Candidate]:
    """Hits of falling score over one text."""
    return [Candidate({"path": f"notes/{number}.md", "title": title, "kind": "concept", "score": 1.0, "updated": "",
                       "status": "", "version": "0123456789abcdef"}, passages(text)[0], 10.0 - number, len(text))
            for number in range(count)]


def test_every_character_of_the_body_is_in_one_passage_of_fitting_size() -> None:
    """Nothing is left out or doubled, at any offset; the frontmatter is not body."""
    body = "intro\n\n" + "\n\n".join(f"## Part {number}\n\n{SENTENCE * (number % 7 * 8)}" for number in range(20))
    text = f"---\ntitle: X\n---\n{body}"
    found = passages(text)
    assert "".join(passage.text for passage in found) == body
    assert all(text[passage.start:].startswith(passage.text) for passage in found)
    assert max(count_words(passage.text) for passage in found) <= MOST_WORDS + 3
    sizes = [count_words(passage.text) for passage in found]
    assert all(size >= FEWEST_WORDS or size + following > MOST_WORDS for size, following in pairwise(sizes))


@pytest.mark.parametrize("body", ["x " * 3000, "长句子没有空格" * 900, "a" * 20000, "y\n" * 2000, "สวัสดี" * 1500])
def test_text_without_paragraphs_or_spaces_is_cut_all_the_same(body: str) -> None:
    """A long line, a long word or a script without spaces makes no endless passage."""
    found = passages(body)
    assert "".join(passage.text for passage in found) == body
    assert max(len(passage.text) for passage in found) <= 4000


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_place_names_the_heading_above_and_the_line(end: str) -> None:
    """Full heading path and line from 1, whatever the line ends are."""
    text = end.join(["---", "title: x", "---", "lead", "# A", "one", "## B", "two", "# C", "three"])
    passage = passages(text)[0]
    places = {word: passage.place(passage.text.index(word)) for word in ("lead", "one", "two", "three")}
    assert {word: tuple(place) for word, place in places.items()} == {
        "lead": ("", 4), "one": ("A", 6), "two": ("A::B", 8), "three": ("C", 10)}


@pytest.mark.parametrize("text", ["", "---\ntitle: x\n---\n", "   \n\n"])
def test_an_empty_note_has_at_most_an_empty_passage(text: str) -> None:
    """It is still a document, found by its title."""
    assert len(passages(text)) == 1
    assert not passages(text)[0].text.strip()


def test_an_excerpt_shows_the_sentence_with_most_of_the_query() -> None:
    """Wherever in the passage it stands, whole sentences only."""
    answer = "Marie paid the plumber 340 euros in March."
    found = excerpt(SENTENCE * 6 + answer + " " + SENTENCE * 6, wanted("what did Marie pay the plumber"), 160)
    assert answer in found.text
    assert found.text.endswith(".")
    assert len(found.text) <= 160
    assert not found.whole


def test_rare_words_decide_between_two_sentences() -> None:
    """Worth, not number: one telling word beats two common ones."""
    text = "The dog of the dog is a dog here. " + SENTENCE * 5 + "Zanzibar is far away. " + SENTENCE * 5
    groups = query_words("dog here Zanzibar")
    found = excerpt(text, wanted_words(groups, [0.5, 0.5, 5.0]), 80)
    assert "Zanzibar" in found.text


def test_a_short_passage_is_shown_whole() -> None:
    """Nothing is cut that fits."""
    assert excerpt("  Short.\n", wanted("short"), 100)[:3] == ("Short.", 2, True)


def test_an_overlong_sentence_is_cut_between_words_around_the_match() -> None:
    """With a mark in front, no torn word at either end."""
    text = "word " * 200 + "needle " + "word " * 200
    found = excerpt(text, wanted("needle"), 120)
    assert "needle" in found.text
    assert found.text.startswith("… ")
    assert set(found.text[2:].split()) == {"word", "needle"}
    assert len(found.text) <= 120
    assert text[found.start:].startswith(found.text[2:])


@pytest.mark.parametrize(
    "whole", ["[[projects/active/engine. v2|The Engine]]", "[text here](folder/file. one.md)", "e\u0301" * 30])
@pytest.mark.parametrize("before", [40, 90, 100, 110, 118, 125, 150])
def test_a_cut_never_goes_through_a_link_or_a_letter(whole: str, before: int) -> None:
    """A link is whole or absent, an accent stays with its letter."""
    text = "a" * 3 + " x" * (before // 2) + f" needle {whole} needle" + " y" * 200
    found = excerpt(text, wanted("needle"), 160).text
    if "[" in whole:
        assert found.replace(whole, "").count("[") == found.replace(whole, "").count("]") == 0
    else:
        assert found.count("e\u0301") * 2 == found.replace("needle", "").count("e") + found.count("\u0301")


def test_a_table_row_is_whole_or_absent() -> None:
    """Full stops inside a row end nothing."""
    row = "| needle v1. 2 | " + "cell. " * 10 + "|"
    text = "| a | b |\n|---|---|\n" + (row + "\n") * 12
    found = excerpt(text, wanted("needle"), 200).text
    assert found
    assert set(found.split("\n")) <= {row, "| a | b |", "|---|---|"}


def test_chinese_windows_are_short_and_end_at_a_full_stop() -> None:
    """About a third of the characters say as much as in a script with letters."""
    text = "这是一个普通的句子，没有什么内容。" * 20 + "止损点设在三百元。" + "这是另一个普通的句子，也没有内容。" * 20
    hit = pack(candidates(1, text), wanted("止损"), 4000)[0]
    assert "止损点设在三百元。" in hit["excerpt"]
    assert hit["excerpt"].endswith("。")
    assert 50 <= len(hit["excerpt"]) <= 120


@pytest.mark.parametrize("budget", [500, 700, 1000, 2000, 4000, 20000])
@pytest.mark.parametrize("text", [SENTENCE * 40, 'quote " and \\ and \t tab\n' * 60, "这是普通的句子。" * 100, "tiny"])
def test_hits_stay_within_the_budget_and_each_shows_enough(budget: int, text: str) -> None:
    """Fewer hits rather than useless ones; the size is that of the compact JSON."""
    hits = pack(candidates(12, text), wanted("fox sentence quote 句子"), budget)
    assert hits
    assert len(json.dumps(hits, ensure_ascii=False, separators=(",", ":"))) <= budget
    assert [hit["path"] for hit in hits] == [f"notes/{number}.md" for number in range(len(hits))]
    for hit in hits:
        assert len(hit["excerpt"]) <= LONGEST
        assert hit["truncated"] == (hit["excerpt"] != text.strip())
        assert hit.get("total_chars", len(text)) == len(text)


def test_with_room_for_all_every_hit_is_there_and_the_best_shows_most() -> None:
    """The budget is shared by score."""
    hits = pack(candidates(8, SENTENCE * 40), wanted("fox"), 4000)
    sizes = [len(hit["excerpt"]) for hit in hits]
    assert len(hits) == 8
    assert sizes[0] >= sizes[-1] >= SHORTEST - len(SENTENCE)


def test_one_hit_with_a_huge_title_is_cut_and_flagged_rather_than_lost() -> None:
    """The title goes last and says so."""
    hits = pack(candidates(3, SENTENCE * 10, "T" * 2000), wanted("fox"), 500)
    assert len(hits) == 1
    assert hits[0]["title_truncated"] is True
    assert json_size(hits) <= 500


def test_no_hits_cost_nothing() -> None:
    """An empty answer is an empty list, and so is one whose fields alone are too much."""
    assert pack([], wanted("x"), 500) == []
    assert pack(candidates(1, "x"), wanted("x"), 20) == []


@given(st.text(alphabet=st.sampled_from("ab .\n|[]()!。字é\u0301\u200d🎉#`"), max_size=400), st.integers(1, 200))
def test_any_text_is_cut_to_any_size(text: str, size: int) -> None:
    """No window is longer than asked, and what it shows stands in the text."""
    found = excerpt(text, wanted("ab 字 a"), size)
    assert len(found.text) <= max(size, 2)
    assert found.text.removeprefix("… ") in text


@given(st.text(alphabet=st.sampled_from('ab .\n"\\\t字🎉'), max_size=600), st.integers(0, 1500), st.integers(0, 6))
def test_any_hits_fit_any_budget(text: str, budget: int, count: int) -> None:
    """The promise holds for every text and number of hits."""
    hits = pack(candidates(count, text), wanted("ab"), max(budget, 2))
    assert json_size(hits) <= max(budget, 2)


@given(st.text(alphabet=st.sampled_from("a \n\r#-`|.x。字"), max_size=600))
def test_any_note_is_cut_into_passages_that_make_it_up(text: str) -> None:
    """Headings, fences and line ends of every kind lose no character."""
    found = passages(text)
    assert "".join(passage.text for passage in found) in (text, text[found[0].start:])
    for passage in found:
        assert isinstance(passage, Passage)
        assert text[passage.start:passage.start + len(passage.text)] == passage.text
