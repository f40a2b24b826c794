"""One property of a note changes and every other byte stays (spec 2.2, field reports on frontmatter)."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest
import yaml
from echo_core.errors import InvalidArgument, MalformedNote
from echo_core.frontmatter import add_items, parse, set_key
from echo_core.frontmatter.yaml_scalars import resolve
from frontmatters import NOTE, TEXTS, Written, agrees, block_of, notes, oracle
from hypothesis import example, given
from hypothesis import strategies as st


@given(notes())
def test_what_is_read_is_what_yaml_says(note: Written) -> None:
    """Every style, line end and comment gives the values PyYAML gives."""
    front = parse(note.text)
    assert front.malformed is None
    assert agrees(front.values, oracle(note.text))
    assert note.tail.endswith(note.text[front.body_offset :])


DATA = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**6), 10**6), st.text(max_size=20).filter(str.isprintable)),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abc: -#'é", min_size=1, max_size=6), inner, max_size=3)
    ),
    max_leaves=12,
)


STYLES = st.fixed_dictionaries(
    {
        "default_flow_style": st.sampled_from([True, False, None]),
        "default_style": st.sampled_from([None, "'", '"', "|", ">"]),
        "width": st.integers(20, 80),
        "allow_unicode": st.booleans(),
    }
)


@given(st.dictionaries(st.text("abc d:#-é", min_size=1, max_size=8), DATA, max_size=5), STYLES)
def test_what_a_yaml_tool_writes_is_read(data: dict[str, Any], style: dict[str, Any]) -> None:
    """Whatever PyYAML dumps, in any of its styles, is read as it was, or named malformed when it needs `? ` keys."""
    dumped = yaml.safe_dump(data, sort_keys=False, **style)
    front = parse(f"---\n{dumped}---\nbody")
    if front.malformed is None:
        assert agrees(front.values, yaml.load(dumped, Loader=yaml.BaseLoader))
    else:
        assert "? " in dumped or "!!" in dumped


@given(notes(), TEXTS)
def test_any_frontmatter_survives_set_and_unset_of_another_key(note: Written, value: str) -> None:
    """Setting a key that was not there and removing it again gives the same text, to the byte."""
    for key in ("status", "zz new"):
        changed = set_key(note.text, key, value)
        assert changed != note.text
        assert parse(changed).values[key] == value or resolve(value) != value
        assert set_key(changed, key, None) == note.text


@given(notes(), st.data())
def test_only_the_lines_of_the_named_key_change(note: Written, data: st.DataObject) -> None:
    """What stands before and after a key is the same before and after setting, extending or removing it."""
    if not note.pieces:
        return
    at = data.draw(st.integers(0, len(note.pieces) - 1))
    key = note.pieces[at][0]
    before = note.head + "".join(lines for _, lines in note.pieces[:at])
    after = "".join(lines for _, lines in note.pieces[at + 1 :]) + note.tail
    value = data.draw(st.one_of(TEXTS, st.integers(), st.booleans(), st.lists(TEXTS, max_size=3)))
    edits = [lambda: set_key(note.text, key, None)]
    if not isinstance(parse(note.text).values[key], dict):
        edits += [lambda: set_key(note.text, key, value), lambda: add_items(note.text, key, ["new: item"])]
    for edit in edits:
        changed = edit()
        assert changed.startswith(before)
        assert changed.endswith(after)
        others = {name: held for name, held in oracle(note.text).items() if name != key}
        assert {name: held for name, held in oracle(changed).items() if name != key} == others


@given(notes())
def test_an_equal_value_changes_no_byte(note: Written) -> None:
    """Setting what is read, or adding items that are held, gives back the text itself."""
    for key, value in parse(note.text).values.items():
        if value is not None:
            assert set_key(note.text, key, value) == note.text
        if isinstance(value, list) and not any(isinstance(item, (list, dict)) for item in value):
            assert add_items(note.text, key, value) == note.text


@given(TEXTS, st.sampled_from([NOTE, "", "---\nk: [old]\n---\n", "---\nk:\n- old\n---\n", "---\nk: |\n  old\n---\n"]))
@example("2026-11-30", NOTE)
def test_text_stays_text_for_every_reader(value: str, note: str) -> None:
    """PyYAML (YAML 1.1) reads the very text that was written, as text; only real ISO days stay plain dates."""
    for written in (value, [value], [value, "other", value + "!"]):
        changed = set_key(note, "k", written)
        assert oracle(changed)["k"] == written
        read = yaml.safe_load(block_of(changed))["k"]
        for got in read if isinstance(read, list) else [read]:
            assert isinstance(got, (str, date, datetime))
        assert set_key(changed, "k", written) == changed


@given(st.one_of(st.booleans(), st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False)))
def test_numbers_and_booleans_are_read_as_such(value: bool | int | float) -> None:
    """A number or boolean is written so that a YAML reader has the same value of the same type."""
    changed = set_key(NOTE, "k", value)
    read = yaml.safe_load(block_of(changed))["k"]
    assert (read, type(read)) == (value, type(value))
    assert set_key(changed, "k", value) == changed


@given(
    st.text(alphabet=st.sampled_from("ab:-#[]{}\"'|>,&*!?%@\\ \t\n\r1~"), max_size=40),
    st.sampled_from(["", "a: ", "a:\n  - "]),
)
def test_nothing_makes_the_reader_raise(garbage: str, lead: str) -> None:
    """Any text is read or named malformed at a place inside it, and an edit either works or is refused."""
    text = f"---\n{lead}{garbage}\n---\nbody"
    front = parse(text)
    if front.malformed:
        assert front.values == {}
        assert 1 <= front.malformed.line <= text.count("\n") + text.count("\r") + 1
        assert front.malformed.column >= 1
    try:
        changed = set_key(text, "zz", "x")
    except (MalformedNote, InvalidArgument):
        return
    assert set_key(changed, "zz", None) in (text, "---\n---\n\n" + text)


@pytest.mark.parametrize(
    ("block", "line", "column"),
    [
        ("title: a: b", 2, 9),
        ("x: 1\ntags: [#abc, def]", 3, 8),
        ("a: 1\nb: 2\na: 3", 4, 1),
        ("a: 1\n\tb: 2", 3, 1),
        ("a: 'open", 2, 4),
        ("a: [1, 2", 2, 4),
        ('a: "x" y', 2, 8),
        ("just text", 2, 1),
        ("- a\n- b", 2, 1),
        ("a: @home", 2, 4),
        ("a: 1\n  b: 2", 3, 4),
        ('a: "\\q"', 2, 5),
        ("2026-11-30: x", 2, 1),
        ("a: *missing", 2, 4),
        ("a: {b: 1, b: 2}", 2, 11),
        ("a: x\x00", 2, 5),
        ("? a\n: b", 2, 1),
        ("a: 1\n--- b: 2", 3, 1),
        ("a: " + "[" * 60, 2, 54),
        ("a:\n - b\n  c: 1", 4, 4),
        ("a:\n    b: 1\n  c: 1", 4, 3),
    ],
)
def test_a_malformed_block_is_never_touched_and_never_doubled(block: str, line: int, column: int) -> None:
    """Every write is refused with the line and column of the fault, whatever the line ends; the body is still found."""
    for eol in ("\n", "\r\n", "\r"):
        text = f"---\n{block}\n---\nbody".replace("\n", eol)
        front = parse(text)
        assert front.values == {}
        assert text[front.body_offset :] == "body"
        for write in (
            lambda: set_key(text, "status", "x"),
            lambda: add_items(text, "tags", ["x"]),
            lambda: set_key(text, "a", None),
        ):
            with pytest.raises(MalformedNote) as refused:
                write()
            assert (refused.value.data["line"], refused.value.data["column"]) == (line, column)


def test_an_unclosed_or_oversized_block_is_malformed() -> None:
    """Without a closing fence, or with one a mebibyte away, the note counts as malformed from its first line."""
    for text in ("---\ntitle: x\nbody", "---\ntitle: " + "x" * 2**20 + "\n---\n", "\ufeff---\r\ntitle: x\r\n"):
        malformed = parse(text).malformed
        assert malformed is not None
        assert (malformed.line, malformed.column) == (1, 1)


@pytest.mark.parametrize(
    "text",
    [
        "---\n\nProse after a thematic break.\n\n---\n\nMore.\n",
        "---\n",
        "---",
        "",
        "\ufeff",
        "# Title\n\n---\na: 1\n---\n",
        "----\na: 1\n---\n",
        "\n---\na: 1\n---\n",
        "---\nprose without end",
    ],
)
def test_a_thematic_break_is_no_frontmatter(text: str) -> None:
    """Such notes have none; a key set on them gets a block of its own before the whole old text."""
    front = parse(text)
    assert (front.present, front.malformed, front.values) == (False, None, {})
    changed = set_key(text, "status", "active")
    assert parse(changed).values == {"status": "active"}
    assert changed.endswith(text.lstrip("\ufeff"))
    assert changed.startswith("\ufeff") == text.startswith("\ufeff")
