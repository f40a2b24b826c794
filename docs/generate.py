"""Write the pages that are derived from the code: docs/tools.md and docs/settings.md (`make docs`)."""
from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path

from echo_arguments import BODY_LIMIT, ITEM_LIMIT, LINE_LIMIT, Param
from echo_mcp.settings import SETTINGS, Setting
from echo_tools import REFLECT_FIELDS, TOOLS, TRIAGE_FIELDS, Tool
from echo_verbs import VERBS

DOCS = Path(__file__).parent
GROUPS = {
    "orient": "Where we stand", "recall": "Finding and reading", "write": "Writing", "curate": "Sorting and closing",
    "history": "Undo",
}
"""Group of a tool -> heading, in the order of the page."""
COMMANDS = {"echo_set_scope": "scope TEXT", "echo_health": "doctor"}
"""Tools whose verb calls another tool or has a word of its own."""
NOTE = "<!-- Written by docs/generate.py from {source}; change that and run `make docs`. -->"


def tools_page() -> str:
    """docs/tools.md."""
    core = ", ".join(f"`{tool.name}`" for tool in TOOLS if tool.core)
    lines = [
        "# Tools", "", NOTE.format(source="echo_tools.TOOLS"), "",
        *_paragraph(f"""{len(TOOLS)} tools in the profile `full`. The profile `core` costs an assistant half as many
            tokens and has {core}; `ECHO_MCP_TOOLS` chooses. With `ECHO_MCP_READ_ONLY=on` the tools that write do not
            exist, except `echo_load`, which then only reads."""),
        *_paragraph("""Every answer is an [envelope](envelope.md): `ok`, `action`, `warnings`, and the fields named
            below. A decision such as `duplicate-gate` is no error; somebody has to decide before the next call."""),
        *_paragraph(f"""A body may have {BODY_LIMIT // 1024} KiB, any other text {LINE_LIMIT // 1024} KiB, a call
            {ITEM_LIMIT} proposals. An unknown argument is refused with the nearest real name; a number out of range
            is brought to its bound, with a warning. A *note* is named by its vault path, its slug, or its exact title
            or alias; a *day* is `2026-11-30`, a *period* `2026-W49`, `2026-11`, `2026-Q4` or `2026`."""),
    ]
    for group, title in GROUPS.items():
        lines += [f"## {title}", ""]
        for tool in TOOLS:
            if tool.group == group:
                lines += _tool(tool)
    lines += _proposals()
    return "\n".join(lines).rstrip() + "\n"


def _tool(tool: Tool) -> list[str]:
    verbs = [name for name, verb in VERBS.items() if verb.tool == tool.name]
    facts = [
        "reads" if tool.reads else "writes", "may replace text" if tool.destructive else "",
        "twice is the same as once" if tool.again else "", "in `core`" if tool.core else "",
        f"command line `{COMMANDS.get(tool.name) or verbs[0]}`",
    ]
    table = _table(tool.params) if tool.params else ["No arguments.", ""]
    answers = ", ".join(f"`{name}`" for name in tool.returns)
    return [f"### {tool.name}", "", tool.description, "", f"*{'; '.join(filter(None, facts))}*", "", *table,
            f"Answers: {answers}.", ""]


def _table(params: Iterable[Param]) -> list[str]:
    lines = ["| argument | type | default | meaning |", "|---|---|---|---|"]
    lines += [f"| `{param.name}` | {_type(param)} | {_default(param)} | {_meaning(param)} |" for param in params]
    return [*lines, ""]


def _type(param: Param) -> str:
    names = {"string": "text", "integer": "number", "boolean": "true/false", "string[]": "list of text", "object[]":
             "list of [proposals](#proposals)", "any": "any value"}
    forms = {"date": "day", "period": "period", "note": "note", "path": "path", "body": "Markdown", "item": "line"}
    name = forms.get(param.form, names[param.type])
    if param.least is not None:
        name += f", {param.least} to {param.most}"
    return name


def _default(param: Param) -> str:
    if param.required:
        return "required"
    if param.default in (None, ""):
        return ""
    return f"`{str(param.default).lower()}`"


def _meaning(param: Param) -> str:
    words = f"One of {', '.join(f'`{word}`' for word in param.enum)}." if param.enum else ""
    return " ".join(part for part in (param.help.replace("|", "\\|"), words) if part)


def _proposals() -> list[str]:
    """One table for the proposals of triage and reflect, which differ in two fields."""
    own = [param for param in TRIAGE_FIELDS if param.name in ("line", "text")]
    line = next(param for param in REFLECT_FIELDS if param.name == "line")
    shared = [param for param in REFLECT_FIELDS if param.name != "line"]
    return [
        "## Proposals", "",
        *_paragraph(f"""What `echo_triage_inbox`, `echo_reflect` and the `reflect` of `echo_log_session` take, up to
            {ITEM_LIMIT} a call; the session log takes only some of the fields. `capture` needs `title`, `append` needs
            `path` and a line, `link` needs `a` and `b`; `discard` and `keep` need nothing more."""),
        *_table(shared), "Triage:", "", *_table(own), "Reflect:", "", *_table([line]),
    ]


def settings_page() -> str:
    """docs/settings.md."""
    secrets = " and ".join(f"`{row.name}_FILE`" for row in SETTINGS if row.secret)
    return "\n".join([
        "# Settings of the server", "", NOTE.format(source="echo_mcp.settings.SETTINGS"), "",
        *_paragraph("""Environment variables, checked once at the start. A fault is one line on stderr that names the
            variable and the cure; the server then ends with exit code 64. An address that is taken: 69. A state folder
            that another server is using: 75."""),
        "| variable | default | values | meaning |", "|---|---|---|---|", *map(_setting, SETTINGS), "",
        *_paragraph(f"""A secret may stand in a file instead: {secrets} name it. Setting both is a fault."""),
        "| command | settings |", "|---|---|",
        "| `echo-mcp run` (= `make run`) | all optional: vault and token are made in `ECHO_STATE_DIR` when missing |",
        "| `echo-mcp serve` | needs `ECHO_BASE` and `ECHO_MCP_TOKEN` |",
        "| `echo-mcp stdio` | needs `ECHO_BASE`; token, host and port mean nothing. One client at a time |",
        "| `echo-mcp queue` | those of the server whose [queue](troubleshooting.md#writes-that-wait) it shows |",
        "| `echo-mcp forget PATH` | those of the server whose traces of a note it [removes]"
        "(troubleshooting.md#a-note-that-has-to-be-forgotten) |",
        "| `echo-mcp backup` | those of the server whose vault it [saves](backup.md); all optional after `make run` |",
        "",
        *_paragraph("""`serve` and `stdio` set no vault up: run `echo.py bootstrap` once. `ECHO_STATE_DIR` must lie
            outside the vault, and belongs to one vault and one server: a second server on it leaves with exit code 75.
            Several clients, or several windows of one, connect to one server over HTTP. The command line reads some of
            the same variables, see [there](cli.md#settings); give both the same `ECHO_STATE_DIR` and they share the
            kept versions."""),
    ]).rstrip() + "\n"


def _paragraph(text: str) -> list[str]:
    return [textwrap.fill(" ".join(text.split()), 118, break_long_words=False, break_on_hyphens=False), ""]


def _setting(row: Setting) -> str:
    kinds: dict[str, str] = {
        "flag": "on, off", "hosts": "comma list", "time": "time of day", "url": "address", "folder": "folder",
        "token": "text", "text": "text", "choice": "word",
    }
    values = kinds.get(row.type, f"{row.least} to {row.most}")
    default = f"`{row.default}`" if row.default else ""
    return f"| `{row.name}` | {default} | {values}{', secret' if row.secret else ''} | {row.help} |"


PAGES: dict[str, Callable[[], str]] = {"tools.md": tools_page, "settings.md": settings_page}
"""File in docs/ -> its generator."""


def main() -> int:
    """Write every page."""
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
