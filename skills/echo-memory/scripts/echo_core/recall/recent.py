"""The passages an engine has not taken in yet, searched beside it, so that nobody waits for its commit (spec 5.5)."""
from __future__ import annotations

from typing import Collection, Dict, List, Mapping, Optional, Sequence

from echo_core.bm25 import Asked, Bm25Index, Scored

Fields = Mapping[str, Sequence[str]]


class Recent:
    """Documents by number, each with its fields (name -> tokens). Not thread-safe: its owner holds a lock."""

    def __init__(self) -> None:
        self._fields: Dict[int, Fields] = {}
        self._unread: Dict[int, Fields] = {}
        self._index = Bm25Index()

    def __len__(self) -> int:
        return len(self._fields)

    def add(self, doc: int, fields: Fields) -> None:
        """Take in a document; it is only looked into when somebody searches."""
        self._fields[doc] = self._unread[doc] = fields

    def drop(self, docs: Collection[int]) -> None:
        """Forget documents; those that are not there are left out."""
        for doc in docs:
            if self._fields.pop(doc, None) is not None and self._unread.pop(doc, None) is None:
                self._index.delete(doc)

    def all(self) -> Dict[int, Fields]:
        """What is there now."""
        return dict(self._fields)

    def search(self, asked: Sequence[Asked], limit: int, only: Optional[Collection[int]] = None) -> List[Scored]:
        """As `Engine.search`."""
        for doc, fields in self._unread.items():
            self._index.upsert(doc, fields)
        self._unread = {}
        return self._index.search(asked, limit, only)
