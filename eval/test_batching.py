"""Calls that wait for each other at one place are served together, and each hears its own outcome."""
from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from echo_core.state.batching import Batches


def waiting_behind(batches: Batches[str], items: list[str], serve: Callable[[list[str]], None]) -> dict[str, str]:
    """What became of each item, all of them sent while another one is being served."""
    begun, go_on = threading.Event(), threading.Event()
    outcomes: dict[str, str] = {}

    def blocking(served: list[str]) -> None:
        begun.set()
        assert go_on.wait(30)

    def send(item: str) -> None:
        try:
            batches.serve("place", item, serve)
            outcomes[item] = "served"
        except ValueError as refused:
            outcomes[item] = str(refused)

    first = threading.Thread(target=lambda: batches.serve("place", "first", blocking))
    first.start()
    assert begun.wait(30)
    threads = [threading.Thread(target=send, args=(item,)) for item in items]
    for number, thread in enumerate(threads, start=1):
        thread.start()
        while batches._places["place"].users < number + 1:
            threading.Event().wait(0.001)
    go_on.set()
    for thread in [first, *threads]:
        thread.join(30)
    return outcomes


def test_items_that_wait_are_served_at_once_in_the_order_they_came() -> None:
    """Three calls, one batch."""
    served: list[list[str]] = []
    batches: Batches[str] = Batches()
    outcomes = waiting_behind(batches, ["a", "b", "c"], served.append)
    assert served == [["a", "b", "c"]]
    assert outcomes == dict.fromkeys("abc", "served")
    assert not batches._places


def test_an_item_that_is_refused_fails_alone() -> None:
    """Those that were in one batch with it are served."""
    served: list[str] = []

    def serve(items: list[str]) -> None:
        if "bad" in items:
            raise ValueError(f"{len(items)} refused")
        served.extend(items)

    outcomes = waiting_behind(Batches(), ["a", "bad", "c"], serve)
    assert outcomes == {"a": "served", "bad": "1 refused", "c": "served"}
    assert sorted(served) == ["a", "c"]


def test_another_place_has_a_queue_of_its_own() -> None:
    """Serving at one place never waits for another."""
    batches: Batches[str] = Batches()
    seen: list[str] = []
    batches.serve("one", "a", lambda items: batches.serve("other", "b", seen.extend))
    assert seen == ["b"]
    with pytest.raises(ValueError, match="no"):
        batches.serve("one", "c", lambda items: (_ for _ in ()).throw(ValueError("no")))
