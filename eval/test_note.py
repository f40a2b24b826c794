"""A new note has one canonical form, and an old one gives its facts however it was written (spec 2.2)."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from echo_core import markdown
from echo_core.catalog.note import facts, new_note
from echo_core.frontmatter import parse
from hypothesis import given
from hypothesis import strategies as st

GOLDEN = """---
type: person
title: Ada Lovelace
created: 2026-11-30
updated: 2026-11-30
tags:
  - math
agent_written: true
---

# Ada Lovelace

Body text.

## Related

- [[projects/active/engine|Engine]]
"""
META = {
    "agent_written": True,
    "tags": ["math"],
    "updated": "2026-11-30",
    "created": "2026-11-30",
    "title": "Ada Lovelace",
    "type": "person",
    "aliases": [],
}
RELATED = "- [[projects/active/engine|Engine]]"


@pytest.mark.parametrize(
    "body",
    [
        "Body text.",
        "Body text.\n\n\n",
        "\n# Ada Lovelace\n\nBody text.\n",
        "# Ada Lovelace\r\n\r\nBody text.\r\n",
        f"Body text.\n\n## Related\n\n{RELATED}",
    ],
)
def test_a_new_note_has_the_canonical_bytes(body: str) -> None:
    """One form for one content: heading once, one Related section, one final newline, "\\n" line ends."""
    assert new_note(META, "Ada Lovelace", body, [RELATED]) == GOLDEN


def test_a_note_without_body_or_links_is_its_heading() -> None:
    """Nothing empty is written: no Related section, no blank lines at the end, no block without keys."""
    assert new_note(META, "Ada Lovelace", "  ", []) == GOLDEN.split("Body")[0].rstrip() + "\n"
    assert new_note({}, "Ada", "", []) == "# Ada\n"


def test_another_heading_first_does_not_replace_the_title() -> None:
    """Only the title itself counts as the opening heading."""
    for body in ("# Ada\n\nx", "## Ada Lovelace\n\nx", "Text\n\n# Ada Lovelace"):
        assert new_note({}, "Ada Lovelace", body).startswith("# Ada Lovelace\n\n" + body.split("\n")[0])


@pytest.mark.parametrize("body", ["```\ncode", "~~~~ py\ncode\n~~~", "<!-- open comment", "1. x\n   ```\n   y"])
def test_links_are_not_swallowed_by_what_a_body_leaves_open(body: str) -> None:
    """The Related section is a section even behind an unclosed fence or comment."""
    text = new_note({}, "T", body, [RELATED])
    assert markdown.headings(text)[-1].title == "Related"
    assert text.startswith("# T\n\n" + body)


@pytest.mark.parametrize(
    "title",
    [
        "Plan: B",
        "a\nb\rc\u2028d",
        "--- x",
        "[[x]] | y",
        "# hash",
        "C #",
        "yes",
        "2026-11-30",
        "  spaced  out ",
        "\"q\" 'r' \\",
    ],
)
def test_a_title_makes_one_heading_and_one_block(title: str) -> None:
    """Line ends and markup in a title stay one property and one heading."""
    text = new_note({"type": "concept", "title": " ".join(title.split())}, title, "Body.")
    assert parse(text).values["title"] == " ".join(title.split())
    assert [found.level for found in markdown.headings(text)] == [1]
    assert facts("x.md", text).title == " ".join(title.split())


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_a_body_stands_in_the_note_as_it_was(body: str) -> None:
    """Apart from line ends and blank lines at both ends, the body is in the note unchanged."""
    wanted = body.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    text = new_note({"title": "T"}, "T", body)
    assert wanted.strip() == "" or wanted in text
    assert text.endswith("\n")
    assert parse(text).values == {"title": "T"}


def test_facts_are_read_in_every_form_people_write() -> None:
    """Lists or scalars, `#` before tags, `tag` and `alias`, wikilinks with and without quotes."""
    text = """\ufeff---
type: person
tags: "#math, history"
tag: [math, code]
alias: Countess
aliases:
- Ada
- 2026
source_notes: [[Letters]]
supersedes: "[[old/ada|Old]]"
superseded_by: [[new#x]]
agent_written: true
---

# Ada L.

See [[Babbage|B.]].
"""
    found = facts("resources/people/ada.md", text.replace("\n", "\r\n"))
    assert (found.kind, found.title, found.agent_written) == ("person", "Ada L.", True)
    assert found.tags == ["math", "history", "code"]
    assert found.aliases == ["Ada", "2026", "Countess"]
    assert found.source_notes == ["[[Letters]]"]
    assert (found.supersedes, found.superseded_by) == ("old/ada", "new")
    assert found.headings == ["Ada L."]
    assert "Babbage" in found.links
    json.dumps(asdict(found))


def test_a_malformed_note_degrades_alone() -> None:
    """Its title comes from the heading, else the file name; its body still gives headings and links."""
    found = facts("a/Some Note.md", "---\ntags: [#abc, def]\n---\n## Part\n\n[[Target]]\n")
    assert found.malformed is not None
    assert (found.malformed.line, found.title, found.tags, found.headings) == (2, "Some Note", [], ["Part"])
    assert found.links == ["Target"]


def test_a_title_is_declared_or_a_heading_or_the_file_name() -> None:
    """In this order, a number or an empty title included."""
    assert facts("x.md", "---\ntitle: 2026\n---\n# H\n").title == "2026"
    assert facts("x.md", "---\ntitle:\n---\n# H\n").title == "H"
    assert facts("dir/x y.md", "plain").title == "x y"


@given(st.text())
def test_facts_never_raise(text: str) -> None:
    """Any text is a note."""
    assert facts("x.md", "---\n" + text).path == "x.md"
