"""Headings are what CommonMark says they are, and a target names one of them or none."""
from __future__ import annotations

import random

import pytest
from echo_core.errors import InvalidTarget
from echo_core.markdown import addresses, find_heading, full_path, headings, section_text
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

NOTE = "# Project\n\nIntro.\n\n## Tasks\n\n- a\n\n## Notes\n\nText.\n\n### Deep\n\ndeep\n\n## Log\n\nlast\n"

NO_HEADING = {
    "indented fence": "# A\n\n   ```\n# Hidden\n   ```\n",
    "longer closing fence": "# A\n\n```\n# Hidden\n`````\n",
    "shorter fence inside": "# A\n\n````\n```\n# Hidden\n````\n",
    "tilde inside backticks": "# A\n\n```\n~~~\n# Hidden\n```\n",
    "fence in a list item": "# A\n\n- x\n  ```\n  # Hidden\n  ```\n",
    "unclosed fence": "# A\n\n```\n# Hidden\n",
    "indented code": "# A\n\n    # Hidden\n",
    "tab-indented code": "# A\n\n\t# Hidden\n",
    "html comment": "# A\n\n<!--\n# Hidden\n\n## Hidden\n-->\n",
    "script": "# A\n\n<script>\n# Hidden\n</script>\n",
    "html block": "# A\n\n<div>\n# Hidden\n</div>\n",
    "table cell": "# A\n\n| # Hidden | b |\n|---|---|\n| # Hidden | c |\n",
    "rule after a table": "# A\n\n| a | b |\n|---|---|\n| c | d |\n---\n",
    "quote": "# A\n\n> # Hidden\n",
    "list item": "# A\n\n- # Hidden\n",
    "frontmatter": "---\n# Hidden\ntitle: x\n---\n# A\n",
    "tag": "# A\n\n#hidden\n",
    "seven marks": "# A\n\n####### Hidden\n",
    "escaped": "# A\n\n\\# Hidden\n",
    "digits that are no list marker": "# A\n\n\u0661. x\n    # Hidden\n",
    "lazy setext": "# A\n\n> Hidden\n===\n",
    "link definition": "# A\n\n[x]: /url\n===\n",
}

HEADINGS = {
    "closing marks": ("## Closed ##\n", [(2, "Closed")]),
    "marks that belong to the title": ("## C#\n", [(2, "C#")]),
    "empty": ("#\n", [(1, "")]),
    "three spaces": ("   # A\n", [(1, "A")]),
    "tab after the mark": ("#\tA\n", [(1, "A")]),
    "setext": ("A\n===\n\nB\n---\n", [(1, "A"), (2, "B")]),
    "setext of two lines": ("A\nB\n---\n", [(2, "A B")]),
    "after a closed fence": ("```\nx\n```\n# A\n", [(1, "A")]),
    "fence ended by its list": ("- ```\n# A\n", [(1, "A")]),
    "after a one-line comment": ("<!-- x -->\n# A\n", [(1, "A")]),
    "behind a byte order mark": ("\ufeff# A\n", [(1, "A")]),
    "behind mark and frontmatter": ("\ufeff---\r\ntitle: x\r\n---\r\n# A\r\n", [(1, "A")]),
    "lone carriage returns": ("# A\r\rtext\r## B\r", [(1, "A"), (2, "B")]),
    "separators that end no line": ("# A\u2028# B\x0b# C\n", [(1, "A\u2028# B\x0b# C")]),
    "markup in the title": ("# **b** `c` [[L|x]] #t\n", [(1, "**b** `c` [[L|x]] #t")]),
}


@pytest.mark.parametrize("text", NO_HEADING.values(), ids=NO_HEADING.keys())
def test_a_hash_line_that_is_no_heading_opens_no_section(text: str) -> None:
    """Code, comments, tables, quotes and lists hold no headings, so no edit is misled by them."""
    assert [heading.title for heading in headings(text)] == ["A"]


@pytest.mark.parametrize(("text", "expected"), HEADINGS.values(), ids=HEADINGS.keys())
def test_every_spelling_of_a_heading_is_found(text: str, expected: list[tuple[int, str]]) -> None:
    """Level and title are those CommonMark gives."""
    assert [(heading.level, heading.title) for heading in headings(text)] == expected


def test_a_section_ends_at_the_next_heading_of_its_level_or_above() -> None:
    """The section holds its sub-sections; its own content ends at the first of them."""
    notes = find_heading(NOTE, "Notes")
    assert section_text(NOTE, notes) == "## Notes\n\nText.\n\n### Deep\n\ndeep\n\n"
    assert NOTE[notes.content_start:notes.direct_end] == "\nText.\n\n"
    assert notes.line == 9


def test_paths_skip_levels_that_are_not_there() -> None:
    """A third-level heading below a first-level one is its child, and a later second-level one is not its parent."""
    assert [full_path(heading) for heading in headings("# One\n\n### Three\n\n## Two\n")] == [
        "One", "One::Three", "One::Two"]


@pytest.mark.parametrize("target", [
    "Project::Notes::Deep", "Notes::Deep", "Deep", "### Deep", "# Project::## Notes::### Deep", " deep ", "###Deep",
    "notes::deep",
])
def test_a_target_that_names_one_heading_finds_it(target: str) -> None:
    """Full path, part of it, title alone; with and without marks; letter case only as a fallback."""
    assert full_path(find_heading(NOTE, target)) == "Project::Notes::Deep"


def test_composed_and_decomposed_titles_are_the_same() -> None:
    """A target in NFC finds a heading in NFD."""
    assert find_heading("# Cafe\u0301\n", "Caf\u00e9").line == 1


def test_a_title_with_colons_is_reachable() -> None:
    """`::` inside a title does not hide the heading below it."""
    text = "# A::B\n\n## C\n"
    assert find_heading(text, "A::B::C").title == "C"
    assert find_heading(text, "A::B").level == 1


def test_a_target_that_names_none_lists_the_real_headings() -> None:
    """The caller can correct itself from the answer alone."""
    with pytest.raises(InvalidTarget) as caught:
        find_heading(NOTE, "Nowhere")
    assert caught.value.data["headings"] == [
        "Project", "Project::Tasks", "Project::Notes", "Project::Notes::Deep", "Project::Log"]


def test_a_name_of_several_headings_is_an_error_with_candidates() -> None:
    """Nothing is guessed: both places are named, the full path of either works."""
    text = "# Day\n\n## Mon\n\n### Log\n\n## Tue\n\n### Log\n"
    with pytest.raises(InvalidTarget) as caught:
        find_heading(text, "Log")
    assert [found["heading"] for found in caught.value.data["candidates"]] == ["Day::Mon::Log", "Day::Tue::Log"]
    assert find_heading(text, "Tue::Log").line == 9


TWINS = "# A\n\n## X\n\none\n\n## Y\n\n## X\n\ntwo\n\n### Log\n\n# A\n\n## X\n\nthree\n"


def test_headings_of_one_path_are_numbered_from_the_top() -> None:
    """Each is found by its number, also without what stands above it; the bare name means none of them."""
    assert addresses(headings(TWINS)) == ["A#1", "A::X#1", "A::Y", "A::X#2", "A::X::Log", "A#2", "A::X#3"]
    assert [find_heading(TWINS, name).line for name in ("A::X#1", "a::x#2", "X#3", "## A::X#2")] == [3, 9, 17, 9]
    for name in ("A::X", "X", "A", "A::X#0", "A::X#4", "X#"):
        with pytest.raises(InvalidTarget) as caught:
            find_heading(TWINS, name)
        assert caught.value.data["headings"] == addresses(headings(TWINS))


@pytest.mark.parametrize("text", [
    "# X\n\n# X\n\n# X#1\n\n# X#2\n", "# X#1\n\n# X#1\n\n# X\n\n# X\n", "#\n\n##\n\n#\n\n# #1\n",
    "# A  b\n\n# A b\n\n# A\tb\n", "# a\n\n# A\n", "# A::B\n\n# A\n\n## B\n", "# A\u2028b\x0bc\n\n# \x1b[0m\n",
    "# Gr\udcf6\udcdfe\n\n# Gr\udcf6\udcdce\n", "# e\u0301\n\n# \u00e9\n",
    "# " + "x" * 900 + "\n\n# " + "x" * 800 + "y\n",
    "# \u00a0A\n\n# A\u00a0\n", "# C#\n\n# C #\n\n# C\n", TWINS,
])
def test_every_heading_has_an_address_that_means_it_alone(text: str) -> None:
    """Whatever titles hold, what an answer lists can be asked for, by bytes that any client can send."""
    known = headings(text)
    for head, address in zip(known, addresses(known), strict=True):
        assert find_heading(text, address) == head, address
        assert address.encode().decode().isprintable()
        assert address == address.strip() != ""


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["# ", "## ", "### "]),
                          st.text(st.sampled_from("aA#12:\u00e4\u0301 …"), max_size=5)), max_size=8))
def test_no_mix_of_titles_leaves_a_heading_without_an_address(lines: list[tuple[str, str]]) -> None:
    """Numbers, marks and colons in titles never collide with those of addresses."""
    text = "".join(f"{marks}{title}\n\n" for marks, title in lines)
    known = headings(text)
    assert [find_heading(text, address) for address in addresses(known)] == known


def test_an_address_that_was_cut_still_means_its_heading() -> None:
    """An answer shows 200 characters of a long one, which is enough while no other begins so."""
    text = "# " + "long " * 60 + "one\n\n# " + "longer " * 60 + "\n"
    assert find_heading(text, "long " * 39 + "lon…").line == 1
    with pytest.raises(InvalidTarget):
        find_heading(text.replace("longer ", "long ", 39), "long " * 30 + "…")


def test_marks_tell_headings_of_one_name_apart() -> None:
    """`## Log` means the one of the second level."""
    text = "# X\n\n## Log\n\n### Log\n"
    assert find_heading(text, "### Log").level == 3
    assert find_heading(text, "X::Log").level == 2


PIECES = [
    "# a", "## b #", "#", "#x", "   # in", "    # code", "\t# tab", " ", "", "", "text", "more", "===", "---", "- - -",
    "***", "```", "````", "~~~", "``` x`y", "  ```", "- item", "-", "- # in", "  cont", "> q", ">", "> # q", "> ```",
    "1. one", "2. two", "<!-- c", "-->", "<!-- c -->", "<div>", "</div>", "<?php", "?>", "<script>", "</script>",
    "| a | b |", "|---|---|", "| # c | d |", "a | b", "--- | ---", "\\# esc", "# a \\#", "-\tx", "  - y", "+ z", "*",
    "_ _ _", "`c", "=", "> - a", "- > # m", "\t", "a\\", "1. # h", ">\t# t", "-   \t```", "<pre>", "<a href='x'>",
]
ORACLE = MarkdownIt("commonmark").enable("table")


def reference_headings(text: str) -> list[tuple[int, int]]:
    """(level, line from 1) of the headings outside quotes and lists, by another parser."""
    found, depth = [], 0
    for token in ORACLE.parse(text):
        if token.type in ("blockquote_open", "list_item_open"):
            depth += 1
        elif token.type in ("blockquote_close", "list_item_close"):
            depth -= 1
        elif token.type == "heading_open" and not depth and token.map:
            found.append((int(token.tag[1]), token.map[0] + 1))
    return found


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=10), st.sampled_from(["", "\n"]))
def test_headings_agree_with_a_reference_parser(lines: list[str], final: str) -> None:
    """Any mix of constructs gives the headings an independent CommonMark parser finds."""
    text = "top\n\n" + "\n".join(lines) + final
    assert [(heading.level, heading.line) for heading in headings(text)] == reference_headings(text)


def test_line_ends_do_not_change_the_headings() -> None:
    """CRLF and lone CR give the same titles and lines as LF."""
    chance = random.Random(5)
    for _ in range(200):
        text = "x\n" + "\n".join(chance.choice(PIECES) for _ in range(12))
        found = [(heading.level, heading.title, heading.line) for heading in headings(text)]
        for eol in ("\r\n", "\r"):
            again = headings(text.replace("\n", eol))
            assert [(heading.level, heading.title, heading.line) for heading in again] == found
