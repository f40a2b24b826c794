"""What can be wrong with the search index; neither fault says anything about the notes."""
from __future__ import annotations


class IndexLost(Exception):
    """The search index cannot be used any longer and has to be built anew."""


class IndexBusy(Exception):
    """Another process is changing the search index right now."""
