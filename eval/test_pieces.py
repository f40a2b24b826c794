"""What a write changed is found again in whatever the note has become, and goes back where it belongs (spec 6.1)."""
import pytest
from echo_core.settle.pieces import pieces_of, stands
from echo_core.settle.putting_back import put_back

LOG = b"# Log\n\n## First\n\n- one\n\n## Second\n\n- two\n"


def put_all_back(before, ours, now):
    """`now` with everything of the write `before` -> `ours` in it that it lacks."""
    for piece in pieces_of(before, ours):
        now = now if stands(piece, now) else put_back(piece, now)
    return now


def with_line(text, after, line):
    """`text` with a line behind another one."""
    return text.replace(after, after + line)


@pytest.mark.parametrize(("before", "ours", "now", "wanted"), [
    (LOG, LOG + b"- b\n", LOG, LOG + b"- b\n"),
    (LOG, LOG + b"- b\n", LOG + b"- a\n", LOG + b"- b\n- a\n"),
    (LOG, with_line(LOG, b"- one\n", b"- b\n"), with_line(LOG, b"- one\n", b"- a\n"),
     with_line(LOG, b"- one\n", b"- b\n- a\n")),
    (LOG, with_line(LOG, b"- one\n", b"- b\n"), b"# New head\n\n" + LOG,
     b"# New head\n\n" + with_line(LOG, b"- one\n", b"- b\n")),
    (b"x", b"x\n- b", b"x\n- a", b"x\n- b\n- a"),
    (b"x\n", b"x\n- b\n", b"x\n- a", b"x\n- b\n- a"),
    (b"", b"- b\n", b"", b"- b\n"),
    (b"x\r\ny\r\n", b"x\r\n- b\r\ny\r\n", b"x\r\n- a\r\ny\r\n", b"x\r\n- b\r\n- a\r\ny\r\n"),
    (b"x\ry\r", b"x\ry\r- b\r", b"x\ry\r- a\r", b"x\ry\r- b\r- a\r"),
    (b"- 1\n- 3\n", b"- 1\n- 2\n- 3\n", b"- 1\n- x2\n- 3\n", b"- 1\n- 2\n- x2\n- 3\n"),
    (b"x\n", b"x\n\n## Related\n\n- [[b]]\n", b"x\n\n## Related\n\n- [[a]]\n",
     b"x\n\n## Related\n\n- [[b]]\n- [[a]]\n"),
    (b"x\n", b"x\n\n## Day\n\nOurs.\n", b"x\n\n## Day\n\nTheirs.\n", b"x\n\n## Day\n\nOurs.\n\nTheirs.\n"),
    (None, b"# D\n\n- b\n", b"# D\n\n- a\n", b"# D\n\n- b\n- a\n"),
    (b"---\ntags: [x]\nupdated: 1\n---\nt\n", b"---\ntags: [x, b]\nupdated: 2\n---\nt\nOurs\n",
     b"---\ntags: [x]\nupdated: 1\n---\nt\n- a\n", b"---\ntags: [x, b]\nupdated: 1\n---\nt\nOurs\n- a\n"),
], ids=lambda value: "")
def test_an_insertion_goes_back_beside_what_others_wrote(before, ours, now, wanted):
    """Every line of both, ours where it was, nothing twice."""
    assert put_all_back(before, ours, now) == wanted
    assert put_all_back(before, ours, wanted) == wanted


@pytest.mark.parametrize("now", [
    LOG + b"- b\n", b"- b\n" + LOG, LOG + b"- b\n- c\n", LOG.replace(b"- one\n", b"") + b"- b\n",
])
def test_a_line_that_is_still_there_stands(now):
    """Wherever it is, and whatever became of the rest."""
    assert all(stands(piece, now) for piece in pieces_of(LOG, LOG + b"- b\n"))


@pytest.mark.parametrize("now", [LOG + b"- bb\n", LOG + b"x - b\n", LOG + b"- b2\n- c b\n"])
def test_a_line_is_not_taken_for_a_part_of_another(now):
    """Only a whole line counts."""
    assert not any(stands(piece, now) for piece in pieces_of(LOG, LOG + b"- b\n"))


def test_a_second_line_of_the_same_words_has_to_stand_twice():
    """One of two is one too few."""
    (piece,) = pieces_of(b"- a\n## S\n", b"- a\n## S\n- a\n")
    assert not stands(piece, b"- a\n## S\n- c\n")
    assert put_back(piece, b"- a\n## S\n- c\n") == b"- a\n## S\n- a\n- c\n"


def test_a_replacement_is_never_put_over_the_text_of_others():
    """It stands or it does not; it does not go back by itself."""
    (piece,) = pieces_of(LOG, LOG.replace(b"- one", b"- ours"))
    assert stands(piece, LOG.replace(b"- one", b"- ours") + b"- c\n")
    for now in (LOG, LOG.replace(b"- one", b"- theirs")):
        assert not stands(piece, now)
        assert put_back(piece, now) is None


def test_a_removal_that_was_undone_is_noticed():
    """The line is there again, or stays away."""
    (piece,) = pieces_of(LOG, LOG.replace(b"- one\n", b""))
    assert stands(piece, LOG.replace(b"- one\n", b"- c\n"))
    assert not stands(piece, LOG + b"- c\n")
    assert put_back(piece, LOG) is None


@pytest.mark.parametrize(("before", "ours", "now"), [
    (LOG, LOG + b"- b\n", b"# Something else\n"),
    (None, b"# Ours\n", b"# Theirs\n"),
    (b"---\nx: 1\n---\nt\n", b"---\nx: 1\naliases: [b]\n---\nt\n", b"---\nx: 1\naliases: [a]\n---\nt\n"),
])
def test_what_has_no_place_any_more_is_not_put_anywhere(before, ours, now):
    """The text around it is gone, or the frontmatter could not be read with it."""
    (piece,) = pieces_of(before, ours)
    assert not stands(piece, now)
    assert put_back(piece, now) is None


def test_blank_lines_and_the_stamp_of_the_day_are_no_pieces():
    """Nobody misses them."""
    assert pieces_of(b"---\nupdated: 1\n---\nx\n", b"---\nupdated: 2\n---\n\nx\n") == []
    assert pieces_of(None, b"\n") == []


def test_a_large_note_costs_no_copy_of_it():
    """A piece holds the new lines and a little around them."""
    big = b"".join(b"- line %d\n" % number for number in range(200_000))
    (piece,) = pieces_of(big, big + b"- b\n")
    assert sum(map(len, (piece.added, piece.removed, piece.above, piece.below))) < 2100
    assert put_back(piece, big + b"- a\n") == big + b"- b\n- a\n"
