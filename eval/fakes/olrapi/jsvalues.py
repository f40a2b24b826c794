"""JSON as JavaScript reads and writes it: one number type, its own spelling of numbers, integer keys first."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any


def parse(text: str) -> Any:
    """JSON.parse; every number becomes a float. Raises ValueError."""
    return json.loads(text, parse_int=float, parse_constant=_refuse)


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def dumps(value: Any, indent: int = 0) -> str:
    """JSON.stringify(value, null, indent)."""
    return _write(value, " " * indent, "")


def _write(value: Any, step: str, margin: str) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return number(value) if math.isfinite(value) else "null"
    if isinstance(value, str):
        return quote(value)
    inner = margin + step
    if isinstance(value, dict):
        colon = ": " if step else ":"
        parts = [f"{quote(key)}{colon}{_write(item, step, inner)}" for key, item in ordered(value)]
        return _wrap("{", "}", parts, step, margin)
    return _wrap("[", "]", [_write(item, step, inner) for item in value], step, margin)


def _wrap(left: str, right: str, parts: list[str], step: str, margin: str) -> str:
    if not parts:
        return left + right
    if not step:
        return left + ",".join(parts) + right
    inner = "\n" + margin + step
    return f"{left}{inner}{f',{inner}'.join(parts)}\n{margin}{right}"


def ordered(value: dict[str, Any]) -> list[tuple[str, Any]]:
    """An object's entries in JavaScript's order: array indices ascending, then the rest as they came."""
    indices = [key for key in value if _is_index(key)]
    rest = [key for key in value if not _is_index(key)]
    return [(key, value[key]) for key in [*sorted(indices, key=int), *rest]]


def _is_index(key: str) -> bool:
    return key.isascii() and key.isdigit() and (key == "0" or key[0] != "0") and int(key) < 2**32 - 1


def quote(text: str) -> str:
    """A JSON string; only what JavaScript escapes is escaped."""
    plain = json.dumps(text, ensure_ascii=False)
    return "".join(f"\\u{ord(char):04x}" if "\ud800" <= char <= "\udfff" else char for char in plain)


def number(value: float) -> str:
    """A number's JavaScript spelling: 2.5, 1, 1e+21, 1e-7."""
    if value == int(value) and abs(value) < 1e21:
        return str(int(Decimal(repr(value))))
    digits = repr(float(value))
    mantissa, mark, exponent = digits.partition("e")
    if not mark:
        return digits
    power = int(exponent)
    if -7 < power < 0:
        sign, figures = ("-", mantissa[1:]) if mantissa.startswith("-") else ("", mantissa)
        return f"{sign}0.{'0' * (-power - 1)}{figures.replace('.', '').removesuffix('0') or '0'}"
    return f"{mantissa.removesuffix('.0')}e{'+' if power > 0 else '-'}{abs(power)}"
