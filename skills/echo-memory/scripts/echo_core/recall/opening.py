"""Opens the search index of a vault: on the disk where that is possible, in memory where it is not (spec 5.1)."""
from __future__ import annotations

import os
from typing import Callable

from echo_core.bm25 import Bm25Index, Engine
from echo_core.recall.faults import IndexBusy, IndexLost
from echo_core.recall.feed import MOST_LOSSES
from echo_core.recall.search import SearchIndex
from echo_core.recall.store import PassageStore

STORE = "passages.sqlite3"


def opener(
    folder: str, engine: Callable[[PassageStore], Engine], today: Callable[[], str], notice: Callable[[str], None],
    alone: bool = False, in_memory: Callable[[], Engine] = Bm25Index,
) -> Callable[[int], SearchIndex]:
    """What opens the index; its argument is how many were lost before.

    folder: where to keep it, made when missing. engine: opens the engine that goes with a store. today: the owner's
    day as YYYY-MM-DD. notice: hears why nothing is kept, when that is so. alone: only this process may use the folder.
    in_memory: the engine of an index that cannot be kept.
    """

    def open_index(losses: int) -> SearchIndex:
        why = "it was lost twice"
        while losses < MOST_LOSSES:
            try:
                return _kept(folder, engine, today, alone)
            except IndexBusy:
                why = "another process uses it"
                break
            except IndexLost as failure:
                why = str(failure)
                losses += 1
        notice(f"the search index is in memory only: {why}")
        return SearchIndex(in_memory(), today)

    return open_index


def _kept(
    folder: str, engine: Callable[[PassageStore], Engine], today: Callable[[], str], alone: bool,
) -> SearchIndex:
    """The index of a folder, whatever is left of it. Raises IndexLost, IndexBusy."""
    store = PassageStore(os.path.join(folder, STORE), alone)
    try:
        return SearchIndex(engine(store), today, store)
    except (IndexLost, IndexBusy):
        store.close()
        raise
