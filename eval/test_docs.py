"""The documentation cannot drift: what exists is documented, what is documented exists."""
from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest
from echo_admin import ADMIN_TOOLS
from echo_core.errors import DECISIONS, ERRORS
from echo_core.kinds import KINDS
from echo_core.lint import CHECKS
from echo_load import load_op
from echo_mcp.health import Health
from echo_mcp.http import routes
from echo_mcp.metrics import prometheus
from echo_mcp.refusals import MCP_PATHS, REFUSALS
from echo_mcp.registry import Registry
from echo_mcp.settings import SETTINGS
from echo_tools import REFLECT_FIELDS, TOOLS, TRIAGE_FIELDS
from echo_verbs import VERBS
from opsfixture import make_ctx

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *DOCS.rglob("*.md")])
SKILL = ROOT / "skills/echo-memory/SKILL.md"
SOURCES = [*(ROOT / "skills/echo-memory").rglob("*.py"), *(ROOT / "mcp-server").rglob("*.py"), ROOT / "Makefile"]
HOST_PATH = re.compile(r"(?<![\w.~])/(?:work|tmp|root|home/\w+|Users/\w+|opt|mnt|private)/")


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def script(name: str) -> ModuleType:
    """A program of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def table_row(text: str, name: str) -> list[str]:
    """The cells of the one table row whose first cell is `name` in code marks."""
    rows = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
    assert len(rows) == 1, f"{name} has {len(rows)} rows"
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", rows[0])[1:-1]]


@pytest.mark.parametrize("name", ["tools.md", "settings.md"])
def test_generated_pages_are_up_to_date(name: str) -> None:
    """`make docs` would change nothing."""
    assert script("generate").PAGES[name]() == page(f"docs/{name}")


def test_the_picture_in_the_readme_shows_what_echo_answers_today() -> None:
    """The session is run again; `make docs` draws what changed."""
    drawing = script("make_picture")
    shown = list(drawing.lines(drawing.record()))
    while not shown[-1].text:
        shown.pop()
    assert drawing.draw(shown) == page("docs/memory-day.svg")
    assert "(docs/memory-day.svg)" in page("README.md")


def test_every_tool_is_documented() -> None:
    """On the page of tools with its arguments, and in the skill with its verb."""
    for tool in TOOLS:
        section = page("docs/tools.md").split(f"### {tool.name}\n", 1)[1].split("\n### ", 1)[0]
        for param in tool.params:
            assert table_row(section.split("\n## ", 1)[0], param.name), tool.name
        assert f"`{tool.name}`" in SKILL.read_text(encoding="utf-8")


def test_every_setting_is_documented() -> None:
    """With its default."""
    shown = {row.name: table_row(page("docs/settings.md"), row.name)[1].strip("`") for row in SETTINGS}
    assert shown == {row.name: row.default for row in SETTINGS}


def test_no_variable_is_read_that_no_page_names() -> None:
    """Server and command line; a variable in a page exists in the code."""
    variable = re.compile(r"\bECHO_[A-Z][A-Z_]*[A-Z]\b")
    config = page("skills/echo-memory/scripts/echo_config.py")
    cli_page = page("docs/cli.md")
    for name in set(variable.findall(config)):
        assert f"| `{name}` |" in cli_page, name
    known = {row.name for row in SETTINGS} | {f"{row.name}_FILE" for row in SETTINGS if row.secret}
    for path in [*PAGES, SKILL]:
        assert set(variable.findall(path.read_text(encoding="utf-8"))) <= known, path.name


def test_every_code_and_decision_is_documented_with_its_outcome() -> None:
    """MCP isError, exit code and HTTP status are those of the code."""
    for code, outcome in {**ERRORS, **DECISIONS}.items():
        assert table_row(page("docs/envelope.md"), code)[3:] == [
            "yes" if outcome.is_error else "no", str(outcome.exit_code), str(outcome.http_status)], code


def test_every_refusal_of_http_is_documented() -> None:
    """With its status and code in one row."""
    rows = [f"| {refusal.status} | `{refusal.code}` |" for refusal in REFUSALS]
    assert [row for row in rows if f"\n{row}" not in page("docs/http.md")] == []


def test_every_verb_is_documented() -> None:
    """On the page of the command line."""
    assert [verb for verb in VERBS if not re.search(rf"`{verb}[` ]", page("docs/cli.md"))] == []


def test_the_operators_verbs_have_rows_of_their_own() -> None:
    """Those that no tool stands for are described there and nowhere else."""
    text = page("docs/cli.md").split("## Verbs that only the command line has", 1)[1]
    for tool in (tool for tool in ADMIN_TOOLS if tool.name in VERBS):
        assert re.search(rf"^\|.*`{tool.name}[` ]", text, re.M), tool.name


def test_every_finding_is_explained() -> None:
    """What a check of the notes can say stands on the page that helps."""
    assert [check for check in CHECKS if f"`{check}`" not in page("docs/troubleshooting.md")] == []


def test_every_kind_is_documented() -> None:
    """In the skill, and by its folder on the page of the format."""
    skill = SKILL.read_text(encoding="utf-8")
    assert [kind for kind in [*KINDS, "rollup"] if f"`{kind}`" not in skill] == []
    listed = [line for line in page("docs/vault-format.md").splitlines() if line.startswith("| `")]
    for name, kind in KINDS.items():
        top = kind.folder.split("{")[0].rstrip("/")
        parent, _, leaf = top.rpartition("/")
        assert any(top in line or (f"`{parent}/{{" in line and leaf in line) for line in listed), name


def test_every_door_is_documented() -> None:
    """Each route of the server on the page of HTTP, with nothing beside it."""
    async def nobody(*_: object) -> None: ...

    served = {route.path for route in routes(Registry(), nobody, Health())}
    named = set(re.findall(r"`(?:GET|POST) (/[^`]*)`", page("docs/http.md")))
    assert served == named
    assert set(MCP_PATHS) <= named


def test_every_field_of_health_and_every_metric_is_documented() -> None:
    """So that a monitor can be set up from the page."""
    text = page("docs/http.md")
    for name in Health().snapshot()[1]:
        assert re.search(rf"^\|[^|]*`{name}`[^|]*\|", text, re.M), name
    for name in re.findall(r"^# TYPE (\w+)", prometheus(Registry(), Health()), re.M):
        assert f"`{name}" in text, name


def test_the_proposals_page_knows_every_action_and_no_other_field() -> None:
    """The example of PROPOSAL_SCHEMA is valid: each action once at least, fields that exist."""
    (example,) = re.findall(r"PROPOSAL_SCHEMA.*?```json\n(.*?)```", page("docs/skill-and-hooks.md"), re.S)
    proposals = json.loads(example)
    actions = next(field.enum for field in REFLECT_FIELDS if field.name == "action")
    assert {proposal["action"] for proposal in proposals} == set(actions)
    known = {field.name for field in (*REFLECT_FIELDS, *TRIAGE_FIELDS)}
    assert all(set(proposal) <= known for proposal in proposals)


def test_the_sections_of_a_whole_load_are_documented(tmp_path: Path) -> None:
    """The names under which `brief: false` gives the six notes, and the counts beside them."""
    text = page("docs/skill-and-hooks.md")
    for name in load_op(brief=False, ctx=make_ctx(tmp_path))["sections"]:
        assert f"`{name}`" in text, name


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as Gitea and GitHub make them."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_somewhere(path: Path) -> None:
    """Relative links name files, and their anchors name headings."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    for target in re.findall(r"(?<!\[)\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", text)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        assert file.exists(), target
        if anchor:
            assert anchor in anchors(file.read_text(encoding="utf-8")), target


def test_every_page_can_be_reached_from_the_readme() -> None:
    """By links, through other pages or directly; decisions through the page of the architecture."""
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        path = waiting.pop()
        if path in seen or path.suffix != ".md":
            continue
        seen.add(path)
        for target in re.findall(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            waiting.append((path.parent / target).resolve())
    assert [path.name for path in PAGES if path.resolve() not in {found.resolve() for found in seen}] == []


def test_every_make_command_of_the_pages_exists() -> None:
    """The README's two commands before all."""
    targets = set(re.findall(r"^([a-z]+):", page("Makefile"), re.M))
    (first,) = re.findall(r"## Two commands\n+```\n(.*?)```", page("README.md"), re.S)
    assert re.findall(r"^make (\w+)", first, re.M) == ["run", "test"]
    for path in PAGES:
        assert set(re.findall(r"\bmake ([a-z]+)\b(?=`| *#|\n| [A-Z])", path.read_text(encoding="utf-8"))) <= targets


def test_no_page_names_a_path_of_the_machine_it_was_written_on() -> None:
    """Examples name folders that any reader may have."""
    pages = [*PAGES, SKILL, DOCS / "memory-day.svg"]
    assert [path.name for path in pages if HOST_PATH.search(path.read_text(encoding="utf-8"))] == []


def test_the_pages_name_no_file_or_function_that_is_gone() -> None:
    """Files in code marks exist somewhere in the repository."""
    files = {path.name for path in ROOT.rglob("*.py") if ".venv" not in path.parts}
    for path in PAGES:
        for name in re.findall(r"`[\w/.-]*?(\w+\.py)\b", path.read_text(encoding="utf-8")):
            assert name in files, f"{path.name}: {name}"


def test_the_versions_agree() -> None:
    """The changelog speaks of the version that is built."""
    (version,) = re.findall(r'__version__ = "(\d+\.\d+)', page("mcp-server/echo_mcp/__init__.py"))
    assert f"## {version}" in page("CHANGELOG.md")
