"""Calls that wait for each other at one place are served together by whoever is first in the queue."""
from __future__ import annotations

import threading
from typing import Callable, Dict, Generic, Hashable, List, TypeVar

_Item = TypeVar("_Item")


class _Ticket(Generic[_Item]):
    """One item that waits. alone: a batch with it failed, so it is served on its own, and fails on its own."""

    def __init__(self, item: _Item) -> None:
        self.item = item
        self.done = False
        self.alone = False


class _Place(Generic[_Item]):
    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.waiting: List[_Ticket[_Item]] = []
        self.users = 0


class Batches(Generic[_Item]):
    """A queue for each key."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._places: Dict[Hashable, _Place[_Item]] = {}

    def serve(self, key: Hashable, item: _Item, serve: Callable[[List[_Item]], None]) -> None:
        """Return when `item` has been served: by `serve`, together with what waits at `key`, or by another caller.

        serve: gets items in the order they came. When it raises, every caller tries its own item alone, and hears what
        comes of that. A caller must hold no lock that a `serve` of the same key takes.
        """
        ticket = _Ticket(item)
        with self._guard:
            place = self._places.setdefault(key, _Place())
            place.users += 1
            place.waiting.append(ticket)
        try:
            with place.turn:
                if not ticket.done:
                    self._serve(place, ticket, serve)
        finally:
            with self._guard:
                if ticket in place.waiting:
                    place.waiting.remove(ticket)
                place.users -= 1
                if not place.users:
                    del self._places[key]

    def _serve(self, place: _Place[_Item], own: _Ticket[_Item], serve: Callable[[List[_Item]], None]) -> None:
        with self._guard:
            batch = [own] if own.alone else [ticket for ticket in place.waiting if not ticket.alone]
        try:
            serve([ticket.item for ticket in batch])
        except Exception:
            if len(batch) == 1:
                raise
            for ticket in batch:
                ticket.alone = True
            self._serve(place, own, serve)
            return
        with self._guard:
            for ticket in batch:
                ticket.done = True
            place.waiting = [ticket for ticket in place.waiting if not ticket.done]
