"""Each field is scored by its own BM25, changes are visible at once, and the top is exact (spec 5.1, 5.2)."""

from __future__ import annotations

import math
import random

import pytest
from echo_core.bm25 import FIELD_WEIGHTS, LENGTH_PENALTY, SATURATION, Asked, Bm25Index, idf, weights_for
from rank_bm25 import BM25Okapi


def body(terms: list[str]) -> list[Asked]:
    """The terms, looked for in bodies."""
    return [Asked("body", term, 1.0) for term in terms]


def index_of(bodies: dict[int, str]) -> Bm25Index:
    """An index over bodies of words between spaces."""
    index = Bm25Index()
    for doc, body in bodies.items():
        index.upsert(doc, {"body": body.split()})
    index.commit()
    return index


def random_bodies(count: int, seed: int) -> dict[int, str]:
    """Documents over a vocabulary in which some words are everywhere and most are rare."""
    dice = random.Random(seed)
    vocabulary = [f"w{number}" for number in range(60)]
    weights = [1 / (number + 1) for number in range(60)]
    return {number: " ".join(dice.choices(vocabulary, weights, k=dice.randint(5, 60))) for number in range(count)}


def by_hand(bodies: dict[int, str], terms: list[str]) -> dict[int, float]:
    """Scores from the formula alone."""
    split = {name: body.split() for name, body in bodies.items()}
    average = sum(map(len, split.values())) / len(split)
    scores: dict[int, float] = {}
    for term in terms:
        frequency = sum(term in tokens for tokens in split.values())
        for name, tokens in split.items():
            count = tokens.count(term)
            if count:
                norm = SATURATION * (1 - LENGTH_PENALTY + LENGTH_PENALTY * len(tokens) / average)
                gain = math.log(1 + (len(split) - frequency + 0.5) / (frequency + 0.5))
                scores[name] = scores.get(name, 0.0) + gain * count * (SATURATION + 1) / (count + norm)
    return scores


@pytest.mark.parametrize("limit", [1, 3, 10, 600])
def test_the_best_documents_are_exactly_those_of_the_formula(limit: int) -> None:
    """Skipping frequent terms for documents that cannot win changes neither order nor score."""
    bodies = random_bodies(600, seed=7)
    index = index_of(bodies)
    for terms in (["w0", "w1", "w40"], ["w2", "w0"], ["w55"], ["w0", "w1", "w2", "w3", "w4", "w5"], ["nowhere", "w9"]):
        expected = by_hand(bodies, terms)
        order = sorted(expected, key=lambda name: (-expected[name], name))[:limit]
        got = index.search(body(terms), limit)
        assert [hit.score for hit in got] == pytest.approx([expected[name] for name in order])
        assert {hit.doc: hit.score for hit in got} == pytest.approx({hit.doc: expected[hit.doc] for hit in got})


def test_the_reference_engine_ranks_rare_terms_alike() -> None:
    """rank-bm25 over the same tokens and constants puts the same documents on top."""
    bodies = random_bodies(400, seed=3)
    names, index = list(bodies), index_of(bodies)
    reference = BM25Okapi([body.split() for body in bodies.values()], k1=SATURATION, b=LENGTH_PENALTY)
    for terms in (["w30", "w41"], ["w22", "w50", "w33"]):
        scores = reference.get_scores(terms)
        top = sorted(range(len(names)), key=lambda place: (-scores[place], names[place]))[:5]
        assert [hit.doc for hit in index.search(body(terms), 5)] == [names[place] for place in top]


def test_fields_are_scored_apart_and_summed_by_weight() -> None:
    """A rare word in a title counts a whole title, whatever the length of the body."""
    index = Bm25Index()
    index.upsert(1, {"title": ["other"], "body": ["engine"] + ["text"] * 300})
    index.upsert(2, {"title": ["engine"], "body": ["text"] * 300})
    index.upsert(3, {"title": ["engine"], "body": ["engine"] + ["text"] * 300})
    asked = [(field, "engine", weight) for field, weight in FIELD_WEIGHTS.items()]
    assert [hit.doc for hit in index.search([Asked(*pair) for pair in asked], 10)] == [3, 2, 1]


def test_only_the_documents_asked_for_are_found() -> None:
    """A choice of documents changes no score."""
    bodies = random_bodies(100, seed=11)
    index = index_of(bodies)
    everything = index.search(body(["w3", "w7"]), 100)
    assert index.search(body(["w3", "w7"]), 100, only=range(50)) == [hit for hit in everything if hit.doc < 50]


def test_a_long_question_trusts_titles_less() -> None:
    """More than ten words halve the weight of the title."""
    assert weights_for(10)["title"] == 1.0
    assert weights_for(11)["title"] == 0.5


def test_a_changed_document_is_found_by_its_new_words_only() -> None:
    """Replacing leaves no trace of the old words."""
    index = index_of({1: "old words", 2: "other"})
    index.upsert(1, {"body": ["new"]})
    assert index.search(body(["old"]), 5) == []
    assert [hit.doc for hit in index.search(body(["new"]), 5)] == [1]
    assert len(index) == 2


def test_changing_many_documents_leaves_the_same_index_as_building_it_new() -> None:
    """No count, length or posting is left over after upserts and deletes in any order."""
    bodies, dice = random_bodies(80, seed=1), random.Random(5)
    index = index_of(random_bodies(120, seed=2))
    for name in sorted(random_bodies(120, seed=2), key=lambda _: dice.random()):
        if name in bodies:
            index.upsert(name, {"body": bodies[name].split()})
        else:
            index.delete(name)
    fresh = index_of(bodies)
    for terms in (["w0", "w7"], ["w20"], ["w1", "w33", "w58"]):
        assert index.search(body(terms), 200) == fresh.search(body(terms), 200)


def test_deleting_what_is_not_there_changes_nothing() -> None:
    """A delete may come twice."""
    index = index_of({1: "word"})
    index.delete(2)
    index.delete(1)
    index.delete(1)
    assert (len(index), index.search(body(["word"]), 5)) == (0, [])


def test_an_empty_index_and_an_empty_query_find_nothing() -> None:
    """Neither raises."""
    assert Bm25Index().search(body(["x"]), 5) == []
    assert index_of({1: "x"}).search([], 5) == []


def test_equal_scores_come_in_the_order_of_numbers() -> None:
    """The same search gives the same order on every machine."""
    index = index_of(dict.fromkeys((3, 1, 2), "same words"))
    assert [hit.doc for hit in index.search(body(["same"]), 3)] == [1, 2, 3]


def test_a_term_that_everything_holds_never_counts_against_a_document() -> None:
    """The inverse document frequency stays positive."""
    assert 0 < idf(10, 10) < idf(10, 9) < idf(10, 0)
