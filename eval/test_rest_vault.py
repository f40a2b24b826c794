"""Writing through Obsidian's REST API: what a PUT did is found out by reading, whatever it answered (spec 6.1)."""
import time

import pytest
from echo_core.errors import (
    Conflict,
    InvalidPath,
    NotFound,
    VaultAuth,
    VaultBadResponse,
    VaultUnreachable,
)
from echo_core.vault.base import edit, version_of
from echo_core.vault.rest import RestVault
from echo_core.vault.rest_address import parse_address
from echo_core.vault.rest_transport import Answer, Transport
from restvault import KEY, serving


@pytest.fixture(params=["5.1.0", "4.1.7", "3.6.1"])
def rest(request, tmp_path):
    """A vault with one note behind each plugin version."""
    with serving(tmp_path, request.param) as served:
        (served.folder / "a.md").write_bytes(b"one\n")
        yield served


@pytest.fixture
def newest(tmp_path):
    """A vault with one note behind the newest plugin."""
    with serving(tmp_path, timeout_s=1.0) as served:
        (served.folder / "a.md").write_bytes(b"one\n")
        yield served


def append(line):
    """Surgery that adds a line."""
    return lambda before: before + line


def test_an_edit_is_a_read_a_put_and_a_read_back(rest):
    """Three requests, never PATCH or POST; the read of the edit is the compare of the write."""
    edit(rest.vault, "a.md", append(b"two\n"))
    assert rest.methods() == ["GET", "PUT", "GET"]
    assert (rest.folder / "a.md").read_bytes() == b"one\ntwo\n"


def test_every_put_names_type_and_charset(rest):
    """Without a Content-Type the plugin would write `{}`, a JSON type would rewrite the index."""
    edit(rest.vault, "a.md", append(b"two\n"))
    rest.vault.write("_agent/index/entities.json", b'{"a":  1.50}\n', None)
    puts = [headers for method, _, headers in rest.transport.sent if method == "PUT"]
    assert {headers["Content-Type"] for headers in puts} == {"text/markdown; charset=utf-8"}
    assert len(puts) == 2
    assert (rest.folder / "_agent/index/entities.json").read_bytes() == b'{"a":  1.50}\n'


def test_a_write_long_after_its_read_is_compared_anew(newest):
    """What somebody wrote since then is not overwritten."""
    newest.vault.read("a.md")
    time.sleep(0.3)  # longer than a look serves
    (newest.folder / "a.md").write_bytes(b"Obsidian's\n")
    with pytest.raises(Conflict) as refusal:
        newest.vault.write("a.md", b"ours\n", b"one\n")
    assert refusal.value.data["version"] == version_of(b"Obsidian's\n")
    assert newest.api.log.count("PUT") == 0


@pytest.mark.parametrize("fault", ["error_after", "reset_response", "half"])
def test_a_put_that_had_its_effect_is_not_sent_again(rest, fault):
    """An error or a broken answer after the effect: reading back shows it, one PUT is enough."""
    rest.api.faults.add(fault, method="PUT", times=1, after=3)
    edit(rest.vault, "a.md", append(b"two\n"))
    assert rest.api.log.count("PUT") == 1
    assert (rest.folder / "a.md").read_bytes() == b"one\ntwo\n"


@pytest.mark.parametrize("fault", ["error_before", "reset_request"])
def test_a_put_without_effect_is_sent_once_more_after_a_look(rest, fault):
    """Between both PUTs stands a read."""
    rest.api.faults.add(fault, method="PUT", times=1, after=30)
    edit(rest.vault, "a.md", append(b"two\n"))
    methods = [method for method in rest.methods() if method]
    assert methods[-4:] == ["PUT", "GET", "PUT", "GET"] or methods[-3:] == ["GET", "PUT", "GET"]
    assert (rest.folder / "a.md").read_bytes() == b"one\ntwo\n"


def test_a_put_that_never_works_is_an_error_and_leaves_the_note(rest):
    """Twice is enough."""
    rest.api.faults.add("error_before", method="PUT")
    with pytest.raises(VaultUnreachable) as failure:
        edit(rest.vault, "a.md", append(b"two\n"))
    assert failure.value.data["reason"] == "http-503"
    assert rest.api.log.count("PUT") == 2
    assert (rest.folder / "a.md").read_bytes() == b"one\n"


def test_a_put_that_was_accepted_and_dropped_is_an_error(rest):
    """204 without effect never becomes `ok`."""
    rest.api.faults.add("phantom", method="PUT")
    with pytest.raises(VaultBadResponse) as failure:
        edit(rest.vault, "a.md", append(b"two\n"))
    assert failure.value.data["reason"] == "phantom"


def test_a_put_that_hangs_after_its_effect_is_found_out_in_time(newest):
    """A little time is kept for the look: the answer is right and comes within a second of the deadline."""
    newest.api.faults.add("hang_after", method="PUT", times=1)
    started = time.monotonic()
    edit(newest.vault, "a.md", append(b"two\n"))
    assert time.monotonic() - started < 20  # without a deadline it would hang for good
    assert (newest.folder / "a.md").read_bytes() == b"one\ntwo\n"


def test_an_overwritten_edit_is_made_again_on_what_stands_there(newest):
    """Somebody's stale write right after ours: both texts are there in the end."""
    def obsidian(method, target):
        if method == "PUT":
            newest.transport.after = lambda *_: None
            (newest.folder / "a.md").write_bytes(b"one\nObsidian's\n")

    newest.transport.after = obsidian
    edit(newest.vault, "a.md", append(b"two\n"))
    assert (newest.folder / "a.md").read_bytes() == b"one\nObsidian's\ntwo\n"


def test_an_edit_that_others_built_on_is_not_made_twice(newest):
    """Their line follows ours before we read back: ours is there, once."""
    def obsidian(method, target):
        if method == "PUT":
            newest.transport.after = lambda *_: None
            note = newest.folder / "a.md"
            note.write_bytes(note.read_bytes() + b"theirs\n")

    newest.transport.after = obsidian
    edit(newest.vault, "a.md", append(b"two\n"))
    assert (newest.folder / "a.md").read_bytes() == b"one\ntwo\ntheirs\n"


def test_a_known_note_that_answers_404_is_not_created(newest):
    """A loading Obsidian shows no notes; nothing is written over them."""
    assert [stat.path for stat in newest.vault.walk()] == ["a.md"]
    newest.api.faults.add("cold")
    with pytest.raises(VaultUnreachable) as failure:
        newest.vault.write("a.md", b"new\n", None)
    assert failure.value.data["reason"] == "loading"
    assert newest.api.log.count("PUT") == 0


def test_a_note_that_only_the_index_knows_is_not_created_either(tmp_path):
    """What `expect` was told counts as much as the last walk."""
    with serving(tmp_path, timeout_s=0.5) as served:
        served.vault.expect(lambda path: path == "b.md")
        (served.folder / "b.md").write_bytes(b"old\n")
        served.api.faults.add("cold")
        with pytest.raises(VaultUnreachable):
            served.vault.write("b.md", b"new\n", None)
        assert (served.folder / "b.md").read_bytes() == b"old\n"


def test_a_known_note_that_shows_up_again_is_a_conflict(newest):
    """The creation waits for the vault to load and then sees the note."""
    list(newest.vault.walk())
    newest.api.faults.add("cold", method="GET", path="/vault/a.md", times=2)
    with pytest.raises(Conflict) as refusal:
        newest.vault.write("a.md", b"new\n", None)
    assert refusal.value.data["version"] == version_of(b"one\n")


def test_a_deletion_is_permanent_and_found_out_like_a_write(rest):
    """No trash fills up; a broken answer after the effect is no failure."""
    rest.api.faults.add("error_after", method="DELETE", times=1)
    rest.vault.delete("a.md", b"one\n")
    assert rest.transport.sent[-2][:2] == ("DELETE", "/vault/a.md?permanent=true")
    assert not (rest.folder / "a.md").exists()
    assert not (rest.folder / ".trash").exists()


def test_a_deletion_that_fails_says_so(rest):
    """The note stays."""
    rest.api.faults.add("error_before", method="DELETE")
    with pytest.raises(VaultUnreachable):
        rest.vault.delete("a.md", b"one\n")
    assert rest.vault.read("a.md") == b"one\n"


def test_a_broken_move_leaves_both_notes_rather_than_none(rest):
    """The copy comes first."""
    rest.api.faults.add("error_before", method="DELETE")
    with pytest.raises(VaultUnreachable):
        rest.vault.move("a.md", "new/b.md")
    assert rest.vault.read("a.md") == rest.vault.read("new/b.md") == b"one\n"


def test_a_source_that_changes_during_its_move_stays(newest):
    """Obsidian's text is neither lost nor left in two versions."""
    def obsidian(method, target):
        if method == "PUT":
            newest.transport.after = lambda *_: None
            (newest.folder / "a.md").write_bytes(b"Obsidian's\n")

    newest.transport.after = obsidian
    with pytest.raises(Conflict):
        newest.vault.move("a.md", "b.md")
    assert newest.vault.read("a.md") == b"Obsidian's\n"
    with pytest.raises(NotFound):
        newest.vault.read("b.md")


def test_names_without_case_are_one_file(rest):
    """On such a host a look-alike is never created, and a note can still be renamed in case alone."""
    rest.api.faults.add("ignore_case")
    with pytest.raises(Conflict):
        rest.vault.write("A.md", b"new\n", None)
    rest.vault.move("a.md", "A.md")
    assert {path.name: path.read_bytes() for path in rest.folder.iterdir()} == {"A.md": b"one\n"}


@pytest.mark.parametrize("path", ["a.md/heading/One.md", "x/block/b.md", "frontmatter/tags.md"])
def test_a_path_that_would_mean_a_part_of_a_note_is_refused(rest, path):
    """The plugin would patch the note a.md."""
    with pytest.raises(InvalidPath):
        rest.vault.write(path, b"x", None)
    assert rest.methods() == []


def test_a_part_of_a_note_is_no_file():
    """What the plugin answers for `a.md/heading/One` is not taken for a note, nor is a folder's listing."""
    class Canned(Transport):
        def send(self, method, target, headers, body, deadline, limit, fresh=False):
            if target.endswith("heading/One"):
                return Answer(200, {"content-disposition": 'attachment; filename="a.md"'}, b"text of the section")
            return Answer(200, {"content-type": "application/json"}, b'{"files": ["b.md"]}')

    vault = RestVault(parse_address("http://127.0.0.1:27123"), KEY, transport=Canned())
    for path in ("a.md/heading/One", "folder"):
        with pytest.raises(NotFound):
            vault.read(path)


def test_odd_names_reach_exactly_their_file(rest):
    """Every segment is encoded by itself."""
    for path in ("100% done.md", "a+b/c&d=e.md", "Was ist das?/#1, 2;3.md", "日记/今天 😀.md", "it's (a) [b] {c}.md"):
        rest.vault.write(path, path.encode(), None)
        assert (rest.folder / path).read_bytes() == path.encode()
        assert rest.vault.read(path) == path.encode()


def test_a_wrong_key_is_named_as_such(rest):
    """For reading, writing, walking and the check."""
    rest.api.faults.add("wrong_key")
    for call in (lambda: rest.vault.read("a.md"), lambda: rest.vault.write("b.md", b"", None),
                 lambda: list(rest.vault.walk()), lambda: rest.vault.stat("a.md")):
        with pytest.raises(VaultAuth) as refusal:
            call()
        assert "canary" not in repr(refusal.value.envelope())


def test_a_vault_that_is_back_works_again(newest):
    """Refused while it is off, fine on the same object afterwards, kept connections or not."""
    newest.api.refuse()
    with pytest.raises(VaultUnreachable) as failure:
        newest.vault.read("a.md")
    assert failure.value.data["reason"] == "refused"
    newest.api.accept()
    assert newest.vault.read("a.md") == b"one\n"
    newest.api.drop_connections()
    edit(newest.vault, "a.md", append(b"two\n"))
    assert newest.vault.read("a.md") == b"one\ntwo\n"


def test_the_plugin_version_is_told(rest):
    """`check` learns it, `describe` shows it; no key, no address."""
    rest.vault.check()
    facts = rest.vault.describe()
    assert facts["backend"] == "rest"
    assert facts["plugin"] in ("5.1.0", "4.1.7", "3.6.1")
    assert "canary" not in repr(facts)
    assert "127.0.0.1" not in repr(facts)
