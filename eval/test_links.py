"""Links are read as Obsidian reads them, and rewriting one changes its target alone."""
from __future__ import annotations

import pytest
from echo_core.markdown import prose_spans
from echo_core.markdown.links import (
    escape_alias,
    link_targets,
    links,
    plain_text,
    related_line,
    rewrite,
    unescape_alias,
    wikilink,
)
from hypothesis import given
from hypothesis import strategies as st

READ = {
    "plain": ("[[a b]]", ("wiki", "a b", "", "")),
    "heading and alias": ("[[a#H#S|x]]", ("wiki", "a", "H#S", "x")),
    "block": ("[[a#^id]]", ("wiki", "a", "^id", "")),
    "same note": ("[[#H]]", ("wiki", "", "H", "")),
    "embed": ("![[pic.png|300]]", ("embed", "pic.png", "", "300")),
    "escaped bar in a table": ("| a |\n|---|\n| [[t\\|al]] |", ("wiki", "t", "", "al")),
    "escaped bracket in the alias": ("[[t|A [b\\] \\| c]]", ("wiki", "t", "", "A [b] | c")),
    "markdown": ("[x](my%20note.md#a%20b \"t\")", ("markdown", "my note.md", "a b", "x")),
    "angle brackets": ("[x](<a b (c).md>)", ("markdown", "a b (c).md", "", "x")),
    "parentheses": ("[x](a(b).md)", ("markdown", "a(b).md", "", "x")),
    "image": ("![alt](i.png)", ("markdown", "i.png", "", "alt")),
    "brackets in the text": ("[a [b] c](d.md)", ("markdown", "d.md", "", "a [b] c")),
    "in a heading": ("## [[a]]", ("wiki", "a", "", "")),
    "in a quote and list": ("> - [[a]]", ("wiki", "a", "", "")),
    "quoted property": ("---\nup: \"[[a|b]]\"\n---\n", ("wiki", "a", "", "b")),
    "property list": ("---\nup:\n  - '[[a''s]]'\n---\n", ("wiki", "a's", "", "")),
    "after an escaped backtick": ("\\` [[a]] `x", ("wiki", "a", "", "")),
    "after a lone backtick": ("` [[a]] ``", ("wiki", "a", "", "")),
    "after a lone dollar": ("cost $5, [[a]] and $ 6", ("wiki", "a", "", "")),
    "non-Latin": ("[[Заметка#Детали|там]]", ("wiki", "Заметка", "Детали", "там")),
}
NO_LINK = [
    "`[[a]]`", "`` ` [[a]] ``", "```\n[[a]]\n```", "    [[a]]", "<!-- [[a]] -->", "x <!-- [[a]] --> y", "\\[[a]]",
    "[[a\n]]", "[[]]", "[[ ]]", "[x](https://a.b)", "[x](mailto:a@b.c)", "[x]()", "[x] (a.md)", "[x](a b.md)",
    "$[[1,2],[3,4]]$", "$$\n[[1]]\n$$", "---\nup: [[a]]\n---\n", "---\nx: 1 # [[a]]\n---\n",
    "<a href=\"[[a]]\">", "<script>\n[[a]]\n</script>",
    "<% tp.file.include(\"[[a]]\") %>",
]


@pytest.mark.parametrize(("text", "expected"), READ.values(), ids=READ.keys())
def test_a_link_gives_kind_target_heading_and_alias(text: str, expected: tuple[str, str, str, str]) -> None:
    """Each spelling of a link is read whole, with the place of its target."""
    (link,) = links(text)
    assert (link.kind, link.target, link.heading, link.alias) == expected
    assert text[link.start:link.end].strip("'\"")[0] in "[!"


@pytest.mark.parametrize("text", NO_LINK)
def test_what_is_no_link_is_not_taken_for_one(text: str) -> None:
    """Code, comments, math, web addresses, nested YAML lists and broken brackets."""
    assert links(text) == []


def test_links_come_in_order_with_images_inside_links() -> None:
    """A linked image counts twice: the picture and where it leads."""
    found = links("[[b]] [![p](i.png)](n.md) [[a]]")
    assert [link.target for link in found] == ["b", "n.md", "i.png", "a"]


REWRITES = [
    ("[[old]]", "[[x/new]]"), ("![[old#H|al]]", "![[x/new#H|al]]"), ("[[ old |a]]", "[[ x/new |a]]"),
    ("[t](old#h \"T\")", "[t](x/new#h \"T\")"), ("[t](<old>)", "[t](<x/new>)"),
    ("`[[old]]` [[old]]", "`[[old]]` [[x/new]]"), ("[[older]] [[Old]]", "[[older]] [[Old]]"),
    ("---\nup: \"[[old|a]]\" # c\n---\n\r\n[[old]]", "---\nup: \"[[x/new|a]]\" # c\n---\n\r\n[[x/new]]"),
    ("| [[old\\|a]] |\n|---|", "| [[x/new\\|a]] |\n|---|"),
]


@pytest.mark.parametrize(("text", "expected"), REWRITES)
def test_rewriting_changes_the_target_alone(text: str, expected: str) -> None:
    """Alias, heading, embed mark, title, spaces and line ends stay."""
    assert rewrite(text, lambda link: "x/new" if link.target == "old" else None) == expected


@pytest.mark.parametrize(("text", "target", "expected"), [
    ("[t](a%20b.md)", "c (d) 100%.md", "[t](c%20%28d%29%20100%25.md)"),
    ("[t](a.md)", "größe #1.md", "[t](größe%20%231.md)"),
    ("[t](gr%C3%B6sse.md)", "größe.md", "[t](gr%C3%B6%C3%9Fe.md)"),
    ("[t](<a b.md>)", "c <d>.md", "[t](<c \\<d\\>.md>)"),
    ("---\nx: \"[[a]]\"\n---\n", 'say "hi"', "---\nx: \"[[say \\\"hi\\\"]]\"\n---\n"),
    ("---\nx: '[[a]]'\n---\n", "it's", "---\nx: '[[it''s]]'\n---\n"),
])
def test_a_new_target_is_spelt_as_its_place_asks(text: str, target: str, expected: str) -> None:
    """Percent-encoding, angle brackets and YAML quotes are kept up; the link then reads as the new target."""
    new = rewrite(text, lambda link: target)
    assert new == expected
    assert [link.target for link in links(new)] == [target]


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=30))
def test_any_title_survives_as_alias(title: str) -> None:
    """What a reader sees of the link is the title, spaces collapsed."""
    shown = " ".join(title.split())
    assert unescape_alias(escape_alias(title)) == shown
    (link,) = links(wikilink("a/b.md", title))
    assert (link.target, link.alias) == ("a/b", shown)


def test_a_related_line_has_path_title_and_relation() -> None:
    """Brackets and bars of a title are escaped; the relation follows behind a colon, on one line."""
    assert related_line("people/ada.md", "Ada") == "- [[people/ada|Ada]]"
    assert related_line("a", "A] | b", "knows\nwell") == "- [[a|A\\] \\| b]]: knows well"


def test_plain_text_is_what_a_reader_sees() -> None:
    """Links shrink to their text, embeds and web links stay."""
    assert plain_text("a [[x|y]] ![[e]] [z](a.md) [[n#h]] [w](http://a)") == "a y ![[e]] z n#h [w](http://a)"


FRAGMENTS = st.lists(st.sampled_from([
    "[[", "]]", "[", "]", "(", ")", "|", "#", "`", "``", "\\", "!", "<", ">", "<!--", "-->", "$", "$$", "%%", "a",
    "b.md", " ", "\n", "\r\n", "\n\n", "---\n", "x: ", "\"", "'", "- ", "> ", "\t", "http://h", "@", "é",
    "\u2028", "{{", "}}",
]), max_size=40).map("".join)


@given(FRAGMENTS)
def test_no_text_breaks_reading_or_rewriting(text: str) -> None:
    """Any mix of marks is read without an error, spans lie in the text, keeping the targets keeps the text."""
    assert link_targets(text) == [link.target for link in links(text)]
    for link in links(text):
        assert 0 <= link.start <= link.target_start <= link.target_end <= link.end <= len(text)
    assert rewrite(text, lambda link: None) == text
    assert rewrite(text, lambda link: link.target) == text
    spans = prose_spans(text)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert spans == sorted(spans)


@given(FRAGMENTS)
def test_rewriting_there_and_back_gives_the_same_text(text: str) -> None:
    """Plain targets return to what they were, byte for byte."""
    old = [link.target for link in links(text) if link.target in ("a", "b.md")]
    there = rewrite(text, lambda link: f"q{link.target}" if link.target in ("a", "b.md") else None)
    assert rewrite(there, lambda link: link.target[1:] if link.target in ("qa", "qb.md") else None) == text
    assert [link.target for link in links(there) if link.target in ("qa", "qb.md")] == [f"q{target}" for target in old]


PROSE = "Ada met [[Bob]] and `Ada`. See https://x.y/Ada, <b>, #Ada/x, www.ada.org or ada@x.org $a+b$ %%Ada%% (Ada) ^id"


def test_prose_is_what_is_left_between_marks() -> None:
    """Links, code, addresses, tags, math and comments are no prose; the words between them are."""
    left = "".join(PROSE[start:end] for start, end in prose_spans(PROSE))
    assert left.split() == ["Ada", "met", "and", ".", "See", ",", ",", "or", "(Ada)", "^id"]


@pytest.mark.parametrize("text", [
    "# Ada", "Ada\n===", "```\nAda\n```", "    Ada", "<div>\nAda\n</div>", "| Ada |\n|---|", "---\ntitle: Ada\n---\n",
    "[Ada](x.md)", "[Ada][ref]", "![[Ada]]", "[^Ada]", "%%\n\nAda\n\n%%", "$$\nAda\n$$", "<!-- Ada -->", "{{Ada}}",
])
def test_places_that_are_no_prose_offer_none_of_their_words(text: str) -> None:
    """Nothing is ever linked in there."""
    assert "Ada" not in "".join(text[start:end] for start, end in prose_spans(text))
