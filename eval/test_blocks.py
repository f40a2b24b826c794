"""A block with an id is edited in place and keeps its id."""
from __future__ import annotations

import pytest
from echo_core.errors import InvalidArgument, InvalidTarget
from echo_core.markdown import blocks_by_id, edit_block, find_block

NOTE = (
    "# Blocks\n\nA paragraph here. ^para1\n\n- item one ^li1\n  - [ ] sub\n    more ^sub\n- item two\n\n^list\n\n"
    "> quote line\n\n^quote1\n\n| Name | Qty |\n| ---- | --- |\n| apple | 3 |\n\n^tbl1\n\n```js\nlet x = 1; ^no\n```\n"
    "\n^code1\n\n> in q\n> more ^q2\n\nText\n^below\n\nend `x ^code` of\nit\n"
)
TEXTS = {
    "para1": "A paragraph here.", "li1": "item one", "sub": "sub\n    more", "q2": "in q\n> more", "below": "Text",
    "list": "- item one ^li1\n  - [ ] sub\n    more ^sub\n- item two", "quote1": "> quote line",
    "tbl1": "| Name | Qty |\n| ---- | --- |\n| apple | 3 |", "code1": "```js\nlet x = 1; ^no\n```",
}
EDITS = [
    ("para1", "append", "more", "here. ^para1", "here. more ^para1"),
    ("para1", "append", " more\nline", "here. ^para1", "here. more\nline ^para1"),
    ("para1", "prepend", "Well:", "A para", "Well: A para"),
    ("para1", "replace", "NEW ^para1", "A paragraph here.", "NEW"),
    ("^li1", "replace", "- changed", "- item one", "- changed"),
    ("li1", "replace", "changed", "- item one", "- changed"),
    ("sub", "replace", "a\nb", "- [ ] sub\n    more", "- [ ] a\n    b"),
    ("sub", "replace", "- [x] done", "- [ ] sub\n    more", "- [x] done"),
    ("q2", "append", "\nthird", "> more ^q2", "> more\n> third ^q2"),
    ("tbl1", "append", "| pear | 4 |", "| apple | 3 |\n", "| apple | 3 |\n| pear | 4 |\n"),
    ("code1", "replace", "```\nnew\n```\n", "```js\nlet x = 1; ^no\n```", "```\nnew\n```"),
    ("list", "append", "- three", "- item two\n", "- item two\n- three\n"),
    ("LI1", "append", "x", "one ^li1", "one x ^li1"),
]


@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_ids_name_the_block_they_end_or_follow(eol: str) -> None:
    """Paragraph, nested list item, quote, and by an id below: list, table, code; never text inside code."""
    text = NOTE.replace("\n", eol)
    found = {name: text[block.start:block.end] for name, (block,) in blocks_by_id(text).items()}
    assert found == {name: block.replace("\n", eol) for name, block in TEXTS.items()}


@pytest.mark.parametrize(("block_id", "operation", "content", "old", "new"), EDITS)
@pytest.mark.parametrize("eol", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_a_block_edit_changes_just_the_block(
    block_id: str, operation: str, content: str, old: str, new: str, eol: str
) -> None:
    """Marks, id and everything around stay; further lines get the block's own prefix."""
    assert NOTE.count(old) == 1
    text = NOTE.replace("\n", eol)
    assert edit_block(text, block_id, operation, content) == NOTE.replace(old, new).replace("\n", eol)


@pytest.mark.parametrize(("block_id", "content"), [
    ("para1", "# heading"), ("para1", "a\n\nb"), ("sub", "x\n- y"), ("tbl1", "```\nopen"),
])
def test_content_that_would_take_the_block_apart_is_refused(block_id: str, content: str) -> None:
    """The id never moves to another block and never vanishes."""
    with pytest.raises(InvalidArgument) as caught:
        edit_block(NOTE, block_id, "replace", content)
    assert caught.value.data["field"] == "content"


def test_an_unknown_id_lists_the_real_ones() -> None:
    """The answer holds the note's ids and headings."""
    with pytest.raises(InvalidTarget) as caught:
        find_block(NOTE, "nope")
    assert caught.value.data == {"blocks": sorted(TEXTS), "headings": ["Blocks"]}


def test_an_id_that_stands_twice_is_an_error() -> None:
    """Nothing is guessed."""
    with pytest.raises(InvalidTarget, match="2 blocks"):
        find_block("a ^x\n\nb ^x\n", "x")


def test_a_lone_id_at_the_top_names_nothing() -> None:
    """There is no block above it."""
    assert blocks_by_id("---\na: 1\n---\n^x\n\ntext\n") == {}


def test_a_list_item_may_be_sent_with_its_indentation_and_bullet():
    """As it stands in the note; neither is doubled."""
    text = "- outer\n  - inner ^nested\n- last\n"
    for content in ("  - new ^nested", "- new", "  - new", "new", "\t* new"):
        found = edit_block(text, "nested", "replace", content)
        assert found.replace("* new", "- new") == "- outer\n  - new ^nested\n- last\n", content
