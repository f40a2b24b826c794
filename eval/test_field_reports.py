"""What people reported about other memory products must come out right here, with siblings of each report.

Through the server where a client's door is part of the report, over a folder where the server adds nothing.
"""
from __future__ import annotations

import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from echo_core import frontmatter
from notedesk import desk, server
from opsfixture import call, get, make_ctx, put, snapshot
from serverproc import LEGACY, MODERN

__all__ = ["desk", "server"]


# -- append ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("before", "after"), [
    ("# A\n\nlast", "# A\n\nlast\n- new\n"), ("# A\n\nlast\n", "# A\n\nlast\n- new\n"),
    ("# A\n\n- one\n\n\n", "# A\n\n- one\n\n\n- new\n"), ("", "- new\n"), ("# A", "# A\n- new\n"),
    ("# A\r\n\r\nlast", "# A\r\n\r\nlast\r\n- new\r\n"), ("---\ntitle: X\n---", "---\ntitle: X\n---\n- new\n"),
    ("# A\rlast", "# A\rlast\r- new\r"),
])
def test_an_append_adds_the_missing_newline_and_no_blank_line(desk: Any, before: str, after: str) -> None:
    """The rest of the note stays; the same line again changes nothing."""
    note = desk(before)
    assert note.append("- new")["action"] == "appended"
    assert note.text == after
    assert note.append("- new")["action"] == "unchanged"
    assert note.text == after


@pytest.mark.parametrize("line",
                         ["  - sub", "\t- sub", "- item", "  text of the item", "| a | b |", "[x]: y", "> quoted"])
def test_an_appended_line_keeps_its_indent(desk: Any, line: str) -> None:
    """A sub-item stays a sub-item, by append and as a proposal."""
    note = desk("# N\n\n- one\n")
    note.append(line)
    assert note.text == f"# N\n\n- one\n{line}\n"
    plan = note.server.call("echo_reflect", proposals=[{"action": "append", "path": note.path, "line": line}])["plan"]
    assert plan[0]["would"] == "nothing"


def test_parallel_edits_of_one_note_all_land(desk: Any) -> None:
    """Eight appends and patches of three headings in one batch lose nothing."""
    note = desk("# N\n\n## A\n\na\n\n## B\n\nb\n\n## C\n\nc\n")
    jobs = [lambda n=n: note.append(f"- line {n}") for n in range(8)]
    jobs += [lambda h=h: note.patch("append", h, f"patched {h}") for h in "ABC"]
    with ThreadPoolExecutor(11) as pool:
        answers = [job.result() for job in [pool.submit(job) for job in jobs]]
    assert all(answer["ok"] for answer in answers), answers
    for wanted in [f"- line {n}\n" for n in range(8)] + [f"patched {h}\n" for h in "ABC"]:
        assert note.text.count(wanted) == 1


@pytest.mark.parametrize("version", ["0" * 16, "stale", "\"etag\""])
def test_a_stale_version_is_refused_and_the_note_left_alone(desk: Any, version: str) -> None:
    """Append and patch with another `if_match` than the note's answer conflict with the version that is there."""
    note = desk("# N\n\ntext\n")
    current = note.server.call("echo_get_note", path=note.path)["version"]
    note.file.write_text("# N\n\nsomebody else\n")
    newer = note.server.call("echo_get_note", path=note.path)["version"]
    for stale in (version, current):
        for answer in (note.append("- x", if_match=stale), note.patch("replace", "N", "x", if_match=stale)):
            assert (answer["code"], answer["version"]) == ("conflict", newer)
    assert note.text == "# N\n\nsomebody else\n"
    assert note.append("- x", if_match=newer)["ok"]


# -- headings and sections ------------------------------------------------------------------------------------


PEOPLE = "# Team\n\n## Work\n\n### People\n\n- Ada\n\n## Home\n\n- Bob\n"


@pytest.mark.parametrize("target", ["### People", "People", "# People", "people", "Team::Work::People", "Work::People",
                                    "###People", " People ", "### Team::Work::People"])
def test_a_target_with_hashes_means_the_heading(desk: Any, target: str) -> None:
    """`### People`, its leaf name and its path are one heading."""
    note = desk(PEOPLE)
    assert note.patch("append", target, "- Cy")["ok"]
    assert note.text == PEOPLE.replace("- Ada\n", "- Ada\n- Cy\n")


def test_a_wrong_target_answers_the_real_headings(desk: Any) -> None:
    """Nothing is written, whatever `create` says when the name is ambiguous."""
    note = desk("# N\n\n## A\n\n### Log\n\n- a\n\n## B\n\n### Log\n\n- b\n")
    real = ["N", "N::A", "N::A::Log", "N::B", "N::B::Log"]
    before = note.text
    for target, create in (("Nothing", False), ("Log", False), ("Log", True), ("C::Log", False)):
        answer = note.patch("append", target, "x", create=create)
        assert (answer["code"], answer["headings"]) == ("invalid-target", real)
    assert note.append("- x", section="Log")["code"] == "invalid-target"
    assert note.text == before


def test_two_headings_of_one_path_are_both_read_and_edited(desk: Any) -> None:
    """Each name of the refusal's list, of get_note and of recall is one that the next call takes."""
    text = "# Trip\n\n## Mon\n\nparrots\n\n## Tue\n\n## Mon\n\nlizards\n"
    note = desk(text)
    refused = note.patch("append", "Trip::Mon", "x")
    real = ["Trip", "Trip::Mon#1", "Trip::Tue", "Trip::Mon#2"]
    assert (refused["code"], refused["headings"]) == ("invalid-target", real)
    assert [row["heading"] for row in refused["candidates"]] == ["Trip::Mon#1", "Trip::Mon#2"]
    assert note.server.call("echo_get_note", path=note.path)["headings"] == real
    sections = [note.server.call("echo_get_note", path=note.path, section=name)["content"] for name in real[1:]]
    assert sections == ["## Mon\n\nparrots\n\n", "## Tue\n\n", "## Mon\n\nlizards\n"]
    assert note.append("- more", section="Trip::Mon#1")["ok"]
    assert note.patch("replace", "Mon#2", "geckos")["ok"]
    assert note.text == text.replace("parrots\n", "parrots\n- more\n").replace("lizards", "geckos")


def test_a_nested_heading_is_edited_in_place_even_with_create(desk: Any) -> None:
    """`Section B` inside `Section A` is found by its own name; no stray heading appears."""
    note = desk("# Patch Test\n\n## Section A\n\na\n\n### Section B\n\nb\n\n## Section C\n\nc\n")
    before = note.text
    assert note.patch("append", "Section B", "new", create=True)["ok"]
    assert note.text == before.replace("b\n\n## Section C", "b\nnew\n\n## Section C")


@pytest.mark.parametrize("hidden", [
    "   ```\n# Hidden\n   ```", "````\n```\n# Hidden\n```\n````", "~~~\n```\n# Hidden\n~~~", "    # Hidden",
    "<!--\n# Hidden\n-->", "```md\n# Hidden\n`````", "- x\n\n  ```\n  # Hidden\n  ```", "| a |\n|---|\n| # Hidden |",
    "```\n# Hidden\n``` x\n```",
])
def test_what_only_looks_like_a_heading_is_none(desk: Any, hidden: str) -> None:
    """Replacing the section before it keeps fence and comment, byte for byte."""
    text = f"# A\n\nold\n\n# B\n\n{hidden}\n\n# C\n\nc\n"
    note = desk(text)
    assert note.server.call("echo_get_note", path=note.path)["headings"] == ["A", "B", "C"]
    assert note.patch("replace", "A", "new")["ok"]
    assert note.text == text.replace("old", "new")
    assert note.patch("replace", "Hidden", "x")["code"] == "invalid-target"


@pytest.mark.parametrize("heading",
                         ["Детали", "详细 说明", "Café", "Über uns", "🖊️ Notes", "עברית", "a/b?c#d", "50 % & <x>"])
def test_a_heading_of_any_script_is_patched_by_every_door(desk: Any, heading: str) -> None:
    """In either normal form, by MCP of both eras and by REST."""
    note = desk(f"# N\n\n## {unicodedata.normalize('NFC', heading)}\n\nx\n")
    arguments = {"path": note.path, "operation": "append", "target_type": "heading"}
    for number, (form, era) in enumerate((("NFC", MODERN), ("NFD", LEGACY))):
        target = unicodedata.normalize(form, heading)
        assert note.server.tool("echo_patch_note", era, **arguments, target=target,
                                content=f"m{number}")["structuredContent"]["ok"]
    assert note.patch("append", heading, "r")["ok"]
    assert note.text == f"# N\n\n## {unicodedata.normalize('NFC', heading)}\n\nx\nm0\nm1\nr\n"


@pytest.mark.parametrize("arguments", [{}, {"content": None}, {"contents": "x"}])
def test_a_patch_without_content_names_the_field_and_writes_nothing(desk: Any, arguments: dict[str, Any]) -> None:
    """The nine letters `undefined` never land in a note; an empty replacement is allowed, an empty append is not."""
    note = desk("# N\n\n## A\n\ntext\n")
    answer = note.server.call("echo_patch_note", path=note.path, operation="replace", target_type="heading", target="A",
                              **arguments)
    assert answer["code"] == "invalid-argument"
    assert answer["field"] == ("contents" if "contents" in arguments else "content")
    assert note.patch("append", "A", "")["field"] == "content"
    assert note.server.call("echo_append_note", path=note.path)["field"] == "line"
    assert note.text == "# N\n\n## A\n\ntext\n"
    assert note.patch("replace", "A", "")["ok"]
    assert note.text == "# N\n\n## A\n"


@pytest.mark.parametrize(("text", "after"), [
    ("# A\n\npara ^id\n", "# A\n\npara ^id\n\nmore\n"), ("# A\n\n- item ^id\n", "# A\n\n- item ^id\n\nmore\n"),
    ("# A\n\npara ^id", "# A\n\npara ^id\n\nmore\n"),
    ("# A\r\n\r\npara ^id\r\n", "# A\r\n\r\npara ^id\r\n\r\nmore\r\n"),
    ("# A\n\npara\n", "# A\n\npara\nmore\n"),
])
def test_an_append_takes_no_block_id_from_the_block_above(desk: Any, text: str, after: str) -> None:
    """Text added right below `^id` would become its paragraph, and links to the block would break."""
    for note in (desk(text), desk(text, "other.md")):
        assert (note.patch("append", "A", "more") if note.path.endswith("note.md") else note.append("more"))["ok"]
        assert note.text == after
        if "^id" in text:
            assert note.patch("replace", "id", "new", "block")["ok"]


# -- frontmatter ----------------------------------------------------------------------------------------------

PROPERTIES = """---
# people first
created: 2026-04-23
attendees: "[[John-Brown]]"
single: 'it''s'   # why

tags: [a,  "b" , 'c']
time: 12:30
version: 1.50
zip: 007
long: >-
  folded
  text
list:
    - "[[Foo]]"
    - plain
answer: yes
---

# Meeting
"""


@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("bom", ["", "\ufeff"], ids=["plain", "BOM"])
def test_setting_one_property_leaves_the_others_byte_for_byte(desk: Any, eol: str, bom: str) -> None:
    """Order, comments, quotes, blank lines and line ends stay; a new key is one plain line."""
    text = (bom + PROPERTIES).replace("\n", eol)
    note = desk(text)
    assert note.set("status", "active")["ok"]
    lines = note.text.split(eol)
    assert lines.count("status: active") == 1
    lines.remove("status: active")
    assert eol.join(lines) == text
    assert note.set("status", None)["ok"]
    assert note.text == text
    assert note.set("created", "2026-05-01")["ok"]
    assert note.text == text.replace("created: 2026-04-23", "created: 2026-05-01")


@pytest.mark.parametrize(("value", "line"), [
    ("[[Foo]]", 'v: "[[Foo]]"'), ("2026-04-23", "v: 2026-04-23"), ("yes", 'v: "yes"'), ("null", 'v: "null"'),
    ("007", 'v: "007"'), ("a: b", 'v: "a: b"'), ("x #y", 'v: "x #y"'), ("#tag", 'v: "#tag"'), ("plain", "v: plain"),
    ("@at", 'v: "@at"'), ("- x", 'v: "- x"'), ("", 'v: ""'), (7, "v: 7"), (True, "v: true"), (1.5, "v: 1.5"),
    ("12:30", 'v: "12:30"'), ("a \"b\" c", 'v: a "b" c'), ("日本", "v: 日本"), ("~", 'v: "~"'), ("0x1F", 'v: "0x1F"'),
])
def test_text_stays_text_and_is_quoted_only_where_yaml_needs_it(desk: Any, value: Any, line: str) -> None:
    """What is written reads back as what was meant."""
    note = desk("---\ntitle: N\n---\n\nbody\n")
    assert note.set("v", value)["ok"]
    assert note.text == f"---\ntitle: N\n{line}\n---\n\nbody\n"
    assert note.server.call("echo_get_note", path=note.path)["frontmatter"]["v"] == value
    assert note.set("v", value)["action"] == "unchanged"


@pytest.mark.parametrize("bad", [
    "title: [unclosed", "title: 'open", "a: b: c", "\ttabbed: x", "a: 1\na: 2", "tags: [#abc, def]", "x: \"open\n",
    "- a\nb: c",
    "key: @x", "{a: 1", "<<<<<<< HEAD\ntitle: a\n=======\ntitle: b\n>>>>>>> other",
])
def test_a_note_whose_yaml_does_not_parse_gets_no_second_block(desk: Any, bad: str) -> None:
    """Not one byte changes; the answer names line and column; its body can be read and grows."""
    note = desk(f"---\n{bad}\ndescription: kept\n---\n\n# Real title\n\nbody words\n")
    before = note.text
    for answer in (note.set("status", "x"), note.patch("append", "tags", "x", "frontmatter")):
        assert answer["code"] == "malformed-note", answer
        assert answer["line"] >= 2
        assert answer["column"] >= 1
        assert answer["path"] == note.path
    assert note.text == before
    read = note.server.call("echo_get_note", path=note.path)
    assert read["content"] == before
    assert "does not parse" in read["warnings"][-1] or any("does not parse" in w for w in read["warnings"])
    assert note.append("- more")["ok"]
    assert note.text == before + "- more\n"


def test_links_in_list_properties_are_always_quoted(desk: Any) -> None:
    """A round trip of `related` leaves the value equal, in block and in flow style."""
    for style in ('related: ["[[Foo]]"]\n', 'related:\n  - "[[Foo]]"\n', "related: \"[[Foo]]\"\n"):
        note = desk(f"---\n{style}---\n\nx\n")
        assert note.patch("append", "related", ["[[Bar|b]]"], "frontmatter")["ok"]
        values = frontmatter.parse(note.text).values["related"]
        assert values == ["[[Foo]]", "[[Bar|b]]"]
        assert '"[[Foo]]"' in note.text
        assert '"[[Bar|b]]"' in note.text
        assert note.patch("append", "related", "[[Foo]]", "frontmatter")["action"] == "unchanged"
        assert note.set("related", ["[[Foo]]", "[[Bar|b]]"])["action"] == "unchanged"


@pytest.mark.parametrize("bad", ["tags: [#abc, def]", "tags: [a, b", "x: y: z", "\tq: 1"])
def test_one_bad_note_degrades_alone(tmp_path: Path, bad: str) -> None:
    """Load, recall, resolve, capture and health go on; the bad note is named and found by its body."""
    put(tmp_path, "resources/concepts/bad.md", f"---\n{bad}\n---\n\n# Bad apple\n\nzymurgy of cider\n")
    put(tmp_path, "resources/concepts/good.md", "---\ntitle: Good pear\n---\n\n# Good pear\n\nperry fermentation\n")
    ctx = make_ctx(tmp_path)
    assert call(ctx, "load")["ok"]
    assert call(ctx, "recall", query="zymurgy cider")["primary"][0]["path"] == "resources/concepts/bad.md"
    assert call(ctx, "recall", query="perry fermentation")["primary"][0]["path"] == "resources/concepts/good.md"
    assert call(ctx, "resolve", mention="Bad apple")["path"] == "resources/concepts/bad.md"
    assert call(ctx, "capture", title="New plum", kind="concept", body="slivovitz")["action"] == "created"
    found = {(row["check"], row["path"]) for row in call(ctx, "health", deep=True)["violations"]}
    assert ("frontmatter-malformed", "resources/concepts/bad.md") in found


@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("bom", ["", "\ufeff"], ids=["plain", "BOM"])
def test_frontmatter_of_any_line_end_is_read_and_kept(tmp_path: Path, eol: str, bom: str) -> None:
    """Title and tags are known; inserted lines take the note's own line end; no other byte changes."""
    text = bom + "---\ntitle: Xerxes\ntags:\n  - king\n---\n\n# Xerxes\n\n## Log\n\n- one\n\n## End\n\nz\n"
    text = text.replace("\n", eol)
    put(tmp_path, "notes/x.md", text)
    ctx = make_ctx(tmp_path)
    read = call(ctx, "get_note", path="notes/x.md")
    assert read["frontmatter"] == {"title": "Xerxes", "tags": ["king"]}
    assert call(ctx, "resolve", mention="xerxes")["path"] == "notes/x.md"
    assert call(ctx, "append_note", path="notes/x.md", line="- two", section="Log")["ok"]
    assert call(ctx, "patch_note", path="notes/x.md", operation="append", target_type="heading", target="End",
                content="y\nx")["ok"]
    assert call(ctx, "patch_note", path="notes/x.md", operation="append", target_type="frontmatter", target="tags",
                content="ruler")["ok"]
    call(ctx, "link", a="notes/x.md", b=_other(ctx))
    wanted = text.replace(f"- one{eol}", f"- one{eol}- two{eol}").replace(f"z{eol}", f"z{eol}y{eol}x{eol}")
    wanted = wanted.replace(f"  - king{eol}", f"  - king{eol}  - ruler{eol}")
    assert get(tmp_path, "notes/x.md") == wanted + f"{eol}## Related{eol}{eol}- [[resources/people/o|O]]{eol}"


def _other(ctx: Any) -> str:
    return str(call(ctx, "capture", title="O", kind="person")["path"])


# -- names, identity, links -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ref", ["Routing Test NONEXISTENT", "Routing Test", "Routing-Test-C", "notes/routing test a",
                                 "Routing Test A2", "outing Test A", "notes/Routing Test C.md"])
def test_an_edit_of_a_note_that_does_not_exist_edits_no_other(tmp_path: Path, ref: str) -> None:
    """The nearest notes are offered as candidates and stay as they are."""
    for name in "AB":
        put(tmp_path, f"notes/Routing Test {name}.md", f"# Routing Test {name}\n\ntext\n")
    ctx = make_ctx(tmp_path)
    before = snapshot(tmp_path)
    edits = [
        call(ctx, "append_note", path=ref, line="- x"),
        call(ctx, "patch_note", path=ref, operation="replace", target_type="frontmatter", target="a", content="b"),
        call(ctx, "move_note", path=ref, new_path="notes/moved.md", confirm=True),
        call(ctx, "link", a=ref, b="Routing Test A"),
        call(ctx, "capture", title="T", kind="concept", body="x", merge_into=ref),
    ]
    for answer in edits:
        assert answer["code"] in ("not-found", "ambiguous"), (ref, answer)
        assert answer["candidates"], ref
    assert snapshot(tmp_path) == before


def test_an_edit_by_path_slug_title_or_alias_means_exactly_one_note(tmp_path: Path) -> None:
    """Two notes of one name are ambiguous; a declared alias is a name."""
    put(tmp_path, "a/One.md", "---\naliases: [Uno]\n---\n\n# First of all\n")
    put(tmp_path, "a/twin.md", "# Twin\n")
    put(tmp_path, "b/twin.md", "# Twin\n")
    ctx = make_ctx(tmp_path)
    for number, ref in enumerate(["a/One.md", "a/One", "One", "Uno", "First of all"]):
        if ref == "First of all":
            put(tmp_path, "a/One.md", get(tmp_path, "a/One.md").replace("---\nali", "---\ntitle: First of all\nali"))
        assert call(ctx, "append_note", path=ref, line=f"- {number}")["path"] == "a/One.md"
    answer = call(ctx, "append_note", path="Twin", line="- x")
    assert (answer["code"], [row["path"] for row in answer["candidates"]]) == ("ambiguous", ["a/twin.md", "b/twin.md"])
    assert call(ctx, "append_note", path="b/twin.md", line="- x")["path"] == "b/twin.md"


@pytest.mark.parametrize("title",
                         ["Acme Inc.", ".NET", "Q: why not", "~5 people", "AC/DC", "50% done", "What…", "C++", "¿Qué?",
                                   "O'Brien \"Bo\"", "[Draft] x", "#1", "a | b"])
def test_a_note_answers_to_its_exact_title_whatever_it_holds(tmp_path: Path, title: str) -> None:
    """Also titles that could be no path; edits, links, merges and history take them."""
    ctx = make_ctx(tmp_path)
    path = call(ctx, "capture", title=title, kind="company", body="First words.")["path"]
    other = call(ctx, "capture", title="Other", kind="person")["path"]
    assert call(ctx, "append_note", path=title, line="- x")["path"] == path
    assert call(ctx, "get_note", path=title)["path"] == path
    assert call(ctx, "link", a=title, b="Other")["a"] == path
    assert call(ctx, "link", a="Other", b=title)["b"] == path
    assert call(ctx, "capture", title="More", kind="company", body="Later words.", merge_into=title)["path"] == path
    assert call(ctx, "note_history", path=title)["path"] == path
    assert call(ctx, "reflect",
                proposals=[{"action": "append", "path": title, "line": "- y"}])["plan"][0]["path"] == path
    assert path in call(ctx, "get_note", path=other)["backlinks"]
    assert frontmatter.parse(get(tmp_path, path)).values["title"] == title


@pytest.mark.parametrize("again", ["Garden plan", "garden  PLAN", "Garden-plan", "Gärden plan"])
def test_a_title_that_exists_is_never_replaced(tmp_path: Path, again: str) -> None:
    """The second capture meets the gate, `force` makes a second note, `merge_into` only adds."""
    ctx = make_ctx(tmp_path)
    first = call(ctx, "capture", title="Garden plan", kind="concept", body="Beans in May.")["path"]
    before = get(tmp_path, first)
    gate = call(ctx, "capture", title=again, kind="concept", body="Peas in March.")
    assert (gate["ok"], gate["action"], gate["candidates"][0]["path"]) == (False, "duplicate-gate", first)
    assert get(tmp_path, first) == before
    forced = call(ctx, "capture", title=again, kind="concept", body="Peas in March.", force=True)
    assert forced["path"] not in (first, "")
    assert get(tmp_path, first) == before
    merged = call(ctx, "capture", title="Garden plan", kind="concept", body="Leeks in June.", merge_into=first)
    assert merged["action"] == "updated"
    assert "Beans in May." in get(tmp_path, first)


@pytest.mark.parametrize(("one", "other"), [
    ("Sprint 12 review", "Sprint 13 review"), ("Report 2026-01-01", "Report 2026-01-02"),
    ("Anna Berg", "Anna Bergmann"),
    ("Version 1.2 notes", "Version 1.20 notes"),
])
def test_titles_that_differ_in_what_matters_are_two_notes(tmp_path: Path, one: str, other: str) -> None:
    """A number, a date or a proper name makes another thing."""
    ctx = make_ctx(tmp_path)
    paths = {call(ctx, "capture", title=title, kind="concept", body=title)["path"] for title in (one, other)}
    assert len(paths) == 2


@pytest.mark.parametrize(("link", "resolves"), [
    ("[[alpha-note]]", True), ("[[alpha_note]]", True), ("[[Alpha Note]]", True), ("[[ALPHA-NOTE]]", True),
    ("[[alpha-note#Part|see]]", True), ("![[alpha-note]]", True), ("[x](alpha-note.md)", True),
    ("[x](<alpha-note.md>)", True), ("[[beta]]", False), ("[[nothing]]", False),
])
def test_a_link_by_file_name_finds_the_note_at_the_root(tmp_path: Path, link: str, resolves: bool) -> None:
    """Stem, case, `_` and `-` are forgiven when just one note is meant; two are ambiguous, none is broken."""
    put(tmp_path, "alpha-note.md", "# Alpha\n\n## Part\n")
    put(tmp_path, "x/be-ta.md", "# B1\n\n[[a]]\n")
    put(tmp_path, "x/beta.md", "# B2\n")
    put(tmp_path, "y/beta.md", "# B3\n")
    put(tmp_path, "from.md", f"# From\n\n{link}\n")
    ctx = make_ctx(tmp_path)
    assert (call(ctx, "get_note", path="alpha-note.md")["backlinks"] == ["from.md"]) == resolves
    found = {row["check"] for row in call(ctx, "health", deep=True)["violations"] if row["path"] == "from.md"}
    expected = {"[[beta]]": "ambiguous-link", "[[nothing]]": "broken-link"}.get(link)
    assert ({"ambiguous-link", "broken-link"} & found) == ({expected} if expected else set())


def test_auto_links_stay_out_of_code_links_urls_and_headings(tmp_path: Path) -> None:
    """Only the first mention in prose becomes a link; not one other byte of the body changes."""
    ctx = make_ctx(tmp_path)
    call(ctx, "capture", title="Mainspring", kind="concept")
    body = (
        "```py\nMainspring()\n```\n\n    Mainspring indented\n\n`Mainspring` and <https://Mainspring.dev/Mainspring>\n\n"
        "## Mainspring\n\n[Mainspring](https://x.y) [[other|Mainspring]] ![Mainspring](p.png) <!-- Mainspring -->\n\n"
        "~~~\nMainspring\n~~~\n\n$Mainspring$ mainspringy\n\nThe Mainspring drives; Mainspring again.\n"
    )
    answer = call(ctx, "capture", title="Clockwork", kind="concept", body=body)
    assert answer["links_added"] == ["resources/concepts/mainspring.md"]
    linked = body.replace("The Mainspring", "The [[resources/concepts/mainspring|Mainspring]]")
    assert linked in get(tmp_path, answer["path"])
