"""Many clients at once: a cheap REST client for one thread, and a way to run many calls at the same time."""
from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from serverproc import TOKEN, Server

_Answer = TypeVar("_Answer")


class RestClient:
    """One kept-alive connection to a server, for one thread; costs a fraction of a general HTTP client."""

    def __init__(self, server: Server) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The envelope a tool answers, gates and errors included."""
        headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
        self._connection.request("POST", f"/api/tools/{name}", json.dumps(arguments), headers)
        answer = self._connection.getresponse()
        body = answer.read()
        assert answer.headers.get_content_type() == "application/json", (answer.status, body)
        return dict(json.loads(body)["data"])

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def together(works: Sequence[Callable[[], _Answer]]) -> list[_Answer]:
    """What each of `works` returns, all begun at the same moment in threads of their own; raises what one raises."""
    gate = threading.Barrier(len(works))

    def begin(work: Callable[[], _Answer]) -> _Answer:
        gate.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(begin, works))


def clients_at(server: Server, batches: Iterable[Sequence[tuple[str, dict[str, Any]]]]) -> list[dict[str, Any]]:
    """The envelopes of all calls: each batch by a client of its own, one call after the other, all at once."""

    def work(batch: Sequence[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
        client = RestClient(server)
        try:
            return [client.call(name, **arguments) for name, arguments in batch]
        finally:
            client.close()

    found = together([lambda batch=batch: work(batch) for batch in batches])
    return [envelope for envelopes in found for envelope in envelopes]
