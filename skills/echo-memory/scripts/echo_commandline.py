"""Words and options of a command line to the arguments of a tool, and a tool's parameters to a help page.

Everything is derived from the tool's parameters: a required one may be a plain word or an option, a boolean is
`--name` or `--no-name`, a list is its option repeated. A long text may come from a file (`@notes.md`) or from
stdin (`-`); `@@x` stands for a text that begins with `@`.
"""
from __future__ import annotations

import difflib
import json
from typing import Any, BinaryIO, Callable, Dict, List, NamedTuple, Sequence, Tuple

from echo_arguments import Param
from echo_core.errors import InvalidArgument, TooLarge

LONG_FORMS = ("object[]", "any")
"""Types whose value may come from a file or from stdin, beside strings of form "body"."""


INPUT_LIMIT = 16 * 1024 * 1024
"""Most bytes read from a file or from stdin; the limit of the argument itself is checked after that."""


class Split(NamedTuple):
    """A command line taken apart: plain words, options as written with their values, and the two switches."""

    words: List[str]
    options: List[Tuple[str, str]]
    as_json: bool
    help: bool


def split(line: Sequence[str], params: Sequence[Param]) -> Split:
    """Take `line` apart. Raises InvalidArgument for an option no parameter has, or one without its value.

    Options are `--name value`, `--name=value`, `--switch`; `--` ends them. A word that begins with one dash, or
    that holds a blank, is a plain word: `- buy milk` needs no escape.
    """
    known = {name: takes_value for param in params for name, takes_value in option_names(param)}
    words: List[str] = []
    options: List[Tuple[str, str]] = []
    flags = {"--json": False, "--help": False}
    rest = list(line)
    while rest:
        word = rest.pop(0)
        if word == "--":
            words += rest
            break
        name, equals, value = word.partition("=")
        if word in ("-h", *flags):
            flags["--help" if word == "-h" else word] = True
        elif not word.startswith("--") or any(ch.isspace() for ch in name):
            words.append(word)
        elif name not in known:
            raise _unknown(name, known)
        elif equals or not known[name]:
            options.append((name, value if equals else "true"))
        elif not rest:
            raise InvalidArgument(f"{name} needs a value", hint=f"Write {name} VALUE.", field=field_of(name))
        else:
            options.append((name, rest.pop(0)))
    return Split(words, options, flags["--json"], flags["--help"])


def option_names(param: Param) -> List[Tuple[str, bool]]:
    """The options of one parameter, each with whether it takes a value."""
    name = "--" + param.name.replace("_", "-")
    if param.type == "boolean":
        return [(name, False), ("--no-" + name[2:], False)]
    if param.type == "any":
        return [(name, True), (name + "-json", True)]
    return [(name, True)]


def field_of(option: str) -> str:
    """The name of the parameter an option stands for."""
    return option.lstrip("-").replace("-", "_")


def arguments(
    parts: Split, params: Sequence[Param], word_params: Sequence[str], read_stdin: Callable[[], str]
) -> Dict[str, Any]:
    """The arguments of the tool, still unchecked: `echo_arguments.validate` is next.

    word_params: parameters that plain words fill, in order, those given as options left out. read_stdin: called
    for `-`. Raises InvalidArgument for a word too many, a file that cannot be read, or bad JSON after `-json`.
    """
    by_name = {param.name: param for param in params}
    given: Dict[str, List[Any]] = {}
    for option, text in parts.options:
        name, value = _option_value(option, text, by_name, read_stdin)
        given.setdefault(name, []).append(value)
    free = [name for name in word_params if name not in given]
    if len(parts.words) > len(free):
        raise InvalidArgument(
            "there are more words than this verb takes",
            hint="Put a text of several words in quotes. Words: " + (" ".join(free).upper() or "none") + ".",
        )
    for name, word in zip(free, parts.words):
        given[name] = [_long_text(by_name[name], word, read_stdin)]
    return {name: _combined(by_name[name], values) for name, values in given.items()}


def _option_value(
    option: str, text: str, by_name: Dict[str, Param], read_stdin: Callable[[], str]
) -> Tuple[str, Any]:
    name = field_of(option)
    if name not in by_name and name.startswith("no_"):
        return name[3:], "false" if text == "true" else "true"
    if name not in by_name and name.endswith("_json"):
        return name[:-5], _json_value(_long_text(by_name[name[:-5]], text, read_stdin), name[:-5])
    return name, _long_text(by_name[name], text, read_stdin)


def _combined(param: Param, values: List[Any]) -> Any:
    """The value of an option that was given once or, for a list, several times."""
    if len(values) == 1:
        return values[0]
    if not param.type.endswith("[]"):
        raise InvalidArgument(f"{param.name} is given more than once", field=param.name)
    return values


def _long_text(param: Param, text: str, read_stdin: Callable[[], str]) -> str:
    if param.form != "body" and param.type not in LONG_FORMS:
        return text
    if text == "-":
        return read_stdin()
    if text.startswith("@@") or not text.startswith("@"):
        return text[1:] if text.startswith("@@") else text
    try:
        with open(text[1:], "rb") as file:
            return utf8(file, param.name)
    except OSError as problem:
        raise InvalidArgument(
            f"the file named for {param.name} cannot be read: {problem.strerror}",
            hint="Write @@ for a text that begins with @.", field=param.name,
        ) from None


def utf8(file: BinaryIO, field: str) -> str:
    """The text of a file or of stdin. Raises InvalidArgument when it is not UTF-8, TooLarge beyond INPUT_LIMIT."""
    data = file.read(INPUT_LIMIT + 1)
    if len(data) > INPUT_LIMIT:
        raise TooLarge(f"{field} is longer than {INPUT_LIMIT} bytes", hint="Split it.", field=field, limit=INPUT_LIMIT)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidArgument(f"{field} is not UTF-8 text", hint="Save it as UTF-8.", field=field) from None


def _json_value(text: str, field: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidArgument(f"{field} is not JSON", hint='For example ["a", "b"], 3 or null.', field=field) from None


def _unknown(name: str, known: Dict[str, bool]) -> InvalidArgument:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    shown = "".join(ch if ch.isprintable() else "?" for ch in name)[:60]
    hint = (f"Did you mean {near[0]}? " if near else "") + f"Allowed: {', '.join([*known, '--json', '--help'])}."
    return InvalidArgument(f"unknown option {shown}", hint=hint, field=field_of(shown))


def help_page(program: str, about: str, params: Sequence[Param], word_params: Sequence[str]) -> str:
    """The help of one verb: usage, what it does, each parameter."""
    from textwrap import wrap  # for help pages alone

    usage = " ".join([program, *(f"[{name.upper()}]" for name in word_params), "[OPTIONS]"])
    lines = [f"usage: {usage}", "", *wrap(about, 100), ""]
    for param in params:
        head, body = _help_of(param, param.name in word_params)
        lines += [head, *wrap(body, 94, initial_indent="      ", subsequent_indent="      ")]
    lines += ["  --json", "      print the envelope, and nothing else, on stdout", "  --help", "      this page"]
    return "\n".join(lines)


def _help_of(param: Param, is_word: bool) -> Tuple[str, str]:
    """The options of a parameter, and what there is to say about them."""
    names = [name + (" VALUE" if takes_value else "") for name, takes_value in option_names(param)]
    notes = [param.help] if param.help else []
    if param.enum:
        notes.append("one of: " + ", ".join(param.enum))
    if param.default not in (None, "", False):
        notes.append(f"default: {str(param.default).lower() if param.default is True else param.default}")
    if param.type.endswith("[]"):
        notes.append("may be repeated" if param.type == "string[]" else "JSON")
    if param.form == "body" or param.type in LONG_FORMS:
        notes.append("- reads stdin, @FILE a file")
    if param.fields:
        notes.append("fields: " + ", ".join(field.name for field in param.fields))
    head = "  " + (f"{param.name.upper()}, " if is_word else "") + ", ".join(names)
    if param.required:
        head += "  (required)"
    body = "; ".join(note.rstrip(".") for note in notes)
    return head, body
