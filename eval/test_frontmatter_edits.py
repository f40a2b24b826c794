"""An edit of frontmatter goes to its place and keeps the style it finds (spec 2.2)."""

from __future__ import annotations

from typing import Any

import pytest
from echo_core.catalog.notebytes import decode, encode
from echo_core.errors import InvalidArgument, MalformedNote
from echo_core.frontmatter import add_items, compose, parse, set_key
from frontmatters import NOTE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\r\ntitle: X\r\n---\r\nbody", "---\r\ntitle: X\r\nstatus: active\r\n---\r\nbody"),
        ("\ufeff---\rtitle: X\r---\rbody", "\ufeff---\rtitle: X\rstatus: active\r---\rbody"),
        ("---\n---\n", "---\nstatus: active\n---\n"),
        ("---\n# note\n\n---\nb", "---\n# note\n\nstatus: active\n---\nb"),
        ("body\r\nmore", "---\r\nstatus: active\r\n---\r\n\r\nbody\r\nmore"),
        ("---\nupdated: x\ntype: y\n---\n", "---\nupdated: x\ntype: y\nstatus: active\n---\n"),
        ("---\n# dates\ncreated: x\nfoo: y\n---\n", "---\nstatus: active\n# dates\ncreated: x\nfoo: y\n---\n"),
        ("---\nfoo: |+\n  kept\n\n---\n", "---\nfoo: |+\n  kept\n\nstatus: active\n---\n"),
        ("---\nfoo: |\n  # text\ncreated: x\n---\n", "---\nfoo: |\n  # text\nstatus: active\ncreated: x\n---\n"),
        ("---\n  foo: 1\n---\n", "---\n  foo: 1\n  status: active\n---\n"),
    ],
)
def test_a_new_key_goes_to_its_canonical_place(text: str, expected: str) -> None:
    """Behind the nearest key before it in the order of spec 2.2, else before the next, else last; line ends follow."""
    assert set_key(text, "status", "active") == expected


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("title", "Yes", 'title: "Plan: B"   # shown in the app', 'title: "Yes"   # shown in the app'),
        ("title", "Plan C", 'title: "Plan: B"   # shown', "title: Plan C   # shown"),
        ("attendees", "[[Ada]]", '"[[John-Brown]]"', '"[[Ada]]"'),
        ("tags", ["b c", "x, y"], "[a, 'b c']  #", "['b c', \"x, y\"]  #"),
        ("tags", [], "[a, 'b c']", "[]"),
        (
            "aliases",
            ["two", "three"],
            '  - one # first\n  # about two\n  - "two"\n',
            '  # about two\n  - "two"\n  - three\n',
        ),
        ("aliases", "one", '\n  - one # first\n  # about two\n  - "two"\n', " one\n"),
        ("created", ["2026-01-01"], "created: 2026-04-23\n", "created:\n  - 2026-01-01\n"),
        ("rate", 1.75, "1.50", "1.75"),
        ("meta", None, "meta:\n  k: v\n", ""),
    ],
)
def test_a_value_changes_in_the_style_it_has(key: str, value: Any, old: str, new: str) -> None:
    """Flow stays flow, block stays block, items that stay keep their lines, comments beside a scalar stay."""
    assert set_key(NOTE, key, value) == NOTE.replace(old, new)


@pytest.mark.parametrize(
    ("key", "items", "old", "new"),
    [
        ("tags", ["a", "new", "[[X]]"], "'b c']", "'b c', new, \"[[X]]\"]"),
        ("aliases", ["two", "three"], '  - "two"\n', '  - "two"\n  - three\n'),
        ("created", ["2026-05-01"], "created: 2026-04-23\n", "created:\n  - 2026-04-23\n  - 2026-05-01\n"),
        (
            "title",
            ["C"],
            'title: "Plan: B"   # shown in the app\n',
            'title:   # shown in the app\n  - "Plan: B"\n  - C\n',
        ),
        (
            "source_notes",
            ["[[s]]"],
            'aliases:\n  - one # first\n  # about two\n  - "two"\n',
            'aliases:\n  - one # first\n  # about two\n  - "two"\nsource_notes:\n  - "[[s]]"\n',
        ),
        ("code", ["007"], "", ""),
    ],
)
def test_adding_items_leaves_the_items_that_are_there(key: str, items: list[str], old: str, new: str) -> None:
    """A union: held items stay as written, a scalar becomes the first item, a missing key is made."""
    assert add_items(NOTE, key, items) == NOTE.replace(old, new)


def test_items_join_lists_of_every_layout() -> None:
    """Items at the indentation of the key, lists over several lines, empty lists and comma-separated tags."""
    assert add_items("---\nt:\n- a\nu: 1\n---\n", "t", ["b"]) == "---\nt:\n- a\n- b\nu: 1\n---\n"
    assert add_items("---\nt: [\n  a, # x\n  b\n]\n---\n", "t", ["c"]) == "---\nt: [\n  a, # x\n  b, c\n]\n---\n"
    assert add_items("---\nt: []\n---\n", "t", ["b"]) == "---\nt: [b]\n---\n"
    assert add_items("---\nt:\n---\n", "t", ["b"]) == "---\nt:\n  - b\n---\n"
    assert add_items("---\ntags: a, b\n---\n", "tags", ["c"]) == "---\ntags:\n  - a\n  - b\n  - c\n---\n"


def test_a_shape_clash_names_the_wanted_shape() -> None:
    """A map takes neither items nor a scalar, and what is no property at all is refused."""
    with pytest.raises(InvalidArgument) as clash:
        add_items(NOTE, "meta", ["x"])
    assert (clash.value.data["field"], clash.value.data["wanted"]) == ("meta", "list")
    with pytest.raises(InvalidArgument):
        set_key(NOTE, "meta", "x")
    for wrong in ({"a": 1}, [["nested"]], float("nan"), "\ud800", [None]):
        with pytest.raises(InvalidArgument):
            set_key(NOTE, "status", wrong)
    for key in ("", " ", "two\nlines", "x" * 300):
        with pytest.raises(InvalidArgument):
            set_key(NOTE, key, "x")


def test_an_anchor_that_others_repeat_cannot_be_removed() -> None:
    """An edit that would change another key is refused, and the values behind anchors and tags are read."""
    text = "---\nbase: &b shared\ncopy: *b\nnumber: !!str 5\n---\n"
    assert parse(text).values == {"base": "shared", "copy": "shared", "number": "5"}
    with pytest.raises(InvalidArgument):
        set_key(text, "base", None)
    assert add_items(text, "number", ["6"]).count('- "5"') == 1


def test_json_frontmatter_is_read_but_not_edited() -> None:
    """Properties stored as JSON are understood; a write is refused rather than written beside them."""
    text = '---\n{"title": "X", "tags": ["a"]}\n---\n'
    assert parse(text).values == {"title": "X", "tags": ["a"]}
    with pytest.raises(MalformedNote):
        set_key(text, "status", "x")


def test_a_new_block_has_the_canonical_order() -> None:
    """Known keys first in the order of spec 2.2, others after in the order given, empty ones left out."""
    block = compose(
        {
            "scope": "x: y",
            "tags": ["math", "[[A]]"],
            "agent_written": True,
            "title": "Ada",
            "type": "person",
            "created": "2026-11-30",
            "aliases": [],
            "status": "",
            "domain": None,
            "schema_version": 3,
            "on": "off",
        }
    )
    assert block == (
        '---\ntype: person\ntitle: Ada\ncreated: 2026-11-30\ntags:\n  - math\n  - "[[A]]"\nagent_written: true\n'
        'scope: "x: y"\nschema_version: 3\n"on": "off"\n---\n'
    )


def test_a_key_is_found_in_either_normal_form() -> None:
    """A name typed composed changes the property that was written decomposed, and does not add a twin."""
    text = "---\ncafe\u0301: a\n---\n"
    assert set_key(text, "café", "b") == "---\ncafe\u0301: b\n---\n"


def test_bytes_that_are_no_utf8_survive_an_edit() -> None:
    """A Latin-1 byte in a value or in the body stays the byte it was."""
    data = b"---\ntitle: caf\xe9\n---\nbody \xff\n"
    assert encode(set_key(decode(data)[0], "status", "x")) == b"---\ntitle: caf\xe9\nstatus: x\n---\nbody \xff\n"
