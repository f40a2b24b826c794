"""The import rules of the architecture, read from the source with `ast` (spec 1.1)."""
from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "skills/echo-memory/scripts"
SERVER = ROOT / "mcp-server/echo_mcp"
WEB = {"starlette", "uvicorn"}

# (rule, files it binds, top-level modules they may not import, files that are the exception)
BANS = [
    ("only sdk.py speaks to the MCP SDK", SERVER, {"mcp", "mcp_types"}, {"sdk.py"}),
    ("only the HTTP doors import Starlette", SERVER, {"starlette"}, {"http.py", "auth.py", "oauth.py", "rest.py"}),
]


def modules(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


@functools.cache
def tree(path: Path) -> ast.Module:
    """The parsed file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[str]:
    """Every dotted name a file imports; `from a import b` gives `a` and `a.b`."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def top(name: str) -> str:
    return name.partition(".")[0]


def offences(paths: list[Path], allowed: Callable[[str], bool]) -> list[str]:
    """The imports of files that are not allowed."""
    return [f"{path.name}: {name}" for path in paths for name in imports(path) if not allowed(name)]


def test_scripts_import_only_the_standard_library_and_their_siblings() -> None:
    """A script runs with `python3 -S`: nothing installed, every own top-level name starts with `echo`."""
    assert offences(
        modules(SCRIPTS), lambda name: top(name) in sys.stdlib_module_names or top(name).startswith("echo")) == []


def test_core_imports_only_itself() -> None:
    """The format layer knows no op."""
    assert offences(
        modules(SCRIPTS / "echo_core"), lambda name: not top(name).startswith("echo") or top(name) == "echo_core") == []


def test_ops_never_import_the_command_line() -> None:
    """`echo.py` is a door; what it calls must not know it."""
    assert offences(sorted(SCRIPTS.glob("echo_*.py")), lambda name: top(name) != "echo") == []


@pytest.mark.parametrize(("rule", "folder", "banned", "allowed"), BANS, ids=[ban[0] for ban in BANS])
def test_each_library_has_its_door(rule: str, folder: Path, banned: set[str], allowed: set[str]) -> None:
    """A library that talks to the outside is imported in its own files only."""
    for path in modules(folder):
        relative = str(path.relative_to(folder))
        if relative not in allowed and not relative.startswith("console/"):
            assert not {top(name) for name in imports(path)} & banned, relative


@pytest.mark.parametrize("path", modules(SERVER / "toolsets"), ids=lambda p: p.name)
def test_toolsets_import_neither_each_other_nor_the_settings(path: Path) -> None:
    """A toolset gets the registry; it builds nothing and reads no configuration."""
    for name in imports(path):
        assert not name.startswith(("echo_mcp.settings", "echo_mcp.wiring", "echo_mcp.http")), name
        if path.name != "__init__.py":
            assert not name.startswith("echo_mcp.toolsets."), name


def test_only_main_builds() -> None:
    """`wiring.py` is the composition root; only `__main__.py` imports it."""
    importers = {path.name for path in modules(SERVER) if "echo_mcp.wiring" in set(imports(path))}
    assert importers <= {"__main__.py"}


def test_only_the_settings_read_the_environment() -> None:
    """A setting that is read elsewhere is in no table and in no documentation."""
    readers = set()
    for path in [*modules(SERVER), *modules(SCRIPTS)]:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "environb"):
                readers.add(path.name)
    assert readers <= {"settings.py", "echo_config.py"}


def test_no_two_scripts_share_a_name_with_a_module_of_python() -> None:
    """The scripts lie flat on the path of whoever runs them."""
    names = {path.stem for path in SCRIPTS.glob("*.py")} | {path.name for path in SCRIPTS.iterdir() if path.is_dir()}
    own = {name for name in names if not name.startswith("__") and not name.startswith(".")}
    assert all(name.startswith("echo") for name in own)
