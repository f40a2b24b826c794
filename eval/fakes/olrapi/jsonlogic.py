"""JsonLogic rules over one note's facts, with JavaScript's idea of truth and equality."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from fakes.olrapi import jsvalues


class RuleError(Exception):
    """The rule cannot be applied."""


def apply(rule: Any, data: Any) -> Any:
    """The value of a rule; what is no rule is its own value. Raises RuleError for an unknown operator."""
    if isinstance(rule, list):
        return [apply(item, data) for item in rule]
    if not isinstance(rule, dict) or len(rule) != 1:
        return rule
    name, raw = next(iter(rule.items()))
    arguments = raw if isinstance(raw, list) else [raw]
    if name in _LAZY:
        return _LAZY[name](arguments, data)
    values = [apply(argument, data) for argument in arguments]
    if name == "var":
        return _var(values, data)
    if name in ("missing", "missing_some"):
        return _missing(name, values, data)
    if name not in _PLAIN:
        raise RuleError(f"Unrecognized operation {name}")
    return _PLAIN[name](*values)


def truthy(value: Any) -> bool:
    """JsonLogic's truth: JavaScript's, but an empty list is false."""
    if isinstance(value, float) and math.isnan(value):
        return False
    return True if isinstance(value, dict) else bool(value)


def is_sane(value: Any) -> bool:
    """Whether the plugin lists a note for this result; an empty object does not count."""
    return bool(value) if isinstance(value, dict) else truthy(value)


def _var(values: list[Any], data: Any) -> Any:
    """A dotted path into the data, the second value when it leads nowhere."""
    path = values[0] if values else ""
    default = values[1] if len(values) > 1 else None
    if path is None or path == "":
        return data
    here = data
    for part in text(path).split("."):
        if isinstance(here, dict):
            here = here.get(part)
        elif isinstance(here, (list, str)) and part.isdigit():
            here = here[int(part)] if int(part) < len(here) else None
        elif isinstance(here, (list, str)) and part == "length":
            here = len(here)
        else:
            return default
        if here is None:
            return default
    return here


def _missing(name: str, values: list[Any], data: Any) -> list[Any]:
    if name == "missing":
        keys = values[0] if values and isinstance(values[0], list) else values
        return [key for key in keys if _var([key], data) in (None, "")]
    absent = _missing("missing", [values[1]], data)
    return [] if len(values[1]) - len(absent) >= number(values[0]) else absent


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


def _compare(test: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    def compared(*values: Any) -> bool:
        return all(
            test(one, two) if isinstance(one, str) and isinstance(two, str) else test(number(one), number(two))
            for one, two in zip(values, values[1:], strict=False)
        )

    return compared


def _within(piece: Any = None, whole: Any = None, *_: Any) -> bool:
    """Whether a text holds a text, or a list an item."""
    if isinstance(whole, str):
        return text(piece) in whole
    return isinstance(whole, list) and any(strictly_equal(piece, item) for item in whole)


def glob(pattern: Any = None, field: Any = None, *_: Any) -> bool:
    """Whether the whole text matches; `*` takes slashes too, `?` and brackets are plain characters."""
    if not isinstance(pattern, str) or not isinstance(field, str):
        return False
    parts = [re.escape(part) for part in re.split(r"\*+", pattern)]
    return re.fullmatch(".*".join(parts), field) is not None


def _regexp(pattern: Any = None, field: Any = None, *_: Any) -> bool:
    try:
        return isinstance(pattern, str) and isinstance(field, str) and re.search(pattern, field) is not None
    except re.error as error:
        raise RuleError(f"Invalid regular expression: /{pattern}/: {error}") from error


def _sum(*values: Any) -> float:
    return sum(number(value) for value in values)


def _minus(left: Any = None, right: Any = None, *_: Any) -> float:
    return -number(left) if right is None else number(left) - number(right)


def _choose(arguments: list[Any], data: Any) -> Any:
    """if / then / else if / … / else."""
    for at in range(0, len(arguments) - 1, 2):
        if truthy(apply(arguments[at], data)):
            return apply(arguments[at + 1], data)
    return apply(arguments[-1], data) if len(arguments) % 2 else None


def _first(wanted: bool) -> Callable[[list[Any], Any], Any]:
    """The first value that is (or is not) true, else the last."""
    def found(arguments: list[Any], data: Any) -> Any:
        value = None
        for argument in arguments:
            value = apply(argument, data)
            if truthy(value) is wanted:
                return value
        return value

    return found


def _items(arguments: list[Any], data: Any) -> list[tuple[Any, bool]]:
    """Each item of a list with the truth of the rule for it."""
    values = apply(arguments[0], data)
    return [(item, truthy(apply(arguments[1], item))) for item in values] if isinstance(values, list) else []


def _all(arguments: list[Any], data: Any) -> bool:
    truths = [truth for _, truth in _items(arguments, data)]
    return bool(truths) and all(truths)


_LAZY: dict[str, Callable[[list[Any], Any], Any]] = {
    "if": _choose,
    "?:": _choose,
    "and": _first(False),
    "or": _first(True),
    "filter": lambda arguments, data: [item for item, truth in _items(arguments, data) if truth],
    "map": lambda arguments, data: [apply(arguments[1], item) for item, _ in _items(arguments, data)],
    "all": _all,
    "some": lambda arguments, data: any(truth for _, truth in _items(arguments, data)),
    "none": lambda arguments, data: not any(truth for _, truth in _items(arguments, data)),
}
_PLAIN: dict[str, Callable[..., Any]] = {
    "==": loosely_equal,
    "===": strictly_equal,
    "!=": lambda *values: not loosely_equal(*values),
    "!==": lambda *values: not strictly_equal(*values),
    ">": _compare(lambda one, two: one > two),
    ">=": _compare(lambda one, two: one >= two),
    "<": _compare(lambda one, two: one < two),
    "<=": _compare(lambda one, two: one <= two),
    "!!": lambda value=None, *_: truthy(value),
    "!": lambda value=None, *_: not truthy(value),
    "in": _within,
    "cat": lambda *values: "".join(text(value) for value in values),
    "merge": lambda *values: [item for value in values for item in (value if isinstance(value, list) else [value])],
    "max": lambda *values: max((number(value) for value in values), default=-math.inf),
    "min": lambda *values: min((number(value) for value in values), default=math.inf),
    "+": _sum,
    "*": lambda *values: math.prod(number(value) for value in values),
    "-": _minus,
    "glob": glob,
    "regexp": _regexp,
}
