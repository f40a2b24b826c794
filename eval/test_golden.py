"""The vault format, byte by byte: what ECHO writes is what `eval/golden/` holds (renewed by `make golden`)."""
from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from echo_core.kinds import KINDS
from goldenfiles import CAPTURES, GOLDEN, TREES, trees

FORMAT_PAGE = GOLDEN.parent.parent / "docs/vault-format.md"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    """The trees as the code writes them today."""
    return trees(tmp_path_factory.mktemp("golden"))


def golden(tree: str) -> dict[str, bytes]:
    root = GOLDEN / tree
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("tree", TREES)
def test_the_tree_holds_the_golden_files_and_no_others(tree: str, written: dict[str, dict[str, bytes]]) -> None:
    """No file appears, disappears or changes its place unnoticed."""
    assert sorted(written[tree]) == sorted(golden(tree))


@pytest.mark.parametrize(("tree", "path"), [(tree, path) for tree in TREES for path in golden(tree)])
def test_every_file_has_its_golden_bytes(tree: str, path: str, written: dict[str, dict[str, bytes]]) -> None:
    """Frontmatter, headings, links, lines, control files: each byte is the format's."""
    assert written[tree][path].decode("utf-8") == golden(tree)[path].decode("utf-8")
    assert written[tree][path] == golden(tree)[path]


def test_every_kind_is_pinned() -> None:
    """A new kind needs a golden note."""
    assert {str(capture["kind"]) for capture in CAPTURES if "kind" in capture} == {*KINDS, "rollup"}


def test_every_golden_note_ends_in_one_newline_and_has_no_blank_before_a_line_end() -> None:
    """Tidy for whoever opens the folder."""
    for path, data in golden("vault").items():
        text = data.decode("utf-8")
        assert text.endswith("\n"), path
        assert not text.endswith("\n\n"), path
        assert not re.search(r"[ \t]\n|\n\n\n|\r", text), path


def fences(language: str) -> list[str]:
    """The code blocks of one language on the format page."""
    return re.findall(rf"^```{language}\n(.*?)^```$", FORMAT_PAGE.read_text(encoding="utf-8"), re.S | re.M)


def test_the_note_on_the_format_page_is_a_golden_note() -> None:
    """The documentation shows what is written."""
    (note,) = fences("markdown")
    assert note == golden("vault")["resources/people/ada-lovelace.md"].decode("utf-8")


def test_the_index_on_the_format_page_is_an_excerpt_of_the_golden_index() -> None:
    """Same fields, same order, same entry."""
    (index,) = fences("json")
    shown = json.loads(index)
    real = json.loads(golden("vault")["_agent/index/entities.json"])
    assert shown["version"] == real["version"]
    assert shown["entities"].items() <= real["entities"].items()
    assert [list(entry) for entry in shown["entities"].values()] == [
        list(real["entities"][slug]) for slug in shown["entities"]]


@pytest.mark.parametrize(("form", "path"), [
    (r"- \d{4}-\d\d-\d\d: .+", "inbox/captures/inbox.md"),
    (r"- \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+01:00: .+", "_agent/context/current-context.md"),
    (r'- \d{4}-\d\d-\d\d \d\d:\d\d: ".+" → .+ \(\w+\)', "inbox/processing-log/2026-11.md"),
    (r"- \d\d:\d\d .+", "journal/daily/2026-11-30.md"),
    (r"- \[\[[^\]|]+\|[^\]]+\]\](: .+)?", "resources/people/jurgen-gross.md"),
])
def test_lines_have_the_form_the_format_names(form: str, path: str) -> None:
    """Inbox, scope history, processing log, agent log and related lines (spec 2.7)."""
    bullets = [line for line in golden("vault")[path].decode("utf-8").split("---\n", 2)[2].splitlines()
               if line.startswith("- ")]
    assert bullets
    for line in bullets:
        assert re.fullmatch(form, line), line


def test_the_golden_trees_are_text_files_below_the_folder() -> None:
    """Nothing but the trees and the tool lists lies there."""
    assert {path.name for path in Path(GOLDEN).iterdir()} == {*TREES, "tools-core.json", "tools-full.json"}
