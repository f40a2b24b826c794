"""Candidates by tantivy: 100,000 notes in a millisecond, kept on disk, open in a few more (spec 5.1).

It gets our own tokens and ranks with its own constants of BM25, so its order is only about right;
`echo_core.recall.ranking` scores what it finds.
"""
from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence

import tantivy
from echo_core.bm25 import FIELD_WEIGHTS, Asked, Scored
from echo_core.recall.faults import IndexLost

HEAP = 24_000_000
"""Bytes of new documents that are gathered before tantivy writes them out by itself; it takes no less than 15 MB."""

_ID = "doc"


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field(_ID, indexed=True, fast=True)
    for name in FIELD_WEIGHTS:
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="freq")
    return builder.build()


@contextlib.contextmanager
def _guarded() -> Iterator[None]:
    """Turns what a broken or full disk makes tantivy raise into IndexLost; it panics over some damaged files.

    AttributeError: another thread has closed the index.
    """
    try:
        yield
    except (ValueError, OSError, RuntimeError, AttributeError) as failure:
        raise IndexLost(f"the engine's index cannot be used ({type(failure).__name__})") from failure
    except BaseException as failure:
        if type(failure).__name__ != "PanicException":
            raise
        raise IndexLost("the engine's index is damaged") from failure


class TantivyEngine:
    """An index in a folder, or in memory when that is "". One process at a time. Raises IndexLost when it is broken."""

    at_once = False

    def __init__(self, folder: str = "") -> None:
        self._folder = folder
        self._schema = _schema()
        with _guarded():
            if folder:
                os.makedirs(folder, mode=0o700, exist_ok=True)
            self._index = tantivy.Index(self._schema, path=folder or None)
            self._index.config_reader("manual")
            self._writer = self._index.writer(HEAP, 1)
            self._refresh()

    def _refresh(self) -> None:
        self._index.reload()
        self._searcher = self._index.searcher()

    def __len__(self) -> int:
        with _guarded():
            return int(self._searcher.num_docs)

    def upsert(self, doc: int, fields: Mapping[str, Sequence[str]]) -> None:
        """Add a document, whose number is new or deleted; found after the next `commit`."""
        document = tantivy.Document()
        document.add_integer(_ID, doc)
        for name, tokens in fields.items():
            if tokens:
                document.add_text(name, " ".join(tokens))
        with _guarded():
            self._writer.add_document(document)

    def delete(self, doc: int) -> None:
        """Forget a document with the next `commit`."""
        with _guarded():
            self._writer.delete_documents_by_term(_ID, doc)

    def clear(self) -> None:
        """Forget every document."""
        with _guarded():
            self._writer.delete_all_documents()
            self._writer.commit()
            self._refresh()

    def commit(self) -> None:
        """Make what was changed visible, and keep it."""
        with _guarded():
            self._writer.commit()
            self._refresh()

    def search(self, asked: Sequence[Asked], limit: int, only: Collection[int] | None = None) -> list[Scored]:
        """The documents that rank best by tantivy's constants."""
        if not asked or (only is not None and not only):
            return []
        with _guarded():
            searcher = self._searcher
            query = self._query(asked)
            if only is not None:
                chosen = tantivy.Query.term_set_query(self._schema, _ID, list(only))
                within = tantivy.Query.const_score_query(chosen, 0.0)
                query = tantivy.Query.boolean_query([(tantivy.Occur.Must, within), (tantivy.Occur.Must, query)])
            hits = searcher.search(query, limit, count=False).hits
            docs = searcher.fast_field_values(_ID, [address for _, address in hits])
        return [Scored(int(doc or 0), score) for doc, (score, _) in zip(docs, hits, strict=True)]

    def _query(self, asked: Sequence[Asked]) -> tantivy.Query:
        """Any of the terms. Those of one weight share one boost: each clause costs, also to make."""
        clauses: dict[float, list[tuple[tantivy.Occur, tantivy.Query]]] = {}
        for field, term, weight in asked:
            clause = tantivy.Query.term_query(self._schema, field, term, "freq")
            clauses.setdefault(weight, []).append((tantivy.Occur.Should, clause))
        together = clauses.pop(1.0, [])
        for weight, some in clauses.items():
            boosted = tantivy.Query.boost_query(tantivy.Query.boolean_query(some), weight)
            together.append((tantivy.Occur.Should, boosted))
        return tantivy.Query.boolean_query(together)

    def close(self, lost: bool = False) -> None:
        """Let go of the files. lost: remove them."""
        del self._writer, self._searcher, self._index
        if lost and self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
