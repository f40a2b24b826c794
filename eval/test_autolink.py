"""First mentions in prose become links, and nothing else is touched (spec 3.2)."""

from __future__ import annotations

import pytest
from echo_core.names.autolink import Linkable, Linker, autolink
from hypothesis import given
from hypothesis import strategies as st

ADA = Linkable("resources/people/ada.md", "Ada Lovelace", ["Countess of Lovelace"], "person")
WILL = Linkable("resources/people/will.md", "Will", [], "person")
NOTES = Linkable("resources/concepts/notes.md", "Notes", [], "concept")
SCHLUETER = Linkable("resources/people/joerg.md", "Jörg Schlüter", [], "person")
CPP = Linkable("resources/concepts/cpp.md", "C++", [], "concept")
POSTGRES = Linkable("resources/concepts/postgres.md", "Postgres", [], "concept")
SEARCH = Linkable("projects/active/search.md", "Postgres Search", [], "project")
MIR = Linkable("projects/active/mir.md", "Мир", [], "project")
WANG = Linkable("resources/people/wang.md", "王小明", [], "person")
KYOTO = Linkable("resources/concepts/kyoto.md", "京都", [], "concept")
ANNA = Linkable("resources/people/anna.md", "アンナ", [], "person")
SEOUL = Linkable("resources/concepts/seoul.md", "서울", [], "concept")
BANGKOK = Linkable("resources/concepts/bangkok.md", "กรุงเทพ", [], "concept")
NODE = Linkable("resources/concepts/node.md", "Nodar", [], "concept")
EVERYBODY = [ADA, WILL, NOTES, SCHLUETER, CPP, POSTGRES, SEARCH, MIR, WANG, KYOTO, ANNA, SEOUL, BANGKOK, NODE]
LINKER = Linker(EVERYBODY)


@pytest.mark.parametrize(
    ("text", "linked"),
    [
        ("I met Ada Lovelace.", "I met [[resources/people/ada|Ada Lovelace]]."),
        ("ada lovelace called", "[[resources/people/ada|ada lovelace]] called"),
        ("the Countess of Lovelace, twice", "the [[resources/people/ada|Countess of Lovelace]], twice"),
        ("Ada Lovelace and Ada Lovelace", "[[resources/people/ada|Ada Lovelace]] and Ada Lovelace"),
        ("_Ada Lovelace_ and **Postgres**",
         "_[[resources/people/ada|Ada Lovelace]]_ and **[[resources/concepts/postgres|Postgres]]**"),
        ("Ada Lovelace's engine", "[[resources/people/ada|Ada Lovelace]]'s engine"),
        ("Postgres Search is slow", "[[projects/active/search|Postgres Search]] is slow"),
        ("with Joerg Schlueter", "with [[resources/people/joerg|Joerg Schlueter]]"),
        ("with Jorg Schluter", "with [[resources/people/joerg|Jorg Schluter]]"),
        ("written in C++.", "written in [[resources/concepts/cpp|C++]]."),
        ("Проект Мир начат", "Проект [[projects/active/mir|Мир]] начат"),
        ("我和王小明讨论", "我和[[resources/people/wang|王小明]]讨论"),
        ("去京都的路", "去[[resources/concepts/kyoto|京都]]的路"),
        ("アンナさん", "[[resources/people/anna|アンナ]]さん"),
        ("서울에서 만나", "[[resources/concepts/seoul|서울]]에서 만나"),
        ("ไปกรุงเทพ", "ไป[[resources/concepts/bangkok|กรุงเทพ]]"),
        ("- item with Postgres\r\n- two", "- item with [[resources/concepts/postgres|Postgres]]\r\n- two"),
    ],
)
def test_the_first_mention_of_a_known_name_becomes_a_link(text: str, linked: str) -> None:
    """In any case, spelling and script, the longest name first, every other character kept."""
    assert LINKER.link(text, "")[0] == linked


@pytest.mark.parametrize(
    "text",
    [
        "`Postgres` and ``Ada Lovelace``",
        "```\nPostgres\n```",
        "~~~~\nPostgres\n~~~\nPostgres\n~~~~",
        "    Postgres in indented code",
        "# Postgres\n",
        "Postgres\n========\n",
        "---\ntitle: Postgres\n---\n",
        "[Postgres](https://x.example)",
        "[x](Postgres.md)",
        "[[other|Postgres]]",
        "![[Postgres.png]]",
        "https://postgres.example/Postgres",
        "<https://x.example/Postgres>",
        "<!-- Postgres -->",
        "%% Postgres %%",
        "$Postgres$",
        "#Postgres",
        "| a |\n|---|\n| Postgres |",
        "<b title='Postgres'>",
    ],
)
def test_nothing_is_linked_outside_prose(text: str) -> None:
    """Code, links, addresses, frontmatter, headings, tags, tables, comments and math stay as they are."""
    assert LINKER.link(text, "") == (text, [])


@pytest.mark.parametrize(
    "text",
    [
        "Postgresql, postgres_fdw, a.Postgres.b and pre-Postgres",
        "Мирный день",
        "東京都に住む",
        "アンナプルナ登山",
        "서울집",
        "Ada, Lovelace",
        "Ada\nLovelace",
        "Nodar\u0301",
        "nodar.js",
        "me@nodar.example",
    ],
)
def test_a_piece_of_a_longer_word_is_no_mention(text: str) -> None:
    """Word boundaries hold in every script, and a name is written in one piece."""
    assert LINKER.link(text, "") == (text, [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I asked Will today", ["resources/people/will.md"]),
        ("I will go", []),
        ("WILL GO", []),
        ("Notes of today", []),
    ],
)
def test_an_ordinary_word_is_linked_in_exact_case_for_people_companies_and_projects_only(
    text: str, expected: list[str]
) -> None:
    """Will is a person where it is written so; Notes is never the concept of that title."""
    assert LINKER.link(text, "")[1] == expected


@pytest.mark.parametrize(("title", "kind", "text", "linked"), [
    # The word itself, written small, is no mention of the note of that title.
    ("Settings", "", "the settings of the boiler", False), ("Workspace", "concept", "a workspace in Linz", False),
    ("Backlinks", "reference", "three backlinks from the press", False), ("Canvas", "", "a canvas bag", False),
    ("Tabs", "", "keeps tabs on it", False), ("Translations", "", "two translations are due", False),
    # Written as the title is, it is one where a word would be small.
    ("Settings", "", "opens Settings by keyboard", True), ("Canvas", "", "drawn in the Canvas plugin", True),
    ("Backlinks", "", "the panes **Backlinks** and Outline", True),
    # A capital that grammar asks for tells nothing.
    ("Settings", "", "Settings of the boiler noted.", False), ("Filters", "", "It is slow. Filters come later.", False),
    ("Canvas", "", "- Canvas paintings", False), ("Slides", "", "1. Slides by Ms Ott", False),
    ("Canvas", "", "> *Canvas* bags", False), ("Views", "", "Two opinions: Views on D differ", False),
    ("Einstellungen", "", "Er hat die Einstellungen der Heizung notiert und geht.", False),
    ("Vorlage", "concept", "Das ist eine Vorlage für den Brief, mit Siegel.", False),
    ("Vorlage", "concept", "the plugin called Vorlage", True),
    # What is hardly a word is a name wherever it stands, as it is written.
    ("Postgres", "concept", "Postgres is slow", True), ("Postgres", "concept", "- Postgres\n- Redis", True),
    ("Postgres", "concept", "in postgres we trust", False), ("Zettelkasten", "", "Zettelkasten helps", True),
    ("kubectl", "", "see kubectl apply", True), ("Kubernetes", "", "auf dem Kubernetes von dem Team", True),
    # A spelling that no word has is a name in any case.
    ("PostgreSQL", "concept", "our postgresql server", True), ("GPT-4o", "concept", "with gpt-4o", True),
    ("HTML", "", "as html", True), ("C#", "concept", "C# code", True), ("日本語", "", "日本語で", True),
    # People, companies and projects keep their names; an everyday word is theirs only as it is written.
    ("Ostrava", "project", "ostrava is late", True), ("Compass", "project", "a compass for the hike", False),
    ("Compass", "project", "Compass starts in May", True), ("Gruber", "person", "gruber called", False),
    ("Gruber", "person", "Gruber called", True), ("Notion", "company", "no notion of time", False),
    ("Notion", "company", "with Notion", True), ("Settings", "project", "Settings is late", True),
    # Words that are ordinary through and through are never the concept of that title.
    ("Search", "concept", "in Search", False), ("Properties", "concept", "in Properties", False),
    # Several words say enough.
    ("Sales tax", "concept", "the sales tax is due", True), ("Version history", "", "look at version history", True),
])
def test_a_word_is_told_from_a_name(title: str, kind: str, text: str, linked: bool) -> None:
    """Titles of one word that people also use as words: a missed link costs less than a wrong one."""
    assert autolink(text, [Linkable("x/note.md", title, [], kind)], "")[1] == (["x/note.md"] if linked else [])


def test_the_first_mention_that_is_one_is_linked() -> None:
    """A word at the start of the text does not use up the link of the name further on."""
    text = "Settings vary. We open Settings by key, and the settings stay."
    assert autolink(text, [Linkable("s.md", "Settings", [], "")], "")[0] == (
        "Settings vary. We open [[s|Settings]] by key, and the settings stay.")


def test_a_name_of_two_notes_is_not_linked_and_hides_the_names_inside_it() -> None:
    """Neither a guess between the two nor a link to a part of the name."""
    twice = [*EVERYBODY, Linkable("x/1.md", "Postgres Search", [], "concept")]
    assert autolink("Postgres Search is slow", twice, "") == ("Postgres Search is slow", [])


def test_a_note_gets_no_link_to_itself() -> None:
    """Its own name stays plain text, and so does a shorter name inside it."""
    assert LINKER.link("Postgres Search is slow", SEARCH.path) == ("Postgres Search is slow", [])


@pytest.mark.parametrize(
    "link", ["[[resources/people/ada]]", "[[ada|her]]", "[[Ada Lovelace]]", "[she](resources/people/ada.md)"])
def test_a_note_that_is_linked_already_gets_no_second_link(link: str) -> None:
    """By path, file name, title or Markdown link, before the mention or behind it."""
    for text in (f"{link} is Ada Lovelace.", f"Ada Lovelace is {link}."):
        assert LINKER.link(text, "") == (text, [])


def test_linking_twice_equals_linking_once() -> None:
    """What was linked is not linked again."""
    once, added = LINKER.link("Ada Lovelace met 王小明 about Postgres.", "")
    assert added == [ADA.path, WANG.path, POSTGRES.path]
    assert LINKER.link(once, "") == (once, [])


@pytest.mark.parametrize("name", ["", " ", "7", "2026-11-30", "x", "...", "the", "it is"])
def test_a_name_that_says_nothing_is_never_linked(name: str) -> None:
    """Numbers, dates, single letters and grammar words stay text."""
    text = f"at 7 on 2026-11-30 x ... the it is {name} end"
    assert autolink(text, [Linkable("a.md", name, [], "person")], "") == (text, [])


@given(st.lists(st.sampled_from(["Ada Lovelace", "Will", "`", "\n\n", "[[", "]]", "王小明", " ", "# ", "x", "|", "é"]),
                max_size=14))
def test_taking_the_links_out_gives_the_text_back(pieces: list[str]) -> None:
    """Linking adds `[[path|` and `]]` around words that stood there, nothing more."""
    text = "".join(pieces)
    linked, added = LINKER.link(text, "")
    for note in EVERYBODY:
        for name in (note.title, *note.names):
            if note.path in added:
                linked = linked.replace(f"[[{note.path[:-3]}|{name}]]", name)
    assert linked == text
