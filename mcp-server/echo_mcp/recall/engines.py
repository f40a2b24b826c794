"""Which engine the server searches with, and where it is kept (spec 5.1)."""
from __future__ import annotations

import os
import shutil
from collections.abc import Callable

from echo_core.bm25 import Bm25Index, Engine
from echo_core.recall import opening
from echo_core.recall.faults import IndexLost
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
    beside = os.path.join(folder, "tantivy")

    def kept(store: PassageStore) -> Engine:
        """The engine that goes with a store. Raises IndexLost; then its own files are gone."""
        if store.database.made:
            shutil.rmtree(beside, ignore_errors=True)  # of passages that are no more
        try:
            return _engine(engine, beside)
        except IndexLost:
            shutil.rmtree(beside, ignore_errors=True)
            raise

    return opening.opener(folder, kept, today, notice, alone=True, in_memory=lambda: _engine(engine))


def _engine(name: str, folder: str = "") -> Engine:
    if name == PLAIN:
        return Bm25Index()
    from echo_mcp.recall.tantivy_engine import TantivyEngine

    return TantivyEngine(folder)
