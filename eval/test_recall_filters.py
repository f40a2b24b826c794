"""The filters of echo_recall: which words mean a kind of note, and what an unknown one is answered with (spec 3.2)."""
from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from opsfixture import call, make_ctx, put


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """A person of the layout, and a recipe that somebody typed by hand."""
    put(tmp_path, "resources/people/ada.md", "---\ntype: person\n---\n\n# Ada\n\nShe likes saffron.\n")
    put(tmp_path, "food/risotto.md", "---\ntype: Recipe\n---\n\n# Risotto\n\nIt needs saffron.\n")
    return tmp_path


@pytest.mark.parametrize(("kinds", "found"), [
    (["person"], ["resources/people/ada.md"]), (["Person"], ["resources/people/ada.md"]),
    (["Recipe"], ["food/risotto.md"]), (["recipe"], ["food/risotto.md"]), (["meeting"], []), (["session"], []),
    (["person", "recipe"], ["food/risotto.md", "resources/people/ada.md"]),
    ([""], ["food/risotto.md", "resources/people/ada.md"]), ([], ["food/risotto.md", "resources/people/ada.md"]),
])
def test_a_kind_is_one_of_the_layout_or_a_type_of_this_vault(vault: Path, kinds: list[str], found: list[str]) -> None:
    """In any letter case; a known kind that no note has finds nothing, no kind at all filters nothing."""
    answer = call(make_ctx(vault), "recall", query="saffron", kinds=kinds)
    assert sorted(hit["path"] for hit in answer["primary"]) == found


@pytest.mark.parametrize("kind", ["people", "persona", "recipes", "../x", "x" * 5000, "\u202e"])
def test_a_word_that_is_no_kind_is_refused_with_the_real_ones(vault: Path, kind: str) -> None:
    """An empty answer would look like `nothing is known`."""
    answer = call(make_ctx(vault), "recall", query="saffron", kinds=["person", kind])
    assert (answer["code"], answer["field"]) == ("invalid-argument", "kinds[1]")
    assert {"person", "meeting", "session", "Recipe"} <= set(answer["allowed"])
    assert ("Did you mean" in answer["hint"]) == (kind in ("persona", "recipes"))
    assert len(str(answer)) < 1500


def test_while_notes_are_being_read_an_unknown_kind_is_a_warning(vault: Path) -> None:
    """The note that has it may be the next one."""
    ctx = dataclasses.replace(make_ctx(vault), refresh=lambda: None)
    answer = call(ctx, "recall", query="saffron", kinds=["recipe"])
    assert (answer["ok"], answer["index"], answer["primary"]) == (True, "building", [])
    assert "kinds[0]" in answer["warnings"][0]
