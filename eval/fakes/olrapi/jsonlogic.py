"""JsonLogic rules over one note's facts, with JavaScript's idea of truth and equality."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from fakes.olrapi.jscompare import loosely_equal, number, strictly_equal, text, truthy


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
        failed = f" (failed at {name.split('.')[0]})" if name.find(".") > 0 else ""
        raise RuleError(f"Unrecognized operation {name}{failed}")
    return _PLAIN[name](*values)


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
        if isinstance(here, dict) and part in here:
            here = here[part]
        elif isinstance(here, (list, str)) and part.isdigit():
            here = here[int(part)] if int(part) < len(here) else default
        elif isinstance(here, (list, str)) and part == "length":
            here = len(here)
        else:
            return default
    return here


def _missing(name: str, values: list[Any], data: Any) -> list[Any]:
    if name == "missing":
        keys = values[0] if values and isinstance(values[0], list) else values
        return [key for key in keys if _var([key], data) in (None, "")]
    absent = _missing("missing", [values[1]], data)
    return [] if len(values[1]) - len(absent) >= number(values[0]) else absent


def _compare(test: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    def compared(*values: Any) -> bool:
        return all(
            test(one, two) if isinstance(one, str) and isinstance(two, str) else test(number(one), number(two))
            for one, two in pairwise(values)
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


def _reduce(arguments: list[Any], data: Any) -> Any:
    """Fold a list; the rule sees `current` and `accumulator`."""
    values = apply(arguments[0], data)
    total = apply(arguments[2], data) if len(arguments) > 2 else None
    for item in values if isinstance(values, list) else []:
        total = apply(arguments[1], {"current": item, "accumulator": total})
    return total


def _divided(left: Any = None, right: Any = None, *_: Any) -> float:
    over = number(right)
    return number(left) / over if over else (math.nan if not number(left) else math.copysign(math.inf, number(left)))


def _remainder(left: Any = None, right: Any = None, *_: Any) -> float:
    return math.fmod(number(left), number(right)) if number(right) else math.nan


def _part(source: Any = None, start: Any = None, length: Any = None, *_: Any) -> str:
    """A piece of a text; negative numbers count from its end."""
    rest = text(source)[int(number(start)) :] if number(start) >= -len(text(source)) else text(source)
    return rest if length is None else rest[: int(number(length))]


_LAZY: dict[str, Callable[[list[Any], Any], Any]] = {
    "if": _choose,
    "?:": _choose,
    "and": _first(False),
    "or": _first(True),
    "filter": lambda arguments, data: [item for item, truth in _items(arguments, data) if truth],
    "map": lambda arguments, data: [apply(arguments[1], item) for item, _ in _items(arguments, data)],
    "reduce": _reduce,
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
    "/": _divided,
    "%": _remainder,
    "substr": _part,
    "log": lambda value=None, *_: value,
    "glob": glob,
    "regexp": _regexp,
}
