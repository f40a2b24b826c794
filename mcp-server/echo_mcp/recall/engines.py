"""Opens the search index of a vault: on disk where that is possible, in memory where it is not (spec 5.1)."""
from __future__ import annotations

import os
import shutil
from collections.abc import Callable

from echo_core.bm25 import Bm25Index, Engine
from echo_core.recall.faults import IndexBusy, IndexLost
from echo_core.recall.feed import MOST_LOSSES
from echo_core.recall.search import SearchIndex
from echo_core.recall.store import PassageStore

TANTIVY, PLAIN = "tantivy", "rank-bm25"
ENGINES = (TANTIVY, PLAIN)


def has_tantivy() -> bool:
    """Whether tantivy is there for this machine."""
    try:
        import tantivy  # noqa: F401
    except ImportError:
        return False
    return True


def opener(
    engine: str, folder: str, today: Callable[[], str], notice: Callable[[str], None],
) -> Callable[[int], SearchIndex]:
    """What opens the index; its argument is how many were lost before.

    engine: one of ENGINES. folder: where to keep it, made when missing; only this process may use it. today: the
    owner's day. notice: hears why nothing is kept, when that is so.
    """

    def open_index(losses: int) -> SearchIndex:
        why = "it was lost twice"
        while losses < MOST_LOSSES:
            try:
                return _kept(engine, folder, today)
            except IndexBusy:
                why = "another server uses it"
                break
            except IndexLost as failure:
                why = str(failure)
                losses += 1
        notice(f"the search index is in memory only: {why}")
        return SearchIndex(_engine(engine), today)

    return open_index


def _kept(engine: str, folder: str, today: Callable[[], str]) -> SearchIndex:
    """The index of a folder, whatever is left of it. What cannot be used is removed. Raises IndexLost, IndexBusy."""
    beside = os.path.join(folder, "tantivy")
    store = PassageStore(os.path.join(folder, "passages.sqlite3"), alone=True)
    try:
        if store.database.made:
            shutil.rmtree(beside, ignore_errors=True)  # of passages that are no more
        return SearchIndex(_engine(engine, beside), today, store)
    except IndexLost:
        shutil.rmtree(beside, ignore_errors=True)
        store.close()
        raise


def _engine(name: str, folder: str = "") -> Engine:
    if name == PLAIN:
        return Bm25Index()
    from echo_mcp.recall.tantivy_engine import TantivyEngine

    return TantivyEngine(folder)
