"""What stands in an advisory lock file, however broken it is (spec 2.6)."""
from __future__ import annotations

import json
from datetime import datetime
from typing import List, NamedTuple, Optional

_MAX_HOLDER = 80


class LockFile(NamedTuple):
    """What a lock file says; `acquired` is None when it says nothing one can read."""

    holder: str
    acquired: Optional[datetime]
    ttl_s: float
    token: str


def document(holder: str, acquired: str, ttl_s: float, token: str) -> bytes:
    """The bytes of a lock file. acquired: an ISO instant."""
    whole = int(ttl_s) if float(ttl_s).is_integer() else ttl_s
    said = {"holder": holder, "acquired": acquired, "ttl_s": whole, "token": token}
    return (json.dumps(said, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def parsed(data: bytes, our_ttl_s: float) -> LockFile:
    """What the bytes say; an absurd ttl is cut to twice ours, so that no dead holder blocks longer (spec 2.6)."""
    try:
        document = json.loads(data)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        return LockFile("somebody", None, our_ttl_s, "")
    ttl_s = document.get("ttl_s")
    usable = isinstance(ttl_s, (int, float)) and not isinstance(ttl_s, bool) and ttl_s > 0
    return LockFile(
        _holder_name(document.get("holder")), _instant(document.get("acquired")),
        min(float(ttl_s), 2 * our_ttl_s) if usable and ttl_s is not None else our_ttl_s, str(document.get("token")),
    )


def _holder_name(value: object) -> str:
    """A name fit for a message: what stands in the vault is anybody's text."""
    shown: List[str] = [char for char in str(value or "") if char.isprintable()]
    return "".join(shown)[:_MAX_HOLDER] or "somebody"


def _instant(value: object) -> Optional[datetime]:
    """An ISO instant with an offset; None for anything else."""
    try:
        found = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
