"""What people reported about other memory products must come out right here, with siblings of each report.

Through the server where a client's door is part of the report, over a folder where the server adds nothing.
"""
from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import echo_tools
import pytest
from echo_core import frontmatter
from jsonschema import Draft202012Validator
from opsfixture import call, get, make_ctx, put, snapshot
from serverproc import LEGACY, MODERN, TOKEN, Server, running_server

CLOCK = "2026-11-30T14:05:09+01:00"
ZONE = "Europe/Vienna"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("reports"), ECHO_CLOCK=CLOCK, ECHO_TZ=ZONE) as running:
        yield running
        assert [line for line in running.lines if "Traceback" in line or "internal error" in line] == []


class Desk:
    """One note on the server's disk, edited through its doors."""

    def __init__(self, server: Server, path: str, text: str) -> None:
        self.server, self.path = server, path
        self.file = server.vault / path
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_bytes(text.encode())

    def append(self, line: str, **more: Any) -> dict[str, Any]:
        return self.server.call("echo_append_note", path=self.path, line=line, **more)

    def patch(self, operation: str, target: str, content: Any, target_type: str = "heading", **more: Any) -> dict[str, Any]:
        return self.server.call("echo_patch_note", path=self.path, operation=operation, target_type=target_type,
                                target=target, content=content, **more)

    def set(self, key: str, value: Any) -> dict[str, Any]:
        return self.patch("replace", key, value, "frontmatter")

    @property
    def text(self) -> str:
        return self.file.read_bytes().decode()


@pytest.fixture
def desk(server: Server, request: pytest.FixtureRequest) -> Any:
    """Puts a note of this test's own on the server's disk."""
    folder = f"notes/{abs(hash(request.node.name)):x}"
    return lambda text, name="note.md": Desk(server, f"{folder}/{name}", text)


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


@pytest.mark.parametrize("line", ["  - sub", "\t- sub", "- item", "  text of the item", "| a | b |", "[x]: y", "> quoted"])
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


@pytest.mark.parametrize("heading", ["Детали", "详细 说明", "Café", "Über uns", "🖊️ Notes", "עברית", "a/b?c#d", "50 % & <x>"])
def test_a_heading_of_any_script_is_patched_by_every_door(desk: Any, heading: str) -> None:
    """In either normal form, by MCP of both eras and by REST."""
    note = desk(f"# N\n\n## {unicodedata.normalize('NFC', heading)}\n\nx\n")
    arguments = {"path": note.path, "operation": "append", "target_type": "heading"}
    for number, (form, era) in enumerate((("NFC", MODERN), ("NFD", LEGACY))):
        target = unicodedata.normalize(form, heading)
        assert note.server.tool("echo_patch_note", era, **arguments, target=target, content=f"m{number}")["structuredContent"]["ok"]
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
    "title: [unclosed", "title: 'open", "a: b: c", "\ttabbed: x", "a: 1\na: 2", "tags: [#abc, def]", "x: \"open\n", "- a\nb: c",
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
    text = (bom + "---\ntitle: Xerxes\ntags:\n  - king\n---\n\n# Xerxes\n\n## Log\n\n- one\n\n## End\n\nz\n").replace("\n", eol)
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


@pytest.mark.parametrize("title", ["Acme Inc.", ".NET", "Q: why not", "~5 people", "AC/DC", "50% done", "What…", "C++", "¿Qué?",
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
    assert call(ctx, "reflect", proposals=[{"action": "append", "path": title, "line": "- y"}])["plan"][0]["path"] == path
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
    ("Sprint 12 review", "Sprint 13 review"), ("Report 2026-01-01", "Report 2026-01-02"), ("Anna Berg", "Anna Bergmann"),
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


# -- clients --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tags", ["some-tag", '["some-tag"]', ["some-tag"], ' [ "some-tag" ] '])
@pytest.mark.parametrize("era", [MODERN, LEGACY])
def test_lists_sent_as_text_are_lists(server: Server, tags: Any, era: str) -> None:
    """A bare string and JSON text are understood on both doors."""
    for answer in (server.tool("echo_capture", era, title="Listy", kind="concept", tags=tags, dry_run=True)["structuredContent"],
                   server.call("echo_capture", title="Listy", kind="concept", tags=tags, dry_run=True)):
        assert "+tags:\n+  - some-tag\n" in answer["diff"]


@pytest.mark.parametrize("proposals", [
    '[{"action": "capture", "title": "P", "kind": "concept"}]', '{"action": "capture", "title": "P", "kind": "concept"}',
    ['{"action": "capture", "title": "P", "kind": "concept", "tags": "a"}'],
])
def test_objects_sent_as_text_are_objects(server: Server, proposals: Any) -> None:
    """One proposal, a list of them as JSON text, and JSON text inside the list."""
    assert server.call("echo_reflect", proposals=proposals)["plan"][0]["path"] == "resources/concepts/p.md"


@pytest.mark.parametrize(("tool", "arguments", "field"), [
    ("echo_capture", {"title": "x", "tags": 3}, "tags"), ("echo_capture", {"title": "x", "tags": {"a": 1}}, "tags"),
    ("echo_capture", {"title": "x", "tags": ["a", ["b"]]}, "tags[1]"), ("echo_reflect", {"proposals": "nonsense"}, "proposals"),
    ("echo_reflect", {"proposals": "[1]"}, "proposals[0]"), ("echo_recall", {"query": "x", "kinds": False}, "kinds"),
    ("echo_capture", {"title": "x", "tags": [None]}, "tags[0]"),
])
def test_real_nonsense_is_refused_by_field(server: Server, tool: str, arguments: dict[str, Any], field: str) -> None:
    """What is neither a list nor the text of one names the argument."""
    assert server.call(tool, **arguments)["field"] == field


def test_every_answer_fits_its_output_schema_and_no_schema_needs_references(server: Server, desk: Any) -> None:
    """Good edits, refusals and gates of the editing tools validate against what tools/list publishes."""
    note = desk("# N\n\n## A\n\na ^id\n")
    listed = server.rpc("tools/list").json()["result"]["tools"]
    assert "$ref" not in json.dumps(listed)
    assert "$defs" not in json.dumps(listed)
    schemas = {tool["name"]: tool["outputSchema"] for tool in listed}
    base = {"path": note.path, "operation": "append", "content": "x"}
    calls = [
        ("echo_patch_note", {**base, "target_type": "heading", "target": "A"}),
        ("echo_patch_note", {**base, "target_type": "block", "target": "id"}),
        ("echo_patch_note", {**base, "target_type": "frontmatter", "target": "tags"}),
        ("echo_patch_note", {**base, "target_type": "heading", "target": "None"}),
        ("echo_append_note", {"path": note.path, "line": "- l"}), ("echo_append_note", {"path": "none", "line": "- l"}),
        ("echo_get_note", {"path": note.path}), ("echo_note_history", {"path": note.path}),
        ("echo_move_note", {"path": note.path, "new_path": "notes/moved.md"}),
        ("echo_capture", {"title": "Fits"}), ("echo_triage_inbox", {}), ("echo_set_scope", {"scope": "s"}),
        ("echo_get_scope", {}), ("echo_load", {}), ("echo_rollup_data", {"period": "month"}),
    ]
    for name, arguments in calls:
        Draft202012Validator(schemas[name]).validate(server.tool(name, **arguments)["structuredContent"])
    assert note.text == "---\ntags:\n  - x\n---\n\n# N\n\n## A\n\na x ^id\nx\n- l\n" or "x" in note.text


@pytest.mark.parametrize("path", ["/", "/mcp", "/mcp/"])
def test_a_connector_url_without_path_reaches_the_tools(server: Server, path: str) -> None:
    """Behind the same token; another path names the right one."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": LEGACY}
    answer = server.client.post(server.base + path, json=body, headers=headers)
    assert answer.json()["result"]["tools"]
    assert server.client.post(server.base + path, json=body, headers={**headers, "authorization": "x"}).status_code == 401


def test_a_foreign_host_name_is_refused_with_the_setting_and_served_once_it_is_set(tmp_path: Path, server: Server) -> None:
    """Loopback is always served; a LAN, proxy or service name needs ECHO_MCP_ALLOWED_HOSTS."""
    def ask(running: Server, host: str) -> bytes:
        body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}'
        return running.raw(
            f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
        )

    refused = ask(server, "hal2000:8002")
    assert b" 421 " in refused.splitlines()[0]
    assert b"ECHO_MCP_ALLOWED_HOSTS" in refused
    assert b"hal2000" not in refused
    assert b" 200 " in ask(server, "127.0.0.1:9").splitlines()[0]
    with running_server(tmp_path, ECHO_MCP_ALLOWED_HOSTS="hal2000,Echo.example.org") as open_server:
        for host in ("hal2000:8002", "HAL2000", "echo.example.org", "ECHO.example.org:443", "localhost"):
            assert b" 200 " in ask(open_server, host).splitlines()[0], host
        assert b" 421 " in ask(open_server, "hal2000.evil.org").splitlines()[0]


# -- paths ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["🖊️ journal/2026.md", "Детали/файл.md", "日本語/メモ.md", "a b/c & d + e.md", "100% done.md",
                                  "it's [x] (1).md", "Café/naïve.md", "עברית/א.md"])
def test_a_path_of_any_script_is_read_written_moved_and_found(server: Server, desk: Any, name: str) -> None:
    """By every door, also when another client names it in the other normal form."""
    note = desk("# T\n\nx\n", name)
    other = unicodedata.normalize("NFD", note.path)
    for path in (note.path, other):
        assert server.call("echo_get_note", path=path)["path"] == note.path
        assert server.tool("echo_get_note", path=path)["structuredContent"]["path"] == note.path
        assert server.call("echo_append_note", path=path, line="- y")["path"] == note.path
    assert note.text == "# T\n\nx\n- y\n"
    moved = note.path.replace(".md", " zwei.md")
    assert server.call("echo_move_note", path=note.path, new_path=moved, confirm=True)["ok"]
    assert (server.vault / moved).read_text() == "# T\n\nx\n- y\n"


# -- search ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "query"), [
    ("他说即适者生存的道理", "适者生存"), ("下跌时要止损离场", "止损"), ("使用Kubernetes部署", "kubernetes"), ("今日は東京都へ行く", "東京"),
    ("오늘 회의록을 작성했다", "회의"), ("コーヒーが好き", "コーヒー"), ("版本v2发布", "v2"), ("ＫＵＢＥ全角", "kube"),
    ("项目預算討論", "預算"),
])
def test_words_inside_runs_of_cjk_are_found(tmp_path: Path, text: str, query: str) -> None:
    """Two-letter words, mid-run phrases and Latin terms stuck to CJK."""
    put(tmp_path, "notes/hit.md", f"# Note\n\n{text}\n")
    put(tmp_path, "notes/miss.md", "# Andere\n\n完全不同的内容 nothing alike\n")
    found = call(make_ctx(tmp_path), "recall", query=query)["primary"]
    assert [hit["path"] for hit in found] == ["notes/hit.md"]


@pytest.mark.parametrize("query", [
    "how to bake sourdough bread", "best pizza in Naples", "What is the capital of Mongolia?", "如何烤面包", "who am I married to",
])
def test_an_off_topic_question_gets_nothing(tmp_path: Path, query: str) -> None:
    """No overlap, no hits: in a vault about work, nothing is dressed as an answer."""
    for number, text in enumerate([
        "How we deploy the billing service to production in three steps.", "The best way to review a pull request.",
        "What the quarterly roadmap is about: invoices, exports, audit log.", "Capital expenditure of the data centre.",
        "Who to call when the pager rings.",
    ]):
        put(tmp_path, f"projects/active/p{number}.md", f"# Project {number}\n\n{text}\n")
    ctx = make_ctx(tmp_path)
    assert call(ctx, "recall", query=query)["primary"] == []
    assert call(ctx, "recall", query="how do we deploy the billing service")["primary"][0]["path"].endswith("p0.md")


@pytest.mark.parametrize(("written", "asked"), [
    ("Schlüter", "schlueter"), ("Schlüter", "schluter"), ("Schlueter", "schlüter"), ("Straße", "strasse"), ("Strasse", "straße"),
    ("Café", "cafe"), ("Cafe", "café"), ("Ångström", "angstrom"), ("Łódź", "lodz"), ("Jörg", "joerg"), ("SCHLÜTER", "Schlueter"),
    ("Ærø", "aero"), ("Dvořák", "dvorak"),
])
def test_diacritics_are_forgiven_both_ways(tmp_path: Path, written: str, asked: str) -> None:
    """In search and in names, in either normal form."""
    for form in ("NFC", "NFD"):
        folder = tmp_path / form
        put(folder, "resources/people/p1.md", unicodedata.normalize(form, f"---\ntitle: {written}\n---\n\n# {written}\n\nBuilds things.\n"))
        put(folder, "resources/people/p2.md", "# Somebody Else\n\nOther matters.\n")
        ctx = make_ctx(folder)
        assert call(ctx, "resolve", mention=asked).get("path") == "resources/people/p1.md"
        assert [hit["path"] for hit in call(ctx, "recall", query=asked)["primary"]] == ["resources/people/p1.md"]


@pytest.mark.parametrize("query", [
    "what's the budget, roughly?", 'the "budget', "budget AND NOT (", "budget NEAR/3 x", "budget*", "-budget^2", "budget; --",
    "budget's \\ %_", "(budget OR", "budget +-!{}[]~:/", "BUDGET?!", "what is *the* `budget`",
])
def test_a_question_is_data_and_never_query_syntax(tmp_path: Path, query: str) -> None:
    """Quotes, operators and punctuation neither fail nor change what is found."""
    put(tmp_path, "notes/money.md", "# Money\n\nThe budget is roughly 5,000.\n")
    put(tmp_path, "notes/other.md", "# Other\n\nNothing here.\n")
    answer = call(make_ctx(tmp_path), "recall", query=query)
    assert answer["ok"]
    assert [hit["path"] for hit in answer["primary"]] == ["notes/money.md"]


# -- memory growth, time, staleness ---------------------------------------------------------------------------


def test_the_newer_of_two_facts_wins_and_the_older_is_marked(tmp_path: Path) -> None:
    """After a change of job, recall names the current note first and says what replaced the old one."""
    ctx = make_ctx(tmp_path)
    old = call(ctx, "capture", title="Maria works at Acme", kind="semantic", body="Maria works at Acme as an engineer.")
    new = call(ctx, "capture", title="Maria works at Brightside", kind="semantic", supersedes=old["slug"],
               body="Maria works at Brightside as an engineer.")
    assert new["action"] == "created"
    hits = call(ctx, "recall", query="where does Maria work?")["primary"]
    assert hits[0]["path"] == new["path"]
    older = [hit for hit in hits if hit["path"] == old["path"]]
    assert all("superseded_by" in hit for hit in older)
    assert frontmatter.parse(get(tmp_path, old["path"])).values["superseded_by"] == (
        f"[[{new['path'][:-3]}|Maria works at Brightside]]")
    assert frontmatter.parse(get(tmp_path, new["path"])).values["supersedes"] == (
        f"[[{old['path'][:-3]}|Maria works at Acme]]")
    assert "Maria works at Acme as an engineer." in get(tmp_path, old["path"])


@pytest.mark.parametrize(("zone", "instant", "day", "stamp"), [
    ("America/Chicago", "2026-12-01T03:30:00+00:00", "2026-11-30", "2026-11-30T21:30:00-06:00"),
    ("Pacific/Tongatapu", "2026-11-30T12:30:00+00:00", "2026-12-01", "2026-12-01T01:30:00+13:00"),
    ("UTC", "2026-12-01T00:30:00+01:00", "2026-11-30", "2026-11-30T23:30:00+00:00"),
    ("Asia/Kathmandu", "2026-11-30T18:20:00Z", "2026-12-01", "2026-12-01T00:05:00+05:45"),
    ("Europe/Vienna", "2026-10-25T00:30:00+00:00", "2026-10-25", "2026-10-25T02:30:00+02:00"),
    ("Europe/Vienna", "2026-10-25T01:30:00+00:00", "2026-10-25", "2026-10-25T02:30:00+01:00"),
])
def test_one_owner_time_zone_decides_every_day_and_stamp(
    tmp_path: Path, zone: str, instant: str, day: str, stamp: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server on UTC names day notes, inbox lines, ages and rollups in the operator's zone."""
    monkeypatch.setenv("TZ", "UTC")
    ctx = make_ctx(tmp_path, instant, zone)
    inbox = call(ctx, "capture", title="an evening thought")
    assert inbox["line"] == f"- {day}: an evening thought"
    note = call(ctx, "capture", title="Evening", kind="concept", body="written in the evening")
    assert f"created: {day}\nupdated: {day}\n" in get(tmp_path, note["path"])
    assert f"- {stamp[11:16]} captured concept" in get(tmp_path, f"journal/daily/{day}.md")
    assert call(ctx, "set_scope", scope="evening")["scope_updated"] == stamp
    assert call(ctx, "recall", query="evening thought written", since=day)["primary"]
    listed = call(ctx, "triage_inbox")["items"]
    assert (listed[0]["date"], listed[0]["age_days"]) == (day, 0)


def test_a_server_uses_the_owners_zone_whatever_the_containers(tmp_path: Path) -> None:
    """TZ of the process does not matter, ECHO_TZ does."""
    with running_server(tmp_path, TZ="UTC", ECHO_TZ="America/Chicago", ECHO_CLOCK="2026-12-01T03:30:00Z") as far:
        assert far.call("echo_capture", title="late")["line"] == "- 2026-11-30: late"


def test_a_change_made_beside_the_server_is_seen_by_every_read(server: Server, desk: Any) -> None:
    """get_note is always fresh: no watcher event and no cache stands between."""
    note = desk("# N\n\none\n")
    size = note.file.stat()
    for text in ("# N\n\ntwo\n", "# N\n\nsix\n"):
        note.file.write_text(text)
        os.utime(note.file, ns=(size.st_atime_ns, size.st_mtime_ns))
        assert server.call("echo_get_note", path=note.path)["content"] == text
    assert note.append("- x")["ok"]
    assert note.text == "# N\n\nsix\n- x\n"
    note.file.unlink()
    assert server.call("echo_get_note", path=note.path)["code"] == "not-found"


def test_what_is_gone_is_gone_from_every_index(tmp_path: Path) -> None:
    """A note removed or renamed beside ECHO leaves no row in recall, names, backlinks or the rebuilt index."""
    ctx = make_ctx(tmp_path)
    path = call(ctx, "capture", title="Zeppelin", kind="concept", body="airship lore")["path"]
    other = call(ctx, "capture", title="Kite", kind="concept", body="See [[resources/concepts/zeppelin]].")["path"]
    assert call(ctx, "recall", query="airship lore")["primary"]
    (tmp_path / "vault" / path).unlink()
    assert call(ctx, "recall", query="airship lore")["primary"] == []
    assert call(ctx, "resolve", mention="Zeppelin")["match"] is False
    from echo_maintenance import reindex_op

    assert reindex_op(ctx=ctx)["ok"]
    assert [entry["path"] for entry in json.loads(get(tmp_path, "_agent/index/entities.json"))["entities"].values()] == [other]
    again = make_ctx(tmp_path)
    assert call(again, "recall", query="airship lore")["primary"] == []


def test_a_vault_that_is_gone_is_not_an_empty_one(tmp_path: Path) -> None:
    """No call answers `nothing found`; when it is back, everything is there again."""
    ctx = make_ctx(tmp_path)
    path = call(ctx, "capture", title="Zeppelin", kind="concept", body="airship lore")["path"]
    assert call(ctx, "recall", query="airship lore")["primary"]
    (tmp_path / "vault").rename(tmp_path / "away")
    for tool, arguments in (("recall", {"query": "airship lore"}), ("resolve", {"mention": "Zeppelin"}),
                            ("get_note", {"path": path}), ("append_note", {"path": path, "line": "- x"}),
                            ("capture", {"title": "New", "kind": "concept"}), ("load", {})):
        answer = call(ctx, tool, **arguments)
        assert not answer["ok"] or answer.get("offline"), (tool, answer)
        assert answer.get("code", "vault-unreachable") == "vault-unreachable"
    assert not (tmp_path / "vault").exists()
    (tmp_path / "away").rename(tmp_path / "vault")
    assert call(ctx, "recall", query="airship lore")["primary"][0]["path"] == path
    assert "zeppelin" in json.loads(get(tmp_path, "_agent/index/entities.json"))["entities"]


# -- size -----------------------------------------------------------------------------------------------------


def test_orientation_does_not_grow_with_the_vault(tmp_path: Path) -> None:
    """150 entities with long notes, a full inbox and a long day: load stays within 6,000 characters."""
    for number in range(150):
        put(tmp_path, f"resources/concepts/c{number}.md", f"# Concept {number}\n\n" + f"fact {number} about things. " * 60)
    put(tmp_path, "inbox/captures/inbox.md", "".join(f"- 2026-11-01: item {number} {'x' * 200}\n" for number in range(300)))
    put(tmp_path, "journal/daily/2026-11-30.md", "# Day\n\n## Agent Log\n\n" + "".join(f"- 10:{n % 60:02d} did {n}\n" for n in range(500)))
    put(tmp_path, "_agent/memory/semantic/operator-preferences.md", "# Preferences\n\n" + "- likes tea\n" * 2000)
    ctx = make_ctx(tmp_path)
    answer = call(ctx, "load")
    assert len(json.dumps(answer["sections"], ensure_ascii=False)) <= 6000
    recall = call(ctx, "recall", query="fact about things", limit=20)
    assert len(json.dumps(recall, ensure_ascii=False)) <= 4000 * 1.1 + 300
    assert len(echo_tools.TOOLS) <= 20


@pytest.mark.parametrize("unit", ["word ", "👩‍👩‍👧", "é", "[[some/long/link|alias text]] ", "日本", "🇦🇹"])
@pytest.mark.parametrize("limit", [200, 333, 1000])
def test_a_cut_is_flagged_with_the_full_length_and_splits_nothing(desk: Any, unit: str, limit: int) -> None:
    """4,425 bytes come back marked; no half character, family, flag or link at the cut."""
    text = "# T\n\n" + unit * (4420 // len(unit.encode()))
    note = desk(text)
    answer = note.server.call("echo_get_note", path=note.path, max_chars=limit)
    assert answer["truncated"] is True
    assert answer["total_chars"] == len(text)
    shown = answer["content"]
    kept = shown.rstrip("…").rstrip()
    assert len(shown) <= limit
    assert text.startswith(kept)
    rest = kept[len("# T\n\n"):]
    # A word may be cut, a character that a reader sees and a link may not.
    whole = [""] + ([unit[:size] for size in range(1, len(unit))] if unit in ("word ", "日本") else [])
    assert rest.replace(unit.strip(), "").strip() in whole
    all_of_it = note.server.call("echo_get_note", path=note.path, max_chars=5000)
    assert (all_of_it["content"], "truncated" in all_of_it) == (text, False)


def test_a_cut_keeps_table_rows_whole(desk: Any) -> None:
    """The last row shown is a whole one."""
    row = "| cell one | cell two | [x](y.md) |\n"
    note = desk("# T\n\n| a | b | c |\n|---|---|---|\n" + row * 200)
    for limit in range(200, 280, 7):
        shown = note.server.call("echo_get_note", path=note.path, max_chars=limit)["content"]
        lines = shown.rstrip("…\n").splitlines()
        assert lines[-1].strip() in ("", row.strip(), "|---|---|---|"), (limit, lines[-1])
