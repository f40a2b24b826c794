"""Notes are found by what they say, out-of-date ones later, and off-topic questions get no answer (spec 5.2, 5.4)."""

from __future__ import annotations

import threading

import pytest
from echo_core.catalog.note import facts
from echo_core.recall.fitting import LEAST_FIT
from echo_core.recall.search import SearchIndex
from hypothesis import given, settings
from hypothesis import strategies as st

NOTES = {
    "projects/active/atlas.md": (
        "---\ntype: project\ntitle: Atlas migration\nstatus: active\nupdated: 2026-11-20\ntags:\n  - database\n---\n\n"
        "# Atlas migration\n\nWe move the customer database from Oracle to Postgres before the end of the quarter.\n\n"
        "## Risks\n\nThe nightly export to the billing system still reads Oracle views. Marta owns the rewrite.\n"
    ),
    "resources/people/schlueter.md": (
        "---\ntype: person\ntitle: Jörg Schlüter\nupdated: 2026-10-01\naliases:\n  - JS\n---\n\n# Jörg Schlüter\n\n"
        "Head of procurement at the Bremen office. Prefers phone calls before nine.\n"
    ),
    "resources/concepts/selection.md": (
        "---\ntype: concept\ntitle: 天演论\nupdated: 2026-09-01\n---\n\n# 天演论\n\n"
        "严复把它译为即适者生存的学说。交易时要及时止损。\n"
    ),
    "decisions/by-date/2026-03-01-editor.md": (
        "---\ntype: decision\ntitle: Editor choice\nupdated: 2026-03-01\n---\n\n# Editor choice\n\n"
        "The team writes documentation in Obsidian because everyone can read plain files.\n"
    ),
    "resources/concepts/broken.md": "---\ntags: [#abc, def]\n---\nThe zeppelin hangar keeps spare propellers here.\n",
}


def index_of(notes: dict[str, str], today: str = "2026-11-30") -> SearchIndex:
    """A search index over notes, the kind of each as its frontmatter says."""
    index = SearchIndex(today=lambda: today)
    for path, text in notes.items():
        index.upsert(facts(path, text), text)
    return index


INDEX = index_of(NOTES)


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("who owns the rewrite of the billing export?", "projects/active/atlas.md"),
        ("Atlas migration", "projects/active/atlas.md"),
        ("database", "projects/active/atlas.md"),
        ("schlueter", "resources/people/schlueter.md"),
        ("Schluter phone", "resources/people/schlueter.md"),
        ("JS", "resources/people/schlueter.md"),
        ("适者生存", "resources/concepts/selection.md"),
        ("止损", "resources/concepts/selection.md"),
        ("why do we write docs in obsidian", "decisions/by-date/2026-03-01-editor.md"),
        ("zeppelin propellers", "resources/concepts/broken.md"),
        ("what's the zeppelin's hangar, roughly? (spare AND propellers) OR \"x", "resources/concepts/broken.md"),
    ],
)
def test_a_question_finds_the_note_that_answers_it(query: str, path: str) -> None:
    """By body, title, alias or tag, in every script; a malformed note is found by its body; nothing is syntax."""
    assert INDEX.search(query)[0].path == path


@pytest.mark.parametrize(
    "query",
    [
        "how to bake sourdough bread",
        "What did Melanie paint for the school?",
        "best hiking trails in Patagonia",
        "sourdough",
        "как испечь хлеб",
        "如何烤面包",
        "???",
        "",
    ],
)
def test_a_question_that_nothing_fits_gets_no_answer(query: str) -> None:
    """No weak hit is dressed up as a strong one."""
    assert INDEX.search(query) == []


@pytest.mark.parametrize("count", [1, 3, 200])
def test_a_word_that_every_note_has_is_still_found(count: int) -> None:
    """A vault about one subject answers for that subject."""
    notes = {f"n{number}.md": f"# Note {number}\n\nAll about postgres, part {number}." for number in range(count)}
    assert len(index_of(notes).search("postgres", limit=3)) == min(3, count)


def test_a_hit_names_its_passage_by_heading_and_says_how_well_it_fits() -> None:
    """Score, parts, coverage and passage are there for the answer and for explaining it."""
    hit = INDEX.search("who owns the rewrite of the billing export?")[0]
    assert hit.passage.place(hit.passage.text.index("Marta")).heading == "Atlas migration::Risks"
    assert hit.fit >= LEAST_FIT
    assert 0.5 < hit.coverage <= 1.0
    assert hit.score == pytest.approx(hit.parts["prior"] * sum(hit.parts.values()) - hit.parts["prior"] ** 2)


def test_a_note_is_one_hit_by_its_best_passage() -> None:
    """However many of its sections match, at any offset."""
    filler = "Plain words about other matters fill this section of the long note. " * 30
    text = "# Long\n\n" + "\n\n".join(f"## S{number}\n\n{filler}" for number in range(40)) + "\n\nThe walrus sings.\n"
    index = index_of({**NOTES, "long.md": text})
    hits = index.search("walrus sings")
    assert [hit.path for hit in hits] == ["long.md"]
    assert "walrus" in hits[0].passage.text


def test_superseded_and_archived_notes_come_after_the_current_one_and_stay_findable() -> None:
    """Newer wins, older is still there."""
    body = "\n# Employer\n\nAda works at the {} as an engineer.\n"
    notes = {
        "a.md": "---\ntitle: Employer\nsuperseded_by: \"[[c]]\"\n---\n" + body.format("mill"),
        "b.md": "---\ntitle: Employer\nstatus: archived\n---\n" + body.format("bank"),
        "c.md": "---\ntitle: Employer\n---\n" + body.format("port"),
    }
    hits = index_of(notes).search("where does Ada work as an engineer")
    assert [hit.path for hit in hits] == ["c.md", "a.md", "b.md"]


def test_age_and_status_move_a_score_by_at_most_a_tenth() -> None:
    """The same text, new and old, active and on hold."""
    heads = {
        "new": "status: active\nupdated: 2026-11-29", "old": "status: on-hold\nupdated: 2019-01-01", "none": "x: y",
    }
    notes = {f"{name}.md": f"---\ntitle: Same\n{head}\n---\n\nThe same lighthouse text.\n"
             for name, head in heads.items()}
    scores = {hit.path: hit.score for hit in index_of(notes).search("lighthouse")}
    assert scores["new.md"] == pytest.approx(1.1 * scores["none.md"])
    assert scores["old.md"] == pytest.approx(0.9 * scores["none.md"])


def test_only_notes_of_the_wanted_kinds_and_days_are_searched_and_enough_of_them_are_found() -> None:
    """Filters narrow the search, not the list of the best."""
    notes = {f"p{number}.md": "---\ntype: project\nupdated: 2026-01-02\n---\n\nlighthouse lighthouse\n"
             for number in range(200)}
    notes["c.md"] = "---\ntype: concept\nupdated: 2025-05-05\n---\n\nA lighthouse among other things on the coast.\n"
    index = index_of(notes)
    assert [hit.path for hit in index.search("lighthouse", 5, kinds=["concept"])] == ["c.md"]
    assert [hit.path for hit in index.search("lighthouse", 5, until="2025-05-05")] == ["c.md"]
    assert index.search("lighthouse", 5, since="2026-01-03") == []
    assert len(index.search("lighthouse", 5, since="2026-01-02", until="2026-01-02")) == 5


def test_a_change_is_found_at_once_and_a_deleted_note_never_again() -> None:
    """Read your writes; no orphan passage of a note that became shorter."""
    index = index_of(NOTES)
    long = "# N\n\n" + "\n\n".join("walrus and filler words for a passage " * 40 for _ in range(5))
    index.upsert(facts("n.md", long), long)
    assert [hit.path for hit in index.search("walrus")] == ["n.md"]
    index.upsert(facts("n.md", "# N\n\nnow a narwhal"), "# N\n\nnow a narwhal")
    assert index.search("walrus") == []
    assert [hit.path for hit in index.search("narwhal")] == ["n.md"]
    index.delete("n.md")
    index.delete("n.md")
    assert index.search("narwhal") == []
    assert len(index) == len(NOTES)


def test_many_threads_may_search_while_notes_change() -> None:
    """No search fails or sees half a note."""
    index = index_of(NOTES)
    failures: list[BaseException] = []

    def search() -> None:
        try:
            for _ in range(60):
                assert index.search("Atlas migration")[0].path == "projects/active/atlas.md"
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(60):
        text = f"# T{number}\n\nfiller {number}"
        index.upsert(facts(f"t{number % 7}.md", text), text)
        index.delete(f"t{(number + 3) % 7}.md")
    for thread in threads:
        thread.join()
    assert failures == []


@settings(deadline=None)
@given(st.text(max_size=60))
def test_no_query_raises(query: str) -> None:
    """Whatever is typed is data."""
    for hit in INDEX.search(query, 3):
        assert hit.path in NOTES
    assert INDEX.find(query, 3).wanted.worth is not None


def test_words_that_only_begin_alike_are_no_match() -> None:
    """Four letters in common make "bread" no "break": an off-topic question gets no answer."""
    index = SearchIndex()
    texts = {
        "lines.md": "Press Enter twice for a line break. To break a line without a new paragraph add two blanks.",
        "settings.md": "How to change the theme, the font and how line breaks are shown in the editor.",
    }
    for path, text in texts.items():
        index.upsert(facts(path, text), text)
    assert index.search("how to bake sourdough bread") == []
    assert next(hit.path for hit in index.search("how do I break a line")) == "lines.md"
