"""Settings all tests share."""

from __future__ import annotations

from hypothesis import settings

# How long one example takes says more about the machine's load than about ECHO; pytest-timeout stops what hangs.
settings.register_profile("echo", deadline=None)
settings.load_profile("echo")
