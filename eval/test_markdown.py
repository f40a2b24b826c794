"""Edits of sections change the lines they name and not one character else."""
from __future__ import annotations

import pytest
from echo_core.errors import InvalidArgument
from echo_core.markdown import (
    append_text,
    detect_eol,
    edit_section,
    find_heading,
    has_line,
    headings,
    insert_before_related,
    insert_heading,
)
from echo_core.markdown.scan import scan, scan_fragment
from hypothesis import assume, given
from hypothesis import strategies as st

NOTE = "# Project\n\nIntro.\n\n## Tasks\n\n- a\n\n## Notes\n\nText.\n\n### Deep\n\ndeep\n\n## Log\n\nlast\n"
TIGHT = "# T\n## S1\none\n## S2\ntwo\n"

EDITS = [
    ("a list grows without a blank line", NOTE, "Tasks", "append", "- b\n", ("- a\n", "- a\n- b\n")),
    ("append stays above the sub-heading", NOTE, "Notes", "append", "More.", ("Text.\n", "Text.\nMore.\n")),
    ("append at the end of the note", NOTE, "Log", "append", "next", ("last\n", "last\nnext\n")),
    ("text does not slip into the list above", NOTE, "Tasks", "append", "Para.", ("- a\n", "- a\n\nPara.\n")),
    ("a leading line end asks for a blank line", NOTE, "Notes", "append", "\nB.", ("Text.\n", "Text.\n\nB.\n")),
    ("a rule does not turn text into a heading", NOTE, "Notes", "append", "---", ("Text.\n", "Text.\n\n---\n")),
    ("prepend goes below the heading", NOTE, "Tasks", "prepend", "- z", ("- a\n", "- z\n- a\n")),
    ("prepended list does not swallow text", NOTE, "Log", "prepend", "- z", ("last\n", "- z\n\nlast\n")),
    ("replace keeps sub-sections", NOTE, "Notes", "replace", "New.\n", ("Text.\n", "New.\n")),
    ("replace with nothing", NOTE, "Notes", "replace", "", ("Notes\n\nText.\n\n", "Notes\n\n")),
    ("a repeated own heading is dropped", NOTE, "Notes", "replace", "## Notes\n\nNew.", ("Text.\n", "New.\n")),
    ("blank lines around content do not count", NOTE, "Tasks", "replace", "\n\nx\n\n\n", ("- a\n", "x\n")),
    ("tight notes stay tight", TIGHT, "S1", "append", "more", ("one\n", "one\nmore\n")),
    ("tight notes get the blank line they need", TIGHT, "S1", "append", "<div>", ("one\n", "one\n<div>\n\n")),
    ("empty section with a blank line", "# T\n\n## A\n\n## B\n", "A", "append", "x", ("A\n\n", "A\n\nx\n\n")),
    ("empty section without one", "# T\n## A\n## B\n", "A", "append", "x", ("A\n", "A\nx\n")),
    ("empty section before a setext heading", "# T\n## A\nB\n---\n", "A", "append", "x", ("A\n", "A\nx\n\n")),
    ("a table takes a row", "# T\n\n|a|\n|-|\n|b|\n", "T", "append", "|c|", ("|b|\n", "|b|\n|c|\n")),
    ("an indented line continues its item", "# T\n\n- a\n", "T", "append", "  more", ("- a\n", "- a\n  more\n")),
]


@pytest.mark.parametrize(("text", "target", "operation", "content", "change"), [case[1:] for case in EDITS],
                         ids=[case[0] for case in EDITS])
@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_an_edit_changes_just_its_lines(
    text: str, target: str, operation: str, content: str, change: tuple[str, str], eol: str
) -> None:
    """The note with the one replacement, in the note's own line ends."""
    text, old, new = (part.replace("\n", eol) for part in (text, *change))
    assert text.count(old) == 1
    assert edit_section(text, find_heading(text, target), operation, content) == text.replace(old, new)


def test_a_byte_order_mark_and_frontmatter_stay() -> None:
    """What stands before the section is not looked at twice."""
    text = "\ufeff---\r\ntags: [a] # c\r\n---\r\n# T\r\n\r\nx\r\n"
    assert edit_section(text, find_heading(text, "T"), "append", "y") == text + "y\r\n"


@pytest.mark.parametrize(("text", "expected"), [
    ("abc", "abc\n- x\n"), ("abc\n", "abc\n- x\n"), ("abc\n\n", "abc\n\n- x\n"), ("", "- x\n"),
    ("a\r\nb", "a\r\nb\r\n- x\r\n"), ("a\rb", "a\rb\r- x\r"), ("\ufeff", "\ufeff- x\n"),
    ("---\na: 1\n---\n", "---\na: 1\n---\n- x\n"),
])
def test_a_line_is_appended_with_one_line_end_and_no_blank_line(text: str, expected: str) -> None:
    """The missing line end is added, once; blank lines never grow."""
    assert append_text(text, "- x") == expected


def test_replacing_the_last_section_keeps_the_missing_final_line_end() -> None:
    """A note that ends without a line end still does."""
    assert edit_section("# T\n\nold", find_heading("# T\n\nold", "T"), "replace", "new\n") == "# T\n\nnew"


@pytest.mark.parametrize("content", ["```\nopen", "<!-- open", "~~~", "- x\n\n<script>"])
def test_content_that_would_swallow_the_text_below_is_refused(content: str) -> None:
    """An open fence or comment never hides the sections behind it."""
    for operation in ("append", "prepend", "replace"):
        with pytest.raises(InvalidArgument) as caught:
            edit_section(NOTE, find_heading(NOTE, "Tasks"), operation, content)
        assert caught.value.data["field"] == "content"


def test_an_unknown_operation_is_refused() -> None:
    """The answer names the field."""
    with pytest.raises(InvalidArgument, match="append, prepend, replace"):
        edit_section(NOTE, headings(NOTE)[0], "insert", "x")


def test_replacing_before_a_fence_keeps_the_fence() -> None:
    """The fence that holds `# Hidden` belongs to section B and is not cut open."""
    text = "# A\n\nold\n\n# B\n\n   ```\n# Hidden\n   ```\n\n# C\n"
    assert edit_section(text, find_heading(text, "A"), "replace", "new") == text.replace("old", "new")


def test_a_line_is_looked_for_in_its_section_only() -> None:
    """The same line in another section or in the frontmatter is another line."""
    text = "---\ntags:\n- a\n---\n# T\n\n- b  \n\n## U\n\n- c\r\n"
    assert not has_line(text, "- a")
    assert has_line(text, "- b", find_heading(text, "T"))
    assert not has_line(text, "- c", find_heading(text, "T"))
    assert has_line(text, "- c")


def test_a_new_section_stands_between_blank_lines() -> None:
    """At the end, at the end of another section, and before Related."""
    assert insert_heading("# T\n\nx", "New", 2, "y") == "# T\n\nx\n\n## New\n\ny\n"
    assert insert_heading("", "New", 1) == "# New\n"
    inside = insert_heading(NOTE, "New", 3, "y", find_heading(NOTE, "Notes"))
    assert inside == NOTE.replace("deep\n\n", "deep\n\n### New\n\ny\n\n")
    text = "# T\r\n\r\nx\r\n\r\n## Related\r\n\r\n- [[a]]\r\n"
    assert insert_before_related(text, "N", 2, "y\n") == text.replace("## Rel", "## N\r\n\r\ny\r\n\r\n## Rel")


def test_a_title_that_ends_in_marks_stays_whole() -> None:
    """The marks are escaped, so they do not close the heading."""
    assert [heading.title for heading in headings(insert_heading("", "Learn #", 1))] == ["Learn \\#"]


@pytest.mark.parametrize(("text", "eol"), [
    ("", "\n"), ("a\r\nb\n", "\n"), ("a\r\nb\r\nc\n", "\r\n"), ("a\rb\rc\n", "\r"),
])
def test_the_line_end_of_a_note_is_that_of_most_lines(text: str, eol: str) -> None:
    """LF decides a tie."""
    assert detect_eol(text) == eol


LINES = st.sampled_from([
    "", "", "# A", "## B", "## C", "### D", "text", "more text", "- item", "  cont", "> q", "```", "~~~", "---", "===",
    "| a | b |", "|---|---|", "    code", "<!-- c -->", "<div>", "Title", "\ttab", "x\u2028y", "\x0b", "%% c %%", "^id",
])
NOTES = st.builds(
    lambda bom, front, lines, eol, final: bom + eol.join([*front, *lines]) + (eol if final else ""),
    st.sampled_from(["", "\ufeff"]), st.sampled_from([[], ["---", "title: x", "---"]]),
    st.lists(LINES, min_size=1, max_size=14).map(lambda lines: ["# Top", *lines, "## End", "z"]),
    st.sampled_from(["\n", "\r\n", "\r"]), st.booleans(),
)
CONTENTS = st.sampled_from([
    "new", "- new", "new\n\n- list", "| n |", "> new", "---", "new\n===", "```\nx\n```", "### new",
])


@given(NOTES, CONTENTS, st.sampled_from(["append", "prepend", "replace"]), st.data())
def test_every_character_outside_the_section_survives_any_edit(
    text: str, content: str, operation: str, data: st.DataObject
) -> None:
    """What stands before and behind the section's own content is there afterwards, and reads as the same headings."""
    heading = data.draw(st.sampled_from(headings(text)))
    try:
        new = edit_section(text, heading, operation, content)
    except InvalidArgument:
        return
    assert new.startswith(text[:heading.content_start])
    assert new.endswith(text[heading.direct_end:])
    old_lines = text[heading.content_start:heading.direct_end].splitlines()
    if operation != "replace":
        rest = iter(new[heading.content_start:].splitlines())
        assert all(line in rest for line in old_lines)
    titles = [found.title for found in headings(text)]
    kept = [found.title for found in headings(new) if found.title not in ("new", "Title new")]
    assert kept == titles


@given(NOTES, st.sampled_from(["- new", "new", "- 14:05 did [[x]]", "> q", "| a |"]), st.data())
def test_appending_twice_is_appending_once(text: str, line: str, data: st.DataObject) -> None:
    """A line that was appended is found again in the same section."""
    heading = data.draw(st.none() | st.sampled_from(headings(text)))
    try:
        once = append_text(text, line, heading)
    except InvalidArgument:
        assume(False)
    again = next((found for found in headings(once) if heading and found.start == heading.start), None)
    assert has_line(once, line, again)
    assert len(once) <= len(text) + len(line) + 3 * len(detect_eol(text))


@given(NOTES, st.sampled_from(["- new", "new"]))
def test_a_plain_append_only_adds_behind_what_is_there(text: str, line: str) -> None:
    """The old note is the start of the new one, and the one missing line end is all that comes between."""
    eol = detect_eol(text)
    middle = "" if text.endswith(("\r", "\n")) else eol
    assert append_text(text, line) == text + middle + line + eol


@given(NOTES)
def test_a_note_that_grows_line_by_line_reads_as_one_that_was_written_at_once(text: str) -> None:
    """What was found out about the shorter note never changes what its further lines mean."""
    body = text if text.startswith("#") else f"# A\n{text}"  # fragments are read whole each time, without frontmatter
    lines = body.splitlines(keepends=True)
    for count in range(1, len(lines) + 1):
        grown = "".join(lines[:count])
        assert scan(grown) == scan_fragment(grown)


@given(NOTES)
def test_an_empty_edit_changes_nothing(text: str) -> None:
    """Appending or prepending nothing gives the very same note."""
    assume(headings(text))
    assert edit_section(text, headings(text)[0], "append", "\n \n") == text
    assert append_text(text, "") == text


@pytest.mark.parametrize("text", ["# T\nSub\n---\n", "# T\n<!-- c -->\nSub\n---\n"], ids=["empty", "filled"])
def test_an_appended_line_never_joins_the_setext_heading_below(text: str) -> None:
    """A blank line keeps the heading's title what it was."""
    new = append_text(text, "line", find_heading(text, "T"))
    assert [heading.title for heading in headings(new)] == ["T", "Sub"]
    assert new == text.replace("Sub", "line\n\nSub")
