"""Truth, equality and conversion between types as JavaScript has them."""

from __future__ import annotations

import math
import re
from typing import Any

from fakes.olrapi import jsvalues


def truthy(value: Any) -> bool:
    """JsonLogic's truth: JavaScript's, but an empty list is false."""
    if isinstance(value, float) and math.isnan(value):
        return False
    return True if isinstance(value, dict) else bool(value)


def text(value: Any) -> str:
    """String(value)."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ",".join("" if item is None else text(item) for item in value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return "[object Object]" if isinstance(value, dict) else jsvalues.dumps(value)


def number(value: Any = None) -> float:
    """Number(value); NaN for what is none."""
    if isinstance(value, (bool, int, float)) or value is None:
        return float(value or 0)
    word = text(value).strip()
    try:
        return float(word) if not re.search("[a-df-zA-DF-Z_]", word) else math.nan
    except ValueError:
        return 0.0 if not word else math.nan


def strictly_equal(left: Any = None, right: Any = None) -> bool:
    """left === right."""
    if isinstance(left, (list, dict)) or isinstance(right, (list, dict)):
        return left is right
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    return bool(left == right)


def loosely_equal(left: Any = None, right: Any = None) -> bool:
    """left == right."""
    if left is None or right is None:
        return left is right
    if isinstance(left, (list, dict)) and isinstance(right, (list, dict)):
        return left is right
    if isinstance(left, (list, dict)):
        left = text(left)
    if isinstance(right, (list, dict)):
        right = text(right)
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    return number(left) == number(right)
