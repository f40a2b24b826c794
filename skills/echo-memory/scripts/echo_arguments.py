"""Arguments of a call: how a parameter is declared, checked and described as JSON Schema (spec 3.1).

One table declares every tool's parameters (`echo_tools`); this module is the only place where a value from
outside becomes a value an op can trust. MCP, REST and the CLI all come through `validate`.
"""
from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from echo_core.clock import parse_day, parse_period
from echo_core.errors import InvalidArgument, TooLarge
from echo_core.paths import check_folder, check_path, check_reference
from echo_core.text import plural

BODY_LIMIT = 1024 * 1024
"""Longest body in bytes of UTF-8 (spec 3.1)."""
LINE_LIMIT = 16 * 1024
"""Longest single line, title, name or query in bytes of UTF-8 (spec 3.1)."""
ITEM_LIMIT = 100
"""Most proposals in one call (spec 3.1)."""
LIST_LIMIT = 1000
"""Most items in any other list."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LINE_BREAK = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]")
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_PATH_FORMS = {"path": check_path, "note": check_reference, "folder": check_folder}


@dataclass(frozen=True)
class Param:
    """One parameter of a tool.

    type: "string", "integer", "boolean", "string[]", "object[]" or "any" (a plain YAML value).
    form: what a string must be: "line" (one line), "item" (one line whose indent counts), "body" (many lines),
    "path", "folder", "note" (the path or a name of one), "date", "period" or "" (= line).
    least, most: bounds of an integer; a value outside is brought to the bound with a warning.
    fields: the parameters of each object of an "object[]".
    """

    name: str
    type: str = "string"
    help: str = ""
    required: bool = False
    default: Any = None
    form: str = ""
    enum: Tuple[str, ...] = ()
    least: Optional[int] = None
    most: Optional[int] = None
    fields: Tuple["Param", ...] = field(default=())
    empty_ok: bool = True


def validate(params: Sequence[Param], arguments: Mapping[str, Any], at: str = "") -> Tuple[Dict[str, Any], List[str]]:
    """`(values, warnings)`: every parameter with a checked value or its default.

    at: prefix for field names of nested objects ("proposals[2]."). Raises InvalidArgument (unknown, missing or
    wrong value; `field` names it), InvalidPath and TooLarge. No message repeats a value that was sent, apart
    from a short enum word.
    """
    known = {param.name: param for param in params}
    for name in arguments:
        if name not in known:
            raise _unknown(str(name), list(known), at)
    values: Dict[str, Any] = {}
    warnings: List[str] = []
    for param in params:
        where = at + param.name
        value = arguments.get(param.name)
        if value is None and not (param.type == "any" and param.name in arguments):
            if param.required:
                raise InvalidArgument(f"{where} is required", hint=param.help or "Add it, and call again.", field=where)
            values[param.name] = _absent(param)
        else:
            values[param.name] = _convert(param, value, where, warnings)
    return values, warnings


def given(params: Sequence[Param], values: Mapping[str, Any]) -> Dict[str, Any]:
    """The checked values that say more than a parameter's default, fit to be checked again."""
    return {param.name: values[param.name] for param in params
            if param.type == "any" or values[param.name] not in (_absent(param), None)}


def input_schema(params: Sequence[Param]) -> Dict[str, Any]:
    """The JSON Schema of a tool's arguments: flat, no `$defs`, unknown names forbidden."""
    schema: Dict[str, Any] = {
        "type": "object",
        "properties": {param.name: _schema_of(param) for param in params},
        "additionalProperties": False,
    }
    required = [param.name for param in params if param.required]
    if required:
        schema["required"] = required
    return schema


def _schema_of(param: Param) -> Dict[str, Any]:
    schema: Dict[str, Any] = {}
    if param.type == "string[]":
        schema.update(type="array", items={"type": "string"})
    elif param.type == "object[]":
        schema.update(type="array", items=input_schema(param.fields))
    elif param.type != "any":
        schema["type"] = param.type
    if param.enum:
        schema["enum"] = list(param.enum)
    if param.least is not None:
        schema["minimum"] = param.least
    if param.most is not None:
        schema["maximum"] = param.most
    if param.default not in (None, "", False):
        schema["default"] = param.default
    if param.help:
        schema["description"] = param.help
    return schema


def _absent(param: Param) -> Any:
    """What an op gets for a parameter that was not sent: its default, "" for text, a new list for lists."""
    if param.type.endswith("[]"):
        return list(param.default or [])
    return "" if param.type == "string" and param.default is None else param.default


def _unknown(name: str, known: List[str], at: str) -> InvalidArgument:
    shown = "".join(ch if ch.isprintable() else "?" for ch in name)[:60]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]}? " if near else ""
    return InvalidArgument(
        f"unknown argument {at}{shown}", hint=f"{hint}Allowed: {', '.join(known) or 'none'}.", field=at + shown
    )


def _convert(param: Param, value: Any, where: str, warnings: List[str]) -> Any:
    if param.type == "string":
        return _string(param, value, where)
    if param.type == "integer":
        return _integer(param, value, where, warnings)
    if param.type == "boolean":
        return _boolean(value, where)
    if param.type == "string[]":
        return [_string(param, item, f"{where}[{i}]") for i, item in enumerate(_strings(value, where))]
    if param.type == "object[]":
        return _objects(param, value, where, warnings)
    return _plain(value, where)


def _string(param: Param, value: Any, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise InvalidArgument(f"{where} must be text, not {_kind(value)}", hint=param.help, field=where)
    text = value if isinstance(value, str) else str(value)
    if param.form in _PATH_FORMS:  # these have rules of their own for controls, breaks and length
        text = text.strip()
        return _PATH_FORMS[param.form](text, where) if text else _empty(param, where)
    _check_text(text, where, BODY_LIMIT if param.form == "body" else LINE_LIMIT)
    if param.form == "body":
        return text
    text = text.strip("\r\n").rstrip() if param.form == "item" else text.strip()
    if _LINE_BREAK.search(text):
        raise InvalidArgument(f"{where} must be one line", hint="Put longer text into the body.", field=where)
    if not text:
        return _empty(param, where)
    if param.enum and text not in param.enum:
        return _choice(param, text, where)
    return _formed(param.form, text, where)


def _empty(param: Param, where: str) -> str:
    if param.required or not param.empty_ok:
        raise InvalidArgument(f"{where} is empty", hint=param.help, field=where)
    return ""


def _choice(param: Param, text: str, where: str) -> str:
    if text.casefold() in param.enum:
        return text.casefold()
    near = difflib.get_close_matches(text.casefold(), param.enum, n=1)
    hint = (f"Did you mean {near[0]}? " if near else "") + f"Allowed: {', '.join(param.enum)}."
    raise InvalidArgument(f"{where} is not one of the allowed words", hint=hint, field=where)


def _formed(form: str, text: str, where: str) -> str:
    if form == "date":
        return parse_day(text, field=where).isoformat()
    if form == "period":
        return parse_period(text, field=where).name
    return text


def _check_text(text: str, where: str, limit: int) -> None:
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise InvalidArgument(
            f"{where} holds half a surrogate pair", hint="Send valid Unicode text.", field=where
        ) from None
    if size > limit:
        raise TooLarge(f"{where} is {size} bytes; the limit is {limit}", hint="Split it.", field=where, limit=limit)
    if _CONTROL.search(text):
        raise InvalidArgument(f"{where} holds control characters", hint="Remove NUL and other controls.", field=where)


def _integer(param: Param, value: Any, where: str, warnings: List[str]) -> int:
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", value):
        value = int(value)
    if isinstance(value, float) and value == value and abs(value) < 1e18 and value == int(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        hint = param.help or f"Send a number from {param.least} to {param.most}."
        raise InvalidArgument(f"{where} must be a whole number, not {_kind(value)}", hint=hint, field=where)
    number = value
    if param.least is not None:
        number = max(param.least, number)
    if param.most is not None:
        number = min(param.most, number)
    if number != value:
        shown = value if abs(value) < 10**12 else "the number sent"
        warnings.append(f"{where}: {shown} is out of range, used {number} (allowed {param.least} to {param.most})")
    return number


def _boolean(value: Any, where: str) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, (str, int)):
        word = str(value).strip().casefold()
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
    raise InvalidArgument(f"{where} must be true or false, not {_kind(value)}", hint="Send true or false.",
                          field=where)


def _strings(value: Any, where: str) -> List[Any]:
    """A list of strings; some clients send one bare string, or the list as JSON text."""
    if isinstance(value, str):
        parsed = _json(value)
        value = parsed if isinstance(parsed, list) else [value] if value.strip() else []
    if not isinstance(value, (list, tuple)):
        raise InvalidArgument(f"{where} must be a list of text, not {_kind(value)}", field=where,
                              hint='Send a list such as ["a", "b"].')
    _check_count(value, where, LIST_LIMIT)
    return list(value)


def _objects(param: Param, value: Any, where: str, warnings: List[str]) -> List[Dict[str, Any]]:
    if isinstance(value, str):
        parsed = _json(value) if value.strip() else []
        value = value if parsed is None else parsed
    if isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, (list, tuple)):
        raise InvalidArgument(f"{where} must be a list of objects, not {_kind(value)}", hint=param.help, field=where)
    _check_count(value, where, ITEM_LIMIT)
    items: List[Dict[str, Any]] = []
    for i, item in enumerate(value):
        if isinstance(item, str):
            item = _json(item)
        if not isinstance(item, Mapping):
            raise InvalidArgument(f"{where}[{i}] must be an object, not {_kind(item)}", field=f"{where}[{i}]")
        values, found = validate(param.fields, item, at=f"{where}[{i}].")
        items.append(values)
        warnings.extend(found)
    return items


def _check_count(value: Sequence[Any], where: str, limit: int) -> None:
    if len(value) > limit:
        raise TooLarge(
            f"{where} has {plural(len(value), 'item')}; the limit is {limit}",
            hint="Send them in several calls.", field=where, limit=limit,
        )


def _plain(value: Any, where: str) -> Any:
    """Text, number, boolean, null or a list of those: what a frontmatter key may hold."""
    if isinstance(value, str):
        _check_text(value, where, BODY_LIMIT)
        return value
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float) and value - value == 0:
        return value
    if isinstance(value, (list, tuple)) and not any(isinstance(item, (list, tuple, Mapping)) for item in value):
        _check_count(value, where, LIST_LIMIT)
        return [_plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    raise InvalidArgument(f"{where} must be text, a number, true/false, a flat list or null", field=where)


def _json(text: str) -> Any:
    """The value of JSON text, or None: then the caller says what it wanted instead."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "true/false", int: "a number", float: "a number", str: "text", list: "a list", dict: "an object"}
    return names.get(type(value), "that")
