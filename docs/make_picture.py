"""The picture in the README: a short memory day, really run, and drawn as SVG.

    python3 docs/make_picture.py            # writes docs/memory-day.svg
    python3 docs/make_picture.py --show     # prints the session instead

Every command is run by `sh` in a fresh folder with a fixed clock, so the picture is the same on every machine and
a test can tell when it no longer shows what ECHO answers.
"""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "skills/echo-memory/scripts/echo.py"
PICTURE = ROOT / "docs/memory-day.svg"
CLOCK, ZONE = "2026-11-30T14:05:09+01:00", "Europe/Vienna"
COLUMNS = 112
FONT_PX, LINE_PX, CHAR_PX, MARGIN_PX = 13, 18, 7.85, 18

SETUP = "echo.py bootstrap --json"
SESSION = (
    'echo.py capture "Ada Lovelace" --kind person --body "Mathematician who wrote the first program." | head -n 1',
    'echo.py capture "Analytical Engine" --kind project --body "A machine Ada Lovelace wrote for." | head -n 1',
    'echo.py capture "Use brass" --kind decision --body "Analytical Engine: iron rusts, brass lasts." | head -n 1',
    'echo.py capture "ADA LOVELACE" --kind person --body "Countess." | head -n 2',
    r'echo.py recall "which metal did we decide to use?" --limit 1 | cut -d \; -f 1-3 | head -n 8',
    'echo.py session-end "brass day" "Chose brass for the engine." "chose brass" --apply | head -n 1',
    "cat vault/decisions/by-date/2026-11-30-use-brass.md",
    "tail -n 4 vault/journal/daily/2026-11-30.md",
)


class Line(NamedTuple):
    """One line of the picture and its style: "command", "answer" or "note"."""

    text: str
    style: str


def record() -> list[tuple[str, str]]:
    """Run the session in a folder of its own: `(command, what it printed)` for each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bin").mkdir()
        command = folder / "bin/echo.py"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{SCRIPT}" "$@"\n', encoding="utf-8")
        command.chmod(0o755)
        env = {
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "ECHO_BASE": str(folder / "vault"),
            "ECHO_STATE_DIR": str(folder / "state"), "ECHO_CLOCK": CLOCK, "ECHO_TZ": ZONE, "LC_ALL": "C.UTF-8",
        }
        _run(SETUP, folder, env)
        return [(line, _run(line, folder, env)) for line in SESSION]


def _run(line: str, folder: Path, env: dict[str, str]) -> str:
    done = subprocess.run(["sh", "-c", line], cwd=folder, env=env, capture_output=True, check=False)
    if done.stderr:
        raise RuntimeError(f"{line}: {done.stderr.decode()}")
    return done.stdout.decode("utf-8")


def lines(session: list[tuple[str, str]]) -> Iterator[Line]:
    """The session as lines of at most COLUMNS characters."""
    for command, output in session:
        for line in textwrap.wrap(f"$ {command}", COLUMNS, subsequent_indent="    "):
            yield Line(line, "command")
        style = "answer" if command.startswith("echo.py") else "note"
        for text in output.splitlines():
            for line in textwrap.wrap(text, COLUMNS, subsequent_indent="  ", drop_whitespace=False) or [""]:
                yield Line(line.rstrip(), style)
        yield Line("", style)


def draw(shown: list[Line]) -> str:
    """The lines as an SVG document that needs no font, script or file from elsewhere."""
    width = round(COLUMNS * CHAR_PX + 2 * MARGIN_PX)
    height = len(shown) * LINE_PX + 2 * MARGIN_PX
    rows = [
        f'<text x="{MARGIN_PX}" y="{MARGIN_PX + number * LINE_PX + FONT_PX}" class="{line.style}">{escape(line.text)}'
        "</text>"
        for number, line in enumerate(shown) if line.text
    ]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" xml:space="preserve">',
        "<title>A terminal session: three captures, the duplicate gate, a recall, a session log and the notes</title>",
        f"<style>text{{font:{FONT_PX}px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
        "white-space:pre}.command{fill:#7ee787;font-weight:bold}.answer{fill:#c9d1d9}.note{fill:#e3b341}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>',
        *rows, "</svg>", "",
    ])


def main(arguments: list[str]) -> int:
    """Write the picture, or show the session."""
    shown = list(lines(record()))
    while shown and not shown[-1].text:
        shown.pop()
    if arguments == ["--show"]:
        sys.stdout.write("\n".join(line.text for line in shown) + "\n")
    else:
        PICTURE.write_text(draw(shown), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
