"""Look-alikes are noticed, and things that differ in a number, a date or a name are not taken for one (spec 3.2)."""

from __future__ import annotations

import pytest
from echo_core.catalog.similarity import body_similarity, differs_in_detail, title_similarity
from hypothesis import given
from hypothesis import strategies as st

NEAR = 0.85


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Docker deployment", "Docker Deployments"),
        ("Deployment with Docker", "with Docker: deployment"),
        ("Schlüter GmbH", "Schlueter GmbH"),
        ("How to deploy the server", "How to deploy server"),
        ("Postgres migration", "Postgres  Migration!"),
        ("数据库迁移", "数据库 迁移"),
    ],
)
def test_two_ways_to_write_one_title_are_alike_and_differ_in_nothing(one: str, other: str) -> None:
    """Case, order, inflection, diacritics, punctuation and small words make no other thing."""
    assert title_similarity(one, other) >= NEAR
    assert not differs_in_detail(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Plan 2025", "Plan 2026"),
        ("Release 1.2.3", "Release 1.2.4"),
        ("Weekly report May", "Weekly report June"),
        ("Call on Monday", "Call on Tuesday"),
        ("Interview with Anna", "Interview with Anne"),
        ("Chapter one", "Chapter two"),
        ("Chapter IV", "Chapter V"),
        ("Plan A for launch", "Plan B for launch"),
        ("Budget before the merger", "Budget after the merger"),
        ("Project Alpha kickoff meeting", "Project Alpine kickoff meeting"),
        ("北京分公司会议纪要", "南京分公司会议纪要"),
        ("王小明的项目", "王小红的项目"),
        ("Письмо Анне", "Письмо Алле"),
    ],
)
def test_a_number_a_date_or_a_name_makes_two_things_of_similar_titles(one: str, other: str) -> None:
    """However many letters they share."""
    assert differs_in_detail(one, other)
    assert differs_in_detail(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [("Budget", "Budget review"), ("Postgres", "Postgres replication notes"), ("Garden", "Kitchen")],
)
def test_a_title_that_only_contains_another_is_not_like_it(one: str, other: str) -> None:
    """A part is not the whole."""
    assert title_similarity(one, other) < NEAR


def test_a_copied_body_is_near_identical_and_a_rewritten_one_is_not() -> None:
    """Changing a word in fifty keeps it a copy; the same subject in other words is none."""
    words = [f"word{number}" for number in range(60)]
    changed = [*words[:30], "other", *words[31:]]
    assert body_similarity(" ".join(words), " ".join(changed)) >= 0.8
    assert body_similarity(" ".join(words), " ".join(reversed(words))) < 0.1


def test_bodies_without_words_are_like_nothing() -> None:
    """Two empty notes are no duplicates."""
    assert body_similarity("", "") == body_similarity("—", "words here") == 0.0


@given(st.text(max_size=30), st.text(max_size=30))
def test_likeness_is_a_share_and_has_no_direction(one: str, other: str) -> None:
    """Between 0 and 1, the same both ways, 1 for a text and itself."""
    assert 0.0 <= title_similarity(one, other) <= 1.0
    assert title_similarity(one, other) == pytest.approx(title_similarity(other, one), abs=0.1)
    assert title_similarity(one, one) == 1.0
    assert not differs_in_detail(one, one)
    assert body_similarity(one, other) == body_similarity(other, one)
