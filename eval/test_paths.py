"""Which paths are refused before anything is touched, and which are ordinary names (spec 2.3)."""
import unicodedata

import pytest
from echo_core.errors import InvalidPath
from echo_core.paths import (
    case_key,
    check_folder,
    check_path,
    is_control,
    is_inside,
    is_note,
    parent,
    stem,
    unportable,
    without_extension,
)
from hypothesis import example, given
from hypothesis import strategies as st

DOT_SEGMENTS = [
    "..", ".", "../secret.md", "../../etc/passwd", "notes/../../x.md", "notes/..", "notes/./x.md", "./x.md",
    "a/b/../../../x.md", "..;/x.md", "....//x.md", ".../x.md", "..a/x.md",
]
ENCODED = [
    "%2e%2e/x.md", "%2e%2e%2fx.md", "..%2fx.md", "notes%2fx.md", "%2E%2E/%2E%2E/x.md", "%252e%252e/x.md",
    "%252e%252e%252fx.md", "%25252e%25252e/x.md", ".%2e/x.md", "%2e./x.md", "a/%2e/x.md", "a/%2e%2e/x.md",
    "%5c..%5cx.md", "a%5cb.md", "%2fetc/passwd", "%00x.md", "x.md%00", "x.md%00.png", "%c0%ae%c0%ae/x.md",
    "..%c0%afx.md", "%c1%9cx.md", "%e0%80%ae%e0%80%ae/x.md", "%u002e%u002e/x.md", "%u2215etc/x.md", "%7e/x.md",
    "C%3a/x.md", "%2egit/config", "%0d%0aX: y", "a/%20/x.md", "%ef%bc%8e%ef%bc%8e/x.md",
    "%252525252525252525252e%2e/x.md",
]
ABSOLUTE = [
    "/etc/passwd", "//server/share/x.md", "/", "C:/x.md", "c:x.md", "C:\\x.md", "\\\\server\\share\\x.md",
    "\\x.md", "a\\..\\x.md", "~/x.md", "~root/x.md", "~", "file:///etc/passwd", "http://host/x.md", "a/D:/x.md",
    "\u212a:/x.md",
]
HIDDEN = [
    ".obsidian/app.json", ".git/config", ".trash/x.md", "a/.obsidian/x.json", ".hidden.md", "a/.env", ".DS_Store",
    ".echo-0123.tmp",
]
DISGUISED = [
    "．．/x.md", "‥/x.md", "․․/x.md", "﹒﹒/x.md", "．/x.md", "a/．．/x.md", "..／x.md", "．．／x.md", "／etc/passwd",
    "．git/config", "..∕x.md", "..⁄x.md", "．．＼x.md", "\u200b../x.md", ".\u200b./x.md", "a/\u200d/x.md",
    "\ufeff../x.md", "。。/x.md", "a／／b.md",
]
BROKEN = [
    "", " ", "a//b.md", "a/", "/a/", "a/ /b.md", "a/ ./b.md", "a/ .. /b.md", " ../b.md", "a/\u00a0..\u00a0/b.md",
    "a\x00b.md", "a\nb.md", "a\rb.md", "a\tb.md", "a\x1bb.md", "a\x7fb.md", "a\x85b.md", "a\u2028b.md",
    "a\u2029b.md", "a\u202egpj.md", "a\u2066b.md", "\ud800.md", "a/\udc80.md", "x" * 4096, "a/" * 600 + "x.md",
    "é" * 128 + ".md", "x" * 253 + ".md",
]
REFUSED = DOT_SEGMENTS + ENCODED + ABSOLUTE + HIDDEN + DISGUISED + BROKEN

ORDINARY = [
    "README.md", "inbox/captures/inbox.md", "_agent/index/entities.json", "100% done.md", "100%.md", "5%off sale.md",
    "50%25.md", "a..b.md", "Wait… what.md", "…und dann.md", "v1.2.md", "What (really)?.md", "AC／DC.md", "Q：A.md",
    "R&D + co, 'quoted'.md", "#tag [x] {y}.md", "C++ and C#.md", "日記/２０２６年.md", "Детали.md", "🖊️ journal/x.md",
    "👩‍👩‍👧.md", "نوشته‌ها.md", "שלום\u200f.md", "x" * 252 + ".md", "é" * 126 + ".md", "con.md", " leading.md",
    "a" * 250 + "/" + "b" * 250 + "/x.md", "%zz.md", "-dash.md", "email@host.md", "a~b.md", "x/~draft.md",
    "Acme Inc./x.md", "notes /x.md", "x\u00a0/y.md", "a?.md",
]


def test_the_matrix_is_as_large_as_the_promise():
    """At least 60 hostile paths are tried, none of them twice."""
    assert len(set(REFUSED)) == len(REFUSED) >= 60


@pytest.mark.parametrize("path", REFUSED, ids=ascii)
def test_a_hostile_path_is_refused_by_name_of_its_argument(path):
    """Every payload is refused with `invalid-path`, the field named, and nothing unprintable or long echoed."""
    with pytest.raises(InvalidPath) as refusal:
        check_path(path, "note")
    envelope = refusal.value.envelope()
    assert envelope["code"] == "invalid-path"
    assert envelope["field"] == "note"
    assert envelope["error"].isprintable()
    assert len(envelope["error"]) < 200
    envelope["error"].encode("utf-8")


def test_a_hostile_folder_is_refused():
    """What is no path is no folder either; only the root and one closing slash are more."""
    def is_refused(path):
        try:
            check_folder(path)
        except InvalidPath:
            return True
        return False

    assert [path for path in REFUSED if not is_refused(path)] == ["", "a/"]


@pytest.mark.parametrize("path", ORDINARY, ids=ascii)
def test_an_ordinary_name_is_accepted(path):
    """Names people use in any script are paths, and come back in NFC."""
    assert check_path(path) == unicodedata.normalize("NFC", path)


@pytest.mark.parametrize("path", [
    "CON.md", "con", "Aux.md", "prn.tar.md", "nul .md", "com1.md", "LPT9.md", "COM\u00b9.md", "a/aux/x.md", "CONIN$.md",
    "x:y.md", "a*.md", "why?.md", 'say "hi".md', "a<b.md", "a>b.md", "a|b.md", "Acme Inc./x.md", "notes /x.md", "x.md.",
])
def test_a_name_that_some_system_cannot_hold_is_told(path):
    """Devices of Windows, characters it refuses, dots and blanks it drops."""
    assert unportable(path)


@pytest.mark.parametrize("path", ["console.md", "auxiliary/x.md", "com10.md", "a.con.md", "nul-set.md", "C++ & #1.md",
                                  "[x] (1).md", "50% done.md", "it's.md", "Wait….md", "日本.md", "a .b.md"])
def test_a_name_that_every_system_holds_is_fine(path):
    """Also names that only look like one of the reserved."""
    assert unportable(path) == ""


@pytest.mark.parametrize("value", [None, 3, b"x.md", ["x.md"]])
def test_what_is_no_text_is_refused(value):
    """A value of another type is refused like a bad path, not with a crash."""
    with pytest.raises(InvalidPath):
        check_path(value)


def test_both_normal_forms_are_one_path():
    """A decomposed name comes back composed."""
    assert check_path(unicodedata.normalize("NFD", "Café/Ömer.md")) == "Café/Ömer.md"


def test_a_folder_may_be_the_root_or_end_in_a_slash():
    """"" is the root, and `projects/` is `projects`."""
    assert check_folder("") == ""
    assert check_folder("projects/active/") == "projects/active"


@given(st.text(alphabet=st.sampled_from("./\\%~:aA2eEfF5cC０．／‥ \u200b\x00"), max_size=24))
@example("%2e%2e/a")
@example(" ‥")
def test_no_accepted_path_turns_hostile_when_read_carelessly(path):
    """Whatever is accepted holds no dot, empty or absolute segment, also after decoding and folding."""
    try:
        accepted = check_path(path)
    except InvalidPath:
        return
    for _ in range(4):
        for reading in (accepted, unicodedata.normalize("NFKC", accepted.replace("\u200b", ""))):
            assert not reading.startswith("/")
            assert not any(part.strip() in ("", ".", "..") for part in reading.split("/"))
        accepted = accepted.replace("%2e", ".").replace("%2E", ".").replace("%2f", "/").replace("%25", "%")


def test_the_parts_of_a_path():
    """Stem, parent and link form drop only `.md`."""
    assert stem("resources/people/dr. who.md") == "dr. who"
    assert stem("resources/people/dr. who") == "dr. who"
    assert parent("resources/people/x.md") == "resources/people"
    assert parent("x.md") == ""
    assert without_extension("a/b.MD") == "a/b"
    assert without_extension("a/b.pdf") == "a/b.pdf"
    assert is_note("x.md")
    assert not is_note("x.mdx")


def test_what_lies_in_a_folder():
    """Only whole segments count."""
    assert is_inside("a/b.md", "a")
    assert is_inside("a", "a")
    assert is_inside("x.md", "")
    assert not is_inside("ab/c.md", "a")
    assert is_control("_agent/locks/index.json")
    assert not is_control("_agent/sessions/heartbeat.json")


def test_case_and_normal_form_make_one_key_and_spelling_does_not():
    """`Ömer` in any case and form is one name; `Straße` and `Strasse` are two."""
    assert case_key("ÖMER.md") == case_key(unicodedata.normalize("NFD", "ömer.md"))
    assert case_key("Straße.md") != case_key("Strasse.md")
