"""Every public function, class and module says what it does, read from the source with `ast` (spec 9.4)."""
from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = sorted([
    *(ROOT / "skills/echo-memory/scripts").rglob("*.py"), *(ROOT / "mcp-server").rglob("*.py"),
    *(ROOT / "docs").glob("*.py"),
])
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@functools.cache
def trees() -> dict[Path, ast.Module]:
    """Every parsed file."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}


@functools.cache
def classes() -> dict[str, ast.ClassDef]:
    """Every class by its name."""
    return {node.name: node for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def bases(node: ast.ClassDef) -> list[str]:
    return [base.id if isinstance(base, ast.Name) else ast.unparse(base) for base in node.bases]


def inherits(owner: ast.ClassDef, method: str) -> bool:
    """Whether a base class says what the method does; a library's class does it in its own documentation."""
    for name in bases(owner):
        base = classes().get(name)
        if base is None:
            return True
        if any(isinstance(node, Definition) and node.name == method and ast.get_docstring(node) for node in base.body):
            return True
        if inherits(base, method):
            return True
    return False


def is_error(node: Definition) -> bool:
    """Whether it is one of the failures, which are described as a family at the top of their module."""
    if not isinstance(node, ast.ClassDef):
        return False
    return any(name == "EchoError" or (name in classes() and is_error(classes()[name])) for name in bases(node))


def silent(body: list[ast.stmt], owner: ast.ClassDef | None = None) -> Iterator[str]:
    """Public definitions without a docstring that nothing above them documents."""
    for node in body:
        if not isinstance(node, Definition) or node.name.startswith("_"):
            continue
        told = ast.get_docstring(node) or is_error(node) or (owner is not None and inherits(owner, node.name))
        if not told:
            yield f"{owner.name}.{node.name}" if owner else node.name
        if isinstance(node, ast.ClassDef):
            yield from silent(node.body, node)


def test_everything_public_has_a_docstring() -> None:
    """Methods that carry out a documented contract need none of their own."""
    assert [path.name for path, tree in trees().items() if tree.body and not ast.get_docstring(tree)] == []
    assert [f"{path.name}: {name}" for path, tree in trees().items() for name in silent(tree.body)] == []


def first_paragraphs(tree: ast.Module) -> Iterator[str]:
    """How each docstring of a module begins."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | Definition) and (text := ast.get_docstring(node)):
            yield text.split("\n\n", 1)[0].rstrip()


def test_a_docstring_begins_with_one_sentence() -> None:
    """Its first paragraph ends like a sentence or leads into a list."""
    assert [
        f"{path.name}: {text}" for path, tree in trees().items() for text in first_paragraphs(tree)
        if len(text.splitlines()) == 1 and not text.endswith((".", ":", "?", "`", ")"))
    ] == []
