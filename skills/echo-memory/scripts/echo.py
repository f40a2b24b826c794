#!/usr/bin/env python3
"""The command line of ECHO: `echo.py VERB [WORDS] [OPTIONS]`; it takes a line apart and prints the answer.

Verbs are in `echo_verbs`, the way a call runs in `echo_offline`, settings in `echo_config`. Nothing of ECHO
imports this module; the names in `__all__` are here for scripts that expect them (loaded when first used).
"""
from __future__ import annotations

import difflib
import importlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, TextIO, Tuple

if TYPE_CHECKING:
    from echo_core.errors import EchoError
    from echo_doctor import doctor_op
    from echo_load import load_op
    from echo_scope import scope_set_op, scope_show_op
    from echo_tools import Tool

from echo_verbs import VERBS, Verb

__all__ = ["EchoError", "doctor_op", "load_op", "main", "scope_set_op", "scope_show_op"]

_HOMES = {
    "EchoError": "echo_core.errors", "doctor_op": "echo_doctor", "load_op": "echo_load",
    "scope_set_op": "echo_scope", "scope_show_op": "echo_scope",
}
INTERRUPTED = 130


def __getattr__(name: str) -> Any:
    """A re-exported name, loaded from where it lives."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


class Call(NamedTuple):
    """One command line, understood: the tool, its unchecked arguments."""

    tool: "Tool"
    arguments: Dict[str, Any]


def main(argv: Optional[Sequence[str]] = None, environ: Optional[Mapping[str, str]] = None) -> int:
    """Run one command line and return its exit code (spec 3.1). argv: without the program's name."""
    line = list(sys.argv[1:] if argv is None else argv)
    _speak_utf8()
    try:
        if not line or line[0] in ("-h", "--help", "help"):
            print(_overview(), file=sys.stdout if line else sys.stderr, flush=True)
            return 0 if line else 2
        options = line[:line.index("--")] if "--" in line else line
        return _show(*_answer(line, environ), as_json="--json" in options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone, as in `echo.py ls | head`; keep the interpreter from complaining at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _answer(line: List[str], environ: Optional[Mapping[str, str]]) -> Tuple[str, Dict[str, Any]]:
    """`(tool name, envelope)` of a command line; raises nothing but KeyboardInterrupt."""
    from echo_core.errors import EchoError, InternalError

    name = ""
    try:
        verb, rest = _verb(line)
        found = _understood(verb, rest)
        if isinstance(found, str):
            return "help", {"ok": True, "help": found}
        name = found.tool.name
        return name, _called(found, environ)
    except EchoError as failure:
        return name, failure.envelope()
    except Exception as failure:
        error_id = os.urandom(6).hex()
        last = failure.__traceback__
        while last and last.tb_next:
            last = last.tb_next
        where = f"{last.tb_frame.f_code.co_name}:{last.tb_lineno}" if last else "?"
        print(f"internal error {error_id}: {type(failure).__name__} at {where}", file=sys.stderr)
        return name, InternalError("the command failed for an unforeseen reason", error_id=error_id).envelope()


def _verb(line: List[str]) -> Tuple[str, List[str]]:
    """The verb and the rest of the line; `--json` may stand before the verb."""
    from echo_core.errors import InvalidArgument

    rest = list(line)
    at = next((number for number, word in enumerate(rest) if not word.startswith("-")), None)
    name = "" if at is None else rest.pop(at)
    if name not in VERBS:
        near = difflib.get_close_matches(name, list(VERBS), n=1, cutoff=0.5)
        hint = (f"Did you mean {near[0]}? " if near else "") + f"Verbs: {', '.join(VERBS)}."
        raise InvalidArgument("unknown verb" if name else "no verb given", hint=hint, field="verb")
    return name, rest


def _understood(name: str, rest: List[str]) -> "Call | str":
    """The call a line stands for, or the help page it asks for. Raises InvalidArgument."""
    import echo_commandline

    name, tool, rest = _tool_of(name, rest)
    verb = VERBS.get(name, Verb(tool.name, tool.description))
    words = verb.words if verb.words is not None else [param.name for param in tool.params if param.required]
    parts = echo_commandline.split(rest, tool.params)
    if parts.help:
        about = f"{verb.help[:1].upper()}{verb.help[1:]}. {tool.description}"
        return echo_commandline.help_page(f"echo.py {name}", about, tool.params, words)
    return Call(tool, echo_commandline.arguments(parts, tool.params, words, _stdin))


def _tool_of(name: str, rest: List[str]) -> "Tuple[str, Tool, List[str]]":
    """The verb's tool; `scope TEXT` sets, `session-end --check` looks. Returns the words that are left, too."""
    import echo_tools

    if name == "session-end" and "--check" in rest:
        return name, _admin_tool("session-check"), [word for word in rest if word != "--check"]
    if name == "scope":
        words = [word for word in rest if not word.startswith("--")]
        if words == ["show"]:
            return name, echo_tools.BY_NAME["echo_get_scope"], [word for word in rest if word != "show"]
        if words[:1] == ["set"]:
            rest.remove("set")
        if words or "--scope" in rest:
            return "scope set", echo_tools.BY_NAME["echo_set_scope"], rest
    tool = VERBS[name].tool
    return name, echo_tools.BY_NAME[tool] if tool in echo_tools.BY_NAME else _admin_tool(tool), rest


def _admin_tool(name: str) -> "Tool":
    from echo_admin import ADMIN_BY_NAME  # most calls need none of these ops

    return ADMIN_BY_NAME[name]


def _stdin() -> str:
    from echo_commandline import utf8

    return utf8(sys.stdin.buffer, "stdin")


def _called(call: Call, environ: Optional[Mapping[str, str]]) -> Dict[str, Any]:
    """The envelope of the call, on the vault that the environment names."""
    import echo_check
    import echo_config
    import echo_offline

    settings = echo_config.read_settings(environ)
    if call.tool.name == "bootstrap":
        echo_config.make_vault_folder(settings.place.folder)
    ctx = echo_offline.open_cli(settings)
    try:
        if ctx.watch is not None:
            import echo_settle

            echo_settle.catch_up(ctx)
        envelope = echo_offline.run(call.tool, call.arguments, ctx)
    finally:
        ctx.close()
    if call.tool.name == "echo_load" and envelope.get("ok"):
        try:
            echo_check.record_load(settings.state_dir, ctx.clock)
        except OSError as failure:
            print(f"the time of this load could not be kept: {failure.strerror}", file=sys.stderr)
    return envelope


def _show(tool_name: str, envelope: Dict[str, Any], as_json: bool) -> int:
    """Print the answer and return the exit code: JSON on stdout alone, or text, errors on stderr."""
    from echo_core.errors import outcome_of

    outcome = outcome_of(envelope)
    if "help" in envelope and tool_name == "help":
        print(envelope["help"])
    elif as_json:
        print(json.dumps(envelope, ensure_ascii=False, indent=2))
    elif tool_name == "session-check":
        if envelope.get("reminder"):
            print(envelope["reminder"])
    else:
        from echo_output import render

        print(render(tool_name, envelope), file=sys.stderr if outcome.is_error else sys.stdout)
    sys.stdout.flush()
    return outcome.exit_code


def _overview() -> str:
    """The help of the whole program."""
    width = max(map(len, VERBS)) + 2
    return "\n".join([
        "usage: echo.py VERB [WORDS] [OPTIONS]    (echo.py VERB --help for one verb)", "",
        *(f"  {name:<{width}}{verb.help}" for name, verb in VERBS.items()), "",
        "ECHO_BASE names the vault's folder. --json prints the envelope alone on stdout.",
    ])


def _speak_utf8() -> None:
    """UTF-8 on every platform, whatever the console's code page; what cannot be shown is escaped."""
    streams: List[TextIO] = [sys.stdout, sys.stderr]
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
