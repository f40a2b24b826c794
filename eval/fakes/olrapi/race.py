"""The gap between a read and the write that follows from it, held open on purpose."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Race:
    """The pause points of the double.

    Appends read, pause, then write; PUT looks, pauses, then writes. `seconds` is how long the gap stays open
    (0 still lets every other request run); `enabled` False closes it. `between` is called in the gap with the method
    and the path, in the server's thread: a test puts another writer's change there.
    """

    def __init__(self, enabled: bool = True, seconds: float = 0.0) -> None:
        self.enabled = enabled
        self.seconds = seconds
        self.torn_writes = False
        self.between: Callable[[str, str], None] | None = None

    async def pause(self, method: str, path: str) -> None:
        """Stay in the gap."""
        if self.between is not None:
            self.between(method, path)
        if self.enabled:
            await asyncio.sleep(self.seconds)
