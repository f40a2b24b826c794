"""The command line as a person, a hook or a script meets it: a process with `python3 -S` and nothing installed."""
from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import echo
import pytest
from echo_bootstrap import bootstrap_op
from echo_verbs import VERBS
from opsfixture import INSTANT, ZONE, get, make_ctx, put, snapshot

SCRIPT = Path(__file__).parent.parent / "skills/echo-memory/scripts/echo.py"
HOOK = Path(__file__).parent.parent / "skills/echo-memory/hooks/echo-hook.cmd"
OLDEST = Path("~/.pyenv/versions/3.9.18/bin/python3.9").expanduser()
SPEC_VERBS = (
    "load recall resolve get map ls search put post append patch fm bump delete capture link move triage reflect scope "
    "session-end rollup history restore doctor lint sweep decay reindex bootstrap migrate lock unlock queue flush"
)


class Ran(NamedTuple):
    """What one process did."""

    code: int
    out: str
    err: str

    def envelope(self) -> dict[str, Any]:
        """Stdout as the one JSON object it has to be."""
        answer = json.loads(self.out)
        assert isinstance(answer, dict)
        return answer


class Cli:
    """Runs the command line on the vault of one test."""

    def __init__(self, folder: Path, python: str = sys.executable) -> None:
        self.folder = folder
        self.python = python
        self.env = {
            "ECHO_BASE": str(folder / "vault"), "ECHO_STATE_DIR": str(folder / "state"), "ECHO_CLOCK": INSTANT,
            "ECHO_TZ": ZONE, "PATH": os.environ["PATH"],
        }

    def __call__(self, *line: str, stdin: str = "", **env: str) -> Ran:
        done = subprocess.run(
            [self.python, "-S", "-W", "error", str(SCRIPT), *line], input=stdin.encode(), capture_output=True,
            env={**self.env, **env}, timeout=60, check=False,
        )
        return Ran(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))

    def process_json(self, *line: str, stdin: str = "", code: int = 0, **env: str) -> dict[str, Any]:
        """The envelope of a process that has to end with exit code `code`, alone on stdout."""
        ran = self(*line, "--json", stdin=stdin, **env)
        assert ran.code == code, ran
        return ran.envelope()

    def json(self, *line: str, stdin: str = "", code: int = 0, **env: str) -> dict[str, Any]:
        """The same in this process, which is a good deal quicker."""
        out, err = io.StringIO(), io.StringIO()
        given = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
        with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "stdin", given):
            ended = echo.main([*line, "--json"], {**self.env, **env})
        assert ended == code, (ended, out.getvalue(), err.getvalue())
        return Ran(ended, out.getvalue(), err.getvalue()).envelope()


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The command line on an empty vault folder."""
    (tmp_path / "vault").mkdir()
    return Cli(tmp_path)


@pytest.fixture
def ready(cli: Cli) -> Cli:
    """The command line on a vault that was set up."""
    bootstrap_op(ctx=make_ctx(cli.folder))
    return cli


def test_every_verb_of_the_specification_is_there() -> None:
    """The list of spec 3.3, and nothing beside it."""
    assert list(VERBS) == SPEC_VERBS.split()


def test_help_lists_every_verb_without_a_vault(cli: Cli) -> None:
    """`--help` needs no settings."""
    ran = cli("--help", ECHO_BASE="")
    assert ran.code == 0
    assert all(re.search(rf"^  {verb} ", ran.out, re.MULTILINE) for verb in VERBS)


def test_no_verb_at_all_is_a_wrong_call(cli: Cli) -> None:
    """The overview goes to stderr, exit 2."""
    ran = cli()
    assert (ran.code, ran.out) == (2, "")
    assert "usage: echo.py VERB" in ran.err


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`VERB --help` prints usage and every option, exit 0, without a vault."""
    assert echo.main([verb, "--help"], {}) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: echo.py {verb}")
    assert "--json" in out


def test_help_of_a_tool_verb_comes_from_its_parameters(cli: Cli) -> None:
    """Nothing is declared twice: every parameter of the tool is an option."""
    from echo_tools import BY_NAME

    out = cli("capture", "--help").out
    assert all("--" + param.name.replace("_", "-") in out for param in BY_NAME["echo_capture"].params)


def test_json_is_alone_on_stdout(ready: Cli) -> None:
    """One JSON object and nothing else, also on a failure; chatter goes to stderr."""
    assert ready.process_json("capture", "Ada Lovelace", "--kind", "person")["action"] == "created"
    assert ready.process_json("get", "nobody", code=44)["code"] == "not-found"


def test_the_same_answer_as_text(ready: Cli) -> None:
    """Without --json a person reads a summary and the facts; an error goes to stderr."""
    ran = ready("capture", "Ada Lovelace", "--kind", "person")
    assert ran.out.startswith("created resources/people/ada-lovelace.md\n")
    ran = ready("get", "nobody")
    assert (ran.code, ran.out) == (44, "")
    assert ran.err.startswith("not-found: ")


@pytest.mark.parametrize(("line", "code", "field"), [
    (["capture"], 2, "title"),
    (["capture", "Ada", "--kind", "persn"], 2, "kind"),
    (["capture", "Ada", "--kidn", "person"], 2, "kidn"),
    (["capture", "Ada", "Lovelace"], 2, None),
    (["capture", "Ada", "--kind"], 2, "kind"),
    (["capture", "Ada", "--date", "tomorrow"], 2, "date"),
    (["capture", "--title", "Eve", "--title", "Eva"], 2, "title"),
    (["capture", "Ada", "--body", "@no-such-file"], 2, "body"),
    (["get", "../secret.md"], 2, "path"),
    (["recal", "x"], 2, "verb"),
    (["--json"], 2, "verb"),
    (["reflect", "not json"], 2, "proposals"),
    (["fm", "Ada", "tags", "--value-json", "[1"], 2, "value"),
    (["lint", "--checks", "broken"], 2, "checks"),
])
def test_a_wrong_call_names_the_field_and_ends_with_its_code(
    line: list[str], code: int, field: str | None, ready: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit codes of spec 3.1; nothing is written and no traceback is shown."""
    before = snapshot(ready.folder)
    assert echo.main([*line, "--json"], ready.env) == code
    shown = capsys.readouterr()
    answer = json.loads(shown.out)
    assert answer["ok"] is False
    assert answer.get("field") == field
    assert "Traceback" not in shown.err
    assert snapshot(ready.folder) == before


def test_a_near_miss_is_answered_with_the_real_name(cli: Cli) -> None:
    """Typing errors cost one look."""
    assert "Did you mean recall?" in cli.json("recal", "x", code=2)["hint"]
    assert "Did you mean --kind?" in cli.json("capture", "Ada", "--kidn", "person", code=2)["hint"]


@pytest.mark.parametrize(("env", "variable"), [
    ({"ECHO_BASE": ""}, "ECHO_BASE"),
    ({"ECHO_BASE": "http://127.0.0.1:99999", "ECHO_KEY": "k"}, "ECHO_BASE"),
    ({"ECHO_BASE": "http://127.0.0.1:27123"}, "ECHO_KEY"),
    ({"ECHO_BASE": "https://127.0.0.1:27124", "ECHO_KEY": "k", "ECHO_CA_FILE": "absent.pem"}, "ECHO_CA_FILE"),
    ({"ECHO_KEY_FILE": "absent"}, "ECHO_KEY_FILE"),
    ({"ECHO_TIMEOUT": "0"}, "ECHO_TIMEOUT"),
    ({"ECHO_BASE": "ftp://host/vault"}, "ECHO_BASE"),
    ({"ECHO_KEY": "k"}, "ECHO_KEY"),
    ({"ECHO_LOCK_TTL": "soon"}, "ECHO_LOCK_TTL"),
    ({"ECHO_ALLOW_SECRETS": "perhaps"}, "ECHO_ALLOW_SECRETS"),
    ({"ECHO_TZ": "Mars/Olympus"}, "ECHO_TZ"),
    ({"ECHO_CLOCK": "noon"}, "ECHO_CLOCK"),
])
def test_a_wrong_setting_is_named_with_its_cure(
    env: dict[str, str], variable: str, cli: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 64, one line that names the variable, and what to do."""
    assert echo.main(["load", "--json"], {**cli.env, **env}) == 64
    answer = json.loads(capsys.readouterr().out)
    assert answer["code"] == "misconfigured"
    assert variable in answer["error"]
    assert answer["hint"]


@pytest.mark.parametrize("folder", ["vault", "vault/state", "vault/a/b"])
def test_the_state_folder_is_no_part_of_the_vault(folder: str, ready: Cli) -> None:
    """History and queue would be synced with the notes; a dot folder, which no client reads, may hold them."""
    refused = ready.json("load", code=64, ECHO_STATE_DIR=str(ready.folder / folder))
    assert (refused["code"], refused["variable"]) == ("misconfigured", "ECHO_STATE_DIR")
    ready.json("load", ECHO_STATE_DIR=str(ready.folder / "vault/.echo"))


def test_without_a_state_folder_each_vault_gets_its_own(tmp_path: Path) -> None:
    """Versions and waiting writes of two vaults never mix."""
    from echo_config import read_settings

    env = {"XDG_STATE_HOME": str(tmp_path), "LOCALAPPDATA": str(tmp_path), "ECHO_BASE": str(tmp_path / "one")}
    one = read_settings(env).state_dir
    two = read_settings({**env, "ECHO_BASE": str(tmp_path / "two")}).state_dir
    assert one != two
    assert read_settings({**env, "ECHO_BASE": f"file://{tmp_path}/one/"}).state_dir == one


def test_a_file_url_names_a_folder(ready: Cli) -> None:
    """`file://` with percent escapes is a path."""
    spaced = ready.folder / "my vault"
    (ready.folder / "vault").rename(spaced)
    url = "file://" + str(spaced).replace(" ", "%20")
    assert ready.json("ls", ECHO_BASE=url)["folders"] == ["_agent", "inbox"]


def test_bootstrap_makes_the_last_folder_and_no_more(tmp_path: Path) -> None:
    """A first run needs no mkdir; a path whose parent is missing is a typing error or an unmounted disk."""
    cli = Cli(tmp_path)
    assert cli.json("bootstrap")["action"] == "created"
    assert cli.json("bootstrap", code=69, ECHO_BASE=str(tmp_path / "no/such"))["code"] == "vault-unreachable"
    assert not (tmp_path / "no").exists()


def test_a_vault_that_is_not_there_is_an_error_for_reads(cli: Cli) -> None:
    """Exit 69, and no folder appears."""
    (cli.folder / "vault").rmdir()
    assert cli.json("load", code=69)["code"] == "vault-unreachable"
    assert cli.json("recall", "x", code=69)["code"] == "vault-unreachable"
    assert not (cli.folder / "vault").exists()


def test_the_gate_ends_with_its_own_code(ready: Cli) -> None:
    """76, the candidates, and both ways on in the text."""
    ready.json("capture", "Ada Lovelace", "--kind", "person", "--body", "Mathematician of the engine.")
    answer = ready.json("capture", "Lovelace, Ada", "--kind", "person", "--aliases", "Ada Lovelace",
                        "--body", "Another text.", code=76)
    assert answer["action"] == "duplicate-gate"
    assert answer["candidates"][0]["path"] == "resources/people/ada-lovelace.md"
    ran = ready("capture", "Lovelace, Ada", "--kind", "person", "--aliases", "Ada Lovelace", "--body", "Another text.")
    assert ran.code == 76
    assert "merge_into" in ran.out
    assert "force" in ran.out


def test_long_text_comes_from_stdin_or_from_a_file(ready: Cli) -> None:
    """`-`, `@file`, and `@@` for a text that begins with @; CRLF of a file does not get lost."""
    body = "Zeile eins: Größe\n\n- Punkt\n"
    ready.process_json("capture", "By stdin", "--kind", "concept", "--body", "-", stdin=body)
    note = get(ready.folder, "resources/concepts/by-stdin.md")
    assert "Zeile eins: Größe\n\n- Punkt\n" in note
    text = ready.folder / "text.md"
    text.write_bytes(b"from a file\n")
    ready.json("capture", "By file", "--kind", "concept", "--body", f"@{text}")
    assert "\nfrom a file\n" in get(ready.folder, "resources/concepts/by-file.md")
    ready.json("capture", "At", "--kind", "concept", "--body", "@@ada said so")
    assert "\n@ada said so\n" in get(ready.folder, "resources/concepts/at.md")


def test_stdin_that_is_no_text_is_refused(ready: Cli, tmp_path: Path) -> None:
    """Latin-1 is not guessed at."""
    text = tmp_path / "latin.md"
    text.write_bytes("Größe".encode("latin-1"))
    assert ready.json("capture", "X", "--kind", "concept", "--body", f"@{text}", code=2)["field"] == "body"


def test_an_endless_file_ends_at_a_limit(ready: Cli) -> None:
    """A device or a wrong file costs no memory; a body over 1 MiB is refused like at every door."""
    if os.path.exists("/dev/zero"):
        assert ready.json("capture", "X", "--body", "@/dev/zero", code=2)["code"] == "too-large"
    answer = ready.json("capture", "X", "--kind", "concept", "--body", "-", stdin="x" * (1024 * 1024 + 1), code=2)
    assert (answer["code"], answer["field"]) == ("too-large", "body")


def test_lists_are_repeated_options_or_json(ready: Cli) -> None:
    """Both spellings give the same list."""
    ready.json("capture", "A", "--kind", "concept", "--tags", "one", "--tags", "two")
    ready.json("capture", "B", "--kind", "concept", "--tags", '["one", "two"]')
    for name in "ab":
        assert "tags:\n  - one\n  - two\n" in get(ready.folder, f"resources/concepts/{name}.md")


def test_a_line_that_begins_with_a_dash_is_a_word(ready: Cli) -> None:
    """`- buy milk` needs no escape, and `--` ends the options."""
    put(ready.folder, "list.md", "# List\n")
    ready.json("append", "list.md", "- buy milk")
    assert ready("append", "--", "list.md", "--json").out.startswith("appended list.md\n")
    assert get(ready.folder, "list.md") == "# List\n- buy milk\n--json\n"


def test_scope_shows_and_sets(ready: Cli) -> None:
    """One verb; `set` and `show` may be said."""
    assert ready.json("scope")["scope"] == ""
    assert ready.json("scope", "Ship the engine")["action"] == "updated"
    assert ready.json("scope", "set", "Ship the engine")["action"] == "unchanged"
    assert ready.json("scope", "show")["scope"] == "Ship the engine"


def test_plain_verbs_read_and_write_whole_notes(ready: Cli) -> None:
    """put, post, map, search, fm, bump, ls and delete, each with what keeps it safe."""
    note = "---\ntitle: Engine # mine\ncount: 007\n---\n\n# Engine\n\nGears. ^gear\n"
    assert ready.json("put", "notes/engine.md", "-", stdin=note)["action"] == "created"
    assert get(ready.folder, "notes/engine.md") == note
    assert ready.json("put", "notes/engine.md", "other", code=79)["code"] == "conflict"
    assert ready.json("put", "notes/engine.md", note)["action"] == "unchanged"
    found = ready.json("map", "Engine")
    assert (found["headings"], found["blocks"], found["frontmatter"]) == (["Engine"], ["gear"], ["title", "count"])
    assert ready.json("search", "gears")["hits"] == [{"path": "notes/engine.md", "line": 8, "text": "Gears. ^gear"}]
    assert ready.json("post", "Engine", "More.\n\nAnd more.")["action"] == "appended"
    assert ready.json("post", "Engine", "More.\n\nAnd more.")["action"] == "unchanged"
    assert get(ready.folder, "notes/engine.md") == note + "More.\n\nAnd more.\n"
    ready.json("fm", "Engine", "status", "yes")
    ready.json("fm", "Engine", "tags", "--value-json", '["a"]')
    ready.json("bump", "Engine")
    front = get(ready.folder, "notes/engine.md").split("---\n")[1]
    assert front == 'title: Engine # mine\nstatus: "yes"\nupdated: 2026-11-30\ntags:\n  - a\ncount: 007\n'
    assert ready.json("fm", "Engine")["frontmatter"]["tags"] == ["a"]
    assert ready.json("fm", "Engine", "tags", "--remove")["action"] == "patched"
    assert ready.json("ls", "notes")["files"] == ["engine.md"]


def test_a_title_that_is_no_path_names_its_note(ready: Cli) -> None:
    """`Acme Inc.` may be said to every verb that takes a note."""
    ready.json("capture", "Acme Inc.", "--kind", "company")
    for line in (["map"], ["get"], ["bump"], ["fm"], ["delete"]):
        assert ready.json(*line, "Acme Inc.")["path"] == "resources/companies/acme-inc.md"


def test_delete_asks_first_and_can_be_undone(ready: Cli) -> None:
    """Without --confirm only what links to it is shown; history brings the bytes back."""
    put(ready.folder, "a.md", "# A\r\n")
    put(ready.folder, "b.md", "[[a]]\n")
    preview = ready.json("delete", "a.md")
    assert (preview["action"], preview["backlinks"]) == ("preview", ["b.md"])
    assert ready.json("delete", "a.md", "--confirm")["action"] == "deleted"
    assert not (ready.folder / "vault/a.md").exists()
    version = ready.json("history", "a.md")["versions"][0]["id"]
    ready.json("restore", "a.md", version, "--confirm")
    assert get(ready.folder, "a.md") == "# A\r\n"


def test_a_number_out_of_range_is_brought_to_the_bound_with_a_warning(ready: Cli) -> None:
    """As at every other door."""
    answer = ready.json("recall", "engine", "--limit", "500")
    assert "20" in answer["warnings"][0]


def test_secrets_are_refused_without_being_repeated(ready: Cli) -> None:
    """The answer names shape and field, never the value; only the operator's setting allows it."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    ran = ready("capture", "Token", "--kind", "concept", "--body", f"use {secret}", "--json")
    assert ran.code == 65
    assert ran.envelope()["code"] == "secret-suspected"
    assert secret not in ran.out + ran.err
    ready.json("capture", "Token", "--kind", "concept", "--body", f"use {secret}", ECHO_ALLOW_SECRETS="1")


def test_the_session_check_is_silent_once_the_session_is_logged(ready: Cli) -> None:
    """One reminder line after a load without a log, nothing after the log; exit 0 both times."""
    ready.json("load", ECHO_CLOCK="2026-11-30T10:00:00+01:00")
    ran = ready("session-end", "--check")
    assert (ran.code, ran.out.count("\n")) == (0, 1)
    assert ready.json("session-end", "--check")["action"] == "reminder"
    ready.json("session-end", "engine-work", "Built it.", "Built the engine", "--apply")
    assert ready("session-end", "--check") == Ran(0, "", "")
    ready.json("load", ECHO_CLOCK="2026-11-30T15:00:00+01:00")
    assert ready.json("session-end", "--check")["action"] == "reminder"


def test_the_session_check_is_silent_when_the_vault_is_away(cli: Cli) -> None:
    """Nothing could be logged now; a hook must not nag about it."""
    (cli.folder / "vault").rmdir()
    assert cli("session-end", "--check") == Ran(0, "", "")


@pytest.mark.parametrize("shell", [path for path in map(shutil.which, ("sh", "dash", "bash")) if path])
def test_the_hooks_load_and_check(shell: str, ready: Cli) -> None:
    """SessionStart prints the memory, Stop one reminder line, in every POSIX shell."""
    def hook(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([shell, str(HOOK), *arguments], capture_output=True, text=True, timeout=60, check=False,
                              env={**ready.env, **env})

    start = hook("start")
    assert start.returncode == 0
    assert start.stdout.startswith("Memory loaded")
    stop = hook("stop", ECHO_CLOCK="2026-11-30T16:00:00+01:00")
    assert (stop.returncode, stop.stdout.count("\n")) == (0, 1)
    away = hook("start", ECHO_BASE="")
    assert away.returncode == 0
    assert away.stdout == "ECHO: the memory could not be loaded; go on without it.\n"
    nothing = hook("start", PATH="/nonexistent")
    assert nothing.returncode == 0


def test_the_hook_file_has_a_part_for_windows() -> None:
    """cmd.exe skips the first line as a label; the part looks for the same three commands."""
    text = HOOK.read_text(encoding="utf-8")
    assert text.startswith(": << 'BATCH_PART'\n@echo off\n")
    batch, shell = text.split("\nBATCH_PART\n")
    assert '(python3 python "py -3")' in batch
    assert 'python3 python "py -3"' in shell


def test_the_documentation_names_every_verb_option_and_variable() -> None:
    """docs/cli.md cannot drift."""
    from echo_admin import ADMIN_TOOLS

    text = (Path(__file__).parent.parent / "docs/cli.md").read_text(encoding="utf-8")
    for verb in VERBS:
        assert f"`{verb}" in text, verb
    for tool in ADMIN_TOOLS:
        for param in tool.params:
            if not param.required and param.name not in ("folder", "key", "value", "do", "id"):
                assert f"--{param.name.replace('_', '-')}" in text, (tool.name, param.name)
    source = (SCRIPT.parent / "echo_config.py").read_text(encoding="utf-8")
    for variable in set(re.findall(r'"(ECHO_[A-Z_]+)"', source)):
        assert f"`{variable}`" in text, variable


def test_old_names_can_still_be_imported() -> None:
    """`echo.py` re-exports what the seed promises on it."""
    import echo_core.errors
    import echo_doctor
    import echo_load
    import echo_scope

    assert echo.EchoError is echo_core.errors.EchoError
    assert (echo.load_op, echo.doctor_op) == (echo_load.load_op, echo_doctor.doctor_op)
    assert (echo.scope_show_op, echo.scope_set_op) == (echo_scope.scope_show_op, echo_scope.scope_set_op)
    with pytest.raises(AttributeError):
        echo.no_such_name


@pytest.mark.parametrize("python", [sys.executable, *([str(OLDEST)] if OLDEST.exists() else [])])
def test_a_short_day_runs_on_the_oldest_python_too(python: str, tmp_path: Path) -> None:
    """Nothing installed, warnings are errors, Python 3.9 as well as this one."""
    cli = Cli(tmp_path, python)
    assert cli.process_json("bootstrap")["action"] == "created"
    made = cli.process_json("capture", "Ada Lovelace", "--kind", "person", "--body", "Writes programs.")
    assert made["action"] == "created"
    assert cli.process_json("resolve", "ada lovelace")["match"] is True
    hits = cli.process_json("recall", "who writes programs")["primary"]
    assert hits[0]["path"] == "resources/people/ada-lovelace.md"
    assert cli.process_json("capture", "buy milk")["action"] == "inbox"
    line = cli.process_json("triage")["items"][0]["id"]
    proposals = json.dumps([{"line": line, "action": "discard"}])
    assert cli.process_json("triage", "--proposals", proposals, "--apply")["results"][0]["ok"] is True
    assert cli.process_json("lint")["violations"] == []
    assert cli.process_json("doctor", "--deep")["healthy"] is True


def test_an_unforeseen_failure_shows_an_id_and_no_traceback(
    ready: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 1, constant text; the same id stands on stderr with the place, without the values."""
    import echo_config

    def broken(environ: object = None) -> None:
        raise RuntimeError("secret words")

    monkeypatch.setattr(echo_config, "read_settings", broken)
    assert echo.main(["load", "--json"], ready.env) == 1
    shown = capsys.readouterr()
    answer = json.loads(shown.out)
    assert answer["code"] == "internal"
    assert answer["error_id"] in shown.err
    assert "secret words" not in shown.out + shown.err
