"""What is done about a text of ours that is not there any more (spec 6.1)."""
from contextlib import closing
from itertools import pairwise

import pytest
from echo_core.clock import Clock
from echo_core.history import HistoryStore
from echo_core.settle.pieces import pieces_of
from echo_core.settle.settling import MOST_TRIES, Held, judge, seen
from echo_core.settle.unsettled import Unsettled
from echo_core.settle.watch import Watch

NOTE = b"# N\n\n## A\n\nold\n\n## B\n\n- one\n"


def watched(*states):
    """The pieces of our writes that led through these states, each made on what the one before left."""
    held = []
    for number, (before, after) in enumerate(pairwise(states), start=1):
        fresh = [Held(piece, number, 0.0, first=number) for piece in pieces_of(before, after)]
        held = [*seen(held, before, number), *fresh]
    return held


def outcome(held, now, **more):
    """(the note as it should be, writes that stand, that are put back, that are lost)."""
    found = judge(held, now, **more)
    return found.text, *([one.write for one in kind] for kind in (found.standing, found.again, found.lost))


def test_what_a_call_right_after_took_out_itself_stays_out(tmp_path):
    """Command lines follow each other within a second: each knows of the writes before it, however young."""
    with closing(HistoryStore(str(tmp_path), Clock("UTC"))) as history:
        def of_the_next_call():
            return Watch(Unsettled(history.database, "cli"))

        of_the_next_call().wrote("inbox.md", b"# I\n", b"# I\n- milk\n")
        second = of_the_next_call()
        assert second.resume(60.0) == []
        second.wrote("inbox.md", b"# I\n- milk\n", b"# I\n")
        third = of_the_next_call()
        assert third.resume(0.0) == ["inbox.md"]
        assert judge(third.take("inbox.md"), b"# I\n").again == []


def test_several_lines_go_back_in_the_order_they_were_written():
    """Beside the line that took their place."""
    held = watched(NOTE, NOTE + b"- 1\n", NOTE + b"- 1\n- 2\n", NOTE + b"- 1\n- 2\n- 3\n")
    assert outcome(held, NOTE + b"- theirs\n") == (NOTE + b"- 1\n- 2\n- 3\n- theirs\n", [], [1, 2, 3], [])


def test_what_stands_and_what_went_are_told_apart():
    """A later write of ours that was made on a text without the first one says nothing about it."""
    held = watched(NOTE, NOTE + b"- 1\n")
    held = [*held, *(Held(piece, 2, 0.0, first=2) for piece in pieces_of(NOTE + b"- a\n", NOTE + b"- a\n- 2\n"))]
    assert outcome(held, NOTE + b"- a\n- 2\n") == (NOTE + b"- 1\n- a\n- 2\n", [2], [1], [])


def test_who_kept_our_later_line_had_seen_the_earlier_one():
    """It was taken out on purpose."""
    held = watched(NOTE, NOTE + b"- 1\n", NOTE + b"- 1\n- 2\n")
    assert outcome(held, NOTE + b"- 2\n") == (NOTE + b"- 2\n", [2], [], [])


def test_the_same_line_twice_on_watch_goes_back_once():
    """It was lost, written again by its caller, and lost again."""
    held = [Held(piece, number, 0.0, first=number) for number in (1, 2) for piece in pieces_of(NOTE, NOTE + b"- 1\n")]
    assert outcome(held, NOTE) == (NOTE + b"- 1\n", [2], [1], [])


def test_a_lost_replacement_is_told_once_and_never_after_we_replaced_the_place_again():
    """Only the newest text of a place counts."""
    first, second = NOTE.replace(b"old", b"first"), NOTE.replace(b"old", b"second")
    assert outcome(watched(NOTE, first), NOTE) == (NOTE, [], [], [1])
    held = [*watched(NOTE, first), *(Held(piece, 2, 0.0, first=2) for piece in pieces_of(NOTE, second))]
    assert outcome(held, second) == (second, [2], [], [])
    assert outcome(held, NOTE.replace(b"old", b"theirs"))[3] == [1, 2]


@pytest.mark.parametrize("more", [{"late": True}, {"tries": MOST_TRIES}])
def test_after_long_or_too_many_tries_a_line_is_told_and_not_put_back(more):
    """Two servers do not fight for ever, and what was taken out long ago stays out."""
    held = [one._replace(tries=more.get("tries", 0)) for one in watched(NOTE, NOTE + b"- 1\n")]
    assert outcome(held, NOTE, late=more.get("late", False)) == (NOTE, [], [], [1])


def test_a_line_goes_back_between_our_earlier_and_our_later_ones():
    """Whatever became of the lines around it."""
    first, second = NOTE + b"- a\n- 1\n", NOTE + b"- a\n- 1\n- 2\n"
    held = watched(NOTE + b"- a\n", first, second)
    third = [Held(piece, 3, 0.0, first=3) for piece in pieces_of(NOTE + b"- 1\n", NOTE + b"- 1\n- 3\n")]
    now = NOTE + b"- 1\n- 3\n- a\n"  # somebody has put back a line of his own
    assert outcome([*held, *third], now)[0] == NOTE + b"- 1\n- 2\n- 3\n- a\n"
    assert judge(held[1:], now, settled=[held[0], *third]).text == NOTE + b"- 1\n- 2\n- 3\n- a\n"
